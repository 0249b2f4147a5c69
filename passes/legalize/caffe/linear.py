"""Convolutions, products with weights, and the columns that convolutions multiply."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as cartesian
from sys import maxsize

from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import ConvolutionParameter
from lowerdeck.dialects.caffe.shapes import (
    Shape,
    Windows,
    convolution_groups,
    convolution_windows,
    windows_beyond,
)
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp, window_sizes
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike, exprs, product
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.movement import rows
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.common.pooling import MAX_TAPS, padded, tap
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.tensor_value import stack

# Convolutions


@legalizes("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution")
def legalize_convolution(builder: CaffeLegalizer) -> Results:
    """Over the dimensions behind `axis`; each bottom is convolved with the same weights."""
    return [_convolved(builder, bottom) for bottom in builder.bottoms]


def _convolved(builder: CaffeLegalizer, x: SSAValue) -> SSAValue:
    p = builder.layer.convolution_param
    dims, windows = dims_of(x), convolution_windows(p, rank_of(x))
    window = _window(windows, _beyond(dims, windows))
    result = builder.add(
        ConvOp(
            _images(builder, x, windows.axis),
            _weight(builder, windows),
            _bias(builder, p),
            strides=window.strides,
            dilations=window.dilations,
            pads_begin=window.begin,
            pads_end=window.end,
            groups=convolution_groups(builder.layer, dims[windows.axis].value or p.group),
        )
    )
    return _with_dims_before(builder, result, dims, windows.axis)


@legalizes("Deconvolution")
def legalize_deconvolution(builder: CaffeLegalizer) -> Results:
    """What makes of a bottom the blob that a convolution makes this bottom of."""
    return [_deconvolved(builder, bottom) for bottom in builder.bottoms]


def _deconvolved(builder: CaffeLegalizer, x: SSAValue) -> SSAValue:
    p = builder.layer.convolution_param
    dims, windows = dims_of(x), convolution_windows(p, rank_of(x))
    window = _window(windows)
    result = builder.add(
        ConvTransposeOp(
            _images(builder, x, windows.axis),
            _weight(builder, windows),
            _bias(builder, p),
            strides=window.strides,
            dilations=window.dilations,
            pads_begin=window.begin,
            pads_end=window.end,
            output_padding=[0] * len(window.strides),
            groups=p.group,
        )
    )
    return _with_dims_before(builder, result, dims, windows.axis)


def _window(windows: Windows, beyond: Sequence[int] = ()) -> Window:
    """
    The windows of a layer; without spatial dimensions, over one of one element. There is as much
    more padding at the end as they are `beyond` it.
    """
    lists = (windows.kernel, windows.stride, windows.pad, windows.dilation)
    kernel, strides, pads, dilations = lists if windows.kernel else ((1,), (1,), (0,), (1,))
    begin = list(exprs(pads))
    more = beyond or [0] * len(begin)
    end = [pad + excess for pad, excess in zip(begin, more, strict=True)]
    zeros = [Expr.const(0)] * len(begin)
    return Window(exprs(kernel), list(strides), list(dilations), begin, end, zeros)


def _beyond(dims: Sequence[Expr], windows: Windows) -> Shape:
    """By how much windows are larger than a padded blob where its size is known."""
    sizes = [dim.value for dim in dims[windows.axis + 1 :]]
    return windows_beyond([maxsize if size is None else size for size in sizes], windows)


def _images(builder: CaffeLegalizer, x: SSAValue, axis: int) -> SSAValue:
    """[N, C, spatial...]: the dimensions before the channels are one."""
    dims = dims_of(x)
    spatial: Sequence[ExprLike] = dims[axis + 1 :] or (1,)
    return builder.reshape(x, [product(dims[:axis]), dims[axis], *spatial])


def _with_dims_before(
    builder: CaffeLegalizer, images: SSAValue, dims: Sequence[Expr], axis: int
) -> SSAValue:
    """Undo `_images`."""
    _, channels, *spatial = dims_of(images)
    return builder.reshape(images, [*dims[:axis], channels, *spatial[: len(dims) - axis - 1]])


def _weight(builder: CaffeLegalizer, windows: Windows) -> SSAValue:
    weight = builder.blobs[0]
    return weight if windows.kernel else builder.unsqueeze(weight, [2])


def _bias(builder: CaffeLegalizer, parameters: ConvolutionParameter) -> SSAValue | None:
    return builder.blobs[1] if parameters.bias_term else None


@legalizes("Im2col")
def legalize_im2col(builder: CaffeLegalizer) -> Results:
    """The elements of each window as channels: those of the first channel, then of the next."""
    windows = convolution_windows(builder.layer.convolution_param, rank_of(builder.x))
    dims = builder.shape
    window = _window(windows, _beyond(dims, windows))
    if (count := product(window.kernel).value or 0) > MAX_TAPS:
        builder.refuse(f"windows of {count} elements", f"at most {MAX_TAPS}")
    x = _images(builder, builder.x, windows.axis)
    sizes = window_sizes(
        dims_of(x)[2:], window.kernel, window.strides, window.dilations, window.begin, window.end
    )
    images = padded(builder, x, window, builder.scalar(0, x))
    whole = [*dims_of(x)[:2], *sizes]
    offsets = cartesian(*(range(size.value or 0) for size in window.kernel))
    columns = stack([tap(builder, images, window, whole, offset) for offset in offsets], 2)
    channels = dims[windows.axis] * count
    spatial = sizes[: len(dims) - windows.axis - 1]
    return [builder.reshape(columns.value, [*dims[: windows.axis], channels, *spatial])]


# Products


@legalizes("InnerProduct")
def legalize_inner_product(builder: CaffeLegalizer) -> Results:
    """The dimensions from `axis` on times the weights, which are [outputs, inputs] as a rule."""
    p, dims = builder.layer.inner_product_param, builder.shape
    axis = builder.axis(p.axis, len(dims))
    weight = builder.blobs[0] if p.transpose else builder.transpose(builder.blobs[0], [1, 0])
    result = builder.add(MatmulOp(builder.flatten(builder.x, axis), weight))
    if p.bias_term:
        result = builder.add(AddOp(result, builder.blobs[1]))
    return [builder.reshape(result, [*dims[:axis], dims_of(weight)[1]])]


@legalizes("Embed")
def legalize_embed(builder: CaffeLegalizer) -> Results:
    """The rows of the weights at whole numbers that are stored as floats."""
    result = rows(builder, builder.blobs[0], builder.x)
    if builder.layer.embed_param.bias_term:
        result = builder.add(AddOp(result, builder.blobs[1]))
    return [result]
