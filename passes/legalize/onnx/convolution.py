"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, constants, maximum
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.linear import convolution, transposed_convolution
from lowerdeck.passes.legalize.onnx.applied import deformable
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.windows import (
    AUTO_PADS,
    read_kernel,
    read_list,
    read_pads,
    read_window,
)
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("Conv")
def legalize_conv(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """A convolution with explicit padding."""
    x, w = builder.operand("X"), builder.operand("W")
    kernel = read_kernel(builder, dims_of(w)[2:])
    window = read_window(builder, dims_of(x)[2:], kernel)
    bias, groups = _bias(builder, dims_of(w)[0]), builder.attrs.int("group")
    return [convolution(builder, x, w, bias, window, groups)]


@legalizes("ConvTranspose")
def legalize_conv_transpose(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """A transposed convolution; `output_shape` or SAME determine the padding."""
    x, w = builder.operand("X"), builder.operand("W")
    groups = builder.attrs.int("group")
    dims = dims_of(x)[2:]
    kernel = read_kernel(builder, dims_of(w)[2:])
    count = len(dims)
    strides = read_list(builder, "strides", 1, count)
    dilations = read_list(builder, "dilations", 1, count)
    extra = read_list(builder, "output_padding", 0, count)
    begin, end = read_pads(builder, count)
    auto_pad = builder.attrs.string("auto_pad", among=AUTO_PADS)
    sizes = _output_sizes(builder, dims, strides, auto_pad)
    if sizes is not None:
        whole = [
            (dim - 1) * stride + (k - 1) * dilation + 1 + more
            for dim, stride, k, dilation, more in zip(
                dims, strides, kernel, dilations, extra, strict=True
            )
        ]
        begin, end, extra = _distribute(whole, sizes, extra, upper=auto_pad == "SAME_UPPER")
    conv = transposed_convolution(
        builder,
        x,
        w,
        _bias(builder, dims_of(w)[1] * groups),
        strides=strides,
        dilations=dilations,
        pads_begin=begin,
        pads_end=end,
        output_padding=extra,
        groups=groups,
    )
    return [conv]


@legalizes("DeformConv")
def legalize_deformable(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """A convolution of images whose taps are moved by offsets, and maybe weighted."""
    x, w = builder.operand("X"), builder.operand("W")
    if rank_of(x) != 4:
        builder.refuse(f"a convolution of {rank_of(x) - 2} dimensions", "2")
    read_kernel(builder, dims_of(w)[2:])
    begin, _ = read_pads(builder, 2)  # the end follows from the shape of the offsets
    if (pads := constants(begin)) is None:
        builder.refuse("pads that are computed", "numbers")
    numbers = read_list(builder, "strides", 1, 2), pads, read_list(builder, "dilations", 1, 2)
    mask, bias = builder.input("mask"), _bias(builder, dims_of(w)[0])
    offset = TensorValue.of(builder, builder.operand("offset"))
    found = deformable(
        builder,
        x,
        w,
        offset,
        None if mask is None else TensorValue.of(builder, mask),
        numbers,
        groups=builder.attrs.int("group"),
        parts=builder.attrs.int("offset_group"),
    )
    return [(found if bias is None else found + TensorValue.of(builder, bias).column(4, 1)).value]


def _bias(builder: OnnxLegalizer, channels: Expr) -> SSAValue | None:
    """The bias; one of unknown size has an element a channel."""
    bias = builder.input("B")
    if bias is None or rank_of(bias) != 1:
        return bias
    is_known = None not in (dims_of(bias)[0].value, channels.value)
    return bias if is_known else builder.reshape(bias, [channels])


def _output_sizes(
    builder: OnnxLegalizer, dims: Sequence[Expr], strides: Sequence[int], auto_pad: str
) -> list[Expr] | None:
    """The spatial sizes of the result if the node states them."""
    shape = builder.attrs.opt_ints("output_shape")
    if shape is not None:
        # Some exporters write the batch and channels as well.
        if len(shape) not in (len(dims), len(dims) + 2):
            builder.refuse(f"an output_shape of {len(shape)} numbers", str(len(dims)))
        return [Expr.const(size) for size in shape[-len(dims) :]]
    if auto_pad.startswith("SAME"):
        return [dim * stride for dim, stride in zip(dims, strides, strict=True)]
    return None


def _distribute(
    whole: Sequence[Expr], sizes: Sequence[Expr], extra: Sequence[int], *, upper: bool
) -> tuple[list[Expr], list[Expr], list[int]]:
    """
    Padding that cuts `whole` down to `sizes`: the larger half is cut from the end if `upper`, else
    from the beginning. What a size exceeds the whole by is added as output padding.
    """
    begins: list[Expr] = []
    ends: list[Expr] = []
    paddings: list[int] = []
    for full, size, padding in zip(whole, sizes, extra, strict=True):
        excess = full - size
        if excess.value is not None and excess.value < 0:
            padding, excess = padding - excess.value, Expr.const(0)
        total = maximum(excess, 0)
        begins.append(total // 2 if upper else total - total // 2)
        # Where the sign of the excess is not known, a negative end pads the result.
        ends.append(excess - begins[-1])
        paddings.append(padding)
    return begins, ends, paddings
