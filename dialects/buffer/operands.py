"""
What the expressions of kernels are over: dK is index operand K of the op, sK is symbol K of the
kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record

T = TypeVar("T")


@record
class Operand:
    """An index operand, by its number."""

    number: int


@record
class Parameter:
    """A symbol of the kernel, by its number."""

    number: int


_NAME = re.compile("([ds])([0-9]+)")


def meaning_of(name: str) -> Operand | Parameter | None:
    """What a name in an expression stands for; None if it is none of a kernel's."""
    if (found := _NAME.fullmatch(name)) is None:
        return None
    return (Operand if found[1] == "d" else Parameter)(int(found[2]))


@cache
def operand(number: int) -> Expr:
    """The index operand of an op with this number."""
    return Expr.symbol(f"d{number}")


@cache
def parameter(number: int) -> Expr:
    """The symbol of a kernel with this number."""
    return Expr.symbol(f"s{number}")


def by_operand(values: Sequence[T]) -> dict[str, T]:
    """What stands for each index operand, by its name in expressions."""
    return {_operand_name(number): value for number, value in enumerate(values)}


@cache
def _operand_name(number: int) -> str:
    return str(operand(number))


def by_parameter(values: Sequence[T]) -> dict[str, T]:
    """What stands for each symbol of a kernel, by its name in expressions."""
    return {str(parameter(number)): value for number, value in enumerate(values)}
