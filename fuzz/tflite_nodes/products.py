"""Convolutions and products of matrices: floats, hybrid, and integers of all widths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from fuzz.tflite_graphs import Graph, Scale, Value

ACTIVATIONS = ("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")

_PRODUCTS = ("FLOAT32", "INT8", "INT8", "UINT8", "INT16")


def weights_for(
    g: Graph, x: Value, shape: Sequence[int], axis: int, *, hybrid: bool, by_channel: bool = False
) -> Value:
    """Weights that the kernels take beside a value; `axis` is that of the channels."""
    match x.type:
        case "FLOAT32" if not (hybrid and x.exact and g.chance(0.4)):
            return g.constant(g.weights(shape, "FLOAT32"), "FLOAT32")
        case "UINT8":
            return g.constant(g.weights(shape, "UINT8"), "UINT8", g.scale("UINT8"))
        case _:
            is_four = x.type == "INT8" and g.chance(0.2)
            type_ = "INT4" if is_four else "INT8"
            count = shape[axis] if g.chance(0.6) or by_channel else 1
            scales = [float(np.float32(2.0 ** g.rng.uniform(-9, -5))) for _ in range(count)]
            # Kernels may take channels of one scale for a tensor of one scale.
            scales = scales[:1] * count if g.chance(0.2) else scales
            q = Scale(tuple(scales), (0,) * count, axis)
            values = g.hybrid_weights(shape) if x.type == "FLOAT32" else g.weights(shape, type_)
            return g.constant(values, type_, q)


def result_of(g: Graph, x: Value, w: Value, depth: int) -> Scale | None:
    """The scale of sums of `depth` products that fills the range of the result."""
    if x.q is None or w.q is None:
        return None
    spread = {"INT8": 75 * 74 / 64, "UINT8": 75 * 74 / 64, "INT16": 140}[x.type]
    spread *= 8 / 148 if w.type == "INT4" else 1
    return g.near(x.q.scale * max(w.q.scales) * spread * math.sqrt(depth), x.type)


def bias_for(g: Graph, x: Value, w: Value, count: int) -> Value:
    """A bias in the scale of the sums."""
    if x.type == "FLOAT32":
        return g.constant(g.weights([count], "FLOAT32"), "FLOAT32")
    assert x.q is not None
    assert w.q is not None
    scales = [float(np.float32(x.q.scale * scale)) for scale in w.q.scales]
    q = Scale(tuple(scales), (0,) * len(scales))
    is_long = x.type == "INT16" and g.chance(0.8)
    most = 1 << (20 if is_long else 14)
    values = g.numbers.integers(-most, most, count)
    return g.constant(values.astype("i8" if is_long else "i4"), "INT64" if is_long else "INT32", q)


def windowed(size: int, kernel: int, stride: int, dilation: int, padding: str) -> int:
    """The number of windows; 0 or less if none fits."""
    if padding == "SAME":
        return -(-size // stride)
    return -(-(size - (kernel - 1) * dilation) // stride)


def conv(g: Graph) -> object:
    """CONV_2D with groups, strides, dilations."""
    x = g.pick(*_PRODUCTS, rank=4)
    channels = x.shape[3]
    groups = g.rng.choice([k for k in range(1, channels + 1) if channels % k == 0])
    groups = 1 if g.chance(0.7) else groups
    return _conv(g, x, channels // groups, groups * g.rng.randint(1, 5), groups)


def _conv(g: Graph, x: Value, depth: int, count: int, groups: int) -> object:
    kernel = [g.rng.choice([1, 1, 2, 3, 5]) for _ in range(2)]
    strides = [g.rng.choice([1, 1, 2, 3]) for _ in range(2)]
    dilations = [g.rng.choice([1, 1, 1, 2]) if stride == 1 else 1 for stride in strides]
    padding = g.rng.choice(["SAME", "VALID"])
    sizes = [
        windowed(*sizes, padding)
        for sizes in zip(x.shape[1:3], kernel, strides, dilations, strict=True)
    ]
    if min(sizes) < 1:
        return None
    w = weights_for(g, x, [count, *kernel, depth], 0, hybrid=True, by_channel=groups > 1)
    options = {
        "padding": padding,
        "stride_h": strides[0],
        "stride_w": strides[1],
        "dilation_h_factor": dilations[0],
        "dilation_w_factor": dilations[1],
        "fused_activation_function": g.rng.choice(ACTIVATIONS),
    }
    bias = bias_for(g, x, w, count)
    if x.type == "INT16":
        options["quantized_bias_type"] = bias.type
    q = result_of(g, x, w, depth * kernel[0] * kernel[1])
    return g.op(
        "CONV_2D",
        [x, w, bias],
        ((x.shape[0], *sizes, count), x.type, q),
        options=("Conv2DOptions", options),
        exact=False,
    )


def depthwise(g: Graph) -> object:
    """DEPTHWISE_CONV_2D with several filters a channel."""
    x = g.pick(*_PRODUCTS, rank=4)
    multiplier = g.rng.choice([1, 1, 2, 3])
    count = x.shape[3] * multiplier
    kernel = [g.rng.choice([1, 2, 3, 5]) for _ in range(2)]
    stride = g.rng.choice([1, 1, 2])
    dilation = g.rng.choice([1, 1, 2]) if stride == 1 else 1
    padding = g.rng.choice(["SAME", "VALID"])
    sizes = [
        windowed(s, k, stride, dilation, padding) for s, k in zip(x.shape[1:3], kernel, strict=True)
    ]
    if min(sizes) < 1:
        return None
    w = weights_for(g, x, [1, *kernel, count], 3, hybrid=True)
    options = {
        "padding": padding,
        "stride_h": stride,
        "stride_w": stride,
        "depth_multiplier": multiplier,
        "dilation_h_factor": dilation,
        "dilation_w_factor": dilation,
        "fused_activation_function": g.rng.choice(ACTIVATIONS),
    }
    return g.op(
        "DEPTHWISE_CONV_2D",
        [x, w, bias_for(g, x, w, count)],
        ((x.shape[0], *sizes, count), x.type, result_of(g, x, w, kernel[0] * kernel[1])),
        options=("DepthwiseConv2DOptions", options),
        exact=False,
    )


def transposed(g: Graph) -> object:
    """TRANSPOSE_CONV, at times with a result that is larger than the windows reach."""
    x = g.pick(*_PRODUCTS, rank=4)
    kernel = [g.rng.choice([1, 2, 3, 4]) for _ in range(2)]
    strides = [g.rng.choice([1, 2, 3]) for _ in range(2)]
    padding = g.rng.choice(["SAME", "VALID"])
    count = g.rng.randint(1, 5)
    sizes = [
        size * stride if padding == "SAME" else (size - 1) * stride + extent
        for size, stride, extent in zip(x.shape[1:3], strides, kernel, strict=True)
    ]
    w = weights_for(g, x, [count, *kernel, x.shape[3]], 0, hybrid=False)
    shape = (x.shape[0], *sizes, count)
    options = {
        "padding": padding,
        "stride_h": strides[0],
        "stride_w": strides[1],
        "fused_activation_function": g.rng.choice(ACTIVATIONS),
    }
    bias = bias_for(g, x, w, count) if g.chance(0.6) else None
    if x.type == "INT16" and bias is not None:
        options["quantized_bias_type"] = bias.type
    return g.op(
        "TRANSPOSE_CONV",
        [g.integers(shape), w, x, *([] if bias is None else [bias])],
        (shape, x.type, result_of(g, x, w, x.shape[3] * kernel[0] * kernel[1])),
        options=("TransposeConvOptions", options),
        exact=False,
    )


def fully_connected(g: Graph) -> object:
    """FULLY_CONNECTED of values of any rank, with and without a bias."""
    x = g.pick(*_PRODUCTS)
    keep = g.chance(0.4)
    depth, count = x.shape[-1], g.size(9)
    w = weights_for(g, x, [count, depth], 0, hybrid=True)
    bias = bias_for(g, x, w, count) if g.chance(0.7) else None
    options = {
        "fused_activation_function": g.rng.choice(ACTIVATIONS),
        "keep_num_dims": keep,
        "asymmetric_quantize_inputs": g.chance(0.5),
    }
    if x.type == "INT16" and bias is not None:
        options["quantized_bias_type"] = bias.type
    shape = [*x.shape[:-1], count] if keep else [x.size // depth, count]
    return g.op(
        "FULLY_CONNECTED",
        [x, w, bias],
        (shape, x.type, result_of(g, x, w, depth)),
        options=("FullyConnectedOptions", options),
        exact=False,
    )


def batch_matmul(g: Graph) -> object:
    """BATCH_MATMUL of computed and constant matrices, either transposed."""
    x = g.pick("FLOAT32", "INT8", "INT16", ranks=(2, 3, 4))
    adjoint = g.chance(0.3), g.chance(0.3)
    depth = x.shape[-2] if adjoint[0] else x.shape[-1]
    rows = x.shape[-1] if adjoint[0] else x.shape[-2]
    columns = g.size()
    batch = [1 if g.chance(0.2) else size for size in x.shape[:-2]]
    shape = [*batch, *((columns, depth) if adjoint[1] else (depth, columns))]
    # LiteRT takes the scales of other rows where there are two batch dimensions.
    is_hybrid = x.type == "FLOAT32" and x.exact and x.rank < 4 and g.chance(0.3)
    if is_hybrid:
        q = Scale((float(np.float32(2.0 ** g.rng.uniform(-9, -5))),), (0,))
        y = g.constant(g.hybrid_weights(shape), "INT8", q)
    elif g.chance(0.5):
        y = g.new(x.type, shape)
    else:
        q = None if x.q is None else g.scale(x.type)
        y = g.constant(g.weights(shape, x.type), x.type, q)
    options = {
        "adj_x": adjoint[0],
        "adj_y": adjoint[1],
        "asymmetric_quantize_inputs": is_hybrid and g.chance(0.5),
    }
    scale = None
    if x.q is not None and y.q is not None:
        spread = 90 if x.type == "INT8" else 19000 * 19000 / 10000
        scale = g.near(x.q.scale * y.q.scale * spread * math.sqrt(depth), x.type)
    return g.op(
        "BATCH_MATMUL",
        [x, y],
        ([*x.shape[:-2], rows, columns], x.type, scale),
        options=("BatchMatMulOptions", options),
        exact=False,
    )


RECIPES: tuple[Callable[[Graph], object], ...] = (
    conv, conv, depthwise, transposed, fully_connected, fully_connected, batch_matmul,
)  # fmt: skip
