"""Whether two runs of a model give the same results, and what tolerance that means."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.interpret import Value

_TOLERANCES: Mapping[np.dtype[Any], float] = {
    np.dtype(np.float64): 1e-9,
    np.dtype(np.float32): 1e-4,
    np.dtype(np.float16): 2e-2,
    np.dtype(ml_dtypes.bfloat16): 1e-1,
}
"""Allowed difference relative to the larger of one and the value's largest neighbor."""

Results: TypeAlias = "dict[str, Value]"
"""By the name of the output."""


def difference(found: Results, expected: Results) -> str | None:
    """What differs between two runs, or None: integers equal, floats close, NaN where NaN is."""
    for name, reference in expected.items():
        if name not in found:
            return f"there is no output '{name}' any more"
        if (text := _difference_of(found[name], reference)) is not None:
            return f"output '{name}' {text}"
    return None


def _difference_of(found: Value, expected: Value) -> str | None:
    if isinstance(found, list) and isinstance(expected, list):
        if len(found) != len(expected):
            return f"has {len(found)} elements instead of {len(expected)}"
        parts = (_difference_of(a, b) for a, b in zip(found, expected, strict=True))
        return next((part for part in parts if part is not None), None)
    if not isinstance(found, np.ndarray) or not isinstance(expected, np.ndarray):
        return None if found is expected else "is absent in one of the two runs"
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return (
            f"is {found.dtype}{list(found.shape)} instead of {expected.dtype}{list(expected.shape)}"
        )
    return _number_difference(found, expected)


def says_something(value: Value) -> bool:
    """True if there is a number to compare."""
    if isinstance(value, list):
        return any(map(says_something, value))
    return value is not None and value.size > 0


def largest_error(found: Results, expected: Results) -> float:
    """
    The largest difference of two runs in units of what is allowed: up to 1, `difference` finds
    none. Infinite where integers, types or shapes differ, or NaN or an infinity is in one alone.
    """
    errors = (_error_of(found.get(name), value) for name, value in expected.items())
    return max(errors, default=0.0)


def _error_of(found: Value, expected: Value) -> float:
    if isinstance(found, np.ndarray) and isinstance(expected, np.ndarray):
        if (found.dtype, found.shape) != (expected.dtype, expected.shape):
            return math.inf
        return float(_errors(found, expected).max(initial=0.0))
    return 0.0 if _difference_of(found, expected) is None else math.inf


def _errors(found: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.float64]:
    """Of each element, in units of what is allowed."""
    tolerance = _TOLERANCES.get(expected.dtype)
    if tolerance is None:
        return np.where(found == expected, 0.0, math.inf)
    with np.errstate(invalid="ignore"):  # of signaling NaN
        wide, reference = found.astype(np.float64), expected.astype(np.float64)
        is_finite = np.isfinite(reference)
        scale = max(1.0, float(np.abs(reference[is_finite]).max(initial=0.0)))
        allowed = tolerance * (scale + np.abs(reference))
        same = (wide == reference) | (np.isnan(wide) & np.isnan(reference))
        errors = np.where(
            is_finite & np.isfinite(wide), np.abs(wide - reference) / allowed, math.inf
        )
    return np.where(same, 0.0, errors)


def _number_difference(found: NDArray[Any], expected: NDArray[Any]) -> str | None:
    wrong = _errors(found, expected) > 1
    if not wrong.any():
        return None
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    return (
        f"differs in {np.count_nonzero(wrong)} of {wrong.size} elements; "
        f"at {list(place)} it is {found[place]} instead of {expected[place]}"
    )
