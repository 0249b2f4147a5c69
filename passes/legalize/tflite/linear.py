"""
Convolutions and matrix products: of floats, of quantized integers, and of floats with weights that
are integers, for which the floats are quantized when the model runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    i8,
    i16,
    i32,
    i64,
    is_float,
    is_integer,
    rank_of,
    ui8,
)
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.linear import convolution
from lowerdeck.passes.legalize.common.quantization import rows_as_bytes
from lowerdeck.passes.legalize.common.windows import Window, same
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.ranges import as_f32, channel_scales, to_result
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes


def to_channels_first(builder: TfliteLegalizer, x: SSAValue) -> SSAValue:
    """[N, spatial..., C] as [N, C, spatial...]."""
    rank = rank_of(x)
    return builder.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def to_channels_last(builder: TfliteLegalizer, x: SSAValue) -> SSAValue:
    """[N, C, spatial...] as [N, spatial..., C]."""
    rank = rank_of(x)
    return builder.transpose(x, [0, *range(2, rank), 1])


def window_of(
    builder: TfliteLegalizer, dims: Sequence[Expr], kernel: Sequence[Expr], *, dilated: bool = True
) -> Window:
    """The window of the options over height and width."""
    strides = [int(builder.option(f"stride_{k}")) for k in "hw"]
    dilations = [int(builder.option(f"dilation_{k}_factor")) if dilated else 1 for k in "hw"]
    if min(*strides, *dilations) < 1:
        builder.refuse(f"strides {strides} and dilations {dilations}", "positive ones")
    zeros = [Expr.const(0)] * len(dims)
    window = Window(tuple(kernel), strides, dilations, zeros, zeros, zeros)
    is_same = (builder.option("padding") or "SAME") == "SAME"
    return same(window, dims, upper=True) if is_same else window


@record
class _Factors:
    """The two factors of a product, and how what it gives is brought to the result."""

    x: SSAValue
    weights: SSAValue
    bias: SSAValue | None


def _sum_type(x: SSAValue, bias: SSAValue | None) -> Attribute:
    """The type of sums: 64 bits for integers of 16, unless the bias has 32."""
    if element_type(x) != i16:
        return i32
    return i64 if bias is None else element_type(bias)


def _zeros(builder: TfliteLegalizer, x: int, weights: int) -> list[SSAValue]:
    """The zero points of input and weights, if there are any."""
    qx, qw = builder.quantization(x), builder.quantization(weights)
    own = element_type(builder.input(weights))
    zero_w = 0 if own == i8 else qw.zero
    if any(zero != qw.zeros[0] for zero in qw.zeros):
        builder.refuse("weights with several zero points", "one")
    if not qx.zero and not zero_w:
        return []
    return [
        builder.scalar(qx.zero, builder.input(x)),
        builder.scalar(zero_w, builder.input(weights)),
    ]


def product_factors(builder: TfliteLegalizer, x: int, weights: int, count: int) -> list[float]:
    """What sums of products are multiplied by to have the scale of the result."""
    qx, qw, qy = builder.quantization(x), builder.quantization(weights), None
    qy = builder.result_quantization()
    scales = channel_scales(builder, weights, count)
    if element_type(builder.input(x)) == ui8 and builder.op_type != "FULLY_CONNECTED":
        return [as_f32(as_f32(qx.scale) * as_f32(qw.scale)) / qy.scale]
    return [qx.scale * scale / qy.scale for scale in scales]


# Convolutions


@legalizes("CONV_2D")
def legalize_conv(builder: TfliteLegalizer) -> Results:
    """Weights are [M, height, width, C / groups]."""
    weights = builder.transpose(builder.input(1), [0, 3, 1, 2])
    return [_conv(builder, weights)]


@legalizes("DEPTHWISE_CONV_2D")
def legalize_depthwise(builder: TfliteLegalizer) -> Results:
    """Weights are [1, height, width, C * multiplier], those of one channel side by side."""
    weights = builder.transpose(builder.input(1), [3, 0, 1, 2])
    return [_conv(builder, weights)]


def _conv(builder: TfliteLegalizer, weights: SSAValue) -> SSAValue:
    """The convolution with weights [M, C / groups, height, width]."""
    builder.require_rank(builder.input(0), 4, "input")
    x = to_channels_first(builder, builder.input(0))
    channels, own = dims_of(x)[1], dims_of(weights)[1]
    if channels.value is None or not own.value or channels.value % own.value:
        builder.refuse(f"{channels} channels with weights for {own}", "a multiple")
    groups = channels.value // own.value
    window = window_of(builder, dims_of(x)[2:], dims_of(weights)[2:])
    bias = builder.optional(2)
    element = element_type(x)
    if is_float(element) and is_integer(element_type(weights)):
        return _hybrid_conv(builder, x, weights, bias, window, groups)
    if is_float(element):
        y = convolution(builder, x, weights, bias, window, groups)
        return to_channels_last(builder, builder.activated(y))
    count = dims_of(weights)[0].value or 0
    sums = _sum_type(x, bias)
    zeros = _zeros(builder, 0, 1)
    bias = None if bias is None else builder.cast(bias, sums)
    y = convolution(builder, x, weights, bias, window, groups, zeros, sums)
    factors = product_factors(builder, 0, 1, count)
    shape = [len(factors), 1, 1]
    return to_channels_last(builder, to_result(builder, y, factors, shape=shape))


@legalizes("CONV_3D")
def legalize_conv_3d(builder: TfliteLegalizer) -> Results:
    """Weights are [depth, height, width, C, M]."""
    builder.require_float()
    attributes = _volume(builder)
    y = applied(builder, "Conv3D", builder.input(0), builder.input(1), **attributes)[0]
    return [builder.activated(_biased(builder, y, builder.optional(2)))]


@legalizes("CONV_3D_TRANSPOSE")
def legalize_transposed_conv_3d(builder: TfliteLegalizer) -> Results:
    """The gradient of a convolution; weights are [depth, height, width, M, C]."""
    attributes = _volume(builder)
    sizes, weights, x = (builder.input(k) for k in range(3))
    y = applied(builder, "Conv3DBackpropInputV2", sizes, weights, x, **attributes)[0]
    return [builder.activated(_biased(builder, y, builder.optional(3)))]


def _volume(builder: TfliteLegalizer) -> dict[str, object]:
    return {
        "padding": builder.option("padding") or "SAME",
        "strides": [1, *(builder.option(f"stride_{k}") for k in "dhw"), 1],
        "dilations": [1, *(builder.option(f"dilation_{k}_factor") for k in "dhw"), 1],
    }


def _biased(builder: TfliteLegalizer, y: SSAValue, bias: SSAValue | None) -> SSAValue:
    return y if bias is None else builder.add(AddOp(y, bias))


@legalizes("Convolution2DTransposeBias")
def legalize_mediapipe_transposed_conv(builder: TfliteLegalizer) -> Results:
    """
    That of MediaPipe (mediapipe/util/tflite/operations/transpose_conv_bias.cc): each input adds its
    weights, [M, height, width, C], to the bias. Of padding there is so much as makes the result as
    large as the input times the strides, where the weights reach as far.
    """
    for index in range(3):
        builder.require_float(index)
    image = to_channels_first(builder, builder.input(0))
    w = builder.transpose(builder.input(1), [3, 0, 1, 2])
    strides = [int(builder.option("stride_h")), int(builder.option("stride_w"))]
    padding = int(builder.option("padding"))
    if padding not in (_SAME, _VALID) or min(strides) < 1:
        builder.refuse(f"the padding {padding} and strides {strides}", "1 (same) or 2 (valid)")
    begin: list[int] = []
    end: list[int] = []
    for dim, extent, stride in zip(dims_of(image)[2:], dims_of(w)[2:], strides, strict=True):
        size, length = dim.value, extent.value
        if size is None or length is None:
            builder.refuse(f"an image of {dim} by weights of {extent}", "sizes that are known")
        total = max(0, length - (size - 1) % stride - 1) if padding == _SAME else 0
        begin.append(total // 2)
        end.append(total - total // 2)
    op = ConvTransposeOp(
        image,
        w,
        builder.input(2),
        strides=strides,
        dilations=[1, 1],
        pads_begin=begin,
        pads_end=end,
        output_padding=[0, 0],
    )
    return [to_channels_last(builder, builder.add(op))]


_SAME, _VALID = 1, 2
"""Paddings in the options of custom operators."""


@legalizes("TRANSPOSE_CONV")
def legalize_transposed_conv(builder: TfliteLegalizer) -> Results:
    """
    Each input adds its weights, [M, height, width, C], to the result. The size of that is the first
    input; its padding is that of a convolution from this size.
    """
    weights, x, bias = builder.input(1), builder.input(2), builder.optional(3)
    builder.require_rank(x, 4, "image")
    _, rows, columns, _ = builder.sizes(0, 4, "the size of the result")
    w = builder.transpose(weights, [3, 0, 1, 2])
    image = to_channels_first(builder, x)
    window = window_of(builder, [rows, columns], dims_of(w)[2:], dilated=False)
    ends: list[ExprLike] = []
    extra: list[int] = []
    for dim, size, extent, stride, begin in zip(
        dims_of(image)[2:], [rows, columns], window.extents, window.strides, window.begin,
        strict=True,
    ):  # fmt: skip
        end = (dim - 1) * stride + extent - begin - size
        missing = max(-(end.value or 0), 0)
        extra.append(missing)
        ends.append(Expr.const(0) if missing else end)
    is_plain = is_float(element_type(x))
    sums = None if is_plain else _sum_type(x, bias)
    if not is_plain:
        image, w = _centered(builder, image, 2), _centered(builder, w, 1)
        bias = None if bias is None else builder.cast(bias, sums or i32)
        image, w = (builder.cast(value, sums or i32) for value in (image, w))
    op = ConvTransposeOp(
        image,
        w,
        bias,
        strides=window.strides,
        dilations=[1, 1],
        pads_begin=window.begin,
        pads_end=ends,
        output_padding=extra,
    )
    y = builder.add(op)
    if is_plain:
        return [to_channels_last(builder, builder.activated(y))]
    count = dims_of(w)[1].value or 0
    factors = product_factors(builder, 2, 1, count)
    y = to_result(builder, y, factors, shape=[len(factors), 1, 1])
    return [to_channels_last(builder, y)]


def _centered(builder: TfliteLegalizer, value: SSAValue, index: int) -> SSAValue:
    """Integers less the zero point of an input; weights of i8 have none."""
    x = TensorValue(builder, builder.cast(value, i32))
    is_weight = index == 1 and element_type(value) == i8
    zero = 0 if is_weight else builder.quantization(index).zero
    return (x - zero).value if zero else x.value


# Matrix products


@legalizes("FULLY_CONNECTED")
def legalize_fully_connected(builder: TfliteLegalizer) -> Results:
    """Rows of the input's elements with weights [M, K]."""
    keep = builder.flag("keep_num_dims")
    asymmetric = builder.flag("asymmetric_quantize_inputs")
    x, weights, bias = builder.input(0), builder.input(1), builder.optional(2)
    if builder.op.option("weights_format") not in (None, "DEFAULT"):
        builder.refuse(f"weights in the order {builder.op.option('weights_format')}", "DEFAULT")
    builder.require_rank(weights, 2, "weights")
    dims, (count, depth) = dims_of(x), dims_of(weights)
    rows = builder.reshape(x, [product(dims) // depth, depth])
    columns = builder.transpose(weights, [1, 0])
    if is_float(element_type(x)) and is_integer(element_type(weights)):
        y = _hybrid_product(builder, rows, columns, bias, asymmetric)
    elif is_float(element_type(x)):
        y = builder.add(MatmulOp(rows, columns))
        y = builder.activated(_biased(builder, y, bias))
    else:
        y = _quantized_product(builder, rows, columns, bias, count)
    return [builder.reshape(y, [*dims[:-1], count]) if keep else y]


def _quantized_product(
    builder: TfliteLegalizer,
    rows: SSAValue,
    columns: SSAValue,
    bias: SSAValue | None,
    count: Expr,
) -> SSAValue:
    """Sums are rounded as real numbers, unlike those of convolutions."""
    sums = _sum_type(rows, bias)
    y = builder.add(MatmulOp(rows, columns, _zeros(builder, 0, 1), accumulator=sums))
    y = y if bias is None else builder.add(AddOp(y, builder.cast(bias, sums)))
    factors = product_factors(builder, 0, 1, count.value or 1)
    return to_result(builder, y, factors, shape=[len(factors)], rounding="real")


@legalizes("BATCH_MATMUL")
def legalize_batch_matmul(builder: TfliteLegalizer) -> Results:
    """Matrices, either of which may be stored transposed."""
    asymmetric = builder.flag("asymmetric_quantize_inputs")
    x, y = builder.input(0), builder.input(1)
    x = _transposed(builder, x) if builder.flag("adj_x") else x
    y = _transposed(builder, y) if builder.flag("adj_y") else y
    if is_float(element_type(x)) and is_integer(element_type(y)):
        return [_hybrid_product(builder, x, y, None, asymmetric)]
    if not builder.is_quantized():
        sums = i32 if element_type(x) == i8 else None
        return [builder.add(MatmulOp(x, y, accumulator=sums))]
    sums = i64 if element_type(x) == i16 else i32
    zeros = [builder.scalar(builder.quantization(k).zero, v) for k, v in enumerate((x, y))]
    qx, qy, q = (*map(builder.quantization, (0, 1)), builder.result_quantization())
    product_ = builder.add(MatmulOp(x, y, zeros, accumulator=sums))
    factor = as_f32(as_f32(qx.scale) * as_f32(qy.scale)) / q.scale
    return [to_result(builder, product_, factor)]


def _transposed(builder: TfliteLegalizer, x: SSAValue) -> SSAValue:
    rank = rank_of(x)
    return builder.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


# Hybrid operators


def _hybrid_conv(
    builder: TfliteLegalizer,
    x: SSAValue,
    weights: SSAValue,
    bias: SSAValue | None,
    window: Window,
    groups: int,
) -> SSAValue:
    """Each image is quantized: with a zero point if channels differ in scale, else without."""
    q = builder.quantization(1)
    count = dims_of(weights)[0].value or 0
    asymmetric = len(set(q.scales)) > 1 or builder.op_type == "DEPTHWISE_CONV_2D" or groups > 1
    integers, scale, zero = rows_as_bytes(TensorValue(builder, x), [1, 2, 3], asymmetric)
    zeros = [zero.value, builder.scalar(0, weights)] if asymmetric else []
    sums = convolution(builder, integers, weights, None, window, groups, zeros, i32)
    scales = builder.tensor(
        np.array(channel_scales(builder, 1, count), np.float32).reshape(count, 1, 1)
    )
    y = TensorValue(builder, sums).cast(f32) * TensorValue(builder, scales) * scale
    if bias is not None:
        y = y + TensorValue(builder, builder.reshape(bias, [count, 1, 1]))
    return to_channels_last(builder, builder.activated(y.value))


def _hybrid_product(
    builder: TfliteLegalizer,
    rows: SSAValue,
    columns: SSAValue,
    bias: SSAValue | None,
    asymmetric: bool,
) -> SSAValue:
    """Each row is quantized."""
    q = builder.quantization(1)
    y = hybrid_rows(builder, rows, columns, q.scales, asymmetric)
    if bias is not None:
        y = y + TensorValue(builder, bias)
    return builder.activated(y.value) if builder.op_type == "FULLY_CONNECTED" else y.value


def hybrid_rows(
    builder: TfliteLegalizer,
    rows: SSAValue,
    columns: SSAValue,
    scales: Sequence[float],
    asymmetric: bool,
) -> TensorValue:
    """Products of rows of floats, which are quantized, with columns of integers."""
    integers, scale, zero = rows_as_bytes(
        TensorValue(builder, rows), [rank_of(rows) - 1], asymmetric
    )
    zeros = [zero.value, builder.scalar(0, columns)] if asymmetric else []
    sums = builder.add(MatmulOp(integers, columns, zeros, accumulator=i32))
    factor = scale * TensorValue(builder, np.array(scales if len(scales) != 1 else scales[0], "f4"))
    return TensorValue(builder, sums).cast(f32) * factor
