"""Constant weights rounded to bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import cast

import ml_dtypes
import numpy as np

from lowerdeck.dialects.core.quantize import MIDDLE
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


_HELD_BACK = 4
"""One row in so many is not part of the mean by which others are judged."""

_PARTS = (0.001, 0.003, 0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Of a multiple of the unit matrix in moments."""


class Moments:
    """
    What samples say of the rows that a matrix is multiplied by: the mean of x^T x, as near to a
    multiple of the unit matrix as makes rows likely that were held back, for what few rows happen
    to have in common is not what others have (Hoffbeck and Landgrebe 1996, "Covariance matrix
    estimation and classification with limited training data", which leaves out single rows).
    """

    def __init__(self, size: int) -> None:
        self._sums = np.zeros((2, size, size))
        """Of the rows that are held back, and the others."""
        self._counts = [0, 0]

    def add(self, rows: Array) -> None:
        """Take in more rows, those of a sample: if there are some, its last ones are held back."""
        rows = rows.astype(np.float64)
        if len(rows) >= _HELD_BACK:
            is_held = np.arange(len(rows)) >= len(rows) - len(rows) // _HELD_BACK
        else:
            numbers = np.arange(len(rows)) + sum(self._counts)
            is_held = numbers % _HELD_BACK == _HELD_BACK - 1
        for k, part in enumerate((rows[is_held], rows[~is_held])):
            self._sums[k] += part.T @ part
            self._counts[k] += len(part)

    def join(self, other: Moments) -> None:
        """Take in those of another matrix with the same elements."""
        self._sums += other._sums
        self._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]

    @property
    def mean(self) -> Array:
        """The estimate for rows in general."""
        mean = self._sums.sum(0) / max(sum(self._counts), 1)
        level = np.eye(len(mean)) * np.diagonal(mean).mean()
        part = self._part()
        return (1 - part) * mean + part * level

    def _part(self) -> float:
        """That of the unit matrix with which rows are most likely, as of a normal distribution."""
        if not all(self._counts):
            return 1.0
        held, rest = (a / count for a, count in zip(self._sums, self._counts, strict=True))
        values, vectors = np.linalg.eigh(rest)
        along = np.einsum("ij,ij->j", vectors, held @ vectors)
        if not values.mean() > 0 or not along.mean() > 0:
            return 1.0
        best, least = 1.0, np.inf
        for part in _PARTS:
            variances = (1 - part) * np.maximum(values, 0) + part * values.mean()
            # Of all multiples of the moments, the best one: their size does not matter.
            unlikely = float(np.log(variances).mean() + np.log((along / variances).mean()))
            if unlikely < least:
                best, least = part, unlikely
        return best


def as_halves_for(array: Array, moments: Array, block: int) -> tuple[Array, Array, Array]:
    """
    A matrix [rows, columns] as integers from 0 to 15, and a scale and a zero point for each block
    of so many rows, for a left factor with these `moments` [rows, rows]: row after row, what
    rounding misses is made good by the rows after it (GPTQ, https://arxiv.org/abs/2210.17323,
    algorithm 1); then each number, and each scale, is the best one for all others. Where that gives
    no better product than rounding alone (`as_halves`), it is that.
    """
    codes, scales = as_halves(array, 0, block)
    plain = codes, scales, np.full(scales.shape, MIDDLE, np.uint8)
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
    zeros = np.zeros(scales.shape, np.uint8)
    for start in range(0, rows, _PART):
        end = min(start + _PART, rows)
        missed = np.zeros((end - start, columns))
        for row in range(start, end):
            own = row // block
            if row % block == 0:
                # By what the rows of the block are now, as far as they are known.
                lines = rest[row : row + block].T.astype(np.float32)
                scales[own], zeros[own] = (part[:, 0] for part in _scales_and_zeros(lines))
            scale, zero = scales[own].astype(np.float64), zeros[own].astype(np.float64)
            steps = _steps(rest[row], scale, zero)
            codes[row] = steps + zero
            missed[row - start] = (rest[row] - steps * scale) / upper[row, row]
            rest[row + 1 : end] -= np.outer(upper[row, row + 1 : end], missed[row - start])
        rest[end:] -= upper[start:end, end:].T @ missed
    if not np.isfinite(scales).all():
        return plain
    halves = codes, scales.astype(ml_dtypes.bfloat16), zeros
    found = _refined(array, halves, damped, block)
    return min((plain, found), key=lambda each: _loss(array, each, moments, block))


_SWEEPS = 2
"""Times that all numbers are looked at again: most of what there is to gain comes at once."""


def _refined(
    array: Array, halves: tuple[Array, Array, Array], moments: Array, block: int
) -> tuple[Array, Array, Array]:
    """
    Numbers of four bits and scales that change products less: one row after the other, and the
    scales after the rows of their block, each the best for what all others are (coordinate descent,
    as QuantEase does, https://arxiv.org/abs/2309.01885, section 3.2).
    """
    codes, scales, zeros = (part.astype(np.float64) for part in halves)
    steps = codes - np.repeat(zeros, block, 0)[: len(array)]
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
                part[row] = _steps(before - near[row] / curvature, scale, zeros[index])
                near += np.outer(own[:, row], part[row] * scale - before)
            rise, bend = (part * near).sum(0), np.einsum("ij,ij->j", part, own @ part)
            best = _nonzero(scale - rise / np.where(bend > 0, bend, np.inf)).astype(np.float64)
            change = best - scale
            scales[index] = np.where(change * (2 * rise + change * bend) < 0, best, scale)
            after = part * scales[index]
            slope += moments[:, rows] @ (after - numbers[rows])
            numbers[rows] = after
    codes = (steps + np.repeat(zeros, block, 0)[: len(array)]).astype(np.uint8)
    return codes, scales.astype(ml_dtypes.bfloat16), halves[2]


def _loss(array: Array, halves: tuple[Array, Array, Array], moments: Array, block: int) -> float:
    """What rounding changes in products, by the sum of squares."""
    codes = halves[0].astype(np.float64)
    scales, zeros = (np.repeat(p.astype(np.float64), block, 0)[: len(array)] for p in halves[1:])
    change = (codes - zeros) * scales - array
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


_SHRUNK = (1.0, 0.92, 0.84, 0.76)
"""Of either end of a block: what is beyond is clipped, all others round less."""


def _scales_and_zeros(blocks: Array) -> tuple[Array, Array]:
    """The scale, as bf16 holds it, and the zero point with the least square error for each line."""
    low = np.minimum(blocks.min(1, keepdims=True), 0)
    high = np.maximum(blocks.max(1, keepdims=True), 0)
    unit = np.maximum(np.maximum(high, -low), np.finfo(np.float32).tiny)
    parts = blocks / unit
    found: Array = np.ones_like(low)
    zero: Array = np.zeros_like(low)
    least: Array = np.full_like(low, np.inf)
    for lower, upper in product(_SHRUNK, repeat=2):
        scale = _nonzero((high * np.float32(upper) - low * np.float32(lower)) / np.float32(15))
        start = np.clip(np.rint(-low * np.float32(lower) / scale), 0, 15)
        error = np.square(_steps(blocks, scale, start) * (scale / unit) - parts)
        error = error.sum(1, keepdims=True)
        found = np.where(error < least, scale, found)
        zero = np.where(error < least, start, zero)
        least = np.minimum(error, least)
    return found, zero


def _steps(numbers: Array, scale: Array, zero: float | Array = MIDDLE) -> Array:
    """How many scales a number is away from zero, as far as there are codes."""
    return np.clip(np.rint(numbers / scale), -zero, 15 - zero)


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
