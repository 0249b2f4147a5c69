"""Convolutions, products with weights, and the columns that convolutions multiply."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as cartesian

from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import ConvolutionParameter
from lowerdeck.dialects.caffe.shapes import Windows, convolution_windows
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp, window_sizes
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike, exprs, product
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.movement import rows
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.pooling import MAX_TAPS, padded, tap
from lowerdeck.passes.legalize.quantity import stack
from lowerdeck.passes.legalize.windows import Window

# Convolutions


@legalizes("Convolution")
def legalize_convolution(lower: CaffeLegalizer) -> Results:
    """Over the dimensions behind `axis`; each bottom is convolved with the same weights."""
    return [_convolved(lower, bottom) for bottom in lower.bottoms]


def _convolved(lower: CaffeLegalizer, x: SSAValue) -> SSAValue:
    p = lower.layer.convolution_param
    dims, windows = dims_of(x), convolution_windows(p, rank_of(x))
    window = _window(windows)
    result = lower.add(
        ConvOp(
            _images(lower, x, windows.axis),
            _weight(lower, windows),
            _bias(lower, p),
            strides=window.strides,
            dilations=window.dilations,
            pads_begin=window.begin,
            pads_end=window.end,
            groups=p.group,
        )
    )
    return _with_dims_before(lower, result, dims, windows.axis)


@legalizes("Deconvolution")
def legalize_deconvolution(lower: CaffeLegalizer) -> Results:
    """What makes of a bottom the blob that a convolution makes this bottom of."""
    return [_deconvolved(lower, bottom) for bottom in lower.bottoms]


def _deconvolved(lower: CaffeLegalizer, x: SSAValue) -> SSAValue:
    p = lower.layer.convolution_param
    dims, windows = dims_of(x), convolution_windows(p, rank_of(x))
    window = _window(windows)
    result = lower.add(
        ConvTransposeOp(
            _images(lower, x, windows.axis),
            _weight(lower, windows),
            _bias(lower, p),
            strides=window.strides,
            dilations=window.dilations,
            pads_begin=window.begin,
            pads_end=window.end,
            output_padding=[0] * len(window.strides),
            groups=p.group,
        )
    )
    return _with_dims_before(lower, result, dims, windows.axis)


def _window(windows: Windows) -> Window:
    """The windows of a layer; without spatial dimensions, over one of one element."""
    lists = (windows.kernel, windows.stride, windows.pad, windows.dilation)
    kernel, strides, pads, dilations = lists if windows.kernel else ((1,), (1,), (0,), (1,))
    begin = list(exprs(pads))
    zeros = [Expr.const(0)] * len(begin)
    return Window(exprs(kernel), list(strides), list(dilations), begin, begin, zeros)


def _images(lower: CaffeLegalizer, x: SSAValue, axis: int) -> SSAValue:
    """[N, C, spatial...]: the dimensions before the channels are one."""
    dims = dims_of(x)
    spatial: Sequence[ExprLike] = dims[axis + 1 :] or (1,)
    return lower.reshape(x, [product(dims[:axis]), dims[axis], *spatial])


def _with_dims_before(
    lower: CaffeLegalizer, images: SSAValue, dims: Sequence[Expr], axis: int
) -> SSAValue:
    """Undo `_images`."""
    _, channels, *spatial = dims_of(images)
    return lower.reshape(images, [*dims[:axis], channels, *spatial[: len(dims) - axis - 1]])


def _weight(lower: CaffeLegalizer, windows: Windows) -> SSAValue:
    weight = lower.blobs[0]
    return weight if windows.kernel else lower.unsqueeze(weight, [2])


def _bias(lower: CaffeLegalizer, parameters: ConvolutionParameter) -> SSAValue | None:
    return lower.blobs[1] if parameters.bias_term else None


@legalizes("Im2col")
def legalize_im2col(lower: CaffeLegalizer) -> Results:
    """The elements of each window as channels: those of the first channel, then of the next."""
    windows = convolution_windows(lower.layer.convolution_param, rank_of(lower.x))
    window, dims = _window(windows), lower.shape
    if (count := product(window.kernel).value or 0) > MAX_TAPS:
        lower.refuse(f"windows of {count} elements", f"at most {MAX_TAPS}")
    x = _images(lower, lower.x, windows.axis)
    sizes = window_sizes(
        dims_of(x)[2:], window.kernel, window.strides, window.dilations, window.begin, window.end
    )
    images = padded(lower, x, window, lower.scalar(0, x))
    whole = [*dims_of(x)[:2], *sizes]
    offsets = cartesian(*(range(size.value or 0) for size in window.kernel))
    columns = stack([tap(lower, images, window, whole, offset) for offset in offsets], 2)
    channels = dims[windows.axis] * count
    spatial = sizes[: len(dims) - windows.axis - 1]
    return [lower.reshape(columns.value, [*dims[: windows.axis], channels, *spatial])]


# Products


@legalizes("InnerProduct")
def legalize_inner_product(lower: CaffeLegalizer) -> Results:
    """The dimensions from `axis` on times the weights, which are [outputs, inputs] as a rule."""
    p, dims = lower.layer.inner_product_param, lower.shape
    axis = lower.axis(p.axis, len(dims))
    weight = lower.blobs[0] if p.transpose else lower.transpose(lower.blobs[0], [1, 0])
    result = lower.add(MatmulOp(lower.flatten(lower.x, axis), weight))
    if p.bias_term:
        result = lower.add(AddOp(result, lower.blobs[1]))
    return [lower.reshape(result, [*dims[:axis], dims_of(weight)[1]])]


@legalizes("Embed")
def legalize_embed(lower: CaffeLegalizer) -> Results:
    """The rows of the weights at whole numbers that are stored as floats."""
    result = rows(lower, lower.blobs[0], lower.x)
    if lower.layer.embed_param.bias_term:
        result = lower.add(AddOp(result, lower.blobs[1]))
    return [result]
