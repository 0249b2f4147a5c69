"""Images of another size, along one dimension after the other."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.interpolation import interpolated, sampled_places, scaled_size
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import sizes_of

_KINDS = {"nearest": "nearest", "bicubic": "cubic"}
_RANKS = {"linear": 1, "bilinear": 2, "nearest": 0, "bicubic": 2, "trilinear": 3}


@legalizes(*(f"{kind}_interp" for kind in _RANKS))
def legalize_interpolation(builder: PaddleLegalizer) -> Results:
    """By sizes or scales. Dimensions that stay have neighbors of weight zero, which may be NaN."""
    x = builder.first(builder.input("x"))
    rank = rank_of(x) - 2
    scales = _scales(builder, rank)
    sizes = _sizes(builder, dims_of(x)[2:], scales)
    kind = builder.name.removesuffix("_interp")
    element = element_type(x)
    if list(dims_of(x)[2:]) == sizes and all(scale in (None, 1.0) for scale in scales):
        return builder.back(x)
    for axis, (size, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        x = _resized(builder, x, axis, size, scale, kind)
    return builder.back(builder.cast(x, element))


def _scales(builder: PaddleLegalizer, rank: int) -> list[float | None]:
    if builder.get("size_tensor"):
        return [None] * rank
    if builder.optional("scale_tensor") is not None:
        array = builder.require_constant(builder.input("scale_tensor"), "'scale'")
        found = [float(number) for number in array.reshape(-1)]
    else:
        is_list = isinstance(builder.get("scale"), list)
        found = builder.numbers("scale") if is_list else [float(builder.number("scale", 0.0))]
    found = found * rank if len(found) == 1 else found
    if len(found) != rank or any(number <= 0 for number in found):
        return [None] * rank
    return [*found]


def _sizes(
    builder: PaddleLegalizer, space: Sequence[Expr], scales: Sequence[float | None]
) -> list[Expr]:
    rank = len(space)
    for name in ("size_tensor", "out_size"):
        found = builder.get(name)
        if found is not None and found != []:
            vector = builder.cast(builder.vector(name), i64)
            return sizes_of(builder, vector, "the size")
    if scales[0] is None:
        numbers = [builder.integer(name) for name in ("out_d", "out_h", "out_w")][3 - rank :]
        if any(number <= 0 for number in numbers):
            builder.refuse(f"the size {numbers}", "a size or a scale")
        return [Expr.const(number) for number in numbers]
    return [
        scaled_size(builder, dim, scale or 1.0) for dim, scale in zip(space, scales, strict=True)
    ]


def _resized(
    builder: PaddleLegalizer,
    x: SSAValue,
    axis: int,
    size: Expr,
    scale: float | None,
    kind: str,
) -> SSAValue:
    """
    One dimension: where each new element lies among the old ones, in single precision. An only one
    is in the middle in version 3, but for images.
    """
    corners, is_middle = builder.flag("align_corners"), kind in ("linear", "trilinear")
    is_half = kind == "bicubic" or (kind != "nearest" and builder.integer("align_mode") == 0)
    is_half = is_half and not corners
    origin = "corners" if corners else "half" if is_half else ""
    dim, from_start = dims_of(x)[axis], builder.is_old or not is_middle
    place = sampled_places(builder, dim, size, scale, origin, from_start=from_start)
    if kind == "nearest":
        place = place + 0.5 if corners else place
    elif kind != "bicubic" and is_half:
        place = place.maximum(0.0)
    wide = f64 if element_type(x) == f64 else f32
    return interpolated(builder, x, axis, place, _KINDS.get(kind, "linear"), wide)
