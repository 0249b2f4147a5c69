"""Operators that read or write at indices."""

from __future__ import annotations

import numpy as np

from fuzz.c_models.registry import onnx_model

onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
    "unique_rows",
    "int32[n, m] x, float[k] s",
    "a, b, c, d, f",
    """
    a, b, c, d = Unique<axis = 0, sorted = 0>(x)
    f, g, h, i = Unique(s)
    """,
    sizes={"n": (0, 1, 4), "m": (1, 3), "k": (0, 1, 7)},
)
