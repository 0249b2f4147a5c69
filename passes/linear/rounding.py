"""Constant weights rounded to bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

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
    scale = _scales(blocks)
    codes = (_steps(blocks, scale) + 8).astype(np.uint8)
    return _out_of_blocks(codes, array.shape, axis), _out_of_blocks(
        scale.astype(ml_dtypes.bfloat16), _shape_of_scales(array.shape, axis, block), axis
    )


_PART = 128
"""Rows of a matrix that are rounded before what they miss is spread over all others."""

_DAMPING = 1e-4
"""Of the mean of the diagonal, what is added to it, so that there is an inverse."""


class Moments:
    """
    What samples say of the rows that a matrix is multiplied by: the mean of x^T x, nearer to a
    multiple of the unit matrix the fewer rows there are and the less they agree, for what few rows
    happen to have in common is not what others have (Ledoit and Wolf 2004, "A well-conditioned
    estimator for large-dimensional covariance matrices", section 3.2).
    """

    def __init__(self, size: int) -> None:
        self._sum = np.zeros((size, size))
        self._fourth = 0.0
        """The sum of |x|^4."""
        self._count = 0

    def add(self, rows: Array) -> None:
        """Take in more rows."""
        rows = rows.astype(np.float64)
        self._sum += rows.T @ rows
        self._fourth += float(np.square(np.square(rows).sum(1)).sum())
        self._count += len(rows)

    def join(self, other: Moments) -> None:
        """Take in those of another matrix with the same elements."""
        self._sum += other._sum
        self._fourth += other._fourth
        self._count += other._count

    @property
    def mean(self) -> Array:
        """The estimate for rows in general."""
        mean = self._sum / max(self._count, 1)
        level = np.eye(len(mean)) * np.diagonal(mean).mean()
        distance = np.square(mean - level).sum()
        if not distance:
            return mean
        noise = (self._fourth / self._count - np.square(mean).sum()) / self._count
        part = min(max(noise / distance, 0.0), 1.0)
        return (1 - part) * mean + part * level


def as_halves_for(array: Array, moments: Array, block: int) -> tuple[Array, Array]:
    """
    A matrix [rows, columns] as `as_halves` gives it along the rows, for a left factor with these
    `moments` [rows, rows]: row after row, what rounding misses is made good by the rows after it
    (GPTQ, https://arxiv.org/abs/2210.17323, algorithm 1); then each number, and each scale, is the
    best one for all others. Where that gives no better product than rounding alone, it is that.
    """
    plain = as_halves(array, 0, block)
    level = _DAMPING * np.diagonal(moments).mean()
    damped = moments + np.eye(len(moments)) * max(level, np.finfo(float).tiny)
    try:
        inverse = cast("Array", np.linalg.inv(damped))
        upper = cast("Array", np.linalg.cholesky(inverse).T)
    except np.linalg.LinAlgError:
        return plain
    rows, columns = array.shape
    rest, codes = array.astype(np.float64), np.zeros(array.shape, np.uint8)
    scales = np.zeros((-(-rows // block), columns), np.float32)
    for start in range(0, rows, _PART):
        end = min(start + _PART, rows)
        missed = np.zeros((end - start, columns))
        for row in range(start, end):
            if row % block == 0:
                # By what the rows of the block are now, as far as they are known.
                lines = rest[row : row + block].T.astype(np.float32)
                scales[row // block] = _scales(lines)[:, 0]
            scale = scales[row // block].astype(np.float64)
            steps = _steps(rest[row], scale)
            codes[row] = steps + 8
            missed[row - start] = (rest[row] - steps * scale) / upper[row, row]
            rest[row + 1 : end] -= np.outer(upper[row, row + 1 : end], missed[row - start])
        rest[end:] -= upper[start:end, end:].T @ missed
    if not np.isfinite(scales).all():
        return plain
    found = _refined(array, (codes, scales.astype(ml_dtypes.bfloat16)), damped, block)
    return min((plain, found), key=lambda each: _loss(array, each, moments, block))


_SWEEPS = 2
"""Times that all numbers are looked at again: most of what there is to gain comes at once."""


def _refined(
    array: Array, halves: tuple[Array, Array], moments: Array, block: int
) -> tuple[Array, Array]:
    """
    Numbers of four bits and scales that change products less: one row after the other, and the
    scales after the rows of their block, each the best for what all others are (coordinate descent,
    as QuantEase does, https://arxiv.org/abs/2309.01885, section 3.2).
    """
    steps, scales = halves[0].astype(np.float64) - 8, halves[1].astype(np.float64)
    numbers = steps * np.repeat(scales, block, 0)[: len(array)]
    # Half of how much more is lost by a number that is larger.
    slope = moments @ (numbers - array)
    for _ in range(_SWEEPS):
        for index, start in enumerate(range(0, len(array), block)):
            rows = slice(start, min(start + block, len(array)))
            own, near, scale = moments[rows, rows], slope[rows].copy(), scales[index].copy()
            part = steps[rows]
            for row, curvature in enumerate(np.diagonal(own)):
                before = part[row] * scale
                part[row] = _steps(before - near[row] / curvature, scale)
                near += np.outer(own[:, row], part[row] * scale - before)
            rise, bend = (part * near).sum(0), np.einsum("ij,ij->j", part, own @ part)
            best = _nonzero(scale - rise / np.where(bend > 0, bend, np.inf)).astype(np.float64)
            change = best - scale
            scales[index] = np.where(change * (2 * rise + change * bend) < 0, best, scale)
            after = part * scales[index]
            slope += moments[:, rows] @ (after - numbers[rows])
            numbers[rows] = after
    return (steps + 8).astype(np.uint8), scales.astype(ml_dtypes.bfloat16)


def _loss(array: Array, halves: tuple[Array, Array], moments: Array, block: int) -> float:
    """What rounding changes in products, by the sum of squares."""
    codes, scales = halves
    repeated = np.repeat(scales.astype(np.float64), block, 0)[: len(array)]
    change = (codes.astype(np.float64) - 8) * repeated - array
    return float(np.einsum("ij,ij->", change, moments @ change))


def _scales(blocks: Array) -> Array:
    """The scale with the least square error for each line, as bf16 holds it."""
    farthest = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
    unit = np.where(farthest == 0, np.float32(1), farthest)
    parts = blocks / unit
    found = least = None
    for ratio in _RATIOS:
        for whole in (-8.0, 7.0):
            scale = _nonzero(farthest * np.float32(ratio / whole))
            error = np.square(_steps(blocks, scale) * (scale / unit) - parts)
            error = error.sum(1, keepdims=True)
            if found is None or least is None:
                found, least = scale, error
            found = np.where(error < least, scale, found)
            least = np.minimum(error, least)
    assert found is not None
    return found


def _steps(numbers: Array, scale: Array) -> Array:
    return np.clip(np.rint(numbers / scale), -8, 7)


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
