"""`fuse-quantized`: products of dequantized bytes are products of the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import AddOp, CastOp, MulOp, SubOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.quantize import DequantizeOp
from lowerdeck.dialects.core.tensor import BroadcastOp, GatherOp, ReshapeOp, TransposeOp, ints
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    f32,
    i32,
    is_integer,
    numpy_dtype,
    rank_of,
    static_shape,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.fuse.layers import LONGEST_SUM
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.values import Array, constant_values, is_finite


@record
class Dequantized:
    """(cast(quantized) - cast(zero)) * scale in f32, and whether it is transposed afterwards."""

    quantized: SSAValue
    zero: Array | None
    scale: SSAValue
    is_transposed: bool = False

    @property
    def zero_point(self) -> Array:
        """The zero point, 0 if there is none."""
        zero = np.zeros((), np.int64) if self.zero is None else self.zero
        return zero.astype(numpy_dtype(element_type(self.quantized)))


def _dequantized(value: SSAValue) -> Dequantized | None:
    """How a value is made of bytes, whose zero point and scale are constant, the scale finite."""
    if (transpose := producer(value, TransposeOp)) is not None:
        inner = _dequantized(transpose.input)
        if inner is None or list(ints(transpose.permutation)) != [1, 0] or inner.is_transposed:
            return None
        return replace(inner, is_transposed=True)
    product = producer(value, MulOp)
    if product is None or element_type(value) != f32:
        return None
    centered, zero = product.lhs, None
    if (difference := producer(centered, SubOp)) is not None:
        centered, zero = difference.lhs, _numbers(difference.rhs)
        if zero is None:
            return None
    elif (total := producer(centered, AddOp)) is not None:
        centered, zero = total.lhs, _numbers(total.rhs)
        if zero is None:
            return None
        zero = -zero
    cast, scale = producer(centered, CastOp), _numbers(product.rhs)
    if cast is None or scale is None or not is_finite(scale):
        return None
    element = element_type(cast.input)
    if not is_integer(element) or bit_width(element) != 8 or dims_of(centered) != dims_of(value):
        return None
    found = Dequantized(cast.input, zero, product.rhs)
    return found if zero is None or (found.zero_point == zero).all() else None


def _numbers(value: SSAValue) -> Array | None:
    """The numbers of a constant, maybe in another shape or type."""
    source = value
    while (op := producer(source, CastOp) or producer(source, ReshapeOp)) is not None:
        source = op.input
    known, shape = constant_values(source), static_shape(value)
    return None if known is None or shape is None else known[0].reshape(shape)


def _is_one(dims: Sequence[Any]) -> bool:
    """True for the dimensions of one number for all elements."""
    return all(dim == 1 for dim in dims)


def _differs_only(dims: Sequence[Any], rank: int, axis: int) -> bool:
    """True if all elements at one index of an axis of a tensor of this rank have one number."""
    first = rank - len(dims)
    return all(dim == 1 or first + k == axis for k, dim in enumerate(dims))


class _Builder:
    """Adds ops before the root of a match."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter

    def add(self, op: CoreOp) -> SSAValue:
        """The result of a new op."""
        return self._rewriter.add(op).results[0]

    def zeros(self, *factors: Dequantized) -> list[SSAValue]:
        """The zero points of factors, none if all of them are zero."""
        points = [factor.zero_point for factor in factors]
        if not any(point.any() for point in points):
            return []
        return [self.add(ConstantOp.of(point)) for point in points]

    def scaled(self, total: SSAValue, *scales: SSAValue) -> SSAValue:
        """A sum of products in f32, times the scales of the factors."""
        value = self.add(CastOp(total, f32))
        return self.add(MulOp(value, self.add(MulOp(*scales))))

    def reshaped(self, value: SSAValue, dims: Sequence[Expr | int]) -> SSAValue:
        """A value with as many elements."""
        return self.add(ReshapeOp(value, dims))


@record
class Factors:
    """Both factors of a product."""

    left: Dequantized
    right: Dequantized


def _factors(left: SSAValue, right: SSAValue, terms: int | None) -> Factors | None:
    """The factors if the right one is made of constant bytes, and sums of so many terms fit."""
    found = [_dequantized(value) for value in (left, right)]
    if found[0] is None or found[1] is None or terms is None or terms > LONGEST_SUM:
        return None
    if not isinstance(found[1].quantized.owner, ConstantOp) or found[0].is_transposed:
        return None
    if not _is_one(dims_of(found[0].scale)) or not _is_one(found[0].zero_point.shape):
        return None
    return Factors(found[0], found[1])


class FuseQuantizedConv(Pattern[Factors]):
    """conv(dequantized(x), dequantized(w), b) -> cast(conv(x, w)) * (scales) + b"""

    name = "fuse-quantized-conv"
    roots = (ConvOp,)
    ranked = True

    def match(self, op: ConvOp) -> Match[Factors] | None:
        shape = static_shape(op.weight)
        if shape is None or op.zero_points or element_type(op.result) != f32:
            return None
        factors = _factors(op.input, op.weight, int(np.prod(shape[1:])))
        if factors is None or factors.right.is_transposed:
            return None
        parameters = (dims_of(factors.right.scale), factors.right.zero_point.shape)
        if not all(_differs_only(dims, len(shape), 0) for dims in parameters):
            return None
        return Match((op,), "factors of bytes", factors)

    def rewrite(self, match: Match[Factors], rewriter: Rewriter) -> None:
        op, x, w, b = match.root, match.data.left, match.data.right, _Builder(rewriter)
        assert isinstance(op, ConvOp)
        conv = ConvOp(
            x.quantized,
            w.quantized,
            zero_points=b.zeros(x, w),
            strides=ints(op.strides),
            dilations=ints(op.dilations),
            pads_begin=op.pads_begin.data,
            pads_end=op.pads_end.data,
            groups=op.groups.data,
            accumulator=i32,
        )
        column = [dims_of(op.weight)[0], *[1] * (rank_of(op.result) - 2)]
        scale = b.reshaped(w.scale, [] if _is_one(dims_of(w.scale)) else column)
        value = b.scaled(b.add(conv), b.reshaped(x.scale, []), scale)
        if op.bias is not None:
            value = b.add(AddOp(value, b.reshaped(op.bias, column)))
        rewriter.replace(op, value)


class FuseQuantizedConvTranspose(Pattern[Factors]):
    """conv_transpose(dequantized(x), dequantized(w), b) -> interleaved(cast(conv(x, w)) * s + b)"""

    name = "fuse-quantized-conv-transpose"
    roots = (ConvTransposeOp,)
    ranked = True

    def match(self, op: ConvTransposeOp) -> Match[Factors] | None:
        shape = static_shape(op.weight)
        if shape is None or element_type(op.result) != f32 or op.groups.data != 1:
            return None
        pads = (*op.pads_begin.data, *op.pads_end.data, *ints(op.output_padding))
        if list(ints(op.strides)) != list(shape[2:]) or any(d != 1 for d in ints(op.dilations)):
            return None
        factors = _factors(op.input, op.weight, shape[0])
        if factors is None or factors.right.is_transposed or any(pad != 0 for pad in pads):
            return None
        parameters = (dims_of(factors.right.scale), factors.right.zero_point.shape)
        if not all(_differs_only(dims, len(shape), 1) for dims in parameters):
            return None
        return Match((op,), "factors of bytes, each of which is one of a product", factors)

    def rewrite(self, match: Match[Factors], rewriter: Rewriter) -> None:
        op, x, w, b = match.root, match.data.left, match.data.right, _Builder(rewriter)
        assert isinstance(op, ConvTransposeOp)
        channels, filters, *taps = (dim.value or 0 for dim in dims_of(op.weight))
        rank, count = len(taps), filters * prod(taps)
        order = [*range(1, rank + 2), 0]
        ones, zeros = [1] * rank, [0] * rank

        def repeated(value: SSAValue) -> SSAValue:
            """A number for each filter, or one for all, for each tap of it."""
            if _is_one(dims_of(value)):
                return b.reshaped(value, [])
            value = b.reshaped(value, [filters, 1])
            value = b.add(BroadcastOp(value, [filters, prod(taps)]))
            return b.reshaped(value, [count, *ones])

        zero = w.zero_point
        if zero.size > 1:
            zero = np.repeat(zero.reshape(-1), prod(taps)).reshape(count, 1, *ones)
        moved = b.add(TransposeOp(w.quantized, order))
        weights = b.reshaped(moved, [count, channels, *ones])
        conv = ConvOp(
            x.quantized,
            weights,
            zero_points=b.zeros(x, replace(w, quantized=weights, zero=zero)),
            strides=ones,
            dilations=ones,
            pads_begin=zeros,
            pads_end=zeros,
            accumulator=i32,
        )
        value = b.scaled(b.add(conv), b.reshaped(x.scale, []), repeated(w.scale))
        if op.bias is not None:
            value = b.add(AddOp(value, repeated(op.bias)))
        # [N, M, taps, sizes] -> [N, M, size, tap, ...]
        batch, _, *sizes = dims_of(op.input)
        value = b.reshaped(value, [batch, filters, *taps, *sizes])
        pairs = [axis for k in range(rank) for axis in (2 + rank + k, 2 + k)]
        value = b.add(TransposeOp(value, [0, 1, *pairs]))
        rewriter.replace(op, b.reshaped(value, dims_of(op.result)))


class FuseQuantizedMatmul(Pattern[Factors]):
    """dequantized(x) @ dequantized(w) -> cast(x @ w) * (scales)"""

    name = "fuse-quantized-matmul"
    roots = (MatmulOp,)
    ranked = True

    def match(self, op: MatmulOp) -> Match[Factors] | None:
        if op.zero_points or element_type(op.result) != f32:
            return None
        # The constant factor knows how many terms there are; that of the other may be open.
        factors = _factors(op.lhs, op.rhs, dims_of(op.rhs)[-2].value)
        if factors is None:
            return None
        rank = rank_of(op.rhs)
        column = rank - 2 if factors.right.is_transposed else rank - 1
        parameters = (dims_of(factors.right.scale), factors.right.zero_point.shape)
        if not all(_differs_only(dims, rank, column) for dims in parameters):
            return None
        return Match((op,), "factors of bytes", factors)

    def rewrite(self, match: Match[Factors], rewriter: Rewriter) -> None:
        op, x, w, b = match.root, match.data.left, match.data.right, _Builder(rewriter)
        assert isinstance(op, MatmulOp)

        quantized, zero = w.quantized, w.zero_point
        if w.is_transposed:
            quantized = b.add(TransposeOp(quantized, [1, 0]))
            zero = zero.T if zero.ndim == 2 else zero.reshape(-1, 1).T
        zeros = b.zeros(x, replace(w, quantized=quantized, zero=zero))
        product = b.add(MatmulOp(x.quantized, quantized, zeros, accumulator=i32))
        row = [] if _is_one(dims_of(w.scale)) else [1, dims_of(op.rhs)[-1]]
        rewriter.replace(op, b.scaled(product, b.reshaped(x.scale, []), b.reshaped(w.scale, row)))


class TransposeOfHalves(Pattern[tuple[DequantizeOp, list[Array]]]):
    """transpose(dequantize(q, s, z)) -> dequantize(transpose(q), transpose(s), transpose(z))"""

    name = "transpose-of-halves"
    roots = (TransposeOp,)

    def match(self, op: TransposeOp) -> Match[tuple[DequantizeOp, list[Array]]] | None:
        source = producer(op.input, DequantizeOp)
        if source is None or (arrays := _constants_of(source)) is None:
            return None
        order = list(ints(op.permutation))
        moved = [np.ascontiguousarray(array.transpose(order)) for array in arrays]
        return Match((op, source), "numbers of four bits", (source, moved))

    def rewrite(self, match: Match[tuple[DequantizeOp, list[Array]]], rewriter: Rewriter) -> None:
        op, (source, arrays) = match.root, match.data
        assert isinstance(op, TransposeOp)
        parts = [rewriter.add(ConstantOp.of(array)).result for array in arrays]
        axis = list(ints(op.permutation)).index(source.axis.data)
        new = source.with_operands(parts, {"axis": IntAttr(axis)})
        rewriter.replace(op, rewriter.add(new).result)


class TableOfHalves(Pattern[DequantizeOp]):
    """gather(dequantize(q, s, z), i) -> dequantize(gather(q, i), gather(s, i), gather(z, i))"""

    name = "table-of-halves"
    roots = (GatherOp,)
    ranked = True

    def match(self, op: GatherOp) -> Match[DequantizeOp] | None:
        source = producer(op.input, DequantizeOp)
        if source is None or _constants_of(source) is None:
            return None
        is_table = op.axis.data == 0 and source.axis.data == 1 and rank_of(op.input) == 2
        return Match((op, source), "numbers of four bits", source) if is_table else None

    def rewrite(self, match: Match[DequantizeOp], rewriter: Rewriter) -> None:
        op, source = match.root, match.data
        assert isinstance(op, GatherOp)
        inside = op.inside is not None
        parts = [
            rewriter.add(GatherOp(part, op.indices, 0, inside=inside)).result
            for part in source.operands
        ]
        new = source.with_operands(parts, {"axis": IntAttr(rank_of(parts[0]) - 1)})
        rewriter.replace(op, rewriter.add(new).result)


def _constants_of(op: DequantizeOp) -> list[Array] | None:
    """What halves of bytes, scales and zero points are, if all are constants."""
    found = [constant_array(value) for value in op.operands]
    known = [array for array in found if array is not None]
    return known if len(known) == len(found) else None


class FuseQuantizedPass(PatternPass):
    """
    With the bytes q, their zero point z and a constant, finite scale s of a dequantized value
    (cast(q) - cast(z)) * s:

    - conv(x, w, b) -> cast(conv(q_x, q_w)) * (s_x * s_w) + b
    - conv_transpose(x, w, b) -> interleaved(cast(conv(q_x, q_w)) * (s_x * s_w) + b)
      [strides as large as the kernel, no pads: taps are filters of one tap]
    - x @ w -> cast(q_x @ q_w) * (s_x * s_w), likewise of a transposed w
      [q_w constant; x has one scale and zero point, w has one an output channel; f32; all sums
      fit into an i32, in which they are exact]

    And of numbers of four bits, which stay so in memory:

    - transpose(dequantize(q, s, z)) -> dequantize(transpose(q), transpose(s), transpose(z))
    - gather(dequantize(q, s, z), i) -> dequantize(gather(q, i), gather(s, i), gather(z, i))
      [rows of a matrix; all constant but the indices]

    The pass is the first one: constants are folded afterwards, and the bytes of weights with them.
    """

    name = "fuse-quantized"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            FuseQuantizedConv(),
            FuseQuantizedConvTranspose(),
            FuseQuantizedMatmul(),
            TransposeOfHalves(),
            TableOfHalves(),
        ]
