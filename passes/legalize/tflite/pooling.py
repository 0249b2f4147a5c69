"""Pools, of floats and of integers."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import DivOp, SqrtOp
from lowerdeck.dialects.core.types import dims_of, element_type, i32, is_float
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.pooling import pool
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.linear import to_channels_first, to_channels_last, window_of
from lowerdeck.passes.legalize.tflite.ranges import fused_limits
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes


def _window(builder: TfliteLegalizer, x: SSAValue) -> Window:
    kernel = [Expr.const(int(builder.option(f"filter_{k}"))) for k in ("height", "width")]
    return window_of(builder, dims_of(x)[2:], kernel, dilated=False)


@legalizes("MAX_POOL_2D")
def legalize_max_pool(builder: TfliteLegalizer) -> Results:
    """The largest element of each window; integers as they are stored."""
    builder.require_rank(builder.input(0), 4, "input")
    x = to_channels_first(builder, builder.input(0))
    y = to_channels_last(builder, pool(builder, "max", x, _window(builder, x)))
    return [_limited(builder, y)]


def _limited(builder: TfliteLegalizer, y: SSAValue) -> SSAValue:
    """The activation, within which the integers stay."""
    if is_float(element_type(y)):
        return builder.activated(y)
    if builder.activation() == "NONE":
        return y
    low, high = fused_limits(builder)
    return TensorValue(builder, y).clip(low, high).value


@legalizes("AVERAGE_POOL_2D")
def legalize_average_pool(builder: TfliteLegalizer) -> Results:
    """
    The mean of what each window has inside of the image; of integers as they are stored, halves
    away from zero.
    """
    builder.require_rank(builder.input(0), 4, "input")
    x = to_channels_first(builder, builder.input(0))
    window = _window(builder, x)
    if is_float(element_type(x)):
        return [builder.activated(to_channels_last(builder, pool(builder, "average", x, window)))]
    total = TensorValue(builder, pool(builder, "sum", builder.cast(x, i32), window))
    ones = builder.broadcast(builder.scalar(1, i32), [1, 1, *dims_of(x)[2:]])
    count = TensorValue.of(builder, pool(builder, "sum", ones, window))
    half = TensorValue(builder, builder.add(DivOp(count.value, builder.scalar(2, i32))))
    moved = total.gt(0).where(total + half, total - half)
    mean = TensorValue(builder, builder.add(DivOp(moved.value, count.value)))
    low, high = fused_limits(builder)
    limited = mean.clip(low, high).cast(element_type(x))
    return [to_channels_last(builder, limited.value)]


@legalizes("L2_POOL_2D")
def legalize_norm_pool(builder: TfliteLegalizer) -> Results:
    """The square root of the mean square."""
    builder.require_rank(builder.input(0), 4, "input")
    builder.require_float()
    x = TensorValue(builder, to_channels_first(builder, builder.input(0)))
    mean = pool(builder, "average", (x * x).value, _window(builder, x.value))
    y = to_channels_last(builder, builder.add(SqrtOp(mean)))
    return [builder.activated(y)]
