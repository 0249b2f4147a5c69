"""The range of a tensor over many samples, and the part of it that quantization keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

_BINS = 8192
"""Of a histogram: even, so that 0 lies between two."""

_LEVELS = 255
"""Steps of a byte."""

_CANDIDATES = np.linspace(1.0, 0.2, 81)
"""The parts of an extreme that are tried as limits."""

PERCENTILE = 99.99
"""Of the elements that the method `percentile` keeps."""


class Histogram:
    """
    How often numbers occur, from -reach to reach, in bins of equal width. The reach doubles where a
    number lies outside: so one pass over the data is enough, and its order does not matter.
    """

    def __init__(self) -> None:
        self.low = self.high = 0.0
        self.count = 0
        self._reach = 2.0**-30
        self._bins = np.zeros(_BINS, np.int64)

    def add(self, array: Array) -> None:
        """Count the elements of one more array of finite floats."""
        if not array.size:
            return
        flat = np.asarray(array, np.float32).reshape(-1)
        low, high = float(flat.min()), float(flat.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        while self._reach < max(-low, high):
            self._double()
        places = np.floor(flat * np.float32(_BINS / 2 / self._reach)).astype(int) + _BINS // 2
        self._bins += np.bincount(np.minimum(places, _BINS - 1), minlength=_BINS)
        self.count += flat.size

    def _double(self) -> None:
        pairs = self._bins.reshape(-1, 2).sum(1)
        self._bins[:] = 0
        self._bins[_BINS // 4 : -_BINS // 4] = pairs
        self._reach *= 2

    @property
    def centers(self) -> Array:
        """The number that a bin stands for."""
        return (np.arange(_BINS) + 0.5 - _BINS / 2) * (2 * self._reach / _BINS)

    @property
    def bins(self) -> Array:
        """How many numbers each bin holds."""
        return self._bins

    def clipped(self, low: float, high: float) -> float:
        """The share of the numbers outside of limits."""
        outside = self._bins[(self.centers < low) | (self.centers > high)].sum()
        return float(outside) / max(self.count, 1)

    def noise(self, low: float, high: float) -> float:
        """What clipping and rounding to a byte change, by norm, in proportion to the numbers."""
        size = float((self._bins * self.centers**2).sum())
        return float(np.sqrt(_square_error(self, low, high) / size)) if size else 0.0


def _square_error(histogram: Histogram, low: float, high: float) -> float:
    centers, bins = histogram.centers, histogram.bins
    beyond = np.maximum(centers - high, 0) + np.maximum(low - centers, 0)
    step = (high - low) / _LEVELS
    return float((bins * beyond**2).sum() + bins.sum() * step**2 / 12)


def _of_extremes(histogram: Histogram) -> tuple[float, float]:
    return histogram.low, histogram.high


def _of_least_error(histogram: Histogram) -> tuple[float, float]:
    """
    The limits with the least mean square error, of clipping and of rounding, which is that of
    numbers evenly spread over a step (https://arxiv.org/abs/2106.08295, section 3.1).
    """
    low, high = histogram.low, histogram.high

    def error(low: float, high: float) -> float:
        return _square_error(histogram, low, high)

    part = min(_CANDIDATES, key=lambda part: error(low * part, high * part))
    low, high = low * part, high * part
    for _ in range(2):
        # Each end by itself: most tensors have a tail at one of them.
        low = min((histogram.low * p for p in _CANDIDATES), key=lambda each: error(each, high))
        high = min((histogram.high * p for p in _CANDIDATES), key=lambda each: error(low, each))
    return low, high


def _of_percentile(histogram: Histogram) -> tuple[float, float]:
    total = np.cumsum(histogram.bins) / max(histogram.count, 1)
    rest = (1 - PERCENTILE / 100) / 2
    ends = histogram.centers[[np.searchsorted(total, rest), np.searchsorted(total, 1 - rest)]]
    low, high = min(float(ends[0]), 0.0), max(float(ends[1]), 0.0)
    return max(low, histogram.low), min(high, histogram.high)


def _of_entropy(histogram: Histogram) -> tuple[float, float]:
    """
    The limits whose quantized distribution differs least from the clipped one, by the divergence of
    Kullback and Leibler.
    """
    centers, bins = histogram.centers, histogram.bins

    def divergence(part: float) -> float:
        low, high = histogram.low * part, histogram.high * part
        inside = (centers >= low) & (centers <= high)
        if not inside.any():
            return np.inf
        p = bins[inside].astype(float)
        q = p.copy()
        p[0] += bins[centers < low].sum()
        p[-1] += bins[centers > high].sum()
        groups = np.arange(len(q)) * (_LEVELS + 1) // len(q)
        sums = np.bincount(groups, q, minlength=_LEVELS + 1)
        filled = np.bincount(groups, q > 0, minlength=_LEVELS + 1)
        q = np.where(q > 0, (sums / np.maximum(filled, 1))[groups], 0)
        if not q.sum():
            return np.inf
        p, q = p / p.sum(), q / q.sum()
        both = p > 0
        return float((p[both] * np.log(p[both] / np.maximum(q[both], 1e-9))).sum())

    part = min(_CANDIDATES, key=divergence)
    return histogram.low * part, histogram.high * part


METHODS: Mapping[str, Callable[[Histogram], tuple[float, float]]] = {
    "mse": _of_least_error,
    "min-max": _of_extremes,
    "percentile": _of_percentile,
    "entropy": _of_entropy,
}
"""How a range is found, by name."""


def range_of(histogram: Histogram, method: str) -> tuple[float, float]:
    """
    The limits that a method finds, 0 among them, far enough apart that a step is a normal f32: so
    numbers that are all 0 have a range, too.
    """
    low, high = METHODS[method](histogram)
    return (float(low), float(high)) if high - low >= _LEVELS * 2.0**-100 else (0.0, 1.0)
