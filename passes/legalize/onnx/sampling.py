"""Operators that read an image at computed places: GridSample, AffineGrid, RoiAlign, MaxRoiPool."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import GatherElementsOp, GatherNdOp, GatherOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    f64,
    i1,
    i32,
    i64,
    is_float,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.interpolation import cubic_weights
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of, sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat, stack

_MODES = {
    "nearest": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
}


@record
class _Tap:
    """One neighbor along one dimension: where, whether there is an element, and its weight."""

    index: TensorValue
    inside: TensorValue | None
    weight: TensorValue | None


# GridSample


@legalizes("GridSample")
def legalize_grid_sample(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    X [N, C, d...] read at grid [N, o..., r], whose last dimension names places from the last
    dimension of X to the first, -1 and 1 standing for the borders.
    """
    x, grid = builder.operand("X"), builder.operand("grid")
    mode = _MODES[builder.attrs.string("mode", among=list(_MODES))]
    padding = builder.attrs.string("padding_mode", among=("zeros", "border", "reflection"))
    corners = builder.attrs.flag("align_corners")
    n, c, *spatial = dims_of(x)
    outputs = dims_of(grid)[1:-1]
    if len(outputs) != len(spatial) or not spatial:
        builder.refuse(f"a grid of rank {rank_of(grid)} for an input of rank {rank_of(x)}", "equal")
    points = product(outputs)
    places = TensorValue.of(builder, builder.reshape(grid, [n, points, len(spatial)]))
    if places.element not in (f32, f64):
        places = places.cast(f32)
    elements = product(spatial).value
    wide = elements is None or elements > np.iinfo(np.int32).max
    lists = [
        _taps(builder, dim, places.pick(2, len(spatial) - 1 - k), mode, padding, corners, wide)
        for k, dim in enumerate(spatial)
    ]
    element = element_type(x)
    work = element if mode == "nearest" or element in (f32, f64) else f32
    values = TensorValue.of(builder, builder.cast(x, work))
    result = builder.cast(_sample(builder, values, lists).value, element)
    return [builder.reshape(result, [n, c, *outputs])]


FEW_CHANNELS = 8
"""Fewer than so many lie in no vector: then points do, one channel after the other."""


@record
class _Image:
    """An image read at places [N, points] of its flattened dimensions: [N, d] or [N, d, C]."""

    values: TensorValue
    is_inside: bool
    """Whether every place is known to be inside."""

    def sum(
        self,
        lists: Sequence[Sequence[_Tap]],
        place: TensorValue | None = None,
        inside: TensorValue | None = None,
    ) -> TensorValue:
        """The sum over the taps of the first dimension of what those of the others sum up to."""
        if not lists:
            assert place is not None
            value = self._at(place)
            return value if inside is None else self._rows(inside).where(value, 0)
        total: TensorValue | None = None
        for tap in lists[0]:
            both = tap.inside if inside is None or tap.inside is None else inside & tap.inside
            at = tap.index if place is None else place + tap.index
            value = self.sum(lists[1:], at, both)
            if tap.weight is not None:
                value = value * self._rows(tap.weight.cast(value.element))
            total = value if total is None else total + value
        assert total is not None
        return total

    def _rows(self, points: TensorValue) -> TensorValue:
        """What there is one of for each point, beside the values there."""
        return points if len(self.values.dims) == 2 else points.reshape([*points.dims, 1])

    def _at(self, place: TensorValue) -> TensorValue:
        """The values at places [N, points]."""
        source, index = self.values.value, self._rows(place).value
        is_flat = len(self.values.dims) == 2
        op = GatherElementsOp(source, index, 1) if is_flat else GatherNdOp(source, index, 1)
        if self.is_inside:
            op.inside = UnitAttr()
        return TensorValue(self.values.builder, self.values.builder.add(op))


def _sample(builder: OnnxLegalizer, x: TensorValue, lists: Sequence[Sequence[_Tap]]) -> TensorValue:
    """Of x [N, C, d...] at taps along each d, each of which is [N, points]: [N, C, points]."""
    n, channels, *sizes = x.dims
    scaled: list[list[_Tap]] = []
    for axis, taps in enumerate(lists):
        step = TensorValue.dim(builder, product(sizes[axis + 1 :]))
        scaled.append(
            [_Tap(t.index * step.cast(t.index.element), t.inside, t.weight) for t in taps]
        )
    # Of an open size, which may be 0, no place is known to be inside.
    is_inside = all((size.value or 0) > 0 for size in sizes)
    if channels.value is None or not 0 < channels.value < FEW_CHANNELS:
        last = x.reshape([n, channels, product(sizes)]).transpose([0, 2, 1])
        return _Image(last, is_inside).sum(scaled).transpose([0, 2, 1])
    parts = [x.pick(1, c).reshape([n, product(sizes)]) for c in range(channels.value)]
    return stack([_Image(part, is_inside).sum(scaled) for part in parts], 1)


def _taps(
    builder: OnnxLegalizer,
    dim: Expr,
    places: TensorValue,
    mode: str,
    padding: str,
    corners: bool,
    wide: bool,
) -> list[_Tap]:
    element = places.element
    size = TensorValue.dim(builder, dim).cast(element)
    type_ = i64 if wide or (mode == "cubic" and padding == "reflection") else i32
    if corners:
        low, high = TensorValue.number(builder, 0, element), size - 1.0
        x = (places + 1.0) / 2.0 * high
    else:
        low, high = TensorValue.number(builder, -0.5, element), size - 0.5
        x = ((places + 1.0) * size - 1.0) / 2.0
    if mode == "nearest":
        x = x.round()
    if mode != "cubic":
        x = _kept_inside(x, size, padding, low, high)
    if mode == "nearest":
        return [_tap(builder, dim, x.cast(type_), None, padding, low, high)]
    base = x.floor()
    after = x - base
    if mode == "linear":
        weights, first = [1.0 - after, after], 0
    else:
        weights, first = cubic_weights(after, -0.75), -1
    if mode == "cubic" and padding == "border":
        base = base.clip(-3.0, size + 2.0)  # so far beyond the border all neighbors are one
    index = base.cast(type_)
    return [
        _tap(builder, dim, index + (first + k), weight, padding, low, high)
        for k, weight in enumerate(weights)
    ]


def _kept_inside(
    x: TensorValue, size: TensorValue, padding: str, low: TensorValue, high: TensorValue
) -> TensorValue:
    """Places beyond the borders moved; a cubic kernel moves each of its neighbors instead."""
    if padding == "border":
        # Up to half an element beyond the border needs no change: its neighbors repeat.
        return (x.lt(low) | x.gt(high)).where(x.clip(0.0, size - 1.0), x)
    return _reflected(x, low, high) if padding == "reflection" else x


def _tap(
    builder: OnnxLegalizer,
    dim: Expr,
    index: TensorValue,
    weight: TensorValue | None,
    padding: str,
    low: TensorValue,
    high: TensorValue,
) -> _Tap:
    size, type_ = TensorValue.dim(builder, dim).cast(index.element), index.element
    inside = index.ge(0) & index.lt(size) if padding == "zeros" else None
    if padding == "reflection":
        index = _reflected(index.cast(low.element), low, high).cast(type_)
    return _Tap(index.clip(0, size - 1), inside, weight)


def _reflected(x: TensorValue, low: TensorValue, high: TensorValue) -> TensorValue:
    """Mirrored at the borders until inside of them."""
    span = high - low
    # A dimension of one element has no span; every place is its element.
    span = span.gt(0.0).where(span, 1.0)
    below = x.lt(low)
    distance = below.where(low - x, (x - high).maximum(0.0))
    turns = (distance / span).floor()
    rest = distance - turns * span
    even = (turns - (turns / 2.0).floor() * 2.0).eq(0.0)
    from_low = even.eq(below).where(low + rest, high - rest)
    return (below | x.gt(high)).where(from_low, x)


# AffineGrid


@legalizes("AffineGrid")
def legalize_affine_grid(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """theta [N, r, r + 1] applied to the places of an image of `size`, [N, C, d...]."""
    theta = builder.operand("theta")
    corners = builder.attrs.flag("align_corners")
    size = sizes_of(builder, builder.operand("size"), "the size")
    if len(size) < 3:
        builder.refuse(f"{len(size)} sizes", "[N, C, d...]")
    n, _, *spatial = size
    rank, element = len(spatial), element_type(theta)
    columns = [_axis_places(builder, dim, corners).column(rank, k) for k, dim in enumerate(spatial)]
    ones = TensorValue.number(builder, 1, f64)
    parts = [part.broadcast(spatial) for part in (*reversed(columns), ones)]
    base = stack(parts, rank).reshape([1, product(spatial), rank + 1]).cast(element)
    turned = builder.transpose(theta, [0, 2, 1])
    return [builder.reshape(builder.add(MatmulOp(base.value, turned)), [n, *spatial, rank])]


def _axis_places(builder: OnnxLegalizer, dim: Expr, corners: bool) -> TensorValue:
    """The places of the elements of one dimension between -1 and 1, in f64."""
    size = TensorValue.dim(builder, dim).cast(f64)
    index = TensorValue.iota(builder, dim).cast(f64)
    if corners:
        return index * 2.0 / (size - 1.0).maximum(1.0) - 1.0
    return (index * 2.0 + 1.0) / size - 1.0


# Regions of interest


@legalizes("RoiAlign")
def legalize_roi_align(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Bins of each region, each the average (or maximum) of bilinear samples."""
    x, rois = builder.operand("X"), TensorValue.of(builder, builder.operand("rois"))
    batch = TensorValue.of(builder, builder.operand("batch_indices")).cast(i64)
    mode = builder.attrs.string("mode", among=("avg", "max"))
    half = False
    if op.since_version >= 16:
        name = "coordinate_transformation_mode"
        half = builder.attrs.string(name, among=("half_pixel", "output_half_pixel")) == "half_pixel"
    bins = [builder.attrs.int("output_height"), builder.attrs.int("output_width")]
    ratio, scale = builder.attrs.int("sampling_ratio"), builder.attrs.float("spatial_scale")
    element = element_type(x)
    if element not in (f32, f64):
        x, rois = builder.cast(x, f32), rois.cast(f32)
    _, channels, height, width = dims_of(x)
    corners = [rois.pick(1, k) * scale - (0.5 if half else 0.0) for k in range(4)]
    axes = [
        _roi_axis(builder, dim, corners[k], corners[k + 2], bins[1 - k], ratio, half)
        for k, dim in ((1, height), (0, width))
    ]
    value = _roi_samples(builder, x, batch, axes, mode)
    result = _roi_combined(value, axes, mode)
    dims = [rois.dims[0], bins[0], bins[1], channels]
    result = builder.transpose(result.reshape(dims).value, [0, 3, 1, 2])
    return [builder.cast(result, element)]


@record
class _RoiAxis:
    """Samples along one dimension of all regions: [regions, bins, samples]."""

    low: TensorValue
    high: TensorValue
    after: TensorValue
    """How far behind `low` the sample lies."""
    inside: TensorValue
    """Whether the sample is near enough to the image to count."""
    used: TensorValue | None
    """Whether the region has that many samples; None if all have."""
    count: TensorValue
    """The samples of each region, or one number."""

    @property
    def dims(self) -> tuple[Expr, ...]:
        return self.low.dims


def _roi_axis(
    builder: OnnxLegalizer,
    dim: Expr,
    start: TensorValue,
    end: TensorValue,
    bins: int,
    ratio: int,
    half: bool,
) -> _RoiAxis:
    extent = end - start if half else (end - start).maximum(1.0)
    bin_size = extent / float(bins)
    regions = start.dims[0]
    if ratio > 0:
        count, most, used = TensorValue.number(builder, ratio, i64), Expr.const(ratio), None
    else:
        count = bin_size.ceil().cast(i64).maximum(0)
        largest = concat([count, TensorValue(builder, np.ones(1, np.int64))], 0).reduce("max", [0])
        most = size_of(builder, largest.value, "the number of samples")
        count = count.reshape([regions, 1, 1])
        used = TensorValue.iota(builder, most).reshape([1, 1, most]).lt(count)
    rows = [regions, 1, 1]
    step = bin_size.reshape(rows)
    sample = TensorValue.iota(builder, most).cast(start.element).reshape([1, 1, most]) + 0.5
    bin_ = TensorValue.iota(builder, bins).cast(start.element).reshape([1, bins, 1])
    place = start.reshape(rows) + bin_ * step + sample * step / count.cast(start.element)
    size = TensorValue.dim(builder, dim)
    limit = size.cast(start.element)
    inside = place.ge(-1.0) & place.le(limit)
    place = place.clip(0.0, limit - 1.0)
    floor = place.floor()
    low = floor.cast(i64).clip(0, size - 1)
    high = (low + 1).minimum(size - 1)
    return _RoiAxis(low, high, place - floor, inside, used, count)


def _roi_samples(
    builder: OnnxLegalizer, x: SSAValue, batch: TensorValue, axes: Sequence[_RoiAxis], mode: str
) -> TensorValue:
    """
    [regions, bins, samples, bins, samples, C]: the interpolated values, or for `max` (as the
    specification has it) the largest of the four weighted neighbors.
    """
    last = builder.transpose(x, [0, 2, 3, 1])
    down, across = axes
    regions, *_ = down.dims
    shape: list[ExprLike] = [*down.dims, *across.dims[1:]]
    tall: list[ExprLike] = [*down.dims, 1, 1]
    wide: list[ExprLike] = [regions, 1, 1, *across.dims[1:]]
    rows = batch.reshape([regions, 1, 1, 1, 1]).broadcast(shape)
    inside = (down.inside.reshape(tall) & across.inside.reshape(wide)).broadcast(shape)
    total: TensorValue | None = None
    for y, x_ in itertools.product(range(2), range(2)):
        vertical = (down.low, down.high)[y].reshape(tall).broadcast(shape)
        horizontal = (across.low, across.high)[x_].reshape(wide).broadcast(shape)
        index = stack([rows, vertical, horizontal], 5)
        value = TensorValue(builder, builder.add(GatherNdOp(last, index.value)))
        weight = _side(down.after, y).reshape(tall) * _side(across.after, x_).reshape(wide)
        value = value * weight.reshape([*shape, 1])
        if total is None:
            total = value
        else:
            # Of equal values, such as zeros, the first: that is the second operand.
            total = value.maximum(total) if mode == "max" else total + value
    assert total is not None
    return inside.reshape([*shape, 1]).where(total, 0.0)


def _side(after: TensorValue, side: int) -> TensorValue:
    return after if side else 1.0 - after


def _roi_combined(value: TensorValue, axes: Sequence[_RoiAxis], mode: str) -> TensorValue:
    """Samples combined, [regions, bins, bins, C]; a bin without samples is zero."""
    down, across = axes
    regions = down.dims[0]
    used: TensorValue | None = None
    if down.used is not None and across.used is not None:
        tall = down.used.reshape([regions, 1, down.dims[2], 1, 1, 1])
        used = tall & across.used.reshape([regions, 1, 1, 1, across.dims[2], 1])
    if mode == "max":
        if used is None:
            return value.reduce("max", [2, 4])
        lowest = TensorValue.number(value.builder, -np.inf, value.element)
        largest = used.where(value, lowest).reduce("max", [2, 4])
        zero = TensorValue.number(value.builder, 0, value.element)
        return largest.eq(lowest).where(zero, largest)
    if used is not None:
        value = used.where(value, 0.0)
    count = (down.count * across.count).maximum(1).cast(value.element)
    if count.dims:
        count = count.reshape([regions, 1, 1, 1])
    return value.reduce("sum", [2, 4]) / count


@legalizes("MaxRoiPool")
def legalize_max_roi_pool(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    The maximum over each bin of rounded corners; a bin without elements is zero. NaN is passed
    over.

    The rows of `rois` are [image, x1, y1, x2, y2].
    """
    x, rois = builder.operand("X"), TensorValue.of(builder, builder.operand("rois")).cast(f32)
    bins, scale = builder.attrs.ints("pooled_shape"), builder.attrs.float("spatial_scale")
    _, _, height, width = dims_of(x)
    images = builder.add(GatherOp(x, rois.pick(1, 0).cast(i64).value, 0))
    # Half away from zero, as C rounds.
    corners = [(rois.pick(1, k) * scale + 0.5).floor().cast(i64) for k in range(1, 5)]
    rows = _bin_mask(builder, height, corners[1], corners[3], bins[0])
    columns = _bin_mask(builder, width, corners[0], corners[2], bins[1])
    value = TensorValue(builder, images)
    lowest = TensorValue.number(builder, _lowest(x), value.element)
    if is_float(value.element):
        value = value.eq(value).where(value, lowest)
    regions, channels = dims_of(images)[:2]
    tall = value.reshape([regions, channels, 1, height, width])
    mask = rows.reshape([regions, 1, bins[0], height, 1])
    tall = mask.where(tall, lowest).reduce("max", [3])
    wide = tall.reshape([regions, channels, bins[0], 1, width])
    mask = columns.reshape([regions, 1, 1, bins[1], width])
    pooled = mask.where(wide, lowest).reduce("max", [4])
    filled = rows.cast(i64).reduce("max", [2]).reshape([regions, 1, bins[0], 1])
    filled = filled * columns.cast(i64).reduce("max", [2]).reshape([regions, 1, 1, bins[1]])
    return [filled.cast(i1).where(pooled, 0.0).value]


def _lowest(x: SSAValue) -> float:
    element = element_type(x)
    return -np.inf if is_float(element) else float(np.iinfo(numpy_dtype(element)).min)


def _bin_mask(
    builder: OnnxLegalizer, dim: Expr, start: TensorValue, end: TensorValue, bins: int
) -> TensorValue:
    """Which elements of a dimension belong to which bin, [regions, bins, dim]."""
    regions = start.dims[0]
    extent = (end - start + 1).maximum(1).cast(f32)
    step = (extent / float(bins)).reshape([regions, 1])
    number = TensorValue.iota(builder, bins).cast(f32).reshape([1, bins])
    first, last = (number * step).floor(), ((number + 1.0) * step).ceil()
    size = TensorValue.dim(builder, dim)
    first, last = (
        (edge.cast(i64) + start.reshape([regions, 1])).clip(0, size) for edge in (first, last)
    )
    place = TensorValue.iota(builder, dim).reshape([1, 1, dim])
    rows = [regions, bins, 1]
    return place.ge(first.reshape(rows)) & place.lt(last.reshape(rows))
