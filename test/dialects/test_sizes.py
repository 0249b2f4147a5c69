"""What is proved of expressions of sizes; tests of numbers find what is proved wrongly."""

from __future__ import annotations

import itertools

import pytest

from lowerdeck.dialects.dims import Expr, minimum, parse_text
from lowerdeck.dialects.sizes import (
    Divisors,
    at_most,
    divisor_if_equal,
    is_never_negative,
    largest,
    smallest,
)

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
    # Rows in tiles of six, five and four.
    "a - (a floordiv 6) * 6",
    "(a + (a floordiv 6) * 4) floordiv 5 - (a floordiv 6) * 2",
    "(((a + (a floordiv 6) * 4) floordiv 5) * 3 + a) floordiv 4"
    " - ((a + (a floordiv 6) * 4) floordiv 5) * 2 + a floordiv 6",
)

NOT_PROVED = (
    "b * 3 - 1",
    "a - b",
    "a - max(a, b)",
    "min(a, b) - a",
    "(h floordiv 2) * (w floordiv 2) * 64 - h * w * 16",
    "(t - 5) floordiv 2 + 2",
    "a mod 4 - a",
    "(a + (a floordiv 6) * 4) floordiv 5 - (a floordiv 6) * 3",
    "(a floordiv 6) * 6 - a",
    "(a - b * 3) floordiv 2 + b",
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
    forms += ["(a floordiv 3) * 3", "(a + (a floordiv 3)) floordiv 2", "(a floordiv 3) * 2"]
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


def test_multiples_make_sizes_equal() -> None:
    h, w = Expr.symbol("h"), Expr.symbol("w")
    divisors = Divisors()
    divisors.add("h", 4)
    divisors.add("h", 6)  # so it is a multiple of 12
    for one, other in ((h // 2, h // 4 * 2), (h, h // 12 * 12), ((h + 11) // 6, h // 6 + 1)):
        assert one != other
        assert divisors.settle(one) == divisors.settle(other)
    for one, other in ((h // 8 * 2, h // 4), (w // 2, w // 4 * 2), (h // 2, h // 3)):
        assert divisors.settle(one) != divisors.settle(other)
    for expr in (h * w // 5, h * h // 2, h % 8, minimum(h // 4, w)):
        restored = divisors.restore(divisors.settle(expr))
        assert restored.symbols <= {"h", "w"}
        for height, width in itertools.product((0, 12, 24, 60), range(4)):
            sizes = {"h": height, "w": width}
            assert restored.evaluate(sizes) == expr.evaluate(sizes)


def test_what_equal_sizes_say_of_multiples() -> None:
    b, h = Expr.symbol("b"), Expr.symbol("h")
    assert divisor_if_equal(h, h // 4 * 4) == ("h", 4)
    assert divisor_if_equal(h // 4 * 8 + 1, h * 2 + 1) == ("h", 4)
    # An empty batch has any height; 5 is no multiple, nor is 1 more than one.
    for one, other in ((b * h, b * (h // 4) * 4), (h // 2, h // 4 * 2), (h, h // 4 * 4 + 1)):
        assert divisor_if_equal(one, other) is None
    for one, other in (
        (h, h // 4 * 2),
        (h, b // 4 * 4),
        (h, h // b * 4),
        (h, b),
        (h, (h + 1) // 4 * 4),
    ):
        assert divisor_if_equal(one, other) is None
