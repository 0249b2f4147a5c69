"""What is proved of expressions of sizes; tests of numbers find what is proved wrongly."""

from __future__ import annotations

import itertools

import pytest

from lowerdeck.dialects.dims import Expr, minimum, parse_text
from lowerdeck.dialects.sizes import at_most, is_never_negative, largest, smallest

PROVED = (
    "b * t * 64 - ((b * t) floordiv 16) * 64",
    "h * w * 16 - (h floordiv 2) * (w floordiv 2) * 64",
    # Sizes that are rounded up.
    "(b * 20 + 15) floordiv 16 - (b * 5 + 15) floordiv 16",
    "b - (b * 11) floordiv 16",
    "(t - 5) floordiv 2 + 3",
    "3 - a mod 4",
    "max(a, b) - b",
    "a - min(a, b)",
    "a * 3 - max(a, a * 2) - min(a, b)",
    "max(a, b) - min(a, b)",
)

NOT_PROVED = (
    "b * 3 - 1",
    "a - b",
    "a - max(a, b)",
    "min(a, b) - a",
    "(h floordiv 2) * (w floordiv 2) * 64 - h * w * 16",
    "(t - 5) floordiv 2 + 2",
    "a mod 4 - a",
    "(b * 5 + 15) floordiv 16 - (b * 20 + 15) floordiv 16",
    "-a",
    "((a - 9) floordiv 2) * ((b - 9) floordiv 2) - 20",
)


def values_of(expr: Expr) -> list[int]:
    """The values of an expression where its symbols are small or large."""
    names = sorted(expr.symbols)
    rows = itertools.product((0, 1, 2, 3, 5, 8, 33), repeat=len(names))
    return [expr.evaluate(dict(zip(names, row, strict=True))) for row in rows]


@pytest.mark.parametrize("text", PROVED)
def test_is_proved(text: str) -> None:
    assert is_never_negative(parse_text(text))


def test_nothing_else_is_proved() -> None:
    assert [text for text in NOT_PROVED if is_never_negative(parse_text(text))] == []


def test_what_is_proved_is_true() -> None:
    """All differences of a few forms: none that is proved is below zero anywhere."""
    forms = ["a", "a + b", "a floordiv 2 + b", "a * b", "(a floordiv 2) * (b floordiv 2) * 4", "5"]
    forms += ["max(a, b * 2)", "min(a, b)", "a mod 3", "(a + 2) floordiv 3", "(a - b) floordiv 2"]
    forms += ["b * (a mod 2)", "((a + 1) floordiv 2) * b", "max(a - 3, 0)", "-a floordiv 4 + b"]
    proved = 0
    for one, other in itertools.product(map(parse_text, forms), repeat=2):
        if is_never_negative(one - other):
            proved += 1
            assert min(values_of(one - other)) >= 0, f"{one} >= {other}"
    assert proved > 30


def test_extrema_of_sizes() -> None:
    b, t = Expr.symbol("b"), Expr.symbol("t")
    assert largest(b * 128, b * 3072, b * 8192) == b * 8192
    assert largest(t, Expr.const(0)) == t
    assert smallest(t, b + t) == t
    assert str(largest(b, t)) == "max(b, t)"


def test_bounds_of_what_iterations_decide() -> None:
    b, t, n = map(Expr.symbol, "btn")
    assert at_most(n * b * 4 + 3 - n, {"n": t}, {"b", "t"}) == t * b * 4 + 3
    assert at_most((n + 1) // 2, {"n": t}, {"b", "t"}) == (t + 1) // 2
    # It would be far from what it is; or it is not known at all.
    assert at_most(n * n, {"n": t}, {"b", "t"}) is None
    assert at_most(n + b, {"n": t}, {"t"}) is None
    assert at_most(minimum(n, 1 << 31), {}, {"t"}) is None
