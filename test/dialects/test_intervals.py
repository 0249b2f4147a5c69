"""Bounds of expressions: numbers, and sizes that are known by name."""

from __future__ import annotations

import itertools
from operator import add, mul, sub

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowerdeck.dialects.dims import Expr, maximum, minimum
from lowerdeck.dialects.intervals import interval, open_interval, simplified

i, j, n = (Expr.symbol(name) for name in ("i", "j", "n"))


def leaves() -> st.SearchStrategy[Expr]:
    return st.sampled_from([i, j, Expr.const(1), Expr.const(-3), Expr.const(16)])


def larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    numbers = st.sampled_from([2, 3, 16])
    return st.one_of(
        *(st.builds(combine, inner, inner) for combine in (add, sub, mul, minimum, maximum)),
        *(st.builds(divide, inner, numbers) for divide in (Expr.__floordiv__, Expr.__mod__)),
    )


@given(st.recursive(leaves(), larger, max_leaves=6), st.integers(-4, 4), st.integers(0, 5))
def test_bounds_hold(expr: Expr, low: int, size: int) -> None:
    """Every value lies within both kinds of bounds, and simplification keeps it."""
    ranges = {"i": (low, low + size), "j": (0, 3)}
    bounds, wide = interval(expr, ranges), open_interval(expr, ranges)
    assert bounds is not None
    assert wide == bounds
    shorter = simplified(expr, ranges)
    for a, b in itertools.product(range(low, low + size + 1), range(4)):
        value = expr.evaluate({"i": a, "j": b})
        assert bounds[0] <= value <= bounds[1]
        assert shorter.evaluate({"i": a, "j": b}) == value


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (n, (n, n)),
        (n * n - 1, (n * n - 1, n * n - 1)),
        (i * 4 + n, (n, n * 5 - 4)),
        (n - i * 2, (n * -1 + 2, n)),
        (minimum(i, 7), (0, minimum(n - 1, 7))),
        ((i + 8) // 4, (2, (n + 7) // 4)),
        (i % 4, (0, 3)),
        # Which bound is the least depends on the sign of n.
        (i * n, None),
        (i * j, None),
        # What is unknown is not named.
        (j + 1, None),
    ],
)
def test_sizes_by_name(expr: Expr, expected: tuple[Expr | int, Expr | int] | None) -> None:
    """i is below n, and nothing is known of j."""
    assert open_interval(expr, {"i": (0, n - 1), "j": None}) == expected


def test_numbers_know_every_symbol() -> None:
    assert interval(i + n, {"i": (0, 4)}) is None
