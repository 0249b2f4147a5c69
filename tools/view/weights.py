"""What the weights of a constant look like: range, mean, spread, histogram."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BINS = 32
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
    total = squares = 0.0
    low, high = np.inf, -np.inf
    zeros = finite_count = 0
    # Piece by piece: weights may be larger than memory.
    for start in range(0, flat.size, _SAMPLED):
        piece = flat[start : start + _SAMPLED].astype(np.float64)
        finite = piece[np.isfinite(piece)]
        zeros += int(np.count_nonzero(finite == 0))
        finite_count += finite.size
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
            total += float(finite.sum())
            squares += float(np.dot(finite, finite))
    if not finite_count:
        return None
    mean = total / finite_count
    variance = max(squares / finite_count - mean * mean, 0.0)
    sample = flat[:: -(-flat.size // _SAMPLED)].astype(np.float64)
    sample = sample[np.isfinite(sample)]
    histogram, _ = np.histogram(sample, _BINS, (low, high))
    return WeightStatistics(
        count=flat.size,
        minimum=low,
        maximum=high,
        mean=mean,
        deviation=variance**0.5,
        zeros=zeros,
        not_finite=flat.size - finite_count,
        sampled=sample.size,
        histogram=[int(count) for count in histogram],
    )
