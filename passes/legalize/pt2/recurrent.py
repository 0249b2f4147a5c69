"""LSTM, GRU and plain recurrent layers: one layer and direction after the other, over time."""

from __future__ import annotations

from functools import partial

from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.movement import pad
from lowerdeck.passes.legalize.common.packed import Packed
from lowerdeck.passes.legalize.common.quantization import in_own_steps
from lowerdeck.passes.legalize.common.recurrent import GATES, cell, recurrent, times
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes(
    *(f"{name}.{form}" for name in GATES for form in ("input", "data")),
    *(f"quantized_{name}.{form}" for name in ("lstm", "gru") for form in ("input", "data")),
)
def legalize_recurrent(builder: Pt2Legalizer) -> Results:
    """
    The outputs of the last layer, and the last states of all layers and directions. A packed
    sequence is padded for it: past the end of one its states stay. Where inputs and states become
    bytes by their own extrema, the last of the weights is the largest byte.
    """
    if builder.flag("train") and builder.number("dropout"):
        builder.refuse("random numbers", "dropout 0", "call model.eval()")
    x = builder.input("data" if builder.has("data") else "input")
    name, factor = builder.name.removeprefix("quantized_"), None
    states = builder.inputs("hx") if name == "lstm" else [builder.input("hx")]
    packed = None
    if builder.has("data"):
        packed = Packed.of(builder.value("batch_sizes"), dims_of(states[0])[1])
    single = packed is None and rank_of(x) == 2
    if packed is not None:
        x = packed.padded(x).value
    elif single:
        x, *states = (builder.unsqueeze(value, [1]) for value in (x, *states))
    elif builder.flag("batch_first"):
        x = builder.transpose(x, [1, 0, 2])
    directions, params = 2 if builder.flag("bidirectional") else 1, builder.inputs("params")
    if name != builder.name:
        most = builder.require_int(params.pop(), "the largest byte")
        factor = partial(in_own_steps, most=most)
    layers = builder.integer("num_layers") * directions
    if layers < 1 or not params or len(params) % layers:
        builder.refuse(f"{len(params)} weights for {layers} layers", "as many for each")
    each = len(params) // layers
    weights = [params[k : k + each] for k in range(0, len(params), each)]
    lengths = packed and packed.lengths
    x, lasts = recurrent(builder, name, x, states, weights, directions, lengths, factor)
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


# Packed sequences


@legalizes("_pack_padded_sequence")
def legalize_pack(builder: Pt2Legalizer) -> Results:
    """Sequences from the longest to the shortest, and how many go on at each step."""
    x, lengths = builder.input("input"), builder.value("lengths").cast(i64)
    if builder.flag("batch_first"):
        x = builder.transpose(x, [1, 0, *range(2, rank_of(x))])
    length = size_of(builder, lengths.pick(0, 0).value, "the longest length")
    x = builder.slice_axis(x, 0, 0, length)
    mask = TensorValue.iota(builder, length).column(2, 0).lt(lengths.column(2, 1))
    rows = Packed(mask.broadcast(dims_of(x)[:2])).packed(x, None)
    return [rows, mask.cast(i64).reduce("sum", [1]).value]


@legalizes("_pad_packed_sequence")
def legalize_unpack(builder: Pt2Legalizer) -> Results:
    """[time, batch, ...] with a number behind the end of each sequence, and the lengths."""
    rows, counts = builder.input("data"), builder.value("batch_sizes").cast(i64)
    batch = size_of(builder, counts.pick(0, 0).value, "the number of sequences")
    packed = Packed.of(builder.value("batch_sizes"), batch)
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
