"""Operators of StableHLO that combine many elements: reductions, windows, products."""

from __future__ import annotations

from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.types import element_type, i1, is_float, rank_of
from lowerdeck.passes.legalize.common.combined_windows import COMBINE, combined_windows, reduced
from lowerdeck.passes.legalize.common.linear import contracted
from lowerdeck.passes.legalize.common.movement import dilated, padded_first
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes
from lowerdeck.passes.legalize.tflite.stablehlo import require_plain

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


@legalizes("STABLEHLO_REDUCE")
def legalize_reduce(builder: TfliteLegalizer) -> Results:
    """All elements along dimensions, and a first one."""
    if len(builder.inputs) != 2:
        builder.refuse(f"{len(builder.inputs) // 2} tensors at once", "one")
    axes = builder.axes_option("dimensions", rank_of(builder.input(0)))
    kind = body_kind(builder)
    x, first = builder.value(0), builder.value(1).reshape([])
    return [COMBINE[kind](first, reduced(x, kind, sorted(axes))).value]


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
    x = padded_first(builder, x, pads[::2], pads[1::2], first)
    return [combined_windows(builder, x, first, kind, sizes, strides, dilations)]


@legalizes("REDUCE_WINDOW")
def legalize_windows(builder: TfliteLegalizer) -> Results:
    """The elements of each window; sizes, strides and dilations are inputs."""
    function = str(builder.option("reduce_function") or "")
    names = {"ADD": "sum", "MUL": "prod", "MINIMUM": "min", "MAXIMUM": "max"}
    name = names.get(function, function.lower())
    if name not in COMBINE:
        builder.refuse(f"the function '{function}'", ", ".join(COMBINE))
    kind = kind_of(builder, name)
    sizes, strides, dilations = (
        builder.require_ints(builder.input(k), what)
        for k, what in ((2, "sizes of windows"), (3, "strides"), (4, "dilations"))
    )
    first = builder.reshape(builder.input(1), [])
    return [combined_windows(builder, builder.input(0), first, kind, sizes, strides, dilations)]


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
    wide = builder.element()
    accumulator = None if is_float(wide) or wide == element_type(x) else wide
    pairs = ((batch_x, batch_y), (sum_x, sum_y))
    return [builder.cast(contracted(builder, x, y, *pairs, accumulator), wide)]


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
    x = padded_first(builder, x, [0, 0, *pads[::2]], [0, 0, *pads[1::2]])
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
