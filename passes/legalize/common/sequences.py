"""Sequences: the likeliest path of a chain, and cells over all steps at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SigmoidOp, TanhOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i64
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.recurrent import (
    State,
    parts,
    reversed_steps,
    run_steps,
    times,
)
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue

Cell = Callable[[TensorValue, State], State]
"""The next states for a row of the input and the states before; the first is the output."""


def over_rows(
    builder: Legalizer, x: SSAValue, states: Sequence[SSAValue], cell: Cell, *, is_back: bool
) -> list[SSAValue]:
    """All states of a cell at all rows of x [time, ...], a tensor for each state."""
    length = dims_of(x)[0]

    def step(inner: CoreBuilder, number: Expr, before: State) -> tuple[State, State]:
        place = length - 1 - number if is_back else number
        row = inner.add(GatherOp(x, inner.dims([place], []), 0, inside=True))
        after = cell(TensorValue(inner, row), before)
        return after, after

    _, outputs = run_steps(builder, length, states, step)
    return [reversed_steps(builder, one) if is_back else one for one in outputs]


Function = Callable[[TensorValue], TensorValue]

FUNCTIONS: Mapping[str, Function] = {
    "sigmoid": lambda x: apply(SigmoidOp, x),
    "tanh": lambda x: apply(TanhOp, x),
    "relu": lambda x: x.maximum(0),
    "identity": lambda x: x,
}
"""What cells apply."""


def gru_over_rows(
    builder: Legalizer,
    x: SSAValue,
    state: SSAValue,
    weight: SSAValue,
    gate: Function,
    activation: Function,
    *,
    is_back: bool,
    keeps: bool,
) -> SSAValue:
    """
    The states [time, 1, hidden] of a GRU over x [time, 1, 3 hidden] of gates u, r and c, reset
    before; the weights of u and r lie in memory before those of c. A u of one is the new value, or
    the old one if it `keeps`.
    """
    hidden = dims_of(weight)[0]
    square = hidden * hidden
    flat = builder.reshape(weight, [square * 3])
    gates = builder.reshape(builder.slice(flat, [0], [square * 2]), [hidden, hidden * 2])
    candidate = builder.reshape(builder.slice(flat, [square * 2], [square]), [hidden, hidden])

    def cell(row: TensorValue, before: State) -> State:
        xu, xr, xc = parts(row, 3, hidden)
        u, r = parts(times(before[0], gates), 2, hidden)
        u, r = gate(xu + u), gate(xr + r)
        c = activation(xc + times(r * before[0], candidate))
        u = 1 - u if keeps else u
        return (before[0] - u * before[0] + u * c,)

    return over_rows(builder, x, [state], cell, is_back=is_back)[0]


def lstm_over_rows(
    builder: Legalizer,
    x: SSAValue,
    states: Sequence[SSAValue],
    weight: SSAValue,
    looks: Sequence[TensorValue | float],
    functions: Sequence[Function],
    *,
    is_back: bool,
) -> list[SSAValue]:
    """
    The outputs and memories [time, 1, hidden] of an LSTM over x [time, 1, 4 hidden] of c and gates
    i, f and o, which look at the memory by factors. `functions` are those of gates, of c and of
    the memory.
    """
    gate, of_candidate, of_memory = functions

    def cell(row: TensorValue, before: State) -> State:
        c, i, f, o = parts(row + times(before[0], weight), 4, dims_of(weight)[0])
        i, f = gate(i + before[1] * looks[0]), gate(f + before[1] * looks[1])
        memory = of_candidate(c) * i + before[1] * f
        return gate(o + memory * looks[2]) * of_memory(memory), memory

    return over_rows(builder, x, states, cell, is_back=is_back)


def likeliest_path(
    builder: Legalizer,
    scores: TensorValue,
    first: TensorValue,
    last: TensorValue,
    moves: TensorValue,
) -> SSAValue:
    """
    The states i64 [time] whose scores [time, states], with those of moves [from, to] and of the
    `first` and the `last` state, are the largest sum; of equal ones those of lower numbers
    (Viterbi).
    """
    length, count = scores.dims

    def forward(inner: CoreBuilder, number: Expr, before: State) -> tuple[State, State]:
        row = inner.add(GatherOp(scores.value, inner.dims([number], []), 0, inside=True))
        ways = before[0].reshape([count, 1]) + TensorValue(inner, moves.value)
        start = TensorValue.dim(inner, number).eq(0)
        best = start.where(TensorValue(inner, first.value), ways.reduce("max", [0]))
        place = TensorValue(inner, inner.add(ArgReduceOp("max", ways.value, 0)))
        return (best + TensorValue(inner, row),), (place,)

    (total,), (places,) = run_steps(builder, length, [first.value], forward)
    ends = TensorValue(builder, total) + last
    end = builder.add(ArgReduceOp("max", ends.value, 0))

    def backward(inner: CoreBuilder, number: Expr, before: State) -> tuple[State, State]:
        place = inner.dims([length - 1 - number], [])
        row = inner.add(GatherOp(places, place, 0, inside=True))
        found = inner.add(GatherOp(row, before[0].value, 0, inside=True))
        return (TensorValue(inner, found),), (before[0],)

    _, (path,) = run_steps(builder, length, [builder.cast(end, i64)], backward)
    return reversed_steps(builder, path)


def likeliest_paths(
    builder: Legalizer,
    scores: TensorValue,
    lengths: TensorValue,
    first: TensorValue | None,
    last: TensorValue | None,
    moves: TensorValue,
) -> tuple[TensorValue, TensorValue]:
    """
    The largest sums [batch] of paths through scores [batch, time, states], and the states i64
    [batch, time] of these, zero behind the lengths [batch]. `first` and `last` are scores of the
    states at both ends; of equal sums it is that of lower numbers (Viterbi).
    """
    batch, time, count = scores.dims
    rows, ends = scores.transpose([1, 0, 2]), lengths.reshape([batch, 1])
    states = TensorValue.iota(builder, count).reshape([1, count])

    def forward(inner: CoreBuilder, number: Expr, before: State) -> tuple[State, State]:
        row = inner.add(GatherOp(rows.value, inner.dims([number], []), 0, inside=True))
        ways = before[0].reshape([batch, count, 1]) + TensorValue(inner, moves.value)
        place = TensorValue(inner, inner.add(ArgReduceOp("max", ways.value, 1)))
        now = TensorValue.dim(inner, number)
        is_first, is_inside = now.eq(0), now.lt(TensorValue(inner, ends.value))
        best = is_first.where(before[0], ways.reduce("max", [1])) + TensorValue(inner, row)
        own = TensorValue(inner, states.value).broadcast([batch, count])
        return (is_inside.where(best, before[0]),), (is_inside.where(place, own),)

    begin = TensorValue.number(builder, 0, scores.element) if first is None else first
    begins = begin.broadcast([batch, count]).value
    (total,), (places,) = run_steps(builder, time, [begins], forward)
    sums = TensorValue(builder, total) if last is None else TensorValue(builder, total) + last
    end = builder.add(ArgReduceOp("max", sums.value, 1))

    def backward(inner: CoreBuilder, number: Expr, before: State) -> tuple[State, State]:
        place = inner.dims([time - 1 - number], [])
        row = TensorValue(inner, inner.add(GatherOp(places, place, 0, inside=True)))
        is_here = TensorValue(inner, states.value).eq(before[0].reshape([batch, 1]))
        return (is_here.where(row, 0).reduce("sum", [1]),), (before[0],)

    _, (path,) = run_steps(builder, time, [builder.cast(end, i64)], backward)
    found = TensorValue(builder, reversed_steps(builder, path)).transpose([1, 0])
    steps = TensorValue.iota(builder, time).reshape([1, time])
    return sums.reduce("max", [1]), steps.lt(ends).where(found, 0)
