"""
Sizes of a program: numbers, and formulas of symbols as SymPy writes them, which are parsed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from lowerdeck.dialects.dims import Expr, maximum, minimum, product
from lowerdeck.frontends.pt2.archive import ArchiveError
from lowerdeck.frontends.symbols import Symbols

_LONGEST = 10_000


def _quotient(a: Expr, b: Expr) -> Expr:
    return a // b


def _remainder(a: Expr, b: Expr) -> Expr:
    return a % b


def _same(a: Expr) -> Expr:
    return a


def _sum(*values: Expr) -> Expr:
    return reduce(lambda a, b: a + b, values)


_FUNCTIONS: Mapping[str, Callable[..., Expr]] = {
    "Add": _sum,
    "Mul": lambda *values: product(values),
    "FloorDiv": _quotient,
    "CleanDiv": _quotient,
    "Mod": _remainder,
    "PythonMod": _remainder,
    "Max": maximum,
    "Min": minimum,
    "Identity": _same,
}

_OPAQUE = frozenset(
    "CeilToInt FloorToInt TruncToInt RoundToInt IntTrueDiv FloatTrueDiv ToFloat Float Rational Pow "
    "PowByNatural FloatPow Where LShift RShift floor ceiling".split()
)
"""Functions that sizes have no form for: what they give is equal to nothing but itself."""

_MOST_FACTORS = 8


def size_of(size: Any, symbols: Symbols) -> Expr:
    """A size of a tensor."""
    if isinstance(number := size.get("as_int"), int):
        return Expr.const(number)
    text = size.get("as_expr", {}).get("expr_str", "")
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ArchiveError("a size that is no formula")
    try:
        return _value(ast.parse(text, mode="eval").body, symbols)
    except (SyntaxError, ValueError, TypeError, RecursionError, ZeroDivisionError, MemoryError):
        raise ArchiveError(f"a size '{text[:200]}' that is not understood") from None


def _value(node: ast.expr, symbols: Symbols) -> Expr:
    match node:
        case ast.Constant(value=int() as number):
            return Expr.const(number)
        case ast.Name(id=name):
            return symbols.named(name)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left, symbols) * _value(right, symbols)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left, symbols) + _value(right, symbols)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _value(left, symbols) - _value(right, symbols)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, symbols)
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str() as name)]):
            return symbols.named(name)
        case ast.Call(func=ast.Name(id="Integer"), args=[argument]):
            return _value(argument, symbols)
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(argument, symbols) for argument in arguments))
        case ast.Call(func=ast.Name(id="Pow" | "PowByNatural"), args=[base, exponent]) if (
            count := _count(exponent)
        ) is not None:
            return product([_value(base, symbols)] * count)
        case ast.Call(func=ast.Name(id=name)) if name in _OPAQUE:
            return symbols.named(ast.unparse(node))
        case _:
            raise ValueError(f"found {type(node).__name__}")


def _count(node: ast.expr) -> int | None:
    """A small exponent."""
    match node:
        case ast.Call(func=ast.Name(id="Integer"), args=[ast.Constant(value=int() as number)]):
            return number if 0 <= number <= _MOST_FACTORS else None
        case _:
            return None
