"""MediaPipe's operators for regions of faces, version 2 (its `util/tflite/operations`)."""

from __future__ import annotations

import numpy as np

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import f32
from lowerdeck.passes.legalize.common.interpolation import between_pixels
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.applied import applied
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes


def _given(builder: TfliteLegalizer, index: int, rank: int) -> TensorValue:
    """An input of the rank that version 2 has."""
    builder.require_rank(builder.input(index), rank, "input of version 2")
    return builder.value(index)


def _rows(builder: TfliteLegalizer, matrix: TensorValue) -> list[list[TensorValue]]:
    """The first two rows of a matrix of 4 x 4 numbers, as numbers."""
    flat = matrix.reshape([16])
    return [[flat.pick(0, 4 * row + k) for k in range(4)] for row in range(2)]


@legalizes("Landmarks2TransformMatrix")
def legalize_transform_matrix(builder: TfliteLegalizer) -> Results:
    """
    [1, 4, 4]: the matrix from places of a small image to those of the region around some landmarks
    [1, N, 3], which is turned so that the line through two of them has a given direction.
    """
    points = _given(builder, 0, 3)
    points = points.reshape([points.dims[0] * points.dims[1], 3])
    count = points.dims[0].value or 0
    ends = [int(builder.option(f"{side}_rotation_idx")) for side in ("left", "right")]
    chosen = builder.numbers("subset_idxs")
    size = [int(builder.option(name)) for name in ("output_width", "output_height")]
    scale = [float(np.float32(builder.option(name))) for name in ("scale_x", "scale_y")]
    places = [*ends, *chosen]
    if not chosen or min(places) < 0 or max(places) >= count or min(*size, *scale) <= 0:
        builder.refuse(
            f"landmarks {places} of {count}, a size of {size} and scales of {scale}",
            "some of the landmarks, and numbers above 0",
        )
    left, right = (points.pick(0, place) for place in ends)
    rise, run = (right.pick(0, k) - left.pick(0, k) for k in (1, 0))
    (angle,) = applied(builder, "Atan2", rise.value, run.value)
    target = float(np.float32(builder.option("target_rotation_radians")))
    turn = target - TensorValue(builder, angle)
    cosine, sine = turn.cos(), turn.sin()
    index = builder.tensor(np.array(chosen, np.int64))
    corners = TensorValue(builder, builder.add(GatherOp(points.value, index, 0, inside=True)))
    x, y = (corners.pick(1, k) for k in range(2))
    turned = (x * cosine - y * sine, x * sine + y * cosine)
    last, first = ([each.reduce(kind, [0]) for each in turned] for kind in ("max", "min"))
    width, height = (
        (high - low) * factor / float(side)
        for high, low, factor, side in zip(last, first, scale, size, strict=True)
    )
    middle = [(low + high) / 2.0 for low, high in zip(first, last, strict=True)]
    center = (
        middle[0] * cosine + middle[1] * sine,
        middle[1] * cosine - middle[0] * sine,
    )
    zero, one = (TensorValue.number(builder, value, f32) for value in (0, 1))
    rows: list[TensorValue] = []
    for a, b, at in (
        (cosine * width, sine * height, center[0]),
        (-sine * width, cosine * height, center[1]),
    ):
        shift = a * (-size[0] / 2.0) + b * (-size[1] / 2.0) + at
        rows += [a, b, zero, shift]
    rows += [zero, zero, one, zero, zero, zero, zero, one]
    return [stack([each.reshape([]) for each in rows], 0).reshape([1, 4, 4]).value]


@legalizes("TransformLandmarks")
def legalize_transform_landmarks(builder: TfliteLegalizer) -> Results:
    """Landmarks [1, N, 2 or 3] at the places to which a matrix moves them."""
    points, matrix = _given(builder, 0, 3), _given(builder, 1, 3)
    numbers = points.dims[2].value
    if numbers not in (2, 3):
        builder.refuse(f"landmarks of {points.dims[2]} numbers", "2 or 3")
    x, y, *rest = (points.pick(2, k) for k in range(numbers))
    moved = [x * a + y * b + shift for a, b, _, shift in _rows(builder, matrix)]
    return [stack([*moved, *rest], 2).value]


@legalizes("TransformTensorBilinear")
def legalize_transform_bilinear(builder: TfliteLegalizer) -> Results:
    """
    An image [1, H, W, C] between four pixels, at the places to which a matrix moves those of the
    result: 0 outside of it.
    """
    image, matrix = _given(builder, 0, 4), _given(builder, 1, 3)
    size = [int(builder.option(name)) for name in ("output_height", "output_width")]
    if min(size) < 1:
        builder.refuse(f"a result of {size}", "at least one pixel")
    row, column = (TensorValue.iota(builder, n).cast(f32) for n in size)
    row, column = row.reshape([size[0], 1]), column.reshape([1, size[1]])
    at = [
        column * a + row * b + (shift + (a * 0.5 + b * 0.5 - 0.5))
        for a, b, _, shift in _rows(builder, matrix)
    ]
    return between_pixels(builder, image, at)
