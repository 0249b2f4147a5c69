"""Products of matrices, and attention."""

from __future__ import annotations

import numpy as np

from fuzz.c_models.registry import onnx_model

onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
    "einsum",
    "float[a, b, c] x, float[b, c, d] y, double[b, b] w",
    "q, r",
    """
    q = Einsum<equation = "abc,bcd->dba">(x, y)
    r = Einsum<equation = "ii->i">(w)
    """,
    sizes={"a": (1, 2, 5), "b": (1, 3, 4), "c": (2, 7), "d": (1, 6)},
)
onnx_model(
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
onnx_model(
    "products_of_doubles",
    "double[n, k] a, double[k, 9] b",
    "y, e",
    """
    y = MatMul(a, b)
    e = Exp(y)
    """,
    sizes={"n": (1, 2, 7), "k": (1, 3, 9)},
)
