"""Recurrent layers, loops and branches."""

from __future__ import annotations

import numpy as np

from fuzz.c_models.registry import onnx_model

onnx_model(
    "lstm",
    "float[t, n, 5] x, int32[n] lengths",
    "y, h, c",
    """
    y, h, c = LSTM<hidden_size = 6, direction = "bidirectional">(x, w, r, b, lengths)
    """,
    {"w": (2, 24, 5), "r": (2, 24, 6), "b": (2, 48)},
    sizes={"t": (1, 3, 5), "n": (1, 2, 3)},
)
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
