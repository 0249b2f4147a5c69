"""
Integers of one scale in another: layers of bytes between DequantizeLinear and QuantizeLinear, all
else by integer arithmetic that gives the same integers. Numbers of four bits are such of ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.enums import Rounding
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.quantize import (
    MIDDLE,
    DequantizeOp,
    RequantizeOp,
    halves_of,
)
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    f32,
    f64,
    i32,
    i64,
    numpy_dtype,
    rank_of,
    ui32,
    ui64,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.tensors import TensorAttr
from lowerdeck.dialects.records import record
from lowerdeck.exporters.onnx.builder import GraphBuilder, converts
from lowerdeck.exporters.onnx.linear import window_attributes, zero_points_of_bytes
from lowerdeck.exporters.onnx.windows import padded_input

Array = NDArray[Any]

_RAISED = 1 << 62
"""What makes sums positive, so that their bits can be shifted as those of numbers without signs."""

_BEYOND = 1 << 20
"""Of numbers that are limited to 16 bits after a zero point of 16 bits was added."""


@converts(RequantizeOp)
def _requantize(graph: GraphBuilder, op: RequantizeOp) -> None:
    layer = _layer_of(op)
    if layer is not None and (result := _quantized_layer(graph, op, layer)) is not None:
        graph.set(op, result)
        return
    x, multiplier = graph.value(op.input), graph.value(op.multiplier)
    if op.rounding.data is Rounding.EVEN:
        nearest = _even_product(graph, x, multiplier)
    elif op.exponent is None:
        nearest = _real_product(graph, x, multiplier)
    else:
        rule = _doubly if op.rounding.data is Rounding.DOUBLE else _singly
        exponent = graph.cast(graph.value(op.exponent), i64)
        nearest = rule(graph, x, graph.cast(multiplier, i64), exponent)
    shifted = graph.node("Add", [nearest, graph.literal(op.zero.data)])
    limited = graph.node("Max", [shifted, graph.literal(op.low.data)])
    limited = graph.node("Min", [limited, graph.literal(op.high.data)])
    graph.set(op, graph.cast(limited, op.to))


@converts(DequantizeOp)
def _dequantize(graph: GraphBuilder, op: DequantizeOp) -> None:
    axis, block = op.axis.data, op.block.data
    scale = graph.value(op.scale)
    if element_type(op.scale) != f32:
        scale = graph.cast(scale, f32)
    codes, zero = constant_array(op.codes), None if op.zero is None else constant_array(op.zero)
    if codes is not None and (op.zero is None or zero is not None):
        numbers = halves_of(codes, axis, op.size.data)
        if zero is None:
            zero = np.full([dim.value or 0 for dim in dims_of(op.scale)], MIDDLE)
        if (known := constant_array(op.scale)) is not None:
            # Scales of ONNX are positive: then codes are counted from the other end.
            numbers, zero, known = _with_positive_scales(op, numbers, zero, known)
            scale = graph.shared.initializer(TensorAttr.of(known))
        inputs = [
            graph.shared.initializer(TensorAttr.of(array.astype(ml_dtypes.uint4)))
            for array in (numbers, zero)
        ]
        inputs.insert(1, scale)
        graph.set(op, graph.node("DequantizeLinear", inputs, axis=axis, block_size=block))
        return
    pairs = graph.cast(graph.value(op.codes), i32)
    sixteen = graph.literal(16, np.int32)
    parts = [graph.node(name, [pairs, sixteen]) for name in ("Mod", "Div")]
    dims = dims_of(op.codes)
    codes_ = graph.cast(_side_by_side(graph, parts, dims, op), f32)
    middle = graph.literal(MIDDLE, np.float32)
    if op.zero is not None:
        zeros = [graph.cast(graph.value(op.zero), f32)] * block
        middle = _side_by_side(graph, zeros, dims_of(op.scale), op)
    number = graph.node("Sub", [codes_, middle])
    scales = _side_by_side(graph, [scale] * block, dims_of(op.scale), op)
    graph.set(op, graph.node("Mul", [number, scales]))


def _with_positive_scales(
    op: DequantizeOp, codes: Array, zero: Array, scale: Array
) -> tuple[Array, Array, Array]:
    """(code - zero) * scale = ((15 - code) - (15 - zero)) * -scale"""
    scale = scale.astype(np.float32)
    is_negative = scale < 0
    axis, block, size = op.axis.data, op.block.data, op.size.data
    inside = (slice(None),) * axis + (slice(size),)
    of_codes = np.repeat(is_negative, block, axis)[inside]
    codes = np.where(of_codes, 15 - codes, codes)
    return codes, np.where(is_negative, 15 - zero, zero), np.abs(scale)


def _side_by_side(
    graph: GraphBuilder, parts: Sequence[SSAValue], dims: Sequence[Expr], op: DequantizeOp
) -> SSAValue:
    """The elements of parts in turns along the axis of numbers, as many as there are."""
    axis, dims = op.axis.data, list(dims)
    place = graph.literal([axis + 1])
    apart = [graph.node("Unsqueeze", [part, place]) for part in parts]
    joined = graph.node("Concat", apart, axis=axis + 1) if len(apart) > 1 else apart[0]
    dims[axis] = dims[axis] * len(parts)
    whole = graph.node("Reshape", [joined, graph.dims(dims)])
    ends = [graph.literal([number]) for number in (0, op.size.data, axis)]
    return graph.node("Slice", [whole, *ends])


@record
class _Layer:
    """A product of bytes with constant weights, what is added to it, and a factor a channel."""

    op: ConvOp | MatmulOp
    bias: Array | None
    scales: Array


def _layer_of(op: RequantizeOp) -> _Layer | None:
    """The layer that ends in bytes, of one factor or one a channel, which are positive."""
    if op.rounding.data is not Rounding.EVEN or bit_width(op.to) != 8:
        return None
    least, most = _limits(op.to)
    if not least <= op.zero.data <= most:
        return None
    total, shift = op.input, None
    if isinstance(add := total.owner, AddOp) and not isinstance(add.lhs.owner, ConstantOp):
        total, shift = add.lhs, constant_array(add.rhs)
        if shift is None:
            return None
    product = total.owner
    if not isinstance(product, ConvOp | MatmulOp) or not isinstance(
        product.factors[1].owner, ConstantOp
    ):
        return None
    if isinstance(product, ConvOp) and product.bias is not None:
        return None
    if isinstance(product, MatmulOp) and (rank_of(product.rhs) != 2 or shift is not None):
        return None
    if dims_of(product.results[0]) != dims_of(op.result):
        return None
    axis = 1 if isinstance(product, ConvOp) else rank_of(product.result) - 1
    channels = dims_of(product.results[0])[axis].value
    factor = constant_array(op.multiplier)
    if channels is None or factor is None:
        return None
    scales = _by_channel(factor, channels, rank_of(op.result) - axis)
    if scales is None or not (np.isfinite(scales).all() and (scales > 0).all()):
        return None
    bias = None if shift is None else _by_channel(shift, channels, rank_of(op.result) - axis)
    if shift is not None and bias is None:
        return None
    return _Layer(product, bias, scales)


def _limits(element: Attribute) -> tuple[int, int]:
    info = np.iinfo(numpy_dtype(element))
    return int(info.min), int(info.max)


def _by_channel(array: Array, channels: int, place: int) -> Array | None:
    """Numbers of one place from the end, or one for all, as a vector; None if others differ."""
    if array.size == 1:
        return np.full(channels, array.reshape(()))
    is_vector = array.ndim >= place and array.size == array.shape[-place] == channels
    return array.reshape(-1) if is_vector else None


def _quantized_layer(graph: GraphBuilder, op: RequantizeOp, layer: _Layer) -> SSAValue | None:
    """
    In scales of 1, but those of the weights, which are the factors. What is below or above the
    limits is brought there as bytes.
    """
    product = layer.op
    zeros = zero_points_of_bytes(graph, product, 0 if isinstance(product, ConvOp) else 1)
    if zeros is None or (zeros and rank_of(zeros[0])):
        return None
    one, scales = graph.literal(1, np.float32), graph.literal(layer.scales, np.float32)
    zero_of_weights: list[SSAValue] = []
    if zeros:
        known = constant_array(product.zero_points[1])
        if known is None:
            return None
        each = np.broadcast_to(known.reshape(-1), layer.scales.shape)
        zero_of_weights = [graph.literal(each, known.dtype)]
    weight = graph.value(product.factors[1])
    if isinstance(product, ConvOp):
        x, pads = padded_input(graph, product, zeros[0] if zeros else 0)
        factors = [
            graph.node("DequantizeLinear", [x, one, *zeros[:1]]),
            graph.node("DequantizeLinear", [weight, scales, *zero_of_weights], axis=0),
        ]
        if layer.bias is not None:
            bias = graph.literal(layer.bias, np.int32)
            factors.append(graph.node("DequantizeLinear", [bias, scales], axis=0))
        real = graph.node("Conv", factors, **window_attributes(product, pads))
    else:
        x = graph.value(product.factors[0])
        x = graph.node("DequantizeLinear", [x, one, *zeros[:1]])
        weight = graph.node("DequantizeLinear", [weight, scales, *zero_of_weights], axis=1)
        real = graph.node("MatMul", [x, weight])
    own = numpy_dtype(op.to)
    result = graph.node("QuantizeLinear", [real, one, graph.literal(op.zero.data, own)])
    if (op.low.data, op.high.data) == _limits(op.to):
        return result
    return graph.node("Clip", [result, *(graph.literal(n.data, own) for n in (op.low, op.high))])


def _even_product(graph: GraphBuilder, x: SSAValue, factor: SSAValue) -> SSAValue:
    """The product in f32 to the nearest integer, halves to even; limits have 16 bits."""
    rounded = graph.node("Round", [graph.node("Mul", [graph.cast(x, f32), factor])])
    most, least = (graph.literal(each, np.float32) for each in (_BEYOND, -_BEYOND))
    limited = graph.node("Max", [graph.node("Min", [rounded, most]), least])
    return graph.cast(limited, i64)


def _real_product(graph: GraphBuilder, x: SSAValue, factor: SSAValue) -> SSAValue:
    """The product in f64 to the nearest integer, halves away from zero."""
    product = graph.node("Mul", [graph.cast(x, f64), factor])
    size = graph.node("Abs", [product])
    whole = graph.node("Floor", [size])
    rest = graph.node("Sub", [size, whole])
    is_more = graph.node("GreaterOrEqual", [rest, graph.literal(0.5, np.float64)])
    rounded = graph.node("Add", [whole, graph.cast(is_more, f64)])
    return graph.cast(graph.node("Mul", [rounded, graph.node("Sign", [product])]), i64)


def _singly(graph: GraphBuilder, x: SSAValue, multiplier: SSAValue, exponent: SSAValue) -> SSAValue:
    """(x * multiplier + 2^(30 - exponent)) / 2^(31 - exponent)"""
    product = graph.node("Mul", [graph.cast(x, i64), multiplier])
    half = _power(graph, graph.node("Sub", [graph.literal(30), exponent]))
    amount = graph.node("Sub", [graph.literal(31), exponent])
    return _shifted_down(graph, graph.node("Add", [product, half]), amount)


def _doubly(graph: GraphBuilder, x: SSAValue, multiplier: SSAValue, exponent: SSAValue) -> SSAValue:
    """As the lowering to C: what is shifted left is lost beyond 32 bits."""
    left = graph.cast(graph.node("Max", [exponent, graph.literal(0)]), ui64)
    bits = graph.node("BitShift", [graph.cast(graph.cast(x, ui32), ui64), left], direction="LEFT")
    wide = graph.cast(graph.cast(graph.cast(bits, ui32), i32), i64)
    product = graph.node("Mul", [wide, multiplier])
    product = graph.node("Add", [product, graph.literal(1 << 30)])
    value = _shifted_down(graph, product, graph.literal(31))
    right = graph.node("Max", [graph.node("Neg", [exponent]), graph.literal(0)])
    half = graph.node("Div", [_power(graph, right), graph.literal(2)])
    is_negative = graph.cast(graph.node("Less", [value, graph.literal(0)]), i64)
    less = graph.node("Min", [is_negative, half])
    total = graph.node("Sub", [graph.node("Add", [value, half]), less])
    return _shifted_down(graph, total, right)


def _power(graph: GraphBuilder, exponent: SSAValue) -> SSAValue:
    one = graph.literal(1, np.uint64)
    amount = graph.cast(exponent, ui64)
    return graph.cast(graph.node("BitShift", [one, amount], direction="LEFT"), i64)


def _shifted_down(graph: GraphBuilder, x: SSAValue, amount: SSAValue) -> SSAValue:
    """Divided by a power of two, rounded down, for numbers of up to 62 bits."""
    raised = graph.cast(graph.node("Add", [x, graph.literal(_RAISED)]), ui64)
    by = graph.cast(amount, ui64)
    down = graph.node("BitShift", [raised, by], direction="RIGHT")
    start = graph.node("BitShift", [graph.literal(_RAISED, np.uint64), by], direction="RIGHT")
    return graph.node("Sub", [graph.cast(down, i64), graph.cast(start, i64)])
