"""What elements have to be, so that a result is defined and does not depend on the algorithm."""

from __future__ import annotations

import numpy as np

from fuzz.onnx_graphs import Array, is_float


def is_finite(a: Array) -> bool:
    """True if nothing is infinite or NaN: where that gets to depends on the algorithm."""
    return bool(np.isfinite(a.astype(np.float64)).all())


def within(a: Array, limit: float) -> bool:
    """True if all finite elements are at most so large."""
    wide = np.abs(a.astype(np.float64))
    return bool((wide[np.isfinite(wide)] <= limit).all())


def has_nan(a: Array) -> bool:
    return is_float(a.dtype) and bool(np.isnan(a.astype(np.float64)).any())
