"""Shapes, and operators that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuzz.onnx_graphs import (
    BF16,
    BOOL,
    F32,
    I32,
    I64,
    Array,
    Builder,
    Skip,
    is_float,
    recipe,
    type_of,
)
from fuzz.onnx_nodes.conditions import has_nan, within
from fuzz.onnx_nodes.elementwise import shuffled


@recipe("Reshape", weight=8)
def reshape(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op))
    shape = list(factors(b, x.array.size))
    if shape and x.array.size and b.chance(0.4):
        shape[b.random.randrange(len(shape))] = -1
    elif x.array.size and x.array.ndim and shape and shape[0] == x.array.shape[0] and b.chance(0.5):
        shape[0] = 0
    allow = 1 if not x.array.size and b.opset >= 14 else None
    if not x.array.size and allow is None:
        shape = list(x.array.shape)
    b.node(op, [x, b.parameter(shape)], allowzero=allow)


def factors(b: Builder, size: int) -> list[int]:
    """A shape of so many elements."""
    if size == 0:
        return [b.random.choice((0, 1, 3)), 0]
    found: list[int] = []
    while size > 1 and len(found) < 3:
        able = [k for k in range(2, min(size, 40) + 1) if size % k == 0]
        if not able or b.chance(0.2):
            break
        found.append(b.random.choice(able))
        size //= found[-1]
    if size > 1 or (not found and b.chance(0.7)):
        found.append(size)
    if b.chance(0.2):
        found.insert(b.random.randint(0, len(found)), 1)
    b.random.shuffle(found)
    return found


@recipe("Flatten")
def flatten(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    rank = x.array.ndim
    low = -rank if b.opset >= 11 else 0
    b.node(op, [x], axis=None if b.chance(0.3) else b.random.randint(low, rank))


@recipe("Squeeze", "Unsqueeze", weight=5)
def squeeze(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), test=lambda a: op == "Unsqueeze" or 1 in a.shape or b.chance(0.1))
    shape, rank = x.array.shape, x.array.ndim
    if op == "Squeeze":
        able = [k for k in range(rank) if shape[k] == 1]
        axes = b.random.sample(able, b.random.randint(min(1, len(able)), len(able)))
    else:
        axes = b.random.sample(range(rank + 1), 1)
        if b.chance(0.3):
            axes = b.random.sample(range(rank + 2), 2)
        rank += len(axes)
    if b.opset >= 11 and b.chance(0.3):
        axes = [axis - rank for axis in axes]
    # Of what size is one of unknown dimensions is not known.
    if op == "Squeeze" and (not axes or b.chance(0.02 if b.style.open else 0.2)):
        b.node(op, [x])
    elif b.opset >= 13:
        b.node(op, [x, b.parameter(axes)])
    else:
        b.node(op, [x], axes=sorted(axes))


@recipe("Transpose", weight=8)
def transpose(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op))
    order = list(range(x.array.ndim))
    b.random.shuffle(order)
    b.node(op, [x], perm=None if b.chance(0.2) or not order else order)


@recipe("Concat", weight=6)
def concat(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    axis = b.axis(x.array.ndim)
    parts = [x]
    for _ in range(b.random.choice((0, 1, 1, 2, 3))):
        shape = list(x.array.shape)
        if b.chance(0.5):
            shape[axis] = b.dim()
        parts.append(x if b.chance(0.15) else b.pick(x.array.dtype, shape))
    b.node(op, shuffled(b, parts), axis=axis)


@recipe("Split", weight=5)
def split(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    axis = b.axis(x.array.ndim)
    size = x.array.shape[axis]
    count = b.random.choice([k for k in (1, 2, 3) if k <= max(size, 1)])
    cuts = sorted(b.random.randint(0, size) for _ in range(count - 1))
    parts = [high - low for low, high in zip([0, *cuts], [*cuts, size], strict=True)]
    given = None if b.chance(0.3) and size % count == 0 else parts
    if b.opset < 13:
        b.node(op, [x], count, axis=axis, split=given)
    else:
        number = count if b.opset >= 18 and given is None else None
        b.node(
            op,
            [x, None if given is None else b.parameter(given)],
            count,
            axis=axis,
            num_outputs=number,
        )


@recipe("Slice", weight=10)
def slice_(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    shape = x.array.shape
    axes = b.random.sample(range(len(shape)), b.random.randint(1, len(shape)))
    starts, ends, steps = list[int](), list[int](), list[int]()
    for axis in axes:
        size = shape[axis]
        step = b.random.choice((1, 1, 1, 2, 3, -1, -2)) if b.opset >= 10 else 1
        starts.append(b.random.choice((0, b.random.randint(-size - 1, size + 1), size)))
        ends.append(b.random.choice((size, b.random.randint(-size - 1, size + 1), 2**31 - 1, -1)))
        if step < 0:
            starts[-1] = b.random.choice((size - 1, -1, 2**31 - 1, size // 2))
            ends[-1] = b.random.choice((0, -(2**31), -size - 1, -2))
        steps.append(step)
    if b.opset >= 11 and b.chance(0.3):
        axes = [axis - len(shape) for axis in axes]
    if b.opset < 10:
        b.node(op, [x], axes=axes, starts=starts, ends=ends)
        return
    dtype = b.random.choice((np.int64, np.int64, np.int32))
    inputs: list[Any] = [x, *(b.parameter(p, dtype) for p in (starts, ends))]
    is_leading = [a % len(shape) for a in axes] == list(range(len(axes)))
    has_steps = any(step != 1 for step in steps) or b.chance(0.3)
    inputs.append(None if is_leading and b.chance(0.4) else b.parameter(axes, dtype))
    inputs.append(b.parameter(steps, dtype) if has_steps else None)
    b.node(op, inputs)


@recipe("Pad", weight=5)
def pad(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    shape = x.array.shape
    modes = ["constant", "reflect", "edge"] + (["wrap"] if b.opset >= 19 else [])
    mode = b.random.choice((None, "constant", *modes))
    pads = [b.random.choice((0, 0, 1, 2)) for _ in range(2 * len(shape))]
    if mode in ("reflect", "edge", "wrap"):
        limit = 1 if mode == "reflect" else 0
        pads = [min(p, max(shape[k % len(shape)] - limit, 0)) for k, p in enumerate(pads)]
    elif b.chance(0.2):
        at = b.random.randrange(len(pads))
        pads[at] = -min(1, shape[at % len(shape)])
    number = b.random.choice((0, 1, 2))
    if b.opset < 11:
        b.node(op, [x], pads=pads, mode=mode, value=float(number) if number else None)
        return
    inputs: list[Any] = [x]
    axes = None
    if b.opset >= 18 and b.chance(0.3):
        axes = b.random.sample(range(len(shape)), b.random.randint(1, len(shape)))
        pads = [pads[a] for a in axes] + [pads[a + len(shape)] for a in axes]
    inputs.append(b.parameter(pads))
    inputs.append(b.leaf(np.array(number, x.array.dtype), 0.2) if b.chance(0.5) else None)
    inputs.append(None if axes is None else b.parameter(axes))
    b.node(op, inputs, mode=mode)


@recipe("Tile", "Expand", weight=4)
def repeat(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op))
    shape = x.array.shape
    if op == "Tile":
        b.node(op, [x, b.parameter([b.random.choice((1, 1, 2, 3, 0)) for _ in shape])])
        return
    target = [b.random.choice((1, b.dim())) if s == 1 else b.random.choice((1, s)) for s in shape]
    target = target[b.random.choice((0, 0, 1)) :]
    if b.chance(0.3) and len(target) == len(shape):
        target.insert(0, b.dim())
    b.node(op, [x, b.parameter(target)])


@recipe("Shape", "Size", weight=4)
def sizes(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op))
    attributes: dict[str, Any] = {}
    if op == "Shape" and b.opset >= 15 and b.chance(0.4):
        rank = x.array.ndim
        attributes = {"start": b.random.randint(-rank, rank), "end": b.random.randint(-rank, rank)}
    b.node(op, [x], **attributes)


def indices(b: Builder, dtype: Any, shape: Sequence[int], bound: int, negative: bool) -> Array:
    """Indices below a bound."""
    if not bound and np.prod(tuple(shape)):
        raise Skip
    low = -bound if negative and b.chance(0.4) else 0
    flat = [b.random.randrange(low, bound) for _ in range(int(np.prod(tuple(shape))))]
    return np.array(flat, dtype).reshape(tuple(shape))


@recipe("Gather", weight=8)
def gather(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    axis = b.axis(x.array.ndim)
    bound = x.array.shape[axis]
    dtype = b.random.choice((I64, I64, I32))
    negative = b.opset >= 11

    def able(a: Array) -> bool:
        return bool(((a < bound) & (a >= (-bound if negative else 0))).all())

    shape = b.shape(None, 0, 2)
    make = lambda: indices(b, dtype, shape, bound, negative)  # noqa: E731
    at = b.pick(dtype, low=0, high=2, test=able, make=make)
    b.node(op, [x, at], axis=None if axis == 0 and b.chance(0.5) else axis)


@recipe("GatherElements", "ScatterElements", "Scatter", weight=3)
def gather_elements(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, low=1)
    axis = b.axis(x.array.ndim)
    shape = [
        s if b.chance(0.6) else b.random.randint(0 if s == 0 else 1, max(s, 1))
        for s in x.array.shape
    ]
    negative = b.opset >= 11
    kind = b.random.choice((I64, I32))
    if op == "GatherElements":
        shape[axis] = b.dim()
        at = indices(b, kind, shape, x.array.shape[axis], negative)
        b.node(op, [x, b.leaf(at)], axis=axis)
        return
    attributes: dict[str, Any] = {"axis": axis}
    at = indices(b, kind, shape, x.array.shape[axis], negative)
    reduction = None
    if op == "ScatterElements" and b.opset >= 16:
        names = ["none", "add", "mul"] + (["max", "min"] if b.opset >= 18 else [])
        reduction = b.random.choice((None, *names)) if dtype.kind != "b" else None
        attributes["reduction"] = reduction
    if reduction in (None, "none"):
        # Which of two writes is the last nobody says.
        for k in np.ndindex(*(s for d, s in enumerate(shape) if d != axis % len(shape))):
            line = [*k[: axis % len(shape)], slice(None), *k[axis % len(shape) :]]
            if shape[axis] > x.array.shape[axis]:
                raise Skip
            chosen = b.random.sample(range(x.array.shape[axis]), shape[axis])
            at[tuple(line)] = chosen
    if reduction in ("add", "mul") and is_float(dtype) and not within(x.array, 1e3):
        raise Skip
    b.node(op, [x, b.leaf(at), b.pick(dtype, shape, sane=True)], **attributes)


@recipe("GatherND", "ScatterND", weight=3)
def gather_nd(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, low=1)
    shape = x.array.shape
    if op == "GatherND":
        batch = b.random.choice((0, 0, 1)) if b.opset >= 12 and len(shape) > 1 else 0
        depth = b.random.randint(1, len(shape) - batch)
        outer = [*shape[:batch], *(b.random.randint(1, 3) for _ in range(b.random.randint(0, 2)))]
        columns = [indices(b, I64, outer, shape[batch + k], True) for k in range(depth)]
        at = np.stack(columns, -1)
        b.node(op, [x, b.parameter(at)], batch_dims=batch or None)
        return
    depth = b.random.randint(1, len(shape))
    places = list(np.ndindex(*shape[:depth]))
    if not places:
        raise Skip
    chosen = b.random.sample(places, b.random.randint(1, min(len(places), 5)))
    at = np.array(chosen, np.int64)
    reduction = None
    if b.opset >= 16:
        names = ["none", "add", "mul"] + (["max", "min"] if b.opset >= 18 else [])
        reduction = b.random.choice((None, *names)) if dtype.kind != "b" else None
    updates = b.pick(dtype, (len(chosen), *shape[depth:]), sane=True)
    if reduction in ("add", "mul") and is_float(dtype) and not within(x.array, 1e3):
        raise Skip
    b.node(op, [x, b.parameter(at), updates], reduction=reduction)


@recipe("OneHot")
def one_hot(b: Builder, op: str) -> None:
    able = [t for t in b.types(op, "T1") if t in (I64, I32, F32)]
    x = b.pick(
        b.random.choice(able),
        low=1,
        high=3,
        test=lambda a: (
            within(a, 20)
            and not has_nan(a)
            and bool((a == np.floor(a)).all())
            and (b.opset >= 11 or bool((a >= 0).all()))
        ),
        make=lambda: indices(b, b.random.choice(able), b.shape(None, 1, 3), 6, False),
    )
    if x.array.dtype not in able:
        raise Skip
    depth = b.parameter(b.random.choice((1, 3, 5)), b.random.choice((np.int64, np.int32)))
    values = b.pick(b.dtype(op, "T3"), (2,))
    axis = b.random.randint(-x.array.ndim - 1, x.array.ndim) if b.opset >= 11 else -1
    b.node(op, [x, depth, values], axis=None if b.chance(0.3) else axis)


@recipe("EyeLike")
def eye_like(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op, "T1"), low=2, high=2)
    target = b.dtype(op, "T2")
    b.node(op, [x], k=b.random.choice((None, -1, 1)), dtype=type_of(target))


@recipe("Range")
def range_(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    start, delta = b.random.randint(-3, 3), b.random.choice((1, 2, 3, -1))
    limit = start + delta * b.random.randint(-1, 7)
    if is_float(dtype) and b.chance(0.5):
        delta *= 0.5
    b.node(op, [b.parameter(number, dtype) for number in (start, limit, delta)])


@recipe("ConstantOfShape")
def constant_of_shape(b: Builder, op: str) -> None:
    from fuzz.onnx_graphs import tensor

    dtype = b.dtype(op, "T2")
    if dtype == BF16:
        raise Skip
    value = tensor("", b.array(dtype, (1,)))
    b.node(op, [b.parameter(b.shape())], value=None if b.chance(0.2) else value)


@recipe("Trilu")
def trilu(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=2)
    k = b.parameter(b.random.randint(-3, 3)) if b.chance(0.6) else None
    b.node(op, [x, k], upper=b.random.choice((None, 0, 1)))


@recipe("DepthToSpace", "SpaceToDepth", weight=3)
def blocks(b: Builder, op: str) -> None:
    n, c, h, w = (
        b.random.choice((1, 2)),
        b.random.choice((1, 2, 3)),
        *(b.random.choice((1, 2, 3)) for _ in "hw"),
    )
    size = b.random.choice((1, 2, 2, 3))
    shape = (n, c * size**2, h, w) if op == "DepthToSpace" else (n, c, h * size, w * size)
    mode = b.random.choice((None, "DCR", "CRD")) if op == "DepthToSpace" and b.opset >= 11 else None
    b.node(op, [b.pick(b.dtype(op), shape)], blocksize=size, mode=mode)


@recipe("ReverseSequence")
def reverse_sequence(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=2)
    batch = b.random.randint(0, 1)
    shape = x.array.shape
    if 0 in shape:
        raise Skip
    lengths = [b.random.randint(1, shape[1 - batch]) for _ in range(shape[batch])]
    b.node(op, [x, b.parameter(lengths)], batch_axis=batch, time_axis=1 - batch)


@recipe("Compress", weight=3)
def compress(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    axis = None if b.chance(0.4) else b.axis(x.array.ndim)
    size = x.array.size if axis is None else x.array.shape[axis]
    b.node(op, [x, b.pick(BOOL, (b.random.randint(min(size, 1), size),))], axis=axis)


@recipe("NonZero", weight=3)
def non_zero(b: Builder, op: str) -> None:
    b.node(op, [b.pick(b.dtype(op), low=1)])


@recipe("TopK", weight=4)
def top_k(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1, test=b.mostly(lambda a: not has_nan(a)))
    axis = b.axis(x.array.ndim)
    k = b.random.randint(min(1, x.array.shape[axis]), x.array.shape[axis])
    if b.opset < 10:
        b.node(op, [x], 2, axis=axis, k=k)
        return
    largest = b.random.choice((None, 0, 1)) if b.opset >= 11 else None
    b.node(op, [x, b.parameter([k])], 2, axis=axis, largest=largest)


@recipe("Unique", weight=3)
def unique(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1, test=b.mostly(lambda a: not has_nan(a) and a.size > 0))
    count = b.random.randint(1, 4)
    absent = [k for k in range(1, count) if b.chance(0.2)]
    axis = None if b.chance(0.5) else b.axis(x.array.ndim)
    b.node(op, [x], count, absent, axis=axis, sorted=b.random.choice((None, 0, 1)))


@recipe("CenterCropPad")
def center_crop_pad(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    rank = x.array.ndim
    axes = None if b.chance(0.5) else b.random.sample(range(rank), b.random.randint(1, rank))
    shape = [b.random.randint(1, 6) for _ in (range(rank) if axes is None else axes)]
    b.node(op, [x, b.parameter(shape)], axes=axes)
