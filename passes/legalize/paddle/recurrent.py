"""LSTM, GRU and plain recurrent layers: one layer and direction after the other, over time."""

from __future__ import annotations

from lowerdeck.dialects.core.types import i64
from lowerdeck.passes.legalize.common.recurrent import GATES, recurrent
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes


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

    own = [[*weights[k : k + 2], *weights[2 * count + k :][:2]] for k in range(0, 2 * count, 2)]
    output, lasts = recurrent(builder, kind, x, states, own, directions, lengths)
    return builder.results(out=output, state=lasts)
