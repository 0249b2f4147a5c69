"""Layers without bottoms that count: constants, and boxes that follow from sizes."""

from __future__ import annotations

import numpy as np

from lowerdeck.dialects.caffe.shapes import layer_shapes, prior_ratios
from lowerdeck.dialects.core.types import dims_of, f32, static_shape
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes


@legalizes("Parameter")
def legalize_parameter(builder: CaffeLegalizer) -> Results:
    """The blob."""
    return builder.blobs


@legalizes("DummyData")
def legalize_dummy_data(builder: CaffeLegalizer) -> Results:
    """Constants of one value; random ones are refused."""
    p = builder.layer.dummy_data_param
    random = [filler.type for filler in p.data_filler if filler.type != "constant"]
    if random:
        builder.refuse(
            f"data from a filler of type '{random[0]}'",
            "'constant'",
            "make the tops inputs by giving their shapes with --input-shape",
        )
    tops = len(builder.op.results)
    shapes = layer_shapes(builder.layer, [], tops).tops
    values = [filler.value for filler in p.data_filler] or [0.0]
    values = values * tops if len(values) == 1 else values
    scalars = [builder.scalar(value, f32) for value in values]
    return [builder.broadcast(value, shape) for value, shape in zip(scalars, shapes, strict=True)]


@legalizes("PriorBox")
def legalize_prior_box(builder: CaffeLegalizer) -> Results:
    """
    Boxes around the centers of the first bottom's cells, as parts of the second one's size, and
    their variances: a constant.
    """
    shapes = [static_shape(bottom) for bottom in builder.bottoms]
    if None in shapes:
        builder.refuse("bottoms of unknown sizes", "numbers", "give the shape of the input")
    rows, columns = (dim.value or 0 for dim in dims_of(builder.x)[2:])
    p = builder.layer.prior_box_param
    size = [dim.value or 0 for dim in dims_of(builder.bottoms[1])[2:]]
    height, width = p.img_h or p.img_size or size[0], p.img_w or p.img_size or size[1]
    step_h = p.step_h or p.step or height / rows
    step_w = p.step_w or p.step or width / columns
    center_y = ((np.arange(rows) + p.offset) * step_h)[:, None, None]
    center_x = ((np.arange(columns) + p.offset) * step_w)[None, :, None]
    half_w, half_h = np.array(_box_sizes(builder)).T / 2
    corners = (
        (center_x - half_w) / width,
        (center_y - half_h) / height,
        (center_x + half_w) / width,
        (center_y + half_h) / height,
    )
    whole = (rows, columns, len(half_w))
    boxes = np.stack([np.broadcast_to(corner, whole) for corner in corners], -1).reshape(-1)
    boxes = boxes.clip(0, 1) if p.clip else boxes
    variances = np.resize(list(p.variance) or [0.1], boxes.size)
    return [builder.tensor(np.stack([boxes, variances])[None].astype(np.float32))]


def _box_sizes(builder: CaffeLegalizer) -> list[tuple[float, float]]:
    """Widths and heights in the order of the boxes of a cell."""
    p = builder.layer.prior_box_param
    sizes: list[tuple[float, float]] = []
    for index, least in enumerate(p.min_size):
        sizes.append((least, least))
        if p.max_size:
            middle = float(np.sqrt(least * p.max_size[index]))
            sizes.append((middle, middle))
        for ratio in prior_ratios(builder.layer)[1:]:
            root = float(np.sqrt(ratio))
            sizes.append((least * root, least / root))
    return sizes
