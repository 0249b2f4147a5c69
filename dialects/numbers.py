"""Numbers in the text form of dialects, which hold what 64 and 32 bits hold."""

from __future__ import annotations

import numpy as np
from xdsl.parser import Parser

_LARGEST_FLOAT = float(np.finfo(np.float32).max)


def parse_int64(parser: Parser) -> int:
    """An integer of 64 bits."""
    start = parser.pos
    value = parser.parse_integer(allow_boolean=False)
    if not -(1 << 63) <= value < 1 << 63:
        parser.raise_error("expected an integer of 64 bits", start, parser.pos)
    return value


def parse_float32(parser: Parser) -> float:
    """A float of 32 bits; what is no number is a string."""
    start = parser.pos
    if (text := parser.parse_optional_str_literal()) is None:
        value = parser.parse_number()
        if abs(value) > _LARGEST_FLOAT:
            parser.raise_error("expected a float of 32 bits", start, parser.pos)
        return float(value)
    if text not in ("nan", "inf", "-inf"):
        parser.raise_error('expected a number, or one of "nan", "inf", "-inf"', start, parser.pos)
    return float(text)
