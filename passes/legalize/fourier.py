"""Fourier transforms, as matrix products with tables of cosines and sines."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, f64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.movement import pad
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack


def transformed(
    builder: Legalizer, x: SSAValue, axis: int, size: Expr | None, inverse: bool, onesided: bool
) -> SSAValue:
    """
    The transform along an axis, of `size` elements (cut or filled with zeros).

    Computed in f64: sums that cancel would lose what an f32 result can hold.
    """
    rank, element = rank_of(x), element_type(x)
    if not 0 <= axis < rank - 1 or dims_of(x)[-1].value not in (1, 2):
        builder.refuse(f"axis {axis} of an input of type {x.type}", "[..., 1] or [..., 2]")
    real_result = inverse and onesided
    if size is None:
        size = (dims_of(x)[axis] - 1) * 2 if real_result else dims_of(x)[axis]
    half = size // 2 + 1
    used = half if real_result else size
    end = [Expr.const(0)] * rank
    end[axis] = used - dims_of(x)[axis]
    x = pad(builder, x, [Expr.const(0)] * rank, end)
    order = [*(k for k in range(rank - 1) if k != axis), axis, rank - 1]
    x = builder.cast(builder.transpose(x, order), f64)
    outer, parts = dims_of(x)[:-2], dims_of(x)[-1].value or 0
    count = half if onesided and not inverse else size
    results = 1 if real_result else 2
    table = _table(builder, used, count, size, parts, results, inverse)
    if real_result:
        table = table * _mirrored(builder, used, size).reshape([used, 1, 1, 1])
    matrix = table.reshape([used * parts, count * results])
    rows = builder.reshape(x, [product(outer), used * parts])
    y = builder.reshape(builder.add(MatmulOp(rows, matrix.value)), [*outer, count, results])
    back = [*range(rank - 2)]
    back.insert(axis, rank - 2)
    return builder.cast(builder.transpose(y, [*back, rank - 1]), element)


def _table(
    builder: Legalizer,
    used: Expr,
    count: Expr,
    size: Expr,
    parts: int,
    results: int,
    inverse: bool,
) -> TensorValue:
    """What part of input n adds to part of output k, f64 [used, parts, count, results]."""
    total = TensorValue.dim(builder, size)
    steps = TensorValue.iota(builder, used).column(2, 0) * TensorValue.iota(builder, count).column(
        2, 1
    )
    angle = (steps % total).cast(f64) * (2 * math.pi) / total.cast(f64)
    cosine, sine = angle.cos(), angle.sin()
    if inverse:
        cosine, sine = cosine / total.cast(f64), -sine / total.cast(f64)
    # exp(-i angle) times (re, im), the real part and the imaginary part.
    rows = [[cosine, -sine], [sine, cosine]]
    columns = [stack(row[:results], 2) for row in rows[:parts]]
    return stack(columns, 1)


def _mirrored(builder: Legalizer, used: Expr, size: Expr) -> TensorValue:
    """How often the elements of half a spectrum occur in the whole one."""
    place = TensorValue.iota(builder, used)
    alone = place.eq(0) | (place * 2).eq(TensorValue.dim(builder, size))
    return alone.where(TensorValue.number(builder, 1, f64), 2.0)
