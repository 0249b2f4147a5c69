"""Pools, and what rearranges images or samples them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, i64, numpy_dtype, rank_of
from lowerdeck.dialects.dims import Expr, constants, product
from lowerdeck.passes.legalize.common.movement import frames, pad, shifted_channels
from lowerdeck.passes.legalize.common.pooling import (
    adaptive_places,
    adaptive_pool,
    largest,
    pool,
    pyramid,
    unpooled,
)
from lowerdeck.passes.legalize.common.windows import Window, hanging, with_a_place
from lowerdeck.passes.legalize.onnx.applied import applied as onnx
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.linear import window_of
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("pool2d", "pool3d")
def legalize_pool(builder: PaddleLegalizer) -> Results:
    """The largest or the mean of each window; padding counts or not."""
    x = builder.first(builder.input("x"))
    is_max = builder.text("pooling_type") == "max"
    sizes = builder.exprs_of("kernel_size")
    if builder.flag("global_pooling"):
        sizes = [Expr.const(1)] * len(sizes)
    if builder.flag("adaptive") or builder.flag("global_pooling"):
        numbers = _counts(builder, sizes)
        return builder.back(adaptive_pool(builder, x, numbers, "max" if is_max else "mean"))
    window = _window(builder, x, sizes)
    kind = "max" if is_max else "average"
    return builder.back(pool(builder, kind, x, window, count_pads=not builder.flag("exclusive")))


def _counts(builder: PaddleLegalizer, sizes: Sequence[Expr]) -> Sequence[int]:
    """How many windows fill each dimension of an adaptive pool."""
    numbers = constants(sizes)
    if numbers is None or not all(0 < number < 1 << 16 for number in numbers):
        builder.refuse(f"an adaptive pool of {numbers or 'open'} windows", "known, positive ones")
    return numbers


def _window(builder: PaddleLegalizer, x: SSAValue, kernel: Sequence[Expr]) -> Window:
    """
    The window; in ceil mode a last one may hang over the end. As much padding as at the beginning
    counts at the end, whatever there is.
    """
    dims = dims_of(x)[2:]
    window = with_a_place(window_of(builder, kernel, dims, [1] * len(kernel)), dims)
    ends = window.end
    if builder.flag("ceil_mode"):
        pairs = zip(hanging(window, dims), ends, strict=True)
        ends = [builder.symbols.largest(*pair) for pair in pairs]
    overhang = [
        builder.symbols.largest(end - begin, Expr.const(0))
        for begin, end in zip(window.begin, ends, strict=True)
    ]
    return replace(window, end=ends, overhang=overhang)


@legalizes("max_pool2d_with_index", "max_pool3d_with_index")
def legalize_max_pool_places(builder: PaddleLegalizer) -> Results:
    """The largest of each window, and where in the image it is first."""
    x = builder.input("x")
    sizes = builder.exprs_of("kernel_size")
    space = dims_of(x)[2:]
    if builder.flag("global_pooling") or builder.flag("adaptive"):
        numbers = [1] * len(sizes) if builder.flag("global_pooling") else _counts(builder, sizes)
        best, where = adaptive_places(builder, x, numbers)
    else:
        window = _window(builder, x, sizes)
        number = TensorValue.iota(builder, product(space)).reshape([1, 1, *space])
        places = number.broadcast(dims_of(x)).value
        value = pool(builder, "max", x, window)
        best, where = largest(builder, x, places, window, dims_of(value))
    # What is not above the lowest number is in no place: PaddlePaddle begins with that number.
    value, place = TensorValue(builder, best), TensorValue(builder, where)
    lowest = float(np.finfo(numpy_dtype(value.element)).min)
    is_above = value.gt(lowest)
    best, where = is_above.where(value, lowest).value, is_above.where(place, -1).value
    mask = builder.places("mask")
    return builder.results(
        out=best, mask=builder.cast(where, builder.element(mask[0])) if mask else None
    )


def _unpooled(builder: PaddleLegalizer) -> SSAValue:
    """Elements at their places in an image of zeros."""
    x, index = builder.input("x"), builder.cast(builder.input("indices"), i64)
    return unpooled(builder, x, index, builder.exprs_of("output_size")[2 - rank_of(x) :])


# Blocks of images


_SHUFFLES = {
    "pixel_shuffle": ("pixel_shuffle.default", "upscale_factor", "upscale_factor"),
    "pixel_unshuffle": ("pixel_unshuffle.default", "downscale_factor", "downscale_factor"),
    "channel_shuffle": ("channel_shuffle.default", "groups", "groups"),
    "shuffle_channel": ("channel_shuffle.default", "groups", "group"),
}
"""The overload, its argument, and the operator's."""


@legalizes(*_SHUFFLES)
def legalize_shuffle(builder: PaddleLegalizer) -> Results:
    """Channels as places, places as channels, or channels of groups in turn."""
    target, argument, name = _SHUFFLES[builder.name]
    x = builder.first(builder.input("x"))
    (found,) = builder.torch(target, self=x, **{argument: builder.integer(name)})
    return builder.back(found) if builder.has("data_format") else found


@legalizes("temporal_shift")
def legalize_temporal_shift(builder: PaddleLegalizer) -> Results:
    """Some channels from the frame before, some from the one after; outside are zeros."""
    x = builder.first(builder.input("x"))
    ratio = builder.number("shift_ratio")
    return builder.back(shifted_channels(builder, x, builder.integer("seg_num"), ratio))


@legalizes("unfold", "fold")
def legalize_columns(builder: PaddleLegalizer) -> Results:
    """Windows as columns, and the sum of columns where they lie in the image."""
    x = builder.input("x")
    kernel, strides, dilations = (
        builder.ints_of(name) for name in ("kernel_sizes", "strides", "dilations")
    )
    amounts = builder.ints_of("paddings")
    amounts = amounts if len(amounts) == 4 else [*amounts, *amounts]
    given = {"self": x, "kernel_size": kernel, "dilation": dilations, "stride": strides}
    if builder.name == "fold":
        if amounts[:2] != amounts[2:]:
            builder.refuse(f"paddings {amounts}", "equal ones on both sides")
        size = builder.ints_of("output_sizes")
        return builder.torch("col2im.default", **given, padding=amounts[:2], output_size=size)
    begin, end = ([Expr.const(n) for n in part] for part in (amounts[:2], amounts[2:]))
    none = [Expr.const(0)] * 2
    window = Window(tuple(map(Expr.const, kernel)), strides, dilations, begin, end, none)
    ends = with_a_place(window, dims_of(x)[2:]).end
    given["self"] = pad(builder, x, [*none, *begin], [*none, *ends])
    return builder.torch("im2col.default", **given, padding=[0, 0])


# Sampling


def _affine_grid(builder: PaddleLegalizer) -> SSAValue:
    """Where the places of a transformed image lie."""
    size = builder.cast(builder.dims(builder.exprs_of("output_shape")), i64)
    corners = int(builder.flag("align_corners"))
    return onnx(builder, "AffineGrid", builder.input("input"), size, align_corners=corners)[0]


def _grid_sample(builder: PaddleLegalizer) -> SSAValue:
    mode, padding = builder.text("mode"), builder.text("padding_mode")
    return onnx(
        builder,
        "GridSample",
        builder.input("x"),
        builder.input("grid"),
        mode={"bilinear": "linear"}.get(mode, mode),
        padding_mode=padding,
        align_corners=int(builder.flag("align_corners")),
    )[0]


legalizes.rows(
    {
        "affine_grid": _affine_grid,
        "frame": lambda b: frames(
            b, b.input("x"), b.integer("axis"), b.integer("frame_length"), b.integer("hop_length")
        ),
        "grid_sample": _grid_sample,
        "spp": lambda b: pyramid(
            b, b.input("x"), b.integer("pyramid_height"), b.text("pooling_type") == "max"
        ),
        "unpool": _unpooled,
        "unpool3d": _unpooled,
        "space_to_depth": lambda b: onnx(
            b, "SpaceToDepth", b.input("x"), blocksize=b.integer("blocksize")
        )[0],
    }
)
