"""Numbers of 64 and 32 bits: in text, and lists of them as attributes that are one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import BytesAttr, DenseArrayBase, f32, i64
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

_LARGEST_FLOAT = float(np.finfo(np.float32).max)


def parse_int64(parser: Parser) -> int:
    """An integer of 64 bits."""
    start = parser.pos
    value = parser.parse_integer(allow_boolean=False)
    if not -(1 << 63) <= value < 1 << 63:
        parser.raise_error("expected an integer of 64 bits", start, parser.pos)
    return value


def parse_float32(parser: Parser) -> float:
    """A float of 32 bits; NaN and infinities are written as strings."""
    start = parser.pos
    if (text := parser.parse_optional_str_literal()) is None:
        value = parser.parse_number()
        if abs(value) > _LARGEST_FLOAT:
            parser.raise_error("expected a float of 32 bits", start, parser.pos)
        return float(value)
    if text not in ("nan", "inf", "-inf"):
        parser.raise_error('expected a number, or one of "nan", "inf", "-inf"', start, parser.pos)
    return float(text)


def dense_ints(values: Sequence[int] | NDArray[Any]) -> DenseArrayBase[Any]:
    """`array<i64: ...>`; VerifyException for a number that does not fit."""
    try:
        data = np.array(values, "<i8").tobytes()
    except OverflowError:
        raise VerifyException("a number has more than 64 bits") from None
    return DenseArrayBase(cast(Any, i64), BytesAttr(data))


def dense_floats(values: Sequence[float] | NDArray[Any]) -> DenseArrayBase[Any]:
    """`array<f32: ...>`."""
    return DenseArrayBase(cast(Any, f32), BytesAttr(np.array(values, "<f4").tobytes()))
