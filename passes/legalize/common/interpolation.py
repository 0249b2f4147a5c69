"""Interpolation along one dimension: weights of neighbors, and their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import GatherOp, PadOp
from lowerdeck.dialects.core.types import dims_of, f32, f64, i64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.legalizer import Legalizer, refuse
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, as_index, stack


def weighted_taps(
    builder: CoreBuilder,
    x: SSAValue,
    axis: int,
    index: TensorValue,
    weights: TensorValue,
    *,
    inside: bool = False,
) -> SSAValue:
    """
    The sum of elements along `axis` at `index` times `weights`, both [places, neighbors]; the
    indices may be known to be `inside`.
    """
    total: TensorValue | None = None
    for tap in range(index.dims[1].value or 0):
        gather = GatherOp(x, index.pick(1, tap).value, axis, inside=inside)
        part = TensorValue(builder, builder.add(gather))
        term = part * weights.pick(1, tap).column(rank_of(x), axis)
        total = term if total is None else total + term
    assert total is not None
    return total.value


def cubic_weights(after: TensorValue, a: float) -> list[TensorValue]:
    """Keys' cubic convolution for the four neighbors of a place that lies `after` the second."""
    before = 1.0 - after
    return [
        outer_cubic(after + 1.0, a),
        inner_cubic(after, a),
        inner_cubic(before, a),
        outer_cubic(before + 1.0, a),
    ]


def inner_cubic(x: TensorValue, a: float) -> TensorValue:
    """The kernel up to a distance of one."""
    return (x * (a + 2) - (a + 3)) * x * x + 1.0


def outer_cubic(x: TensorValue, a: float) -> TensorValue:
    """The kernel at distances between one and two."""
    return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a


def scaled_size(builder: Legalizer, dim: Expr, scale: float) -> Expr:
    """The whole part of a size times a scale; refused if that is no positive number."""
    if not 0 < scale < math.inf:
        builder.refuse(f"the scale {scale}", "a positive number")
    if dim.value is not None:
        return Expr.const(math.floor(dim.value * scale))
    if scale == int(scale):
        return dim * int(scale)
    if 1 / scale == int(1 / scale):
        return dim // int(1 / scale)
    wide = (TensorValue.dim(builder, dim).cast(f64) * scale).floor()
    return size_of(builder, wide.cast(i64).value, "a size")


def sampled_places(
    builder: CoreBuilder,
    dim: Expr,
    size: Expr,
    scale: float | None,
    origin: str,
    *,
    from_start: bool = True,
    element: Attribute = f32,
) -> TensorValue:
    """
    Where the elements of a resized dimension lie among the old ones, in a type of floats: the first
    and the last ones on each other (`corners`), the middles of elements (`half`), the middles on
    what begins there (`middle`), or the first ones. One element is taken from the beginning, or
    where it lies as one of several would.
    """
    number = TensorValue.iota(builder, size).cast(element)
    old, new = (TensorValue.dim(builder, each).cast(element) for each in (dim, size))
    if origin == "corners":
        ratio = (old - 1.0) / (new - 1.0).maximum(1.0)
    else:
        ratio = old / new if scale is None else TensorValue.number(builder, 1 / scale, element)
    ratio = new.gt(1).where(ratio, 0) if from_start else ratio
    place = (number + 0.5 if origin in ("half", "middle") else number) * ratio
    return place - 0.5 if origin == "half" else place


def interpolated(
    builder: CoreBuilder, x: SSAValue, axis: int, place: TensorValue, kind: str, element: Attribute
) -> SSAValue:
    """
    The elements along an axis at places between them, by the one before (`nearest`), two (`linear`)
    or four neighbors (`cubic`), which are computed in an element type; what lies outside is the
    first or the last one.
    """
    last = TensorValue.dim(builder, dims_of(x)[axis]) - 1
    low = place.floor()
    base = low.cast(i64)
    if kind == "nearest":
        index = base.minimum(last).maximum(0)
        return builder.add(GatherOp(x, index.value, axis))
    after = (place - low).cast(element)
    if kind == "linear":
        index = [base.minimum(last), (base + 1).minimum(last)]
        weights = [1.0 - after, after]
    else:
        index = [(base + k).minimum(last).maximum(0) for k in (-1, 0, 1, 2)]
        weights = cubic_weights(after, -0.75)
    value = builder.cast(x, element)
    return weighted_taps(builder, value, axis, stack(index, 1), stack(weights, 1), inside=True)


def between_pixels(
    builder: CoreBuilder, image: TensorValue, at: Sequence[TensorValue]
) -> TensorValue:
    """
    An image [1, H, W, C] of known size between four pixels, at columns and rows [h, w]; 0 outside.
    """
    height, width = (dim.value for dim in image.dims[1:3])
    if image.dims[0] != 1 or height is None or width is None:
        refuse(f"images {list(map(str, image.dims[:3]))}", "one of a known size")
    size, channels = at[0].dims, image.dims[3]
    column, row = at
    inside = (column.ge(0) & column.le(width - 1)) & (row.ge(0) & row.le(height - 1))
    places = [inside.where(place, 0.0) for place in at]
    # One row and one column more, of zeros, so that all neighbors are there.
    padded = builder.add(PadOp(image.value, [0] * 4, [0, 1, 1, 0]))
    stride = width + 1
    pixels = builder.reshape(padded, [(height + 1) * stride, channels])
    left, top = (as_index(place.floor()) for place in places)
    after = [place - place.floor() for place in places]

    def pixel(down: int, right: int) -> TensorValue:
        index = (top + down) * stride + left + right
        return TensorValue(builder, builder.add(GatherOp(pixels, index.value, 0, inside=True)))

    def between(down: int) -> TensorValue:
        weight = after[0].reshape([*size, 1])
        return pixel(down, 0) * (1 - weight) + pixel(down, 1) * weight

    weight = after[1].reshape([*size, 1])
    found = between(1) * weight + between(0) * (1 - weight)
    shown = inside.reshape([*size, 1]).where(found, 0.0)
    return shown.reshape([1, *size, channels])


def interpolated_integers(
    x: TensorValue,
    axis: int,
    size: int,
    *,
    align_corners: bool,
    half_pixel_centers: bool,
) -> TensorValue:
    """Sums of two neighbors along an axis of an image of i64, times 1024."""
    builder, own = x.builder, x.dims[axis].value
    if own is None:
        refuse("an image of open size", "a number of pixels")
    scale = ((own << 10) + size // 2) // size
    if align_corners and size > 1:
        scale = (((own - 1) << 10) + (size - 1) // 2) // (size - 1)
    places = TensorValue.iota(builder, size) * scale
    if half_pixel_centers:
        places = places + (scale // 2 - 512)
    # C rounds toward zero, which only differs below the first pixel.
    low = (places // 1024).maximum(0)
    high = ((places + 1023) // 1024).maximum(0).minimum(own - 1)
    after = (places - low * 1024).column(4, axis)
    parts = [
        TensorValue(builder, builder.add(GatherOp(x.value, index.value, axis, inside=True)))
        for index in (low.minimum(own - 1), high)
    ]
    return parts[0] * (after * -1 + 1024) + parts[1] * after


def affine_grid(
    builder: CoreBuilder, theta: TensorValue, size: Sequence[Expr], corners: bool
) -> TensorValue:
    """
    Matrices theta [batch, r, r + 1] times the places of an image of `size` [batch, channels, r...],
    from -1 to 1 at its corners or at its edges; the only place of a dimension is 0.
    """
    batch, _, *space = size
    element, rank = theta.element, len(space)
    rows: list[TensorValue] = []
    for axis in reversed(range(rank)):
        number = TensorValue.iota(builder, space[axis]).cast(element)
        total = TensorValue.dim(builder, space[axis]).cast(element)
        place = (number * 2 + 1) / total - 1.0
        if corners:
            place = total.eq(1).where(number * 0, number * (2 / (total - 1.0).maximum(1.0)) - 1.0)
        rows.append(place.column(rank, axis).broadcast(space))
    rows.append(TensorValue.number(builder, 1, element).broadcast(space))
    grid = stack(rows, rank).reshape([1, product(space), rank + 1])
    grid = grid.broadcast([batch, product(space), rank + 1])
    found = builder.add(MatmulOp(grid.value, theta.transpose([0, 2, 1]).value))
    return TensorValue(builder, found).reshape([batch, *space, rank])
