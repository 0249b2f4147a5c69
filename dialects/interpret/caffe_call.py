"""One run of a layer in the interpreter, and the table of functions that run layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter
from lowerdeck.dialects.records import record

Array: TypeAlias = "NDArray[Any]"

LARGEST = np.finfo(np.float32).max
"""The largest float; its negative is the maximum of nothing."""


@record
class Call:
    """One run of a layer, in float64."""

    layer: LayerParameter
    bottoms: Sequence[Array]
    blobs: Sequence[Array]
    tops: int

    @property
    def x(self) -> Array:
        """The first bottom."""
        return self.bottoms[0]


Rule: TypeAlias = Callable[[Call], "Array | Sequence[Array]"]

RULES: dict[str, Rule] = {}


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Register a function for layer types."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(types, function))
        return function

    return register


def along(values: Array, axis: int, rank: int) -> Array:
    """`values` so that they broadcast from `axis` on over an array of this rank."""
    return values.reshape(values.shape + (1,) * (rank - axis - values.ndim))


def images(x: Array) -> Array:
    """As a blob of four dimensions; missing ones are 1."""
    return x.reshape(x.shape + (1,) * (4 - x.ndim))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), as Caffe computes it."""
    return 0.5 * np.tanh(0.5 * x) + 0.5
