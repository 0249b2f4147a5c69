"""
What kernels compute with when they are run: how elements lie in memory, and the functions that the
Python text of kernels calls.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from lowerdeck.dialects.core.types import bf16, numpy_dtype

Array: TypeAlias = NDArray[Any]

POISON = 0x7F
"""Every byte of memory that was not written: large numbers, in every type."""


def fresh(size: int) -> Array:
    """Bytes that were not written."""
    return np.full(size, POISON, np.uint8)


def splat(lanes: int, value: Any, dtype: str) -> Array:
    """As `np.full`, which takes three times as long for a few lanes."""
    found = np.empty(lanes, dtype)
    found.fill(value)
    return found


def width(type_: Attribute) -> int:
    """The bits of an integer, or of an index."""
    return cast(IntegerType, type_).width.data if isinstance(type_, IntegerType) else 64


def memory_dtype(element: Attribute) -> np.dtype[Any]:
    """Integers lie in memory as signed ones, as kernels compute with them; i1 is a byte."""
    bits = width(element)
    if isinstance(element, IntegerType):
        return np.dtype(np.uint8 if bits == 1 else f"i{bits // 8}")
    return numpy_dtype(element)


def wrap(value: int, width: int) -> int:
    """The signed integer of a width that is congruent to `value`."""
    half = 1 << (width - 1)
    return ((value + half) & ((1 << width) - 1)) - half


def _outside(index: int, size: int) -> int:
    raise IndexError(f"element {index} of a dimension of {size} is accessed")


def _matrix(memory: Array, offset: int, shape: tuple[int, int], step: int) -> Array:
    """Rows and columns of a matrix in memory, whose rows lie `step` elements apart."""
    strides = (step * memory.itemsize, memory.itemsize)
    return np.lib.stride_tricks.as_strided(memory[offset:], shape, strides)


def _halves_of(words: Array, shift: int) -> Array:
    """The numbers of bf16 in one half of each i32."""
    bits = np.asarray(words).view(np.uint32) >> np.uint32(shift) << np.uint32(16)
    return bits.view(np.float32)


def _half_of(word: int, shift: int) -> Any:
    return _halves_of(np.array(word, np.int32), shift)[()]


def _pairs_of_halves(low: Array, high: Array) -> Array:
    """Two numbers each, rounded to bf16, in the halves of i32."""
    narrow = numpy_dtype(bf16)
    with np.errstate(all="ignore"):
        bits = [np.asarray(x, np.float32).astype(narrow).view(np.uint16) for x in (low, high)]
    words = bits[0].astype(np.uint32) | bits[1].astype(np.uint32) << np.uint32(16)
    return words.view(np.int32)


def _pair_of_halves(low: float, high: float) -> int:
    return int(_pairs_of_halves(np.array(low), np.array(high)))


def _dot_of_halves(left: Array, right: Array) -> Array:
    """The product of matrices of words of two numbers of bf16 each."""
    parts = [(_halves_of(left, shift), _halves_of(right, shift)) for shift in (0, 16)]
    total: Array = np.asarray(sum((a.astype(np.float64) @ b for a, b in parts), np.float64(0)))
    return total.astype(np.float32)


def _dot_of_bytes(unsigned: Array, signed: Array) -> Array:
    """The product of matrices of words of four bytes each, without signs and with them."""
    left = np.ascontiguousarray(unsigned).view(np.uint8).astype(np.int32)
    right = np.ascontiguousarray(signed.T).view(np.int8).astype(np.int32)
    return left @ right.T


def _resolve(index: int, bound: int) -> int:
    if not -bound <= index < bound:
        raise IndexError(f"index {index} in a dimension of {bound}")
    return index + bound if index < 0 else index


def _floordiv(a: int, b: int) -> int:
    """A zero divisor, which only an empty dimension gives, gives zero."""
    return a // b if b else 0


def _modulo(a: int, b: int) -> int:
    return a - b * _floordiv(a, b)


def _quotient(a: int, b: int) -> int:
    """Toward zero; by zero, zero."""
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    """With the sign of a; by zero, zero."""
    return 0 if b == 0 else a - b * _quotient(a, b)


def _power(a: int, b: int) -> int:
    """Modulo 2^64; a negative exponent rounds the reciprocal toward zero."""
    if b >= 0:
        return wrap(pow(a, b, 1 << 64), 64)
    if a in (1, -1):
        return a if b % 2 else 1
    return 0


def _to_integer(value: Any, lowest: int, highest: int) -> int:
    """Toward zero; what does not fit becomes the nearest number that does, NaN zero."""
    number = float(value)
    if number != number:
        return 0
    if python_math.isinf(number):
        return highest if number > 0 else lowest
    return min(max(int(number), lowest), highest)


def _to_signed(value: Any, width: int) -> int:
    return _to_integer(value, -(1 << (width - 1)), (1 << (width - 1)) - 1)


def _to_unsigned(value: Any, width: int) -> int:
    return wrap(_to_integer(value, 0, (1 << width) - 1), width)


def _to_odd(value: Any) -> np.float32:
    """To f32 so that a second rounding gives what one would."""
    nearest = np.float32(value)
    if nearest == value or not np.isfinite(nearest):
        return nearest
    bits = nearest.view(np.uint32)
    if abs(np.float64(nearest)) > abs(value):
        bits -= np.uint32(1)
    return (bits | np.uint32(1)).view(np.float32)


def _f64_to_bf16(value: Any) -> Any:
    return ml_dtypes.bfloat16(_to_odd(value))


def _maximum(a: Any, b: Any) -> Any:
    return a if a > b or a != a else b


def _minimum(a: Any, b: Any) -> Any:
    return a if a < b or a != a else b


def _float_power(a: np.float64, b: np.float64) -> np.float64:
    """C's pow; numpy takes the square root of a scalar for 0.5, which is no number for -inf."""
    return np.power(np.array([a, a]), np.array([b, b]))[0]


def _lanes_as(lanes: Array, dtype: np.dtype[Any]) -> Array:
    """As numpy converts; of a float that does not fit any integer may come."""
    with np.errstate(all="ignore"):
        return lanes.astype(dtype)


def _halves(combine: Callable[[Any, Any], Any]) -> Callable[[Array], Any]:
    """All lanes combined: halves upon each other, as the generated C does it."""

    def reduce(lanes: Array) -> Any:
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = combine(lanes[:half], lanes[half:])
        return lanes[0]

    return reduce


NAMESPACE: dict[str, Any] = {
    "fresh": fresh,
    "splat": splat,
    "outside": _outside,
    "matrix": _matrix,
    "side_by_side": np.hstack,
    "one_below_the_other": np.vstack,
    "dot_of_bytes": _dot_of_bytes,
    "dot_of_halves": _dot_of_halves,
    "half_of": _half_of,
    "halves_of": _halves_of,
    "pair_of_halves": _pair_of_halves,
    "pairs_of_halves": _pairs_of_halves,
    "resolve": _resolve,
    "floordiv": _floordiv,
    "modulo": _modulo,
    "quotient": _quotient,
    "remainder": _remainder,
    "power": _power,
    "float_power": _float_power,
    "to_signed": _to_signed,
    "to_unsigned": _to_unsigned,
    "f64_to_bf16": _f64_to_bf16,
    "maximum": _maximum,
    "lanes_as": _lanes_as,
    "reduce_add": _halves(np.add),
    "reduce_mul": _halves(np.multiply),
    "reduce_max": _halves(np.fmax),
    "reduce_min": _halves(np.fmin),
    "reduce_umax": _halves(np.maximum),
    "reduce_umin": _halves(np.minimum),
    "minimum": _minimum,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i64": np.int64,
    "u64": np.uint64,
    "erf": python_math.erf,
    "np": np,
}
"""The functions, by what the text calls them."""
