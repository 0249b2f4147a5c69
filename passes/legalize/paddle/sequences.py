"""Operators on sequences, of which there is one: all rows."""

from __future__ import annotations

from lowerdeck.dialects.core.types import dims_of, i64
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.recurrent import parts
from lowerdeck.passes.legalize.common.sequences import (
    FUNCTIONS,
    Function,
    gru_over_rows,
    likeliest_path,
    likeliest_paths,
    lstm_over_rows,
)
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _function(builder: PaddleLegalizer, name: str) -> Function:
    return FUNCTIONS[builder.choice(f"{name}activation", *FUNCTIONS)]


@legalizes("gru", "lstm")
def legalize_cells(builder: PaddleLegalizer) -> Results:
    """Over rows that are multiplied by the weights of the input already."""
    x, weight, is_back = builder.value("input"), builder.input("weight"), builder.flag("is_reverse")
    hidden, width = dims_of(weight)
    bias = builder.optional("bias")
    if bias is not None:
        x = x + TensorValue(builder, builder.slice_axis(bias, 1, 0, width))
    rows = x.reshape([x.dims[0], 1, width]).value
    zero = builder.broadcast(builder.scalar(0, x.element), [1, hidden])
    first, gate = builder.optional("h0") or zero, _function(builder, "gate_")
    if builder.name == "gru":
        given = {"is_back": is_back, "keeps": builder.flag("origin_mode")}
        own = _function(builder, "")
        found = gru_over_rows(builder, rows, first, weight, gate, own, **given)
        return builder.results(hidden=builder.squeeze(found, [1]))
    has_looks = builder.flag("use_peepholes") and bias is not None
    looks = parts(builder.value("bias"), 7, hidden)[4:] if has_looks else [0.0] * 3
    functions = [gate, _function(builder, "candidate_"), _function(builder, "cell_")]
    states = [first, builder.optional("c0") or zero]
    found = lstm_over_rows(builder, rows, states, weight, looks, functions, is_back=is_back)
    hidden_rows, cells = (builder.squeeze(one, [1]) for one in found)
    return builder.results(hidden=hidden_rows, cell=cells)


def _likeliest(builder: PaddleLegalizer) -> Results:
    """
    The likeliest labels [time, 1], or whether they are those given; the first two rows of the
    weights are those of the beginning and the end.
    """
    if builder.optional("length") is not None:
        builder.refuse("padded sequences", "the rows of one sequence")
    table, scores = builder.value("transition"), builder.value("emission")
    moves = TensorValue(builder, builder.slice_axis(table.value, 0, 2, table.dims[1]))
    path = likeliest_path(builder, scores, table.pick(0, 0), table.pick(0, 1), moves)
    found = TensorValue(builder, path).reshape([scores.dims[0], 1])
    label = builder.optional("label")
    return found if label is None else found.eq(builder.value("label").cast(i64)).cast(i64)


@legalizes("viterbi_decode")
def legalize_viterbi(builder: PaddleLegalizer) -> Results:
    """The likeliest labels up to the longest length; the last two rows may be those of the ends."""
    scores, moves = builder.value("potentials"), builder.value("transition_params")
    lengths, is_tagged = builder.value("lengths").cast(i64), builder.flag("include_bos_eos_tag")
    first, last = (moves.pick(0, moves.dims[0] - k) if is_tagged else None for k in (1, 2))
    best, path = likeliest_paths(builder, scores, lengths, first, last, moves)
    (longest,) = sizes_of(builder, lengths.reduce("max", [0]).value, "the longest length")
    path = builder.slice(path.value, [Expr.const(0)] * 2, [scores.dims[0], longest])
    return builder.results(scores=best.value, path=path)


legalizes.rows({"crf_decoding": _likeliest, "lod_reset": lambda b: b.input("x")})
