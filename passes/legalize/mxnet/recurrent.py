"""Recurrent layers, and what sequences of unlike lengths need."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherElementsOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.recurrent import GATES, flat_weights, recurrent
from lowerdeck.passes.legalize.common.selection import reverse_sequence
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("RNN")
def legalize_recurrent(builder: MxnetLegalizer) -> Results:
    """
    The outputs of the last layer [time, batch, ...], and the last states of all layers and
    directions. The parameters are one vector: the weights of all, then their biases.
    """
    builder.absent(
        "projection_size", "lstm_state_clip_min", "lstm_state_clip_max", "lstm_state_clip_nan"
    )
    kind = builder.choice("mode", *GATES)
    x = builder.input("data")
    layers, hidden = builder.integer("num_layers"), builder.integer("state_size")
    directions = 2 if builder.flag("bidirectional") else 1
    states, lengths = _states(builder, kind, dims_of(x)[1], layers * directions)
    width = dims_of(x)[2].value
    if width is None:
        builder.refuse("an input of open width", "a known one", "give the shape of the input")
    weights = flat_weights(
        builder, builder.input("parameters"), GATES[kind], layers, directions, hidden, width
    )

    output, lasts = recurrent(builder, kind, x, states, weights, directions, lengths)
    return [output, *lasts]


def _states(
    builder: MxnetLegalizer, kind: str, batch: Expr, count: int
) -> tuple[list[SSAValue], TensorValue | None]:
    """The states before the first step [layers, batch, hidden], and the lengths of sequences."""
    # The lengths come after the states, of which only an LSTM has two.
    given = [builder.optional(name) for name in ("state", "state_cell", "sequence_length")]
    given = [value for value in given if value is not None]
    number = 2 if kind == "lstm" else 1
    has_lengths = builder.flag("use_sequence_length")
    if len(given) != number + has_lengths:
        builder.refuse(f"{len(given)} states and lengths", f"{number + has_lengths}")
    hidden = builder.integer("state_size")
    states = [builder.broadcast(state, [count, batch, hidden]) for state in given[:number]]
    return states, builder.index(given[number]) if has_lengths else None


# Sequences of unlike lengths


def _layout(builder: MxnetLegalizer) -> tuple[int, int]:
    """The axes of time and of the batch."""
    axis = builder.integer("axis")
    if axis not in (0, 1):
        builder.refuse(f"'axis' is {axis}", "0 or 1")
    return axis, 1 - axis


@legalizes("SequenceMask")
def legalize_mask(builder: MxnetLegalizer) -> Results:
    """A number from the length of each sequence on."""
    x = builder.value("data")
    time, batch = _layout(builder)
    if not builder.flag("use_sequence_length"):
        return x.value
    rank = len(x.dims)
    length = builder.index(builder.input("sequence_length")).column(rank, batch)
    place = TensorValue.iota(builder, x.dims[time]).column(rank, time)
    number = builder.known(builder.number("value"), x.element)
    return place.lt(length).where(x, number).value


@legalizes("SequenceLast")
def legalize_last(builder: MxnetLegalizer) -> Results:
    """The last element of each sequence."""
    x = builder.input("data")
    time, batch = _layout(builder)
    dims = dims_of(x)
    if not builder.flag("use_sequence_length"):
        return builder.squeeze(builder.slice_axis(x, time, dims[time] - 1, 1), [time])
    place = builder.index(builder.input("sequence_length")) - 1
    one = [Expr.const(1) if k == time else dim for k, dim in enumerate(dims)]
    index = place.column(len(dims), batch).broadcast(one)
    return builder.squeeze(builder.add(GatherElementsOp(x, index.value, time)), [time])


@legalizes("SequenceReverse")
def legalize_reverse(builder: MxnetLegalizer) -> Results:
    """The elements of each sequence from its last to its first; those behind stay."""
    x = builder.input("data")
    time, batch = _layout(builder)
    if time != 0:
        builder.refuse("'axis' is 1", "0")
    if builder.flag("use_sequence_length"):
        lengths = builder.index(builder.input("sequence_length"))
    else:
        count = TensorValue.dim(builder, dims_of(x)[0]).reshape([1])
        lengths = count.broadcast([dims_of(x)[batch]])
    return reverse_sequence(builder, x, lengths, batch, time)
