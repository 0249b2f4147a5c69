"""
Small models that together reach all kernels and all forms of the entry function: what fuzz_c.py
runs.

Inputs are open wherever the operators allow it. Numbers that say how long a loop runs are bounded:
a model that runs as many steps as it is told is right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
import onnx
import onnx.parser
from c_harness import Limits
from numpy.typing import NDArray
from onnx import numpy_helper
from tf1_graphs import random_program

from lowerdeck.compiler import CompileOptions
from lowerdeck.dialects.caffe.caffe_pb2 import NetParameter

Array: TypeAlias = NDArray[Any]

_TREE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Made:
    """A model as a file, and how it is compiled and run."""

    path: Path
    limits: Limits = field(default_factory=Limits)
    options: CompileOptions = field(default_factory=CompileOptions)


Maker: TypeAlias = Callable[[Path], Made]
"""Writes a model into a folder."""

MODELS: dict[str, Maker] = {}


def _onnx(
    name: str,
    inputs: str,
    outputs: str,
    nodes: str,
    weights: Mapping[str, Any] | None = None,
    *,
    opset: int = 18,
    values: Mapping[str, tuple[int, int]] | None = None,
    sizes: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """Register a model in the notation of onnx.parser; weights are arrays, or shapes."""

    def make(folder: Path) -> Made:
        text = f'<ir_version: 9, opset_import: ["" : {opset}]>\n{name} ({inputs}) => ({outputs}) {{'
        model = onnx.parser.parse_model(f"{text}{nodes}}}")
        rng = np.random.default_rng(len(name))
        for key, value in (weights or {}).items():
            array = np.asarray(value) if not _is_shape(value) else _random(rng, value)
            model.graph.initializer.append(numpy_helper.from_array(array, key))
        path = folder / f"{name}.onnx"
        cast(Any, onnx).save(model, str(path))
        return Made(path, Limits(values or {}, sizes or {}))

    MODELS[name] = make


def _is_shape(value: Any) -> TypeGuard[tuple[int, ...]]:
    return isinstance(value, tuple)


def _random(rng: np.random.Generator, shape: Sequence[int]) -> Array:
    return (rng.standard_normal(tuple(shape)) / 2).astype(np.float32)


_IMAGE = {"n": (1, 2), "h": (5, 8, 9, 12, 16), "w": (4, 6, 7, 8, 15, 16)}

# Convolutions

_onnx(
    "conv_small",
    "float[n, 3, h, w] x",
    "y, z",
    """
    a = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w1, b1)
    b = Relu(a)
    y = Conv<auto_pad = "SAME_LOWER", dilations = [2, 2]>(b, w2)
    c = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1>(b)
    z = GlobalAveragePool(c)
    """,
    {"w1": (5, 3, 3, 3), "b1": (5,), "w2": (2, 5, 2, 3)},
    sizes=_IMAGE,
)
_onnx(
    "conv_blocked",
    "float[1, 16, 12, 11] x",
    "y",
    """
    a = Conv<pads = [2, 2, 2, 2], strides = [2, 1]>(x, w1, b1)
    b = Clip(a, low, high)
    c = Conv(b, w2)
    d = Add(c, x2)
    e = Relu(d)
    f = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(e)
    y = AveragePool<kernel_shape = [3, 2], pads = [1, 0, 1, 1], count_include_pad = 1>(f)
    """,
    {
        "w1": (32, 16, 5, 5),
        "b1": (32,),
        "low": np.float32(0),
        "high": np.float32(6),
        "w2": (48, 32, 1, 1),
        "x2": (1, 48, 6, 11),
    },
)
_onnx(
    "conv_open_blocked",
    "float[n, 16, h, w] x",
    "y",
    """
    a = Conv<pads = [1, 1, 1, 1]>(x, w1, b1)
    b = Relu(a)
    c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(b, w2)
    d = Sigmoid(c)
    y = Mul(c, d)
    """,
    {"w1": (32, 16, 3, 3), "b1": (32,), "w2": (16, 32, 3, 3)},
    sizes=_IMAGE,
)
_onnx(
    "winograd",
    "float[1, 32, 18, 17] x",
    "y",
    """
    a = Conv<pads = [1, 1, 1, 1]>(x, w1, b1)
    b = Relu(a)
    y = Conv<pads = [0, 1, 1, 0]>(b, w2)
    """,
    {"w1": (32, 32, 3, 3), "b1": (32,), "w2": (32, 32, 3, 3)},
)
_onnx(
    "depthwise",
    "float[n, 24, h, w] x",
    "y, z",
    """
    a = Conv<pads = [1, 1, 1, 1], group = 24>(x, w1, b1)
    b = HardSwish(a)
    y = Conv<pads = [2, 2, 2, 2], group = 24, strides = [2, 2]>(b, w2)
    z = Conv<group = 24>(x, w3)
    """,
    {"w1": (24, 1, 3, 3), "b1": (24,), "w2": (24, 1, 5, 5), "w3": (48, 1, 2, 2)},
    sizes=_IMAGE,
)
_onnx(
    "conv_grouped",
    "float[n, 12, h, w] x",
    "y, z",
    """
    y = Conv<pads = [1, 0, 0, 1], group = 3>(x, w1, b1)
    z = Conv<group = 2, strides = [2, 3]>(x, w2)
    """,
    {"w1": (9, 4, 3, 3), "b1": (9,), "w2": (32, 6, 1, 2)},
    sizes=_IMAGE,
)
_onnx(
    "conv_1d_3d",
    "float[n, 4, t] x, float[2, 3, d, 6, 5] v",
    "y, z, p",
    """
    y = Conv<pads = [2, 0], dilations = [2]>(x, w1)
    z = Conv<pads = [1, 1, 1, 0, 0, 0], strides = [1, 2, 1]>(v, w3, b3)
    p = MaxPool<kernel_shape = [2, 2, 2], strides = [1, 2, 2]>(z)
    """,
    {"w1": (8, 4, 3), "w3": (4, 3, 2, 3, 2), "b3": (4,)},
    sizes={"n": (1, 3), "t": (1, 5, 9, 20), "d": (2, 4, 5)},
)
_onnx(
    "conv_transposed",
    "float[n, 6, h, w] x, float[1, 4, t] s",
    "y, z, q",
    """
    y = ConvTranspose<strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]>(x, w1, b1)
    z = ConvTranspose<group = 2, strides = [1, 3], dilations = [2, 1]>(x, w2)
    q = ConvTranspose<strides = [3]>(s, w3)
    """,
    {"w1": (6, 16, 3, 3), "b1": (16,), "w2": (6, 2, 2, 2), "w3": (4, 5, 4)},
    sizes={**_IMAGE, "t": (1, 4, 9)},
)
_onnx(
    "bands",
    "float[1, 8, 72, 70] x",
    "y",
    """
    a = Conv(x, w1, b1)
    b = Clip(a, low, high)
    c = Conv<pads = [1, 1, 1, 1], group = 64, strides = [2, 2]>(b, w2, b2)
    d = Clip(c, low, high)
    y = Conv(d, w3)
    """,
    {
        **{"w1": (64, 8, 1, 1), "b1": (64,), "w2": (64, 1, 3, 3), "b2": (64,), "w3": (4, 64, 1, 1)},
        **{"low": np.float32(0), "high": np.float32(6)},
    },
)
_onnx(
    "conv_computed_weights",
    "float[1, 4, h, w] x, float[6, 4, 3, 3] k, float[6] b",
    "y, z",
    """
    y = Conv<pads = [1, 1, 1, 1]>(x, k, b)
    z = ConvTranspose<strides = [2, 2]>(y, k)
    """,
    sizes=_IMAGE,
)
_onnx(
    "conv_half",
    "float16[n, 4, h, w] x",
    "y, z",
    """
    a = Conv<pads = [1, 1, 1, 1]>(x, w1, b1)
    y = Relu(a)
    p = GlobalAveragePool(y)
    z = Flatten(p)
    """,
    {
        "w1": np.linspace(-1, 1, 8 * 4 * 9).reshape(8, 4, 3, 3).astype(np.float16),
        "b1": np.ones(8, np.float16),
    },
    sizes=_IMAGE,
)
_onnx(
    "conv_bn_chain",
    "float[n, 3, h, w] x",
    "y",
    """
    a = Conv<pads = [1, 1, 1, 1]>(x, w1)
    b = BatchNormalization(a, s, b0, m, v)
    c = PRelu(b, slope)
    d = InstanceNormalization(c, s, b0)
    e = GroupNormalization<num_groups = 2>(d, g, g)
    f = LRN<size = 3>(e)
    h0 = LpNormalization<axis = 1>(f)
    y = DepthToSpace<blocksize = 2, mode = "CRD">(h0)
    """,
    {
        **{"w1": (8, 3, 3, 3), "s": (8,), "b0": (8,), "m": (8,), "slope": (8, 1, 1), "g": (2,)},
        "v": np.ones(8, np.float32),
    },
    sizes=_IMAGE,
)

# Products

_onnx(
    "matmul_open",
    "float[n, m, k] a, float[k, q] b, float[n, k, m] c",
    "y, z, v",
    """
    y = MatMul(a, b)
    z = MatMul(a, c)
    v = Softmax<axis = -1>(z)
    """,
    sizes={"n": (1, 2, 3), "m": (1, 4, 17), "k": (1, 7, 16), "q": (1, 5, 33)},
)
_onnx(
    "gemm",
    "float[n, 20] x, float[p, n] t",
    "y, z",
    """
    a = Gemm<transB = 1, alpha = 0.5>(x, w1, b1)
    b = Tanh(a)
    c = MatMul(b, w2)
    y = Add(c, b2)
    z = Gemm<transA = 1, transB = 1, beta = 2.0>(x, t, b3)
    """,
    {"w1": (48, 20), "b1": (48,), "w2": (48, 130), "b2": (130,), "b3": (20, 1)},
    sizes={"n": (1, 2, 5, 8), "p": (1, 3)},
)
_onnx(
    "attention",
    "float[n, t, 32] x, float[n, 1, 1, t] mask",
    "y",
    """
    q0 = MatMul(x, wq)
    k0 = MatMul(x, wk)
    v0 = MatMul(x, wv)
    q1 = Reshape(q0, heads)
    k1 = Reshape(k0, heads)
    v1 = Reshape(v0, heads)
    q = Transpose<perm = [0, 2, 1, 3]>(q1)
    k = Transpose<perm = [0, 2, 3, 1]>(k1)
    v = Transpose<perm = [0, 2, 1, 3]>(v1)
    s0 = MatMul(q, k)
    s1 = Mul(s0, scale)
    s2 = Add(s1, mask)
    p = Softmax<axis = -1>(s2)
    o0 = MatMul(p, v)
    o1 = Transpose<perm = [0, 2, 1, 3]>(o0)
    o2 = Reshape(o1, flat)
    o3 = MatMul(o2, wo)
    r = Add(o3, x)
    y = LayerNormalization<axis = -1>(r, g, b)
    """,
    {
        **{"wq": (32, 32), "wk": (32, 32), "wv": (32, 32), "wo": (32, 32), "g": (32,), "b": (32,)},
        "heads": np.array([0, 0, 4, 8]),
        "flat": np.array([0, 0, 32]),
        "scale": np.float32(0.35),
    },
    sizes={"n": (1, 2), "t": (1, 3, 16, 19)},
)
_onnx(
    "einsum",
    "float[a, b, c] x, float[b, c, d] y, double[b, b] w",
    "q, r",
    """
    q = Einsum<equation = "abc,bcd->dba">(x, y)
    r = Einsum<equation = "ii->i">(w)
    """,
    sizes={"a": (1, 2, 5), "b": (1, 3, 4), "c": (2, 7), "d": (1, 6)},
)
_onnx(
    "products_of_integers",
    "int32[n, k] a, int32[k, 5] b, uint8[n, 12] q, uint8 z",
    "y, i, c",
    """
    y = MatMul(a, b)
    i = MatMulInteger(q, w, z)
    s = Unsqueeze(q, axes)
    c = ConvInteger<pads = [1, 1]>(s, k3)
    """,
    {
        "w": np.arange(60, dtype=np.int8).reshape(12, 5),
        "k3": np.arange(6, dtype=np.uint8).reshape(2, 1, 3),
        "axes": np.array([1]),
    },
    sizes={"n": (1, 2, 7), "k": (1, 3, 9)},
)
_onnx(
    "products_of_doubles",
    "double[n, k] a, double[k, 9] b",
    "y, e",
    """
    y = MatMul(a, b)
    e = Exp(y)
    """,
    sizes={"n": (1, 2, 7), "k": (1, 3, 9)},
)

# Recurrence and loops

_onnx(
    "lstm",
    "float[t, n, 5] x, int32[n] lengths",
    "y, h, c",
    """
    y, h, c = LSTM<hidden_size = 6, direction = "bidirectional">(x, w, r, b, lengths)
    """,
    {"w": (2, 24, 5), "r": (2, 24, 6), "b": (2, 48)},
    sizes={"t": (1, 3, 5), "n": (1, 2, 3)},
)
_onnx(
    "gru_rnn",
    "float[t, n, 5] x, float[1, n, 16] h0",
    "y, z, h",
    """
    y, yh = GRU<hidden_size = 16, linear_before_reset = 1>(x, w, r, b, , h0)
    z, h = RNN<hidden_size = 3, direction = "reverse">(x, w2, r2)
    """,
    {"w": (1, 48, 5), "r": (1, 48, 16), "b": (1, 96), "w2": (1, 3, 5), "r2": (1, 3, 3)},
    sizes={"t": (1, 3, 5), "n": (1, 2, 3)},
)
_onnx(
    "loop_growing",
    "int64 trips, float[n, 2] x, bool go",
    "y, s, last",
    """
    y, last, s = Loop(trips, go, x, x) <body = b (int64 i, bool c, float[p, 2] v, float[q, 2] w)
        => (c2, v2, w2, scan) {
        v2 = Concat<axis = 0>(v, x)
        w2 = Identity(v)
        f = Cast<to = 1>(i)
        scan = ReduceSum<keepdims = 0>(v)
        total = Add(scan, f)
        limit = Constant<value_float = 1000.0>()
        c2 = Less(total, limit)
      }>
    """,
    values={"trips": (-2, 6)},
    sizes={"n": (1, 2, 4)},
)
_onnx(
    "loop_nested_if",
    "int64 trips, float[n] x, int64[1] k",
    "y, z",
    """
    one = Constant<value_int = 1>()
    zero = Constant<value_int = 0>()
    y, z = Loop(trips, , x) <body = b (int64 i, bool c, float[p] v) => (c2, v2, part) {
        odd = Mod(i, two)
        is_odd = Cast<to = 9>(odd)
        v2 = If(is_odd) <
          then_branch = t () => (a) { a = Slice(v, zeros, k) },
          else_branch = e () => (a2) {
            a2 = Loop(i, , v) <body = bb (int64 j, bool cc, float[u] r) => (cc2, r2) {
                r2 = Concat<axis = 0>(r, r)
                cc2 = Identity(cc)
            }>
          }>
        part = ReduceMax<keepdims = 0>(v2)
        c2 = Identity(c)
      }>
    """,
    {"two": np.int64(2), "zeros": np.array([0])},
    values={"trips": (-1, 4)},
    sizes={"n": (1, 2, 4)},
)
_onnx(
    "scan",
    "float[n, 3] start, float[t, n, 3] xs, float[n, t] ys",
    "last, all, sums",
    """
    last, all, sums = Scan<num_scan_inputs = 2, scan_input_axes = [0, 1],
      scan_input_directions = [0, 1], scan_output_axes = [0, 1], scan_output_directions = [1, 0],
      body = b (float[n, 3] s, float[n, 3] x, float[n] y) => (s2, o1, o2) {
        axes = Constant<value_ints = [1]>()
        y1 = Unsqueeze(y, axes)
        p = Mul(x, y1)
        s1 = Add(s, p)
        s2 = Tanh(s1)
        o1 = Identity(s1)
        o2 = ReduceSum<keepdims = 0>(s2, axes)
      }>(start, xs, ys)
    """,
    sizes={"t": (1, 2, 5), "n": (1, 2, 3)},
)
_onnx(
    "loop_in_place",
    "int64 trips, float[8, 3] table, int64[m] rows, float[m, 3] rows_new",
    "y",
    """
    go = Constant<value_int = 1>()
    y = Loop(trips, , table) <body = b (int64 i, bool c, float[8, 3] v) => (c2, v2) {
        axes = Constant<value_ints = [1]>()
        at = Unsqueeze(rows, axes)
        v2 = ScatterND(v, at, rows_new)
        c2 = Identity(c)
      }>
    """,
    values={"trips": (0, 4)},
    sizes={"m": (0, 1, 3)},
)
_onnx(
    "sequences",
    "float[n, 4] x, float[8, m] z, int64 at",
    "y, count, part, all",
    """
    empty = SequenceEmpty<dtype = 1>()
    s = Loop(three, , empty) <body = b (int64 i, bool c, seq(float[k, 4]) v) => (c2, v2) {
        f = Cast<to = 1>(i)
        xf = Add(x, f)
        v2 = SequenceInsert(v, xf)
        c2 = Identity(c)
      }>
    y = ConcatFromSequence<axis = 0>(s)
    count = SequenceLength(s)
    pieces = SplitToSequence<axis = 0, keepdims = 1>(z, size)
    part = SequenceAt(pieces, at)
    fewer = SequenceErase(pieces, first)
    all = ConcatFromSequence<axis = 0>(fewer)
    """,
    {"three": np.int64(3), "size": np.int64(2), "first": np.int64(0)},
    sizes={"n": (1, 4, 6), "m": (1, 5)},
)

# Pools, images

_onnx(
    "pools",
    "float[n, 4, h, w] x, double[1, 2, t] s",
    "y, i, a, l, m, g",
    """
    y, i = MaxPool<kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1],
        dilations = [1, 2]>(x)
    a = AveragePool<kernel_shape = [2, 3], strides = [2, 2], auto_pad = "SAME_UPPER">(x)
    l = LpPool<kernel_shape = [2, 2], p = 3>(x)
    m = GlobalMaxPool(x)
    g = MaxPool<kernel_shape = [3], strides = [3]>(s)
    """,
    sizes={**_IMAGE, "t": (3, 8)},
)
_onnx(
    "pool_of_bytes",
    "int8[n, 3, h, w] x, uint8[1, 3, 8, 8] u",
    "y, v",
    """
    y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
    v = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(u)
    """,
    sizes=_IMAGE,
)
_onnx(
    "unpool",
    "float[1, 1, h, w] x, int64[1, 1, h, w] i",
    "y",
    """
    y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i)
    """,
    values={},
    sizes={"h": (1, 2, 4), "w": (1, 3)},
)
_onnx(
    "resize",
    "float[n, 2, h, w] x, float[4] scales",
    "a, c",
    """
    a = Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">(x, , by)
    c = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric",
        nearest_mode = "floor">(x, , scales)
    """,
    {"by": np.array([1, 1, 2, 1.5], np.float32)},
    sizes={"n": (1,), "h": (1, 4, 6), "w": (1, 3, 8)},
    values={"scales": (1, 3)},
)
_onnx(
    "resize_to",
    "float[n, 2, h, w] x, int64[4] size",
    "b, d",
    """
    b = Resize<mode = "cubic", coordinate_transformation_mode = "align_corners">(x, , , to)
    d = Resize<mode = "linear">(x, , , size)
    """,
    {"to": np.array([1, 2, 7, 5])},
    sizes={"n": (1,), "h": (1, 4, 6), "w": (1, 3, 8)},
    values={"size": (0, 9)},
)
_onnx(
    "grid_sample",
    "float[n, 3, h, w] x, float[n, p, q, 2] grid",
    "y, z",
    """
    y = GridSample<mode = "linear", padding_mode = "reflection">(x, grid)
    z = GridSample<mode = "nearest", padding_mode = "border", align_corners = 1>(x, grid)
    """,
    opset=20,
    sizes={"n": (1, 2), "h": (2, 5), "w": (3, 4), "p": (1, 3), "q": (2, 5)},
)
_onnx(
    "roi_align",
    "float[n, 3, h, w] x, float[r, 4] rois, int64[r] batch",
    "a",
    """
    a = RoiAlign<output_height = 2, output_width = 2, mode = "max",
        sampling_ratio = 1>(x, rois, batch)
    """,
    sizes={"n": (1, 2), "h": (2, 5), "w": (3, 4), "r": (0, 1, 3)},
)
_onnx(
    "roi_adaptive",
    "float[1, 2, 6, 7] x, float[r, 4] rois, int64[r] batch",
    "y",
    """
    y = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 0>(x, rois, batch)
    """,
    values={"rois": (-2, 9)},
    sizes={"r": (0, 1, 3)},
)
_onnx(
    "suppression",
    "float[n, b, 4] boxes, float[n, c, b] scores, int64[1] most, float[1] iou, float[1] least",
    "y",
    """
    y = NonMaxSuppression(boxes, scores, most, iou, least)
    """,
    sizes={"n": (1, 2), "b": (1, 4, 9), "c": (1, 3)},
)

# Indices

_onnx(
    "gathers",
    "float[n, m] x, int64[k] i, int64[k, 2] pairs, int64[k, m] e, int32[2, 2] few",
    "a, b, c, d, f",
    """
    a = Gather<axis = 0>(x, i)
    b = Gather<axis = 1>(x, few)
    c = GatherND(x, pairs)
    d = GatherElements<axis = 0>(x, e)
    f = Gather<axis = 0>(table, i)
    """,
    {"table": (10, 33)},
    sizes={"n": (1, 4, 6), "m": (1, 3, 20), "k": (0, 1, 5)},
)
_onnx(
    "scatters",
    "float[n, m] x, int64[k] i, int64[k, 2] pairs, float[k] u, int64[k, m] e, float[k, m] v",
    "a, b, c, d, f",
    """
    a = ScatterND(x, pairs, u)
    b = ScatterND<reduction = "add">(x, pairs, u)
    c = ScatterElements<axis = 0>(x, e, v)
    d = ScatterElements<axis = 0, reduction = "max">(x, e, v)
    axes = Constant<value_ints = [1]>()
    rows = Unsqueeze(i, axes)
    f = ScatterND(x, rows, v)
    """,
    sizes={"n": (1, 4, 6), "m": (1, 3, 20), "k": (0, 1, 5)},
)
_onnx(
    "batched_indices",
    "float[n, 4, m] x, int64[n, k, 1] i, float[n, 4, m] y, int64[4] s, int32[n, 4, 1] e",
    "a, o, g, r",
    """
    a = GatherND<batch_dims = 1>(x, i)
    o = OneHot<axis = -1>(s, depth, values)
    g = GatherElements<axis = 2>(y, e)
    r = ReverseSequence<batch_axis = 1, time_axis = 0>(x, s)
    """,
    {"depth": np.int64(5), "values": np.array([0, 1], np.float32)},
    sizes={"n": (1, 2), "m": (1, 3, 9), "k": (0, 1, 3)},
)
_onnx(
    "one_hot_open",
    "int32[n] i, int64 depth, float[2] values, double[m] d",
    "y, z",
    """
    y = OneHot<axis = 0>(i, depth, values)
    z = OneHot(d, depth, values)
    """,
    values={"depth": (-3, 20)},
    sizes={"n": (1, 4), "m": (1, 3)},
)
_onnx(
    "top",
    "float[n, m] x, int64[1] k, int32[m] s, float16[m] h",
    "v, i, w, j, a, b, p, q",
    """
    v, i = TopK<axis = 1>(x, k)
    w, j = TopK<axis = 0, largest = 0>(s, three)
    a = ArgMax<axis = 1, keepdims = 0>(x)
    b = ArgMin<axis = 0, select_last_index = 1>(x)
    p, q = TopK(h, k)
    """,
    {"three": np.array([3])},
    sizes={"n": (1, 2), "m": (3, 5, 20)},
)
_onnx(
    "counted",
    "float[n, m] x, bool[n] keep, int64[k] u, bool[n, m] flags",
    "z, c, d, a, b, e, f, g",
    """
    z = NonZero(x)
    c = Compress<axis = 0>(x, keep)
    d = Compress(x, keep)
    a, b, e, f = Unique<sorted = 1>(u)
    t = Transpose(z)
    g = GatherND(x, t)
    """,
    sizes={"n": (0, 1, 4), "m": (1, 3), "k": (0, 1, 7)},
)
_onnx(
    "unique_rows",
    "int32[n, m] x, float[k] s",
    "a, b, c, d, f",
    """
    a, b, c, d = Unique<axis = 0, sorted = 0>(x)
    f, g, h, i = Unique(s)
    """,
    sizes={"n": (0, 1, 4), "m": (1, 3), "k": (0, 1, 7)},
)

# Shapes from data

_onnx(
    "run_time_shapes",
    "float[n, m] x, int64[2] shape, int64[4] pads, int64[2] repeats",
    "p, t, f",
    """
    p = Pad(x, pads)
    t = Tile(x, repeats)
    f = ConstantOfShape<value = float[1] {2.5}>(shape)
    """,
    values={"repeats": (-1, 5), "shape": (-1, 9), "pads": (-1, 6)},
    sizes={"n": (1, 2, 4), "m": (1, 3, 6)},
)
_onnx(
    "reshape_open",
    "float[n, m] x, int64[2] target, int64[2] shape",
    "r, e",
    """
    r = Reshape(x, target)
    e = Expand(x, shape)
    """,
    values={"target": (-1, 2), "shape": (-1, 2)},
    sizes={"n": (1, 2), "m": (1, 2)},
)
_onnx(
    "shapes_unbounded",
    "float[n, m] x, int64[2] shape, int64[2] repeats, int64[2] target",
    "t, f, r",
    """
    t = Tile(x, repeats)
    f = ConstantOfShape<value = int64[1] {3}>(shape)
    r = Reshape(x, target)
    """,
    sizes={"n": (1, 2), "m": (1, 2)},
)
_onnx(
    "pads_unbounded",
    "float[n, m] x, int64[4] pads, int64[2] shape, float value",
    "a, b, c, z",
    """
    a = Pad<mode = "constant">(x, pads, value)
    b = Pad<mode = "reflect">(x, pads)
    c = Pad<mode = "edge">(x, pads)
    z = Expand(x, shape)
    """,
    sizes={"n": (1, 2, 4), "m": (1, 3, 6)},
)
_onnx(
    "slices",
    "float[n, m] x, int64[2] starts, int64[2] ends, int64[2] steps, int32[1] s, int32[1] e",
    "a, b, c",
    """
    a = Slice(x, starts, ends)
    axes = Constant<value_ints = [1, 0]>()
    b = Slice(x, starts, ends, axes, steps)
    one = Constant<value_ints = [0]>()
    last = Cast<to = 6>(one)
    c = Slice(x, s, e, last)
    """,
    sizes={"n": (1, 4), "m": (1, 3, 9)},
)
_onnx(
    "ranges",
    "int64 start, int64 limit, int64 delta, float a, float b, float c, int32 s, int32 t, int32 u",
    "y, z, v",
    """
    y = Range(start, limit, delta)
    z = Range(a, b, c)
    v = Range(s, t, u)
    """,
)
_onnx(
    "splits",
    "float[n, m] x, int64[2] sizes, int64[3] dims",
    "a, b, c, d, y",
    """
    a, b = Split<axis = 1>(x, sizes)
    c, d = Split<axis = 0, num_outputs = 2>(x)
    s = Shape(x)
    p = ReduceProd<keepdims = 0>(s)
    f = Flatten<axis = 1>(x)
    g = Reshape(f, dims)
    y = Squeeze(g, first)
    """,
    {"first": np.array([0])},
    sizes={"n": (2,), "m": (1, 2, 3)},
    values={"sizes": (0, 2), "dims": (-1, 2)},
)
_onnx(
    "shape_arithmetic",
    "float[n, c, h, w] x, int64[1] k",
    "y, z, e",
    """
    s = Shape(x)
    two = Constant<value_ints = [2]>()
    one = Constant<value_ints = [1]>()
    half = Div(s, two)
    more = Add(half, one)
    z = ConstantOfShape(more)
    m = Max(k, one)
    q = Min(m, two)
    t = Mul(s, q)
    e = Expand(x, s)
    rest = Slice(s, one, two)
    total = Size(x)
    axes = Constant<value_ints = [0]>()
    flat = Unsqueeze(total, axes)
    y = Reshape(x, flat)
    """,
    sizes={"n": (1, 2), "c": (1, 3), "h": (1, 4), "w": (2, 5)},
)

# Elements

_onnx(
    "elementwise",
    "float[n, m] x, float[m] y, float[n, 1] z",
    "a, b, c, d, e, f",
    """
    a1 = Add(x, y)
    a2 = Mul(a1, z)
    a3 = Exp(a2)
    a4 = Erf(a3)
    a5 = Pow(a4, z)
    a = Softplus(a5)
    b1 = Log(x)
    b2 = Sqrt(z)
    b = Div(b1, b2)
    c1 = Sin(x)
    c2 = Tan(c1)
    c3 = Atan(c2)
    c4 = Sinh(c3)
    c = Acosh(c4)
    d1 = Floor(x)
    d2 = Round(y)
    d3 = Mod<fmod = 1>(d1, d2)
    d4 = Ceil(z)
    g = Greater(x, z)
    d = Where(g, d3, d4)
    e1 = Gelu(x)
    e2 = Selu(e1)
    e3 = Mish(e2)
    e = Elu<alpha = 0.5>(e3)
    f = IsNaN(x)
    """,
    opset=20,
    sizes={"n": (1, 4), "m": (1, 16, 37)},
)
_onnx(
    "integers",
    "int64[n] a, int64[n] b, int8[n] c, int8[n] d, uint16[n] e, uint16[n] f, int32[n] g, "
    "uint64[n] h",
    "o1, o2, o3, o4, o5, o6, o7, o8, o9",
    """
    d1 = Div(a, b)
    m1 = Mod(a, b)
    o1 = Sub(d1, m1)
    d2 = Div(c, d)
    m2 = Mod<fmod = 1>(c, d)
    o2 = Mul(d2, m2)
    s1 = BitShift<direction = "LEFT">(e, f)
    o3 = BitShift<direction = "RIGHT">(s1, f)
    o4 = Pow(a, b)
    n1 = Neg(g)
    a1 = Abs(n1)
    o5 = Sign(a1)
    x1 = BitwiseXor(g, n1)
    o6 = BitwiseNot(x1)
    o7 = CumSum<exclusive = 1, reverse = 1>(a, zero)
    o8 = Mod(h, h)
    o9 = ReduceSum<keepdims = 0>(g)
    """,
    {"zero": np.int32(0)},
    sizes={"n": (1, 5, 33)},
)
_onnx(
    "casts",
    "float[n] x, double[n] d, int64[n] i, float16[n] h, bfloat16[n] b, uint8[n] u, bool[n] t",
    "o1, o2, o3, o4, o5, o6, o7, o8, o9, o10",
    """
    o1 = Cast<to = 3>(x)
    o2 = Cast<to = 7>(d)
    o3 = Cast<to = 10>(d)
    o4 = Cast<to = 16>(x)
    o5 = Cast<to = 13>(h)
    o6 = Cast<to = 6>(b)
    o7 = Cast<to = 2>(i)
    o8 = Cast<to = 9>(d)
    v = Cast<to = 5>(u)
    o9 = Cast<to = 12>(x)
    w = Cast<to = 1>(t)
    o10 = Cast<to = 10>(i)
    """,
    opset=19,
    sizes={"n": (1, 5, 33)},
)
_onnx(
    "halves",
    "float16[n, 8] x, bfloat16[n, 8] b, double[n, 8] d",
    "y, z, v",
    """
    a = MatMul(x, w)
    s = Softmax<axis = 1>(a)
    y = Exp(s)
    c = Mul(b, b)
    z = ReduceMax<keepdims = 0>(c, axes)
    e = Softmax<axis = 0>(d)
    v = LayerNormalization<axis = 1>(e, g)
    """,
    {
        "w": np.ones((8, 5), np.float16),
        "axes": np.array([1]),
        "g": np.ones(8),
    },
    sizes={"n": (1, 3, 9)},
)
_onnx(
    "quantized",
    "float[n, 3, 8, 7] x, float[3] scales, uint8[n, 6] q, float one, uint8 zero",
    "y, z, p, d",
    """
    a = QuantizeLinear(x, s0, z0)
    b = QLinearConv<pads = [1, 1, 1, 1]>(a, s0, z0, w, s1, z1, s0, z0)
    y = DequantizeLinear(b, s0, z0)
    z = QuantizeLinear<axis = 1>(x, scales)
    m = QLinearMatMul(q, one, zero, w2, s0, z2, s0, z0)
    p = DequantizeLinear(m, one, zero)
    d, ds, dz = DynamicQuantizeLinear(x)
    """,
    {
        "s0": np.float32(0.05),
        "z0": np.uint8(128),
        "w": np.arange(-54, 54, dtype=np.int8).reshape(4, 3, 3, 3),
        "s1": np.float32(0.02),
        "z1": np.int8(1),
        "w2": np.arange(30, dtype=np.uint8).reshape(6, 5),
        "z2": np.uint8(3),
    },
    sizes={"n": (1, 2)},
)
_onnx(
    "reductions",
    "float[n, m, k] x, int64[a] axes, int32[n, m] i",
    "r1, r2, r3, r4, r5, r6, r7, r8",
    """
    r1 = ReduceSum<keepdims = 1>(x, middle)
    r2 = ReduceLogSumExp<keepdims = 0>(x, ends)
    r3 = ReduceL2(x)
    r4 = ReduceMean<keepdims = 0>(x, first)
    r5 = ReduceMin<keepdims = 0>(i, last)
    r6 = ReduceProd(i)
    r7 = LogSoftmax<axis = 1>(x)
    r8 = Hardmax<axis = 2>(x)
    """,
    {
        "middle": np.array([1]),
        "ends": np.array([0, 2]),
        "first": np.array([0]),
        "last": np.array([-1]),
    },
    sizes={"n": (1, 4), "m": (1, 3, 8), "k": (1, 5, 33)},
)
_onnx(
    "movements",
    "float[n, m, k] x, float[m, k] y, uint8[n, 4, 4] u",
    "t1, t2, t3, t4, t5, t6",
    """
    t1 = Transpose<perm = [2, 0, 1]>(x)
    t2 = Transpose<perm = [0, 2, 1]>(x)
    t3 = Transpose(u)
    y1 = Unsqueeze(y, axes)
    t4 = Concat<axis = 0>(x, y1, x)
    t5 = Trilu<upper = 0>(y, offset)
    t6 = EyeLike<k = 1>(y)
    """,
    {"axes": np.array([0]), "offset": np.int64(1)},
    sizes={"n": (1, 4), "m": (1, 16, 19), "k": (1, 5, 33)},
)
_onnx(
    "trilu_open",
    "float[n, m] x, int64 k, int64 axis, int64[n] lengths, int32[t] w",
    "a, b, c, e",
    """
    a = Trilu<upper = 1>(x, k)
    b = CumSum(x, zero)
    s = Shape(x)
    c = Gather(s, k)
    e = CumSum<reverse = 1>(w, zero)
    """,
    {"zero": np.int64(0)},
    sizes={"n": (1, 4), "m": (1, 16), "t": (1, 9)},
)
_onnx(
    "signals",
    "float[1, t, 1] x, int64 size",
    "y, w",
    """
    y = DFT(x)
    w = HannWindow(size)
    """,
    values={"size": (-2, 40)},
    sizes={"t": (1, 8, 12)},
)

# Other frameworks


def _file(name: str, path: str, weights: str | None = None) -> None:
    """Register a model of the project's own tree."""

    def make(folder: Path) -> Made:
        options = CompileOptions(
            import_options={} if weights is None else {"weights": _TREE / weights}
        )
        return Made(_TREE / path, options=options)

    MODELS[name] = make


def _functions(name: str) -> None:
    """Register a graph of TensorFlow with functions, with loops and arrays; `n` counts steps."""

    def make(folder: Path) -> Made:
        base = _TREE / "test" / "end_to_end" / "functions" / name
        with np.load(base.with_suffix(".npz")) as file:
            outputs = [key.removeprefix("out/0/") for key in file.files if key.startswith("out/0/")]
        limits = Limits({"n:0": (0, 6), "k:0": (-2, 5)})
        return Made(base.with_suffix(".pb"), limits, CompileOptions(outputs=outputs))

    MODELS[f"tf_{name}"] = make


def _caffe(name: str, text: str, weights: Mapping[str, Sequence[Sequence[int]]]) -> None:
    """Register a net by its layers, each from its name on, and the shapes of their weights."""

    def make(folder: Path) -> Made:
        path = folder / f"{name}.prototxt"
        layers = re.split(r"\n\s*(?=name:)", text.strip())
        path.write_text("".join(f"layer {{ {layer} }}\n" for layer in layers))
        net, rng = NetParameter(), np.random.default_rng(len(name))
        for layer, shapes in weights.items():
            message = net.layer.add(name=layer)
            for shape in shapes:
                blob = message.blobs.add(data=_random(rng, shape).ravel().tolist())
                blob.shape.dim.extend(shape)
        path.with_suffix(".caffemodel").write_bytes(net.SerializeToString())
        return Made(path)

    MODELS[name] = make


def _graph(name: str) -> None:
    """Register a graph of TensorFlow's nodes whose loops end for all numbers that it is run on."""

    def make(folder: Path) -> Made:
        base = _TREE / "test" / "end_to_end" / "raw_graphs" / name
        case = json.loads(base.with_suffix(".json").read_text())
        values = {key: (0, 40) for key in case["runs"][0]["inputs"]}
        options = CompileOptions(outputs=case["outputs"])
        return Made(base.with_suffix(".pbtxt"), Limits(values), options)

    MODELS[name] = make


def _random_graph(seed: int) -> None:
    """Register a graph with loops and branches as the fuzzer of TensorFlow's graphs draws it."""

    def make(folder: Path) -> Made:
        program = random_program(seed)
        path = folder / f"graph_{seed}.pb"
        path.write_bytes(program.graph.SerializeToString())
        values: dict[str, tuple[int, int]] = {}
        for name, value in program.feeds[0].items():
            values[name] = (int(np.min(value, initial=0)), int(np.max(value, initial=1)))
        options = CompileOptions(outputs=program.fetches)
        return Made(path, Limits(values), options)

    MODELS[f"graph_{seed}"] = make


_file("digits_cnn", "examples/digits/digits.onnx")
_file("digits_lenet", "examples/digits/digits_lenet.prototxt")
_file("digits_lstm", "examples/digits/digits_lstm.pb")
for _name in ("arrays_by_handle", "cases", "conditions", "frozen", "growing", "loops"):
    _functions(_name)
for _name in (
    "four_loops_deep",
    "search_with_two_ends",
    "three_ways_in_a_circle",
    "loop_with_break",
):
    _graph(_name)
for _seed in (3, 7, 12):
    _random_graph(_seed)
_caffe(
    "caffe_segmentation",
    """
    name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 13 dim: 11 } }
    name: "c1" type: "Convolution" bottom: "x" top: "c1"
        convolution_param { num_output: 8 kernel_size: 3 pad: 1 stride: 2 }
    name: "r1" type: "ReLU" bottom: "c1" top: "c1" relu_param { negative_slope: 0.1 }
    name: "n1" type: "LRN" bottom: "c1" top: "n1"
        lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL }
    name: "p1" type: "Pooling" bottom: "n1" top: "p1"
        pooling_param { kernel_size: 3 stride: 2 pool: AVE pad: 1 }
    name: "d1" type: "Deconvolution" bottom: "p1" top: "d1"
        convolution_param { num_output: 4 kernel_size: 4 stride: 2 group: 2 bias_term: false }
    name: "k1" type: "Crop" bottom: "d1" bottom: "c1" top: "k1" crop_param { axis: 2 offset: 1 }
    name: "m1" type: "MVN" bottom: "k1" top: "m1"
    name: "s1" type: "Softmax" bottom: "m1" top: "s1"
    name: "a1" type: "ArgMax" bottom: "s1" top: "a1" argmax_param { axis: 1 top_k: 2 }
    name: "b1" type: "SPP" bottom: "c1" top: "b1" spp_param { pyramid_height: 2 }
    """,
    {"c1": [(8, 3, 3, 3), (8,)], "d1": [(8, 2, 4, 4)]},
)
_caffe(
    "caffe_boxes",
    """
    name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 12 dim: 12 } }
    name: "c1" type: "Convolution" bottom: "x" top: "c1"
        convolution_param { num_output: 8 kernel_size: 3 pad: 1 }
    name: "n1" type: "Normalize" bottom: "c1" top: "n1"
        norm_param { across_spatial: false channel_shared: true }
    name: "p1" type: "Pooling" bottom: "n1" top: "p1" top: "k1"
        pooling_param { kernel_size: 2 stride: 2 }
    name: "t1" type: "Permute" bottom: "p1" top: "t1"
        permute_param { order: 0 order: 2 order: 3 order: 1 }
    name: "f1" type: "Flatten" bottom: "t1" top: "f1"
    name: "b1" type: "PriorBox" bottom: "p1" bottom: "x" top: "b1"
        prior_box_param { min_size: 3 max_size: 6 aspect_ratio: 2 }
    name: "e1" type: "Eltwise" bottom: "c1" bottom: "n1" top: "e1" eltwise_param { operation: MAX }
    name: "g1" type: "Reduction" bottom: "e1" top: "g1" reduction_param { operation: ASUM axis: 1 }
    """,
    {"c1": [(8, 3, 3, 3), (8,)], "n1": [()]},
)
_caffe(
    "caffe_sequence",
    """
    name: "in" type: "Input" top: "i" top: "cont"
        input_param { shape { dim: 4 dim: 2 } shape { dim: 4 dim: 2 } }
    name: "e1" type: "Embed" bottom: "i" top: "e1" embed_param { num_output: 5 input_dim: 7 }
    name: "l1" type: "LSTM" bottom: "e1" bottom: "cont" top: "l1" recurrent_param { num_output: 6 }
    name: "q1" type: "InnerProduct" bottom: "l1" top: "q1"
        inner_product_param { num_output: 3 axis: 2 }
    name: "s1" type: "Slice" bottom: "q1" top: "s1" top: "s2" slice_param { axis: 0 }
    name: "t1" type: "Tile" bottom: "s2" top: "t1" tile_param { axis: 1 tiles: 3 }
    """,
    {
        "e1": [(7, 5), (5,)],
        "l1": [(24, 5), (24,), (24, 6)],
        "q1": [(3, 6), (3,)],
    },
)
