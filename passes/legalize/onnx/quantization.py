"""Quantized operators: exact integer arithmetic, rounding to even, saturation."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.elementwise import (
    AddOp,
    DivOp,
    MaxOp,
    MinOp,
    MulOp,
    RoundOp,
    SubOp,
)
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    i32,
    is_float,
    is_integer,
    is_unsigned,
    rank_of,
    ui8,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.linear import matmul
from lowerdeck.passes.legalize.onnx.conversion import convert
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.windows import read_kernel, read_window
from lowerdeck.passes.legalize.quantity import Quantity

# Granularity


def _spread(
    lower: OnnxLegalizer, parameter: SSAValue, dims: Sequence[Expr], axis: int, block: int
) -> SSAValue:
    """A scale or zero point shaped to broadcast to `dims`: per tensor, per axis, or in blocks."""
    if rank_of(parameter) == 0:
        return parameter
    if rank_of(parameter) == 1 and not block:
        if dims_of(parameter)[0] == 1:
            return lower.reshape(parameter, [])
        trailing = len(dims) - lower.axis(axis, len(dims)) - 1
        return lower.reshape(parameter, [*dims_of(parameter), *[1] * trailing])
    return _repeated(lower, parameter, dims, lower.axis(axis, len(dims)), block)


def _repeated(
    lower: OnnxLegalizer, parameter: SSAValue, dims: Sequence[Expr], axis: int, block: int
) -> SSAValue:
    """Every entry along `axis` repeated `block` times, the last block cut off at the end."""
    shape = dims_of(parameter)
    if len(shape) != len(dims) or block <= 0:
        lower.refuse(f"a scale of {len(shape)} dimensions", f"0, 1, or {len(dims)} with blocks")
    head, tail = shape[: axis + 1], shape[axis + 1 :]
    entries = lower.reshape(parameter, [*head, 1, *tail])
    repeated = lower.broadcast(entries, [*head, block, *tail])
    joined = lower.reshape(repeated, [*head[:-1], head[-1] * block, *tail])
    return lower.slice_axis(joined, axis, 0, dims[axis])


def _parameters(
    op: OnnxOp, lower: OnnxLegalizer, dims: Sequence[Expr]
) -> tuple[SSAValue, SSAValue | None]:
    """The scale, in f32 or wider, and the zero point of (De)QuantizeLinear."""
    attributes = op.schema.attributes
    axis = lower.attrs.int("axis") if "axis" in attributes else 0
    block = lower.attrs.int("block_size") if "block_size" in attributes else 0
    scale = _spread(lower, lower.operand(1), dims, axis, block)
    zero = lower.input(2)
    return scale, None if zero is None else _spread(lower, zero, dims, axis, block)


# Between numbers and quantized numbers


@legalizes("QuantizeLinear")
def legalize_quantize(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """saturate(round(x / scale) + zero_point), divided in the precision of the scale."""
    x = lower.operand(0)
    scale, zero = _parameters(op, lower, dims_of(x))
    precision = f32 if not is_float(element_type(scale)) else element_type(scale)
    attributes = op.schema.attributes
    if "precision" in attributes and (number := lower.attrs.int("precision")):
        precision = lower.element(number)
    to = ui8 if zero is None else element_type(zero)
    if "output_dtype" in attributes and (number := lower.attrs.int("output_dtype")):
        to = lower.element(number)
    ratio = lower.add(DivOp(lower.cast(x, precision), convert(lower, scale, precision)))
    ratio = lower.cast(ratio, f32)
    if is_integer(to):
        lower.attrs.ignore("saturate")
        return [_quantized(lower, ratio, zero, to)]
    saturate = "saturate" not in attributes or lower.attrs.flag("saturate")
    if zero is not None:
        ratio = lower.add(AddOp(ratio, convert(lower, zero, f32)))
    return [convert(lower, ratio, to, saturate=saturate)]


@legalizes("DynamicQuantizeLinear")
def legalize_dynamic_quantize(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    To the integers 0 to 255 by the range of the elements, which is made to hold 0.

    The scale of zeros alone is 1, as in ONNX Runtime; by the formula it is 0, and x / 0 no number.
    """
    x = Quantity.of(lower, lower.operand("x"))
    axes = range(len(x.dims))
    low = x.reduce("min", axes).minimum(0)
    high = x.reduce("max", axes).maximum(0)
    one = Quantity.number(lower, 1, f32)
    scale = high.eq(low).where(one, (high - low) / 255)
    zero = (0 - low / scale).clip(0, 255).round().cast(ui8)
    y = _quantized(lower, (x / scale).value, zero.value, ui8)
    return [y, scale.value, zero.value]


def _quantized(
    lower: OnnxLegalizer, ratio: SSAValue, zero: SSAValue | None, to: Attribute
) -> SSAValue:
    """saturate(round(ratio) + zero_point) for a `ratio` in f32, which holds all 16-bit integers."""
    value = lower.add(RoundOp(ratio))
    if zero is not None:
        value = lower.add(AddOp(value, convert(lower, zero, f32)))
    low, high = _limits(lower, to)
    value = lower.add(MinOp(value, lower.scalar(high, f32)))
    return lower.cast(lower.add(MaxOp(value, lower.scalar(low, f32))), to)


def _limits(lower: OnnxLegalizer, element: Attribute) -> tuple[int, int]:
    has_sign = not is_unsigned(element)
    if not isinstance(element, IntegerType) or (bits := element.bitwidth) > 16:
        lower.refuse(f"quantized numbers of type {element}", "at most 16 bits")
    if not has_sign:
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


@legalizes("DequantizeLinear")
def legalize_dequantize(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """(x - zero_point) * scale"""
    x = lower.operand(0)
    scale, zero = _parameters(op, lower, dims_of(x))
    to = element_type(scale) if is_float(element_type(scale)) else f32
    if "output_dtype" in op.schema.attributes and (number := lower.attrs.int("output_dtype")):
        to = lower.element(number)
    value = convert(lower, x, f32)
    if zero is not None:
        value = lower.add(SubOp(value, convert(lower, zero, f32)))
    return [lower.cast(lower.add(MulOp(value, convert(lower, scale, f32))), to)]


# Integer arithmetic


def _centered(lower: OnnxLegalizer, value: SSAValue, zero: SSAValue | None) -> SSAValue:
    """x - zero_point in i32, where it is exact."""
    value = lower.cast(value, i32)
    return value if zero is None else lower.add(SubOp(value, lower.cast(zero, i32)))


def _over_rows(lower: OnnxLegalizer, parameter: SSAValue | None) -> SSAValue | None:
    """A parameter of a left matrix: a vector has one entry a row."""
    if parameter is None or rank_of(parameter) != 1:
        return parameter
    size = dims_of(parameter)[0]
    return lower.reshape(parameter, [] if size == 1 else [size, 1])


def _over_channels(
    lower: OnnxLegalizer, parameter: SSAValue | None, trailing: int
) -> SSAValue | None:
    """A parameter with one entry an output channel, followed by `trailing` dimensions."""
    if parameter is None or rank_of(parameter) != 1:
        return parameter
    size = dims_of(parameter)[0]
    return lower.reshape(parameter, [] if size == 1 else [size, *[1] * trailing])


def _convolution(
    lower: OnnxLegalizer, x: SSAValue, w: SSAValue, bias: SSAValue | None = None
) -> SSAValue:
    """The convolution that the node's attributes describe, of centered integers."""
    window = read_window(lower, dims_of(x)[2:], read_kernel(lower, dims_of(w)[2:]))
    conv = ConvOp(
        x,
        w,
        bias,
        strides=window.strides,
        dilations=window.dilations,
        pads_begin=window.begin,
        pads_end=window.end,
        groups=lower.attrs.int("group"),
    )
    return lower.add(conv)


@legalizes("MatMulInteger")
def legalize_matmul_integer(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """(A - a_zero_point) * (B - b_zero_point) in i32"""
    a = _centered(lower, lower.operand(0), _over_rows(lower, lower.input(2)))
    b = _centered(lower, lower.operand(1), lower.input(3))
    return [matmul(lower, a, b)]


@legalizes("ConvInteger")
def legalize_conv_integer(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The convolution of x - x_zero_point with w - w_zero_point in i32; padding is zero_point."""
    x, w = lower.operand(0), lower.operand(1)
    x_zero, w_zero = lower.input(2), _over_channels(lower, lower.input(3), rank_of(w) - 1)
    x_zero = None if x_zero is None else lower.reshape(x_zero, [])
    return [_convolution(lower, _centered(lower, x, x_zero), _centered(lower, w, w_zero))]


def _requantized(
    lower: OnnxLegalizer, value: SSAValue, scales: Sequence[SSAValue], zero: SSAValue
) -> SSAValue:
    """saturate(round(value * (x_scale * w_scale / y_scale)) + zero_point), multiplied in f32."""
    x_scale, w_scale, y_scale = (lower.cast(scale, f32) for scale in scales)
    factor = lower.add(DivOp(lower.add(MulOp(x_scale, w_scale)), y_scale))
    ratio = lower.add(MulOp(lower.cast(value, f32), factor))
    return _quantized(lower, ratio, zero, element_type(zero))


def _required(lower: OnnxLegalizer, value: SSAValue | None) -> SSAValue:
    return lower.refuse("a missing parameter") if value is None else value


@legalizes("QLinearMatMul")
def legalize_qlinear_matmul(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The product of quantized matrices, quantized again."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (lower.operand(k) for k in range(8))
    product = matmul(
        lower,
        _centered(lower, a, _over_rows(lower, a_zero)),
        _centered(lower, b, b_zero),
    )
    rows = [_required(lower, _over_rows(lower, scale)) for scale in (a_scale, y_scale)]
    y_zero = _required(lower, _over_rows(lower, y_zero))
    return [_requantized(lower, product, [rows[0], b_scale, rows[1]], y_zero)]


@legalizes("QLinearConv")
def legalize_qlinear_conv(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The convolution of quantized tensors with a bias in i32, quantized again."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (lower.operand(k) for k in range(8))
    per_filter = _over_channels(lower, w_zero, rank_of(w) - 1)
    result = _convolution(
        lower,
        _centered(lower, x, lower.reshape(x_zero, [])),
        _centered(lower, w, per_filter),
        lower.input(8),
    )
    w_scale = _required(lower, _over_channels(lower, w_scale, rank_of(w) - 2))
    scales = [lower.reshape(x_scale, []), w_scale, lower.reshape(y_scale, [])]
    return [_requantized(lower, result, scales, lower.reshape(y_zero, []))]
