"""What the weights of a constant look like: range, mean, spread, histogram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BINS = 32
_FIRST = 24
_SAMPLED = 1 << 18
"""Elements of a histogram; of more, so many are taken at equal distances."""


@dataclass(frozen=True)
class WeightStatistics:
    """Of the finite elements, but for the counts; `histogram` holds counts of equal intervals."""

    count: int
    minimum: float
    maximum: float
    mean: float
    deviation: float
    zeros: int
    not_finite: int
    first: list[float | str]
    """The first elements, in the order of memory; what JSON has no number for is a text."""
    sampled: int
    """Elements of the histogram."""
    histogram: list[int]

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def weight_statistics(array: NDArray[Any]) -> WeightStatistics | None:
    """The statistics of an array of numbers; None of one that has none."""
    if array.size == 0 or (array.dtype.kind in "OSUV" and array.dtype.itemsize != 2):
        return None
    flat = array.reshape(-1)
    low, high = np.inf, -np.inf
    zeros = count = 0
    for piece in _pieces(flat):
        zeros += int(np.count_nonzero(piece == 0))
        count += piece.size
        if piece.size:
            low, high = min(low, float(piece.min())), max(high, float(piece.max()))
    if not count:
        return None
    # In parts of the largest one, whose square might be infinite.
    unit = max(abs(low), abs(high)) or 1.0
    mean = sum(float((piece / unit).sum()) for piece in _pieces(flat)) / count
    squares = sum(float(np.square(piece / unit - mean).sum()) for piece in _pieces(flat))
    sample = _finite(flat[:: -(-flat.size // _SAMPLED)])
    return WeightStatistics(
        count=flat.size,
        minimum=low,
        maximum=high,
        mean=mean * unit,
        deviation=(squares / count) ** 0.5 * unit,
        zeros=zeros,
        not_finite=flat.size - count,
        first=[_shown(value) for value in flat[:_FIRST].astype(np.float64).tolist()],
        sampled=sample.size,
        histogram=_histogram(sample, low, high),
    )


def _finite(array: NDArray[Any]) -> NDArray[np.float64]:
    values = array.astype(np.float64)
    return values[np.isfinite(values)]


def _pieces(flat: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    """The finite elements, piece by piece: weights may be larger than memory."""
    for start in range(0, flat.size, _SAMPLED):
        yield _finite(flat[start : start + _SAMPLED])


def _histogram(sample: NDArray[np.float64], low: float, high: float) -> list[int]:
    """
    Counts of equal intervals. `numpy.histogram` refuses a range that has no such intervals of
    floats: one number, or two large ones beside each other.
    """
    width = high / 2 - low / 2
    shares = (sample / 2 - low / 2) / width if width > 0 else np.full(sample.shape, 0.5)
    bins = np.minimum((shares * _BINS).astype(np.int64), _BINS - 1)
    return [int(count) for count in np.bincount(bins, minlength=_BINS)]


def _shown(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)
