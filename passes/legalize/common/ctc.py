"""Connectionist temporal classification: how likely labels are, wherever they lie in time."""

from __future__ import annotations

import math

from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import GatherNdOp, GatherOp
from lowerdeck.dialects.core.types import i64
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.recurrent import State, run_steps
from lowerdeck.passes.legalize.common.selection import one_hot
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat, stack


def rows_of_labels(labels: TensorValue, lengths: TensorValue) -> TensorValue:
    """Labels behind each other as rows [batch, longest], with anything behind the end of each."""
    builder = labels.builder
    known = lengths.array
    longest = labels.dims[0] if known is None else Expr.const(int(known.max(initial=0)))
    before = CumulativeOp("sum", lengths.value, 0, exclusive=True)
    first = TensorValue(builder, builder.add(before)).column(2, 0)
    place = first + TensorValue.iota(builder, longest).column(2, 1)
    place = place.minimum(TensorValue.dim(builder, labels.dims[0] - 1)).maximum(0)
    return TensorValue(builder, builder.add(GatherOp(labels.value, place.value, 0)))


def log_likelihood(
    builder: Legalizer,
    x: TensorValue,
    labels: TensorValue,
    times: TensorValue,
    lengths: TensorValue,
    blank: int,
) -> TensorValue:
    """
    The logarithm [batch] of how likely labels (i64 [batch, longest]) of some lengths are, for those
    of classes at each time, x [time, batch, classes], of which so many `times` count.

    A state of the chain is a label or one of the blanks between them. From one, the next states are
    itself, the following one, and the label behind that if it is another one.
    """
    count, batch, _ = x.dims
    longest = labels.dims[1]
    never = TensorValue.number(builder, -math.inf, x.element)
    number = TensorValue.iota(builder, longest).column(2, 1)
    labels = number.lt(lengths.column(2, 0)).where(labels, 0)
    blanks = TensorValue.number(builder, blank, i64).broadcast([batch, longest])
    pairs = stack([blanks, labels], 2).reshape([batch, longest * 2])
    states = concat([pairs, TensorValue.number(builder, blank, i64).broadcast([batch, 1])], 1)
    size = longest * 2 + 1
    row = TensorValue.iota(builder, batch).column(2, 0).broadcast([batch, size])
    places = stack([row, states], 2).value

    def behind(values: TensorValue, by: int, first: TensorValue) -> TensorValue:
        inner = values.builder
        start = first.broadcast([batch, by])
        whole = concat([TensorValue(inner, start.value), values], 1)
        return TensorValue(inner, inner.slice_axis(whole.value, 1, 0, size))

    other = states.ne(behind(states, 2, TensorValue.number(builder, blank, i64)))
    skips = (states.ne(blank) & other).value

    def step(inner: CoreBuilder, time: Expr, before: State) -> tuple[State, State]:
        found = inner.add(GatherOp(x.value, inner.dims([time], []), 0, inside=True))
        own = TensorValue(inner, inner.add(GatherNdOp(found, places)))
        (alpha,) = before
        ways = [alpha, behind(alpha, 1, never)]
        ways.append(TensorValue(inner, skips).where(behind(alpha, 2, never), never))
        after = _log_of_sum(*ways) + own
        is_on = TensorValue(inner, times.column(2, 0).value).gt(TensorValue.dim(inner, time))
        return (is_on.where(after, alpha),), ()

    place = TensorValue.iota(builder, size).column(2, 1)
    start = place.eq(0).where(TensorValue.number(builder, 0, x.element), never)
    (alpha,), _ = run_steps(builder, count, [start.broadcast([batch, size]).value], step)
    last = lengths * 2
    ends = [
        one_hot(end, size, 1).where(TensorValue(builder, alpha), never).reduce("max", [1])
        for end in (last, last - 1)
    ]
    return _log_of_sum(*ends)


def _log_of_sum(*values: TensorValue) -> TensorValue:
    """log(exp(a) + exp(b) + ...)"""
    first, *rest = values
    most = first
    for value in rest:
        most = most.maximum(value)
    most = most.eq(-math.inf).where(TensorValue.number(most.builder, 0, most.element), most)
    total = (first - most).exp()
    for value in rest:
        total = total + (value - most).exp()
    return total.log() + most
