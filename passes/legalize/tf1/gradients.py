"""
Gradients of operators, where they are formulas of what the operators read and made.

Maps of influence and forces are gradients that a model computes when it is used. Gradients of
convolutions by their input are in `convolution.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.elementwise import ExpOp, PowOp, SqrtOp
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.tensor import GatherOp, ScatterNdOp
from lowerdeck.dialects.core.types import bf16, dims_of, element_type, f16, f32, i64, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.passes.legalize.common.movement import pad
from lowerdeck.passes.legalize.common.pooling import max_places
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.sizes import size_of, sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.activation import SELU_ALPHA, SELU_SCALE
from lowerdeck.passes.legalize.tf1.convolution import dilations_of, spread_by
from lowerdeck.passes.legalize.tf1.elementwise import narrowed, number, widened
from lowerdeck.passes.legalize.tf1.image import (
    Axis,
    bilinear_taps,
    cubic_taps,
    nearest_places,
    resized_axes,
)
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.pooling import kernel_of, pool_window
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.slicing import selected
from lowerdeck.passes.legalize.tf1.windows import Layout, require_image, spatial_dims, window_of

# Elements

_BY_RESULT: Mapping[str, Callable[[TensorValue, TensorValue], TensorValue]] = {
    "InvGrad": lambda y, dy: -dy * y * y,
    "ReciprocalGrad": lambda y, dy: -dy * y * y,
    "RsqrtGrad": lambda y, dy: dy * -0.5 * y * y * y,
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SqrtGrad": lambda y, dy: dy * 0.5 / y,
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
}
"""By what the function gave, and its gradient."""


def _elu(dy: TensorValue, y: TensorValue) -> TensorValue:
    return y.lt(0).where(dy * (y + 1), dy)


def _selu(dy: TensorValue, y: TensorValue) -> TensorValue:
    return y.lt(0).where(dy * (y + SELU_SCALE * SELU_ALPHA), dy * SELU_SCALE)


def _softsign(dy: TensorValue, x: TensorValue) -> TensorValue:
    root = x.abs() + 1
    return dy / (root * root)


_BY_OPERAND: Mapping[str, Callable[[TensorValue, TensorValue], TensorValue]] = {
    "EluGrad": _elu,
    "Relu6Grad": lambda dy, x: (x.gt(0) & x.lt(6)).where(dy, 0),
    "ReluGrad": lambda dy, x: x.gt(0).where(dy, 0),
    "SeluGrad": _selu,
    "SoftplusGrad": lambda dy, x: dy / (apply(ExpOp, -x) + 1),
    "SoftsignGrad": _softsign,
}
"""By a gradient, and the operand of the function (of Elu and Selu what it gave)."""


@legalizes(*_BY_RESULT, *_BY_OPERAND)
def legalize_elementwise_gradient(builder: Tf1Legalizer) -> Results:
    """The derivative of a function of one element times the gradient."""
    function = {**_BY_RESULT, **_BY_OPERAND}[builder.op_type]
    return narrowed(builder, function(widened(builder, 0), widened(builder, 1)))


@legalizes("LeakyReluGrad")
def legalize_leaky_relu_gradient(builder: Tf1Legalizer) -> Results:
    """dy, or alpha * dy where the operand is not positive"""
    dy, x = widened(builder, "gradients"), widened(builder, "features")
    return narrowed(builder, x.gt(0).where(dy, dy * builder.attrs.float("alpha")))


# Shapes and parts


@legalizes("BroadcastGradientArgs")
def legalize_broadcast_axes(builder: Tf1Legalizer) -> Results:
    """
    The dimensions along which two shapes are repeated; where both are one, both are named.

    Sizes that are not known count as equal, as in the operator whose gradient this is for: its
    operands are checked at run time.
    """
    shapes = [list(sizes_of(builder, builder.operand(k), "a shape")) for k in (0, 1)]
    rank = max(map(len, shapes))
    first, second = ([Expr.const(1)] * (rank - len(shape)) + shape for shape in shapes)
    found: tuple[list[ExprLike], list[ExprLike]] = ([], [])
    for axis, (a, b) in enumerate(zip(first, second, strict=True)):
        if 1 not in (a, b) and a != b and a.value is not None and b.value is not None:
            builder.refuse(f"dimensions {a} and {b}", "equal ones, or one that is 1")
        if a == 1:
            found[0].append(axis)
        if b == 1:
            found[1].append(axis)
    element = builder.result_element()
    return [builder.cast(builder.dims(axes), element) for axes in found]


@legalizes("BiasAddGrad")
def legalize_bias_gradient(builder: Tf1Legalizer) -> Results:
    """The sum over all dimensions but that of the channels."""
    dy = widened(builder, "out_backprop")
    layout = builder.attrs.string("data_format", among=("NHWC", "NCHW"))
    axis = 1 if layout == "NCHW" else len(dy.dims) - 1
    axes = [k for k in range(len(dy.dims)) if k != axis]
    return narrowed(builder, dy.reduce("sum", axes))


@legalizes("StridedSliceGrad")
def legalize_strided_slice_gradient(builder: Tf1Legalizer) -> Results:
    """The gradient where the slice was, zeros elsewhere."""
    shape = sizes_of(builder, builder.operand("shape"), "the shape")
    count = product(shape)
    places = selected(builder, TensorValue.iota(builder, count).reshape(shape).value)
    total = product(dims_of(places))
    updates = builder.reshape(builder.operand("dy"), [total])
    zeros = builder.broadcast(builder.scalar(0, updates), [count])
    where = builder.reshape(places, [total, 1])
    return [builder.reshape(builder.add(ScatterNdOp(zeros, where, updates)), shape)]


@legalizes("TileGrad")
def legalize_tile_gradient(builder: Tf1Legalizer) -> Results:
    """The sum of all copies."""
    x = widened(builder, "input")
    repeats = sizes_of(builder, builder.operand("multiples"), "the repeats")
    dims: list[Expr] = []
    for repeat, dim in zip(repeats, x.dims, strict=True):
        dims += [repeat, dim // repeat]
    return narrowed(builder, x.reshape(dims).reduce("sum", range(0, len(dims), 2)))


@legalizes("MirrorPadGrad")
def legalize_mirror_pad_gradient(builder: Tf1Legalizer) -> Results:
    """What lies in the padding is added to the elements that were repeated there."""
    x = number(builder, "input")
    skip = builder.attrs.string("mode", among=("REFLECT", "SYMMETRIC")) == "REFLECT"
    pads = builder.require_ints(builder.operand("paddings"), "the paddings")
    for axis, (before, behind) in enumerate(zip(pads[::2], pads[1::2], strict=True)):
        size = dims_of(x)[axis] - before - behind
        total = TensorValue(builder, builder.slice_axis(x, axis, before, size))
        if before:
            part = _reversed(builder, x, axis, Expr.const(0), before)
            total = total + _placed(builder, part, axis, Expr.const(int(skip)), size)
        if behind:
            part = _reversed(builder, x, axis, size + before, behind)
            total = total + _placed(builder, part, axis, size - behind - int(skip), size)
        x = total.value
    return [x]


def _reversed(builder: Tf1Legalizer, x: SSAValue, axis: int, start: Expr, count: int) -> SSAValue:
    """`count` elements along an axis, the last one first."""
    starts: list[ExprLike] = [0] * rank_of(x)
    sizes: list[ExprLike] = list(dims_of(x))
    steps: list[ExprLike] = [1] * rank_of(x)
    starts[axis], sizes[axis], steps[axis] = start + (count - 1), count, -1
    return builder.slice(x, starts, sizes, steps)


def _placed(
    builder: Tf1Legalizer, part: SSAValue, axis: int, start: Expr, size: Expr
) -> TensorValue:
    """Zeros of a size along an axis, with a part in them."""
    zeros = [Expr.const(0)] * rank_of(part)
    begin, end = list(zeros), list(zeros)
    begin[axis], end[axis] = start, size - start - dims_of(part)[axis]
    return TensorValue(builder, pad(builder, part, begin, end))


@legalizes("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
def legalize_sparse_segment_gradient(builder: Tf1Legalizer) -> Results:
    """Each row gets the gradients of the segments that it is in, divided as the segments are."""
    grad, segments = number(builder, "grad"), builder.operand("segment_ids")
    count = size_of(builder, builder.operand("output_dim0"), "the number of rows")
    rows = TensorValue(builder, builder.add(GatherOp(grad, segments, 0)))
    if builder.op_type != "SparseSegmentSumGrad":
        ones = builder.broadcast(builder.scalar(1, grad), dims_of(segments))
        sizes = _added(builder, ones, segments, dims_of(grad)[0])
        divisor = TensorValue(builder, builder.add(GatherOp(sizes, segments, 0)))
        if builder.op_type == "SparseSegmentSqrtNGrad":
            divisor = apply(SqrtOp, divisor)
        rows = rows / divisor.column(len(rows.dims), 0)
    return [_added(builder, rows.value, builder.operand("indices"), count)]


def _added(builder: Tf1Legalizer, rows: SSAValue, places: SSAValue, count: Expr) -> SSAValue:
    """`count` rows that are sums of those with their place."""
    zeros = builder.broadcast(builder.scalar(0, rows), [count, *dims_of(rows)[1:]])
    places = builder.reshape(places, [dims_of(places)[0], 1])
    return builder.add(ScatterNdOp(zeros, builder.cast(places, i64), rows, "add"))


# Pools


@legalizes("MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad")
def legalize_max_pool_gradient(builder: Tf1Legalizer) -> Results:
    """The gradient of each window goes to its first largest element."""
    x, places = _winners(builder)
    grad = widened(builder, "grad")
    return narrowed(builder, _scattered(builder, grad, places, dims_of(x)))


@legalizes("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad")
def legalize_max_pool_second_gradient(builder: Tf1Legalizer) -> Results:
    """Each window gets the gradient of its first largest element."""
    _, places = _winners(builder)
    return [_picked(builder, places)]


@legalizes("MaxPoolGradWithArgmax")
def legalize_argmax_gradient(builder: Tf1Legalizer) -> Results:
    """The gradients go to the places that are given."""
    places, dims = _given_places(builder)
    return narrowed(builder, _scattered(builder, widened(builder, "grad"), places, dims))


@legalizes("MaxPoolGradGradWithArgmax")
def legalize_argmax_second_gradient(builder: Tf1Legalizer) -> Results:
    """The gradients of the places that are given."""
    places, _ = _given_places(builder)
    return [_picked(builder, places)]


def _winners(builder: Tf1Legalizer) -> tuple[SSAValue, SSAValue]:
    """The operand of a pool, and the places of the largest elements in it as it lies in memory."""
    layout = Layout.of(builder)
    given = number(builder, "orig_input")
    require_image(builder, given, 5 if "3D" in builder.op_type else 4)
    kernel, strides = map(layout.of_each, kernel_of(builder))
    if kernel[layout.axis(rank_of(given))] != 1:
        builder.refuse(f"a window {kernel} over channels", "one over the image")
    value = layout.to_first(given)
    window = pool_window(builder, layout, value, kernel, strides)
    places = builder.reshape(builder.add(IotaOp([product(dims_of(given))])), dims_of(given))
    result = layout.to_first(number(builder, "orig_output"))
    found = max_places(builder, value, layout.to_first(places), window, dims_of(result))
    return given, layout.from_first(found)


def _given_places(builder: Tf1Legalizer) -> tuple[SSAValue, Sequence[Expr]]:
    """The places in the whole operand, and its dimensions."""
    builder.attrs.ignore("ksize", "strides", "padding", "Targmax")
    x = require_image(builder, number(builder, "input"), 4)
    places = TensorValue.of(builder, builder.operand("argmax")).cast(i64)
    if not builder.attrs.flag("include_batch_in_index"):
        image = TensorValue.dim(builder, product(dims_of(x)[1:]))
        numbers = TensorValue.iota(builder, dims_of(x)[0]).column(4, 0)
        places = places + numbers * image
    return places.value, dims_of(x)


def _scattered(
    builder: Tf1Legalizer, grad: TensorValue, places: SSAValue, dims: Sequence[Expr]
) -> TensorValue:
    """Sums of the elements of a gradient by place."""
    count = product(grad.dims)
    flat = builder.reshape(places, [count])
    total = _added(builder, grad.reshape([count]).value, flat, product(dims))
    return TensorValue(builder, total).reshape(dims)


def _picked(builder: Tf1Legalizer, places: SSAValue) -> SSAValue:
    grad = number(builder, "grad")
    return builder.add(GatherOp(builder.reshape(grad, [product(dims_of(grad))]), places, 0))


@legalizes("AvgPoolGrad", "AvgPool3DGrad")
def legalize_average_pool_gradient(builder: Tf1Legalizer) -> Results:
    """The gradient of each window is divided among its elements, of which padding is none."""
    layout = Layout.of(builder)
    kernel, strides = map(layout.of_each, kernel_of(builder))
    shape = sizes_of(builder, builder.operand("orig_input_shape"), "the shape")
    rank = 5 if "3D" in builder.op_type else 4
    dy = layout.to_first(require_image(builder, widened(builder, "grad").value, rank))
    if len(shape) != rank or kernel[layout.axis(rank)] != 1:
        builder.refuse(f"a window {kernel} over {len(shape)} dimensions", "one over the image")
    spatial = [d for k, d in enumerate(shape) if k not in (0, layout.axis(rank))]
    taps = [Expr.const(size) for size in layout.spatial(kernel)]
    steps = layout.spatial(strides)
    window = window_of(builder, layout, spatial, taps, steps, [1] * len(taps))
    shared = TensorValue(builder, dy) / _counts(builder, window, spatial, dims_of(dy)).cast(
        element_type(dy)
    )
    # Channels are images of one channel.
    batch = dims_of(dy)[0] * dims_of(dy)[1]
    images = shared.reshape([batch, 1, *spatial_dims(dy)]).value
    ones = builder.broadcast(builder.scalar(1, images), [1, 1, *taps])
    total = TensorValue(builder, spread_by(builder, images, ones, spatial, window, 1))
    total = total.reshape([*dims_of(dy)[:2], *spatial])
    return narrowed(builder, TensorValue(builder, layout.from_first(total.value)))


def _counts(
    builder: Tf1Legalizer, window: Window, sizes: Sequence[Expr], dims: Sequence[Expr]
) -> TensorValue:
    """How many elements each window has, in one dimension after the other."""
    total = TensorValue.dim(builder, 1)
    for axis, (size, taps, stride, begin) in enumerate(
        zip(sizes, window.kernel, window.strides, window.begin, strict=True), 2
    ):
        starts = TensorValue.iota(builder, dims[axis]) * stride - TensorValue.dim(builder, begin)
        ends = (starts + TensorValue.dim(builder, taps)).minimum(TensorValue.dim(builder, size))
        total = total * (ends - starts.maximum(0)).column(len(dims), axis)
    return total


# Convolutions


@legalizes(
    "Conv2DBackpropFilter",
    "Conv2DBackpropFilterV2",
    "Conv3DBackpropFilterV2",
    "DepthwiseConv2dNativeBackpropFilter",
)
def legalize_filter_gradient(builder: Tf1Legalizer) -> Results:
    """
    The gradient by the weights: a convolution of the input, channels for images, whose weights are
    the gradient of the result, with strides and dilations exchanged.
    """
    layout = Layout.of(builder)
    is_depthwise = builder.op_type.startswith("Depthwise")
    if builder.op_type == "Conv2DBackpropFilterV2":
        filter_sizes = list(dims_of(builder.operand("filter")))
    else:
        filter_sizes = sizes_of(builder, builder.operand("filter_sizes"), "filter_sizes")
    rank = len(filter_sizes)
    x = layout.to_first(require_image(builder, widened(builder, "input").value, rank))
    dy = layout.to_first(require_image(builder, widened(builder, "out_backprop").value, rank))
    *kernel, inputs, outputs = filter_sizes
    strides, dilations = (
        layout.spatial(builder.attrs.ints("strides")),
        dilations_of(builder, layout),
    )
    window = window_of(builder, layout, spatial_dims(x), kernel, strides, dilations)
    images, channels, *sizes = dims_of(x)
    own = Expr.const(1) if is_depthwise else inputs
    groups = 1
    if channels != own:
        if channels.value is None or not own.value:
            builder.refuse(f"{channels} channels for filters of {own}", "numbers that are known")
        groups = channels.value // own.value
    x = builder.reshape(x, [images, groups, own, *sizes])
    x = builder.transpose(x, [2, 1, 0, *range(3, rank + 1)])
    x = builder.reshape(x, [own, images * groups, *sizes])
    dy = builder.transpose(dy, [1, 0, *range(2, rank)])
    conv = ConvOp(
        x,
        dy,
        strides=dilations,
        dilations=strides,
        pads_begin=window.begin,
        pads_end=window.end,
        groups=groups,
    )
    found = builder.add(conv)
    found = builder.slice(found, [0] * rank, [*dims_of(found)[:2], *kernel])
    # [own, outputs, kernel...] to [kernel..., own, outputs]
    found = builder.transpose(found, [*range(2, rank), 0, 1])
    if is_depthwise:
        found = builder.reshape(found, [*kernel, inputs, outputs])
    return narrowed(builder, TensorValue(builder, found))


# Normalizations


@legalizes("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def legalize_batch_norm_gradient(builder: Tf1Legalizer) -> Results:
    """
    With h = (x - mean) / sqrt(variance + epsilon) the gradients by the offset and the scale are
    the sums of dy and of dy * h; that by x is dy * scale / sqrt(variance + epsilon), of a batch's
    own statistics without the parts of dy that change these.
    """
    axis = Layout.of(builder).axis(rank_of(builder.operand("x")))
    scale = widened(builder, "scale")
    dy, x = (widened(builder, name).cast(scale.element) for name in ("y_backprop", "x"))
    rank, axes = len(x.dims), [k for k in range(len(x.dims)) if k != axis]
    center, variance = (widened(builder, f"reserve_space_{k}") for k in (1, 2))
    factor = 1 / apply(SqrtOp, variance + builder.attrs.float("epsilon"))
    rest = (x - center.column(rank, axis)) * factor.column(rank, axis)
    offset_grad = dy.reduce("sum", axes)
    scale_grad = (dy * rest).reduce("sum", axes)
    inner = dy
    if builder.attrs.flag("is_training"):
        count = TensorValue.dim(builder, product(x.dims[k] for k in axes)).cast(scale.element)
        inner = dy - (offset_grad / count).column(rank, axis)
        inner = inner - rest * (scale_grad / count).column(rank, axis)
    x_grad = inner * (scale * factor).column(rank, axis)
    zeros = TensorValue.number(builder, 0, scale.element).broadcast([0])
    values = [x_grad, scale_grad, offset_grad, zeros, zeros]
    return [value.cast(builder.result_element(k)).value for k, value in enumerate(values)]


@legalizes("BatchNormWithGlobalNormalizationGrad")
def legalize_global_batch_norm_gradient(builder: Tf1Legalizer) -> Results:
    """The gradients by t, m, v, beta and gamma, with given statistics."""
    x, center, variance, gamma, dy = (widened(builder, k) for k in range(5))
    rank = len(x.dims)
    axes, axis = list(range(rank - 1)), rank - 1
    shifted = variance + builder.attrs.float("variance_epsilon")
    factor = 1 / apply(SqrtOp, shifted)
    sums = (dy * (x - center.column(rank, axis))).reduce("sum", axes)
    beta_grad = dy.reduce("sum", axes)
    scaled, gamma_grad = factor, gamma * 0
    if builder.attrs.flag("scale_after_normalization"):
        scaled, gamma_grad = factor * gamma, sums * factor
    values = [
        dy * scaled.column(rank, axis),
        -beta_grad * scaled,
        sums * scaled * -0.5 / shifted,
        beta_grad,
        gamma_grad,
    ]
    return [value.cast(builder.result_element(k)).value for k, value in enumerate(values)]


@legalizes("LRNGrad")
def legalize_lrn_gradient(builder: Tf1Legalizer) -> Results:
    """dy * n^-beta - 2 * alpha * beta * x * s, where s sums dy * y / n of the neighbors."""
    dy, x, y = (widened(builder, k) for k in range(3))
    radius = builder.attrs.int("depth_radius")
    alpha, bias, beta = (builder.attrs.float(name) for name in ("alpha", "bias", "beta"))
    norm = _neighbors(builder, x * x, radius) * alpha + bias
    power = TensorValue(builder, builder.add(PowOp(norm.value, builder.scalar(-beta, norm.value))))
    sums = _neighbors(builder, dy * y / norm, radius)
    return narrowed(builder, dy * power - x * sums * (2 * alpha * beta))


def _neighbors(builder: Tf1Legalizer, x: TensorValue, radius: int) -> TensorValue:
    """The sum of an element and its neighbors on both sides along the last dimension."""
    *outer, channels = x.dims
    sums = PoolOp(
        "sum",
        x.reshape([product(outer), 1, channels]).value,
        kernel=[2 * radius + 1],
        strides=[1],
        dilations=[1],
        pads_begin=[radius],
        pads_end=[radius],
    )
    return TensorValue(builder, builder.add(sums)).reshape(x.dims)


# Images


@legalizes("ResizeBilinearGrad", "ResizeBicubicGrad", "ResizeNearestNeighborGrad")
def legalize_resize_gradient(builder: Tf1Legalizer) -> Results:
    """Each new element's gradient goes to the old ones that it was made of, by their weights."""
    dy = require_image(builder, number(builder, "grads"), 4)
    is_wide = element_type(dy) in (f16, bf16)
    value = builder.cast(dy, f32) if is_wide else dy
    if builder.op_type == "ResizeNearestNeighborGrad":
        old = sizes_of(builder, builder.operand("size"), "the size")
    else:
        old = dims_of(require_image(builder, builder.operand("original_image"), 4))[1:3]
    for axis in resized_axes(builder, old, dims_of(dy)[1:3]):
        value = value if axis.old == axis.new else _gathered_back(builder, value, axis)
    return [builder.cast(value, builder.result_element())]


def _gathered_back(builder: Tf1Legalizer, dy: SSAValue, axis: Axis) -> SSAValue:
    match builder.op_type:
        case "ResizeBilinearGrad":
            index, weights = bilinear_taps(axis)
        case "ResizeBicubicGrad":
            index, weights = cubic_taps(axis)
        case _:
            index = stack([nearest_places(axis)], 1)
            weights = None
    order = [axis.axis, *(k for k in range(4) if k != axis.axis)]
    rows = TensorValue(builder, builder.transpose(dy, order))
    new, *rest = rows.dims
    taps = index.dims[1]
    rows = rows.reshape([new, 1, *rest])
    if weights is not None:
        rows = rows * weights.cast(rows.element).reshape([new, taps, 1, 1, 1])
    places = index.reshape([new * taps]).value
    total = _added(builder, rows.reshape([new * taps, *rest]).value, places, axis.old)
    back = [order.index(k) for k in range(4)]
    return builder.transpose(total, back)
