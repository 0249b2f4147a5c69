"""LSTM, GRU and plain recurrent layers: one layer and direction after the other, over time."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.movement import pad
from lowerdeck.passes.legalize.common.recurrent import GATES, cell, recurrent, times
from lowerdeck.passes.legalize.common.selection import nonzero_places
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes(*(f"{name}.{form}" for name in GATES for form in ("input", "data")))
def legalize_recurrent(builder: Pt2Legalizer) -> Results:
    """
    The outputs of the last layer, and the last states of all layers and directions. A packed
    sequence is padded for it: past the end of one its states stay.
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
        x, *states = (builder.unsqueeze(value, [1]) for value in (x, *states))
    elif builder.flag("batch_first"):
        x = builder.transpose(x, [1, 0, 2])
    directions, params = 2 if builder.flag("bidirectional") else 1, builder.inputs("params")
    layers = builder.integer("num_layers") * directions
    if layers < 1 or not params or len(params) % layers:
        builder.refuse(f"{len(params)} weights for {layers} layers", "as many for each")
    each = len(params) // layers
    weights = [params[k : k + each] for k in range(0, len(params), each)]
    lengths = packed and packed.lengths
    x, lasts = recurrent(builder, builder.name, x, states, weights, directions, lengths)
    if packed is not None:
        return [packed.packed(x, dims_of(builder.input("data"))[0]), *lasts]
    if single:
        return [builder.squeeze(value, [1]) for value in (x, *lasts)]
    x = builder.transpose(x, [1, 0, 2]) if builder.flag("batch_first") else x
    return [x, *lasts]


@legalizes(*(f"{name}_cell" for name in GATES))
def legalize_cell(builder: Pt2Legalizer) -> Results:
    """One step, with or without a batch."""
    x, name = builder.input("input"), builder.name.removesuffix("_cell")
    states = builder.inputs("hx") if name == "lstm" else [builder.input("hx")]
    if single := rank_of(x) == 1:
        x, *states = (builder.unsqueeze(value, [0]) for value in (x, *states))
    w, r = (builder.transpose(builder.input(key), [1, 0]) for key in ("w_ih", "w_hh"))
    state = tuple(TensorValue.of(builder, value) for value in states)
    sums = [times(TensorValue.of(builder, x), w), times(state[0], r)]
    for place, key in enumerate(("b_ih", "b_hh")):
        if (bias := builder.optional(key)) is not None:
            sums[place] = sums[place] + TensorValue.of(builder, bias)
    found = cell(name, sums[0], sums[1], state, dims_of(r)[1] // GATES[name])
    return [builder.squeeze(value.value, [0]) if single else value.value for value in found]


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

    @property
    def lengths(self) -> TensorValue:
        """i64 [batch]"""
        return self.mask.cast(i64).reduce("sum", [0])

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
    return [x, packed.lengths]
