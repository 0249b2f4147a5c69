"""Pools, and layers that bring images to a scale."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.darknet.shapes import Pool, image_of, pool_of, positive
from lowerdeck.dialects.dims import exprs
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.normalization import by_neighbors, sum_of_squares
from lowerdeck.passes.legalize.common.pooling import padded, pool
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.darknet.legalizer import DarknetLegalizer
from lowerdeck.passes.legalize.darknet.linear import blurred
from lowerdeck.passes.legalize.darknet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue

_LOWEST = float(np.finfo(np.float32).min)


@legalizes("avgpool")
def legalize_avgpool(builder: DarknetLegalizer) -> Results:
    """The average of each channel."""
    return [mean(builder, builder.input(), [2, 3], keep_dims=True)]


@legalizes("maxpool")
def legalize_maxpool(builder: DarknetLegalizer) -> Results:
    """
    The maximum of windows, with half of the padding, rounded down, before the image; the search
    begins with the lowest float. With `maxpool_depth` it is over each `out_channels`-th channel.
    """
    if builder.flag("maxpool_depth"):
        return [_over_channels(builder)]
    image = image_of(builder.shapes[0])
    windows = pool_of(builder.keys, image)
    window = _window(windows)
    x = builder.input()
    if _has_window_outside(windows, image):
        x = padded(builder, x, window, builder.scalar(_LOWEST, f32))
        zeros = list(exprs([0, 0]))
        window = Window(window.kernel, window.strides, window.dilations, zeros, zeros, zeros)
    result = pool(builder, "max", x, window, from_lowest=True)
    return [blurred(builder, result, (image[0], *windows.counts))]


def _window(windows: Pool) -> Window:
    """Windows that end where the last one does, or behind it where no other fits."""
    ends = [max(end, 0) for end in windows.ends]
    begin, zeros = list(exprs([windows.begin] * 2)), list(exprs([0, 0]))
    kernel = exprs([windows.size] * 2)
    return Window(kernel, list(windows.strides), [1, 1], begin, list(exprs(ends)), zeros)


def _has_window_outside(windows: Pool, image: tuple[int, int, int]) -> bool:
    """True if a window has nothing but padding."""
    starts = [
        (count - 1) * stride - windows.begin
        for count, stride in zip(windows.counts, windows.strides, strict=True)
    ]
    is_behind = any(start >= size for start, size in zip(starts, image[1:], strict=True))
    return is_behind or windows.size <= windows.begin


def _over_channels(builder: DarknetLegalizer) -> SSAValue:
    channels, *plane = image_of(builder.shapes[0])
    (count,) = positive(builder.keys, "out_channels")
    x, lowest = builder.input(), builder.scalar(_LOWEST, f32)
    if missing := -channels % count:
        filling = builder.broadcast(lowest, [builder.batch, missing, *plane])
        x = concat(builder, [x, filling], 1)
    rows = (channels + missing) // count
    parts = TensorValue(builder, builder.reshape(x, [builder.batch, rows, count, *plane]))
    return parts.reduce("max", [1]).maximum(_LOWEST).value


@legalizes("local_avgpool")
def legalize_local_avgpool(builder: DarknetLegalizer) -> Results:
    """The averages of what windows have of an image."""
    image = image_of(builder.shapes[0])
    windows = pool_of(builder.keys, image)
    if _has_window_outside(windows, image):
        builder.refuse("windows of nothing but padding", "a part of the image in each")
    return [pool(builder, "average", builder.input(), _window(windows))]


@legalizes("batchnorm")
def legalize_batchnorm(builder: DarknetLegalizer) -> Results:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias"""
    bias, *moments = [builder.take() for _ in range(4)]
    return [builder.normalized(builder.input(), bias, moments).value]


@legalizes("normalization")
def legalize_normalization(builder: DarknetLegalizer) -> Results:
    """
    x / (kappa + alpha * sum of squares)^beta over neighboring channels. DarkNet adds up the squares
    from channel to channel and leaves out that of channel size / 2 at the beginning, which all sums
    lack then.
    """
    (size,) = positive(builder.keys, "size")
    channels = image_of(builder.shapes[0])[0]
    total = sum_of_squares(builder, builder.input(), 1, (size - 1) // 2, size // 2)
    if size // 2 < channels:
        lost = TensorValue(builder, builder.slice_axis(builder.input(), 1, size // 2, 1))
        total = (TensorValue(builder, total) - lost * lost).value
    alpha, beta, kappa = (builder.number(name) for name in ("alpha", "beta", "kappa"))
    return [by_neighbors(builder, builder.input(), total, alpha, kappa, beta)]
