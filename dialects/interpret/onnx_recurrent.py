"""
RNN, GRU and LSTM of ONNX in numpy, with what `onnx.reference` leaves out: lengths of sequences,
directions, functions and clipping.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.utils.exceptions import InterpretationError

from lowerdeck.dialects.onnx.ops import OnnxOp

Array: TypeAlias = NDArray[Any]
Function: TypeAlias = Callable[[Array], Array]
Cell: TypeAlias = Callable[[Array, "list[Array]"], "list[Array]"]
"""From the input of a step and the states to the next states."""

Formula: TypeAlias = Callable[[Array, "list[float]"], Array]
"""Of an argument and parameters."""

_FUNCTIONS: dict[str, tuple[Formula, tuple[float, ...]]] = {
    "affine": (lambda x, p: p[0] * x + p[1], (1.0, 0.0)),
    "elu": (lambda x, p: np.where(x < 0, p[0] * np.expm1(np.minimum(x, 0)), x), (1.0,)),
    "hardsigmoid": (lambda x, p: np.clip(p[0] * x + p[1], 0, 1), (0.2, 0.5)),
    "leakyrelu": (lambda x, p: np.where(x < 0, p[0] * x, x), (0.01,)),
    "relu": (lambda x, p: np.maximum(x, 0), ()),
    "scaledtanh": (lambda x, p: p[0] * np.tanh(p[1] * x), (1.0, 1.0)),
    "sigmoid": (lambda x, p: 0.5 * np.tanh(0.5 * x) + 0.5, ()),
    "softplus": (lambda x, p: np.logaddexp(x, 0), ()),
    "softsign": (lambda x, p: x / (1 + np.abs(x)), ()),
    "tanh": (lambda x, p: np.tanh(x), ()),
    "thresholdedrelu": (lambda x, p: np.where(x > p[0], x, 0), (1.0,)),
}
"""The functions by name, with the defaults of their parameters."""

_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_DIRECTIONS = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}


def run_recurrent(op: OnnxOp, args: Sequence[Array | None]) -> list[Array]:
    """The outputs; InterpretationError where the sizes of operands do not fit together."""
    named = {formal.name: arg for formal, arg in zip(op.schema.inputs, args, strict=False)}
    x, w, r = (_given(op, named, name) for name in ("X", "W", "R"))
    is_batch_major = _flag(op, "layout")
    x = x.swapaxes(0, 1) if is_batch_major else x
    (time, batch, _), (directions, _, hidden) = x.shape, r.shape
    lengths = named.get("sequence_lens")
    lengths = np.full(batch, time) if lengths is None else lengths
    states: list[Array] = []
    for name in ("initial_h", "initial_c")[: 2 if op.op_type == "LSTM" else 1]:
        state = named.get(name)
        if state is None:
            state = np.zeros((directions, batch, hidden), x.dtype)
        elif is_batch_major:
            state = state.swapaxes(0, 1)
        if state.shape != (directions, batch, hidden):
            raise InterpretationError(f"{op.name}: {name} is not for {batch} sequences")
        states.append(state)
    functions = _functions(op, directions)
    outputs: list[Array] = []
    finals: list[list[Array]] = []
    for k, step in enumerate(_DIRECTIONS[op.get_string("direction") or "forward"]):
        own = {name: None if (v := named.get(name)) is None else v[k] for name in ("B", "P")}
        cell = _CELLS[op.op_type](op, w[k], r[k], own["B"], own["P"], functions[k])
        output, final = _run(x, lengths, [state[k] for state in states], cell, step)
        outputs.append(output)
        finals.append(final)
    sequence = np.stack(outputs, 1)
    last = [np.stack(column) for column in zip(*finals, strict=True)]
    if is_batch_major:
        sequence, last = sequence.transpose(2, 0, 1, 3), [s.swapaxes(0, 1) for s in last]
    return [sequence, *last][: len(op.results)]


def _given(op: OnnxOp, named: dict[str, Array | None], name: str) -> Array:
    if (array := named.get(name)) is None:
        raise InterpretationError(f"{op.name}: no {name}")
    return array


def _flag(op: OnnxOp, name: str) -> bool:
    """An attribute that older versions do not have."""
    return name in op.schema.attributes and bool(op.get_int(name))


def _functions(op: OnnxOp, directions: int) -> list[list[Function]]:
    """Those of each direction; parameters belong to the functions that have any, in order."""
    defaults = _DEFAULTS[op.op_type]
    # A default in the schema may be for two directions, whatever the direction.
    own = op.get_strings("activations") if "activations" in op.properties else None
    names = defaults * directions if own is None else own
    sources = [iter(op.get_floats(f"activation_{n}") or ()) for n in ("alpha", "beta")]
    clip, count = op.get_float("clip"), len(defaults)
    functions: list[Function] = []
    for name in names:
        call, usual = _FUNCTIONS[name.lower()]
        parameters = [next(s, default) for s, default in zip(sources, usual, strict=False)]
        # As in ONNX Runtime the cell state, of which an LSTM takes the third, is not bounded.
        bound = clip if len(functions) % count < 2 else None
        functions.append(_function(call, parameters, bound))
    return [functions[k : k + count] for k in range(0, len(functions), count)]


def _function(call: Formula, parameters: list[float], bound: float | None) -> Function:
    def function(x: Array) -> Array:
        x = x if bound is None else np.clip(x, -bound, bound)
        return call(x, parameters)

    return function


def _run(
    x: Array, lengths: Array, states: list[Array], cell: Cell, step: int
) -> tuple[Array, list[Array]]:
    """
    The outputs of all steps in the order of time, and the last states. Sequences that do not reach
    a step keep their states, and give zeros; without any step the states are zeros, too, as in ONNX
    Runtime.
    """
    outputs = np.zeros((*x.shape[:2], states[0].shape[-1]), x.dtype)
    for time in range(len(x))[::step]:
        runs = (time < lengths)[:, None]
        after = cell(x[time], states)
        states = [np.where(runs, new, old) for new, old in zip(after, states, strict=True)]
        outputs[time] = np.where(runs, after[0], 0)
    return outputs, [np.where((lengths > 0)[:, None], state, 0) for state in states]


def _rnn(
    op: OnnxOp, w: Array, r: Array, b: Array | None, p: Array | None, functions: list[Function]
) -> Cell:
    (f,) = functions
    bias = 0 if b is None else sum(np.split(b, 2))
    return lambda x, states: [f(x @ w.T + states[0] @ r.T + bias)]


def _gru(
    op: OnnxOp, w: Array, r: Array, b: Array | None, p: Array | None, functions: list[Function]
) -> Cell:
    f, g = functions
    wb, rb = np.split(np.zeros(2 * len(w), w.dtype) if b is None else b, 2)
    (rz, rr, rh), (bz, br, bh) = np.split(r, 3), np.split(rb, 3)
    is_linear = _flag(op, "linear_before_reset")

    def cell(x: Array, states: list[Array]) -> list[Array]:
        (h,) = states
        xz, xr, xh = np.split(x @ w.T + wb, 3, -1)
        z, reset = f(xz + h @ rz.T + bz), f(xr + h @ rr.T + br)
        product = reset * (h @ rh.T + bh) if is_linear else (reset * h) @ rh.T + bh
        return [(1 - z) * g(xh + product) + z * h]

    return cell


def _lstm(
    op: OnnxOp, w: Array, r: Array, b: Array | None, p: Array | None, functions: list[Function]
) -> Cell:
    f, g, last = functions
    bias = 0 if b is None else sum(np.split(b, 2))
    pi, po, pf = (0, 0, 0) if p is None else np.split(p, 3)
    is_coupled = _flag(op, "input_forget")

    def cell(x: Array, states: list[Array]) -> list[Array]:
        h, c = states
        i, o, forget, new = np.split(x @ w.T + h @ r.T + bias, 4, -1)
        i = f(i + pi * c)
        forget = 1 - i if is_coupled else f(forget + pf * c)
        c = forget * c + i * g(new)
        return [f(o + po * c) * last(c), c]

    return cell


_CELLS: dict[str, Callable[..., Cell]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
