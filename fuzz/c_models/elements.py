"""Elementwise operators, reductions and movement."""

from __future__ import annotations

import numpy as np

from fuzz.c_models.registry import onnx_model

onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
onnx_model(
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
