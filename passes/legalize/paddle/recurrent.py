"""LSTM, GRU and plain recurrent layers: one layer and direction after the other, over time."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i64
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.recurrent import State, cell, run_steps, times
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@legalizes("rnn")
def legalize_recurrent(builder: PaddleLegalizer) -> Results:
    """
    The outputs of the last layer [time, batch, ...], and the last states of all layers and
    directions. The weights of all come first, then their biases.
    """
    if not builder.flag("is_test") and builder.number("dropout_prob"):
        builder.refuse("random numbers", "is_test", "call model.eval()")
    kind = builder.text("mode").lower()
    if kind not in _GATES:
        builder.refuse(f"the mode '{kind}'", ", ".join(_GATES))
    x, states = builder.input("x"), builder.inputs("pre_state")
    directions = 2 if builder.flag("is_bidirec") else 1
    count = builder.integer("num_layers") * directions
    weights = builder.inputs("weight_list")
    if len(weights) != 4 * count:
        builder.refuse(f"{len(weights)} weights", f"{4 * count}")
    finals: list[list[TensorValue]] = []
    for layer in range(count // directions):
        outputs: list[SSAValue] = []
        for direction in range(directions):
            place = layer * directions + direction
            first = [
                builder.squeeze(builder.slice_axis(state, 0, place, 1), [0]) for state in states
            ]
            own = [*weights[2 * place : 2 * place + 2]]
            own += weights[2 * (count + place) : 2 * (count + place) + 2]
            after, output = _direction(builder, kind, x, first, own, bool(direction))
            outputs.append(output)
            finals.append([TensorValue(builder, value) for value in after])
        x = concat(builder, outputs, 2)
    lasts = [stack(list(values), 0).value for values in zip(*finals, strict=True)]
    return builder.results(out=x, state=lasts)


def _direction(
    builder: PaddleLegalizer,
    kind: str,
    x: SSAValue,
    states: list[SSAValue],
    weights: list[SSAValue],
    is_back: bool,
) -> tuple[list[SSAValue], SSAValue]:
    """The last states, and the outputs of all steps. Beyond a sequence's length nothing changes."""
    w, r = (builder.transpose(weight, [1, 0]) for weight in weights[:2])
    biases = [TensorValue.of(builder, bias) for bias in weights[2:]]
    hidden = dims_of(r)[1] // _GATES[kind]
    inputs = times(TensorValue(builder, x), w) + biases[0]
    length = dims_of(x)[0]
    lengths = None
    if builder.optional("sequence_length") is not None:
        lengths = builder.value("sequence_length").cast(i64)
        lengths = lengths.reshape([dims_of(x)[1], 1])

    def step(inner: PaddleLegalizer, number: Expr, state: State) -> tuple[State, State]:
        place = length - 1 - number if is_back else number
        row = inner.add(GatherOp(inputs.value, inner.dims([place], []), 0, inside=True))
        ahead = times(TensorValue(inner, state[0].value), r) + biases[1]
        following = cell(kind, TensorValue(inner, row), ahead, state, hidden)
        if lengths is None:
            return following, (following[0],)
        is_on = TensorValue(inner, lengths.value).gt(TensorValue.dim(inner, place))
        kept = tuple(is_on.where(new, old) for new, old in zip(following, state, strict=True))
        return kept, (is_on.where(following[0], 0),)

    after, outputs = run_steps(builder, length, states, step)
    return after, _reversed(builder, outputs[0]) if is_back else outputs[0]


def _reversed(builder: PaddleLegalizer, x: SSAValue) -> SSAValue:
    """The steps from the last to the first."""
    dims = dims_of(x)
    starts = [dims[0] - 1, *[Expr.const(0)] * (len(dims) - 1)]
    return builder.slice(x, starts, dims, [-1, *[1] * (len(dims) - 1)])
