"""What is known of expressions of sizes, which are never negative."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, cast

from lowerdeck.dialects.dims import Atom, Expr, Monomial, maximum, minimum, product

_MANY = 24
"""Extrema of more arguments are not compared pair by pair."""

_CASES = 4
"""How many extrema, one inside of the other, a proof looks into."""

Polynomial: TypeAlias = dict[Monomial, Fraction]
"""Symbols only, with rational coefficients."""


@lru_cache(maxsize=1 << 10)
def is_never_negative(expr: Expr, cases: int = _CASES) -> bool:
    """
    True if an expression is provably at least zero wherever its symbols are.

    Every symbol has to be a size: zero or more. An extremum is looked at argument by argument,
    quotients by the same number are compared by what is divided, and otherwise lie between
    neighboring fractions.
    """
    if all(coefficient > 0 for _, coefficient in expr.terms):
        if all(_is_never_negative(atom, cases) for monomial, _ in expr.terms for atom in monomial):
            return True
    elif all(coefficient < 0 for _, coefficient in expr.terms) and _is_plain(expr):
        return False
    if not cases:
        return False
    if (split := _first_extremum(expr)) is not None:
        atom, coefficient = split
        proofs = (
            is_never_negative(_with(expr, atom, argument), cases - 1) for argument in atom.args
        )
        # The whole is as small as with the argument that the extremum is; any bounds it from below.
        is_bounded_by_any = (atom.kind == "max") == (coefficient > 0)
        return any(proofs) if is_bounded_by_any else all(proofs)
    if (simpler := _without_quotient(expr)) is not None:
        if is_never_negative(simpler, cases - 1):
            return True
    expr = _without_pairs(expr, cases)
    low = _bound(expr, is_upper=False)
    return low is not None and all(coefficient >= 0 for coefficient in low.values())


def _without_quotient(expr: Expr) -> Expr | None:
    """
    An expression without its outermost quotient, that is negative where this one is; None if there
    is none such: `a // n + b` is `(a + n * b) // n`, and `n * (a // n)` is at most a.
    """
    quotients = [
        (monomial[0], count)
        for monomial, count in expr.terms
        if len(monomial) == 1 and monomial[0].kind == "floordiv" and monomial[0].args[1].value
    ]
    for atom, count in quotients:
        # What is part of another quotient stays, for the terms that are left may cancel it.
        if any(_contains(other, atom) for other, _ in quotients if other is not atom):
            continue
        dividend, number = atom.args[0], cast(int, atom.args[1].value)
        rest = expr - _monomial((atom,), count)
        if number > 0 and count == 1:
            return dividend + rest * number
        if number > 0 and count < 0 and count % number == 0:
            return rest + dividend * (count // number)
    return None


def _contains(atom: Atom, part: Atom) -> bool:
    return any(
        each == part or _contains(each, part)
        for argument in atom.args
        for monomial, _ in argument.terms
        for each in monomial
    )


def _is_never_negative(atom: Atom, cases: int) -> bool:
    if atom.kind == "symbol":
        return True
    if atom.kind == "max":
        return any(is_never_negative(argument, cases) for argument in atom.args)
    return all(is_never_negative(argument, cases) for argument in atom.args)


def _is_plain(expr: Expr) -> bool:
    return all(atom.kind == "symbol" for monomial, _ in expr.terms for atom in monomial)


def _first_extremum(expr: Expr) -> tuple[Atom, int] | None:
    """An extremum that is a term by itself or times sizes, with the number before it."""
    for monomial, coefficient in expr.terms:
        found = [atom for atom in monomial if atom.kind in ("min", "max")]
        others = [atom for atom in monomial if atom.kind not in ("min", "max")]
        if len(found) == 1 and all(_is_never_negative(atom, 0) for atom in others):
            return found[0], coefficient
    return None


def _with(expr: Expr, extremum: Atom, argument: Expr) -> Expr:
    """The expression with an argument in the first term that has the extremum."""
    total, is_found = Expr.const(0), False
    for monomial, coefficient in expr.terms:
        if not is_found and extremum in monomial:
            is_found = True
            rest = list(monomial)
            rest.remove(extremum)
            total += _monomial(tuple(rest), coefficient) * argument
        else:
            total += _monomial(monomial, coefficient)
    return total


def _monomial(monomial: Monomial, coefficient: int) -> Expr:
    return Expr(((monomial, coefficient),))


def _without_pairs(expr: Expr, cases: int) -> Expr:
    """Without what a quotient exceeds another one by: never less than the expression without it."""
    terms = dict(expr.terms)
    quotients = [m for m in terms if m and m[-1].kind == "floordiv" and m[-1].args[1].value]
    for larger in quotients:
        for smaller in quotients:
            if terms[larger] <= 0 or terms[smaller] >= 0 or larger[:-1] != smaller[:-1]:
                continue
            if not all(_is_never_negative(atom, cases) for atom in larger[:-1]):
                continue
            (above, number), (below, other) = larger[-1].args, smaller[-1].args
            if number != other:
                continue
            count = min(terms[larger], -terms[smaller])
            rest = {**terms, larger: terms[larger] - count, smaller: terms[smaller] + count}
            difference = above - below
            # Whole numbers beside the quotients are part of what is divided: q + a // n is
            # (a + n * q) // n.
            if len(larger) == 1 and all(each % count == 0 for each in rest.values()):
                beside = _sum(rest) * number
                if is_never_negative(difference + _exact(beside, count), cases - 1):
                    return Expr.const(0)
            if is_never_negative(difference, cases):
                terms = rest
    return _sum(terms)


def _sum(terms: Mapping[Monomial, int]) -> Expr:
    return Expr(tuple((monomial, count) for monomial, count in terms.items() if count))


def _exact(expr: Expr, number: int) -> Expr:
    return Expr(tuple((monomial, count // number) for monomial, count in expr.terms))


def _bound(expr: Expr, *, is_upper: bool) -> Polynomial | None:
    """A polynomial of symbols that an expression is never above, or never below."""
    total: Polynomial = defaultdict(Fraction)
    for monomial, coefficient in expr.terms:
        bound = _monomial_bound(monomial, is_upper=is_upper == (coefficient > 0))
        if bound is None:
            return None
        for symbols, factor in bound.items():
            total[symbols] += factor * coefficient
    return total


def _monomial_bound(monomial: Monomial, *, is_upper: bool) -> Polynomial | None:
    symbols = tuple(atom for atom in monomial if atom.kind == "symbol")
    others = [atom for atom in monomial if atom.kind != "symbol"]
    if not others:
        return {symbols: Fraction(1)}
    if len(others) > 1:
        # Factors may only be bounded one by one where none is negative.
        if not all(_is_never_negative(atom, 1) for atom in others):
            return None
        if not is_upper:
            return {}
    bound: Polynomial = {symbols: Fraction(1)}
    for atom in others:
        if (factor := _atom_bound(atom, is_upper=is_upper)) is None:
            return None
        bound = _times(bound, factor)
    return bound


def _atom_bound(atom: Atom, *, is_upper: bool) -> Polynomial | None:
    if atom.kind not in ("floordiv", "mod"):
        return None
    dividend, divisor = atom.args
    number = divisor.value
    if number is None or number <= 0:
        return None
    if atom.kind == "mod":
        return {(): Fraction(number - 1)} if is_upper else {}
    bound = _bound(dividend, is_upper=is_upper)
    if bound is None:
        return None
    if not is_upper:
        bound[()] = bound.get((), Fraction(0)) - (number - 1)
    return {symbols: factor / number for symbols, factor in bound.items()}


def _times(one: Polynomial, other: Polynomial) -> Polynomial:
    total: Polynomial = defaultdict(Fraction)
    for left, a in one.items():
        for right, b in other.items():
            total[tuple(sorted((*left, *right), key=str))] += a * b
    return total


def largest(*values: Expr) -> Expr:
    """The maximum of expressions of sizes, without what never decides."""
    return maximum(*_deciding(values, 1))


def smallest(*values: Expr) -> Expr:
    """The minimum of expressions of sizes, without what never decides."""
    return minimum(*_deciding(values, -1))


def _deciding(values: tuple[Expr, ...], sign: int) -> list[Expr]:
    kept = list(dict.fromkeys(values))
    if len(kept) > _MANY:
        return kept
    for value in list(kept):
        others = [other for other in kept if other is not value]
        if any(is_never_negative((other - value) * sign) for other in others):
            kept.remove(value)
    return kept


class Divisors:
    """
    Numbers that sizes are multiples of, so that more expressions of them are equal: `h floordiv 2`
    is `(h floordiv 4) * 2` if 4 divides h.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def add(self, name: str, number: int) -> None:
        """The size `name` is a multiple of a positive number."""
        self._numbers[name] = math.lcm(self._numbers.get(name, 1), number)

    def settle(self, expr: Expr) -> Expr:
        """The form that all expressions have that are equal for all such sizes."""
        # What is left of a size is a symbol whose name no size has.
        parts = {name: Expr.symbol(_part(name)) * n for name, n in self._numbers.items()}
        return expr.substitute(parts)

    def restore(self, settled: Expr) -> Expr:
        """Of what `settle` gives: an expression of the sizes again."""
        parts = {_part(name): Expr.symbol(name) // n for name, n in self._numbers.items()}
        return settled.substitute(parts)


def _part(name: str) -> str:
    return f"part of {name}"


def divisor_if_equal(left: Expr, right: Expr) -> tuple[str, int] | None:
    """
    A size, and the number that it is a multiple of where two expressions are equal: of `h` and
    `(h floordiv 4) * 4`, h and 4. None if there is none.
    """
    terms = {monomial: count for monomial, count in (left - right).terms if len(monomial) == 1}
    size = next((monomial[0] for monomial in terms if monomial[0].kind == "symbol"), None)
    if size is None or len((left - right).terms) != 2:
        return None
    for (atom,), count in terms.items():
        if atom.kind == "floordiv" and atom.args[0] == _monomial((size,), 1):
            number = atom.args[1].value
            if number is not None and number > 0 and count == -number * terms[(size,)]:
                return size.name, number
    return None


def at_most(expr: Expr, limits: Mapping[str, Expr], sizes: Collection[str]) -> Expr | None:
    """
    What an expression never exceeds, in terms of `sizes`; None if that is not plain.

    The symbols in `limits` are sizes, too, that never exceed these. No term may have two of them:
    what it is at most would be far from what it is.
    """
    total = Expr.const(0)
    for monomial, coefficient in expr.terms:
        exact = [atom for atom in monomial if _symbols(atom) <= frozenset(sizes)]
        others = [atom for atom in monomial if not _symbols(atom) <= frozenset(sizes)]
        factor = product(_monomial((atom,), 1) for atom in exact) * coefficient
        if not others:
            total += factor
            continue
        if len(others) > 1 or not all(_is_never_negative(atom, 1) for atom in exact):
            return None
        if coefficient > 0:
            if (bound := _atom_at_most(others[0], limits, sizes)) is None:
                return None
            total += factor * bound
        elif others[0].kind != "symbol" or others[0].name not in limits:
            return None
    return total


def _atom_at_most(atom: Atom, limits: Mapping[str, Expr], sizes: Collection[str]) -> Expr | None:
    if atom.kind == "symbol":
        return limits.get(atom.name)
    args = list(_known(at_most(argument, limits, sizes) for argument in atom.args))
    # Of the smaller of a number from data and one that is far away, little is known.
    if len(args) < len(atom.args):
        return None
    if atom.kind == "min":
        return smallest(*args)
    if atom.kind == "max":
        return largest(*args)
    number = args[1].value
    if number is None or number <= 0:
        return None
    return args[0] // number if atom.kind == "floordiv" else Expr.const(number - 1)


def _known(values: Iterator[Expr | None]) -> Iterator[Expr]:
    yield from (value for value in values if value is not None)


def _symbols(atom: Atom) -> frozenset[str]:
    return _monomial((atom,), 1).symbols
