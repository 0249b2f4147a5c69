"""Convolutions of images of one to three dimensions; `core` has the channels in dimension 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.linear import convolution, transposed_convolution
from lowerdeck.passes.legalize.common.windows import Window, same
from lowerdeck.passes.legalize.keras.activation import finished
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.registry import Results, legalizes


def window_of(
    builder: KerasLegalizer,
    dims: Sequence[Expr],
    kernel: Sequence[int],
    strides: list[int],
    dilations: list[int],
    padding: str,
) -> Window:
    """A window with its padding made explicit."""
    zeros = [Expr.const(0)] * len(kernel)
    window = Window(tuple(map(Expr.const, kernel)), strides, dilations, zeros, zeros, zeros)
    match padding:
        case "valid":
            return window
        case "same":
            return same(window, dims, upper=True)
        case "causal":
            begin = [Expr.const((k - 1) * d) for k, d in zip(kernel, dilations, strict=True)]
            return replace(window, begin=begin)
        case _:
            builder.refuse(f"the padding '{padding}'", "valid, same or causal")


def _window(builder: KerasLegalizer, x: SSAValue, count: int) -> Window:
    kernel = builder.numbers("kernel_size", count)
    strides, dilations = builder.numbers("strides", count), builder.numbers("dilation_rate", count)
    padding = str(builder.config("padding", "valid")).lower()
    return window_of(builder, dims_of(x)[2:], kernel, strides, dilations, padding)


def _finish(builder: KerasLegalizer, value: SSAValue, is_first: bool) -> Results:
    """Bias and activation of an image."""
    builder.ignore("use_bias")
    bias = builder.weight("bias")
    if bias is not None:
        rank = rank_of(value)
        shape = [1, dims_of(bias)[0], *[1] * (rank - 2)]
        value = builder.add(AddOp(value, builder.reshape(bias, shape)))
    return finished(builder, builder.from_first(value, is_first))


def first_kernel(builder: KerasLegalizer, kernel: SSAValue) -> SSAValue:
    """[kernel..., in, out] as [out, in, kernel...]."""
    rank = rank_of(kernel)
    return builder.transpose(kernel, [rank - 1, rank - 2, *range(rank - 2)])


def _depthwise(builder: KerasLegalizer, kernel: SSAValue) -> tuple[SSAValue, int]:
    """[kernel..., C, multiplier] as [C * multiplier, 1, kernel...], and C."""
    dims = dims_of(kernel)
    rank = len(dims)
    kernel = builder.transpose(kernel, [rank - 2, rank - 1, *range(rank - 2)])
    channels = dims[-2].value or 0
    return builder.reshape(kernel, [dims[-2] * dims[-1], 1, *dims[:-2]]), channels


@legalizes("Conv1D", "Conv2D", "Conv3D")
def legalize_conv(builder: KerasLegalizer) -> Results:
    """A convolution, in groups if the kernel has fewer input channels."""
    count = int(builder.op_type[4])
    x, is_first = builder.image(count)
    groups = int(builder.config("groups", 1) or 1)
    sizes, channels = builder.numbers("kernel_size", count), dims_of(x)[1].value
    filters = builder.integer("filters")
    own = None if channels is None else channels // groups
    builder.require_shape("kernel", *sizes, own, filters)
    kernel = first_kernel(builder, builder.require_weight("kernel"))
    value = convolution(builder, x, kernel, None, _window(builder, x, count), groups)
    return _finish(builder, value, is_first)


@legalizes("DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D")
def legalize_depthwise(builder: KerasLegalizer) -> Results:
    """Each channel by its own kernels; separably, then all of them by a kernel of one element."""
    builder.ignore("depth_multiplier", "groups", "filters")
    count, is_separable = int(builder.op_type[-2]), builder.op_type.startswith("Separable")
    x, is_first = builder.image(count)
    name = "depthwise_kernel" if is_separable else "kernel"
    kernel, groups = _depthwise(builder, builder.require_weight(name))
    value = convolution(builder, x, kernel, None, _window(builder, x, count), groups)
    if is_separable:
        ones = [1] * count
        point = window_of(builder, dims_of(value)[2:], ones, ones, ones, "valid")
        kernel = first_kernel(builder, builder.require_weight("pointwise_kernel"))
        value = convolution(builder, value, kernel, None, point, 1)
    return _finish(builder, value, is_first)


@legalizes("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
def legalize_transposed(builder: KerasLegalizer) -> Results:
    """The gradient of a convolution by its input; kernels are [kernel..., out, in]."""
    count = int(builder.op_type[4])
    builder.ignore("filters", "groups")
    x, is_first = builder.image(count)
    kernel = first_kernel(builder, builder.require_weight("kernel"))
    sizes, strides = builder.numbers("kernel_size", count), builder.numbers("strides", count)
    dilations = builder.numbers("dilation_rate", count)
    padding = str(builder.config("padding", "valid")).lower()
    extra = builder.config("output_padding")
    extras = [None] * count if extra is None else builder.numbers("output_padding", count)
    extents = [(size - 1) * step + 1 for size, step in zip(sizes, dilations, strict=True)]
    spaces = zip(extents, strides, extras, strict=True)
    begin, end, out = zip(*(_transposed_pads(*space, padding) for space in spaces), strict=True)
    value = transposed_convolution(
        builder,
        x,
        kernel,
        strides=strides,
        dilations=dilations,
        pads_begin=begin,
        pads_end=end,
        output_padding=out,
    )
    return _finish(builder, value, is_first)


def _transposed_pads(
    extent: int, stride: int, extra: int | None, padding: str
) -> tuple[int, int, int]:
    """How much a result is cut at both ends, and how much it is longer, in one dimension."""
    if padding == "valid":
        longer = max(stride - extent, 0) if extra is None else extra
        return 0, 0, longer
    if extra is None:
        # dim * stride elements of (dim - 1) * stride + extent
        total = extent - stride
        return (max(total, 0) // 2, max(total, 0) - max(total, 0) // 2, max(-total, 0))
    # (dim - 1) * stride + extent - 2 * (extent // 2) + extra elements: those of a convolution
    # that is padded to SAME, whose own padding is what it needs
    size = extent - 2 * (extent // 2) + extra  # of one element
    total = max(extent - size, 0)
    return total // 2, total - total // 2, max(size - extent, 0)
