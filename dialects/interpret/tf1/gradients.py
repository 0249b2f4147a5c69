"""Gradients of operators: of each element of a result, the sum over what it was made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowerdeck.dialects.interpret.tf1.array import strided_index
from lowerdeck.dialects.interpret.tf1.image import (
    run_resize_bicubic,
    run_resize_bilinear,
    run_resize_nearest,
)
from lowerdeck.dialects.interpret.tf1.linear import (
    from_last,
    is_channels_first,
    spatial,
    to_last,
    window_pads,
    windows,
)
from lowerdeck.dialects.interpret.tf1.reduce import lowest
from lowerdeck.dialects.interpret.tf1.registry import (
    Array,
    dtype_of,
    ints,
    kernel,
    require,
    scalar,
    where,
    widened,
)
from lowerdeck.dialects.tf1.ops import Tf1Op

_SCALE = 1.0507009873554805
_ALPHA = 1.6732632423543772

_BY_RESULT: dict[str, Callable[[Array, Array], Array]] = {
    "InvGrad": lambda y, dy: -dy * y**2,
    "ReciprocalGrad": lambda y, dy: -dy * y**2,
    "RsqrtGrad": lambda y, dy: -dy * y**3 / 2,
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SqrtGrad": lambda y, dy: dy / (2 * y),
    "TanhGrad": lambda y, dy: dy * (1 - y**2),
}
_BY_OPERAND: dict[str, Callable[[Array, Array], Array]] = {
    "EluGrad": lambda dy, y: where(y < 0, dy * (y + 1), dy),
    "Relu6Grad": lambda dy, x: where((x > 0) & (x < 6), dy, 0),
    "ReluGrad": lambda dy, x: where(x > 0, dy, 0),
    "SeluGrad": lambda dy, y: where(y < 0, dy * (y + _SCALE * _ALPHA), dy * _SCALE),
    "SoftplusGrad": lambda dy, x: dy / (1 + np.exp(-x)),
    "SoftsignGrad": lambda dy, x: dy / (1 + np.abs(x)) ** 2,
}


@kernel(*_BY_RESULT, *_BY_OPERAND)
def run_elementwise_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The derivative times the gradient."""
    function = (_BY_RESULT | _BY_OPERAND)[op.op_type]
    with np.errstate(all="ignore"):
        return function(widened(args[0]), widened(args[1])).astype(args[0].dtype)


@kernel("LeakyReluGrad")
def run_leaky_relu_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Scaled where the operand is not positive."""
    dy = widened(args[0])
    return where(args[1] > 0, dy, dy * op.attr("alpha")).astype(args[0].dtype)


@kernel("BroadcastGradientArgs")
def run_broadcast_axes(_: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """The dimensions that are repeated, and those that are one in both shapes."""
    rank = max(arg.size for arg in args)
    a, b = ([1] * (rank - arg.size) + ints(arg) for arg in args)
    pairs = list(enumerate(zip(a, b, strict=True)))
    require(all(m == n or 1 in (m, n) for _, (m, n) in pairs), f"{a} and {b} do not broadcast")
    found = [[k for k, p in pairs if p[side] == 1] for side in (0, 1)]
    return tuple(np.array(axes, args[0].dtype) for axes in found)


@kernel("BiasAddGrad")
def run_bias_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The sum over all but the channels."""
    dy = to_last(widened(args[0]), op.attr("data_format") == "NCHW")
    return dy.reshape(-1, dy.shape[-1]).sum(0).astype(args[0].dtype)


@kernel("StridedSliceGrad")
def run_strided_slice_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Zeros with the gradient in the place of the slice."""
    shape = ints(args[0])
    result = np.zeros(shape, args[4].dtype)
    begin, end, strides = (ints(arg) for arg in args[1:4])
    result[strided_index(tuple(shape), begin, end, strides, op)] = args[4]
    return result


@kernel("TileGrad")
def run_tile_gradient(_: Tf1Op, args: Sequence[Any]) -> Array:
    """The sum of the copies."""
    shape = [size // n for size, n in zip(args[0].shape, ints(args[1]), strict=True)]
    places = np.tile(np.arange(int(np.prod(shape))).reshape(shape), ints(args[1]))
    return _added(args[0], places, shape)


@kernel("MirrorPadGrad")
def run_mirror_pad_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Elements and their mirrored copies are added."""
    pads = [tuple(row) for row in args[1].tolist()]
    shape = [size - sum(pair) for size, pair in zip(args[0].shape, pads, strict=True)]
    places = np.arange(int(np.prod(shape))).reshape(shape)
    return _added(args[0], np.pad(places, pads, mode=op.attr("mode").lower()), shape)


def _added(dy: Array, places: Array, shape: Sequence[int]) -> Array:
    """Sums of gradients by place in a flattened tensor; negative places drop them."""
    result = np.zeros(int(np.prod(shape)), widened(dy).dtype)
    is_kept = places >= 0
    np.add.at(result, places[is_kept], widened(dy)[is_kept])
    return result.reshape(shape).astype(dy.dtype)


@kernel("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
def run_sparse_segment_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The gradients of a row's segments."""
    grad, indices, segments = args[:3]
    rows = widened(grad)[segments]
    counts = np.bincount(segments, minlength=len(grad))[segments]
    powers = {"SparseSegmentMeanGrad": 1.0, "SparseSegmentSqrtNGrad": 0.5}
    rows = rows / (counts ** powers.get(op.op_type, 0.0)).reshape(-1, *[1] * (rows.ndim - 1))
    result = np.zeros((scalar(args[3]), *grad.shape[1:]), rows.dtype)
    np.add.at(result, indices, rows)
    return result.astype(grad.dtype)


# Windows


def _window_views(op: Tf1Op, arrays: Sequence[tuple[Array, Any]], args: Sequence[Any]) -> list[Any]:
    """[n, out..., taps, c] of images with the channels last, padded with a value each."""
    first = is_channels_first(op)
    is_dynamic = op.op_type.endswith("V2")
    ksize = spatial(ints(args[3]) if is_dynamic else op.attr("ksize"), first)
    strides = spatial(ints(args[4]) if is_dynamic else op.attr("strides"), first)
    ones = [1] * len(ksize)
    pads = window_pads(op, arrays[0][0].shape[1:-1], ksize, strides, ones, first)
    views = [windows(array, ksize, strides, ones, pads, value) for array, value in arrays]
    return [v.reshape(*v.shape[: 1 + len(ksize)], -1, v.shape[-1]) for v in views]


def _winners(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The places of the first largest elements, in the images with the channels last."""
    x = to_last(args[0], is_channels_first(op))
    flat = np.arange(x.size).reshape(x.shape)
    view, places = _window_views(op, [(x, lowest(x.dtype)), (flat, -1)], args)
    best = np.argmax(where(places < 0, lowest(x.dtype), view), -2)
    return np.take_along_axis(places, best[..., None, :], -2)[..., 0, :]


@kernel("MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad")
def run_max_pool_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The gradient of a window goes to its first largest element."""
    first = is_channels_first(op)
    shape = to_last(args[0], first).shape
    return from_last(_added(to_last(args[2], first), _winners(op, args), shape), first)


@kernel("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad")
def run_max_pool_second_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """A window gets the gradient of its first largest element."""
    first = is_channels_first(op)
    return from_last(to_last(args[2], first).reshape(-1)[_winners(op, args)], first)


@kernel("MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax")
def run_argmax_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The same by places that are given."""
    x, dy, places = args
    if not op.attr("include_batch_in_index"):
        places = places + (np.arange(len(x)) * x[0].size).reshape(-1, 1, 1, 1)
    if op.op_type == "MaxPoolGradGradWithArgmax":
        return dy.reshape(-1)[places]
    return _added(dy, places, x.shape)


@kernel("AvgPoolGrad", "AvgPool3DGrad")
def run_average_pool_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The gradient of a window is divided among its elements."""
    first = is_channels_first(op)
    shape = ints(args[0])
    shape = [shape[0], *shape[2:], shape[1]] if first else shape
    (places,) = _window_views(op, [(np.arange(int(np.prod(shape))).reshape(shape), -1)], args)
    dy = to_last(widened(args[1]), first)[..., None, :]
    shared = np.broadcast_to(dy / (places >= 0).sum(-2, keepdims=True), places.shape)
    return from_last(_added(shared, places, shape), first).astype(args[1].dtype)


@kernel(
    "Conv2DBackpropFilter",
    "Conv2DBackpropFilterV2",
    "Conv3DBackpropFilterV2",
    "DepthwiseConv2dNativeBackpropFilter",
)
def run_filter_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The products of each window with the gradient of its result."""
    first = is_channels_first(op)
    x, dy = (to_last(widened(args[k]), first) for k in (0, 2))
    shape = list(args[1].shape) if op.op_type == "Conv2DBackpropFilterV2" else ints(args[1])
    *sizes, inputs, outputs = shape
    strides, dilations = (spatial(op.attr(n), first) for n in ("strides", "dilations"))
    pads = window_pads(op, x.shape[1:-1], sizes, strides, dilations, first)
    view = windows(x, sizes, strides, dilations, pads, 0)
    taps = int(np.prod(sizes))
    view = view.reshape(-1, taps, x.shape[-1])
    rows = dy.reshape(-1, dy.shape[-1])
    if op.op_type.startswith("Depthwise"):
        found = np.einsum("nkc,ncm->kcm", view, rows.reshape(-1, inputs, outputs))
    else:
        groups = x.shape[-1] // inputs
        parts = zip(np.split(view, groups, -1), np.split(rows, groups, -1), strict=True)
        found = np.concatenate([np.einsum("nkc,nm->kcm", a, b) for a, b in parts], -1)
    return found.reshape(shape).astype(args[2].dtype)


# Normalizations


@kernel("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def run_batch_norm_gradient(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """By x, scale and offset; while training the statistics depend on x, too."""
    first = is_channels_first(op)
    dy, x = (to_last(arg.astype(np.float64), first) for arg in args[:2])
    scale, mean, variance = (arg.astype(np.float64) for arg in args[2:5])
    axes = tuple(range(x.ndim - 1))
    root = np.sqrt(variance + op.attr("epsilon"))
    normal = (x - mean) / root
    by_scale, by_offset = (dy * normal).sum(axes), dy.sum(axes)
    by_x = dy
    if op.attr("is_training"):
        by_x = dy - dy.mean(axes) - normal * (dy * normal).mean(axes)
    by_x = from_last(by_x * scale / root, first).astype(args[1].dtype)
    none = np.zeros(0, args[2].dtype)
    return (by_x, *(v.astype(args[2].dtype) for v in (by_scale, by_offset)), none, none)


@kernel("BatchNormWithGlobalNormalizationGrad")
def run_old_batch_norm_gradient(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """By t, m, v, beta and gamma."""
    t, mean, variance, gamma, dy = (widened(arg) for arg in args)
    axes, shifted = tuple(range(t.ndim - 1)), variance + op.attr("variance_epsilon")
    is_scaled = op.attr("scale_after_normalization")
    factor = (gamma if is_scaled else 1) / np.sqrt(shifted)
    sums = (dy * (t - mean)).sum(axes)
    by_gamma = sums / np.sqrt(shifted) if is_scaled else np.zeros_like(gamma)
    by_mean, by_beta = -dy.sum(axes) * factor, dy.sum(axes)
    values = (dy * factor, by_mean, -sums * factor / (2 * shifted), by_beta, by_gamma)
    return tuple(np.asarray(value).astype(args[0].dtype) for value in values)


@kernel("LRNGrad")
def run_lrn_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Each element is in the sums of its neighbors."""
    dy, x, _ = (widened(arg) for arg in args)
    radius, channels = op.attr("depth_radius"), int(x.shape[-1])
    alpha, beta = op.attr("alpha"), op.attr("beta")
    places = np.arange(channels)
    near = (np.abs(places[:, None] - places) <= radius).astype(x.dtype)
    norm = op.attr("bias") + alpha * (x * x) @ near
    sums = (dy * x * norm ** (-beta - 1)) @ near
    return (dy * norm**-beta - 2 * alpha * beta * x * sums).astype(args[0].dtype)


# Images


@kernel("ResizeBilinearGrad", "ResizeBicubicGrad", "ResizeNearestNeighborGrad")
def run_resize_gradient(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The transposed of what resizing does to each row and column."""
    runs = {
        "ResizeBilinearGrad": run_resize_bilinear,
        "ResizeBicubicGrad": run_resize_bicubic,
        "ResizeNearestNeighborGrad": run_resize_nearest,
    }
    is_nearest = op.op_type == "ResizeNearestNeighborGrad"
    old = ints(args[1]) if is_nearest else list(args[1].shape[1:3])
    factors: list[Array] = []
    for size, new in zip(old, args[0].shape[1:3], strict=True):
        unit = np.eye(size, dtype=np.float32).reshape(1, size, 1, size)
        factors.append(runs[op.op_type](op, [unit, np.array([new, 1])]).reshape(new, size))
    found = np.einsum("nhwc,hy,wx->nyxc", widened(args[0]), *factors)
    return found.astype(args[0].dtype if is_nearest else dtype_of(op, "T"))
