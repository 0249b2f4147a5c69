"""What prepares data for a model, as far as it is arithmetic."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, element_type, f32, i32, i64, is_float, rank_of
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied


def _channels_last(builder: KerasLegalizer) -> tuple[SSAValue, bool]:
    """[N, H, W, C] of an image, or of one without a batch."""
    x, is_first = builder.input(), builder.is_first()
    builder.require_rank(x, range(3, 5), "the input")
    if rank_of(x) == 3:
        x = builder.unsqueeze(x, [0])
    return (builder.transpose(x, [0, 2, 3, 1]) if is_first else x), is_first


def _restored(builder: KerasLegalizer, value: SSAValue, is_first: bool) -> SSAValue:
    value = builder.transpose(value, [0, 3, 1, 2]) if is_first else value
    return builder.squeeze(value, [0]) if rank_of(builder.input()) == 3 else value


def _floats(builder: KerasLegalizer, x: SSAValue) -> SSAValue:
    return builder.cast(x, builder.element or f32)


@legalizes("Resizing")
def legalize_resizing(builder: KerasLegalizer) -> Results:
    """Between half-pixel centers, or the nearest element."""
    builder.ignore("fill_mode", "fill_value")
    for name in ("crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"):
        if builder.config(name, False):
            builder.refuse(f"'{name}'", "none")
    names = {"bilinear": "ResizeBilinear", "nearest": "ResizeNearestNeighbor"}
    kind = str(builder.config("interpolation", "bilinear"))
    if kind not in names:
        builder.refuse(f"the interpolation '{kind}'", "bilinear or nearest")
    x, is_first = _channels_last(builder)
    size = np.array([builder.integer("height"), builder.integer("width")], np.int32)
    x = _floats(builder, x)
    (value,) = applied(builder, names[kind], x, builder.tensor(size), half_pixel_centers=True)
    return [_restored(builder, builder.cast(value, element_type(x)), is_first)]


@legalizes("CenterCrop")
def legalize_center_crop(builder: KerasLegalizer) -> Results:
    """The middle of an image."""
    x, is_first = _channels_last(builder)
    for axis, name in ((1, "height"), (2, "width")):
        size, have = builder.integer(name), dims_of(x)[axis].value
        if have is None or have < size:
            builder.refuse(f"{dims_of(x)[axis]} as {name}", f"at least {size}, known")
        x = builder.slice_axis(x, axis, (have - size) // 2, size)
    return [_restored(builder, _floats(builder, x), is_first)]


@legalizes("CategoryEncoding")
def legalize_category_encoding(builder: KerasLegalizer) -> Results:
    """Which categories there are among the last dimension: each one, any, or how often."""
    count, mode = builder.integer("num_tokens"), builder.config("output_mode", "multi_hot")
    if builder.has(1, "count_weights"):
        builder.refuse("weights of counts", "none")
    given = builder.input()
    x = TensorValue(builder, builder.cast(given, i32))
    element = builder.element or f32
    if mode == "one_hot" and len(x.dims) > 1 and x.dims[-1] == 1:
        x = x.reshape(x.dims[:-1])
    classes = TensorValue.iota(builder, count).cast(i32)
    hot = x.reshape([*x.dims, 1]).eq(classes)
    axis = len(x.dims) - 1
    match mode:
        case "one_hot":
            return [hot.cast(element).value]
        case "multi_hot":
            return [hot.cast(element).reduce("max", [axis]).value]
        case "count":
            return [hot.cast(element).reduce("sum", [axis]).value]
        case _:
            builder.refuse(f"the mode {mode}", "one_hot, multi_hot or count")


@legalizes("Discretization")
def legalize_discretization(builder: KerasLegalizer) -> Results:
    """How many boundaries are not above each element."""
    builder.ignore("epsilon", "num_bins")
    if builder.config("output_mode", "int") != "int":
        builder.refuse(f"the mode {builder.config('output_mode')}", "int")
    boundaries = builder.config("bin_boundaries")
    if not boundaries:
        builder.refuse("no boundaries", "those that were found from data")
    x = builder.x()
    limits = TensorValue(builder, np.array(boundaries, np.float32))
    x = x if is_float(x.element) else x.cast(f32)
    above = x.reshape([*x.dims, 1]).ge(limits.cast(x.element)).cast(i32)
    count = above.reduce("sum", [len(x.dims)])
    return [count.value if builder.version > 2 else count.cast(i64).value]
