"""Shapes that depend on data."""

from __future__ import annotations

import numpy as np

from fuzz.c_models.registry import onnx_model

onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
    "ranges",
    "int64 start, int64 limit, int64 delta, float a, float b, float c, int32 s, int32 t, int32 u",
    "y, z, v",
    """
    y = Range(start, limit, delta)
    z = Range(a, b, c)
    v = Range(s, t, u)
    """,
)
onnx_model(
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
onnx_model(
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
