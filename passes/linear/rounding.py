"""Constant weights rounded to bytes."""

from __future__ import annotations

from collections.abc import Sequence

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
