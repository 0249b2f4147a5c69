"""LSTM, GRU and plain recurrent layers: one layer and direction after the other, over time."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import i64
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.recurrent import GATES, direction_of
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack


@legalizes("rnn")
def legalize_recurrent(builder: PaddleLegalizer) -> Results:
    """
    The outputs of the last layer [time, batch, ...], and the last states of all layers and
    directions. The weights of all come first, then their biases.
    """
    if not builder.flag("is_test") and builder.number("dropout_prob"):
        builder.refuse("random numbers", "is_test", "call model.eval()")
    kind = builder.text("mode").lower()
    if kind not in GATES:
        builder.refuse(f"the mode '{kind}'", ", ".join(GATES))
    x, states = builder.input("x"), builder.inputs("pre_state")
    directions = 2 if builder.flag("is_bidirec") else 1
    count = builder.integer("num_layers") * directions
    weights = builder.inputs("weight_list")
    if len(weights) != 4 * count:
        builder.refuse(f"{len(weights)} weights", f"{4 * count}")
    lengths = None
    if builder.optional("sequence_length") is not None:
        lengths = builder.value("sequence_length").cast(i64)
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
            after, output = direction_of(
                builder, kind, x, first, own, is_back=bool(direction), lengths=lengths
            )
            outputs.append(output)
            finals.append([TensorValue(builder, value) for value in after])
        x = concat(builder, outputs, 2)
    lasts = [stack(list(values), 0).value for values in zip(*finals, strict=True)]
    return builder.results(out=x, state=lasts)
