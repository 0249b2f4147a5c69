"""
Operators of StableHLO: arithmetic and movement, as its specification has them.

Those for which TensorFlow Lite has a kernel compute what that does. What an operator calls for each
element is the option `body`, the operator that the called subgraph consists of.

Source: https://github.com/openxla/stablehlo/blob/main/docs/spec.md
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lowerdeck.dialects.core.elementwise import DivOp, PowOp, RemOp, ShlOp
from lowerdeck.dialects.core.tensor import GatherElementsOp, TopKOp
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    i1,
    i64,
    is_float,
    rank_of,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.movement import dilated, fitting, padded_first, updated
from lowerdeck.passes.legalize.common.special import cbrt
from lowerdeck.passes.legalize.table import pairs
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat, index_vector
from lowerdeck.passes.legalize.tf1.applied import applied
from lowerdeck.passes.legalize.tflite.elementwise import picked
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes

_FUNCTIONS = pairs("""
    STABLEHLO_ABS=Abs STABLEHLO_ADD=AddV2 STABLEHLO_COSINE=Cos STABLEHLO_EXPONENTIAL=Exp
    STABLEHLO_FLOOR=Floor STABLEHLO_LOG=Log STABLEHLO_LOGISTIC=Sigmoid STABLEHLO_MAXIMUM=Maximum
    STABLEHLO_MINIMUM=Minimum STABLEHLO_MULTIPLY=Mul STABLEHLO_NEGATE=Neg STABLEHLO_RSQRT=Rsqrt
    STABLEHLO_SUBTRACT=Sub STABLEHLO_TANH=Tanh
""")


def require_plain(builder: TfliteLegalizer) -> None:
    """Refuse integers that stand for real numbers, with which this computes nothing."""
    if any(builder.is_quantized(k) for k in range(len(builder.inputs))):
        builder.refuse("quantized integers", "floats or plain integers")


def require_one_scale(builder: TfliteLegalizer) -> None:
    """Refuse inputs of another scale than the result's."""
    builder.require_equal_scales(*range(len(builder.inputs)))


@legalizes(*_FUNCTIONS)
def legalize_arithmetic(builder: TfliteLegalizer) -> Results:
    """Functions that TensorFlow has, too; of truth values a sum is `or`, a product `and`."""
    require_plain(builder)
    operands = [builder.input(k) for k in range(len(builder.inputs))]
    if element_type(builder.input(0)) == i1:
        is_or = builder.op_type in ("STABLEHLO_ADD", "STABLEHLO_MAXIMUM")
        x, y = builder.value(0), builder.value(1)
        return [(x | y if is_or else x & y).value]
    if builder.op_type.endswith("IMUM") and is_float(element_type(operands[0])):
        return [picked(builder, builder.value(1), builder.value(0))]
    return applied(builder, _FUNCTIONS[builder.op_type], *operands)


@legalizes("STABLEHLO_AND", "STABLEHLO_OR")
def legalize_bits(builder: TfliteLegalizer) -> Results:
    """Of truth values, or of all bits of integers."""
    x, y = builder.value(0), builder.value(1)
    return [(x & y if builder.op_type == "STABLEHLO_AND" else x | y).value]


@legalizes("STABLEHLO_DIVIDE", "STABLEHLO_REMAINDER", "STABLEHLO_POWER")
def legalize_quotient(builder: TfliteLegalizer) -> Results:
    """Quotients of integers toward zero, and the rests of those."""
    require_plain(builder)
    kinds = {"STABLEHLO_DIVIDE": DivOp, "STABLEHLO_REMAINDER": RemOp, "STABLEHLO_POWER": PowOp}
    x, y = builder.input(0), builder.input(1)
    if builder.op_type == "STABLEHLO_POWER" and not is_float(element_type(x)):
        return applied(builder, "Pow", x, y)
    return [builder.add(kinds[builder.op_type](x, y))]


@legalizes("STABLEHLO_SHIFT_LEFT")
def legalize_shift(builder: TfliteLegalizer) -> Results:
    """x * 2^y; zero where y is not a bit's number."""
    x, y = builder.value(0), builder.value(1)
    bits = bit_width(x.element)
    is_inside = y.ge(0) & y.lt(bits)
    shifted = builder.add(ShlOp(x.value, is_inside.where(y, 0).value))
    return [is_inside.where(TensorValue(builder, shifted), 0).value]


@legalizes("STABLEHLO_CBRT")
def legalize_cubic_root(builder: TfliteLegalizer) -> Results:
    """The real root, which has the sign of x."""
    builder.require_float()
    return [cbrt(builder.value(0)).value]


@legalizes("STABLEHLO_COMPARE")
def legalize_comparison(builder: TfliteLegalizer) -> Results:
    """Comparisons by value."""
    require_plain(builder)
    order = str(builder.option("compare_type") or "")
    if "TOTAL_ORDER" in order:
        builder.refuse("an order in which zeros and NaN have places", "one by value")
    direction = str(builder.option("comparison_direction") or "").rpartition("_")[2] or "EQ"
    return [builder.compare(direction.lower(), builder.input(0), builder.input(1))]


@legalizes("STABLEHLO_CONVERT")
def legalize_conversion(builder: TfliteLegalizer) -> Results:
    """Elements of another type."""
    require_plain(builder)
    return applied(builder, "Cast", builder.input(0), DstT=builder.element())


@legalizes("STABLEHLO_SELECT")
def legalize_selection(builder: TfliteLegalizer) -> Results:
    """Elements of one of two tensors."""
    builder.require_equal_scales(1, 2)
    return [builder.select(builder.input(0), builder.input(1), builder.input(2))]


@legalizes("STABLEHLO_CLAMP")
def legalize_limits(builder: TfliteLegalizer) -> Results:
    """The second input between the first and the third one."""
    require_one_scale(builder)
    low, x, high = (builder.value(k) for k in range(3))
    return [x.maximum(low).minimum(high).value]


# Shapes


@legalizes("STABLEHLO_RESHAPE")
def legalize_reshape(builder: TfliteLegalizer) -> Results:
    """The shape of the result is the one that the file states."""
    require_one_scale(builder)
    return [builder.reshape(builder.input(0), builder.numbers("shape"))]


@legalizes("STABLEHLO_TRANSPOSE")
def legalize_transpose(builder: TfliteLegalizer) -> Results:
    """Dimension k of the result is dimension `permutation[k]`."""
    require_one_scale(builder)
    return [builder.transpose(builder.input(0), builder.numbers("permutation"))]


@legalizes("STABLEHLO_BROADCAST_IN_DIM")
def legalize_broadcast(builder: TfliteLegalizer) -> Results:
    """Dimension k of the input is dimension `broadcast_dimensions[k]` of the result."""
    require_one_scale(builder)
    x, shape = builder.input(0), builder.numbers("shape")
    places = builder.axes_option("broadcast_dimensions", len(shape))
    if len(places) != rank_of(x):
        builder.refuse(f"broadcast_dimensions {places} of {rank_of(x)} dimensions", "one of each")
    order = sorted(range(len(places)), key=lambda k: places[k])
    y = builder.transpose(x, order)
    dims = [Expr.const(1)] * len(shape)
    for k, dim in zip(order, dims_of(y), strict=True):
        dims[places[k]] = dim
    return [builder.broadcast(builder.reshape(y, dims), shape)]


@legalizes("STABLEHLO_CONCATENATE")
def legalize_concatenation(builder: TfliteLegalizer) -> Results:
    """Inputs along a dimension."""
    require_one_scale(builder)
    parts = [builder.value(k) for k in range(len(builder.inputs))]
    axis = builder.axis(builder.option("dimension"), rank_of(builder.input(0)))
    return [concat(parts, axis).value]


@legalizes("STABLEHLO_SLICE")
def legalize_slice(builder: TfliteLegalizer) -> Results:
    """From `start_indices` to `limit_indices`, in steps."""
    require_one_scale(builder)
    x = builder.input(0)
    rank = rank_of(x)
    starts, limits = (builder.counted(name, rank) for name in ("start_indices", "limit_indices"))
    strides = builder.counted("strides", rank, 1, least=1)
    sizes = [-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True)]
    return [builder.slice(x, starts, sizes, strides)]


def _starts(
    builder: TfliteLegalizer, first: int, dims: Sequence[Expr], sizes: Sequence[Expr]
) -> list[TensorValue]:
    """Where a part begins: scalars from an input on, moved to where all of it fits."""
    starts = [builder.value(first + k).reshape([]).cast(i64) for k in range(len(dims))]
    return fitting(builder, starts, dims, sizes)


@legalizes("STABLEHLO_DYNAMIC_SLICE")
def legalize_dynamic_slice(builder: TfliteLegalizer) -> Results:
    """A part of given sizes that begins where the inputs say."""
    builder.require_equal_scales(0)
    x = builder.value(0)
    sizes = builder.counted("slice_sizes", len(x.dims))
    starts = _starts(builder, 1, x.dims, [Expr.const(size) for size in sizes])
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        places = TensorValue.iota(builder, size) + start
        axis_ = builder.tensor(np.array(axis, np.int32))
        x = TensorValue(builder, applied(builder, "GatherV2", x.value, places.value, axis_)[0])
    return [x.value]


@legalizes("STABLEHLO_DYNAMIC_UPDATE_SLICE")
def legalize_dynamic_update(builder: TfliteLegalizer) -> Results:
    """The second input in place of a part of the first one."""
    builder.require_equal_scales(0, 1)
    x, update = builder.value(0), builder.value(1)
    if len(x.dims) != len(update.dims):
        builder.refuse(f"an update of {len(update.dims)} dimensions", f"{len(x.dims)}")
    return [updated(builder, x, update, _starts(builder, 2, x.dims, update.dims))]


@legalizes("STABLEHLO_IOTA")
def legalize_iota(builder: TfliteLegalizer) -> Results:
    """The index along a dimension."""
    shape = builder.numbers("shape")
    axis = builder.axis(builder.option("iota_dimension"), len(shape))
    places = index_vector(builder, shape[axis], len(shape), axis)
    return [places.cast(builder.element()).broadcast(shape).value]


@legalizes("DILATE")
def legalize_dilate(builder: TfliteLegalizer) -> Results:
    """Elements as far apart as the second input says, with the third one between them."""
    builder.require_equal_scales(0, 2)
    steps = builder.require_ints(builder.input(1), "dilations")
    if len(steps) != rank_of(builder.input(0)) or not all(step >= 1 for step in steps):
        builder.refuse(f"dilations {steps}", f"{rank_of(builder.input(0))} positive ones")
    value = builder.reshape(builder.input(2), [])
    return [dilated(builder, builder.input(0), steps, value)]


@legalizes("STABLEHLO_PAD")
def legalize_pad(builder: TfliteLegalizer) -> Results:
    """A value between elements and around them; negative amounts take elements away."""
    require_one_scale(builder)
    rank = rank_of(builder.input(0))
    low, high = (builder.counted(f"edge_padding_{side}", rank) for side in ("low", "high"))
    between = builder.counted("interior_padding", rank, least=0)
    value = builder.reshape(builder.input(1), [])
    x = dilated(builder, builder.input(0), [amount + 1 for amount in between], value)
    return [padded_first(builder, x, low, high, value)]


@legalizes("STABLEHLO_SORT")
def legalize_sort(builder: TfliteLegalizer) -> Results:
    """All inputs in the order of the first one; equal elements stay in theirs."""
    builder.ignore("is_stable")
    body = str(builder.option("body") or "")
    largest = {"LT": False, "GT": True}.get(body)
    if largest is None:
        builder.refuse(f"a comparison '{body}'", "'less' or 'greater' of the first input")
    x = builder.value(0)
    axis = builder.axis(builder.option("dimension"), len(x.dims))
    values, places = builder.insert(TopKOp(x.value, x.dims[axis], axis, largest))
    others = [builder.input(k) for k in range(1, len(builder.inputs))]
    return [values, *(builder.add(GatherElementsOp(y, places, axis)) for y in others)]
