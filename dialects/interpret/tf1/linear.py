"""Products, convolutions, pools and normalizations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from lowerdeck.dialects.interpret.tf1.reduce import lowest
from lowerdeck.dialects.interpret.tf1.registry import (
    Array,
    dtype_of,
    ints,
    kernel,
    require,
    where,
    widened,
)
from lowerdeck.dialects.tf1.ops import Tf1Op

# Products


@kernel("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def run_matmul(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Matrices, in batches that broadcast, transposed or adjoint first."""
    x, y = (widened(arg) for arg in args)
    is_single = op.op_type == "MatMul"
    if op.attr("transpose_a" if is_single else "adj_x"):
        x = np.conj(np.swapaxes(x, -1, -2)) if not is_single else x.T
    if op.attr("transpose_b" if is_single else "adj_y"):
        y = np.conj(np.swapaxes(y, -1, -2)) if not is_single else y.T
    out = "Tout" if op.op_type == "BatchMatMulV3" else "T"
    return np.matmul(x, y).astype(dtype_of(op, out))


@kernel("Einsum")
def run_einsum(op: Tf1Op, args: Sequence[Any]) -> Array:
    """As numpy's, with the same notation."""
    equation = op.attr("equation").replace(" ", "")
    return np.asarray(np.einsum(equation, *map(widened, args))).astype(args[0].dtype)


@kernel("BiasAdd", "BiasAddV1")
def run_bias_add(op: Tf1Op, args: Sequence[Any]) -> Array:
    """A vector added along the channels."""
    x, bias = args
    is_first = op.op_type == "BiasAdd" and op.attr("data_format") == "NCHW"
    return x + bias.reshape(-1, *[1] * (x.ndim - 2)) if is_first else x + bias


# Windows


def is_channels_first(op: Tf1Op) -> bool:
    """Whether the channels come before the sizes of an image."""
    layout = op.attr("data_format")
    require(layout in ("NHWC", "NCHW", "NDHWC", "NCDHW"), f"the layout {layout} is not supported")
    return layout.startswith("NC")


def spatial(values: Sequence[int], channels_first: bool) -> list[int]:
    """The middle of a list that has an entry for every dimension; the others must be 1."""
    inner = list(values[2:] if channels_first else values[1:-1])
    outer = [*values[:2]] if channels_first else [values[0], values[-1]]
    require(outer == [1, 1], f"windows over batch or channels are not supported: {list(values)}")
    return inner


def to_last(x: Array, channels_first: bool) -> Array:
    """An image with the channels last."""
    return np.moveaxis(x, 1, -1) if channels_first else x


def from_last(x: Array, channels_first: bool) -> Array:
    """An image as the node has it."""
    return np.moveaxis(x, -1, 1) if channels_first else x


def window_pads(
    op: Tf1Op,
    sizes: Sequence[int],
    kernel_sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    channels_first: bool,
) -> list[tuple[int, int]]:
    """Padding before and after each spatial dimension; SAME puts the odd one after."""
    padding = op.attr("padding")
    if padding == "VALID":
        return [(0, 0)] * len(sizes)
    if padding == "EXPLICIT":
        flat = op.attr("explicit_paddings")
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
        return pairs[2:] if channels_first else pairs[1:-1]
    require(padding == "SAME", f"the padding {padding} is not SAME, VALID or EXPLICIT")
    pads: list[tuple[int, int]] = []
    for size, k, stride, dilation in zip(sizes, kernel_sizes, strides, dilations, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size)
        pads.append((total // 2, total - total // 2))
    return pads


def windows(
    x: Array,
    kernel_sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
    value: Any,
) -> Array:
    """[n, out..., kernel..., c] of [n, size..., c]: a view of the padded input."""
    x = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=value)
    rank = len(kernel_sizes)
    sizes: list[int] = []
    for size, k, stride, dilation in zip(
        x.shape[1:-1], kernel_sizes, strides, dilations, strict=True
    ):
        sizes.append(max(0, (size - (k - 1) * dilation - 1) // stride + 1))
    steps = x.strides[1 : 1 + rank]
    return as_strided(
        x,
        (x.shape[0], *sizes, *kernel_sizes, x.shape[-1]),
        (
            x.strides[0],
            *(step * stride for step, stride in zip(steps, strides, strict=True)),
            *(step * dilation for step, dilation in zip(steps, dilations, strict=True)),
            x.strides[-1],
        ),
        writeable=False,
    )


@kernel("Conv2D", "Conv3D")
def run_conv(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Filters are [k..., c / groups, m]; the groups follow from the channels."""
    first = is_channels_first(op)
    x, weight = to_last(widened(args[0]), first), widened(args[1])
    sizes = weight.shape[:-2]
    strides, dilations = (spatial(op.attr(n), first) for n in ("strides", "dilations"))
    pads = window_pads(op, x.shape[1:-1], sizes, strides, dilations, first)
    groups = x.shape[-1] // weight.shape[-2]
    require(
        x.shape[-1] == groups * weight.shape[-2] and weight.shape[-1] % groups == 0,
        f"{x.shape[-1]} channels do not fit filters of shape {list(weight.shape)}",
    )
    view = windows(x, sizes, strides, dilations, pads, 0)
    parts = zip(np.split(view, groups, -1), np.split(weight, groups, -1), strict=True)
    result = np.concatenate([_contract(part, filters) for part, filters in parts], -1)
    return from_last(result, first).astype(args[0].dtype)


def _contract(view: Array, weight: Array) -> Array:
    """[n, out..., k..., c] by [k..., c, m] to [n, out..., m]."""
    inner = math.prod(weight.shape[:-1])
    outer = view.shape[: view.ndim - weight.ndim + 1]
    return (view.reshape(-1, inner) @ weight.reshape(inner, -1)).reshape(*outer, weight.shape[-1])


@kernel("DepthwiseConv2dNative")
def run_depthwise(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Channel c makes the channels c * m to c * m + m - 1."""
    first = is_channels_first(op)
    x, weight = to_last(widened(args[0]), first), widened(args[1])
    require(weight.shape[2] == x.shape[-1], f"{x.shape[-1]} channels, {weight.shape[2]} filters")
    strides, dilations = (spatial(op.attr(n), first) for n in ("strides", "dilations"))
    pads = window_pads(op, x.shape[1:-1], weight.shape[:2], strides, dilations, first)
    view = windows(x, weight.shape[:2], strides, dilations, pads, 0)
    result = np.einsum("nyxhwc,hwcm->nyxcm", view, weight)
    return from_last(result.reshape(*result.shape[:3], -1), first).astype(args[0].dtype)


@kernel(
    "Conv2DBackpropInput",
    "Conv2DBackpropInputV2",
    "Conv3DBackpropInput",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNativeBackpropInput",
)
def run_conv_backprop_input(op: Tf1Op, args: Sequence[Any]) -> Array:
    """
    The transposed convolution: every element of the output is spread over its window of an input
    of the size `input_sizes`, to which the padding belongs.
    """
    first = op.op_type != "Conv3DBackpropInput" and is_channels_first(op)
    weight, y = widened(args[1]), to_last(widened(args[2]), first)
    is_sized = op.op_type not in ("Conv2DBackpropInputV2", "Conv3DBackpropInput")
    given = ints(args[0]) if is_sized else list(args[0].shape)
    if len(given) == weight.ndim - 2:  # without batch and channels
        sizes, channels = given, weight.shape[-2]
    else:
        sizes, channels = (given[2:], given[1]) if first else (given[1:-1], given[-1])
    kernel_sizes = weight.shape[:-2]
    strides, dilations = (spatial(op.attr(n), first) for n in ("strides", "dilations"))
    pads = window_pads(op, sizes, kernel_sizes, strides, dilations, first)
    padded = [size + sum(pad) for size, pad in zip(sizes, pads, strict=True)]
    for size, k, stride, dilation, found in zip(
        padded, kernel_sizes, strides, dilations, y.shape[1:-1], strict=True
    ):
        expected = (size - (k - 1) * dilation - 1) // stride + 1
        require(found == expected, f"found the size {found}, input_sizes give {expected}")
    result = np.zeros((y.shape[0], *padded, channels), y.dtype)
    for place in np.ndindex(kernel_sizes):
        window = tuple(
            slice(k * dilation, k * dilation + stride * (count - 1) + 1, stride)
            for k, dilation, stride, count in zip(
                place, dilations, strides, y.shape[1:-1], strict=True
            )
        )
        result[(slice(None), *window)] += _spread(op, y, weight[place], channels)
    inner = tuple(slice(pad[0], pad[0] + size) for size, pad in zip(sizes, pads, strict=True))
    return from_last(result[(slice(None), *inner)], first).astype(args[2].dtype)


def _spread(op: Tf1Op, y: Array, weight: Array, channels: int) -> Array:
    """The contribution of one place of the filter, [c / groups, m], to its inputs."""
    if op.op_type.startswith("Depthwise"):
        return (y.reshape(*y.shape[:-1], *weight.shape) * weight).sum(-1)
    groups = channels // weight.shape[0]
    parts = zip(np.split(y, groups, -1), np.split(weight, groups, -1), strict=True)
    return np.concatenate([part @ filters.T for part, filters in parts], -1)


@kernel("MaxPool", "MaxPoolV2", "MaxPool3D", "AvgPool", "AvgPool3D")
def run_pool(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Padding is left out of both the maximum and the average."""
    first = is_channels_first(op)
    x = to_last(args[0], first)
    is_dynamic = op.op_type == "MaxPoolV2"
    ksize = spatial(ints(args[1]) if is_dynamic else op.attr("ksize"), first)
    strides = spatial(ints(args[2]) if is_dynamic else op.attr("strides"), first)
    ones = [1] * len(ksize)
    pads = window_pads(op, x.shape[1:-1], ksize, strides, ones, first)
    axes = tuple(range(1 + len(ksize), 1 + 2 * len(ksize)))
    if op.op_type.startswith("Max"):
        view = windows(x, ksize, strides, ones, pads, lowest(x.dtype))
        return from_last(np.max(view, axes), first)
    view = windows(widened(x), ksize, strides, ones, pads, 0)
    count = windows(np.ones_like(x, np.float64), ksize, strides, ones, pads, 0)
    return from_last(np.sum(view, axes) / np.sum(count, axes), first).astype(x.dtype)


@kernel("MaxPoolWithArgmax")
def run_max_pool_with_argmax(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, Array]:
    """The maximum, and its index in the flattened image, or in the flattened batch."""
    x: Array = args[0]
    ksize, strides = spatial(op.attr("ksize"), False), spatial(op.attr("strides"), False)
    pads = window_pads(op, x.shape[1:-1], ksize, strides, [1, 1], False)
    view = windows(x, ksize, strides, [1, 1], pads, lowest(x.dtype))
    flat = np.arange(x.size).reshape(x.shape)
    if not op.attr("include_batch_in_index"):
        flat = flat - flat[:, :1, :1, :1]
    places = windows(flat, ksize, strides, [1, 1], pads, -1)
    shape = (*view.shape[:3], -1, x.shape[-1])
    view, places = view.reshape(shape), places.reshape(shape)
    best = np.argmax(where(places < 0, lowest(x.dtype), view), 3)[:, :, :, None]
    index = np.take_along_axis(places, best, 3)[:, :, :, 0]
    dtype = np.int32 if op.attr("Targmax") == "int32" else np.int64
    return np.take_along_axis(view, best, 3)[:, :, :, 0], index.astype(dtype)


@kernel("Dilation2D")
def run_dilation(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The maximum of input plus filter over each window."""
    x, weight = args
    strides, rates = spatial(op.attr("strides"), False), spatial(op.attr("rates"), False)
    pads = window_pads(op, x.shape[1:-1], weight.shape[:2], strides, rates, False)
    view = windows(x, weight.shape[:2], strides, rates, pads, lowest(x.dtype))
    return np.max(view + weight, (3, 4))


@kernel("ExtractImagePatches")
def run_patches(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Each window as one vector: row, column, channel."""
    ksizes, strides, rates = (
        spatial(op.attr(name), False) for name in ("ksizes", "strides", "rates")
    )
    pads = window_pads(op, args[0].shape[1:-1], ksizes, strides, rates, False)
    view = windows(args[0], ksizes, strides, rates, pads, 0)
    return view.reshape(*view.shape[:3], -1)


# Normalizations


@kernel("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def run_fused_batch_norm(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """
    scale * (x - mean) / sqrt(variance + epsilon) + offset for each channel; while training, with
    the mean and the biased variance of the batch itself.
    """
    first = is_channels_first(op)
    x = to_last(widened(args[0]), first)
    scale, offset, mean, variance = (arg.astype(np.float64) for arg in args[1:])
    dtype = args[1].dtype
    statistics = [mean, variance, mean, variance]
    if op.attr("is_training"):
        axes = tuple(range(x.ndim - 1))
        old_mean, old_variance = mean, variance
        mean, variance = np.mean(x, axes, np.float64), np.var(x, axes, np.float64)
        count = x.size // max(1, x.shape[-1])
        unbiased = variance * count / max(1, count - 1)
        statistics = [mean, unbiased, mean, variance]
        factor = op.attr("exponential_avg_factor") if "V3" in op.op_type else 1.0
        if factor != 1.0:
            statistics[0] = (1 - factor) * old_mean + factor * mean
            statistics[1] = (1 - factor) * old_variance + factor * unbiased
    y = scale * (x - mean) / np.sqrt(variance + op.attr("epsilon")) + offset
    outputs = [from_last(y, first).astype(args[0].dtype), *(s.astype(dtype) for s in statistics)]
    if op.op_type == "FusedBatchNormV3":
        outputs.append(np.zeros((), dtype))
    return tuple(outputs)


@kernel("BatchNormWithGlobalNormalization")
def run_old_batch_norm(op: Tf1Op, args: Sequence[Any]) -> Array:
    """gamma * (t - m) / sqrt(v + epsilon) + beta, or without gamma"""
    t, mean, variance, beta, gamma = args
    factor = 1 / np.sqrt(variance + t.dtype.type(op.attr("variance_epsilon")))
    if op.attr("scale_after_normalization"):
        factor = factor * gamma
    return ((t - mean) * factor + beta).astype(t.dtype)


@kernel("LRN")
def run_lrn(op: Tf1Op, args: Sequence[Any]) -> Array:
    """x / (bias + alpha * sum of the squares of the neighbours in the last dimension) ** beta"""
    x, radius = widened(args[0]), op.attr("depth_radius")
    squares = np.pad(x * x, [(0, 0)] * (x.ndim - 1) + [(radius, radius)])
    total = sum(squares[..., k : k + x.shape[-1]] for k in range(2 * radius + 1))
    return (x / (op.attr("bias") + op.attr("alpha") * total) ** op.attr("beta")).astype(
        args[0].dtype
    )
