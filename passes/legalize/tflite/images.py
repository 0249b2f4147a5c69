"""Images in other sizes, and the detection of objects."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import DivOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, element_type, i64, is_float
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes


def _rules(builder: TfliteLegalizer) -> dict[str, bool]:
    return {name: builder.flag(name) for name in ("align_corners", "half_pixel_centers")}


@legalizes("RESIZE_NEAREST_NEIGHBOR")
def legalize_nearest(builder: TfliteLegalizer) -> Results:
    """The nearest pixel by one of three rules."""
    builder.require_equal_scales(0)
    operands = (builder.input(0), builder.input(1))
    return applied(builder, "ResizeNearestNeighbor", *operands, **_rules(builder))


@legalizes("RESIZE_BILINEAR")
def legalize_bilinear(builder: TfliteLegalizer) -> Results:
    """Between four pixels; of integers with weights of ten bits."""
    rules = _rules(builder)
    x = builder.input(0)
    if is_float(element_type(x)):
        return applied(builder, "ResizeBilinear", x, builder.input(1), **rules)
    builder.require_equal_scales(0)
    sizes = builder.require_ints(builder.input(1), "the size of the result")
    wide: SSAValue = builder.cast(x, i64)
    y = TensorValue(builder, wide)
    for axis, size in zip((1, 2), sizes, strict=True):
        y = _interpolated(builder, y, axis, size, **rules)
    unit = 1 << 19
    moved = y.gt(0).where(y + unit, y - unit)
    rounded = builder.add(DivOp(moved.value, builder.scalar(2 * unit, i64)))
    return [builder.cast(rounded, element_type(x))]


def _interpolated(
    builder: TfliteLegalizer,
    x: TensorValue,
    axis: int,
    size: int,
    *,
    align_corners: bool,
    half_pixel_centers: bool,
) -> TensorValue:
    """Sums of two neighbors along an axis, times 1024."""
    own = dims_of(x.value)[axis].value
    if own is None:
        builder.refuse("an image of open size", "a number of pixels")
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
