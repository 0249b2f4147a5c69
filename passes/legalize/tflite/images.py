"""Images in other sizes, and the detection of objects."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import DivOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i64, is_float, ui8
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.interpolation import interpolated_integers
from lowerdeck.passes.legalize.tensor_value import TensorValue, as_index
from lowerdeck.passes.legalize.tf1.applied import applied
from lowerdeck.passes.legalize.tf1.image import Axis
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes


def _rules(builder: TfliteLegalizer) -> dict[str, bool]:
    return {name: builder.flag(name) for name in ("align_corners", "half_pixel_centers")}


@legalizes("RESIZE_BILINEAR")
def legalize_bilinear(builder: TfliteLegalizer) -> Results:
    """Between four pixels; of integers with weights of ten bits."""
    rules = _rules(builder)
    x = builder.input(0)
    if is_float(element_type(x)):
        return applied(builder, "ResizeBilinear", x, builder.input(1), **rules)
    sizes = builder.require_ints(builder.input(1), "the size of the result")
    builder.require_rank(x, 4, "image")
    if len(sizes) != 2:
        builder.refuse(f"{len(sizes)} sizes of the result", "its height and width")
    if element_type(x) == ui8:
        return [_in_floats(builder, x, sizes, **rules)]
    wide: SSAValue = builder.cast(x, i64)
    y = TensorValue(builder, wide)
    for axis, size in zip((1, 2), sizes, strict=True):
        y = interpolated_integers(y, axis, size, **rules)
    unit = 1 << 19
    moved = y.gt(0).where(y + unit, y - unit)
    rounded = builder.add(DivOp(moved.value, builder.scalar(2 * unit, i64)))
    return [builder.cast(rounded, element_type(x))]


def _in_floats(
    builder: TfliteLegalizer,
    x: SSAValue,
    sizes: Sequence[int],
    *,
    align_corners: bool,
    half_pixel_centers: bool,
) -> SSAValue:
    """Unsigned bytes: sums of f32, rounded by adding a half."""
    old = dims_of(x)
    images = [TensorValue(builder, builder.cast(x, f32))]
    weights: list[tuple[TensorValue, TensorValue]] = []
    for axis, size in zip((1, 2), sizes, strict=True):
        rule = Axis(builder, axis, old[axis], Expr.const(size), align_corners, half_pixel_centers)
        places = rule.places
        low = rule.inside(as_index(places.floor()))
        high = rule.inside(as_index(places.ceil()))
        after = (places - low.cast(f32)).column(4, axis)
        weights.append((1 - after, after))
        images = [
            TensorValue(builder, builder.add(GatherOp(y.value, index.value, axis, inside=True)))
            for index in (low, high)
            for y in images
        ]
    # The first dimension's neighbors come first: up left, down left, up right, down right.
    (up, down), (left, right) = weights
    corners = zip(images, (up, down, up, down), (left, left, right, right), strict=True)
    terms = [image * row * column for image, row, column in corners]
    total = terms[0] + terms[1] + terms[2] + terms[3] + 0.5
    return builder.cast(total.value, element_type(x))
