"""Constant weights rounded to bytes."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from lowerdeck.passes.machinery.values import Array

MOST = 127
"""Of a byte with a sign; -128 has no opposite."""

LEAST = 2.0**-100
"""The largest magnitude of a row that is quantized as if it were zeros."""


def as_bytes(array: Array, axes: Sequence[int], parts: int = 1) -> tuple[Array, Array]:
    """
    Finite weights as bytes and their scale, one for all elements along `axes`, in as many parts of
    the first axis: symmetric, rounded to nearest, the largest magnitude is 127
    (https://arxiv.org/abs/1806.08342, section 3.1.1). The scale has one dimension more than the
    weights, the first, for the parts.
    """
    apart = array.reshape(parts, -1, *array.shape[1:])
    largest = np.abs(apart).max(axis=tuple(axis + 1 for axis in axes), keepdims=True)
    least = np.finfo(np.float32).tiny * MOST
    scale = np.where(largest > least, largest / np.float32(MOST), np.float32(1)).astype(np.float32)
    return np.rint(apart / scale).astype(np.int8).reshape(array.shape), scale


_RATIOS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
"""Of the scale that holds the largest magnitude: where a few are clipped, others round less."""


def as_halves(array: Array, axis: int, block: int) -> tuple[Array, Array]:
    """
    Finite weights as integers from 0 to 15 around 8, and a scale for each block of so many along an
    axis, in bf16: of those that hold the number farthest from zero at either end, or clip it, the
    one with the least square error (https://arxiv.org/abs/2106.08295, section 3.1).
    """
    blocks = _in_blocks(array, axis, block)
    farthest = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
    unit = np.where(farthest == 0, np.float32(1), farthest)
    parts = blocks / unit
    found = least = None
    for ratio in _RATIOS:
        for whole in (-8.0, 7.0):
            scale = _nonzero(farthest * np.float32(ratio / whole))
            codes = np.clip(np.rint(blocks / scale), -8, 7)
            error = np.square(codes * (scale / unit) - parts).sum(1, keepdims=True)
            if found is None or least is None:
                found, least = scale, error
            found = np.where(error < least, scale, found)
            least = np.minimum(error, least)
    assert found is not None
    codes = (np.clip(np.rint(blocks / found), -8, 7) + 8).astype(np.uint8)
    return _out_of_blocks(codes, array.shape, axis), _out_of_blocks(
        found.astype(ml_dtypes.bfloat16), _shape_of_scales(array.shape, axis, block), axis
    )


def _in_blocks(array: Array, axis: int, block: int) -> Array:
    """[blocks of all lines along the axis][block], filled up with zeros."""
    lines = np.moveaxis(array, axis, -1)
    lines = np.pad(lines, [*[(0, 0)] * (array.ndim - 1), (0, -array.shape[axis] % block)])
    return lines.reshape(-1, block)


def _out_of_blocks(blocks: Array, shape: Sequence[int], axis: int) -> Array:
    """The inverse, for a tensor of a shape."""
    others = [size for number, size in enumerate(shape) if number != axis]
    lines = blocks.reshape(*others, -1)[..., : shape[axis]]
    return np.ascontiguousarray(np.moveaxis(lines, -1, axis))


def _shape_of_scales(shape: Sequence[int], axis: int, block: int) -> list[int]:
    return [-(-size // block) if number == axis else size for number, size in enumerate(shape)]


def _nonzero(scale: Array) -> Array:
    """Scales as bf16 holds them; 1 where numbers are so small that they are zeros."""
    rounded = scale.astype(ml_dtypes.bfloat16).astype(np.float32)
    least = np.finfo(np.float32).tiny
    return np.where(np.abs(rounded) >= least, rounded, np.float32(1))
