"""LSTM, GRU and plain recurrent layers: one layer and direction after the other, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.movement import pad
from lowerdeck.passes.legalize.common.recurrent import (
    State,
    cell,
    layers_of,
    reversed_steps,
    run_steps,
    times,
)
from lowerdeck.passes.legalize.common.selection import nonzero_places
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue

_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@legalizes(*(f"{name}.{form}" for name in _GATES for form in ("input", "data")))
def legalize_recurrent(builder: Pt2Legalizer) -> Results:
    """
    The outputs of the last layer, and the last states of all layers and directions.

    A packed sequence is padded for it: past the end of one its states stay.
    """
    if builder.flag("train") and builder.number("dropout"):
        builder.refuse("random numbers", "dropout 0", "call model.eval()")
    x = builder.input("data" if builder.has("data") else "input")
    states = builder.inputs("hx") if builder.name == "lstm" else [builder.input("hx")]
    packed = _Packed.of(builder, dims_of(states[0])[1]) if builder.has("data") else None
    single = packed is None and rank_of(x) == 2
    if packed is not None:
        x = packed.padded(x).value
    elif single:
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
        mask = None if packed is None else packed.mask.value
        if place % directions == 0:
            return _direction(builder, source, first, weights, mask)
        mask = None if mask is None else reversed_steps(builder, mask)
        source = reversed_steps(builder, source)
        after, output = _direction(builder, source, first, weights, mask)
        return after, reversed_steps(builder, output)

    x, lasts = layers_of(builder, x, states, layers, directions, run)
    if packed is not None:
        return [packed.packed(x, dims_of(builder.input("data"))[0]), *lasts]
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
    builder: Pt2Legalizer,
    x: SSAValue,
    states: Sequence[SSAValue],
    weights: Sequence[SSAValue],
    mask: SSAValue | None,
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
        if mask is not None:
            number_ = inner.dims([number], [])
            goes_on = TensorValue(inner, inner.add(GatherOp(mask, number_, 0, inside=True)))
            goes_on = goes_on.reshape([dims_of(mask)[1], 1])
            pairs = zip(following, state, strict=True)
            following = tuple(goes_on.where(new, old) for new, old in pairs)
        return following, (following[0],)

    after, outputs = run_steps(builder, length, states, step)
    return after, outputs[0]


# Packed sequences: the rows of all that go on at a step, one step after the other


@dataclass(frozen=True)
class _Packed:
    """Which steps of which sequences there are."""

    mask: TensorValue
    """i1 [time, batch]"""

    @staticmethod
    def of(builder: Pt2Legalizer, batch: Expr) -> _Packed:
        """By the number of sequences that go on at each step."""
        counts = builder.value("batch_sizes").cast(i64).column(2, 0)
        return _Packed(TensorValue.iota(builder, batch).column(2, 1).lt(counts))

    def padded(self, rows: SSAValue) -> TensorValue:
        """[time, batch, ...], anything where there is no step."""
        builder, flat = self.mask.builder, product(self.mask.dims)
        flags = self.mask.reshape([flat]).cast(i64)
        place = TensorValue(builder, builder.add(CumulativeOp("sum", flags.value, 0))) - 1
        found = TensorValue(builder, builder.add(GatherOp(rows, place.maximum(0).value, 0)))
        return found.reshape([*self.mask.dims, *dims_of(rows)[1:]])

    def packed(self, x: SSAValue, count: Expr | None) -> SSAValue:
        """The rows of [time, batch, ...] that are there, of which there are `count`."""
        builder = self.mask.builder
        assert isinstance(builder, Legalizer)
        flat = builder.reshape(x, [product(self.mask.dims), *dims_of(x)[2:]])
        mask = self.mask.reshape([dims_of(flat)[0]])
        places = nonzero_places(builder, mask.value)
        places = places if count is None else builder.slice_axis(places, 0, 0, count)
        return builder.add(GatherOp(flat, places, 0))


@legalizes("_pack_padded_sequence")
def legalize_pack(builder: Pt2Legalizer) -> Results:
    """Sequences from the longest to the shortest, and how many go on at each step."""
    x, lengths = builder.input("input"), builder.value("lengths").cast(i64)
    if builder.flag("batch_first"):
        x = builder.transpose(x, [1, 0, *range(2, rank_of(x))])
    length = size_of(builder, lengths.pick(0, 0).value, "the longest length")
    x = builder.slice_axis(x, 0, 0, length)
    mask = TensorValue.iota(builder, length).column(2, 0).lt(lengths.column(2, 1))
    rows = _Packed(mask.broadcast(dims_of(x)[:2])).packed(x, None)
    return [rows, mask.cast(i64).reduce("sum", [1]).value]


@legalizes("_pad_packed_sequence")
def legalize_unpack(builder: Pt2Legalizer) -> Results:
    """[time, batch, ...] with a number behind the end of each sequence, and the lengths."""
    rows, counts = builder.input("data"), builder.value("batch_sizes").cast(i64)
    batch = size_of(builder, counts.pick(0, 0).value, "the number of sequences")
    packed = _Packed.of(builder, batch)
    rank = rank_of(rows) + 1
    mask = packed.mask.reshape([*packed.mask.dims, *[1] * (rank - 2)])
    x = mask.where(packed.padded(rows), builder.number("padding_value")).value
    total = builder.expr("total_length")
    if total != -1:
        zeros = [Expr.const(0)] * rank
        end = [total - dims_of(x)[0], *zeros[1:]]
        x = pad(builder, x, zeros, end, builder.scalar(builder.number("padding_value"), x))
    if builder.flag("batch_first"):
        x = builder.transpose(x, [1, 0, *range(2, rank)])
    return [x, packed.mask.cast(i64).reduce("sum", [0]).value]
