"""
Resize and Upsample: one dimension after the other, as weighted sums of gathered neighbors.

Where sizes are given, the places are fractions of integers: a tie is one, and whole places are
whole. Where scales are given, they are f32, and so are the places: 4/3 is no f32, but 4 divided by
it is 3 in f32. The official evaluator and ONNX Runtime agree with both wherever they agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    f64,
    i64,
    is_float,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.interpolation import (
    cubic_weights,
    inner_cubic,
    outer_cubic,
    weighted_taps,
)
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import length_of, size_of, sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

_COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_EXACT_SCALE = 64
"""Scales that are a fraction of numbers up to this give sizes that are dimension expressions."""


@record
class _Axis:
    """What happens to one dimension."""

    axis: int
    size: Expr
    """The new size."""
    scale: TensorValue
    """How much longer the dimension becomes, an f32 scalar."""
    length: TensorValue
    """The new size before it was rounded, an f32 scalar."""
    is_exact: bool
    """True if the scale is the new size by the old one and nothing else."""
    region: tuple[TensorValue, TensorValue] | None
    """Where the region of interest begins and ends, f32 scalars between 0 and 1."""
    ratio: _Ratio | None = None
    """The scale as a fraction, where sizes are given."""


@record
class _Ratio:
    """A fraction of two integers, i64."""

    over: TensorValue
    under: TensorValue

    def floor(self) -> TensorValue:
        return self.over // self.under

    def ceil(self) -> TensorValue:
        return -(-self.over // self.under)

    def plus_half(self, count: int) -> _Ratio:
        """The fraction plus `count` halves."""
        return _Ratio(self.over * 2 + self.under * count, self.under * 2)

    def as_float(self, element: Attribute = f32) -> TensorValue:
        return self.over.cast(element) / self.under.cast(element)

    def after(self, base: TensorValue, element: Attribute) -> TensorValue:
        """How far the fraction lies behind an integer near it, in a type of floats."""
        return _Ratio(self.over - base * self.under, self.under).as_float(element)

    def is_below(self, other: _Ratio) -> TensorValue:
        """i1: whether this is less than another one; both have positive denominators."""
        return (self.over * other.under).lt(other.over * self.under)


@record
class _Float:
    """Places as f32 or f64, with what `_Ratio` has."""

    value: TensorValue

    def floor(self) -> TensorValue:
        return self.value.floor().cast(i64)

    def ceil(self) -> TensorValue:
        return self.value.ceil().cast(i64)

    def plus_half(self, count: int) -> _Float:
        return _Float(self.value + 0.5 * count)

    def as_float(self) -> TensorValue:
        return self.value.cast(f32)

    def after(self, base: TensorValue, element: Attribute) -> TensorValue:
        return (self.value - base.cast(self.value.element)).cast(element)


@record
class _Method:
    """How positions and values are found."""

    mode: str
    coordinates: str
    rounding: str = "floor"
    coefficient: float = -0.75
    exclude_outside: bool = False
    extrapolation: float | None = None
    antialias: bool = False


@legalizes("Upsample", until=8)
def legalize_upsample_attributes(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The scales are attributes; version 1 has those of height and width."""
    if op.since_version == 1:
        scales = [1.0, 1.0, builder.attrs.float("height_scale"), builder.attrs.float("width_scale")]
    else:
        scales = builder.attrs.floats("scales")
    given = TensorValue(builder, np.array(scales, np.float32))
    return [_asymmetric(builder, builder.operand("X"), given)]


@legalizes("Upsample", since=9)
def legalize_upsample(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    scales = TensorValue.of(builder, builder.operand("scales"))
    return [_asymmetric(builder, builder.operand("X"), scales)]


@legalizes("Resize", until=10)
def legalize_resize_scales(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Version 10: positions are x / scale, rounded up when scaling down, else rounded down."""
    scales = TensorValue.of(builder, builder.operand("scales"))
    return [_asymmetric(builder, builder.operand("X"), scales)]


def _asymmetric(builder: OnnxLegalizer, x: SSAValue, scales: TensorValue) -> SSAValue:
    mode = builder.attrs.string("mode", among=("nearest", "linear", "bilinear"))
    mode = "linear" if mode == "bilinear" else mode
    return _resized(
        builder, x, _scaled(builder, x, scales, None), _Method(mode, "asymmetric", "simple")
    )


@legalizes("Resize", since=11)
def legalize_resize(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x = builder.operand("X")
    method = _method(op, builder)
    axes = list(range(rank_of(x)))
    policy = "stretch"
    if op.since_version >= 18:
        axes = builder.axes(builder.attrs.ints("axes", default=axes), rank_of(x))
        policy = builder.attrs.string(
            "keep_aspect_ratio_policy", among=("stretch", "not_larger", "not_smaller")
        )
    region = _region(builder, axes) if method.coordinates == "tf_crop_and_resize" else None
    scales, sizes = (_present(builder, name) for name in ("scales", "sizes"))
    if sizes is not None:
        plan = _sized(builder, x, axes, sizes, policy, region)
    elif scales is not None:
        plan = _scaled(builder, x, TensorValue.of(builder, scales), region, axes)
    else:
        builder.refuse("neither scales nor sizes", "one of them")
    return [_resized(builder, x, plan, method)]


def _method(op: OnnxOp, builder: OnnxLegalizer) -> _Method:
    attrs = builder.attrs
    coordinates = attrs.string("coordinate_transformation_mode", among=_COORDINATES)
    crop = coordinates == "tf_crop_and_resize"
    extrapolation = attrs.float("extrapolation_value")
    return _Method(
        mode=attrs.string("mode", among=("nearest", "linear", "cubic")),
        coordinates=coordinates,
        rounding=attrs.string("nearest_mode", among=_ROUNDINGS),
        coefficient=attrs.float("cubic_coeff_a"),
        exclude_outside=attrs.flag("exclude_outside"),
        extrapolation=extrapolation if crop else None,
        antialias=op.since_version >= 18 and attrs.flag("antialias"),
    )


def _present(builder: OnnxLegalizer, name: str) -> SSAValue | None:
    """An operand, unless it is absent or empty (as before version 13)."""
    value = builder.input(name)
    return None if value is None or dims_of(value) == (Expr.const(0),) else value


def _region(builder: OnnxLegalizer, axes: Sequence[int]) -> list[tuple[TensorValue, TensorValue]]:
    roi = _present(builder, "roi")
    if roi is None:
        builder.refuse("no region of interest", "the operand roi for tf_crop_and_resize")
    if length_of(builder, roi, "roi") != 2 * len(axes):
        builder.refuse(f"roi of type {roi.type}", f"{2 * len(axes)} numbers")
    bounds = TensorValue.of(builder, roi).cast(f32)
    count = len(axes)
    return [(bounds.pick(0, k), bounds.pick(0, count + k)) for k in range(count)]


# Sizes


def _scaled(
    builder: OnnxLegalizer,
    x: SSAValue,
    scales: TensorValue,
    region: Sequence[tuple[TensorValue, TensorValue]] | None,
    axes: Sequence[int] | None = None,
) -> list[_Axis]:
    """New sizes are the old ones times the scale, rounded down; the scale stays as it is."""
    axes = range(rank_of(x)) if axes is None else axes
    if scales.dims != (Expr.const(len(axes)),):
        builder.refuse(f"scales of shape [{', '.join(map(str, scales.dims))}]", f"{len(axes)}")
    plan: list[_Axis] = []
    for k, axis in enumerate(axes):
        scale = scales.pick(0, k).cast(f32)
        dim = dims_of(x)[axis]
        length = TensorValue.dim(builder, dim).cast(f32) * scale
        size = _scaled_size(builder, dim, scale, length)
        plan.append(
            _Axis(axis, size, scale, length, scale.is_all(1), region[k] if region else None)
        )
    return plan


def _scaled_size(
    builder: OnnxLegalizer, dim: Expr, scale: TensorValue, length: TensorValue
) -> Expr:
    if scale.array is not None:
        over, under = float(scale.array).as_integer_ratio()
        if over <= 0:
            builder.refuse(f"a scale of {float(scale.array)}", "a positive number")
        if dim.value is None and max(over, under) <= _EXACT_SCALE:
            return dim * over // under
    return size_of(builder, length.floor().cast(i64).value, "a new size")


def _sized(
    builder: OnnxLegalizer,
    x: SSAValue,
    axes: Sequence[int],
    value: SSAValue,
    policy: str,
    region: Sequence[tuple[TensorValue, TensorValue]] | None,
) -> list[_Axis]:
    """New sizes as given, or the nearest ones that keep the proportions of `axes`."""
    sizes = sizes_of(builder, value, "sizes")
    if len(sizes) != len(axes):
        builder.refuse(f"{len(sizes)} sizes for {len(axes)} axes", "as many")
    old = [TensorValue.dim(builder, dims_of(x)[axis]) for axis in axes]
    ratios = [_Ratio(TensorValue.dim(builder, m), n) for m, n in zip(sizes, old, strict=True)]
    if policy != "stretch":
        common = _extreme(ratios, largest=policy == "not_smaller")
        ratios = [common] * len(axes)
        rounded = [_Ratio(common.over * n, common.under).plus_half(1).floor() for n in old]
        sizes = [size_of(builder, size.value, "a new size") for size in rounded]
    plan: list[_Axis] = []
    for k, axis in enumerate(axes):
        length = _Ratio(ratios[k].over * old[k], ratios[k].under).as_float()
        bounds = region[k] if region else None
        is_exact = policy == "stretch"
        plan.append(
            _Axis(axis, sizes[k], ratios[k].as_float(), length, is_exact, bounds, ratios[k])
        )
    return plan


def _extreme(ratios: Sequence[_Ratio], *, largest: bool) -> _Ratio:
    """The largest or smallest one of fractions."""
    best = ratios[0]
    for ratio in ratios[1:]:
        better = best.is_below(ratio) if largest else ratio.is_below(best)
        best = _Ratio(better.where(ratio.over, best.over), better.where(ratio.under, best.under))
    return best


# Values


def _resized(
    builder: OnnxLegalizer, x: SSAValue, plan: Sequence[_Axis], method: _Method
) -> SSAValue:
    """Integers are interpolated as floats, rounded and kept in their range."""
    element = element_type(x)
    if method.mode != "nearest" and element not in (f32, f64):
        value = builder.cast(x, f32)
        for axis in plan:
            value = _along(builder, value, axis, method)
        return _narrowed(builder, value, element)
    for axis in plan:
        x = _along(builder, x, axis, method)
    return x


def _narrowed(builder: OnnxLegalizer, value: SSAValue, element: Attribute) -> SSAValue:
    if is_float(element):
        return builder.cast(value, element)
    limits = np.iinfo(numpy_dtype(element))
    rounded = TensorValue.of(builder, value).round()
    return rounded.clip(float(limits.min), float(limits.max)).cast(element).value


def _along(builder: OnnxLegalizer, x: SSAValue, plan: _Axis, method: _Method) -> SSAValue:
    """`x` with one dimension resized."""
    dim = dims_of(x)[plan.axis]
    if plan.size == dim and plan.region is None and plan.is_exact:
        return x
    places = _positions(builder, dim, plan, method.coordinates)
    if method.mode == "nearest":
        index = _nearest(places, method.rounding, plan.scale)
        index = _inside(builder, index, dim)
        result = builder.add(GatherOp(x, index.value, plan.axis, inside=True))
    else:
        result = _interpolated(builder, x, dim, places, plan, method)
    if method.extrapolation is None:
        return result
    last, where = TensorValue.dim(builder, dim - 1).cast(f32), places.as_float()
    outside = (where.lt(0.0) | where.gt(last)).column(rank_of(x), plan.axis)
    return builder.select(outside.value, builder.scalar(method.extrapolation, x), result)


def _positions(builder: OnnxLegalizer, dim: Expr, plan: _Axis, coordinates: str) -> _Ratio | _Float:
    """Where each new element lies among the old ones, a vector."""
    place, old = TensorValue.iota(builder, plan.size), TensorValue.dim(builder, dim)
    if coordinates == "tf_crop_and_resize":
        return _Float(_cropped(place.cast(f32), old.cast(f32), plan))
    new = TensorValue.dim(builder, plan.size)
    if coordinates == "pytorch_half_pixel":
        # One element is taken from the beginning: its middle moves there.
        zero = TensorValue.number(builder, 0, i64)
        if plan.ratio is not None:
            found = _fractions(place, old, new, plan.ratio, "half_pixel")
            return _Ratio(new.eq(1).where(zero, found.over), found.under)
        found = _floats(place.cast(f32), old, new, plan, "half_pixel")
        return _Float(new.eq(1).where(zero.cast(f32), found))
    if plan.ratio is not None:
        return _fractions(place, old, new, plan.ratio, coordinates)
    return _Float(_floats(place.cast(f32), old, new, plan, coordinates))


def _fractions(
    place: TensorValue, old: TensorValue, new: TensorValue, scale: _Ratio, coordinates: str
) -> _Ratio:
    """Places where the scale is a fraction."""
    over, under = scale.over, scale.under
    match coordinates:
        case "asymmetric":
            return _Ratio(place * under, over)
        case "tf_half_pixel_for_nn":
            # A dimension that stays as it is does not move by a half.
            return _Ratio((place * 2 + new.ne(old).cast(i64)) * under, over * 2)
        case "align_corners":
            # The last element of `length` lies on the last one of `old`; one alone on the first.
            steps = over * old - under
            alone = steps.eq(0)
            one = TensorValue.number(place.builder, 1, i64)
            return _Ratio(place * (old - 1) * under, alone.where(one, steps))
        case "half_pixel_symmetric":
            offset = old * over - new * under
            return _Ratio((place * 2 + 1) * under - over + offset, over * 2)
        case _:
            return _Ratio((place * 2 + 1) * under - over, over * 2)


def _floats(
    place: TensorValue, old: TensorValue, new: TensorValue, plan: _Axis, coordinates: str
) -> TensorValue:
    """Places where the scale is an f32."""
    match coordinates:
        case "asymmetric":
            return place / plan.scale
        case "tf_half_pixel_for_nn":
            return (place + plan.scale.ne(1.0).cast(f32) * 0.5) / plan.scale
        case "align_corners":
            place, steps = place.cast(f64), (plan.length - 1.0).cast(f64)
            single = steps.eq(0.0)
            steps = single.where(TensorValue.number(place.builder, 1, f64), steps)
            return single.where(place * 0.0, place * (old - 1).cast(f64) / steps)
        case "half_pixel_symmetric":
            # The terms cancel where the result is a tie: it is rounded once.
            length, scale = old.cast(f64), plan.scale.cast(f64)
            offset = length * 0.5 * (1.0 - new.cast(f64) / (length * scale))
            return (offset + (place.cast(f64) + 0.5) / scale).cast(f32) - 0.5
        case _:
            return (place + 0.5) / plan.scale - 0.5


def _cropped(place: TensorValue, old: TensorValue, plan: _Axis) -> TensorValue:
    assert plan.region is not None
    start, end = plan.region
    single = plan.length.eq(1.0)
    steps = single.where(TensorValue.number(place.builder, 1, f32), plan.length - 1.0)
    spread = place * (end - start) * (old - 1.0) / steps
    middle = (end - start) * (old - 1.0) / 2.0 + place * 0.0
    return single.where(middle, spread) + start * (old - 1.0)


def _nearest(place: _Ratio | _Float, rounding: str, scale: TensorValue) -> TensorValue:
    match rounding:
        case "round_prefer_floor":
            return place.plus_half(-1).ceil()
        case "round_prefer_ceil":
            return place.plus_half(1).floor()
        case "floor":
            return place.floor()
        case "ceil":
            return place.ceil()
        case _:
            return scale.lt(1.0).where(place.ceil(), place.floor())


def _inside(builder: OnnxLegalizer, index: TensorValue, dim: Expr) -> TensorValue:
    return index.clip(0, TensorValue.dim(builder, dim - 1))


def _interpolated(
    builder: OnnxLegalizer,
    x: SSAValue,
    dim: Expr,
    places: _Ratio | _Float,
    plan: _Axis,
    method: _Method,
) -> SSAValue:
    """The weighted sum of the elements around each place, which repeat beyond the border."""
    element = element_type(x)
    if method.antialias:
        index, weights = _antialiased(builder, places, plan, method, element)
    else:
        index, weights = _taps(places, method, element)
    if method.exclude_outside:
        outside = index.lt(0) | index.gt(TensorValue.dim(builder, dim - 1))
        weights = outside.where(TensorValue.number(builder, 0, element), weights)
        weights = weights / weights.reduce("sum", [1], keep_dims=True)
    index = _inside(builder, index, dim)
    if method.antialias:
        return _weighted_reduction(builder, x, plan.axis, index, weights)
    return weighted_taps(builder, x, plan.axis, index, weights, inside=True)


def _taps(
    places: _Ratio | _Float, method: _Method, element: Attribute
) -> tuple[TensorValue, TensorValue]:
    """Indices (i64) and weights (floats like elements) of neighbors, both [places, neighbors]."""
    base = places.floor()
    after = places.after(base, element)
    if method.mode == "linear":
        return stack([base, base + 1], 1), stack([1.0 - after, after], 1)
    weights = cubic_weights(after, method.coefficient)
    return stack([base + k for k in (-1, 0, 1, 2)], 1), stack(weights, 1)


def _antialiased(
    builder: OnnxLegalizer,
    places: _Ratio | _Float,
    plan: _Axis,
    method: _Method,
    element: Attribute,
) -> tuple[TensorValue, TensorValue]:
    """The filter widened by 1 / scale when scaling down, its weights normalized."""
    scale = plan.scale.minimum(1.0)
    radius = 1.0 if method.mode == "linear" else 2.0
    start = (-(TensorValue.number(builder, radius, f32) / scale)).floor().cast(i64) + 1
    count = size_of(builder, (start * -2 + 2).value, "the width of the filter")
    # The place lies behind the base, by up to one.
    base = places.ceil() - 1
    offsets = (TensorValue.iota(builder, count) + start).reshape([1, count])
    rows = [plan.size, 1]
    after = places.after(base, element).reshape(rows)
    exact = plan.scale.cast(element) if plan.ratio is None else plan.ratio.as_float(element)
    distance = (offsets.cast(element) - after) * exact.minimum(1.0)
    weights = _filter(distance.abs(), method)
    index = base.reshape(rows) + offsets
    return index, weights / weights.reduce("sum", [1], keep_dims=True)


def _filter(distance: TensorValue, method: _Method) -> TensorValue:
    if method.mode == "linear":
        return (1.0 - distance).clip(0.0, 1.0)
    a = method.coefficient
    outer = distance.lt(2.0).where(outer_cubic(distance, a), 0.0)
    return distance.le(1.0).where(inner_cubic(distance, a), outer)


def _weighted_reduction(
    builder: OnnxLegalizer, x: SSAValue, axis: int, index: TensorValue, weights: TensorValue
) -> SSAValue:
    gathered = TensorValue(builder, builder.add(GatherOp(x, index.value, axis)))
    behind = [1] * (rank_of(x) - axis - 1)
    scaled = gathered * weights.reshape([*weights.dims, *behind])
    return scaled.reduce("sum", [axis + 1]).value
