"""Images whose elements are sampled at places that are computed: scaled, moved, or projected."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lowerdeck.dialects.core.tensor import GatherNdOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i64
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.stretching import KERNELS, stretched_weights, weighted
from lowerdeck.passes.legalize.sizes import sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.windows import require_image

# Scaled and moved


@legalizes("ScaleAndTranslate")
def legalize_scale_and_translate(builder: Tf1Legalizer) -> Results:
    """
    Each element is a weighted mean of those around its place, (x + 0.5 - translation) / scale, by
    a kernel that is stretched where `antialias` shrinks an image; 0 outside of the image.
    """
    x = builder.cast(require_image(builder, number(builder, "images"), 4), f32)
    sizes = sizes_of(builder, builder.operand("size"), "the size")
    if len(sizes) != 2:
        builder.refuse(f"{len(sizes)} sizes", "height and width")
    scale, translation = (
        TensorValue.of(builder, builder.operand(name)) for name in ("scale", "translation")
    )
    kernel = KERNELS[builder.attrs.string("kernel_type", among=tuple(KERNELS))]
    antialias = builder.attrs.flag("antialias")
    for axis in (1, 2):
        dims = dims_of(x)
        inverse = 1 / scale.pick(0, axis - 1)
        middle = (TensorValue.iota(builder, sizes[axis - 1]).cast(f32) + 0.5) * inverse
        middle = middle - translation.pick(0, axis - 1) * inverse
        stretch = inverse.maximum(1.0) if antialias else inverse * 0 + 1
        weights = stretched_weights(middle, dims[axis], stretch, kernel)
        is_inside = middle.ge(0.0) & middle.le(TensorValue.dim(builder, dims[axis]).cast(f32))
        weights = is_inside.column(2, 0).where(weights, weights * 0)
        x = weighted(builder, x, axis, weights)
    return [x]


# Projected


def _reflected(x: TensorValue, size: TensorValue) -> TensorValue:
    """Beyond a border the image is mirrored, with the element at the border twice."""
    twice = size * 2
    low = _truncated(-x / twice) * twice + x
    low = low.lt(-size).where(low + twice, -low - 1)
    high = x - _truncated(x / twice) * twice
    high = high.ge(size).where(twice - high - 1, high)
    return _bordered(x, low, high, size)


def _wrapped(x: TensorValue, size: TensorValue) -> TensorValue:
    """Beyond a border the image begins again."""
    last = (size - 1).maximum(1.0)
    low = x + size * (_truncated(-x / last) + 1)
    high = x - size * _truncated(x / last)
    return _bordered(x, low, high, size)


def _bordered(
    x: TensorValue, low: TensorValue, high: TensorValue, size: TensorValue
) -> TensorValue:
    found = x.lt(0.0).where(low, x.gt(size - 1).where(high, x))
    return size.le(1.0).where(x * 0, found).clip(0.0, size - 1)


def _truncated(x: TensorValue) -> TensorValue:
    return x.cast(i64).cast(f32)


_MODES: Mapping[str, Callable[[TensorValue, TensorValue], TensorValue]] = {
    "CONSTANT": lambda x, size: x,
    "NEAREST": lambda x, size: x.clip(0.0, size - 1),
    "REFLECT": _reflected,
    "WRAP": _wrapped,
}


@legalizes("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def legalize_projection(builder: Tf1Legalizer) -> Results:
    """
    The element at (x, y) is that of the image at (a0 x + a1 y + a2, b0 x + b1 y + b2) divided by
    c0 x + c1 y + 1, for a row [a0, a1, a2, b0, b1, b2, c0, c1] for all images or for each.
    """
    image = TensorValue(builder, require_image(builder, number(builder, "images"), 4))
    sizes = sizes_of(builder, builder.operand("output_shape"), "the output shape")
    if len(sizes) != 2:
        builder.refuse(f"{len(sizes)} sizes", "height and width")
    transforms = TensorValue.of(builder, builder.operand("transforms"))
    if transforms.dims[1].value not in (None, 8):
        builder.refuse(f"{transforms.dims[1]} numbers for a transform", "8")
    t = [transforms.pick(1, k).reshape([transforms.dims[0], 1, 1]) for k in range(8)]
    x = TensorValue.iota(builder, sizes[1]).cast(f32).reshape([1, 1, sizes[1]])
    y = TensorValue.iota(builder, sizes[0]).cast(f32).reshape([1, sizes[0], 1])
    divisor = t[6] * x + t[7] * y + 1
    is_valid = divisor.ne(0.0)
    divisor = is_valid.where(divisor, 1.0)
    mode = _MODES[builder.attrs.string("fill_mode", among=tuple(_MODES))]
    limits = [TensorValue.dim(builder, dim).cast(f32) for dim in image.dims[1:3]]
    column = mode((t[0] * x + t[1] * y + t[2]) / divisor, limits[1])
    row = mode((t[3] * x + t[4] * y + t[5]) / divisor, limits[0])
    fill = TensorValue.number(builder, 0, f32)
    if builder.op_type.endswith("V3"):
        fill = TensorValue.of(builder, builder.operand("fill_value"))
    kind = builder.attrs.string("interpolation", among=("NEAREST", "BILINEAR"))
    sample = _Sampler(image, fill, [image.dims[0], *sizes])
    if kind == "NEAREST":
        found = sample.at(_rounded(row), _rounded(column))
    else:
        found = sample.between(row, column)
    found = is_valid.reshape([*is_valid.dims, 1]).where(found, fill)
    return [builder.cast(found.value, element_type(image.value))]


def _rounded(x: TensorValue) -> TensorValue:
    """To the nearest whole number, halves away from zero."""
    size = x.abs()
    floor = size.floor()
    whole = (size - floor).ge(0.5).where(floor + 1, floor)
    return x.lt(0.0).where(-whole, whole)


class _Sampler:
    """The elements of images at whole places; outside of them a number."""

    def __init__(self, image: TensorValue, fill: TensorValue, dims: list[Expr]):
        self.image, self.fill, self.dims = image, fill, dims

    def at(self, row: TensorValue, column: TensorValue) -> TensorValue:
        """f32 [N, height, width, C]; places are f32 [N or 1, height, width]."""
        builder = self.image.builder
        sizes = [TensorValue.dim(builder, dim) for dim in self.image.dims[1:3]]
        is_inside = row.ge(0.0) & column.ge(0.0)
        is_inside = is_inside & row.lt(sizes[0].cast(f32)) & column.lt(sizes[1].cast(f32))
        owner = TensorValue.iota(builder, self.dims[0]).reshape([self.dims[0], 1, 1])
        places = [
            owner,
            *(
                part.clip(0.0, (size - 1).cast(f32)).cast(i64)
                for part, size in zip((row, column), sizes, strict=True)
            ),
        ]
        index = stack([place.broadcast(self.dims) for place in places], 3)
        found = TensorValue(builder, builder.add(GatherNdOp(self.image.value, index.value)))
        inside = is_inside.broadcast(self.dims).reshape([*self.dims, 1])
        return inside.where(found.cast(f32), self.fill)

    def between(self, row: TensorValue, column: TensorValue) -> TensorValue:
        """The mean of the four elements around a place, weighted by how near they are."""
        top, left = row.floor(), column.floor()
        down, across = (row - top, top + 1 - row), (column - left, left + 1 - column)

        def along(line: TensorValue) -> TensorValue:
            before, after = self.at(line, left), self.at(line, left + 1)
            return before * self._weight(across[1]) + after * self._weight(across[0])

        # Bytes are cut off after that, so the order counts: columns before rows.
        return along(top) * self._weight(down[1]) + along(top + 1) * self._weight(down[0])

    def _weight(self, weight: TensorValue) -> TensorValue:
        return weight.broadcast(self.dims).reshape([*self.dims, 1])
