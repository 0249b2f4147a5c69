"""Operators that remember: LSTM, RNN and SVDF, of floats, hybrid and of integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from fuzz.tflite_graphs import Graph, Scale, Value


def _matrix(g: Graph, shape: Sequence[int], hybrid: bool) -> Value:
    if hybrid:
        g.requantizes = True
        q = Scale((float(np.float32(2.0 ** g.rng.uniform(-10, -7))),), (0,))
        return g.constant(g.hybrid_weights(shape), "INT8", q)
    # A matrix that made its states longer would double rounding errors with every step.
    longest = 2 * math.sqrt(shape[-1]) if len(shape) == 2 else 2
    return g.constant(g.weights(shape, "FLOAT32") / np.float32(longest), "FLOAT32")


def _input(g: Graph, rank: int, type_: str = "FLOAT32") -> Value:
    return g.pick(type_, rank=rank, exact=True)


def _weights_of_lstm(g: Graph, x: int, units: int, h: int, hybrid: bool) -> list[Value | None]:
    """Inputs 1 to 17: weights, peepholes, biases and projection."""
    with_input, peepholes = g.chance(0.7), g.chance(0.4)

    def vectors(present: bool, size: int = units) -> Value | None:
        return _matrix(g, [size], False) if present else None

    gates = [with_input, True, True, True]
    found: list[Value | None] = [
        _matrix(g, [units, size], hybrid) if there else None for size in (x, h) for there in gates
    ]
    # Peepholes are integers where the weights are.
    found += [
        _matrix(g, [units], hybrid) if peepholes and there else None
        for there in (with_input, True, True)
    ]
    found += [vectors(there) for there in gates]
    projected = h != units or g.chance(0.2)
    found.append(_matrix(g, [h, units], hybrid) if projected else None)
    found.append(vectors(projected and g.chance(0.5), h))
    return found


def _clips(g: Graph) -> dict[str, object]:
    return {
        "fused_activation_function": "TANH",
        "cell_clip": g.rng.choice([0.0, 0.0, 1.5]),
        "proj_clip": g.rng.choice([0.0, 0.0, 0.8]),
    }


def lstm(g: Graph) -> object:
    """LSTM of a step or of a sequence, with all that it may have."""
    x = _input(g, 3)
    hybrid, major = g.chance(0.4), g.chance(0.5)
    units = g.size(5)
    h = g.size(4) if g.chance(0.3) else units
    batch = x.shape[1] if major else x.shape[0]
    given = _weights_of_lstm(g, x.shape[2], units, h, hybrid)
    state = [g.state([batch, size], "FLOAT32") for size in (h, units)]
    norms: list[Value | None] = []
    if g.chance(0.3):
        norms = [None if given[0] is None else _matrix(g, [units], False)]
        norms += [_matrix(g, [units], False) for _ in range(3)]
    options = {**_clips(g), "time_major": major, "asymmetric_quantize_inputs": g.chance(0.5)}
    return g.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [x, *given, *state, *norms],
        ([*x.shape[:2], h], "FLOAT32", None),
        options=("UnidirectionalSequenceLSTMOptions", options),
        exact=False,
    )


def lstm_of_bytes(g: Graph) -> object:
    """LSTM of bytes with cells of 16 bits."""
    x = _input(g, 3, "INT8")
    major = g.chance(0.5)
    units = g.size(5)
    h = g.size(4) if g.chance(0.4) else units
    batch = x.shape[1] if major else x.shape[0]
    with_input, peepholes, normed = g.chance(0.7), g.chance(0.4), g.chance(0.4)
    projected = h != units or g.chance(0.2)
    # The kernel goes through cells as if there were as many as outputs.
    peepholes = peepholes and h == units
    gates = [with_input, True, True, True]
    out = g.scale("INT8", -8, -6)

    def constant(shape: Sequence[int], type_: str, low: int, high: int) -> Value:
        q = Scale((float(np.float32(2.0 ** g.rng.uniform(low, high))),), (0,))
        if type_ == "INT32":
            values = g.numbers.integers(-9000, 9000, shape).astype("i4")
            return g.constant(values, type_, q)
        return g.constant(g.weights(shape, type_), type_, q)

    given: list[Value | None] = [
        constant([units, size], "INT8", -9, -6) if there else None
        for size in (x.shape[2], h)
        for there in gates
    ]
    given += [
        constant([units], "INT16", -16, -14) if peepholes and there else None
        for there in (with_input, True, True)
    ]
    given += [constant([units], "INT32", -15, -13) if there else None for there in gates]
    given.append(constant([h, units], "INT8", -9, -6) if projected else None)
    given.append(constant([h], "INT32", -15, -13) if projected and g.chance(0.5) else None)
    cell = Scale((2.0 ** g.rng.randint(-14, -9),), (0,))
    given += [g.state([batch, h], "INT8", out), g.state([batch, units], "INT16", cell)]
    if normed:
        given += [constant([units], "INT16", -15, -13) if there else None for there in gates]
    inner = [g.inner("INT16", Scale((2.0 ** g.rng.uniform(-12, -10),), (0,))) for _ in range(4)]
    hidden = g.inner("INT8", g.scale("INT8", -8, -7) if projected else out)
    options = {**_clips(g), "time_major": major}
    return g.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [x, *given],
        ([*x.shape[:2], h], "INT8", out),
        options=("UnidirectionalSequenceLSTMOptions", options),
        intermediates=[*inner, hidden],
    )


def bidirectional_lstm(g: Graph) -> object:
    """Two LSTMs, of which one goes backwards."""
    x = _input(g, 3)
    hybrid, major = g.chance(0.3), g.chance(0.5)
    # LiteRT leaves places unwritten where merged outputs have the batch first.
    merged = g.chance(0.5) and (major or x.shape[0] == 1)
    units = g.size(4)
    batch = x.shape[1] if major else x.shape[0]
    ways = [_weights_of_lstm(g, x.shape[2], units, units, hybrid) for _ in range(2)]
    states = [g.state([batch, units], "FLOAT32") for _ in range(4)]
    options = {
        **_clips(g),
        "time_major": major,
        "merge_outputs": merged,
        "asymmetric_quantize_inputs": g.chance(0.5),
    }
    widths = [2 * units] if merged else [units, units]
    return g.op(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        [x, *ways[0], *ways[1], *states, *([None] * 9)],
        *(([*x.shape[:2], width], "FLOAT32", None) for width in widths),
        options=("BidirectionalSequenceLSTMOptions", options),
        exact=False,
    )


_RNN = ("NONE", "RELU", "RELU6", "TANH", "RELU_N1_TO_1")


def rnn(g: Graph) -> object:
    """RNN of a step or of a sequence."""
    is_sequence = g.chance(0.6)
    x = _input(g, 3 if is_sequence else 2)
    hybrid, major, units = g.chance(0.4), g.chance(0.5), g.size(5)
    batch = x.shape[1] if is_sequence and major else x.shape[0]
    inputs = [
        x,
        _matrix(g, [units, x.shape[-1]], hybrid),
        _matrix(g, [units, units], hybrid),
        _matrix(g, [units], False),
        g.state([batch, units], "FLOAT32"),
    ]
    options: dict[str, object] = {
        "fused_activation_function": g.rng.choice(_RNN),
        "asymmetric_quantize_inputs": g.chance(0.5),
    }
    if is_sequence:
        options["time_major"] = major
    return g.op(
        "UNIDIRECTIONAL_SEQUENCE_RNN" if is_sequence else "RNN",
        inputs,
        ([*x.shape[:-1], units], "FLOAT32", None),
        options=("SequenceRNNOptions" if is_sequence else "RNNOptions", options),
        exact=False,
    )


def bidirectional_rnn(g: Graph) -> object:
    """Two RNNs, of which one goes backwards."""
    x = _input(g, 3)
    hybrid, major, merged = g.chance(0.3), g.chance(0.5), g.chance(0.5)
    # LiteRT's products of integers differ by the order of the dimensions, which means nothing.
    hybrid = hybrid and not major
    batch = x.shape[1] if major else x.shape[0]
    units = [g.size(4), g.size(4)]
    inputs: list[Value | None] = [x]
    for count in units:
        inputs += [_matrix(g, [count, x.shape[2]], hybrid), _matrix(g, [count, count], hybrid)]
        inputs += [_matrix(g, [count], False), g.state([batch, count], "FLOAT32")]
    options = {
        "fused_activation_function": g.rng.choice(_RNN),
        "asymmetric_quantize_inputs": g.chance(0.5),
        "time_major": major,
        "merge_outputs": merged,
    }
    widths = [sum(units)] if merged else units
    return g.op(
        "BIDIRECTIONAL_SEQUENCE_RNN",
        [*inputs, None, None, None],
        *(([*x.shape[:2], width], "FLOAT32", None) for width in widths),
        options=("BidirectionalSequenceRNNOptions", options),
        exact=False,
    )


def svdf(g: Graph) -> object:
    """SVDF of floats, hybrid, and of bytes."""
    kind = g.rng.choice(["FLOAT32", "hybrid", "INT8"])
    x = _input(g, 2, "INT8" if kind == "INT8" else "FLOAT32")
    units, rank, memory = g.size(4), g.rng.randint(1, 3), g.size(6)
    filters, shape = units * rank, [x.shape[0], units]
    options = ("SVDFOptions", {
        "rank": rank,
        "fused_activation_function": "RELU" if x.type == "INT8" else g.rng.choice(["NONE", "RELU"]),
        "asymmetric_quantize_inputs": g.chance(0.5),
    })  # fmt: skip
    state = [x.shape[0], memory * filters]
    if x.type == "INT8":
        feature, time = Scale((2.0**-8,), (0,)), Scale((2.0**-12,), (0,))
        inner = Scale((2.0 ** g.rng.uniform(-12, -9),), (0,))
        bias = g.numbers.integers(-5000, 5000, units).astype("i4")
        inputs = [
            x,
            g.constant(g.weights([filters, x.shape[1]], "INT8"), "INT8", feature),
            g.constant(g.weights([filters, memory], "INT16"), "INT16", time),
            g.constant(bias, "INT32", Scale((inner.scale * time.scale,), (0,))),
            g.state(state, "INT16", inner),
        ]
        return g.op("SVDF", inputs, (shape, "INT8", g.scale("INT8", -4, 0)), options=options)
    hybrid = kind == "hybrid"
    inputs = [
        x,
        _matrix(g, [filters, x.shape[1]], hybrid),
        _matrix(g, [filters, memory], hybrid),
        _matrix(g, [units], False) if g.chance(0.7) else None,
        g.state(state, "FLOAT32"),
    ]
    return g.op("SVDF", inputs, (shape, "FLOAT32", None), options=options, exact=False)


RECIPES: tuple[Callable[[Graph], object], ...] = (
    lstm, lstm_of_bytes, bidirectional_lstm, rnn, bidirectional_rnn, svdf, svdf,
)  # fmt: skip
