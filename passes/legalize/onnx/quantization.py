"""Quantized operators: exact integer arithmetic, rounding to even, saturation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, Signedness
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
from lowerdeck.dialects.core.quantize import MIDDLE, DequantizeOp, pairs_of
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    f32,
    i32,
    is_float,
    is_integer,
    is_unsigned,
    rank_of,
    static_shape,
    ui8,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.linear import matmul, zero_points
from lowerdeck.passes.legalize.common.quantization import of_bytes
from lowerdeck.passes.legalize.onnx.conversion import convert
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.windows import read_kernel, read_window
from lowerdeck.passes.legalize.tensor_value import TensorValue

_UI4 = IntegerType(4, Signedness.UNSIGNED)

# Granularity


def _spread(
    builder: OnnxLegalizer, parameter: SSAValue, dims: Sequence[Expr], axis: int, block: int
) -> SSAValue:
    """A scale or zero point shaped to broadcast to `dims`: per tensor, per axis, or in blocks."""
    if rank_of(parameter) == 0:
        return parameter
    if rank_of(parameter) == 1 and not block:
        if dims_of(parameter)[0] == 1:
            return builder.reshape(parameter, [])
        axis = builder.axis(axis, len(dims))
        _require_count(builder, parameter, dims[axis], f"one for each of axis {axis}")
        return builder.reshape(parameter, [*dims_of(parameter), *[1] * (len(dims) - axis - 1)])
    return _repeated(builder, parameter, dims, builder.axis(axis, len(dims)), block)


def _repeated(
    builder: OnnxLegalizer, parameter: SSAValue, dims: Sequence[Expr], axis: int, block: int
) -> SSAValue:
    """Every entry along `axis` repeated `block` times, the last block cut off at the end."""
    shape = dims_of(parameter)
    if len(shape) != len(dims) or block <= 0:
        builder.refuse(f"a scale of {len(shape)} dimensions", f"0, 1, or {len(dims)} with blocks")
    expected = [size.ceildiv(block) if k == axis else size for k, size in enumerate(dims)]
    if any(_differ(own, size) for own, size in zip(shape, expected, strict=True)):
        sizes, wanted = (", ".join(map(str, each)) for each in (shape, expected))
        builder.refuse(f"scales or zero points of shape [{sizes}]", f"[{wanted}], one a block")
    head, tail = shape[: axis + 1], shape[axis + 1 :]
    entries = builder.reshape(parameter, [*head, 1, *tail])
    repeated = builder.broadcast(entries, [*head, block, *tail])
    joined = builder.reshape(repeated, [*head[:-1], head[-1] * block, *tail])
    return builder.slice_axis(joined, axis, 0, dims[axis])


def _require_count(builder: OnnxLegalizer, parameter: SSAValue, count: Expr, which: str) -> None:
    """Refuse a vector of neither one nor `count` entries, which might be broadcast, too."""
    size = dims_of(parameter)[0]
    if size != 1 and _differ(size, count):
        expected = "1" if count == 1 else f"1 or {count}, {which}"
        builder.refuse(f"{size} scales or zero points", expected)


def _differ(size: Expr, other: Expr) -> bool:
    """True for sizes that are known not to be the same."""
    return None not in (size.value, other.value) and size != other


def _check_scales(builder: OnnxLegalizer, *positions: int, any_sign: bool = False) -> None:
    """Refuse constant scales that are no positive numbers; with `any_sign`, no finite ones."""
    for position in positions:
        scale = builder.constant(builder.operand(position))
        if scale is None:
            continue
        numbers = scale.astype(np.float64)
        is_right = np.isfinite(numbers) & (any_sign | (numbers > 0))
        if not is_right.all():
            expected = "finite numbers" if any_sign else "finite numbers above 0"
            builder.refuse(f"a scale of {numbers[~is_right][0]:g}", expected)


def _parameters(
    op: OnnxOp, builder: OnnxLegalizer, dims: Sequence[Expr]
) -> tuple[SSAValue, SSAValue | None]:
    """The scale, in f32 or wider, and the zero point of (De)QuantizeLinear."""
    attributes = op.schema.attributes
    axis = builder.attrs.int("axis") if "axis" in attributes else 0
    block = builder.attrs.int("block_size") if "block_size" in attributes else 0
    scale = _spread(builder, builder.operand(1), dims, axis, block)
    zero = builder.input(2)
    return scale, None if zero is None else _spread(builder, zero, dims, axis, block)


# Between numbers and quantized numbers


@legalizes("QuantizeLinear")
def legalize_quantize(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """saturate(round(x / scale) + zero_point), divided in the precision of the scale."""
    x = builder.operand(0)
    _check_scales(builder, 1)
    scale, zero = _parameters(op, builder, dims_of(x))
    precision = f32 if not is_float(element_type(scale)) else element_type(scale)
    attributes = op.schema.attributes
    if "precision" in attributes and (number := builder.attrs.int("precision")):
        precision = builder.element(number)
    to = ui8 if zero is None else element_type(zero)
    if "output_dtype" in attributes and (number := builder.attrs.int("output_dtype")):
        to = builder.element(number)
    ratio = builder.add(DivOp(builder.cast(x, precision), convert(builder, scale, precision)))
    ratio = builder.cast(ratio, f32)
    if is_integer(to):
        builder.attrs.ignore("saturate")
        return [_quantized(builder, ratio, zero, to)]
    saturate = "saturate" not in attributes or builder.attrs.flag("saturate")
    if zero is not None:
        ratio = builder.add(AddOp(ratio, convert(builder, zero, f32)))
    return [convert(builder, ratio, to, saturate=saturate)]


@legalizes("DynamicQuantizeLinear")
def legalize_dynamic_quantize(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    To the integers 0 to 255 by the range of the elements, which is made to hold 0.

    The scale of zeros alone is 1, as in ONNX Runtime; by the formula it is 0, and x / 0 no number.
    """
    x = TensorValue.of(builder, builder.operand("x"))
    axes = range(len(x.dims))
    low = x.reduce("min", axes).minimum(0)
    high = x.reduce("max", axes).maximum(0)
    one = TensorValue.number(builder, 1, f32)
    scale = high.eq(low).where(one, (high - low) / 255)
    zero = (0 - low / scale).clip(0, 255).round().cast(ui8)
    y = _quantized(builder, (x / scale).value, zero.value, ui8)
    return [y, scale.value, zero.value]


def _quantized(
    builder: OnnxLegalizer, ratio: SSAValue, zero: SSAValue | None, to: Attribute
) -> SSAValue:
    """saturate(round(ratio) + zero_point) for a `ratio` in f32, which holds all 16-bit integers."""
    value = builder.add(RoundOp(ratio))
    if zero is not None:
        value = builder.add(AddOp(value, convert(builder, zero, f32)))
    low, high = _limits(builder, to)
    value = builder.add(MinOp(value, builder.scalar(high, f32)))
    return builder.cast(builder.add(MaxOp(value, builder.scalar(low, f32))), to)


def _limits(builder: OnnxLegalizer, element: Attribute) -> tuple[int, int]:
    has_sign = not is_unsigned(element)
    if not isinstance(element, IntegerType) or (bits := element.bitwidth) > 16:
        builder.refuse(f"quantized numbers of type {element}", "at most 16 bits")
    if not has_sign:
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


@legalizes("DequantizeLinear")
def legalize_dequantize(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    (x - zero_point) * scale

    Scales of blocks have any sign: ONNX Runtime divides each block of symmetric weights by the
    negative of its largest element, and has 0 for a block of zeros.
    """
    x = builder.operand(0)
    has_blocks = "block_size" in op.schema.attributes and builder.attrs.int("block_size") > 0
    _check_scales(builder, 1, any_sign=has_blocks)
    if (halves := _halves(op, builder)) is not None:
        return [halves]
    scale, zero = _parameters(op, builder, dims_of(x))
    to = element_type(scale) if is_float(element_type(scale)) else f32
    if "output_dtype" in op.schema.attributes and (number := builder.attrs.int("output_dtype")):
        to = builder.element(number)
    is_whole = is_integer(element_type(x))
    value = of_bytes(builder, x, f32).value if is_whole else convert(builder, x, f32)
    if zero is not None:
        value = builder.add(SubOp(value, convert(builder, zero, f32)))
    return [builder.cast(builder.add(MulOp(value, convert(builder, scale, f32))), to)]


def _halves(op: OnnxOp, builder: OnnxLegalizer) -> SSAValue | None:
    """
    A constant matrix of four bits a number, which stays small; None for what is no such. What has a
    scale for each entry of one axis has blocks of all entries of the other one.
    """
    x, scale, zero = builder.operand(0), builder.operand(1), builder.input(2)
    element = element_type(x)
    is_matrix = element in (IntegerType(4), _UI4) and rank_of(x) == 2
    signed = 0 if element == _UI4 else MIDDLE
    codes = builder.computed(x) if is_matrix else None
    zeros = None if zero is None or codes is None else builder.computed(zero)
    shape, rank = static_shape(scale), rank_of(scale)
    if codes is None or shape is None or (zero is not None and zeros is None):
        return None
    attributes = op.schema.attributes
    block = builder.attrs.int("block_size") if "block_size" in attributes else 0
    to = builder.attrs.int("output_dtype") if "output_dtype" in attributes else 0
    is_f32 = element_type(scale) == f32 and to in (0, onnx.TensorProto.FLOAT)
    axis = builder.axis(builder.attrs.int("axis"), 2)
    if not is_f32 or rank == 0 or prod(shape) == 0 or codes.size == 0:
        return None
    if rank == 1 and not block and shape[0] == codes.shape[axis]:
        parameters = [1, 1]
        parameters[axis], axis = shape[0], 1 - axis
        block = codes.shape[axis]
    else:
        parameters = list(codes.shape)
        parameters[axis] = -(-codes.shape[axis] // max(block, 1))
        if rank != 2 or block <= 0 or list(shape) != parameters:
            return None
    if zeros is not None and zeros.size != prod(parameters):
        return None
    pairs = builder.tensor(pairs_of(_without_sign(codes, signed), axis))
    scale = builder.reshape(scale, parameters)
    zero_value = None
    if zeros is not None or not signed:
        whole = np.zeros(parameters, np.uint8) if zeros is None else zeros.reshape(parameters)
        numbers = _without_sign(whole, signed)
        zero_value = None if (numbers == MIDDLE).all() else builder.tensor(numbers)
    size = codes.shape[axis]
    return builder.insert(
        DequantizeOp(pairs, scale, zero_value, axis=axis, size=size, block=block)
    )[0]


def _without_sign(numbers: NDArray[Any], offset: int) -> NDArray[Any]:
    return (numbers.astype(np.int8) + np.int8(offset)).astype(np.uint8)


# Integer arithmetic


def _levels(
    builder: OnnxLegalizer, *pairs: tuple[SSAValue, SSAValue | None]
) -> tuple[list[SSAValue], list[SSAValue]]:
    """
    The factors of a product in i32, and their zero points.

    Differences of the two are exact in i32, in which the product takes them.
    """
    values = [builder.cast(value, _level_type(element_type(value))) for value, _ in pairs]
    zeros = [zero for _, zero in pairs]
    if any(zero is not None and not is_integer(element_type(zero)) for zero in zeros):
        zeros = [None if zero is None else builder.cast(zero, i32) for zero in zeros]
    return values, zero_points(builder, values, zeros)


def _level_type(element: Attribute) -> Attribute:
    return element if is_integer(element) and 4 < bit_width(element) < 32 else i32


def _over_rows(
    builder: OnnxLegalizer, parameter: SSAValue | None, left: SSAValue
) -> SSAValue | None:
    """A parameter of a left matrix: a vector has one entry a row."""
    if parameter is None or rank_of(parameter) != 1:
        return parameter
    size = dims_of(parameter)[0]
    if rank_of(left) > 1:
        _require_count(builder, parameter, dims_of(left)[-2], "one a row")
    return builder.reshape(parameter, [] if size == 1 else [size, 1])


def _require_columns(builder: OnnxLegalizer, parameter: SSAValue | None, right: SSAValue) -> None:
    """Refuse a vector that has not one entry a column of a right matrix."""
    if parameter is not None and rank_of(parameter) == 1 and rank_of(right) > 1:
        _require_count(builder, parameter, dims_of(right)[-1], "one a column")


def _over_channels(
    builder: OnnxLegalizer, parameter: SSAValue | None, weight: SSAValue, trailing: int
) -> SSAValue | None:
    """A parameter with one entry an output channel, followed by `trailing` dimensions."""
    if parameter is None or rank_of(parameter) != 1:
        return parameter
    size = dims_of(parameter)[0]
    _require_count(builder, parameter, dims_of(weight)[0], "one for each output channel")
    return builder.reshape(parameter, [] if size == 1 else [size, *[1] * trailing])


def _convolution(
    builder: OnnxLegalizer,
    input: tuple[SSAValue, SSAValue | None],
    weight: tuple[SSAValue, SSAValue | None],
    bias: SSAValue | None = None,
) -> SSAValue:
    """The convolution in i32 that the node's attributes describe, of integers with zero points."""
    (x, w), zeros = _levels(builder, input, weight)
    window = read_window(builder, dims_of(x)[2:], read_kernel(builder, dims_of(w)[2:]))
    conv = ConvOp(
        x,
        w,
        bias,
        zeros,
        strides=window.strides,
        dilations=window.dilations,
        pads_begin=window.begin,
        pads_end=window.end,
        groups=builder.attrs.int("group"),
        accumulator=i32,
    )
    return builder.add(conv)


def _product(
    builder: OnnxLegalizer,
    left: tuple[SSAValue, SSAValue | None],
    right: tuple[SSAValue, SSAValue | None],
) -> SSAValue:
    """A matrix product in i32 of integers with zero points; on the left, one a row."""
    _require_columns(builder, right[1], right[0])
    rows = _over_rows(builder, left[1], left[0])
    (a, b), zeros = _levels(builder, (left[0], rows), right)
    return matmul(builder, a, b, zeros, accumulator=i32)


@legalizes("MatMulInteger")
def legalize_matmul_integer(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """(A - a_zero_point) * (B - b_zero_point) in i32"""
    a, b = builder.operand(0), builder.operand(1)
    return [_product(builder, (a, builder.input(2)), (b, builder.input(3)))]


@legalizes("ConvInteger")
def legalize_conv_integer(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The convolution of x - x_zero_point with w - w_zero_point in i32; padding is zero_point."""
    x, w = builder.operand(0), builder.operand(1)
    x_zero, w_zero = builder.input(2), _over_channels(builder, builder.input(3), w, rank_of(w) - 1)
    x_zero = None if x_zero is None else builder.reshape(x_zero, [])
    return [_convolution(builder, (x, x_zero), (w, w_zero))]


def _requantized(
    builder: OnnxLegalizer, value: SSAValue, scales: Sequence[SSAValue], zero: SSAValue
) -> SSAValue:
    """saturate(round(value * (x_scale * w_scale / y_scale)) + zero_point), multiplied in f32."""
    x_scale, w_scale, y_scale = (builder.cast(scale, f32) for scale in scales)
    factor = builder.add(DivOp(builder.add(MulOp(x_scale, w_scale)), y_scale))
    ratio = builder.add(MulOp(builder.cast(value, f32), factor))
    return _quantized(builder, ratio, zero, element_type(zero))


def _required(builder: OnnxLegalizer, value: SSAValue | None) -> SSAValue:
    return builder.refuse("a missing parameter") if value is None else value


@legalizes("QLinearMatMul")
def legalize_qlinear_matmul(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The product of quantized matrices, quantized again."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (builder.operand(k) for k in range(8))
    _check_scales(builder, 1, 4, 6)
    product = _product(builder, (a, a_zero), (b, b_zero))
    _require_columns(builder, b_scale, b)
    rows = [_required(builder, _over_rows(builder, scale, a)) for scale in (a_scale, y_scale)]
    y_zero = _required(builder, _over_rows(builder, y_zero, a))
    return [_requantized(builder, product, [rows[0], b_scale, rows[1]], y_zero)]


@legalizes("QLinearConv")
def legalize_qlinear_conv(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The convolution of quantized tensors with a bias in i32, quantized again."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (builder.operand(k) for k in range(8))
    _check_scales(builder, 1, 4, 6)
    per_filter = _over_channels(builder, w_zero, w, rank_of(w) - 1)
    result = _convolution(
        builder,
        (x, builder.reshape(x_zero, [])),
        (w, per_filter),
        builder.input(8),
    )
    w_scale = _required(builder, _over_channels(builder, w_scale, w, rank_of(w) - 2))
    scales = [builder.reshape(x_scale, []), w_scale, builder.reshape(y_scale, [])]
    return [_requantized(builder, result, scales, builder.reshape(y_zero, []))]
