"""Resizing and cropping of images. Coordinates are computed in float32, as TensorFlow does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowerdeck.dialects.interpret.tf1.registry import Array, ints, kernel, require
from lowerdeck.dialects.tf1.ops import Tf1Op

_F32 = np.float32


def _scale(op: Tf1Op, size: int, out: int) -> np.float32:
    if op.attr("align_corners") and out > 1:
        return _F32(size - 1) / _F32(out - 1)
    return _F32(size) / _F32(out)


def _coordinates(op: Tf1Op, size: int, out: int) -> Array:
    """Where in the input each place of the output is, in one of the three modes."""
    places, scale = np.arange(out).astype(_F32), _scale(op, size, out)
    if op.attr("half_pixel_centers"):
        require(not op.attr("align_corners"), "half_pixel_centers excludes align_corners")
        return (places + _F32(0.5)) * scale - _F32(0.5)
    return places * scale


@kernel("ResizeNearestNeighbor")
def run_resize_nearest(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Down to the next element; away from zero at a half where corners are aligned."""
    x, (height, width) = args[0], ints(args[1])
    rows, columns = (
        _nearest(op, size, out) for size, out in zip(x.shape[1:3], (height, width), strict=True)
    )
    return x[:, rows][:, :, columns]


def _nearest(op: Tf1Op, size: int, out: int) -> Array:
    places, scale = np.arange(out).astype(_F32), _scale(op, size, out)
    if op.attr("half_pixel_centers"):
        places = np.floor((places + _F32(0.5)) * scale)
    elif op.attr("align_corners"):
        places = np.floor(places * scale + _F32(0.5))
    else:
        places = np.floor(places * scale)
    return np.clip(places.astype(np.int64), 0, size - 1)


@kernel("ResizeBilinear")
def run_resize_bilinear(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Between the two neighbours in each direction; the result is float32."""
    x, (height, width) = args[0].astype(_F32), ints(args[1])
    top, bottom, down = _neighbours(op, x.shape[1], height)
    left, right, across = _neighbours(op, x.shape[2], width)
    across, down = across[:, None], down[:, None, None]
    upper = x[:, top][:, :, left] + (x[:, top][:, :, right] - x[:, top][:, :, left]) * across
    lower = (
        x[:, bottom][:, :, left] + (x[:, bottom][:, :, right] - x[:, bottom][:, :, left]) * across
    )
    return upper + (lower - upper) * down


def _neighbours(op: Tf1Op, size: int, out: int) -> tuple[Array, Array, Array]:
    places = _coordinates(op, size, out)
    floor = np.floor(places)
    lower = np.maximum(floor.astype(np.int64), 0)
    upper = np.minimum(np.ceil(places).astype(np.int64), size - 1)
    return lower, upper, places - floor


@kernel("ResizeBicubic")
def run_resize_bicubic(op: Tf1Op, args: Sequence[Any]) -> Array:
    """
    Keys' kernel over four neighbours in each direction: a = -0.5 for half-pixel centers, where
    neighbours outside have no weight, else a = -0.75 with the edge repeated.
    """
    x: Array = args[0].astype(_F32)
    for axis, out in zip((1, 2), ints(args[1]), strict=True):
        index, weights = _cubic(op, x.shape[axis], out)
        shape = (-1, *[1] * (3 - axis))
        parts = [np.take(x, index[k], axis) * weights[k].reshape(shape) for k in range(4)]
        x = (parts[0] + parts[1]) + (parts[2] + parts[3])
    return x


def _cubic(op: Tf1Op, size: int, out: int) -> tuple[Array, Array]:
    is_half = op.attr("half_pixel_centers")
    a = -0.5 if is_half else -0.75
    places = _coordinates(op, size, out)
    floor = np.floor(places)
    # TensorFlow looks the weights up in a table of 1024 steps.
    delta = np.rint((places - floor) * 1024) / 1024
    distances = np.abs(np.stack([1 + delta, delta, 1 - delta, 2 - delta]))
    near = ((a + 2) * distances - (a + 3)) * distances**2 + 1
    far = ((a * distances - 5 * a) * distances + 8 * a) * distances - 4 * a
    weights = np.where(distances <= 1, near, far)
    wanted = floor.astype(np.int64) + np.arange(-1, 3)[:, None]
    index = np.clip(wanted, 0, size - 1)
    if is_half:
        weights = np.where(index == wanted, weights, 0)
        weights = weights / weights.sum(0)
    return index, weights.astype(_F32)


@kernel("CropAndResize")
def run_crop_and_resize(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Boxes of images, in parts of their sizes, resized; what is outside is extrapolated."""
    images, boxes, box_images, crop = args[0].astype(_F32), args[1], args[2], ints(args[3])
    result = np.full(
        (len(boxes), *crop, images.shape[-1]), op.attr("extrapolation_value"), np.float32
    )
    for number, (box, image) in enumerate(zip(boxes, box_images, strict=True)):
        axes = [
            _box_places(box[axis], box[axis + 2], images.shape[1 + axis], crop[axis])
            for axis in (0, 1)
        ]
        for row, y in enumerate(axes[0]):
            for column, x in enumerate(axes[1]):
                if 0 <= y <= images.shape[1] - 1 and 0 <= x <= images.shape[2] - 1:
                    pixel = _sample(op, images[image], y, x)
                    result[number, row, column] = pixel
    return result


def _box_places(start: Any, end: Any, size: int, count: int) -> Array:
    if count == 1:
        return np.array([_F32(0.5) * (start + end) * _F32(size - 1)])
    step = (end - start) * _F32(size - 1) / _F32(count - 1)
    return start * _F32(size - 1) + np.arange(count).astype(_F32) * step


def _sample(op: Tf1Op, image: Array, y: Any, x: Any) -> Array:
    if op.attr("method") == "nearest":
        return image[int(np.floor(y + _F32(0.5))), int(np.floor(x + _F32(0.5)))]
    top, left = int(np.floor(y)), int(np.floor(x))
    bottom, right = int(np.ceil(y)), int(np.ceil(x))
    upper = image[top, left] + (image[top, right] - image[top, left]) * (x - left)
    lower = image[bottom, left] + (image[bottom, right] - image[bottom, left]) * (x - left)
    return upper + (lower - upper) * (y - top)
