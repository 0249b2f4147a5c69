"""
Arithmetic on levels of integer types, each with the range of numbers that its levels stand for.

The formulas are those of TensorFlow's kernels, in the precision that these compute in, so that the
same levels come out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.types import (
    bit_width,
    f32,
    f64,
    i32,
    i64,
    is_unsigned,
    numpy_dtype,
    rank_of,
    ui8,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.pooling import pool
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.layout import axis_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.quantization import away
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.shape import legalize_reshape
from lowerdeck.passes.legalize.tf1.windows import (
    Layout,
    require_image,
    spatial_dims,
    window_of,
)


@record
class _Range:
    """The numbers that the lowest and the highest level of an element type stand for, f32."""

    low: TensorValue
    high: TensorValue
    element: Attribute

    @staticmethod
    def of(builder: Tf1Legalizer, name: str, element: Attribute) -> _Range:
        """The range `min_<name>` to `max_<name>`, or `<name>_min` to `<name>_max`."""
        names = {argument.name for argument in builder.op.signature.inputs}
        forms = ("min_{}", "max_{}") if f"min_{name}" in names else ("{}_min", "{}_max")
        low, high = (builder.reshape(builder.operand(form.format(name)), []) for form in forms)
        return _Range(TensorValue.of(builder, low), TensorValue.of(builder, high), element)

    @property
    def results(self) -> list[SSAValue]:
        """The range as results of a node."""
        return [self.low.value, self.high.value]

    @property
    def lowest(self) -> int:
        """The lowest level."""
        return int(np.iinfo(numpy_dtype(self.element)).min)

    @property
    def highest(self) -> int:
        """The highest level."""
        return int(np.iinfo(numpy_dtype(self.element)).max)

    @property
    def levels(self) -> int:
        """The number of steps between the lowest and the highest level."""
        return (1 << bit_width(self.element)) - 1

    @property
    def step(self) -> TensorValue:
        """What one level is worth, f32."""
        return (self.high - self.low) / float(self.levels)

    def zero(self) -> TensorValue:
        """The level that stands for zero, i32."""
        return self.nearest(TensorValue.number(self.low.builder, 0, f32)).cast(i32)

    def nearest(self, x: TensorValue) -> TensorValue:
        """The whole f64 number nearest to the level of `x`, in range or not."""
        spread = (self.high - self.low).cast(f64)
        has_range = spread.gt(0)
        scale = float(self.levels) / has_range.where(spread, 1)
        level = away(x.cast(f64) * scale) - away(self.low.cast(f64) * scale) + float(self.lowest)
        return has_range.where(level, float(self.lowest))

    def level(self, x: TensorValue) -> TensorValue:
        """The level of `x`."""
        return self.nearest(x).clip(self.lowest, self.highest).cast(self.element)

    def number(self, level: TensorValue) -> TensorValue:
        """What a level stands for, f32: steps from a low end that is a whole number of steps."""
        spread = self.high - self.low
        has_range = spread.gt(0)
        step = spread.cast(f64) / float(self.levels)
        short = has_range.where(step.cast(f32), 1)
        start = (away(self.low / short) * short).cast(f64)
        value = start + (level.cast(f64) - float(self.lowest)) * step
        return has_range.where(value.cast(f32), self.low)

    def product(self, other: _Range, element: Attribute) -> _Range:
        """The range of products of levels, whose zeros are subtracted."""
        step = self.step * other.step
        limits = np.iinfo(numpy_dtype(element))
        return _Range(step * float(limits.min), step * float(limits.max), element)


def _centered(x: SSAValue, range_: _Range) -> SSAValue:
    """Levels as i32 numbers of which zero stands for zero."""
    return (TensorValue(range_.low.builder, x).cast(i32) - range_.zero()).value


def _require_i32(builder: Tf1Legalizer) -> None:
    if builder.result_element() != i32:
        builder.refuse(f"sums of type {builder.result_element()}", "qint32")


# Products


@legalizes("QuantizedMatMul")
def legalize_matmul(builder: Tf1Legalizer) -> Results:
    """The product of two matrices, as sums of i32."""
    _require_i32(builder)
    builder.attrs.ignore("Tactivation")
    values: list[SSAValue] = []
    ranges: list[_Range] = []
    for name in ("a", "b"):
        x = number(builder, name)
        ranges.append(_Range.of(builder, name, TensorValue(builder, x).element))
        is_turned = builder.attrs.flag(f"transpose_{name}")
        values.append(builder.transpose(x, [1, 0]) if is_turned else x)
    zeros = [range_.zero().value for range_ in ranges]
    result = builder.add(MatmulOp(values[0], values[1], zeros, accumulator=i32))
    return [result, *ranges[0].product(ranges[1], i32).results]


@legalizes("QuantizedConv2D")
def legalize_conv(builder: Tf1Legalizer) -> Results:
    """A convolution, as sums of i32; padding stands for zero."""
    _require_i32(builder)
    layout = Layout(builder, False)
    x, weights = number(builder, "input"), number(builder, "filter")
    ranges = [
        _Range.of(builder, name, TensorValue(builder, value).element)
        for name, value in (("input", x), ("filter", weights))
    ]
    x = layout.to_first(require_image(builder, x, 4))
    weights = builder.transpose(weights, [3, 2, 0, 1])
    strides, dilations = (layout.spatial(builder.attrs.ints(k)) for k in ("strides", "dilations"))
    dims = spatial_dims(x)
    window = window_of(builder, layout, dims, spatial_dims(weights), strides, dilations)
    conv = ConvOp(
        x,
        weights,
        zero_points=[range_.zero().value for range_ in ranges],
        strides=window.strides,
        dilations=window.dilations,
        pads_begin=window.begin,
        pads_end=window.end,
        groups=1,
        accumulator=i32,
    )
    result = layout.from_first(builder.add(conv))
    return [result, *ranges[0].product(ranges[1], i32).results]


@legalizes("QuantizedMul")
def legalize_mul(builder: Tf1Legalizer) -> Results:
    """The product of elements, as i32."""
    _require_i32(builder)
    x, y = number(builder, "x"), number(builder, "y")
    ranges = [
        _Range.of(builder, name, TensorValue(builder, value).element)
        for name, value in (("x", x), ("y", y))
    ]
    parts = [
        TensorValue(builder, _centered(value, range_))
        for value, range_ in zip((x, y), ranges, strict=True)
    ]
    return [(parts[0] * parts[1]).value, *ranges[0].product(ranges[1], i32).results]


# Sums

_ROOM = 1 << 17
"""How much larger the range of a sum is than those of its operands."""


@legalizes("QuantizedBiasAdd")
def legalize_bias(builder: Tf1Legalizer) -> Results:
    """A sum in i32, with a range that is wide and symmetric."""
    _require_i32(builder)
    names = ("input", "bias")
    values = [number(builder, name) for name in names]
    ranges = [
        _Range.of(builder, name, TensorValue(builder, value).element)
        for name, value in zip(names, values, strict=True)
    ]
    ends = [end for range_ in ranges for end in (range_.high, -range_.low)]
    widest = reduce(TensorValue.maximum, ends) * float(_ROOM)
    total = _Range(-widest, widest, i32)
    parts = [
        _at_scale(TensorValue(builder, value), range_, total)
        for value, range_ in zip(values, ranges, strict=True)
    ]
    return [(parts[0] + parts[1] - total.zero()).value, *total.results]


def _at_scale(x: TensorValue, source: _Range, target: _Range) -> TensorValue:
    """Levels of one range as those of another one, by way of f32."""
    short = source.step
    start = away(source.low / short) * short
    value = (start - short * float(source.lowest)) + x.cast(f32) * short
    scale = float(target.levels) / (target.high - target.low)
    level = away(value * scale) - (away(target.low * scale) - float(target.lowest))
    highest = 2147483520.0 if target.element == i32 else float(target.highest)  # an f32
    return level.clip(float(target.lowest), highest).cast(target.element)


# Ranges


def _used(builder: Tf1Legalizer, x: TensorValue, given: _Range) -> _Range:
    """The range that levels make use of, down to zero at least."""
    axes = range(len(x.dims))
    low, high = (given.number(x.reduce(kind, axes)) for kind in ("min", "max"))
    return _Range(low.minimum(0.0), high, ui8)


def _in_range(x: TensorValue, given: _Range, wanted: _Range) -> TensorValue:
    """i32 levels of a range as those (ui8) of another one, in fixed point."""
    spread = (wanted.high - wanted.low).cast(f64)
    has_range = spread.ne(0)
    divisor = has_range.where(spread, 1)
    reach = (given.high - given.low).cast(f64)
    scale = _fixed(has_range, reach * (255.0 * 65536) / divisor)
    middle = ((given.low + given.high).cast(f64) * 0.5).cast(f32)
    per_step = has_range.where((255.0 / divisor).cast(f32), 0)
    offset = (middle * per_step * 65536.0).cast(f64).cast(i64)
    start = _fixed(has_range, wanted.low.cast(f64) * 255.0 * 65536.0 / divisor)
    value = (x.cast(i64) * scale) // (1 << 32) + offset - start + (1 << 15)
    return (value // (1 << 16)).clip(0, 255).cast(ui8)


def _fixed(has_range: TensorValue, x: TensorValue) -> TensorValue:
    """f64 rounded toward zero, as i64."""
    return has_range.where(x, 0).cast(i64)


def _require_bytes(builder: Tf1Legalizer, x: TensorValue) -> None:
    if (x.element, builder.result_element()) != (i32, ui8):
        builder.refuse(f"levels of {x.element} as {builder.result_element()}", "qint32 as quint8")


@legalizes("QuantizeDownAndShrinkRange")
def legalize_shrink(builder: Tf1Legalizer) -> Results:
    """Sums as levels of the range that they make use of."""
    x = TensorValue(builder, number(builder, "input"))
    _require_bytes(builder, x)
    given = _Range.of(builder, "input", x.element)
    wanted = _used(builder, x, given)
    return [_in_range(x, given, wanted).value, *wanted.results]


@legalizes("RequantizationRange")
def legalize_used_range(builder: Tf1Legalizer) -> Results:
    """The range that levels make use of."""
    x = TensorValue(builder, number(builder, "input"))
    return _used(builder, x, _Range.of(builder, "input", x.element)).results


@legalizes("Requantize")
def legalize_requantize(builder: Tf1Legalizer) -> Results:
    """Sums as levels of a range that is given."""
    x = TensorValue(builder, number(builder, "input"))
    _require_bytes(builder, x)
    low, high = (
        TensorValue.of(builder, builder.reshape(builder.operand(f"requested_output_{end}"), []))
        for end in ("min", "max")
    )
    wanted = _Range(low, high, ui8)
    return [_in_range(x, _Range.of(builder, "input", x.element), wanted).value, *wanted.results]


# What works on levels as they are


@legalizes("QuantizedRelu", "QuantizedRelu6")
def legalize_relu(builder: Tf1Legalizer) -> Results:
    """Levels that are at least that of zero, and at most that of six."""
    x = TensorValue(builder, number(builder, "features"))
    range_ = _Range.of(builder, "features", x.element)
    y = x.maximum(range_.level(TensorValue.number(builder, 0, f32)))
    if builder.op_type == "QuantizedRelu6":
        y = y.minimum(range_.level(TensorValue.number(builder, 6, f32)))
    return [y.value, *range_.results]


@legalizes("QuantizedMaxPool")
def legalize_max_pool(builder: Tf1Legalizer) -> Results:
    """The highest level of each window."""
    return _pooled(builder, lambda x, take: take("max", x))


@legalizes("QuantizedAvgPool")
def legalize_average_pool(builder: Tf1Legalizer) -> Results:
    """The mean level of each window, rounded toward zero."""
    margin = 1e-6

    def mean(x: SSAValue, take: Callable[[str, SSAValue], SSAValue]) -> SSAValue:
        # Quotients that are whole stay so, whichever way the mean is computed.
        y = TensorValue(builder, take("average", builder.cast(x, f64)))
        whole = y.lt(0).where((y - margin).ceil(), (y + margin).floor())
        return builder.cast(whole.value, x)

    return _pooled(builder, mean)


def _pooled(
    builder: Tf1Legalizer,
    combine: Callable[[SSAValue, Callable[[str, SSAValue], SSAValue]], SSAValue],
) -> Results:
    layout = Layout(builder, False)
    x = require_image(builder, number(builder, "input"), 4)
    range_ = _Range.of(builder, "input", TensorValue(builder, x).element)
    first = layout.to_first(x)
    kernel = [Expr.const(size) for size in layout.spatial(builder.attrs.ints("ksize"))]
    strides = layout.spatial(builder.attrs.ints("strides"))
    window = window_of(builder, layout, spatial_dims(first), kernel, strides, [1, 1])
    value = combine(first, lambda kind, given: pool(builder, kind, given, window))
    return [layout.from_first(value), *range_.results]


@legalizes("QuantizedReshape")
def legalize_quantized_reshape(builder: Tf1Legalizer) -> Results:
    """The levels in another shape."""
    ranges = [builder.operand(name) for name in ("input_min", "input_max")]
    return [*legalize_reshape(builder), *ranges]


@legalizes("QuantizedConcat")
def legalize_quantized_concat(builder: Tf1Legalizer) -> Results:
    """Levels of several ranges as those of the range that holds them all."""
    values = builder.operands("values")
    axis = axis_of(builder, "concat_dim", rank_of(values[0]))
    element = TensorValue(builder, values[0]).element
    ranges = [
        _Range(TensorValue.of(builder, low), TensorValue.of(builder, high), element)
        for low, high in zip(
            builder.operands("input_mins"), builder.operands("input_maxes"), strict=True
        )
    ]
    low = reduce(TensorValue.minimum, [range_.low for range_ in ranges]).minimum(0.0)
    high = reduce(TensorValue.maximum, [range_.high for range_ in ranges])
    if not is_unsigned(element):
        high = high.maximum(-low)
        low = -high
    whole = _Range(low, high, element)
    parts = [
        _moved(TensorValue(builder, value), range_, whole).value
        for value, range_ in zip(values, ranges, strict=True)
    ]
    return [concat(builder, parts, axis), *whole.results]


def _moved(x: TensorValue, source: _Range, target: _Range) -> TensorValue:
    """Levels of one range as those of another one; as they are if it is the same."""
    is_same = source.low.eq(target.low) & source.high.eq(target.high)
    return is_same.where(x, _at_scale(x, source, target))
