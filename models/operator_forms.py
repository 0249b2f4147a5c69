"""
Single operators in the forms and at the sizes that models have: what `operators.py` measures.

A form is one node (a few where an operator only makes sense with a neighbor), with inputs, weights,
attributes, and dimensions that are open in the model. Families cross what may change how a kernel
is made: ranks, element types, groups, strides, dilations, padding, layouts, open sizes, computed
weights, short and long rows, many and few. Numbers are drawn from the name of the form, so that a
form is the same in every run.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

Array: TypeAlias = NDArray[Any]
Dims: TypeAlias = Sequence[int]

ELEMENT_TYPES = {
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "f16": np.dtype("f2"),
    "i8": np.dtype("i1"),
    "u8": np.dtype("u1"),
    "i32": np.dtype("i4"),
    "i64": np.dtype("i8"),
    "bool": np.dtype("?"),
}

OPSET = 21
_IR_VERSION = 10


@dataclass(frozen=True)
class Draw:
    """An array that is drawn when a form is written: numbers of a type, of about the same size."""

    dims: Dims
    type: str = "f32"
    scale: float = 0.5
    """The standard deviation of floats."""
    positive: bool = False
    below: int | None = None
    """Indices: integers from 0 up to this."""

    def array(self, rng: np.random.Generator) -> Array:
        """The numbers."""
        dtype = ELEMENT_TYPES[self.type]
        if self.below is not None:
            return rng.integers(0, self.below, self.dims).astype(dtype)
        if dtype.kind == "f":
            values = rng.standard_normal(self.dims) * self.scale
            return (np.abs(values) + 0.1 if self.positive else values).astype(dtype)
        if dtype.kind == "b":
            return rng.random(self.dims) > 0.5
        return rng.integers(0 if dtype.kind == "u" else -90, 90, self.dims).astype(dtype)


Value: TypeAlias = "Draw | Array"
Nodes: TypeAlias = "Callable[[Sequence[str], Sequence[str]], list[NodeProto]]"
"""Nodes that compute outputs from operands, by name."""


@dataclass(frozen=True)
class Form:
    """One operator in one form."""

    name: str
    op: str | Nodes
    inputs: Sequence[Value]
    weights: Sequence[Value | None] = ()
    """The operands after the inputs; None is one that is left out."""
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    open: Sequence[int | str] | None = None
    """The dimensions of the first input as the model has them."""
    outputs: int = 1

    @property
    def family(self) -> str:
        """What the name begins with."""
        return self.name.partition("_")[0]

    def build(self) -> tuple[ModelProto, dict[str, Array]]:
        """The model and its inputs."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        arrays = {f"x{k}": _array(value, rng) for k, value in enumerate(self.inputs)}
        weights = {
            f"w{k}": _array(value, rng) for k, value in enumerate(self.weights) if value is not None
        }
        operands = [*arrays, *(f"w{k}" if f"w{k}" in weights else "" for k in range(self._count()))]
        results = [f"y{k}" for k in range(self.outputs)]
        if isinstance(self.op, str):
            nodes = [helper.make_node(self.op, operands, results, **self.attributes)]
        else:
            nodes = self.op(operands, results)
        graph = helper.make_graph(
            nodes,
            "operator",
            [
                helper.make_tensor_value_info(
                    name,
                    helper.np_dtype_to_tensor_dtype(array.dtype),
                    self.open if self.open is not None and name == "x0" else array.shape,
                )
                for name, array in arrays.items()
            ],
            [helper.make_empty_tensor_value_info(name) for name in results],
            [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION), arrays

    def _count(self) -> int:
        return len(self.weights)


def _array(value: Value, rng: np.random.Generator) -> Array:
    return value.array(rng) if isinstance(value, Draw) else value


def opened(model: ModelProto) -> ModelProto:
    """A copy in which every dimension of every input has a name of its own, as exporters do."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for number, value in enumerate(copy.graph.input):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"x{number}_{axis}"
    return copy


def indices(*values: int) -> Array:
    """A constant operand: axes, sizes or places."""
    return np.array(values, "i8")


def text(dims: Sequence[float]) -> str:
    """Dimensions in a name."""
    return "x".join(map(str, dims))


# Convolutions and pools


def _conv(
    dims: Dims,
    filters: int,
    taps: Dims,
    *,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    pads: Dims | None = None,
    type_: str = "f32",
    computed: bool = False,
    open_: str = "",
    transposed: bool = False,
) -> Form:
    """A (transposed) convolution; `open_` are those of n, h, w (by position) that are open."""
    channels, space = dims[1], dims[2:]
    depth = channels // groups
    shape = [channels, filters // groups] if transposed else [filters, depth]
    weight = Draw([*shape, *taps], type_, 1 / math.sqrt(depth * math.prod(taps)))
    half = [(k - 1) * dilation // 2 for k in taps]
    padding = [*half, *half] if pads is None else [*pads]
    name = [
        "convtranspose" if transposed else "conv",
        text(dims),
        str(filters),
        f"k{text(taps)}",
        *([f"s{stride}"] if stride > 1 else []),
        *([f"d{dilation}"] if dilation > 1 else []),
        *([f"g{groups}"] if groups > 1 else []),
        *([f"p{text(pads)}"] if pads is not None else []),
        *([type_] if type_ != "f32" else []),
        *(["computed"] if computed else []),
        *([f"open{open_}"] if open_ else []),
    ]
    letters = ["n", "c", *("dhw"[3 - len(space) :])]
    attributes = {
        "kernel_shape": list(taps),
        "strides": [stride] * len(taps),
        "dilations": [dilation] * len(taps),
        "group": groups,
        "pads": padding,
    }
    parameters = [weight, Draw([filters], type_)]
    return Form(
        "_".join(name),
        "ConvTranspose" if transposed else "Conv",
        [Draw(dims, type_), *(parameters if computed else [])],
        [] if computed else parameters,
        attributes,
        [x if x in open_ else n for x, n in zip(letters, dims, strict=True)] if open_ else None,
    )


def _convolutions() -> Iterator[Form]:
    for channels, size in ((3, 224), (16, 112), (40, 56), (64, 56), (128, 28), (256, 14), (512, 7)):
        yield _conv([1, channels, size, size], 2 * channels + 2 * (channels == 3), [3, 3])
        yield _conv([1, channels, size, size], 64, [1, 1])
        yield _conv([1, channels, size, size], 48, [3, 3], stride=2)
    for taps in ((5, 5), (7, 7), (9, 9), (1, 5), (5, 1), (2, 2), (4, 4), (3, 1)):
        yield _conv([1, 32, 40, 40], 32, taps)
    for dilation in (2, 3, 6):
        yield _conv([1, 96, 33, 33], 96, [3, 3], dilation=dilation)
    for channels, filters in ((1, 8), (5, 7), (13, 29), (30, 100), (129, 65)):
        yield _conv([1, channels, 30, 30], filters, [3, 3])
        yield _conv([1, channels, 30, 30], filters, [1, 1])
    yield _conv([1, 256, 33, 33], 256, [3, 3], dilation=12)
    # Images that are read as they lie unless a copy pays.
    for channels, filters, size in ((2048, 256, 33), (512, 128, 28), (256, 256, 40), (64, 21, 65)):
        yield _conv([1, channels, size, size], filters, [1, 1])
    yield _conv([1, 64, 30, 30], 64, [3, 3], pads=[0, 0, 0, 0])
    yield _conv([1, 64, 57, 57], 64, [3, 3], stride=2, pads=[0, 0, 1, 1])
    yield _conv([1, 3, 299, 299], 32, [3, 3], stride=2, pads=[0, 0, 0, 0])
    yield _conv([1, 3, 224, 224], 96, [4, 4], stride=4, pads=[0, 0, 0, 0])
    yield _conv([1, 3, 224, 224], 192, [16, 16], stride=16, pads=[0, 0, 0, 0])
    for batch in (2, 8, 32):
        yield _conv([batch, 32, 28, 28], 32, [3, 3])
        yield _conv([batch, 96, 14, 14], 24, [1, 1])
    # Groups of every width.
    for channels, groups in ((64, 2), (96, 4), (112, 7), (64, 8), (96, 12), (128, 32), (60, 20)):
        for size, stride in ((28, 1), (29, 2)):
            yield _conv([1, channels, size, size], channels, [3, 3], groups=groups, stride=stride)
    for channels, filters, groups in ((240, 480, 8), (116, 58, 2), (48, 96, 3), (90, 30, 5)):
        yield _conv([1, channels, 28, 28], filters, [1, 1], groups=groups)
    # One channel a group.
    for channels, size, k, stride in (
        *((32, 112, 3, 1), (96, 56, 3, 2), (144, 56, 5, 1), (240, 28, 5, 2), (960, 7, 5, 1)),
        *((96, 56, 7, 1), (768, 7, 7, 1), (20, 50, 3, 1), (7, 60, 3, 1)),
    ):
        yield _conv([1, channels, size, size], channels, [k, k], groups=channels, stride=stride)
    yield _conv([1, 64, 28, 28], 64, [3, 3], groups=64, dilation=2)
    yield _conv([1, 24, 40, 40], 72, [3, 3], groups=24)
    yield _conv([4, 64, 28, 28], 64, [3, 3], groups=64)
    # One and three spatial dimensions.
    yield _conv([1, 80, 300], 512, [3])
    yield _conv([1, 1, 16000], 64, [10], stride=5)
    yield _conv([1, 256, 200], 256, [1])
    yield _conv([1, 512, 100], 512, [3], stride=2)
    yield _conv([1, 64, 800], 64, [3], dilation=8)
    yield _conv([1, 192, 150], 192, [15], groups=192)
    yield _conv([1, 96, 150], 96, [5], groups=6)
    yield _conv([1, 3, 8, 28, 28], 32, [3, 3, 3])
    yield _conv([1, 24, 8, 28, 28], 48, [3, 3, 3], stride=2)
    yield _conv([1, 64, 8, 28, 28], 64, [1, 1, 1])
    yield _conv([1, 32, 8, 28, 28], 32, [3, 1, 1])
    yield _conv([1, 32, 8, 28, 28], 32, [3, 3, 3], groups=32)
    # Open sizes, computed weights, other types.
    for open_ in ("n", "hw", "nhw"):
        yield _conv([1, 48, 40, 40], 64, [3, 3], open_=open_)
        yield _conv([1, 96, 40, 40], 96, [3, 3], groups=96, open_=open_)
        yield _conv([1, 96, 20, 20], 32, [1, 1], open_=open_)
    yield _conv([1, 64, 40, 40], 64, [3, 3], stride=2, open_="hw")
    yield _conv([1, 64, 40, 40], 64, [3, 3], groups=16, open_="hw")
    yield _conv([1, 80, 500], 80, [5], open_="w")
    yield _conv([1, 48, 28, 28], 48, [3, 3], computed=True)
    yield _conv([1, 192, 14, 14], 64, [1, 1], computed=True)
    yield _conv([1, 64, 28, 28], 64, [3, 3], groups=8, computed=True)
    yield _conv([1, 64, 100], 64, [3], computed=True)
    for type_, groups in product(("f16", "f64"), (1, 8, 64)):
        yield _conv([1, 64, 28, 28], 64, [3, 3], type_=type_, groups=groups)
    for type_ in ("f16", "f64"):
        yield _conv([1, 64, 28, 28], 128, [1, 1], type_=type_)
        yield _conv([1, 40, 300], 40, [3], type_=type_)


def _transposed_convolutions() -> Iterator[Form]:
    for channels, filters, size, k, stride, pad in (
        *(
            (64, 32, 28, 4, 2, 1),
            (128, 64, 14, 2, 2, 0),
            (32, 3, 56, 4, 2, 1),
            (21, 21, 33, 8, 4, 2),
        ),
        *((64, 64, 28, 3, 1, 1), (100, 50, 10, 5, 2, 2), (256, 128, 7, 3, 2, 1)),
    ):
        yield _conv(
            [1, channels, size, size],
            filters,
            [k, k],
            stride=stride,
            pads=[pad] * 4,
            transposed=True,
        )
    yield _conv([1, 64, 20, 20], 64, [4, 4], stride=2, pads=[1] * 4, groups=64, transposed=True)
    yield _conv([1, 64, 20, 20], 64, [4, 4], stride=2, pads=[1] * 4, groups=4, transposed=True)
    yield _conv([1, 64, 100], 32, [8], stride=4, pads=[2, 2], transposed=True)
    yield _conv([1, 32, 4, 14, 14], 16, [2, 2, 2], stride=2, pads=[0] * 6, transposed=True)
    yield _conv([1, 64, 20, 20], 32, [4, 4], stride=2, pads=[1] * 4, transposed=True, open_="hw")
    yield _conv([2, 64, 20, 20], 32, [2, 2], stride=2, pads=[0] * 4, transposed=True, computed=True)


def _pool(
    op: str,
    dims: Dims,
    taps: int,
    *,
    type_: str = "f32",
    open_: Sequence[int | str] | None = None,
    outputs: int = 1,
    **attributes: Any,
) -> Form:
    """A pool with windows of equal sides, or a global one, where `taps` is 0."""
    name = ["pool", op.lower(), text(dims)]
    if taps:
        name.append(f"k{taps}")
        attributes["kernel_shape"] = [taps] * (len(dims) - 2)
        for key in ("strides", "dilations", "pads"):
            if key in attributes:
                name.append(f"{key[0]}{text(attributes[key])}")
        name += [
            key.split("_")[0] for key in ("ceil_mode", "count_include_pad") if key in attributes
        ]
    name += [type_] if type_ != "f32" else []
    name += ["open"] if open_ is not None else []
    name += ["indices"] if outputs > 1 else []
    return Form("_".join(name), op, [Draw(dims, type_)], [], attributes, open_, outputs)


def _pools() -> Iterator[Form]:
    for op in ("MaxPool", "AveragePool"):
        for k, stride, pad in ((2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 1, 2), (9, 1, 4)):
            yield _pool(op, [1, 64, 56, 56], k, strides=[stride] * 2, pads=[pad] * 4)
        yield _pool(op, [1, 20, 31, 33], 3, strides=[2, 2], pads=[0, 0, 1, 1])
        yield _pool(op, [1, 64, 27, 27], 3, strides=[2, 2], ceil_mode=1)
        yield _pool(op, [8, 32, 28, 28], 2, strides=[2, 2])
        yield _pool(op, [1, 64, 1000], 3, strides=[2], pads=[1, 1])
        yield _pool(op, [1, 32, 8, 28, 28], 3, strides=[2] * 3, pads=[1] * 6)
        yield _pool(op, [1, 64, 28, 28], 3, dilations=[2, 2], pads=[2] * 4)
        yield _pool(op, [1, 64, 40, 40], 3, strides=[2, 2], pads=[1] * 4, open_=[1, 64, "h", "w"])
        yield _pool(op, [1, 64, 56, 56], 3, type_="f16", strides=[2, 2], pads=[1] * 4)
        yield _pool(op, [1, 64, 28, 28], 2, type_="f64", strides=[2, 2])
    yield _pool("MaxPool", [1, 64, 56, 56], 3, type_="u8", strides=[2, 2], pads=[1] * 4)
    yield _pool("MaxPool", [1, 256, 20, 20], 13, pads=[6] * 4)
    yield _pool("AveragePool", [1, 64, 28, 28], 3, pads=[1] * 4, count_include_pad=1)
    yield _pool("LpPool", [1, 64, 28, 28], 3, strides=[2, 2], p=2)
    for op, dims in product(
        ("GlobalAveragePool", "GlobalMaxPool"),
        ([1, 2048, 7, 7], [1, 64, 56, 56], [8, 100, 14, 14], [1, 256, 400], [1, 64, 4, 14, 14]),
    ):
        yield _pool(op, dims, 0)
    yield _pool("GlobalAveragePool", [1, 512, 7, 7], 0, open_=[1, 512, "h", "w"])
    yield _pool("MaxPool", [1, 64, 56, 56], 2, strides=[2, 2], outputs=2)
    for size in (3, 5):
        yield Form(f"pool_lrn_{size}", "LRN", [Draw([1, 96, 28, 28])], [], {"size": size})


# Products


def _products() -> Iterator[Form]:
    sizes = (
        *((1, 512, 1000), (1, 2048, 1000), (1, 4096, 4096), (1, 300, 10), (2, 768, 768)),
        *((4, 1024, 1024), (8, 256, 256), (12, 768, 3072), (16, 2048, 512), (49, 384, 1152)),
        *((64, 64, 64), (77, 768, 768), (100, 20, 7), (128, 3072, 768), (197, 768, 2304)),
        *((256, 256, 256), (384, 1024, 1024), (500, 3, 128), (2048, 64, 16), (3, 5, 7)),
        *((24, 1024, 512), (50, 400, 120), (400, 512, 91), (10, 10000, 10), (3136, 96, 32)),
    )
    for rows, depth, columns in sizes:
        name = f"{rows}x{depth}x{columns}"
        yield Form(
            f"matmul_{name}", "MatMul", [Draw([rows, depth])], [Draw([depth, columns], scale=0.05)]
        )
        if rows in (1, 8, 77, 256, 3):
            both = [Draw([rows, depth]), Draw([depth, columns])]
            yield Form(f"matmul_{name}_computed", "MatMul", both)
    for rows, depth, columns in ((16, 64, 1000), (200, 300, 400), (256, 1000, 32)):
        both = [Draw([rows, depth]), Draw([depth, columns])]
        yield Form(f"matmul_{rows}x{depth}x{columns}_computed", "MatMul", both)
    for type_ in ("f16", "f64", "i32"):
        for rows, depth, columns in ((64, 256, 256), (1, 512, 512)):
            yield Form(
                f"matmul_{rows}x{depth}x{columns}_{type_}",
                "MatMul",
                [Draw([rows, depth], type_)],
                [Draw([depth, columns], type_, 0.05)],
            )
    for open_, rows in product(([1, "t", 256], ["n", 100, 256]), (100,)):
        dims = [1, rows, 256]
        name = "".join(str(x) for x in open_ if isinstance(x, str))
        yield Form(f"matmul_open{name}", "MatMul", [Draw(dims)], [Draw([256, 512])], open=open_)
    for a, b in (
        *(
            ([12, 128, 64], [12, 64, 128]),
            ([12, 128, 128], [12, 128, 64]),
            ([8, 1, 64], [8, 64, 300]),
        ),
        *(
            ([2, 1000, 32], [2, 32, 100]),
            ([16, 197, 64], [16, 64, 197]),
            ([4, 256, 80], [4, 80, 256]),
        ),
        *(
            ([64, 16, 16], [64, 16, 16]),
            ([1000, 4, 4], [1000, 4, 4]),
            ([4, 8, 49, 32], [4, 8, 32, 49]),
        ),
        *(([32, 100, 60], [60, 30]), ([100, 3, 3], [3, 50])),
    ):
        yield Form(f"matmul_batch_{text(a)}_{text(b)}", "MatMul", [Draw(a), Draw(b)])
    yield Form("matmul_batch_constant", "MatMul", [Draw([6, 50, 64])], [Draw([6, 64, 50])])
    yield Form("matmul_vector_right", "MatMul", [Draw([700, 500])], [Draw([500])])
    yield Form("matmul_vector_left", "MatMul", [Draw([500])], [Draw([500, 700])])
    for rows, a, b in product((1, 16, 100), (0, 1), (0, 1)):
        first, second = ([rows, 300], [300, 200])
        yield Form(
            f"gemm_{rows}_{a}{b}",
            "Gemm",
            [Draw(first[::-1] if a else first)],
            [Draw(second[::-1] if b else second), Draw([200])],
            {"transA": a, "transB": b},
        )
    yield Form(
        "gemm_computed_scaled",
        "Gemm",
        [Draw([60, 300]), Draw([200, 300]), Draw([60, 200])],
        [],
        {"transB": 1, "alpha": 0.5, "beta": 2.0},
    )
    for equation, shapes in (
        ("bij,bjk->bik", ([8, 32, 40], [8, 40, 50])),
        ("bhid,bhjd->bhij", ([1, 8, 100, 64], [1, 8, 100, 64])),
        ("bhij,bhjd->bhid", ([1, 8, 100, 100], [1, 8, 100, 64])),
        ("ij,j->i", ([300, 500], [500])),
        ("bchw,oc->bohw", ([1, 64, 28, 28], [32, 64])),
        ("i,j->ij", ([300], [400])),
        ("bnc,bmc->bnm", ([2, 60, 64], [2, 70, 64])),
        ("ii->i", ([500, 500],)),
        ("ijk->kij", ([30, 40, 50],)),
    ):
        name = equation.replace(",", "_").replace("->", "_")
        yield Form(
            f"einsum_{name}", "Einsum", [Draw(s) for s in shapes], [], {"equation": equation}
        )


def _quantized() -> Iterator[Form]:
    scale, zero = np.float32(0.02), np.uint8(120)

    def scalars(a: float, zero: Any) -> list[Value | None]:
        return [np.asarray(np.float32(a)), np.asarray(zero)]

    for rows, depth, columns in ((1, 512, 512), (64, 512, 256), (128, 768, 768), (33, 65, 17)):
        data = Draw([rows, depth], "u8")
        weights = Draw([depth, columns], "i8")
        name = f"{rows}x{depth}x{columns}"
        yield Form(f"quantized_matmulinteger_{name}", "MatMulInteger", [data], [weights])
        operands = [*scalars(0.02, zero), weights, *scalars(0.01, np.int8(0)), *scalars(0.5, zero)]
        yield Form(f"quantized_qlinearmatmul_{name}", "QLinearMatMul", [data], operands)
    for channels, filters, size, k, stride, groups in (
        *((64, 64, 28, 3, 1, 1), (3, 32, 112, 3, 2, 1), (128, 256, 14, 1, 1, 1)),
        *((96, 96, 28, 3, 1, 96), (30, 50, 20, 3, 1, 1)),
    ):
        weights = Draw([filters, channels // groups, k, k], "i8")
        operands = [
            *scalars(0.02, zero),
            weights,
            np.full(filters, 0.01, "f4"),
            np.zeros(filters, "i1"),
            *scalars(0.5, np.uint8(128)),
            Draw([filters], "i32"),
        ]
        attributes = {
            "kernel_shape": [k, k],
            "pads": [k // 2] * 4,
            "strides": [stride] * 2,
            "group": groups,
        }
        name = f"quantized_qlinearconv_{channels}x{size}_{filters}_k{k}_s{stride}_g{groups}"
        data = Draw([1, channels, size, size], "u8")
        yield Form(name, "QLinearConv", [data], operands, attributes)
    for dims in ([1, 64, 56, 56], [128, 768], [10]):
        operands: list[Value | None] = [np.asarray(scale), np.asarray(zero)]
        yield Form(f"quantized_quantize_{text(dims)}", "QuantizeLinear", [Draw(dims)], operands)
        data = Draw(dims, "u8")
        yield Form(f"quantized_dequantize_{text(dims)}", "DequantizeLinear", [data], operands)
    axis = [np.full(768, 0.02, "f4"), np.zeros(768, "i1")]
    data, attributes = Draw([128, 768], "i8"), {"axis": 1}
    yield Form("quantized_dequantize_axis", "DequantizeLinear", [data], axis, attributes)
    yield Form("quantized_dynamic", "DynamicQuantizeLinear", [Draw([128, 768])], outputs=3)
    yield from _between_quantizations(scalars)


def _between_quantizations(
    scalars: Callable[[float, Any], list[Value | None]],
) -> Iterator[Form]:
    """Operators of floats behind dequantizations, with a quantization behind them and without."""
    kinds: Sequence[tuple[str, Dims, Dims, Mapping[str, Any]]] = (
        ("MatMul", [128, 768], [768, 384], {}),
        ("Conv", [1, 64, 28, 28], [64, 64, 3, 3], {"pads": [1] * 4}),
    )
    for (op, dims, weight, options), is_quantized in product(kinds, (True, False)):

        def nodes(
            operands: Sequence[str],
            results: Sequence[str],
            op: str = op,
            options: Mapping[str, Any] = options,
        ) -> list[NodeProto]:
            data, s, z, weight, ws, wz, *of_result = operands
            return [
                helper.make_node("DequantizeLinear", [data, s, z], ["x"]),
                helper.make_node("DequantizeLinear", [weight, ws, wz], ["w"]),
                helper.make_node(op, ["x", "w"], ["y"] if of_result else results, **options),
                *(
                    [helper.make_node("QuantizeLinear", ["y", *of_result], results)]
                    if of_result
                    else []
                ),
            ]

        operands = [
            *scalars(0.02, np.uint8(120)),
            Draw(weight, "i8"),
            *scalars(0.01, np.int8(0)),
            *(scalars(0.5, np.uint8(128)) if is_quantized else []),
        ]
        name = f"quantized_{'qdq' if is_quantized else 'dq'}_{op.lower()}"
        yield Form(name, nodes, [Draw(dims, "u8")], operands)


# Rows


_ROWS = ([64, 1000], [1, 1000], [128, 768], [12, 128, 128], [1000, 10], [4, 7, 49, 49], [8, 30000])


def _softmax_by_steps(operands: Sequence[str], results: Sequence[str]) -> list[NodeProto]:
    data, axes = operands
    return [
        helper.make_node("ReduceMax", [data, axes], ["m"]),
        helper.make_node("Sub", [data, "m"], ["d"]),
        helper.make_node("Exp", ["d"], ["e"]),
        helper.make_node("ReduceSum", ["e", axes], ["s"]),
        helper.make_node("Div", ["e", "s"], results),
    ]


def _rows() -> Iterator[Form]:
    for op, dims in product(("Softmax", "LogSoftmax"), _ROWS):
        yield Form(f"softmax_{op.lower()}_{text(dims)}", op, [Draw(dims)], [], {"axis": -1})
    for axis, dims in ((1, [1, 21, 65, 65]), (0, [100, 64]), (1, [8, 12, 300])):
        yield Form(f"softmax_axis{axis}_{text(dims)}", "Softmax", [Draw(dims)], [], {"axis": axis})
    yield Form("softmax_by_steps", _softmax_by_steps, [Draw([64, 1000])], [indices(-1)])
    yield Form("softmax_f16", "Softmax", [Draw([64, 500], "f16")], [], {"axis": -1})
    yield Form("softmax_open", "Softmax", [Draw([12, 77, 77])], [], {"axis": -1}, [12, "t", "t"])
    for dims in ([1, 197, 768], [49, 96], [128, 512], [3136, 32], [1, 1024], [10, 7]):
        operands: list[Value | None] = [Draw(dims[-1:]), Draw(dims[-1:])]
        name = f"norm_layer_{text(dims)}"
        yield Form(name, "LayerNormalization", [Draw(dims)], operands)
    for dims in ([1, 64, 56, 56], [4, 30, 20, 20], [1, 128, 500]):
        operands = [Draw(dims[1:2]), Draw(dims[1:2])]
        name = f"norm_instance_{text(dims)}"
        yield Form(name, "InstanceNormalization", [Draw(dims)], operands)
    for groups in (4, 32):
        operands = [Draw([128]), Draw([128])]
        attributes = {"num_groups": groups}
        data = [Draw([1, 128, 28, 28])]
        yield Form(f"norm_group_{groups}", "GroupNormalization", data, operands, attributes)
    operands = [Draw([64]), Draw([64]), Draw([64]), Draw([64], positive=True)]
    yield Form("norm_batch", "BatchNormalization", [Draw([1, 64, 56, 56])], operands)
    yield Form("norm_lp", "LpNormalization", [Draw([100, 512])], [], {"axis": -1, "p": 2})
    yield Form("norm_mean_variance", "MeanVarianceNormalization", [Draw([1, 64, 28, 28])])


def _reductions() -> Iterator[Form]:
    for axes in ([0], [1], [2], [3], [2, 3], [1, 2, 3], [0, 1], [0, 2, 3], [1, 3], []):
        for op in ("ReduceSum", "ReduceMax"):
            operands: list[Value | None] = [indices(*axes)] if axes else []
            name = f"reduce_{op[6:].lower()}_{''.join(map(str, axes)) or 'all'}"
            yield Form(name, op, [Draw([4, 32, 56, 28])], operands)
    for op in ("Mean", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"):
        for axis in (-1, 1):
            data = Draw([16, 100, 60], positive=True)
            name = f"reduce_{op.lower()}_{axis % 3}"
            yield Form(name, f"Reduce{op}", [data], [indices(axis)])
    for type_ in ("f16", "f64", "i32", "i64"):
        for op in ("ReduceSum", "ReduceMax"):
            name = f"reduce_{op[6:].lower()}_{type_}"
            yield Form(name, op, [Draw([64, 3000], type_)], [indices(1)])
    for dims, axis in (([1000, 7], 1), ([3000, 3], 1), ([50, 5, 100], 1), ([1, 100000], 1)):
        yield Form(f"reduce_sum_{text(dims)}", "ReduceSum", [Draw(dims)], [indices(axis)])
    for op, (dims, axis) in product(
        ("ArgMax", "ArgMin"), (([64, 1000], 1), ([1, 21, 65, 65], 1), ([100, 50], 0))
    ):
        name = f"argmax_{op.lower()}_{text(dims)}_{axis}"
        yield Form(name, op, [Draw(dims)], [], {"axis": axis})
    for dims, axis in (([64, 1000], 1), ([1000, 64], 0), ([8, 50, 60], 1)):
        yield Form(f"scan_cumsum_{text(dims)}_{axis}", "CumSum", [Draw(dims)], [np.array(axis)])
    data, attributes = [Draw([64, 1000])], {"exclusive": 1, "reverse": 1}
    yield Form("scan_cumsum_reverse", "CumSum", data, [np.array(1)], attributes)
    for dims, k, axis in (
        *(([64, 1000], 1, -1), ([64, 1000], 10, -1), ([1, 8400], 300, -1), ([1, 50257], 50, -1)),
        *(([100, 50], 5, 0), ([32, 100], 100, -1), ([8, 20, 30], 3, 1)),
    ):
        name = f"topk_{text(dims)}_{k}_{axis % len(dims)}"
        yield Form(name, "TopK", [Draw(dims)], [indices(k)], {"axis": axis}, outputs=2)
    yield Form("sort_unique", "Unique", [Draw([5000], "i64", below=300)])
    yield Form("sort_nonzero", "NonZero", [Draw([100, 500], "bool")])
    values, mask = Draw([100, 500]), Draw([100], "bool")
    yield Form("sort_compress", "Compress", [values, mask], [], {"axis": 0})


# Maps


_FUNCTIONS = (
    *("Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Gelu", "Sin", "Cos", "Tan", "Atan"),
    *("Sinh", "Cosh", "Asinh", "Floor", "Ceil", "Round", "Sign", "Elu", "Selu", "Celu", "Softplus"),
    *("Softsign", "HardSigmoid", "HardSwish", "Mish", "LeakyRelu", "ThresholdedRelu", "Reciprocal"),
)
_OF_POSITIVE = ("Sqrt", "Log")
_OF_UNIT = ("Asin", "Acos", "Atanh")


def _maps() -> Iterator[Form]:
    dims = [32, 5000]
    for op in _FUNCTIONS:
        yield Form(f"map_{op.lower()}", op, [Draw(dims)])
    for op in _OF_POSITIVE:
        yield Form(f"map_{op.lower()}", op, [Draw(dims, positive=True)])
    yield Form("map_acosh", "Acosh", [_above_one()])
    for op in _OF_UNIT:
        yield Form(f"map_{op.lower()}", op, [Draw(dims, scale=0.15)])
    for op, type_ in product(("Relu", "Sigmoid", "Tanh", "Exp", "Gelu", "Sqrt"), ("f16", "f64")):
        data = Draw(dims, type_, positive=op == "Sqrt")
        yield Form(f"map_{op.lower()}_{type_}", op, [data])
    for op, size in product(("Relu", "Sigmoid", "Add"), (1, 100, 1000)):
        inputs = [Draw([size])] * (2 if op == "Add" else 1)
        yield Form(f"small_{op.lower()}_{size}", op, inputs)
    for op, type_ in product(("Add", "Mul", "Sub", "Div"), ("f32", "f16", "f64", "i32", "i64")):
        second = Draw(dims, type_, below=9) if type_[0] == "i" else Draw(dims, type_, positive=True)
        if op == "Div" and type_[0] == "i":
            second = np.full(dims, 7, ELEMENT_TYPES[type_])
        yield Form(f"binary_{op.lower()}_{type_}", op, [Draw(dims, type_), second])
    for op, (a, b) in product(
        ("Add", "Mul"),
        (
            *(([64, 1000], [1000]), ([64, 1000], [64, 1]), ([1, 64, 56, 56], [1, 64, 1, 1])),
            *(([8, 1, 100], [1, 50, 1]), ([4, 64, 28, 28], []), ([12, 77, 77], [77, 77])),
        ),
    ):
        name = f"broadcast_{op.lower()}_{text(a)}_{text(b) or 'scalar'}"
        yield Form(name, op, [Draw(a), Draw(b)])
    for op in ("Less", "GreaterOrEqual", "Equal"):
        yield Form(f"compare_{op.lower()}", op, [Draw(dims), Draw(dims)])
        yield Form(f"compare_{op.lower()}_i64", op, [Draw(dims, "i64"), Draw(dims, "i64")])
    for op in ("And", "Or", "Xor"):
        yield Form(f"logic_{op.lower()}", op, [Draw(dims, "bool"), Draw(dims, "bool")])
    yield Form("logic_not", "Not", [Draw(dims, "bool")])
    for op in ("Max", "Min", "Sum", "Mean"):
        yield Form(f"variadic_{op.lower()}", op, [Draw(dims), Draw(dims), Draw(dims[1:])])
    for exponent in (2.0, 0.5, 3.0, 1.7):
        data = [Draw(dims, positive=True)]
        yield Form(f"pow_{exponent}", "Pow", data, [np.array(exponent, "f4")])
    yield Form("pow_computed", "Pow", [Draw([32, 500], positive=True), Draw([32, 500])])
    for fmod, type_ in ((1, "f32"), (0, "i32"), (0, "i64")):
        numbers = [Draw(dims, type_), np.full(dims, 3, ELEMENT_TYPES[type_])]
        yield Form(f"mod_{type_}", "Mod", numbers, [], {"fmod": fmod})
    limits: list[Value | None] = [np.array(-0.3, "f4"), np.array(0.3, "f4")]
    yield Form("clip", "Clip", [Draw(dims)], limits)
    yield Form("prelu", "PRelu", [Draw([1, 64, 56, 56])], [Draw([64, 1, 1])])
    yield Form("where", "Where", [Draw(dims, "bool"), Draw(dims), Draw([32, 1])])
    yield Form("where_i64", "Where", [Draw(dims, "bool"), Draw(dims, "i64"), Draw(dims, "i64")])
    for source, target in product(
        ("f32", "f16", "f64", "i8", "u8", "i32", "i64", "bool"), repeat=2
    ):
        pair = {source, target}
        if len(pair) == 2 and ("f16" not in pair or "f32" in pair):
            to = helper.np_dtype_to_tensor_dtype(ELEMENT_TYPES[target])
            data = Draw(dims, source, 20.0, positive=target == "u8")
            yield Form(f"cast_{source}_{target}", "Cast", [data], [], {"to": to})


def _above_one() -> Array:
    return np.linspace(1, 9, 32 * 5000, dtype="f4").reshape(32, 5000)


# Movement


def _movement() -> Iterator[Form]:
    for dims, perm in (
        *(([1, 64, 56, 56], [0, 2, 3, 1]), ([1, 56, 56, 64], [0, 3, 1, 2]), ([500, 700], [1, 0])),
        *(([1, 128, 12, 64], [0, 2, 1, 3]), ([12, 128, 64], [0, 2, 1]), ([20, 30, 40], [2, 1, 0])),
        *(([1, 3, 224, 224], [0, 2, 3, 1]), ([8, 16, 9, 9], [1, 0, 2, 3]), ([33, 17], [1, 0])),
        *(([4, 5, 6, 7, 8], [4, 2, 0, 3, 1]), ([64, 3, 4000], [0, 2, 1])),
    ):
        name = f"transpose_{text(dims)}_{''.join(map(str, perm))}"
        yield Form(name, "Transpose", [Draw(dims)], [], {"perm": perm})
    for type_ in ("f16", "f64", "u8", "i64"):
        data = [Draw([300, 400], type_)]
        yield Form(f"transpose_{type_}", "Transpose", data, [], {"perm": [1, 0]})
    for axis, parts in ((1, [64, 32, 5]), (2, [3, 5]), (3, [1, 2, 3]), (0, [1, 1, 1])):
        shapes = [[2, 20, 28, 28] for _ in parts]
        for shape, size in zip(shapes, parts, strict=True):
            shape[axis] = size
        inputs = [Draw(shape) for shape in shapes]
        yield Form(f"concat_{axis}", "Concat", inputs, [], {"axis": axis})
    for axis, count in ((1, 4), (3, 2), (-1, 7), (0, 2)):
        attributes = {"axis": axis, "num_outputs": count}
        data = [Draw([2, 64, 28, 28])]
        yield Form(f"split_{axis % 4}_{count}", "Split", data, [], attributes, outputs=count)
    for name, starts, ends, axes, steps in (
        *(("channels", [10], [50], [1], [1]), ("steps", [0, 1], [56, 56], [2, 3], [2, 2])),
        *(("reversed", [-1], [-9999], [3], [-1]), ("crop", [3, 3], [50, 50], [2, 3], [1, 1])),
        ("last", [5], [6], [3], [1]),
    ):
        operands = [indices(*v) for v in (starts, ends, axes, steps)]
        yield Form(f"slice_{name}", "Slice", [Draw([1, 64, 56, 56])], operands)
    for mode, type_ in product(("constant", "reflect", "edge", "wrap"), ("f32", "u8")):
        operands = [indices(0, 0, 3, 3, 0, 0, 3, 3)]
        name = f"pad_{mode}_{type_}"
        yield Form(name, "Pad", [Draw([1, 32, 56, 56], type_)], operands, {"mode": mode})
    for dims, repeats in (([16, 1, 100], [1, 30, 2]), ([50, 3], [1, 20]), ([1, 256], [100, 1])):
        yield Form(f"tile_{text(dims)}", "Tile", [Draw(dims)], [indices(*repeats)])
    for dims, target in (([16, 1, 100], [16, 50, 100]), ([1, 8, 1, 77, 64], [1, 8, 4, 77, 64])):
        yield Form(f"expand_{text(dims)}", "Expand", [Draw(dims)], [indices(*target)])
    for blocks, mode in product((2, 4), ("DCR", "CRD")):
        attributes = {"blocksize": blocks, "mode": mode}
        data = [Draw([1, 64, 28, 28])]
        yield Form(f"depthtospace_{blocks}_{mode.lower()}", "DepthToSpace", data, [], attributes)
    for blocks in (2, 4):
        data = [Draw([1, 16, 56, 56])]
        yield Form(f"spacetodepth_{blocks}", "SpaceToDepth", data, [], {"blocksize": blocks})
    for upper in (0, 1):
        yield Form(f"trilu_{upper}", "Trilu", [Draw([12, 128, 128])], [], {"upper": upper})
    yield Form("reversesequence", "ReverseSequence", [Draw([50, 16, 64])], [np.full(16, 40)])


def _selection() -> Iterator[Form]:
    table = Draw([5000, 128])
    for count in (1, 50, 1000):

        def gather(operands: Sequence[str], results: Sequence[str]) -> list[NodeProto]:
            return [helper.make_node("Gather", operands[::-1], results)]

        yield Form(f"gather_rows_{count}", gather, [Draw([count], "i64", below=5000)], [table])
    for axis, dims in ((1, [16, 100, 64]), (2, [4, 16, 100]), (0, [1000])):
        places = Draw([50], "i64", below=dims[axis])
        yield Form(
            f"gather_axis{axis}_{text(dims)}", "Gather", [Draw(dims), places], [], {"axis": axis}
        )
    for axis in (0, 1):
        data = [Draw([300, 500]), Draw([300, 500], "i64", below=300)]
        yield Form(f"gather_elements_{axis}", "GatherElements", data, [], {"axis": axis})
        inputs = [Draw([300, 100]), Draw([300, 100], "i64", below=100), Draw([300, 100])]
        for reduction in ("none", "add"):
            attributes = {"axis": axis, "reduction": reduction}
            name = f"scatter_elements_{axis}_{reduction}"
            yield Form(name, "ScatterElements", inputs, [], attributes)
    for depth in (1, 2):
        inputs = [Draw([50, 60, 32]), Draw([300, depth], "i64", below=50)]
        yield Form(f"gather_nd_{depth}", "GatherND", inputs)
        updates = Draw([300, 60, 32] if depth == 1 else [300, 32])
        yield Form(f"scatter_nd_{depth}", "ScatterND", [*inputs, updates])
    operands: list[Value | None] = [np.array(200), np.array([0, 1], "f4")]
    yield Form("onehot", "OneHot", [Draw([400], "i64", below=200)], operands)
    for mode, options, sizes in (
        *(("nearest", {}, [56, 56]), ("linear", {}, [56, 56]), ("cubic", {}, [56, 56])),
        *(("linear", {"coordinate_transformation_mode": "align_corners"}, [56, 56]),),
        *(("nearest", {"coordinate_transformation_mode": "asymmetric"}, [84, 84]),),
        *(("linear", {}, [15, 17]), ("linear", {"antialias": 1}, [14, 14])),
    ):
        attributes = {"mode": mode, **options}
        name = "_".join(["resize", mode, *map(str, options.values()), text(sizes)])
        operands = [None, None, indices(1, 64, *sizes)]
        yield Form(name, "Resize", [Draw([1, 64, 28, 28])], operands, attributes)
    operands = [None, None, indices(1, 3, 256, 256)]
    yield Form("resize_image", "Resize", [Draw([1, 3, 480, 640])], operands, {"mode": "linear"})
    for mode, padding in product(("linear", "nearest", "cubic"), ("zeros", "border")):
        attributes = {"mode": mode, "padding_mode": padding}
        inputs = [Draw([1, 16, 40, 40]), Draw([1, 30, 30, 2])]
        yield Form(f"gridsample_{mode}_{padding}", "GridSample", inputs, [], attributes)
    boxes = np.sort(np.random.default_rng(0).random([50, 4]) * 40, 1).astype("f4")
    for mode in ("avg", "max"):
        attributes = {"output_height": 7, "output_width": 7, "sampling_ratio": 2, "mode": mode}
        inputs = [Draw([1, 64, 50, 50]), boxes, np.zeros(50, "i8")]
        yield Form(f"roialign_{mode}", "RoiAlign", inputs, [], attributes)


def _recurrent() -> Iterator[Form]:
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for directions, batch, hidden, steps in ((1, 1, 128, 50), (2, 1, 100, 30), (1, 8, 256, 20)):
            operands: list[Value | None] = [
                Draw([directions, gates * hidden, 64], scale=0.1),
                Draw([directions, gates * hidden, hidden], scale=0.1),
                Draw([directions, 2 * gates * hidden], scale=0.1),
            ]
            attributes = {
                "hidden_size": hidden,
                "direction": "forward" if directions == 1 else "bidirectional",
            }
            name = f"recurrent_{op.lower()}_{directions}_{batch}_{hidden}"
            yield Form(name, op, [Draw([steps, batch, 64])], operands, attributes)


def _control() -> Iterator[Form]:
    float_, bool_ = TensorProto.FLOAT, TensorProto.BOOL

    def body(
        nodes: Sequence[NodeProto], inputs: Mapping[str, int], outputs: Mapping[str, int]
    ) -> GraphProto:
        known, made = (
            [
                helper.make_tensor_value_info(name, type_, [64, 64] if type_ == float_ else [])
                for name, type_ in values.items()
            ]
            for values in (inputs, outputs)
        )
        return helper.make_graph(nodes, "body", known, made)

    def choice(operands: Sequence[str], results: Sequence[str]) -> list[NodeProto]:
        data, condition = operands
        branches: dict[str, Any] = {
            f"{branch}_branch": body([helper.make_node(op, [data], ["b"])], {}, {"b": float_})
            for branch, op in (("then", "Tanh"), ("else", "Relu"))
        }
        return [helper.make_node("If", [condition], results, **branches)]

    def loop(operands: Sequence[str], results: Sequence[str]) -> list[NodeProto]:
        data, count = operands
        step = [
            helper.make_node("MatMul", ["c", data], ["p"]),
            helper.make_node("Tanh", ["p"], ["n"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ]
        known = {"i": TensorProto.INT64, "go": bool_, "c": float_}
        graph = body(step, known, {"on": bool_, "n": float_})
        return [helper.make_node("Loop", [count, "", data], results, body=graph)]

    data = Draw([64, 64], scale=0.1)
    yield Form("control_if_constant", choice, [data], [np.array(True)])
    yield Form("control_if", choice, [data, np.array(True)])
    yield Form("control_loop_once", loop, [data], [np.array(1)])
    yield Form("control_loop", loop, [data], [np.array(12)])
    yield Form("control_loop_computed", loop, [data, np.array(12)])


_FAMILIES: Sequence[Callable[[], Iterator[Form]]] = (
    *(_convolutions, _transposed_convolutions, _pools, _products, _quantized, _rows, _reductions),
    *(_maps, _movement, _selection, _recurrent, _control),
)


def forms() -> dict[str, Form]:
    """All forms, by name."""
    found: dict[str, Form] = {}
    for family in _FAMILIES:
        for form in family():
            assert form.name not in found, f"two forms have the name {form.name}"
            found[form.name] = form
    return found
