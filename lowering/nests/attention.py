"""Attention in plain loops: one query at a time, without memory for the scores."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.types import dims_of, element_type, f64
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import Index, KernelLowering, anchor


@anchor(AttentionOp, accumulating=True)
def lower_attention(k: KernelLowering, op: AttentionOp) -> None:
    """
    The maximum of the scores, then the sums of values weighted by exp(score - maximum), divided by
    the sum of the weights. Scores are computed twice instead of stored.
    """
    b = k.builder
    *batch, queries, heads, _ = dims_of(op.query)
    with b.nest([*batch, heads, queries], parallel=True) as index:
        *outer, head, query = index
        at = [*outer, query, head]
        total = _weighted_values(k, op, at)
        with b.loop(dims_of(op.result)[-1]) as column:
            where = [*at, column]
            wide = scalars.cast(b, b.load(k.outputs[0], where), element_type(op.result), f64)
            quotient = b.add(arith.DivfOp(wide, total))
            k.finish(op, where, scalars.cast(b, quotient, f64, element_type(op.result)))


def _weighted_values(k: KernelLowering, op: AttentionOp, at: Index) -> SSAValue:
    """Add up the weighted values in the output buffer; the sum of the weights in f64."""
    b, out, element = k.builder, k.outputs[0], element_type(op.result)
    *outer, query, head = at
    *_, keys, _, _ = dims_of(op.key)
    columns = dims_of(op.result)[-1]

    def larger(position: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [scalars.maximum(b, values[0], _score(k, op, at, position), element)]

    top = b.carry(keys, [scalars.lowest(b, element)], larger)[0]
    zero = scalars.constant(b, 0, element)
    with b.loop(columns) as column:
        b.store(zero, out, [*at, column])

    def add_value(position: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        weight = weight_of(k, op, _score(k, op, at, position), top)
        part = weight
        if op.keep is not None and op.zero_hidden is not None:
            keep = k.operand(op.keep, [*outer, head, query, position], op.score_dims)
            part = b.add(arith.SelectOp(keep, weight, zero))
        with b.loop(columns) as column:
            factor = k.element(op.value, [*outer, position, head, column])
            sum_ = scalars.add(b, b.load(out, [*at, column]), scalars.mul(b, part, factor))
            b.store(sum_, out, [*at, column])
        return [scalars.add(b, values[0], scalars.cast(b, weight, element, f64))]

    total = b.carry(keys, [b.floating(0.0, f64)], add_value)[0]
    # The largest score alone has the weight 1: the sum is less only without keys, or if all weights
    # are zero instead of NaN; 0 is due then.
    return scalars.maximum(b, total, b.floating(1 / 2, f64), f64)


def weight_of(k: KernelLowering, op: AttentionOp, score: SSAValue, top: SSAValue) -> SSAValue:
    """The weight of a score, before it is divided by the sum of all; `top` is the largest one."""
    b = k.builder
    weight = scalars.exp_at_most_one(b, scalars.sub(b, score, top))
    if op.zero_nan is None:
        return weight
    # One weight is NaN if all are: if the largest score is no finite number.
    element = element_type(op.result)
    rest = scalars.sub(b, top, top)
    is_nan = scalars.compare(b, "ne", rest, rest, element)
    return b.add(arith.SelectOp(is_nan, scalars.constant(b, 0, element), weight))


def _score(k: KernelLowering, op: AttentionOp, at: Index, position: Expr) -> SSAValue:
    """The scaled and masked product of a query with the key at a position."""
    b, element = k.builder, element_type(op.result)
    *outer, query, head = at

    def add_product(i: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        left = k.element(op.query, [*at, i])
        right = k.element(op.key, [*outer, position, head, i])
        return [scalars.add(b, values[0], scalars.mul(b, left, right))]

    zero = scalars.constant(b, 0, element)
    product = b.carry(dims_of(op.query)[-1], [zero], add_product)[0]
    score = scalars.mul(b, product, b.floating(op.scale.value.data, element))
    place = [*outer, head, query, position]
    if op.factor is not None:
        score = scalars.mul(b, score, k.operand(op.factor, place, op.score_dims))
    if op.mask is not None:
        score = scalars.add(b, score, k.operand(op.mask, place, op.score_dims))
    if op.keep is not None:
        score = kept(k, op, k.operand(op.keep, place, op.score_dims), score)
    return score


def kept(k: KernelLowering, op: AttentionOp, keep: SSAValue, score: SSAValue) -> SSAValue:
    """A score, or what stands for one that is not kept."""
    assert op.fill is not None
    fill = k.builder.floating(op.fill.value.data, element_type(op.result))
    return k.builder.add(arith.SelectOp(keep, score, fill))
