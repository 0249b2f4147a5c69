"""
Convolutions and their gradients by the input.

`core` has the channels in dimension 1 and weights [out, in, kernel...]; images and weights are
transposed to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as cartesian

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.types import dims_of, element_type, rank_of
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.passes.legalize.linear import transposed_convolution
from lowerdeck.passes.legalize.pooling import MAX_TAPS, padded, tap
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.sizes import sizes_of
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.fusion import fused
from lowerdeck.passes.legalize.tf1.image import resized_input
from lowerdeck.passes.legalize.tf1.layout import mirrored
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.scatter import extreme
from lowerdeck.passes.legalize.tf1.windows import (
    Layout,
    require_image,
    spatial_dims,
    window_of,
)
from lowerdeck.passes.legalize.windows import Window


def _dilations(lower: Tf1Legalizer, layout: Layout, count: int) -> list[int]:
    values = lower.attrs.ints("dilations") if lower.attrs.has("dilations") else []
    return layout.spatial(values) if values else [1] * count


# Forward


@legalizes("Conv2D", "Conv3D", "Conv")
def legalize_conv(lower: Tf1Legalizer) -> Results:
    """A convolution of [N, spatial..., C] with weights [kernel..., C / groups, M]."""
    layout = Layout.of(lower)
    return [layout.from_first(_conv(lower, layout))]


@legalizes("_FusedConv2D")
def legalize_fused_conv(lower: Tf1Legalizer) -> Results:
    """A convolution, and the operators that `fused_ops` lists."""
    lower.attrs.ignore("num_host_args")
    lower.attrs.string("filter_format", among=("HWIO",))
    layout = Layout.of(lower)
    value = layout.from_first(_conv(lower, layout))
    return [fused(lower, value, layout.axis(rank_of(value)))]


@legalizes("FusedPadConv2D")
def legalize_padded_conv(lower: Tf1Legalizer) -> Results:
    """A convolution of an image that is mirrored at its borders."""
    layout = Layout(lower, False)
    return [layout.from_first(_conv(lower, layout, mirrored(lower, number(lower, "input"))))]


@legalizes("FusedResizeAndPadConv2D")
def legalize_resized_conv(lower: Tf1Legalizer) -> Results:
    """The same of an image that is resized first."""
    layout = Layout(lower, False)
    return [layout.from_first(_conv(lower, layout, mirrored(lower, resized_input(lower))))]


def _conv(lower: Tf1Legalizer, layout: Layout, image: SSAValue | None = None) -> SSAValue:
    """The convolution of an image, or of the node's input, with its weights."""
    weights = number(lower, "filter")
    rank = rank_of(weights)
    image = _image(lower, rank) if image is None else require_image(lower, image, rank)
    x = layout.to_first(image)
    weights = lower.transpose(weights, [rank - 1, rank - 2, *range(rank - 2)])
    return _windowed(lower, layout, x, weights, _groups(lower, x, weights))


def _image(lower: Tf1Legalizer, rank: int) -> SSAValue:
    """The input; `Conv` may have more batch dimensions, which are not supported."""
    if lower.attrs.has("batch_dims") and lower.attrs.int("batch_dims") != 1:
        lower.refuse("more than one batch dimension", "batch_dims 1", "reshape the input")
    return require_image(lower, number(lower, "input"), rank)


def _groups(lower: Tf1Legalizer, x: SSAValue, weights: SSAValue) -> int:
    """How many times the weights' input channels fit into those of the input."""
    groups = _ratio(dims_of(x)[1], dims_of(weights)[1])
    if lower.attrs.has("groups") and lower.attrs.int("groups") != groups:
        lower.refuse(f"groups {lower.attrs.int('groups')}", f"{groups}, as the weights have it")
    return groups


def _ratio(channels: Expr | None, own: Expr) -> int:
    """channels / own; where a number is not known, no more than one group is expected."""
    if channels is None or channels.value is None or not own.value:
        return 1
    return channels.value // own.value


def _windowed(
    lower: Tf1Legalizer, layout: Layout, x: SSAValue, weights: SSAValue, groups: int
) -> SSAValue:
    dims = spatial_dims(x)
    strides = layout.spatial(lower.attrs.ints("strides"))
    dilations = _dilations(lower, layout, len(dims))
    window = window_of(lower, layout, dims, spatial_dims(weights), strides, dilations)
    conv = ConvOp(
        x,
        weights,
        strides=window.strides,
        dilations=window.dilations,
        pads_begin=window.begin,
        pads_end=window.end,
        groups=groups,
    )
    return lower.add(conv)


@legalizes("DepthwiseConv2dNative")
def legalize_depthwise_conv(lower: Tf1Legalizer) -> Results:
    """Each channel by its own weights, which are [kernel..., C, multiplier]."""
    layout = Layout.of(lower)
    return [layout.from_first(_depthwise(lower, layout))]


@legalizes("_FusedDepthwiseConv2dNative")
def legalize_fused_depthwise_conv(lower: Tf1Legalizer) -> Results:
    """A convolution of each channel, and the operators that `fused_ops` lists."""
    layout = Layout.of(lower)
    value = layout.from_first(_depthwise(lower, layout))
    return [fused(lower, value, layout.axis(rank_of(value)))]


def _depthwise(lower: Tf1Legalizer, layout: Layout) -> SSAValue:
    weights, groups = _depthwise_weights(lower)
    x = layout.to_first(require_image(lower, number(lower, "input"), 4))
    return _windowed(lower, layout, x, weights, groups)


def _depthwise_weights(lower: Tf1Legalizer) -> tuple[SSAValue, int]:
    """[kernel..., C, multiplier] as [C * multiplier, 1, kernel...], and C."""
    weights = require_image(lower, number(lower, "filter"), 4)
    height, width, channels, multiplier = dims_of(weights)
    if channels.value is None:
        lower.refuse(f"weights of {channels} channels", "a number that is known")
    weights = lower.transpose(weights, [2, 3, 0, 1])
    return lower.reshape(weights, [channels * multiplier, 1, height, width]), channels.value


# Gradients


@legalizes("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def legalize_conv_gradient(lower: Tf1Legalizer) -> Results:
    """The gradient of a convolution whose input had the dimensions `input_sizes`."""
    layout = Layout.of(lower)
    weights = number(lower, "filter")
    rank = rank_of(weights)
    weights = lower.transpose(weights, [rank - 1, rank - 2, *range(rank - 2)])
    channels, sizes = _input_sizes(lower, layout, rank)
    groups = _ratio(channels, dims_of(weights)[1])
    return [layout.from_first(_gradient(lower, layout, weights, sizes, groups))]


@legalizes("DepthwiseConv2dNativeBackpropInput")
def legalize_depthwise_gradient(lower: Tf1Legalizer) -> Results:
    """The gradient of a convolution of each channel."""
    layout = Layout.of(lower)
    weights, groups = _depthwise_weights(lower)
    _, sizes = _input_sizes(lower, layout, 4)
    return [layout.from_first(_gradient(lower, layout, weights, sizes, groups))]


def _input_sizes(lower: Tf1Legalizer, layout: Layout, rank: int) -> tuple[Expr | None, list[Expr]]:
    """The channels (if they are given) and spatial sizes of the result."""
    sizes = sizes_of(lower, lower.operand("input_sizes"), "input_sizes")
    if len(sizes) == rank - 2:
        return None, sizes
    if len(sizes) != rank:
        lower.refuse(f"{len(sizes)} input_sizes", str(rank))
    axis = layout.axis(rank)
    return sizes[axis], [size for k, size in enumerate(sizes) if k not in (0, axis)]


def _gradient(
    lower: Tf1Legalizer, layout: Layout, weights: SSAValue, sizes: Sequence[Expr], groups: int
) -> SSAValue:
    """
    Padding is that of the convolution from `sizes`; where its windows do not reach the end, the
    rest of the result gets no gradient.
    """
    given = require_image(lower, number(lower, "out_backprop"), rank_of(weights))
    x = layout.to_first(given)
    strides = layout.spatial(lower.attrs.ints("strides"))
    dilations = _dilations(lower, layout, len(sizes))
    window = window_of(lower, layout, sizes, spatial_dims(weights), strides, dilations)
    ends: list[Expr] = []
    extra: list[int] = []
    for dim, size, extent, stride, begin in zip(
        spatial_dims(x), sizes, window.extents, strides, window.begin, strict=True
    ):
        end = (dim - 1) * stride + extent - begin - size
        missing = -(end.value or 0)
        extra.append(max(missing, 0))
        ends.append(Expr.const(0) if missing > 0 else end)
    return transposed_convolution(
        lower,
        x,
        weights,
        strides=strides,
        dilations=dilations,
        pads_begin=window.begin,
        pads_end=ends,
        output_padding=extra,
        groups=groups,
    )


# Morphology


@legalizes("Dilation2D")
def legalize_dilation(lower: Tf1Legalizer) -> Results:
    """The maximum over the window of the input plus the weights [height, width, C]."""
    layout = Layout(lower, False)
    x = layout.to_first(require_image(lower, number(lower, "input"), 4))
    weights = Quantity.of(lower, lower.transpose(number(lower, "filter"), [2, 0, 1]))
    channels, *kernel = weights.dims
    numbers = constants(kernel)
    if numbers is None or np.prod(numbers) > MAX_TAPS:
        lower.refuse(f"a window of {list(map(str, kernel))}", "a small one that is known")
    strides = layout.spatial(lower.attrs.ints("strides"))
    rates = layout.spatial(lower.attrs.ints("rates"))
    window = window_of(lower, layout, spatial_dims(x), kernel, strides, rates)
    dims = [*dims_of(x)[:2], *_positions(window, spatial_dims(x))]
    around = padded(lower, x, window, lower.scalar(extreme(element_type(x), highest=False), x))
    best: Quantity | None = None
    for row, column in cartesian(*map(range, numbers)):
        weight = weights.pick(1, row).pick(1, column).reshape([channels, 1, 1])
        value = tap(lower, around, window, dims, (row, column)) + weight
        best = value if best is None else best.maximum(value)
    if best is None:
        lower.refuse("an empty window", "at least one element")
    return [layout.from_first(best.value)]


def _positions(window: Window, dims: Sequence[Expr]) -> list[Expr]:
    """How many windows there are in each spatial dimension."""
    return [
        (dim + begin + end - extent) // stride + 1
        for dim, begin, end, extent, stride in zip(
            dims, window.begin, window.end, window.extents, window.strides, strict=True
        )
    ]
