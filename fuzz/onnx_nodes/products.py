"""Products of matrices, and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuzz.onnx_graphs import Builder, Skip, Value, is_float, recipe


@recipe("MatMul", weight=8)
def mat_mul(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, low=1, sane=True)
    shape = x.array.shape
    other: tuple[int, ...] = (shape[-1],)
    if b.chance(0.85):
        other = (*b.broadcast(shape[:-2]), shape[-1], b.dim())
    b.node(op, [x, b.pick(dtype, other, sane=True)])


@recipe("Gemm", weight=5)
def gemm(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    m, k, n = b.dim(), b.dim(), b.dim()
    ta, tb = b.random.choice((None, 0, 1)), b.random.choice((None, 0, 1))
    x = b.pick(dtype, (k, m) if ta else (m, k), sane=True)
    y = b.pick(dtype, (n, k) if tb else (k, n), sane=True)
    inputs: list[Any] = [x, y]
    if b.opset < 11 or b.chance(0.7):
        inputs.append(b.pick(dtype, b.broadcast((m, n)), sane=True))
    numbers = (None, 1.0, 0.5, 0.0, 2.0) if is_float(dtype) else (None, 1.0, 2.0)
    b.node(
        op,
        inputs,
        transA=ta,
        transB=tb,
        alpha=b.random.choice(numbers),
        beta=b.random.choice(numbers),
    )


@recipe("Einsum", weight=4)
def einsum(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    text = b.random.choice(
        (
            "ij,jk->ik",
            "ij,ij->i",
            "ij->ji",
            "bij,bjk->bik",
            "i,j->ij",
            "ii->i",
            "bij,bkj->bik",
            "...ij,jk->...ik",
            "ij->",
            "ab,bc,cd->ad",
            "abc->ca",
            "ij,kj",
            "i,i->",
            "bhqd,bhkd->bhqk",
        )
    )
    dims: dict[str, int] = {}
    inputs: list[Value] = []
    for term in text.split("->")[0].split(","):
        shape = [
            dims.setdefault(c, b.dim()) for c in term.replace("...", "xy" if b.chance(1) else "")
        ]
        inputs.append(b.pick(dtype, shape, sane=True))
    b.node(op, inputs, equation=text)


@recipe("MatMulInteger")
def mat_mul_integer(b: Builder, op: str) -> None:
    m, k, n = b.dim(), b.dim(), b.dim()
    left, right = b.dtype(op, "T1"), b.dtype(op, "T2")
    batch = b.shape(1) if b.chance(0.3) else ()
    inputs: list[Any] = [b.pick(left, (*batch, m, k)), b.pick(right, (k, n))]
    inputs.append(b.pick(left, b.random.choice(((), (1,)))) if b.chance(0.5) else None)
    inputs.append(b.pick(right, b.random.choice(((), (1,), (n,)))) if b.chance(0.5) else None)
    b.node(op, inputs)


def window(
    b: Builder, rank: int, size: Sequence[int], kernel: Sequence[int], op: str
) -> dict[str, Any]:
    """Attributes of a window that fits."""
    attributes: dict[str, Any] = {}
    dilations = [b.random.choice((1, 1, 2)) for _ in range(rank)]
    if b.chance(0.7) or op in ("AveragePool", "LpPool", "MaxPool"):
        dilations = [1] * rank
    if op == "MaxPool" and b.opset >= 10 and b.chance(0.2):
        dilations = [2] * rank
    if op == "AveragePool" and b.opset >= 19 and b.chance(0.2):
        dilations = [2] * rank
    if any(d != 1 for d in dilations):
        attributes["dilations"] = dilations
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if b.chance(0.6):
        attributes["strides"] = [b.random.choice((1, 1, 2, 3)) for _ in range(rank)]
    pads = [0] * (2 * rank)
    match b.random.choice(("none", "pads", "auto")):
        case "pads":
            pads = [b.random.randint(0, max(extents[k % rank] - 1, 0)) for k in range(2 * rank)]
            if op in ("MaxPool", "AveragePool", "LpPool"):
                pads = [min(p, (kernel[k % rank] - 1)) for k, p in enumerate(pads)]
            attributes["pads"] = pads
        case "auto":
            modes = ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]
            attributes["auto_pad"] = b.random.choice(modes)
            if "dilations" in attributes and attributes["auto_pad"].startswith("SAME"):
                del attributes["dilations"]
        case _:
            pass
    if not attributes.get("auto_pad", "").startswith("SAME"):
        for k in range(rank):
            if size[k] + pads[k] + pads[k + rank] < extents[k]:
                raise Skip
    return attributes


def spatial(b: Builder, rank: int) -> list[int]:
    return [
        b.random.choice((1, 3, 4, 5, 6, 7) if rank > 1 else (3, 5, 9, 17, 33)) for _ in range(rank)
    ]


@recipe("Conv", weight=12)
def conv(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    rank = b.random.choice((1, 2, 2, 2, 2, 3))
    groups = b.random.choice((1, 1, 1, 2, 3))
    inner, outer = b.random.choice((1, 1, 2, 3, 4, 8)), b.random.choice((1, 1, 2, 3, 8))
    if b.chance(0.15):
        groups, inner = b.random.choice((2, 4, 8)), 1  # depthwise
    size = spatial(b, rank)
    shape = (b.random.choice((1, 1, 2)), groups * inner, *size)
    kernel = [b.random.choice((1, 2, 3, 3)) for _ in range(rank)]
    attributes = window(b, rank, size, kernel, op)
    weights = b.pick(dtype, (groups * outer, inner, *kernel), sane=True, computed=0.15, closed=True)
    inputs = [b.pick(dtype, shape, sane=True), weights]
    if b.chance(0.5):
        inputs.append(b.pick(dtype, (groups * outer,), sane=True, computed=0.15, closed=True))
    if b.chance(0.5):
        attributes["kernel_shape"] = kernel
    b.node(op, inputs, group=groups if groups > 1 or b.chance(0.3) else None, **attributes)


@recipe("ConvInteger", weight=2)
def conv_integer(b: Builder, op: str) -> None:
    size, kernel = spatial(b, 2), [b.random.choice((1, 2, 3)) for _ in range(2)]
    left, right = b.dtype(op, "T1"), b.dtype(op, "T2")
    attributes = window(b, 2, size, kernel, op)
    inputs: list[Any] = [b.pick(left, (1, 2, *size)), b.pick(right, (3, 2, *kernel))]
    inputs.append(b.pick(left, ()) if b.chance(0.5) else None)
    b.node(op, inputs, **attributes)


@recipe("ConvTranspose", weight=5)
def conv_transpose(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    rank = b.random.choice((1, 2, 2, 3))
    groups = b.random.choice((1, 1, 2))
    inner, outer = b.random.choice((1, 2, 3)), b.random.choice((1, 2, 3))
    size = [b.random.choice((1, 2, 3, 5)) for _ in range(rank)]
    kernel = [b.random.choice((1, 2, 3)) for _ in range(rank)]
    attributes: dict[str, Any] = {}
    strides = [b.random.choice((1, 1, 2, 3)) for _ in range(rank)]
    if b.chance(0.7):
        attributes["strides"] = strides
    else:
        strides = [1] * rank
    if b.chance(0.2):
        attributes["dilations"] = [b.random.choice((1, 2)) for _ in range(rank)]
    match b.random.choice(("none", "pads", "auto")):
        case "pads":
            attributes["pads"] = [
                b.random.randint(0, (kernel[k % rank] - 1) // 2) for k in range(2 * rank)
            ]
        case "auto" if "dilations" not in attributes and all(
            k >= s for k, s in zip(kernel, strides, strict=True)
        ):
            attributes["auto_pad"] = b.random.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        case _:
            pass
    if b.chance(0.3) and "auto_pad" not in attributes:
        attributes["output_padding"] = [b.random.randrange(s) for s in strides]
    inputs = [
        b.pick(dtype, (b.random.choice((1, 2)), groups * inner, *size), sane=True),
        b.pick(dtype, (groups * inner, outer, *kernel), sane=True, computed=0.15, closed=True),
    ]
    if b.chance(0.5):
        inputs.append(b.pick(dtype, (groups * outer,), sane=True, computed=0.15, closed=True))
    b.node(op, inputs, group=groups if groups > 1 else None, **attributes)
