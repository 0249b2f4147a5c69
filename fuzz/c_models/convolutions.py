"""Convolutions, of every algorithm."""

from __future__ import annotations

import numpy as np

from fuzz.c_models.registry import IMAGE, onnx_model

onnx_model(
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
    sizes=IMAGE,
)
onnx_model(
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
onnx_model(
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
    sizes=IMAGE,
)
onnx_model(
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
onnx_model(
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
    sizes=IMAGE,
)
onnx_model(
    "conv_grouped",
    "float[n, 12, h, w] x",
    "y, z",
    """
    y = Conv<pads = [1, 0, 0, 1], group = 3>(x, w1, b1)
    z = Conv<group = 2, strides = [2, 3]>(x, w2)
    """,
    {"w1": (9, 4, 3, 3), "b1": (9,), "w2": (32, 6, 1, 2)},
    sizes=IMAGE,
)
onnx_model(
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
onnx_model(
    "conv_transposed",
    "float[n, 6, h, w] x, float[1, 4, t] s",
    "y, z, q",
    """
    y = ConvTranspose<strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]>(x, w1, b1)
    z = ConvTranspose<group = 2, strides = [1, 3], dilations = [2, 1]>(x, w2)
    q = ConvTranspose<strides = [3]>(s, w3)
    """,
    {"w1": (6, 16, 3, 3), "b1": (16,), "w2": (6, 2, 2, 2), "w3": (4, 5, 4)},
    sizes={**IMAGE, "t": (1, 4, 9)},
)
onnx_model(
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
onnx_model(
    "conv_computed_weights",
    "float[1, 4, h, w] x, float[6, 4, 3, 3] k, float[6] b",
    "y, z",
    """
    y = Conv<pads = [1, 1, 1, 1]>(x, k, b)
    z = ConvTranspose<strides = [2, 2]>(y, k)
    """,
    sizes=IMAGE,
)
onnx_model(
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
    sizes=IMAGE,
)
onnx_model(
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
    sizes=IMAGE,
)
