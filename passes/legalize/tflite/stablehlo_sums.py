"""Operators of StableHLO that combine many elements: reductions, windows, products."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, element_type, i1, is_float, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes
from lowerdeck.passes.legalize.tflite.stablehlo import dilated, padded, require_plain

Combine = Callable[[TensorValue, TensorValue], TensorValue]

_COMBINE: Mapping[str, Combine] = {
    "sum": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    # As the kernels have it: what is compared with NaN takes its place.
    "max": lambda a, b: a.ge(b).where(a, b),
    "min": lambda a, b: a.le(b).where(a, b),
    "all": lambda a, b: a & b,
    "any": lambda a, b: a | b,
}

_BODIES = {
    "ADD": "sum",
    "MUL": "prod",
    "MULTIPLY": "prod",
    "MAXIMUM": "max",
    "MINIMUM": "min",
    "AND": "all",
    "OR": "any",
}

_OF_TRUTH = {"sum": "any", "max": "any", "any": "any", "prod": "all", "min": "all", "all": "all"}

_MOST_TAPS = 64
"""Elements of a window that are taken one by one; those of larger ones become a dimension."""


def body_kind(builder: TfliteLegalizer) -> str:
    """How the called subgraph combines two elements."""
    body = str(builder.option("body") or "")
    if body not in _BODIES:
        builder.refuse(f"a body '{body}'", "one operator of: sum, product, extremum, and, or")
    return kind_of(builder, _BODIES[body])


def kind_of(builder: TfliteLegalizer, kind: str) -> str:
    """The same for the elements at hand, of which truth values have two kinds."""
    element = element_type(builder.input(0))
    if element == i1:
        return _OF_TRUTH[kind]
    if kind in ("all", "any"):
        builder.refuse(f"'{kind}' of {element}", "truth values")
    if kind in ("sum", "prod"):
        require_plain(builder)
    builder.require_equal_scales(0, 1)
    return kind


def _reduced(x: TensorValue, kind: str, axes: Sequence[int]) -> TensorValue:
    name = {"any": "max", "all": "min"}.get(kind, kind)
    return x.reduce(name, list(axes)) if axes else x


@legalizes("STABLEHLO_REDUCE")
def legalize_reduce(builder: TfliteLegalizer) -> Results:
    """All elements along dimensions, and a first one."""
    if len(builder.inputs) != 2:
        builder.refuse(f"{len(builder.inputs) // 2} tensors at once", "one")
    axes = builder.axes_option("dimensions", rank_of(builder.input(0)))
    kind = body_kind(builder)
    x, first = builder.value(0), builder.value(1).reshape([])
    return [_COMBINE[kind](first, _reduced(x, kind, sorted(axes))).value]


# Windows


@legalizes("STABLEHLO_REDUCE_WINDOW")
def legalize_stablehlo_windows(builder: TfliteLegalizer) -> Results:
    """The elements of each window, of an input that is dilated and padded by the first one."""
    if len(builder.inputs) != 2:
        builder.refuse(f"{len(builder.inputs) // 2} tensors at once", "one")
    rank = rank_of(builder.input(0))
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    sizes, strides, spread, dilations = (builder.counted(name, rank, 1, least=1) for name in names)
    pads = builder.counted("padding", 2 * rank)
    kind = body_kind(builder)
    first = builder.reshape(builder.input(1), [])
    x = dilated(builder, builder.input(0), spread, first)
    x = padded(builder, x, pads[::2], pads[1::2], first)
    return [_windows(builder, x, first, kind, sizes, strides, dilations)]


@legalizes("REDUCE_WINDOW")
def legalize_windows(builder: TfliteLegalizer) -> Results:
    """The elements of each window; sizes, strides and dilations are inputs."""
    function = str(builder.option("reduce_function") or "")
    names = {"ADD": "sum", "MUL": "prod", "MINIMUM": "min", "MAXIMUM": "max"}
    name = names.get(function, function.lower())
    if name not in _COMBINE:
        builder.refuse(f"the function '{function}'", ", ".join(_COMBINE))
    kind = kind_of(builder, name)
    sizes, strides, dilations = (
        builder.require_ints(builder.input(k), what)
        for k, what in ((2, "sizes of windows"), (3, "strides"), (4, "dilations"))
    )
    first = builder.reshape(builder.input(1), [])
    return [_windows(builder, builder.input(0), first, kind, sizes, strides, dilations)]


def _windows(
    builder: TfliteLegalizer,
    x: SSAValue,
    first: SSAValue,
    kind: str,
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> SSAValue:
    lists = (sizes, strides, dilations)
    if any(len(found) != rank_of(x) or min(found, default=1) < 1 for found in lists):
        builder.refuse(f"windows {[*map(list, lists)]}", f"{rank_of(x)} positive numbers each")
    counts: list[Expr] = []
    for dim, size, stride, dilation in zip(dims_of(x), sizes, strides, dilations, strict=True):
        count = (dim - ((size - 1) * dilation + 1)) // stride + 1
        counts.append(Expr.const(max(count.value, 0)) if count.value is not None else count)
    total = TensorValue(builder, builder.broadcast(first, counts))
    if math.prod(sizes) > _MOST_TAPS:
        whole = _unfolded(builder, x, counts, sizes, strides, dilations, kind)
        return _COMBINE[kind](total, whole).value
    for place in itertools.product(*map(range, sizes)):
        starts = [k * dilation for k, dilation in zip(place, dilations, strict=True)]
        if any(count.value == 0 for count in counts):
            break
        tap = TensorValue(builder, builder.slice(x, starts, counts, strides))
        total = _COMBINE[kind](total, tap)
    return total.value


def _unfolded(
    builder: TfliteLegalizer,
    x: SSAValue,
    counts: Sequence[Expr],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    kind: str,
) -> TensorValue:
    """Windows as dimensions of their own, one dimension after the other."""
    y = TensorValue(builder, x)
    for axis, (count, size) in enumerate(zip(counts, sizes, strict=True)):
        begins = TensorValue.iota(builder, count).column(2, 0) * strides[axis]
        places = begins + TensorValue.iota(builder, size).column(2, 1) * dilations[axis]
        gathered = builder.add(GatherOp(y.value, places.value, axis, inside=True))
        y = _reduced(TensorValue(builder, gathered), kind, [axis + 1])
    return y


# Products


@legalizes("STABLEHLO_DOT_GENERAL")
def legalize_dot(builder: TfliteLegalizer) -> Results:
    """Products summed along dimensions; dimensions that both share come first in the result."""
    require_plain(builder)
    builder.ignore("precision_config")
    x, y = builder.input(0), builder.input(1)
    (batch_x, batch_y), (sum_x, sum_y) = (
        [
            builder.axes_option(f"{side}_{name}_dimensions", rank_of(value))
            for side, value in (("lhs", x), ("rhs", y))
        ]
        for name in ("batching", "contracting")
    )
    if len(batch_x) != len(batch_y) or len(sum_x) != len(sum_y):
        builder.refuse(f"{len(batch_x)} and {len(sum_x)} dimensions", "as many of both inputs")
    free_x, free_y = (
        [k for k in range(rank_of(value)) if k not in (*batch, *summed)]
        for value, batch, summed in ((x, batch_x, sum_x), (y, batch_y, sum_y))
    )
    kept = [dims_of(x)[k] for k in (*batch_x, *free_x)] + [dims_of(y)[k] for k in free_y]
    left, right = (
        _matrices(builder, x, batch_x, free_x, sum_x),
        _matrices(builder, y, batch_y, sum_y, free_y),
    )
    wide = builder.element()
    accumulator = None if is_float(wide) or wide == element_type(x) else wide
    result = builder.add(MatmulOp(left, right, accumulator=accumulator))
    return [builder.cast(builder.reshape(result, kept), wide)]


def _matrices(builder: TfliteLegalizer, x: SSAValue, *parts: Sequence[int]) -> SSAValue:
    """Each group of dimensions as one."""
    dims = dims_of(x)
    y = builder.transpose(x, [k for part in parts for k in part])
    return builder.reshape(y, [product([dims[k] for k in part]) for part in parts])


_FEATURES = (
    "input_batch",
    "input_feature",
    "kernel_output_feature",
    "kernel_input_feature",
    "output_batch",
    "output_feature",
)


@legalizes("STABLEHLO_CONVOLUTION")
def legalize_convolution(builder: TfliteLegalizer) -> Results:
    """A convolution with dimensions in any order."""
    require_plain(builder)
    builder.ignore("precision_config")
    count = rank_of(builder.input(0)) - 2
    spatial, kernel, places = (
        builder.axes_option(f"{name}_spatial_dimensions", count + 2)
        for name in ("input", "kernel", "output")
    )
    strides, before, dilations = (
        builder.counted(name, count, 1, least=1)
        for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    pads = builder.counted("padding", 2 * count)
    features = [builder.option(f"{name}_dimension") for name in _FEATURES]
    orders = [[*features[:2], *spatial], [*features[2:4], *kernel], [*features[4:], *places]]
    if any(sorted(order) != list(range(count + 2)) for order in orders):
        builder.refuse(f"dimensions in the orders {orders}", f"each of {count + 2} once")
    if builder.option("batch_group_count") not in (0, 1) or count < 1:
        builder.refuse("groups of images, or no spatial dimension", "neither")
    x, w = (builder.transpose(builder.input(k), orders[k]) for k in (0, 1))
    turned = [
        2 + k for k, is_turned in enumerate(builder.option("window_reversal") or []) if is_turned
    ]
    w = builder.flip(w, turned)
    x = dilated(builder, x, [1, 1, *before], builder.scalar(0, x))
    x = padded(builder, x, [0, 0, *pads[::2]], [0, 0, *pads[1::2]])
    wide = builder.element()
    op = ConvOp(
        x,
        w,
        strides=strides,
        dilations=dilations,
        pads_begin=[0] * count,
        pads_end=[0] * count,
        groups=builder.option("feature_group_count") or 1,
        accumulator=None if is_float(wide) or wide == element_type(x) else wide,
    )
    result = builder.add(op)
    return [builder.transpose(result, sorted(range(count + 2), key=lambda k: orders[2][k]))]
