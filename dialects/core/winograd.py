"""
Winograd's convolutions F(m, r): m outputs of r taps from m + r - 1 products.

y = A^T ((G g) * (B^T d)) along each axis, where * is elementwise: Cook and Toom's algorithm, which
multiplies polynomials by their values at m + r - 2 points and at infinity.

Of integers it is exact: with small integers as points B is a matrix of integers, and so are G and
A^T, if each row is taken so many times (`exact_matrices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import lcm, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.records import record

Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]

_ZERO, _ONE = Fraction(0), Fraction(1)

POINTS = tuple(map(Fraction, ("0", "3/4", "-3/4", "3/2", "-3/2")))
"""
For m + r - 1 = 6, where rounding errors depend on the points: half of those of 0, 1, -1, 2, -2. All
matrices but G are exact in f32.
"""

FEW_POINTS = tuple(map(Fraction, (0, 1, -1)))
"""For m + r - 1 = 4: additions alone but for G."""

SMALL_POINTS = (*FEW_POINTS, *map(Fraction, (2, -2)))
"""The smallest integers for m + r - 1 = 6."""


@record
class Matrices:
    """A^T of m rows, G of r columns and B^T; they all have m + r - 1 columns or rows."""

    outputs: Matrix
    taps: Matrix
    inputs: Matrix


@lru_cache
def matrices(size: int, taps: int) -> Matrices:
    """The matrices of F(size, taps); ValueError if there are no points for it."""
    points = {6: POINTS, 4: FEW_POINTS}.get(size + taps - 1)
    if points is None:
        raise ValueError(f"no points for F({size}, {taps})")
    return _matrices_at(points, size, taps)


@record
class ExactMatrices:
    """Matrices of integers, with which the outputs are multiples of what they are to be."""

    matrices: Matrices
    multiples: tuple[int, ...]
    """How many times each output comes out, along one axis."""


@lru_cache
def exact_matrices(size: int, taps: int) -> ExactMatrices:
    """Those of F(size, taps) with 6 or 4 values; ValueError for others."""
    count = size + taps - 1
    if count not in (len(FEW_POINTS) + 1, len(SMALL_POINTS) + 1):
        raise ValueError(f"no points for F({size}, {taps})")
    plain = _matrices_at(SMALL_POINTS[: count - 1], size, taps)
    scales = [lcm(*(value.denominator for value in row)) for row in plain.taps]
    rows = [[v / scale for v, scale in zip(row, scales, strict=True)] for row in plain.outputs]
    multiples = [lcm(*(value.denominator for value in row)) for row in rows]
    exact = Matrices(_times(rows, multiples), _times(plain.taps, scales), plain.inputs)
    return ExactMatrices(exact, tuple(multiples))


def _times(rows: Sequence[Sequence[Fraction]], factors: Sequence[int]) -> Matrix:
    """Each row times a factor."""
    pairs = zip(rows, factors, strict=True)
    return tuple(tuple(value * factor for value in row) for row, factor in pairs)


def _matrices_at(points: Sequence[Fraction], size: int, taps: int) -> Matrices:
    """
    Row i of B^T holds the coefficients of the polynomial that is zero at all points but i.
    """
    count = size + taps - 1
    others = [[q for q in points if q != p] for p in points]
    powers = [[p**k for k in range(count)] for p in points]
    infinity = (_ZERO,) * (taps - 1) + (_ONE,)
    scales = [prod((p - q for q in rest), start=_ONE) for p, rest in zip(points, others)]
    return Matrices(
        outputs=tuple(
            (*(row[k] for row in powers), _ONE if k == size - 1 else _ZERO) for k in range(size)
        ),
        taps=(
            *(
                tuple(value / scale for value in row[:taps])
                for row, scale in zip(powers, scales, strict=True)
            ),
            infinity,
        ),
        inputs=(*((*_with_roots(rest), _ZERO) for rest in others), _with_roots(points)),
    )


def _with_roots(roots: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients of the monic polynomial with these roots, the constant one first."""
    coefficients = [_ONE]
    for root in roots:
        shifted, scaled = [_ZERO, *coefficients], [*(-root * c for c in coefficients), _ZERO]
        coefficients = [a + b for a, b in zip(shifted, scaled, strict=True)]
    return tuple(coefficients)


def window_axes(rank: int) -> range:
    """The axes of weights [O, I, ...] along which windows are: the last two, or the only one."""
    return range(max(2, rank - 2), rank)


def transformed_taps(weight: NDArray[Any], size: int) -> NDArray[Any]:
    """G g along the axes of `window_axes`, in f64, rounded once."""
    result = weight.astype(np.float64)
    for axis in window_axes(weight.ndim):
        g = np.array(matrices(size, weight.shape[axis]).taps, np.float64)
        result = np.moveaxis(np.tensordot(g, result, (1, axis)), 0, axis)
    return result.astype(weight.dtype)


def restored_taps(transformed: NDArray[Any], size: int) -> NDArray[Any]:
    """The weights whose `transformed_taps` are the nearest, in f64, rounded once."""
    result = transformed.astype(np.float64)
    for axis in window_axes(transformed.ndim):
        g = np.array(matrices(size, transformed.shape[axis] - size + 1).taps, np.float64)
        result = np.moveaxis(np.tensordot(np.linalg.pinv(g), result, (1, axis)), 0, axis)
    return result.astype(transformed.dtype)


def exact_taps(weight: NDArray[Any], size: int) -> NDArray[np.int64]:
    """G g of integers along the axes of `window_axes`, for the G of `exact_matrices`."""
    result = weight.astype(np.int64)
    for axis in window_axes(weight.ndim):
        g = np.array(exact_matrices(size, weight.shape[axis]).matrices.taps, np.int64)
        result = np.moveaxis(np.tensordot(g, result, (1, axis)), 0, axis)
    return result


def restored_exact_taps(transformed: NDArray[Any], size: int) -> NDArray[np.int64]:
    """The integers of which `exact_taps` are these."""
    result = transformed.astype(np.float64)
    for axis in window_axes(transformed.ndim):
        taps = transformed.shape[axis] - size + 1
        g = np.array(exact_matrices(size, taps).matrices.taps, np.float64)
        result = np.moveaxis(np.tensordot(np.linalg.pinv(g), result, (1, axis)), 0, axis)
    return np.rint(result).astype(np.int64)
