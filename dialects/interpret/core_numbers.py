"""
The table of what `core` ops mean, the values of their properties, and how results are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Operation

from lowerdeck.dialects.core import tensor
from lowerdeck.dialects.core.types import DimsAttr

Array: TypeAlias = NDArray[Any]
Symbols: TypeAlias = Mapping[str, int]
Evaluator: TypeAlias = Callable[[Any, Sequence[Array], Symbols], Any]
OpT = TypeVar("OpT", bound=Operation)

BF16 = np.dtype(ml_dtypes.bfloat16)
NARROW = frozenset({np.dtype(np.float16), BF16})
FLOATS = NARROW | {np.dtype(np.float32), np.dtype(np.float64)}

EVALUATORS: dict[type[Operation], Evaluator] = {}
"""By op class."""


def meaning_of(*classes: type[Operation]) -> Callable[[Evaluator], Evaluator]:
    """Register a function of (op, operand values, symbols) for op classes."""

    def register(function: Evaluator) -> Evaluator:
        for cls in classes:
            EVALUATORS[cls] = function
        return function

    return register


def numbers(dims: DimsAttr, symbols: Symbols) -> list[int]:
    """The values of expressions."""
    return [dim.evaluate(symbols) for dim in dims.data]


def ints(attribute: Any) -> list[int]:
    """The elements of an array of integers."""
    return tensor.ints(cast(DenseArrayBase[Any], attribute))


def flag(attribute: Any) -> bool:
    """The value of a truth value."""
    return bool(attribute.value.data)


def widened(array: Array) -> Array:
    """
    A form in which a chain of additions and products loses little: float64 for floats. The elements
    of those are in order, because the sums of numpy depend on where they lie.
    """
    return array.astype(np.float64, order="C") if array.dtype in FLOATS else array


def rounded(array: Any, dtype: np.dtype[Any]) -> Array:
    """`array` in `dtype`, rounded once to nearest, halves to even."""
    array = np.asarray(array)
    if dtype == BF16 and array.dtype.kind in "iuf" and array.dtype.itemsize > 2:
        return _to_bfloat16(array)
    return array.astype(dtype, copy=False)


def _to_bfloat16(array: Array) -> Array:
    """
    Without rounding twice: where float32 lands halfway between two bfloat16 and is not the exact
    value, step toward the exact value first.
    """
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        # 48 leading bits and a sticky one decide; float64 holds them.
        sticky = (array & array.dtype.type(0xFFFF)) != 0
        large = ((array >> array.dtype.type(16)) | sticky.astype(array.dtype)).astype(np.float64)
        exact = np.where(abs(array.astype(np.float64)) < 2**52, array, large * 65536.0)
    else:
        exact = array.astype(np.float64)
    near = exact.astype(np.float32)
    halfway = (near.view(np.uint32) & np.uint32(0xFFFF)) == 0x8000
    toward = np.where(exact > near, np.float32(np.inf), np.float32(-np.inf))
    nudged = np.nextafter(near, toward)
    return np.where(halfway & (exact != near), nudged, near).astype(ml_dtypes.bfloat16)
