"""Images [N, height, width, C]: resizing, cropping, contrast and colors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import GatherNdOp, GatherOp
from lowerdeck.dialects.core.types import dims_of, f32, i64
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.interpolation import cubic_weights, weighted_taps
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.legalizer import Legalizer, refuse
from lowerdeck.passes.legalize.sizes import sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.elementwise import narrowed, number, widened
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.windows import require_image

_SMALLEST_SUM = 1000 * 1.1754943508222875e-38
"""Weights that sum up to less than this are not normalized."""


@record
class Axis:
    """One dimension that is resized."""

    builder: Legalizer
    axis: int
    old: Expr
    new: Expr
    is_cornered: bool
    """True if the centers of the first and last elements stay where they are."""
    is_centered: bool
    """True if elements are at halves: `half_pixel_centers`."""

    @property
    def scale(self) -> TensorValue:
        """How many old elements there are for a new one, an f32 scalar."""
        old, new = (TensorValue.dim(self.builder, dim) for dim in (self.old, self.new))
        ratio = old.cast(f32) / new.cast(f32)
        if not self.is_cornered:
            return ratio
        spread = (old - 1).cast(f32) / (new - 1).maximum(1).cast(f32)
        return new.gt(1).where(spread, ratio)

    @property
    def number(self) -> TensorValue:
        """The numbers of the new elements, an f32 vector."""
        return TensorValue.iota(self.builder, self.new).cast(f32)

    @property
    def places(self) -> TensorValue:
        """Where the new elements lie among the old ones."""
        if self.is_centered:
            return (self.number + 0.5) * self.scale - 0.5
        return self.number * self.scale

    def inside(self, index: TensorValue) -> TensorValue:
        """An i64 index moved to the nearest element."""
        return index.clip(0, TensorValue.dim(self.builder, self.old - 1))


def _axes(builder: Tf1Legalizer, name: str = "images", prefix: str = "") -> list[Axis]:
    """Height and width of the operand `name`; its attributes begin with a prefix."""
    image = require_image(builder, builder.operand(name), 4)
    sizes = sizes_of(builder, builder.operand("size"), "the size")
    return resized_axes(builder, dims_of(image)[1:3], sizes, prefix)


def resized_axes(
    builder: Tf1Legalizer, old: Sequence[Expr], new: Sequence[Expr], prefix: str = ""
) -> list[Axis]:
    """Height and width of an image, and of what it is resized to."""
    for sizes in (old, new):
        if len(sizes) != 2:
            builder.refuse(f"{len(sizes)} sizes", "height and width")
    corners = builder.attrs.flag(f"{prefix}align_corners")
    half = builder.attrs.has("half_pixel_centers") and builder.attrs.flag("half_pixel_centers")
    if corners and half:
        builder.refuse("align_corners with half_pixel_centers", "at most one of them")
    return [Axis(builder, 1 + k, old[k], new[k], corners, half) for k in (0, 1)]


def _resized(builder: Tf1Legalizer, along: Callable[[SSAValue, Axis], SSAValue]) -> Results:
    """The image as f32, resized along both dimensions."""
    x = builder.cast(number(builder, "images"), f32)
    for axis in _axes(builder):
        x = x if axis.old == axis.new else along(x, axis)
    return [x]


@legalizes("ResizeBilinear")
def legalize_bilinear(builder: Tf1Legalizer) -> Results:
    """Between the two nearest rows and columns; beyond the border its elements repeat."""
    return _resized(builder, _between)


def _between(x: SSAValue, axis: Axis) -> SSAValue:
    return weighted_taps(axis.builder, x, axis.axis, *bilinear_taps(axis))


def bilinear_taps(axis: Axis) -> tuple[TensorValue, TensorValue]:
    """The old elements that each new one lies between, [new, 2], and their weights."""
    places = axis.places
    floor = places.floor()
    after = places - floor
    index = stack([axis.inside(edge.cast(i64)) for edge in (floor, places.ceil())], 1)
    return index, stack([1 - after, after], 1)


def resized_input(builder: Tf1Legalizer) -> SSAValue:
    """The operand `input` resized as `size` and `resize_align_corners` say."""
    x = number(builder, "input")
    for axis in _axes(builder, "input", "resize_"):
        x = _between(x, axis)
    return x


@legalizes("ResizeBicubic")
def legalize_bicubic(builder: Tf1Legalizer) -> Results:
    """
    By a cubic kernel of four elements, for places in steps of 1/1024.

    With `half_pixel_centers` it is Keys' (-0.5), without elements beyond the border; else the
    kernel is that of -0.75, and the elements at the border repeat.
    """

    return _resized(
        builder, lambda x, axis: weighted_taps(builder, x, axis.axis, *cubic_taps(axis))
    )


def cubic_taps(axis: Axis) -> tuple[TensorValue, TensorValue]:
    """The four old elements around each new one, [new, 4], and their weights."""
    places = axis.places
    floor = places.floor()
    after = ((places - floor) * 1024.0).round() * (1 / 1024)
    base = floor.cast(i64)
    given = stack([base + k for k in (-1, 0, 1, 2)], 1)
    index = axis.inside(given)
    weights = stack(cubic_weights(after, -0.5 if axis.is_centered else -0.75), 1)
    if axis.is_centered:
        weights = index.eq(given).where(weights, 0.0)
        total = weights.reduce("sum", [1], keep_dims=True)
        weights = weights / total.abs().ge(_SMALLEST_SUM).where(total, 1.0)
    return index, weights


@legalizes("ResizeArea")
def legalize_area(builder: Tf1Legalizer) -> Results:
    """The mean of the old elements that a new one covers, those at its edges in part."""

    def along(x: SSAValue, axis: Axis) -> SSAValue:
        dims = dims_of(x)
        before, behind = dims[: axis.axis], dims[axis.axis + 1 :]
        rows = [product(before), axis.old, product(behind)]
        result = builder.add(MatmulOp(_coverage(axis).value, builder.reshape(x, rows)))
        return builder.reshape(result, [*before, axis.new, *behind])

    return _resized(builder, along)


def _coverage(axis: Axis) -> TensorValue:
    """How much of each new element is of each old one, [1, new, old]."""
    scale = axis.scale
    rows: list[ExprLike] = [1, axis.new, 1]
    first = (axis.number * scale).reshape(rows)
    last = ((axis.number + 1.0) * scale).reshape(rows)
    index = TensorValue.iota(axis.builder, axis.old).reshape([1, 1, axis.old])
    start = index.cast(f32)
    # The last old element repeats beyond the border.
    is_last = index.eq(TensorValue.dim(axis.builder, axis.old - 1))
    end = is_last.where(last, last.minimum(start + 1.0))
    return (end - first.maximum(start)).maximum(0.0) / scale


@legalizes("ResizeNearestNeighbor")
def legalize_nearest(builder: Tf1Legalizer) -> Results:
    """
    The element below a place; with `align_corners` the nearest one, the next of two halves.

    Here `half_pixel_centers` does not shift back by a half.
    """
    x = number(builder, "images")
    for axis in _axes(builder):
        if axis.old == axis.new:
            continue
        x = builder.add(GatherOp(x, nearest_places(axis).value, axis.axis))
    return [x]


def nearest_places(axis: Axis) -> TensorValue:
    """The old element that each new one is."""
    places = (axis.number + 0.5 if axis.is_centered else axis.number) * axis.scale
    places = _rounded(places) if axis.is_cornered else places.floor()
    return axis.inside(places.cast(i64))


def _rounded(places: TensorValue) -> TensorValue:
    """Halves away from zero, for what is not negative."""
    floor = places.floor()
    return (places - floor).ge(0.5).where(floor + 1.0, floor)


# Crops


@record
class _Crop:
    """One dimension of all crops: [boxes, size]."""

    places: TensorValue
    is_inside: TensorValue


@legalizes("CropAndResize")
def legalize_crop(builder: Tf1Legalizer) -> Results:
    """Boxes [y1, x1, y2, x2] of images, in parts of their size, resized to `crop_size`."""
    image = builder.cast(require_image(builder, number(builder, "image"), 4), f32)
    boxes = TensorValue.of(builder, builder.operand("boxes"))
    owner = TensorValue.of(builder, builder.operand("box_ind")).cast(i64)
    sizes = sizes_of(builder, builder.operand("crop_size"), "the size of crops")
    if len(sizes) != 2:
        builder.refuse(f"{len(sizes)} sizes", "height and width")
    dims = dims_of(image)
    axes = [
        _crop_axis(builder, dims[1 + k], sizes[k], boxes.pick(1, k), boxes.pick(1, k + 2))
        for k in (0, 1)
    ]
    is_nearest = builder.attrs.string("method", among=("bilinear", "nearest")) == "nearest"
    value = _crop_samples(builder, image, owner, axes, is_nearest)
    count = boxes.dims[0]
    tall, wide = [count, sizes[0], 1, 1], [count, 1, sizes[1], 1]
    inside = axes[0].is_inside.reshape(tall) & axes[1].is_inside.reshape(wide)
    return [inside.where(value, builder.attrs.float("extrapolation_value")).value]


def _crop_axis(
    builder: Tf1Legalizer, old: Expr, new: Expr, start: TensorValue, end: TensorValue
) -> _Crop:
    rows = [start.dims[0], 1]
    last = TensorValue.dim(builder, old - 1).cast(f32)
    size = TensorValue.dim(builder, new)
    step = (end - start) * last / (size - 1).maximum(1).cast(f32)
    numbers = TensorValue.iota(builder, new).cast(f32).reshape([1, new])
    spread = (start * last).reshape(rows) + numbers * step.reshape(rows)
    middle = ((start + end) * 0.5 * last).reshape(rows).broadcast([start.dims[0], new])
    places = size.gt(1).where(spread, middle)
    return _Crop(places, places.ge(0.0) & places.le(last))


def _crop_samples(
    builder: Tf1Legalizer, x: SSAValue, owner: TensorValue, axes: Sequence[_Crop], is_nearest: bool
) -> TensorValue:
    """[boxes, height, width, C], whatever it is outside of the image."""
    taps = [_crop_taps(axis.places, is_nearest) for axis in axes]
    count, height, width = owner.dims[0], axes[0].places.dims[1], axes[1].places.dims[1]
    tall, wide = [count, height, 1], [count, 1, width]
    shape = [count, height, width]
    limits = [TensorValue.dim(builder, dim - 1) for dim in dims_of(x)[1:3]]
    total: TensorValue | None = None
    for (row, down), (column, across) in itertools.product(*taps):
        parts = [
            owner.reshape([count, 1, 1]),
            row.clip(0, limits[0]).reshape(tall),
            column.clip(0, limits[1]).reshape(wide),
        ]
        index = stack([part.broadcast(shape) for part in parts], 3)
        value = TensorValue(builder, builder.add(GatherNdOp(x, index.value)))
        if not is_nearest:
            value = value * down.reshape([*tall, 1]) * across.reshape([*wide, 1])
        total = value if total is None else total + value
    assert total is not None
    return total


def _crop_taps(places: TensorValue, is_nearest: bool) -> list[tuple[TensorValue, TensorValue]]:
    """Indices and weights of the neighbors."""
    if is_nearest:
        return [(_rounded(places).cast(i64), places)]
    floor = places.floor()
    after = places - floor
    return [(floor.cast(i64), 1 - after), (places.ceil().cast(i64), after)]


# Contrast and colors


@legalizes("AdjustContrastv2")
def legalize_contrast(builder: Tf1Legalizer) -> Results:
    """(x - mean) * factor + mean, by the mean of each channel of an image."""
    x = widened(builder, "images")
    rank = len(x.dims)
    if rank < 3:
        builder.refuse(f"an operand of {rank} dimensions", "at least 3")
    factor = TensorValue.of(builder, builder.operand("contrast_factor"))
    center = TensorValue(builder, mean(builder, x.value, [rank - 3, rank - 2], keep_dims=True))
    return narrowed(builder, (x - center) * factor + center)


Colors = tuple[TensorValue, TensorValue, TensorValue]


def _channels(x: TensorValue) -> Colors:
    """The three parts of the last dimension."""
    axis = len(x.dims) - 1
    if axis < 0:
        refuse("a scalar", "channels")
    if x.dims[axis].value not in (None, 3):
        refuse(f"{x.dims[axis]} channels", "3")
    first, second, third = (x.pick(axis, k) for k in range(3))
    return first, second, third


@legalizes("RGBToHSV")
def legalize_to_hsv(builder: Tf1Legalizer) -> Results:
    """Red, green and blue as hue, saturation and value."""
    x = widened(builder, "images")
    return narrowed(builder, stack(_to_hsv(_channels(x)), len(x.dims) - 1))


@legalizes("HSVToRGB")
def legalize_to_rgb(builder: Tf1Legalizer) -> Results:
    """Hue, saturation and value as red, green and blue."""
    x = widened(builder, "images")
    return narrowed(builder, stack(_to_rgb(_channels(x)), len(x.dims) - 1))


@legalizes("AdjustHue")
def legalize_hue(builder: Tf1Legalizer) -> Results:
    """The hue turned by `delta`."""
    x = widened(builder, "images")
    hue, saturation, value = _to_hsv(_channels(x))
    turned = hue + TensorValue.of(builder, builder.operand("delta")).cast(x.element)
    turned = turned - turned.floor()
    return narrowed(builder, stack(_to_rgb((turned, saturation, value)), len(x.dims) - 1))


@legalizes("AdjustSaturation")
def legalize_saturation(builder: Tf1Legalizer) -> Results:
    """The saturation times `scale`, between 0 and 1."""
    x = widened(builder, "images")
    hue, saturation, value = _to_hsv(_channels(x))
    scale = TensorValue.of(builder, builder.operand("scale")).cast(x.element)
    colors = (hue, (saturation * scale).clip(0, 1), value)
    return narrowed(builder, stack(_to_rgb(colors), len(x.dims) - 1))


def _to_hsv(colors: Colors) -> Colors:
    red, green, blue = colors
    value = red.maximum(green).maximum(blue)
    spread = value - red.minimum(green).minimum(blue)
    has_hue, has_value = spread.gt(0), value.gt(0)
    saturation = has_value.where(spread / has_value.where(value, 1), 0)
    norm = 1 / (has_hue.where(spread, 1) * 6)
    hue = red.eq(value).where(
        norm * (green - blue),
        green.eq(value).where(norm * (blue - red) + 2 / 6, norm * (red - green) + 4 / 6),
    )
    hue = has_hue.where(hue, 0)
    return hue.lt(0).where(hue + 1, hue), saturation, value


def _to_rgb(colors: Colors) -> Colors:
    hue, saturation, value = colors
    angle = hue * 6
    red = ((angle - 3).abs() - 1).clip(0, 1)
    green = (2 - (angle - 2).abs()).clip(0, 1)
    blue = (2 - (angle - 4).abs()).clip(0, 1)
    rest = 1 - saturation
    return (
        (rest + saturation * red) * value,
        (rest + saturation * green) * value,
        (rest + saturation * blue) * value,
    )
