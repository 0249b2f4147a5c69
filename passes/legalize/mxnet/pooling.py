"""Pools, and what makes images larger or samples them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, constants, exprs, product
from lowerdeck.passes.legalize.common.correlation import Displacements, correlation
from lowerdeck.passes.legalize.common.linear import transposed_convolution
from lowerdeck.passes.legalize.common.movement import enlarged, pad
from lowerdeck.passes.legalize.common.pooling import adaptive_pool, pool
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.special import cbrt
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat, stack

_KINDS = {"max": "max", "avg": "average", "sum": "sum", "lp": "sum"}


@legalizes("Pooling", "Pooling_v1")
def legalize_pool(builder: MxnetLegalizer) -> Results:
    """The largest, the mean, the sum or the root of the sum of powers of each window."""
    x = builder.first(builder.input())
    rank = rank_of(x) - 2
    words = ("max", "avg", "sum", "lp") if builder.name == "Pooling" else ("max", "avg", "sum")
    kind = builder.choice("pool_type", *words)
    value = builder.wide(x) if kind == "lp" else TensorValue.of(builder, x)
    power = builder.integer("p_value", 2) if kind == "lp" else 1
    if kind == "lp":
        value = _power(builder, value, power)
    if builder.flag("global_pool"):
        found = _whole(builder, value.value, kind)
    else:
        window = _window(builder, dims_of(x)[2:], rank)
        counts = not builder.has("count_include_pad") or builder.flag("count_include_pad")
        counts = counts or builder.get("count_include_pad") is None
        if builder.name == "Pooling_v1":
            found = _pool_of_v1(builder, value.value, kind, window)
        else:
            found = pool(builder, _KINDS[kind], value.value, window, count_pads=counts)
    if kind == "lp":
        found = builder.cast(_root(builder, TensorValue(builder, found), power).value, x)
    return builder.back(found)


def _pool_of_v1(builder: MxnetLegalizer, x: SSAValue, kind: str, window: Window) -> SSAValue:
    """Zeros around an image are elements, and means are those of whole windows."""
    zero = [Expr.const(0)] * 2
    image = pad(builder, x, [*zero, *window.begin], [*zero, *window.begin])
    none = [Expr.const(0)] * len(window.kernel)
    rest = [end - begin for end, begin in zip(window.end, window.begin, strict=True)]
    inner = Window(window.kernel, window.strides, window.dilations, none, rest, window.overhang)
    found = TensorValue(builder, pool(builder, "max" if kind == "max" else "sum", image, inner))
    count = product(window.kernel).value or 1
    return (found / float(count) if kind == "avg" else found).value


def _power(builder: MxnetLegalizer, x: TensorValue, power: int) -> TensorValue:
    if power not in (1, 2, 3):
        builder.refuse(f"'p_value' is {power}", "1, 2 or 3")
    return {1: x, 2: x * x, 3: x * x * x}[power]


def _root(builder: MxnetLegalizer, x: TensorValue, power: int) -> TensorValue:
    if power == 1:
        return x
    if power == 2:
        return TensorValue(builder, builder.torch("sqrt.default", x.element, self=x.value))
    return cbrt(x)


def _whole(builder: MxnetLegalizer, x: SSAValue, kind: str) -> SSAValue:
    axes = list(range(2, rank_of(x)))
    if kind == "avg":
        return mean(builder, x, axes, keep_dims=True)
    return builder.reduce("max" if kind == "max" else "sum", x, axes, True)


def _window(builder: MxnetLegalizer, dims: Sequence[Expr], rank: int) -> Window:
    """The window: in the convention `full` a last one may hang over the padding."""
    kernel = builder.positive("kernel", rank)
    if not builder.sizes("kernel"):
        builder.refuse("no kernel", "one")
    strides, pads = builder.positive("stride", rank), builder.spatial("pad", rank, 0)
    convention = builder.choice("pooling_convention", "valid", "full", "same")
    begin = exprs(pads)
    ends: list[Expr] = list(begin)
    over = [Expr.const(0)] * rank
    for k, (dim, size, stride, amount) in enumerate(zip(dims, kernel, strides, pads, strict=True)):
        if convention == "valid":
            continue
        if convention == "full":
            count = (dim + 2 * amount - size + stride - 1) // stride + 1
        else:
            count = (dim + stride - 1) // stride
        ends[k] = (count - 1) * stride + size - dim - amount
        over[k] = ends[k] - amount
        beyond = ((count - 1) * stride - 2 * amount - dim).value
        if beyond is not None and beyond >= 0:
            builder.refuse("a window that begins behind the padding", "less padding")
        if (over[k].value or 0) < 0:
            over[k] = Expr.const(0)
    return Window(tuple(exprs(kernel)), strides, [1] * rank, list(begin), ends, over)


@legalizes("_contrib_AdaptiveAvgPooling2D")
def legalize_adaptive(builder: MxnetLegalizer) -> Results:
    """The mean of windows of nearly equal size; without a size, of all."""
    sizes = builder.sizes("output_size") or [1]
    return adaptive_pool(builder, builder.input(), sizes * 2 if len(sizes) == 1 else sizes, "mean")


# Larger and smaller images


@legalizes("UpSampling")
def legalize_upsampling(builder: MxnetLegalizer) -> Results:
    """Each element several times, or a deconvolution by weights that interpolate."""
    values = builder.inputs("data")
    scale = builder.integer("scale")
    if builder.choice("sample_type", "nearest", "bilinear") == "bilinear":
        return _deconvolved(builder, values, scale)
    size = [dim * scale for dim in dims_of(values[0])[2:]]
    larger: list[TensorValue] = []
    for value in values:
        factors = [a // b for a, b in zip(size, dims_of(value)[2:], strict=True)]
        larger.append(enlarged(TensorValue.of(builder, value), 2, factors))
    if builder.choice("multi_input_mode", "concat", "sum") == "concat":
        return concat(larger, 1)
    return reduce(operator.add, larger)


def _deconvolved(builder: MxnetLegalizer, values: Sequence[SSAValue], scale: int) -> SSAValue:
    if len(values) != 2:
        builder.refuse(f"{len(values)} inputs", "an image and weights")
    x, weight = values
    kernel, amount = 2 * scale - scale % 2, scale // 2
    groups = dims_of(x)[1].value
    if [dim.value for dim in dims_of(weight)] != [groups, 1, kernel, kernel] or groups is None:
        builder.refuse(f"weights {weight.type}", f"[{groups}, 1, {kernel}, {kernel}]")
    given = {"strides": [scale] * 2, "dilations": [1, 1], "output_padding": [0, 0]}
    given |= {"pads_begin": [amount] * 2, "pads_end": [amount] * 2}
    return transposed_convolution(builder, x, weight, None, **given, groups=groups)


@legalizes("_contrib_BilinearResize2D")
def legalize_resize(builder: MxnetLegalizer) -> Results:
    """Interpolated to a size, or by a factor."""
    x = builder.input()
    sizes = [dim.value for dim in dims_of(x)[2:]]
    if None in sizes:
        builder.refuse("an image of open sizes", "known ones", "give the shape of the input")
    known = [size for size in sizes if size is not None]
    target = _target(builder, known)
    found = builder.torch(
        "upsample_bilinear2d.vec",
        input=x,
        output_size=target,
        align_corners=builder.flag("align_corners"),
    )
    return found


def _target(builder: MxnetLegalizer, sizes: Sequence[int]) -> list[int]:
    """The size of the result by the mode."""
    mode = builder.text("mode")
    if mode == "like":
        found = constants(dims_of(builder.input("like"))[2:])
        if found is None:
            builder.refuse("another image of open sizes", "known ones")
        return list(found)
    factors = [builder.get(f"scale_{name}") for name in ("height", "width")]
    is_scaled = None not in factors
    scaled = [int(float(f or 0) * size) for f, size in zip(factors, sizes, strict=True)]
    match mode:
        case "size":
            return scaled if is_scaled else [builder.integer("height"), builder.integer("width")]
        case "odd_scale" if is_scaled:
            pairs = zip(scaled, sizes, factors, strict=True)
            return [
                n if size % 2 == 0 else int((size - 1) * float(f or 0)) + 1 for n, size, f in pairs
            ]
        case "to_even_down":
            return [size - size % 2 for size in sizes]
        case "to_even_up":
            return [size + size % 2 for size in sizes]
        case "to_odd_down":
            return [size - 1 + size % 2 for size in sizes]
        case "to_odd_up":
            return [size + 1 - size % 2 for size in sizes]
        case _:
            builder.refuse(f"the mode {mode}", "size, like, odd_scale or to_even_down")


# Samples of images


@legalizes("GridGenerator")
def legalize_grid(builder: MxnetLegalizer) -> Results:
    """The places of a transformed image, from -1 to 1, as [N, 2, H, W]: columns, then rows."""
    data = builder.value("data")
    if builder.choice("transform_type", "affine", "warp") == "affine":
        grid = _affine_grid(builder, data, builder.sizes("target_shape"))
        return builder.transpose(grid, [0, 3, 1, 2])
    batch, _, height, width = data.dims
    places = [
        TensorValue.iota(builder, size)
        .cast(data.element)
        .column(3, axis)
        .broadcast([1, height, width])
        for size, axis in ((width, 2), (height, 1))
    ]
    moved = data + stack([place.reshape([1, height, width]) for place in places], 1)
    halves = [
        ((TensorValue.dim(builder, size) - 1).cast(data.element)) / 2.0 for size in (width, height)
    ]
    parts = [moved.pick(1, k) / half - 1.0 for k, half in enumerate(halves)]
    return [stack([part.reshape([batch, height, width]) for part in parts], 1).value]


def _affine_grid(builder: MxnetLegalizer, data: TensorValue, size: Sequence[int]) -> SSAValue:
    """Transformations [N, 6] applied to the places of an image, as [N, H, W, 2]."""
    if len(size) != 2 or any(n < 1 for n in size):
        builder.refuse(f"'target_shape' is {list(size)}", "two sizes")
    dims = builder.dims([data.dims[0], 1, *size])
    matrix = data.reshape([data.dims[0], 2, 3]).value
    return builder.onnx("AffineGrid", matrix, dims, align_corners=1)


@legalizes("BilinearSampler", "SpatialTransformer")
def legalize_sampler(builder: MxnetLegalizer) -> Results:
    """Elements between places of an image; what is outside is zero."""
    x = builder.input("data")
    if builder.name == "SpatialTransformer":
        size = builder.sizes("target_shape")
        size = size if any(size) else [dim.value or 0 for dim in dims_of(x)[2:]]
        places = _affine_grid(builder, builder.value("loc"), size)
    else:
        places = builder.transpose(builder.input("grid"), [0, 2, 3, 1])
    given = {"mode": "linear", "padding_mode": "zeros", "align_corners": 1}
    return builder.onnx("GridSample", x, places, **given)


@legalizes("Correlation")
def legalize_correlation(builder: MxnetLegalizer) -> Results:
    """The mean of products, or of differences, of patches of two images, for each displacement."""
    names = ("kernel_size", "max_displacement", "stride1", "stride2", "pad_size")
    size, most, stride, step, amount = (builder.integer(name) for name in names)
    images = [builder.wide(builder.input(f"data{k}")) for k in (1, 2)]
    rule = Displacements(size, most, stride, step, amount, builder.flag("is_multiply"))
    return builder.narrow(correlation(builder, images, rule), builder.input("data1"))
