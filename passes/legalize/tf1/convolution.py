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

from lowerdeck.dialects.core.types import dims_of, element_type, rank_of
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.passes.legalize.common.linear import convolution, transposed_convolution
from lowerdeck.passes.legalize.common.pooling import MAX_TAPS, padded, tap
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.sizes import sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
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


def dilations_of(builder: Tf1Legalizer, layout: Layout) -> list[int]:
    """The dilations of the spatial dimensions."""
    values = builder.attrs.ints("dilations") if builder.attrs.has("dilations") else []
    return layout.spatial(values) if values else [1] * (len(builder.attrs.ints("strides")) - 2)


# Forward


@legalizes("Conv2D", "Conv3D", "Conv")
def legalize_conv(builder: Tf1Legalizer) -> Results:
    """A convolution of [N, spatial..., C] with weights [kernel..., C / groups, M]."""
    layout = Layout.of(builder)
    return [layout.from_first(_conv(builder, layout))]


@legalizes("_FusedConv2D")
def legalize_fused_conv(builder: Tf1Legalizer) -> Results:
    """A convolution, and the operators that `fused_ops` lists."""
    builder.attrs.ignore("num_host_args")
    builder.attrs.string("filter_format", among=("HWIO",))
    layout = Layout.of(builder)
    value = layout.from_first(_conv(builder, layout))
    return [fused(builder, value, layout.axis(rank_of(value)))]


@legalizes("FusedPadConv2D")
def legalize_padded_conv(builder: Tf1Legalizer) -> Results:
    """A convolution of an image that is mirrored at its borders."""
    layout = Layout(builder, False)
    return [layout.from_first(_conv(builder, layout, mirrored(builder, number(builder, "input"))))]


@legalizes("FusedResizeAndPadConv2D")
def legalize_resized_conv(builder: Tf1Legalizer) -> Results:
    """The same of an image that is resized first."""
    layout = Layout(builder, False)
    return [layout.from_first(_conv(builder, layout, mirrored(builder, resized_input(builder))))]


def _conv(builder: Tf1Legalizer, layout: Layout, image: SSAValue | None = None) -> SSAValue:
    """The convolution of an image, or of the node's input, with its weights."""
    weights = number(builder, "filter")
    rank = rank_of(weights)
    image = _image(builder, rank) if image is None else require_image(builder, image, rank)
    x = layout.to_first(image)
    weights = builder.transpose(weights, [rank - 1, rank - 2, *range(rank - 2)])
    return _windowed(builder, layout, x, weights, _groups(builder, x, weights))


def _image(builder: Tf1Legalizer, rank: int) -> SSAValue:
    """The input; `Conv` may have more batch dimensions, which are not supported."""
    if builder.attrs.has("batch_dims") and builder.attrs.int("batch_dims") != 1:
        builder.refuse("more than one batch dimension", "batch_dims 1", "reshape the input")
    return require_image(builder, number(builder, "input"), rank)


def _groups(builder: Tf1Legalizer, x: SSAValue, weights: SSAValue) -> int:
    """How many times the weights' input channels fit into those of the input."""
    groups = _ratio(dims_of(x)[1], dims_of(weights)[1])
    if builder.attrs.has("groups") and builder.attrs.int("groups") != groups:
        builder.refuse(f"groups {builder.attrs.int('groups')}", f"{groups}, as the weights have it")
    return groups


def _ratio(channels: Expr | None, own: Expr) -> int:
    """channels / own; where a number is not known, no more than one group is expected."""
    if channels is None or channels.value is None or not own.value:
        return 1
    return channels.value // own.value


def _windowed(
    builder: Tf1Legalizer, layout: Layout, x: SSAValue, weights: SSAValue, groups: int
) -> SSAValue:
    dims = spatial_dims(x)
    strides = layout.spatial(builder.attrs.ints("strides"))
    dilations = dilations_of(builder, layout)
    window = window_of(builder, layout, dims, spatial_dims(weights), strides, dilations)
    return convolution(builder, x, weights, None, window, groups)


@legalizes("DepthwiseConv2dNative")
def legalize_depthwise_conv(builder: Tf1Legalizer) -> Results:
    """Each channel by its own weights, which are [kernel..., C, multiplier]."""
    layout = Layout.of(builder)
    return [layout.from_first(_depthwise(builder, layout))]


@legalizes("_FusedDepthwiseConv2dNative")
def legalize_fused_depthwise_conv(builder: Tf1Legalizer) -> Results:
    """A convolution of each channel, and the operators that `fused_ops` lists."""
    layout = Layout.of(builder)
    value = layout.from_first(_depthwise(builder, layout))
    return [fused(builder, value, layout.axis(rank_of(value)))]


def _depthwise(builder: Tf1Legalizer, layout: Layout) -> SSAValue:
    weights, groups = _depthwise_weights(builder)
    x = layout.to_first(require_image(builder, number(builder, "input"), 4))
    return _windowed(builder, layout, x, weights, groups)


def _depthwise_weights(builder: Tf1Legalizer) -> tuple[SSAValue, int]:
    """[kernel..., C, multiplier] as [C * multiplier, 1, kernel...], and C."""
    weights = require_image(builder, number(builder, "filter"), 4)
    height, width, channels, multiplier = dims_of(weights)
    if channels.value is None:
        builder.refuse(f"weights of {channels} channels", "a number that is known")
    weights = builder.transpose(weights, [2, 3, 0, 1])
    return builder.reshape(weights, [channels * multiplier, 1, height, width]), channels.value


# Gradients


_BY_INPUT = frozenset({"Conv2DBackpropInputV2", "Conv3DBackpropInput"})
"""Gradients that are given the input instead of its sizes."""


@legalizes("Conv2DBackpropInput", "Conv3DBackpropInputV2", *_BY_INPUT)
def legalize_conv_gradient(builder: Tf1Legalizer) -> Results:
    """The gradient of a convolution whose input had the dimensions `input_sizes`."""
    layout = Layout.of(builder)
    weights = number(builder, "filter")
    rank = rank_of(weights)
    weights = builder.transpose(weights, [rank - 1, rank - 2, *range(rank - 2)])
    channels, sizes = _input_sizes(builder, layout, rank)
    groups = _ratio(channels, dims_of(weights)[1])
    return [layout.from_first(_gradient(builder, layout, weights, sizes, groups))]


@legalizes("DepthwiseConv2dNativeBackpropInput")
def legalize_depthwise_gradient(builder: Tf1Legalizer) -> Results:
    """The gradient of a convolution of each channel."""
    layout = Layout.of(builder)
    weights, groups = _depthwise_weights(builder)
    _, sizes = _input_sizes(builder, layout, 4)
    return [layout.from_first(_gradient(builder, layout, weights, sizes, groups))]


def _input_sizes(
    builder: Tf1Legalizer, layout: Layout, rank: int
) -> tuple[Expr | None, list[Expr]]:
    """The channels (if they are given) and spatial sizes of the result."""
    if builder.op_type in _BY_INPUT:
        sizes = list(dims_of(builder.operand("input")))
    else:
        sizes = list(sizes_of(builder, builder.operand("input_sizes"), "input_sizes"))
    if len(sizes) == rank - 2:
        return None, sizes
    if len(sizes) != rank:
        builder.refuse(f"{len(sizes)} input_sizes", str(rank))
    axis = layout.axis(rank)
    return sizes[axis], [size for k, size in enumerate(sizes) if k not in (0, axis)]


def _gradient(
    builder: Tf1Legalizer, layout: Layout, weights: SSAValue, sizes: Sequence[Expr], groups: int
) -> SSAValue:
    """
    Padding is that of the convolution from `sizes`; where its windows do not reach the end, the
    rest of the result gets no gradient.
    """
    given = require_image(builder, number(builder, "out_backprop"), rank_of(weights))
    x = layout.to_first(given)
    strides = layout.spatial(builder.attrs.ints("strides"))
    dilations = dilations_of(builder, layout)
    window = window_of(builder, layout, sizes, spatial_dims(weights), strides, dilations)
    return spread_by(builder, x, weights, sizes, window, groups)


def spread_by(
    builder: Tf1Legalizer,
    x: SSAValue,
    weights: SSAValue,
    sizes: Sequence[Expr],
    window: Window,
    groups: int,
) -> SSAValue:
    """The gradient by the input, of the spatial dimensions `sizes`, of what a window made of it."""
    ends: list[Expr] = []
    extra: list[int] = []
    for dim, size, extent, stride, begin in zip(
        spatial_dims(x), sizes, window.extents, window.strides, window.begin, strict=True
    ):
        end = (dim - 1) * stride + extent - begin - size
        missing = -(end.value or 0)
        extra.append(max(missing, 0))
        ends.append(Expr.const(0) if missing > 0 else end)
    return transposed_convolution(
        builder,
        x,
        weights,
        strides=window.strides,
        dilations=window.dilations,
        pads_begin=window.begin,
        pads_end=ends,
        output_padding=extra,
        groups=groups,
    )


# Morphology


@legalizes("Dilation2D")
def legalize_dilation(builder: Tf1Legalizer) -> Results:
    """The maximum over the window of the input plus the weights [height, width, C]."""
    layout = Layout(builder, False)
    x = layout.to_first(require_image(builder, number(builder, "input"), 4))
    weights = TensorValue.of(builder, builder.transpose(number(builder, "filter"), [2, 0, 1]))
    channels, *kernel = weights.dims
    numbers = constants(kernel)
    if numbers is None or np.prod(numbers) > MAX_TAPS:
        builder.refuse(f"a window of {list(map(str, kernel))}", "a small one that is known")
    strides = layout.spatial(builder.attrs.ints("strides"))
    rates = layout.spatial(builder.attrs.ints("rates"))
    window = window_of(builder, layout, spatial_dims(x), kernel, strides, rates)
    dims = [*dims_of(x)[:2], *_positions(window, spatial_dims(x))]
    around = padded(builder, x, window, builder.scalar(extreme(element_type(x), highest=False), x))
    best: TensorValue | None = None
    for row, column in cartesian(*map(range, numbers)):
        weight = weights.pick(1, row).pick(1, column).reshape([channels, 1, 1])
        value = tap(builder, around, window, dims, (row, column)) + weight
        best = value if best is None else best.maximum(value)
    if best is None:
        builder.refuse("an empty window", "at least one element")
    return [layout.from_first(best.value)]


def _positions(window: Window, dims: Sequence[Expr]) -> list[Expr]:
    """How many windows there are in each spatial dimension."""
    return [
        (dim + begin + end - extent) // stride + 1
        for dim, begin, end, extent, stride in zip(
            dims, window.begin, window.end, window.extents, window.strides, strict=True
        )
    ]
