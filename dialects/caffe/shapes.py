"""
Shapes of tops and parameter blobs, as Caffe's layers compute and check them.

Shapes are numbers: a net has them all as soon as its inputs do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from lowerdeck.dialects.caffe.caffe_pb2 import (
    BlobShape,
    ConvolutionParameter,
    DummyDataParameter,
    EltwiseParameter,
    LayerParameter,
    PoolingParameter,
    SPPParameter,
)
from lowerdeck.dialects.caffe.fork_shapes import FORK_RULES
from lowerdeck.dialects.caffe.layers import exposed_states, has_own_scale, has_static_input
from lowerdeck.dialects.caffe.shape_base import (
    LayerShapes,
    Rule,
    Shape,
    ShapeError,
    axis_of,
    check_shape,
    require,
    require_equal,
    require_rank,
)

__all__ = ["LayerShapes", "Shape", "ShapeError", "axis_of", "check_shape", "layer_shapes"]


def layer_shapes(layer: LayerParameter, bottoms: Sequence[Shape], tops: int) -> LayerShapes:
    """
    The shapes of the `tops` and of the parameter blobs of a layer of a known type.

    `layer` has the type and the parameters; the numbers of bottoms and tops are those that the type
    allows. ShapeError says what does not fit.
    """
    shapes = _RULES.get(layer.type, _same)(layer, [tuple(shape) for shape in bottoms], tops)
    for shape in (*shapes.tops, *shapes.blobs):
        check_shape(shape)
    return shapes


def _same(_layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    return LayerShapes([bottoms[0]], [])


# Windows


class Windows(NamedTuple):
    """The windows of a convolution, one number a spatial dimension."""

    axis: int
    kernel: Shape
    stride: Shape
    pad: Shape
    dilation: Shape


def convolution_windows(parameters: ConvolutionParameter, rank: int) -> Windows:
    """The windows for a bottom of `rank` dimensions; ShapeError if the fields do not agree."""
    p = parameters
    axis = axis_of(p.axis, rank)
    count = rank - axis - 1
    kernel = _per_dimension("kernel", count, p.kernel_size, _pair(p, "kernel"), None)
    stride = _per_dimension("stride", count, p.stride, _pair(p, "stride"), 1)
    pad = _per_dimension("pad", count, p.pad, _pair(p, "pad"), 0)
    dilation = _per_dimension("dilation", count, p.dilation, _pair(p, "hole"), 1)
    if p.HasField("hole"):
        fits = not p.dilation and _pair(p, "hole") is None
        require(fits, "found hole beside another dilation")
        dilation = (p.hole,) * count
    require(all(size > 0 for size in (*kernel, *stride)), "kernel and stride must be at least 1")
    require(all(size > 0 for size in dilation), "the dilation must be at least 1")
    return Windows(axis, kernel, stride, pad, dilation)


def _pair(parameters: ConvolutionParameter, name: str) -> tuple[int, int] | None:
    """The fields `..._h` and `..._w`, if one of them is set."""
    fields = {field.name: value for field, value in parameters.ListFields()}
    names = (f"{name}_h", f"{name}_w")
    if not any(each in fields for each in names):
        return None
    return fields.get(names[0], 0), fields.get(names[1], 0)


def _per_dimension(
    name: str,
    count: int,
    values: Sequence[int],
    pair: tuple[int, int] | None,
    default: int | None,
) -> Shape:
    if pair is not None:
        require(count == 2, f"{name}_h and {name}_w need 2 spatial dimensions, found {count}")
        require(not values, f"found {name}_h or {name}_w beside another {name}")
        return pair
    if not values and default is not None:
        return (default,) * count
    require(
        len(values) in (1, count),
        f"found {len(values)} values for {name}, expected 1 or {count}",
    )
    return tuple(values) * count if len(values) == 1 else tuple(values)


def _extents(windows: Windows) -> list[int]:
    pairs = zip(windows.kernel, windows.dilation, strict=True)
    return [dilation * (kernel - 1) + 1 for kernel, dilation in pairs]


def windows_beyond(sizes: Sequence[int], windows: Windows) -> Shape:
    """By how much a window is larger than the padded bottom of `sizes` in each dimension, or 0."""
    return tuple(
        max(0, extent - size - 2 * pad)
        for size, extent, pad in zip(sizes, _extents(windows), windows.pad, strict=True)
    )


def _slid(sizes: Sequence[int], windows: Windows) -> Shape:
    """
    The number of windows in each dimension. As Caffe's division rounds towards zero, there is one
    where less than a stride of it is beyond the padding, and it sees zeros there.
    """
    result: list[int] = []
    beyond = windows_beyond(sizes, windows)
    for size, extent, stride, pad, excess in zip(
        sizes, _extents(windows), windows.stride, windows.pad, beyond, strict=True
    ):
        require(excess < stride, f"a window of {extent} is larger than {size} and the padding")
        result.append((size + 2 * pad + excess - extent) // stride + 1)
    return tuple(result)


def _spread(sizes: Sequence[int], windows: Windows) -> Shape:
    """The sizes from which a convolution makes `sizes`."""
    return tuple(
        stride * (size - 1) + extent - 2 * pad
        for size, extent, stride, pad in zip(
            sizes, _extents(windows), windows.stride, windows.pad, strict=True
        )
    )


def convolution_groups(layer: LayerParameter, channels: int) -> int:
    """The number of groups: one a channel where the layer type says so, whatever `group` says."""
    return channels if layer.type == "ConvolutionDepthwise" else layer.convolution_param.group


def _convolution(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p = layer.convolution_param
    require_equal(bottoms)
    shape = bottoms[0]
    windows = convolution_windows(p, len(shape))
    axis, channels, outputs = windows.axis, shape[windows.axis], p.num_output
    group = convolution_groups(layer, channels)
    require(outputs > 0 and group > 0, "num_output and group must be at least 1")
    require(
        channels % group == 0 and outputs % group == 0,
        f"the group of {group} does not divide {channels} channels and {outputs} outputs",
    )
    if layer.type == "Deconvolution":
        weight = (channels, outputs // group, *windows.kernel)
        spatial = _spread(shape[axis + 1 :], windows)
    else:
        weight = (outputs, channels // group, *windows.kernel)
        spatial = _slid(shape[axis + 1 :], windows)
    top = (*shape[:axis], outputs, *spatial)
    return LayerShapes([top] * len(bottoms), [weight, *_bias(p.bias_term, outputs)])


def _bias(is_there: bool, size: int) -> list[Shape]:
    return [(size,)] if is_there else []


def _im2col(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = bottoms[0]
    windows = convolution_windows(layer.convolution_param, len(shape))
    axis = windows.axis
    channels = shape[axis] * prod(windows.kernel)
    spatial = _slid(shape[axis + 1 :], windows)
    return LayerShapes([(*shape[:axis], channels, *spatial)], [])


class PoolWindows(NamedTuple):
    """The windows of a pooling layer: height, then width."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int]
    counts: tuple[int, int]
    """How many windows there are."""


def pool_windows(parameters: PoolingParameter, height: int, width: int) -> PoolWindows:
    """The windows over a bottom of this size; ShapeError if the fields do not fit."""
    p = parameters
    stride = _two(p, "stride", 1)
    pad = _two(p, "pad", 0)
    if p.global_pooling:
        require(not _has(p, "kernel"), "found a kernel size beside global_pooling")
        require(stride == (1, 1) and pad == (0, 0), "global_pooling needs stride 1 and no padding")
        kernel = (height, width)
    else:
        require(_has(p, "kernel"), "found no kernel size")
        kernel = _two(p, "kernel", 0)
    require(min(kernel) > 0 and min(stride) > 0, "kernel and stride must be at least 1")
    require(
        pad[0] < kernel[0] and pad[1] < kernel[1],
        f"the padding {list(pad)} is not smaller than the kernel {list(kernel)}",
    )
    is_floor = p.round_mode == PoolingParameter.FLOOR or not p.ceil_mode
    counts: list[int] = []
    for size, k, s, before in zip((height, width), kernel, stride, pad, strict=True):
        room = size + 2 * before - k
        count = (room // s if is_floor else -(-room // s)) + 1
        # A last window that starts in the padding behind the bottom is left out.
        if any(pad) and (count - 1) * s >= size + before:
            count -= 1
        require(count > 0, f"no window of {k} fits into {size} and the padding")
        counts.append(count)
    return PoolWindows(kernel, stride, pad, (counts[0], counts[1]))


def _has(parameters: PoolingParameter, name: str) -> bool:
    names = {field.name for field, _ in parameters.ListFields()}
    plain = "kernel_size" if name == "kernel" else name
    return not names.isdisjoint({plain, f"{name}_h", f"{name}_w"})


def _two(parameters: PoolingParameter, name: str, default: int) -> tuple[int, int]:
    """Height and width: of one field, or of the two that end with `_h` and `_w`."""
    fields = {field.name: value for field, value in parameters.ListFields()}
    plain = "kernel_size" if name == "kernel" else name
    high, wide = fields.get(f"{name}_h"), fields.get(f"{name}_w")
    if high is None and wide is None:
        both = fields.get(plain, default)
        return both, both
    require(plain not in fields, f"found {name}_h or {name}_w beside another {name}")
    require(high is not None and wide is not None, f"found one of {name}_h and {name}_w")
    return high or 0, wide or 0


def _pooling(layer: LayerParameter, bottoms: list[Shape], tops: int) -> LayerShapes:
    shape = bottoms[0]
    require_rank(shape, 4)
    require(
        layer.pooling_param.pool != PoolingParameter.STOCHASTIC,
        "stochastic pooling is not defined for tests",
    )
    counts = pool_windows(layer.pooling_param, shape[2], shape[3]).counts
    return LayerShapes([(*shape[:2], *counts)] * tops, [])


def pyramid_level(
    parameters: SPPParameter, level: int, height: int, width: int
) -> PoolingParameter:
    """The pooling of one level of a pyramid, which makes 2^level bins in each dimension."""
    bins = 1 << level
    pooling = PoolingParameter(
        pool=PoolingParameter.PoolMethod.Name(parameters.pool),
        kernel_h=-(-height // bins),
        kernel_w=-(-width // bins),
    )
    pooling.stride_h, pooling.stride_w = pooling.kernel_h, pooling.kernel_w
    pooling.pad_h = (pooling.kernel_h * bins - height + 1) // 2
    pooling.pad_w = (pooling.kernel_w * bins - width + 1) // 2
    return pooling


def _spp(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = bottoms[0]
    p = layer.spp_param
    require_rank(shape, 4)
    require(min(shape[2:]) > 0, "the bottom is empty")
    require(0 < p.pyramid_height < 31, f"found the pyramid_height {p.pyramid_height}")
    require(p.pool != SPPParameter.STOCHASTIC, "stochastic pooling is not defined for tests")
    counts = [
        pool_windows(pyramid_level(p, level, *shape[2:]), *shape[2:]).counts
        for level in range(p.pyramid_height)
    ]
    if p.pyramid_height == 1:
        return LayerShapes([(*shape[:2], *counts[0])], [])
    return LayerShapes([(shape[0], sum(shape[1] * prod(count) for count in counts))], [])


# Linear layers


def _inner_product(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p, shape = layer.inner_product_param, bottoms[0]
    axis = axis_of(p.axis, len(shape))
    inputs, outputs = prod(shape[axis:]), p.num_output
    weight = (inputs, outputs) if p.transpose else (outputs, inputs)
    return LayerShapes([(*shape[:axis], outputs)], [weight, *_bias(p.bias_term, outputs)])


def _embed(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p = layer.embed_param
    require(p.num_output > 0 and p.input_dim > 0, "num_output and input_dim must be at least 1")
    blobs = [(p.input_dim, p.num_output), *_bias(p.bias_term, p.num_output)]
    return LayerShapes([(*bottoms[0], p.num_output)], blobs)


def _batch_norm(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = bottoms[0]
    require(len(shape) >= 1, "the bottom has no dimensions")
    channels = 1 if len(shape) == 1 else shape[1]
    scale = [(channels,)] * 2 * has_own_scale(layer)
    return LayerShapes([shape], [(channels,), (channels,), (1,), *scale])


def _scale(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p = layer.scale_param
    covered = _covered(bottoms, p.axis, p.num_axes)
    learned = len(bottoms) == 1
    return LayerShapes([bottoms[0]], [covered] * (learned + p.bias_term))


def _bias_layer(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p = layer.bias_param
    covered = _covered(bottoms, p.axis, p.num_axes)
    return LayerShapes([bottoms[0]], [covered] * (len(bottoms) == 1))


def _covered(bottoms: list[Shape], axis: int, num_axes: int) -> Shape:
    """The dimensions of the first bottom that a scale or bias runs along."""
    shape = bottoms[0]
    if len(bottoms) == 2:
        start = axis_of(axis, len(shape)) if bottoms[1] else 0
        covered = shape[start : start + len(bottoms[1])]
        require(
            covered == bottoms[1],
            f"the second bottom has the shape {list(bottoms[1])}, which is not that of "
            f"{list(shape)} from axis {start} on",
        )
        return covered
    start = axis_of(axis, len(shape))
    require(num_axes >= -1, f"found num_axes {num_axes}, expected at least -1")
    require(
        start + num_axes <= len(shape),
        f"axis {start} and num_axes {num_axes} exceed the {len(shape)} dimensions of the bottom",
    )
    return shape[start:] if num_axes == -1 else shape[start : start + num_axes]


def _prelu(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = bottoms[0]
    require(len(shape) >= 2, f"the bottom has {len(shape)} dimensions, expected at least 2")
    return LayerShapes([shape], [() if layer.prelu_param.channel_shared else (shape[1],)])


def _normalize(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = bottoms[0]
    require(2 <= len(shape) <= 4, f"the bottom has {len(shape)} dimensions, expected 2 to 4")
    return LayerShapes([shape], [() if layer.norm_param.channel_shared else (shape[1],)])


def _recurrent(layer: LayerParameter, bottoms: list[Shape], tops: int) -> LayerShapes:
    size = layer.recurrent_param.num_output
    x, cont = bottoms[:2]
    require(size > 0, "num_output must be at least 1")
    require(len(x) >= 3, f"the bottom has {len(x)} dimensions, expected at least 3")
    require(cont == x[:2], f"the second bottom has the shape {list(cont)}, expected {list(x[:2])}")
    require(x[0] > 0, "the bottom has no step")
    static: list[Shape] = []
    gates = 4 * size if layer.type == "LSTM" else size
    if has_static_input(layer, len(bottoms)):
        shape = bottoms[2]
        require(len(shape) >= 1 and shape[0] == x[1], f"the static bottom is {list(shape)}")
        static.append((gates, prod(shape[1:])))
    states = bottoms[2 + len(static) :]
    for shape in states:
        expected = (1, x[1], size)
        require(shape == expected, f"a state is {list(shape)}, expected {list(expected)}")
    blobs = [(gates, prod(x[2:])), (gates,), *static, (gates, size)]
    if layer.type == "RNN":
        blobs += [(size, size), (size,)]
    outputs = [(*x[:2], size), *[(1, x[1], size)] * exposed_states(layer)]
    return LayerShapes(outputs[:tops], blobs)


def _lstm_unit(_layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    state, gates, cont = bottoms
    require_rank(state, 3)
    expected = (1, state[1], 4 * state[2])
    require(state[0] == 1 and gates == expected, f"the gates are {list(gates)}")
    require(cont == state[:2], f"the third bottom is {list(cont)}, expected {list(state[:2])}")
    return LayerShapes([state, state], [])


# Shapes


def _concat(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p, first = layer.concat_param, bottoms[0]
    require(not (p.HasField("axis") and p.HasField("concat_dim")), "found both axis and concat_dim")
    axis = axis_of(p.concat_dim if p.HasField("concat_dim") else p.axis, len(first))
    rest = {(shape[:axis], len(shape), shape[axis + 1 :]) for shape in bottoms}
    found = ", ".join(str(list(shape)) for shape in bottoms)
    require(len(rest) == 1, f"the bottoms {found} differ outside of axis {axis}")
    total = sum(shape[axis] for shape in bottoms)
    return LayerShapes([(*first[:axis], total, *first[axis + 1 :])], [])


def slice_bounds(layer: LayerParameter, shape: Shape, tops: int) -> tuple[int, list[int]]:
    """The axis of a Slice layer, and where its tops begin and the last one ends."""
    p = layer.slice_param
    require(not (p.HasField("axis") and p.HasField("slice_dim")), "found both axis and slice_dim")
    axis = axis_of(p.slice_dim if p.HasField("slice_dim") else p.axis, len(shape))
    size = shape[axis]
    if p.slice_point:
        points = list(p.slice_point)
        require(len(points) == tops - 1, f"found {len(points)} slice points, expected {tops - 1}")
    else:
        require(size % tops == 0, f"axis {axis} has {size} elements for {tops} equal tops")
        points = [size // tops * index for index in range(1, tops)]
    bounds = [0, *points, size]
    pairs = list(pairwise(bounds))
    is_rising = all(low < high for low, high in pairs) if p.slice_point else True
    require(is_rising, f"the slice points {points} do not rise from 0 to {size}")
    return axis, bounds


def _slice(layer: LayerParameter, bottoms: list[Shape], tops: int) -> LayerShapes:
    shape = bottoms[0]
    axis, bounds = slice_bounds(layer, shape, tops)
    sizes = [high - low for low, high in pairwise(bounds)]
    return LayerShapes([(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes], [])


def _split(_layer: LayerParameter, bottoms: list[Shape], tops: int) -> LayerShapes:
    return LayerShapes([bottoms[0]] * tops, [])


def _silence(_layer: LayerParameter, _bottoms: list[Shape], _tops: int) -> LayerShapes:
    return LayerShapes([], [])


def crop_offsets(layer: LayerParameter, bottoms: Sequence[Shape]) -> list[int]:
    """Where a Crop layer begins in each dimension; ShapeError if it leaves the bottom."""
    p = layer.crop_param
    shape, reference = bottoms
    axis = axis_of(p.axis, len(shape))
    require(len(shape) == len(reference), "the bottoms have different numbers of dimensions")
    count = len(shape) - axis
    given = list(p.offset)
    require(len(given) in (0, 1, count), f"found {len(given)} offsets, expected 0, 1 or {count}")
    offsets = given if len(given) == count else (given or [0]) * count
    for size, offset, wanted in zip(shape[axis:], offsets, reference[axis:], strict=True):
        require(
            offset + wanted <= size, f"{wanted} elements from {offset} on exceed the size {size}"
        )
    return [0] * axis + offsets


def _crop(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    crop_offsets(layer, bottoms)
    shape, reference = bottoms
    axis = axis_of(layer.crop_param.axis, len(shape))
    return LayerShapes([(*shape[:axis], *reference[axis:])], [])


def _flatten(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p, shape = layer.flatten_param, bottoms[0]
    first, last = axis_of(p.axis, len(shape)), axis_of(p.end_axis, len(shape))
    # A range of no axes, which Caffe takes, is a dimension of one.
    require(first <= last + 1, f"axis {first} lies behind end_axis {last}")
    middle = prod(shape[first : last + 1])
    return LayerShapes([(*shape[:first], middle, *shape[last + 1 :])], [])


def _reshape(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p, shape = layer.reshape_param, bottoms[0]
    rank = len(shape)
    start = p.axis if p.axis >= 0 else rank + p.axis + 1
    require(0 <= start <= rank, f"found axis {p.axis}, but the bottom has {rank} dimensions")
    require(p.num_axes >= -1, f"found num_axes {p.num_axes}, expected at least -1")
    end = rank if p.num_axes == -1 else start + p.num_axes
    require(end <= rank, f"num_axes {p.num_axes} exceeds the {rank} dimensions of the bottom")
    dims = list(p.shape.dim)
    require(dims.count(-1) <= 1 and all(dim >= -1 for dim in dims), f"found the shape {dims}")
    for index, dim in enumerate(dims):
        if dim == 0:
            require(start + index < rank, f"nothing gives dimension {index} of {dims} a size")
            dims[index] = shape[start + index]
    before, after, count = shape[:start], shape[end:], prod(shape)
    known = prod((*before, *(dim for dim in dims if dim != -1), *after))
    if -1 in dims:
        require(known > 0 and count % known == 0, f"{count} elements do not fill the shape {dims}")
        dims[dims.index(-1)] = count // known
    require(
        prod((*before, *dims, *after)) == count,
        f"the {count} elements of the bottom do not fill {[*before, *dims, *after]}",
    )
    return LayerShapes([(*before, *dims, *after)], [])


def permutation(layer: LayerParameter, rank: int) -> list[int]:
    """The order of a Permute layer; axes that are not named follow as they are."""
    order = list(layer.permute_param.order)
    require(
        len(set(order)) == len(order) and all(axis < rank for axis in order),
        f"the order {order} does not fit {rank} dimensions",
    )
    return order + [axis for axis in range(rank) if axis not in order]


def _permute(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = bottoms[0]
    return LayerShapes([tuple(shape[axis] for axis in permutation(layer, len(shape)))], [])


def _tile(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p, shape = layer.tile_param, list(bottoms[0])
    require(p.tiles > 0, f"found {p.tiles} tiles, expected at least 1")
    shape[axis_of(p.axis, len(shape))] *= p.tiles
    return LayerShapes([tuple(shape)], [])


def _batch_reindex(_layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape, index = bottoms
    require_rank(index, 1)
    require(len(shape) >= 1, "the bottom has no dimensions")
    return LayerShapes([(index[0], *shape[1:])], [])


# Others


def _argmax(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p, shape = layer.argmax_param, bottoms[0]
    require(len(shape) >= 1, "the bottom has no dimensions")
    if p.HasField("axis"):
        axis = axis_of(p.axis, len(shape))
        size, result = shape[axis], (*shape[:axis], p.top_k, *shape[axis + 1 :])
    else:
        rest = max(0, len(shape) - 3)
        size, result = prod(shape[1:]), (shape[0], 1 + p.out_max_val, p.top_k, *[1] * rest)
    require(1 <= p.top_k <= size, f"found top_k {p.top_k}, expected 1 to {size}")
    return LayerShapes([result], [])


def _clip(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p = layer.clip_param
    require(p.HasField("min") and p.HasField("max"), "found no min or no max")
    return LayerShapes([bottoms[0]], [])


def _dummy_data(layer: LayerParameter, _bottoms: list[Shape], tops: int) -> LayerShapes:
    p = layer.dummy_data_param
    shapes = [_blob_shape(shape) for shape in p.shape] or _legacy_shapes(p)
    require(len(shapes) in (1, tops), f"found {len(shapes)} shapes, expected 1 or {tops}")
    require(
        len(p.data_filler) in (0, 1, tops),
        f"found {len(p.data_filler)} fillers, expected 0, 1 or {tops}",
    )
    return LayerShapes(shapes if len(shapes) == tops else shapes * tops, [])


def _legacy_shapes(parameters: DummyDataParameter) -> list[Shape]:
    p = parameters
    lists = [list(p.num), list(p.channels), list(p.height), list(p.width)]
    count = max(map(len, lists))
    require(all(len(values) in (1, count) for values in lists), "found no shape")
    repeated = [values * count if len(values) == 1 else values for values in lists]
    return [tuple(sizes) for sizes in zip(*repeated, strict=True)]


def _blob_shape(shape: BlobShape) -> Shape:
    return tuple(shape.dim)


def _eltwise(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p = layer.eltwise_param
    require_equal(bottoms)
    require(
        len(p.coeff) in (0, len(bottoms)),
        f"found {len(p.coeff)} coefficients, expected 0 or {len(bottoms)}",
    )
    require(not p.coeff or p.operation != EltwiseParameter.PROD, "a product has no coefficients")
    return LayerShapes([bottoms[0]], [])


def _lrn(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    require_rank(bottoms[0], 4)
    size = layer.lrn_param.local_size
    require(size % 2 == 1, f"found local_size {size}, expected an odd number")
    return LayerShapes([bottoms[0]], [])


def _mvn(_layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = bottoms[0]
    require(len(shape) <= 4, f"the bottom has {len(shape)} dimensions, expected at most 4")
    # The top always has four.
    return LayerShapes([(*shape, *[1] * (4 - len(shape)))], [])


def _parameter(layer: LayerParameter, _bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = _blob_shape(layer.parameter_param.shape)
    return LayerShapes([shape], [shape])


def _reduction(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = bottoms[0]
    axis = axis_of(layer.reduction_param.axis, len(shape))
    return LayerShapes([shape[:axis]], [])


def _softmax(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    axis_of(layer.softmax_param.axis, len(bottoms[0]))
    return LayerShapes([bottoms[0]], [])


def prior_ratios(layer: LayerParameter) -> list[float]:
    """The aspect ratios of a PriorBox layer, 1 first, without duplicates."""
    p = layer.prior_box_param
    ratios = [1.0]
    for ratio in p.aspect_ratio:
        require(ratio > 0, f"found the aspect ratio {ratio}")
        if any(abs(ratio - known) < 1e-6 for known in ratios):
            continue
        ratios.append(ratio)
        if p.flip:
            ratios.append(1.0 / ratio)
    return ratios


def _prior_box(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p = layer.prior_box_param
    for shape in bottoms:
        require_rank(shape, 4)
    require(
        len(p.min_size) > 0 and len(p.max_size) in (0, len(p.min_size)),
        f"found {len(p.min_size)} minimal and {len(p.max_size)} maximal sizes",
    )
    for index, least in enumerate(p.min_size):
        require(least > 0, f"found a minimal size of {least:g}, expected more than 0")
        if p.max_size:
            most = p.max_size[index]
            require(
                most > least, f"the maximal size {most:g} is no more than the minimal {least:g}"
            )
    require(len(p.variance) in (0, 1, 4), f"found {len(p.variance)} variances, expected 1 or 4")
    count = len(p.min_size) * len(prior_ratios(layer)) + len(p.max_size)
    return LayerShapes([(1, 2, prod(bottoms[0][2:]) * count * 4)], [])


# Losses


def _label_axis(layer: LayerParameter) -> int:
    if layer.type == "Accuracy":
        return layer.accuracy_param.axis
    if layer.type == "SoftmaxWithLoss":
        return layer.softmax_param.axis
    return layer.infogain_loss_param.axis


def _labelled(layer: LayerParameter, bottoms: list[Shape], tops: int) -> LayerShapes:
    """Scores with one label for each position outside of an axis."""
    scores, labels = bottoms[:2]
    axis = axis_of(_label_axis(layer), len(scores))
    positions = prod(scores[:axis]) * prod(scores[axis + 1 :])
    require(prod(labels) == positions, f"found {prod(labels)} labels, expected {positions}")
    second = (scores[axis],) if layer.type == "Accuracy" else scores
    return LayerShapes([(), second][:tops], [])


def _pairwise(layer: LayerParameter, bottoms: list[Shape], tops: int) -> LayerShapes:
    first, second = bottoms[:2]
    require(
        len(first) >= 1 and len(second) >= 1 and first[0] == second[0],
        f"the bottoms {list(first)} and {list(second)} are of different numbers of items",
    )
    if layer.type in ("EuclideanLoss", "ContrastiveLoss", "SigmoidCrossEntropyLoss"):
        require(
            prod(first) == prod(second),
            f"the bottoms {list(first)} and {list(second)} have different sizes",
        )
    return LayerShapes([(), first][:tops], [])


_RULES: dict[str, Rule] = {
    **FORK_RULES,
    "Accuracy": _labelled,
    "ArgMax": _argmax,
    "BatchNorm": _batch_norm,
    "BatchReindex": _batch_reindex,
    "Bias": _bias_layer,
    "Clip": _clip,
    "Concat": _concat,
    "ContrastiveLoss": _pairwise,
    "Convolution": _convolution,
    "ConvolutionDepthwise": _convolution,
    "Crop": _crop,
    "Deconvolution": _convolution,
    "DepthwiseConvolution": _convolution,
    "DummyData": _dummy_data,
    "Eltwise": _eltwise,
    "Embed": _embed,
    "EuclideanLoss": _pairwise,
    "Flatten": _flatten,
    "HDF5Output": _silence,
    "HingeLoss": _pairwise,
    "Im2col": _im2col,
    "InfogainLoss": _labelled,
    "InnerProduct": _inner_product,
    "LRN": _lrn,
    "LSTM": _recurrent,
    "LSTMUnit": _lstm_unit,
    "MultinomialLogisticLoss": _pairwise,
    "MVN": _mvn,
    "Normalize": _normalize,
    "Parameter": _parameter,
    "Permute": _permute,
    "Pooling": _pooling,
    "PReLU": _prelu,
    "PriorBox": _prior_box,
    "Reduction": _reduction,
    "Reshape": _reshape,
    "RNN": _recurrent,
    "Scale": _scale,
    "SigmoidCrossEntropyLoss": _pairwise,
    "Silence": _silence,
    "Slice": _slice,
    "Softmax": _softmax,
    "SoftmaxWithLoss": _labelled,
    "Split": _split,
    "SPP": _spp,
    "Tile": _tile,
}
"""Of all layer types whose top is not just like their bottom."""


def strip_ones(shape: Iterable[int]) -> Shape:
    """A shape without its leading ones: old files pad shapes with them to four dimensions."""
    sizes = list(shape)
    while sizes and sizes[0] == 1:
        sizes.pop(0)
    return tuple(sizes)
