"""Recurrent cells that are one operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowerdeck.dialects.interpret.tf1.math import sigmoid
from lowerdeck.dialects.interpret.tf1.registry import Array, kernel, scalar, widened
from lowerdeck.dialects.tf1.ops import Tf1Op

Step = tuple[Array, Array, Array, Array, Array, Array, Array]
"""i, cs, f, o, ci, co and h, as the operators give them."""


def _step(
    op: Tf1Op, x: Array, cs_prev: Array, h_prev: Array, weights: Sequence[Array], gates: str
) -> Step:
    """
    One step of an LSTM. `gates` is the order of the gates in the weights: i input, c new
    content, f forget, o output.
    """
    w, wci, wcf, wco, b = weights
    parts = np.split(np.concatenate([x, h_prev], 1) @ w + b, 4, 1)
    i, ci, f, o = (parts[gates.index(gate)] for gate in "icfo")
    if "forget_bias" in op.signature.attrs:
        f = f + op.attr("forget_bias")
    if op.attr("use_peephole"):
        i, f = i + cs_prev * wci, f + cs_prev * wcf
    i, f, ci = sigmoid(i), sigmoid(f), np.tanh(ci)
    cs = ci * i + cs_prev * f
    if (clip := op.attr("cell_clip")) > 0:
        cs = np.clip(cs, -clip, clip)
    if op.attr("use_peephole"):
        o = o + cs * wco
    o, co = sigmoid(o), np.tanh(cs)
    return i, cs, f, o, ci, co, co * o


@kernel("LSTMBlockCell")
def run_lstm_block_cell(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """One step, gates in the order i, ci, f, o."""
    x, cs_prev, h_prev, w, wci, wcf, wco, b = (widened(arg) for arg in args)
    step = _step(op, x, cs_prev, h_prev, (w, wci, wcf, wco, b), "icfo")
    return tuple(value.astype(args[0].dtype) for value in step)


@kernel("BlockLSTM", "BlockLSTMV2")
def run_block_lstm(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """
    A sequence [time, batch, input], of which the first `seq_len_max` steps are made; what follows
    is zero. The second version has its gates in the order i, f, ci, o.
    """
    length = scalar(args[0])
    x, cs, h, w, wci, wcf, wco, b = (widened(arg) for arg in args[1:])
    gates = "icfo" if op.op_type == "BlockLSTM" else "ifco"
    outputs = [np.zeros((len(x), *cs.shape), x.dtype) for _ in range(7)]
    for time in range(min(length, len(x))):
        step = _step(op, x[time], cs, h, (w, wci, wcf, wco, b), gates)
        cs, h = step[1], step[6]
        for output, value in zip(outputs, step, strict=True):
            output[time] = value
    return tuple(output.astype(args[1].dtype) for output in outputs)


@kernel("GRUBlockCell")
def run_gru_block_cell(_: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """r, u, c and h; the reset gate is applied before the product."""
    x, h_prev, w_ru, w_c, b_ru, b_c = (widened(arg) for arg in args)
    r, u = np.split(sigmoid(np.concatenate([x, h_prev], 1) @ w_ru + b_ru), 2, 1)
    c = np.tanh(np.concatenate([x, h_prev * r], 1) @ w_c + b_c)
    h = u * h_prev + (1 - u) * c
    return tuple(value.astype(args[0].dtype) for value in (r, u, c, h))
