"""Random inputs of the models of `real_exports.py` and `other_exports.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

Random: TypeAlias = np.random.Generator
Value: TypeAlias = "Callable[[Random], Any]"
"""An input: an array from random numbers."""
Inputs: TypeAlias = "Mapping[str, Value]"


def normal(*shape: int, dtype: Any = np.float32) -> Value:
    """Standard normal, f32 by default."""
    return lambda rng: rng.standard_normal(shape).astype(dtype)


def uniform(*shape: int) -> Value:
    """f32 between 0 and 1."""
    return lambda rng: rng.random(shape, np.float32)


def whole(high: int, *shape: int, dtype: Any = np.int64) -> Value:
    """Integers from 0 to below `high`."""
    return lambda rng: rng.integers(0, high, shape).astype(dtype)


def ones(*shape: int, dtype: Any = np.float32) -> Value:
    """Always 1."""
    return lambda rng: np.ones(shape, dtype)


def fixed(value: Any, dtype: Any) -> Value:
    """Always the same."""
    return lambda rng: np.array(value, dtype)


def edges(nodes: int, count: int) -> Value:
    """The ends of edges of a graph."""
    return lambda rng: rng.integers(0, nodes, (2, count)).astype(np.int64)
