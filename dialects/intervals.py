"""What is known of an expression when the ranges of its symbols are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from lowerdeck.dialects.dims import Atom, Expr, maximum, minimum

Interval: TypeAlias = tuple[int, int]
"""The least and the greatest value, both included."""


def interval(expr: Expr, ranges: Mapping[str, Interval]) -> Interval | None:
    """Bounds of an expression; None if a symbol without a range is in it."""
    low = high = 0
    for monomial, coefficient in expr.terms:
        bounds: Interval = (coefficient, coefficient)
        for atom in monomial:
            factor = _atom_interval(atom, ranges)
            if factor is None:
                return None
            corners = [a * b for a in bounds for b in factor]
            bounds = (min(corners), max(corners))
        low, high = low + bounds[0], high + bounds[1]
    return low, high


def _atom_interval(atom: Atom, ranges: Mapping[str, Interval]) -> Interval | None:
    if atom.kind == "symbol":
        return ranges.get(atom.name)
    bounds = [interval(argument, ranges) for argument in atom.args]
    known = [pair for pair in bounds if pair is not None]
    if len(known) < len(bounds):
        return None
    if atom.kind in ("min", "max"):
        choose = min if atom.kind == "min" else max
        return choose(pair[0] for pair in known), choose(pair[1] for pair in known)
    divisor = atom.args[1].value
    if divisor is None or divisor <= 0:
        return None
    low, high = known[0]
    if atom.kind == "floordiv":
        return low // divisor, high // divisor
    return (low, high) if 0 <= low and high < divisor else (0, divisor - 1)


def simplified(expr: Expr, ranges: Mapping[str, Interval]) -> Expr:
    """The same value wherever symbols are in their ranges, with fewer divisions and extrema."""
    if all(atom.kind == "symbol" for monomial, _ in expr.terms for atom in monomial):
        return expr
    total = Expr.const(0)
    for monomial, coefficient in expr.terms:
        product = Expr.const(coefficient)
        for atom in monomial:
            product = product * _simplified_atom(atom, ranges)
        total = total + product
    return total


def _simplified_atom(atom: Atom, ranges: Mapping[str, Interval]) -> Expr:
    if atom.kind == "symbol":
        return Expr.symbol(atom.name)
    args = [simplified(argument, ranges) for argument in atom.args]
    if atom.kind in ("min", "max"):
        return _extremum(atom.kind, args, ranges)
    value, divisor = args
    number = divisor.value
    if number is None or number <= 0:
        return value // divisor if atom.kind == "floordiv" else value % divisor
    # value == number * whole + rest: if the rest stays below the divisor, it is the remainder.
    whole = Expr(tuple((m, c // number) for m, c in value.terms if c // number))
    rest = value - whole * number
    bounds = interval(rest, ranges)
    if bounds is not None and bounds[0] // number == bounds[1] // number:
        quotient = bounds[0] // number
        return whole + quotient if atom.kind == "floordiv" else rest - quotient * number
    for unit in sorted({c for _, c in rest.terms if 1 < c and number % c == 0}, reverse=True):
        # (unit * large + small) with a small part below the unit: only the large one divides.
        small = Expr(tuple((m, c) for m, c in rest.terms if c % unit))
        bounds = interval(small, ranges)
        if bounds is not None and 0 <= bounds[0] and bounds[1] < unit:
            large = (rest - small) // unit
            if atom.kind == "floordiv":
                return whole + large // (number // unit)
            return large % (number // unit) * unit + small
    return value // divisor if atom.kind == "floordiv" else value % divisor


def _extremum(kind: str, args: list[Expr], ranges: Mapping[str, Interval]) -> Expr:
    """Without the arguments that never decide."""
    kept = list(args)
    for argument in args:
        for other in kept:
            if other is argument or argument not in kept:
                continue
            difference = interval(argument - other, ranges)
            never = difference is not None and (
                difference[0] >= 0 if kind == "min" else difference[1] <= 0
            )
            if never:
                kept.remove(argument)
                break
    return (minimum if kind == "min" else maximum)(*kept)
