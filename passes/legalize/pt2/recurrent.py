"""LSTM, GRU and plain recurrent layers: one layer and direction after the other, over time."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.recurrent import (
    State,
    cell,
    layers_of,
    reversed_steps,
    run_steps,
    times,
)
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@legalizes(*(f"{name}.input" for name in _GATES))
def legalize_recurrent(builder: Pt2Legalizer) -> Results:
    """The outputs of the last layer, and the last states of all layers and directions."""
    if builder.flag("train") and builder.number("dropout"):
        builder.refuse("random numbers", "dropout 0", "call model.eval()")
    x = builder.input("input")
    states = builder.inputs("hx") if builder.name == "lstm" else [builder.input("hx")]
    single = rank_of(x) == 2
    if single:
        x = builder.unsqueeze(x, [1])
        states = [builder.unsqueeze(state, [1]) for state in states]
    elif builder.flag("batch_first"):
        x = builder.transpose(x, [1, 0, 2])
    directions = 2 if builder.flag("bidirectional") else 1
    params = builder.inputs("params")
    layers = builder.integer("num_layers")
    each = len(params) // (layers * directions)

    def run(
        place: int, source: SSAValue, first: Sequence[SSAValue]
    ) -> tuple[list[SSAValue], SSAValue]:
        weights = params[place * each : (place + 1) * each]
        if place % directions == 0:
            return _direction(builder, source, first, weights)
        after, output = _direction(builder, reversed_steps(builder, source), first, weights)
        return after, reversed_steps(builder, output)

    x, lasts = layers_of(builder, x, states, layers, directions, run)
    if single:
        return [builder.squeeze(value, [1]) for value in (x, *lasts)]
    x = builder.transpose(x, [1, 0, 2]) if builder.flag("batch_first") else x
    return [x, *lasts]


@legalizes(*(f"{name}_cell" for name in _GATES))
def legalize_cell(builder: Pt2Legalizer) -> Results:
    """One step, with or without a batch."""
    x, name = builder.input("input"), builder.name.removesuffix("_cell")
    states = builder.inputs("hx") if name == "lstm" else [builder.input("hx")]
    single = rank_of(x) == 1
    if single:
        x, *states = (builder.unsqueeze(value, [0]) for value in (x, *states))
    w, r = (builder.transpose(builder.input(key), [1, 0]) for key in ("w_ih", "w_hh"))
    state = tuple(TensorValue.of(builder, value) for value in states)
    sums = [times(TensorValue.of(builder, x), w), times(state[0], r)]
    for place, key in enumerate(("b_ih", "b_hh")):
        if (bias := builder.optional(key)) is not None:
            sums[place] = sums[place] + TensorValue.of(builder, bias)
    found = cell(name, sums[0], sums[1], state, dims_of(r)[1] // _GATES[name])
    return [builder.squeeze(value.value, [0]) if single else value.value for value in found]


def _direction(
    builder: Pt2Legalizer, x: SSAValue, states: Sequence[SSAValue], weights: Sequence[SSAValue]
) -> tuple[list[SSAValue], SSAValue]:
    """The last states, and the outputs of all steps [time, batch, hidden]."""
    has_biases = builder.flag("has_biases")
    w, r = (builder.transpose(weight, [1, 0]) for weight in weights[:2])
    biases = [TensorValue.of(builder, bias) for bias in weights[2:4]] if has_biases else []
    rest = list(weights[4:] if has_biases else weights[2:])
    project = builder.transpose(rest[0], [1, 0]) if rest else None
    hidden = dims_of(r)[1] // _GATES[builder.name]
    inputs = times(TensorValue(builder, x), w)
    inputs = inputs + biases[0] if biases else inputs
    length = dims_of(x)[0]

    def step(inner: Pt2Legalizer, number: Expr, state: State) -> tuple[State, State]:
        row = inner.add(GatherOp(inputs.value, inner.dims([number], []), 0, inside=True))
        ahead = times(state[0], r)
        ahead = ahead + biases[1] if biases else ahead
        following = cell(builder.name, TensorValue(inner, row), ahead, state, hidden)
        if project is not None:
            following = (times(following[0], project), *following[1:])
        return following, (following[0],)

    after, outputs = run_steps(builder, length, states, step)
    return after, outputs[0]
