"""What is known of an expression when the ranges of its symbols are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

from lowerdeck.dialects.dims import Atom, Expr, maximum, minimum

Interval: TypeAlias = tuple[int, int]
"""The least and the greatest value, both included."""

Bound: TypeAlias = int | Expr
OpenInterval: TypeAlias = tuple[Bound, Bound]
"""The same, where sizes are known by name only."""


def interval(expr: Expr, ranges: Mapping[str, Interval]) -> Interval | None:
    """Bounds of an expression; None if a symbol without a range is in it."""
    return cast(Interval | None, _interval(expr, ranges, is_open=False))


def open_interval(expr: Expr, ranges: Mapping[str, OpenInterval | None]) -> OpenInterval | None:
    """
    Bounds of an expression in which symbols that are not in `ranges` stand for themselves; None if
    they are not plain, or a symbol has None for its range.
    """
    return _interval(expr, ranges, is_open=True)


def _interval(
    expr: Expr, ranges: Mapping[str, OpenInterval | None], *, is_open: bool
) -> OpenInterval | None:
    low: Bound = 0
    high: Bound = 0
    for monomial, coefficient in expr.terms:
        bounds: OpenInterval | None = (coefficient, coefficient)
        for atom in monomial:
            factor = _atom_interval(atom, ranges, is_open=is_open)
            if factor is None or (bounds := _product(bounds, factor)) is None:
                return None
        low, high = low + bounds[0], high + bounds[1]
    return low, high


def _product(a: OpenInterval, b: OpenInterval) -> OpenInterval | None:
    """None if the sign of a bound decides which is the least, and is not known."""
    (low, high), (first, last) = a, b
    if (
        isinstance(low, int)
        and isinstance(high, int)
        and isinstance(first, int)
        and isinstance(last, int)
    ):
        corners = (low * first, low * last, high * first, high * last)
        return min(corners), max(corners)
    if low == high and first == last:
        product = low * first
        return product, product
    if isinstance(low, int) and low == high:
        low, high, first, last = first, last, low, high
    if not isinstance(first, int) or first != last:
        return None
    return (low * first, high * first) if first >= 0 else (high * first, low * first)


def _atom_interval(
    atom: Atom, ranges: Mapping[str, OpenInterval | None], *, is_open: bool
) -> OpenInterval | None:
    if atom.kind == "symbol":
        if is_open and atom.name not in ranges:
            symbol = Expr.symbol(atom.name)
            return symbol, symbol
        return ranges.get(atom.name)
    bounds = [_interval(argument, ranges, is_open=is_open) for argument in atom.args]
    known = [pair for pair in bounds if pair is not None]
    if len(known) < len(bounds):
        return None
    if atom.kind in ("min", "max"):
        return _extreme(atom.kind, [p[0] for p in known]), _extreme(
            atom.kind, [p[1] for p in known]
        )
    divisor = atom.args[1].value
    if divisor is None or divisor <= 0:
        return None
    low, high = known[0]
    if atom.kind == "floordiv":
        return low // divisor, high // divisor
    if isinstance(low, int) and isinstance(high, int) and 0 <= low and high < divisor:
        return low, high
    return 0, divisor - 1


def _extreme(kind: str, bounds: list[Bound]) -> Bound:
    numbers = [bound for bound in bounds if isinstance(bound, int)]
    if len(numbers) == len(bounds):
        return min(numbers) if kind == "min" else max(numbers)
    return (minimum if kind == "min" else maximum)(*bounds)


def simplified(expr: Expr, ranges: Mapping[str, Interval]) -> Expr:
    """The same value wherever symbols are in their ranges, with fewer divisions and extrema."""
    if expr.is_plain:
        return expr
    key = (expr, *map(ranges.get, expr.names))
    if (known := _simplified.get(key)) is None:
        if len(_simplified) > _MOST_KNOWN:
            _simplified.clear()
        known = _simplified[key] = _simplify(expr, ranges)
    return known


_simplified: dict[tuple[Expr | Interval | None, ...], Expr] = {}
"""What became of expressions and ranges of their symbols, sorted: kernels are alike."""

_MOST_KNOWN = 1 << 10


def _simplify(expr: Expr, ranges: Mapping[str, Interval]) -> Expr:
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
