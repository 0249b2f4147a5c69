"""Pools, and images of another size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, i64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.interpolation import interpolated, sampled_places, scaled_size
from lowerdeck.passes.legalize.common.pooling import (
    adaptive_places,
    adaptive_pool,
    fractional_pool,
    largest,
    pool,
)
from lowerdeck.passes.legalize.common.regions import largest_of_bins
from lowerdeck.passes.legalize.common.stretching import KERNELS, stretched_image
from lowerdeck.passes.legalize.common.windows import Window, round_up
from lowerdeck.passes.legalize.onnx.applied import applied, deformable, roi_align
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _window(builder: Pt2Legalizer, x: SSAValue, rank: int) -> Window:
    kernel = builder.ints_of("kernel_size", rank)
    strides = builder.ints_of("stride", rank) if builder.get("stride") else kernel
    pads = [Expr.const(k) for k in builder.ints_of("padding", rank)]
    dilations = builder.ints_of("dilation", rank) if builder.has("dilation") else [1] * rank
    none = [Expr.const(0)] * rank
    window = Window(tuple(map(Expr.const, kernel)), strides, dilations, pads, pads, none)
    return round_up(window, dims_of(x)[2:]) if builder.flag("ceil_mode") else window


@legalizes(*(f"max_pool{k}d{more}" for k in (1, 2, 3) for more in ("", "_with_indices")))
def legalize_max_pool(builder: Pt2Legalizer) -> Results:
    """The largest of each window, and where in the plane it is."""
    rank = int(builder.name[8])
    x, back = builder.batched(builder.input(), rank + 2)
    window = _window(builder, x, rank)
    value = pool(builder, "max", x, window, keeps_nan=True)
    if len(builder.op.results) == 1 or not builder.wants(1):
        return back(value)
    space = dims_of(x)[2:]
    number = TensorValue.iota(builder, product(space)).reshape([1, 1, *space])
    places = number.broadcast(dims_of(x)).value
    return back(*largest(builder, x, places, window, dims_of(value), keeps_nan=True))


@legalizes(*(f"avg_pool{k}d" for k in (1, 2, 3)))
def legalize_average_pool(builder: Pt2Legalizer) -> Results:
    """The mean of each window; padding counts or not."""
    rank = int(builder.name[8])
    x, back = builder.batched(builder.input(), rank + 2)
    window = _window(builder, x, rank)
    if builder.has("divisor_override") and builder.get("divisor_override") is not None:
        total = TensorValue(builder, pool(builder, "sum", x, window))
        return back((total / builder.real("divisor_override")).value)
    return back(pool(builder, "average", x, window, count_pads=builder.flag("count_include_pad")))


@legalizes(
    *(f"adaptive_avg_pool{k}d" for k in (1, 2, 3)),
    *(f"_adaptive_avg_pool{k}d" for k in (2, 3)),
    *(f"adaptive_max_pool{k}d" for k in (1, 2, 3)),
)
def legalize_adaptive_pool(builder: Pt2Legalizer) -> Results:
    """Windows of nearly equal size that fill the image."""
    name = builder.name.strip("_")
    rank = int(name[-2])
    x, back = builder.batched(builder.input(), rank + 2)
    sizes = builder.ints_of("output_size", rank)
    is_max = "max" in name
    if is_max and len(builder.op.results) > 1 and builder.wants(1):
        return back(*adaptive_places(builder, x, sizes, last_nan=True))
    return back(adaptive_pool(builder, x, sizes, "max" if is_max else "mean"))


@legalizes("fractional_max_pool2d", "fractional_max_pool3d")
def legalize_fractional_pool(builder: Pt2Legalizer) -> Results:
    """Windows that begin where given numbers say, in a plane those of its width first."""
    rank = int(builder.name[-2])
    x, back = builder.batched(builder.input(), rank + 2)
    sizes = builder.ints_of("kernel_size", rank), builder.ints_of("output_size", rank)
    numbers = builder.stated("random_samples")
    samples = [numbers.pick(2, k) for k in ((1, 0) if rank == 2 else (0, 1, 2))]
    return back(*fractional_pool(builder, x, samples, *sizes))


# Sizes

_KINDS = {
    "upsample_nearest": "nearest",
    "_upsample_nearest_exact": "nearest",
    "upsample_linear": "linear",
    "upsample_bilinear": "linear",
    "upsample_trilinear": "linear",
    "upsample_bicubic": "cubic",
}


@legalizes(
    *(f"upsample_nearest{k}d" for k in (1, 2, 3)),
    *(f"_upsample_nearest_exact{k}d" for k in (1, 2, 3)),
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
    "upsample_bicubic2d",
)
def legalize_resize(builder: Pt2Legalizer) -> Results:
    """Along one dimension after the other, by the scale where one is given."""
    x = builder.input("input" if builder.has("input") else "self")
    rank, element = int(builder.name[-2]), element_type(x)
    kind = _KINDS[builder.name[:-2]]
    if builder.has("align_corners") and builder.flag("align_corners"):
        origin = "corners"
    else:
        origin = "half" if kind != "nearest" else "middle" if "exact" in builder.name else ""
    wide = f64 if element == f64 and kind != "nearest" else f32
    scales = _scales(builder, rank)
    sizes = _sizes(builder, dims_of(x)[2:], scales)
    for axis, (size, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        if (dim := dims_of(x)[axis]) == size and scale in (None, 1.0):
            continue
        step = None if scale is None or scale <= 0 else scale
        place = sampled_places(builder, dim, size, step, origin, from_start=False, element=wide)
        place = place.maximum(0.0) if origin == "half" and kind == "linear" else place
        x = interpolated(builder, x, axis, place, kind, wide)
    return builder.cast(x, element)


def _scales(builder: Pt2Legalizer, rank: int) -> list[float | None]:
    if builder.has("scale_factors"):
        found = builder.get("scale_factors") or [None] * rank
        if len(found) != rank or any(isinstance(one, SSAValue) for one in found):
            builder.refuse(f"'scale_factors' is {found}", f"{rank} numbers")
        return [None if one is None else float(one) for one in found]
    names = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}
    return [
        None if builder.get(name) is None else float(builder.number(name)) for name in names[rank]
    ]


def _sizes(
    builder: Pt2Legalizer, space: Sequence[Expr], scales: Sequence[float | None]
) -> Sequence[Expr]:
    given = builder.get("output_size") is not None
    sizes = builder.exprs_of("output_size") if given else space
    if not len(space) == len(scales) == len(sizes):
        builder.refuse(f"{len(space)} dimensions to {len(sizes)} sizes", f"{len(scales)}")
    if given:
        return sizes
    return [
        scaled_size(builder, dim, 1.0 if scale is None else scale)
        for dim, scale in zip(space, scales, strict=True)
    ]


@legalizes("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
def legalize_antialiased(builder: Pt2Legalizer) -> Results:
    """The filter is as wide as the step."""
    x = builder.input("input" if builder.has("input") else "self")
    scales = _scales(builder, 2)
    space = dims_of(x)[2:]
    sizes = _sizes(builder, space, scales)
    cubic, corners = "bicubic" in builder.name, builder.flag("align_corners")
    if corners or any(scales):
        kernel = KERNELS["keyscubic" if cubic else "triangle"]
        return stretched_image(builder, x, sizes, scales, kernel, by_corners=corners)
    given = builder.cast(builder.dims([*dims_of(x)[:2], *sizes]), i64)
    attributes: dict[str, Any] = {"cubic_coeff_a": -0.5} if cubic else {}
    return applied(
        builder,
        "Resize",
        x,
        None,
        None,
        given,
        mode="cubic" if cubic else "linear",
        coordinate_transformation_mode="half_pixel",
        antialias=1,
        exclude_outside=1,
        **attributes,
    )


@legalizes("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def legalize_grid_sampler(builder: Pt2Legalizer) -> Results:
    """As ONNX has it, but that NaN is held at the first border, or the last one of volumes."""
    mode, padding = builder.integer("interpolation_mode"), builder.integer("padding_mode")
    x, grid = builder.input("input"), builder.value("grid")
    if padding and mode < 2:
        grid = grid.eq(grid).where(grid, -1 if rank_of(x) == 4 else 1)
    options: dict[str, Any] = {
        "mode": ("linear", "nearest", "cubic")[mode],
        "padding_mode": ("zeros", "border", "reflection")[padding],
        "align_corners": int(builder.flag("align_corners")),
    }
    return applied(builder, "GridSample", x, grid.value, **options)


@legalizes("torchvision.roi_align")
def legalize_roi_align(builder: Pt2Legalizer) -> Results:
    """As ONNX has it; the batch is the first column of a region."""
    x, rois = builder.input("input"), builder.input("rois")
    batch = builder.cast(builder.squeeze(builder.slice_axis(rois, 1, 0, 1), [1]), i64)
    boxes = builder.slice_axis(rois, 1, 1, 4)
    found = roi_align(
        builder,
        x,
        boxes,
        batch,
        size=(builder.integer("pooled_height"), builder.integer("pooled_width")),
        samples=builder.integer("sampling_ratio"),
        scale=float(builder.number("spatial_scale")),
        is_aligned=builder.flag("aligned"),
    )
    return found


@legalizes("torchvision.roi_pool")
def legalize_roi_pool(builder: Pt2Legalizer) -> Results:
    """The largest element of each bin."""
    size = builder.integer("pooled_height"), builder.integer("pooled_width")
    scale = float(builder.number("spatial_scale"))
    x, rois = builder.input("input"), builder.input("rois")
    return [largest_of_bins(builder, x, rois, scale, size), None]


@legalizes("torchvision.deform_conv2d")
def legalize_deformable(builder: Pt2Legalizer) -> Results:
    """A convolution whose taps lie elsewhere."""
    numbers = [
        [builder.integer(f"{name}_{axis}") for axis in "hw"]
        for name in ("stride", "pad", "dilation")
    ]
    found = deformable(
        builder,
        builder.input("input"),
        builder.input("weight"),
        builder.value("offset"),
        builder.value("mask") if builder.flag("use_mask") else None,
        numbers,
        groups=builder.integer("groups"),
        parts=builder.integer("offset_groups"),
    )
    return found + builder.value("bias").column(4, 1)
