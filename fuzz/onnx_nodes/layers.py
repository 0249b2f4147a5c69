"""Recurrent and quantized layers, signals, losses and attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.onnx_graphs import BOOL, F32, F64, I32, I64, Builder, Skip, recipe
from fuzz.onnx_nodes.conditions import has_nan, is_finite
from fuzz.onnx_nodes.movement import indices
from fuzz.onnx_nodes.products import spatial, window

U8, I8 = np.dtype(np.uint8), np.dtype(np.int8)

# Recurrent


@recipe("RNN", "GRU", "LSTM", weight=3)
def recurrent(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    steps, batch, size, hidden = (b.random.choice((1, 2, 3)) for _ in range(4))
    direction = b.random.choice((None, "forward", "reverse", "bidirectional"))
    count = 2 if direction == "bidirectional" else 1
    inputs: list[Any] = [
        b.pick(dtype, (steps, batch, size), sane=True),
        b.pick(dtype, (count, gates * hidden, size), sane=True, computed=0.1, closed=True),
        b.pick(dtype, (count, gates * hidden, hidden), sane=True, computed=0.1, closed=True),
    ]
    inputs.append(
        b.pick(dtype, (count, 2 * gates * hidden), sane=True, closed=True)
        if b.chance(0.5)
        else None
    )
    inputs.append(None)
    if b.chance(0.2):
        inputs[-1] = b.parameter([b.random.randint(1, steps) for _ in range(batch)], np.int32)
    state = (count, batch, hidden)
    inputs.append(b.pick(dtype, state, sane=True, closed=True) if b.chance(0.4) else None)
    if op == "LSTM":
        inputs.append(b.pick(dtype, state, sane=True, closed=True) if b.chance(0.4) else None)
        if b.chance(0.3):
            inputs.append(b.pick(dtype, (count, 3 * hidden), sane=True))
    attributes: dict[str, Any] = {}
    if op == "GRU":
        attributes["linear_before_reset"] = b.random.choice((None, 0, 1))
    outputs = 3 if op == "LSTM" else 2
    absent = [k for k in range(outputs) if b.chance(0.3)]
    if len(absent) == outputs:
        absent = []
    b.node(op, inputs, outputs, absent, hidden_size=hidden, direction=direction, **attributes)


# Quantization


@recipe("QuantizeLinear", "DequantizeLinear", weight=4)
def quantize(b: Builder, op: str) -> None:
    wide = (
        [t for t in b.types(op, "T1" if op == "QuantizeLinear" and b.opset >= 19 else "T")]
        if False
        else [F32]
    )
    dtype = b.random.choice((U8, I8))
    if b.opset >= 21 and b.chance(0.2):
        dtype = np.dtype(b.random.choice((np.int16, np.uint16)))
    source = wide[0] if op == "QuantizeLinear" else dtype
    if op == "DequantizeLinear" and b.chance(0.1):
        source = dtype = I32
    x = b.pick(source, sane=True)
    shape: tuple[int, ...] = ()
    axis = None
    if b.opset >= 13 and x.array.ndim and b.chance(0.4):
        axis = b.axis(x.array.ndim)
        shape = (x.array.shape[axis],)
    scale = b.leaf(
        (np.abs(b.array(F32, shape, True)) + np.float32(0.25)).clip(0.1, 4).astype(np.float32), 0.2
    )
    if np.isnan(scale.array).any():
        raise Skip
    point: Any = b.leaf(b.array(dtype, shape), 0.2) if b.chance(0.7) else None
    if dtype == I32 and point is not None:
        point = b.leaf(np.zeros(shape, np.int32), 0.2)
    if op == "QuantizeLinear" and point is None and dtype != U8:
        point = b.leaf(np.zeros(shape, dtype), 0)
    if op == "QuantizeLinear" and has_nan(x.array):
        raise Skip
    b.node(op, [x, scale, point], axis=axis)


@recipe("DynamicQuantizeLinear", weight=2)
def dynamic_quantize(b: Builder, op: str) -> None:
    x = b.pick(F32, sane=True, test=b.mostly(lambda a: bool(a.any() and np.isfinite(a).all())))
    b.node(op, [x], 3)


@recipe("QLinearMatMul", "QLinearConv", weight=2)
def quantized_product(b: Builder, op: str) -> None:
    kinds = [b.random.choice((U8, I8)), b.random.choice((U8, I8))]
    output = b.random.choice((U8, I8))
    if op == "QLinearConv":
        output = kinds[0]
    attributes: dict[str, Any] = {}
    if op == "QLinearMatMul":
        m, k, n = b.dim(), b.dim(), b.dim()
        shapes = [(m, k), (k, n)]
    else:
        size, kernel = spatial(b, 2), [b.random.choice((1, 2, 3)) for _ in range(2)]
        attributes = window(b, 2, size, kernel, op)
        shapes = [(1, 2, *size), (3, 2, *kernel)]
    inputs: list[Any] = []
    for kind, shape in zip(kinds, shapes, strict=True):
        scale = b.leaf(np.array(b.random.choice((0.5, 0.1, 0.03)), np.float32), 0.1)
        inputs += [b.pick(kind, shape), scale, b.leaf(b.array(kind, ()), 0.1)]
    inputs += [
        b.leaf(np.array(b.random.choice((0.5, 0.1)), np.float32), 0.1),
        b.leaf(b.array(output, ()), 0.1),
    ]
    b.node(op, inputs, **attributes)


# Signals, losses and the rest


@recipe("HannWindow", "HammingWindow", "BlackmanWindow", weight=1)
def signal_window(b: Builder, op: str) -> None:
    size = b.parameter(b.random.randint(3, 9), b.random.choice((np.int64, np.int32)))
    b.node(op, [size], periodic=b.random.choice((None, 0, 1)))


@recipe("DFT", weight=2)
def dft(b: Builder, op: str) -> None:
    dtype = b.random.choice((F32, F32, F64))
    rank = b.random.choice((1, 2))
    parts = b.random.choice((1, 2))
    x = b.pick(
        dtype,
        (b.random.choice((1, 2)), *(b.random.randint(2, 6) for _ in range(rank)), parts),
        sane=True,
        test=b.mostly(is_finite),
        closed=True,
    )
    inverse = b.random.choice((None, 0, 1)) if parts == 2 else None
    onesided = b.random.choice((None, 0, 1)) if parts == 1 else None
    length = b.parameter(b.random.randint(2, 7)) if b.chance(0.3) else None
    axis = b.random.randint(1, rank)
    if b.opset < 20:
        b.node(op, [x, length], axis=axis, inverse=inverse, onesided=onesided)
    else:
        b.node(op, [x, length, b.parameter(axis)], inverse=inverse, onesided=onesided)


@recipe("STFT", weight=1)
def stft(b: Builder, op: str) -> None:
    x = b.pick(F32, (1, b.random.choice((12, 16)), 1), sane=True, test=b.mostly(is_finite))
    size = b.random.choice((4, 5))
    window_ = b.pick(F32, (size,), sane=True, test=is_finite) if b.chance(0.6) else None
    length = None if window_ is not None and b.chance(0.5) else b.leaf(np.array(size, np.int64), 0)
    b.node(
        op,
        [x, b.parameter(b.random.randint(2, 4)), window_, length],
        onesided=b.random.choice((None, 0, 1)),
    )


@recipe("MelWeightMatrix", weight=1)
def mel(b: Builder, op: str) -> None:
    numbers = [b.parameter(n) for n in (b.random.randint(3, 6), b.random.choice((16, 32)), 8000)]
    edges = [b.parameter(n, np.float32) for n in (b.random.choice((0.0, 100.0)), 3000.0)]
    b.node(op, [*numbers, *edges])


@recipe("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", weight=2)
def loss(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    classes, rest = b.random.randint(2, 5), b.shape(b.random.choice((0, 1, 2)))
    batch = b.random.randint(1, 3)
    x = b.pick(dtype, (batch, classes, *rest), sane=True)
    target = b.leaf(indices(b, b.random.choice((I64, I32)), (batch, *rest), classes, False))
    weights = b.pick(dtype, (classes,), sane=True) if b.chance(0.4) else None
    outputs = 2 if op == "SoftmaxCrossEntropyLoss" and b.chance(0.3) else 1
    b.node(
        op,
        [x, target, weights],
        outputs,
        reduction=b.random.choice((None, "none", "mean", "sum")),
        ignore_index=b.random.choice((None, None, 0, 1)),
    )


@recipe("NonMaxSuppression", weight=2)
def non_max_suppression(b: Builder, op: str) -> None:
    n = b.random.randint(1, 6)
    corners = np.array([[b.random.random() * 3 for _ in range(4)] for _ in range(n)])
    boxes = np.concatenate([corners[:, :2], corners[:, :2] + corners[:, 2:] + 0.1], 1)
    inputs: list[Any] = [
        b.leaf(boxes[None].astype(np.float32)),
        b.leaf(np.array([[[b.random.random() for _ in range(n)]]], np.float32)),
    ]
    inputs.append(b.parameter([b.random.randint(1, 4)]) if b.chance(0.9) else None)
    inputs.append(
        b.parameter([b.random.choice((0.3, 0.5, 0.0))], np.float32) if b.chance(0.7) else None
    )
    inputs.append(b.parameter([b.random.choice((0.3, 0.5))], np.float32) if b.chance(0.5) else None)
    b.node(op, inputs, center_point_box=b.random.choice((None, 0, 1)))


@recipe("Dropout", weight=2)
def dropout(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op))
    if b.opset < 12:
        b.node(op, [x], ratio=b.random.choice((None, 0.5)))
        return
    ratio = b.leaf(np.array(0.5, np.float32), 0.2) if b.chance(0.5) else None
    training = b.leaf(np.array(False), 0) if b.chance(0.2) else None
    b.node(op, [x, ratio, training], b.random.choice((1, 1, 2)))


@recipe("Attention", weight=3)
def attention(b: Builder, op: str) -> None:
    dtype = b.dtype(op, "T1")
    batch, heads, size, wide = (b.random.randint(1, 3) for _ in range(4))
    queries, keys = b.random.randint(1, 5), b.random.randint(1, 5)
    group = b.random.choice((1, 1, 2))
    kinds = [(heads * group, queries, wide), (heads, keys, wide), (heads, keys, size)]
    inputs: list[Any] = [b.pick(dtype, (batch, *kind), sane=True) for kind in kinds]
    if b.chance(0.4):
        mask = b.random.choice((BOOL, dtype))
        inputs.append(
            b.pick(mask, b.random.choice(((queries, keys), (batch, 1, queries, keys))), sane=True)
        )
    b.node(
        op,
        inputs,
        is_causal=b.random.choice((None, 0, 1)),
        scale=b.random.choice((None, 0.5)),
        softcap=b.random.choice((None, None, 2.0)),
    )


@recipe("RotaryEmbedding", weight=2)
def rotary(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    batch, heads, length, size = (
        1,
        b.random.randint(1, 2),
        b.random.randint(1, 4),
        b.random.choice((2, 4, 8)),
    )
    x = b.pick(dtype, (batch, heads, length, size), sane=True)
    tables = [b.pick(dtype, (5, size // 2), sane=True) for _ in range(2)]
    at = b.leaf(indices(b, I64, (batch, length), 5, False))
    b.node(op, [x, *tables, at], interleaved=b.random.choice((None, 0, 1)))


@recipe("TensorScatter", weight=1)
def tensor_scatter(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, (2, 1, 4, 3))
    y = b.pick(dtype, (2, 1, 2, 3))
    at = (
        b.leaf(np.array([b.random.randint(0, 2) for _ in "ab"], np.int64))
        if b.chance(0.8)
        else None
    )
    b.node(op, [x, y, at], mode=b.random.choice((None, "linear", "circular")))
