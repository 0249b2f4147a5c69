"""How a number is declared that an algorithm or a format has, on every machine."""

from typing import Annotated, TypeVar

T = TypeVar("T")

Exact = Annotated[T, "exact"]
"""
The type of a constant that is right as it is, and with another value wrong, not slow: the bits of a
format, the points of a polynomial. What machines do better with more or less of is no such number:
it is computed from `Machine`, or a fact there.
"""
