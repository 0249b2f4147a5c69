"""Canonical integer expressions: what they mean, print and compare as."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.parser import Parser

from lowerdeck.dialects.dims import (
    Expr,
    constants,
    exprs,
    maximum,
    minimum,
    parse_expr,
    parse_exprs,
    product,
)
from lowerdeck.metadata import Dimension

NAMES = ("h", "n", "u0", "w")
n, h, w = (Expr.symbol(name) for name in ("n", "h", "w"))


def parse(text: str) -> Expr:
    """The expression that the whole of `text` is."""
    parser = Parser(Context(), text)
    value = parse_expr(parser)
    assert parser.pos == len(text)
    return value


@dataclass(frozen=True)
class Tree:
    """An expression as it was written: a name, a number, or an operator with two operands."""

    head: str | int
    args: tuple[Tree, ...] = ()


OPERATORS: dict[str, tuple[Callable[[Expr, Expr], Expr], Callable[[int, int], int]]] = {
    "+": (lambda a, b: a + b, lambda a, b: a + b),
    "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b),
    "floordiv": (lambda a, b: a // b, lambda a, b: a // b),
    "ceildiv": (lambda a, b: a.ceildiv(b), lambda a, b: -((-a) // b)),
    "mod": (lambda a, b: a % b, lambda a, b: a % b),
    "min": (minimum, min),
    "max": (maximum, max),
}


def built(tree: Tree) -> Expr:
    """The canonical form; ZeroDivisionError if a divisor is zero whatever the symbols are."""
    if isinstance(tree.head, int):
        return Expr.const(tree.head)
    if not tree.args:
        return Expr.symbol(tree.head)
    return OPERATORS[tree.head][0](*map(built, tree.args))


def computed(tree: Tree, values: Mapping[str, int]) -> int:
    """The number, by Python's arithmetic; ZeroDivisionError if a divisor is zero."""
    if isinstance(tree.head, int):
        return tree.head
    if not tree.args:
        return values[tree.head]
    return OPERATORS[tree.head][1](*(computed(arg, values) for arg in tree.args))


def _operation(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.builds(Tree, st.sampled_from(list(OPERATORS)), st.tuples(children, children))


TREES = st.recursive(
    st.builds(Tree, st.sampled_from(NAMES) | st.integers(-9, 9)), _operation, max_leaves=8
)
VALUES = st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(-30, 30)))


@given(TREES, VALUES)
def test_canonical_forms_mean_what_was_written(tree: Tree, values: dict[str, int]) -> None:
    try:
        expected, expr = computed(tree, values), built(tree)
    except ZeroDivisionError:
        assume(False)
        return
    assert expr.evaluate(values) == expected
    assert expr.substitute(values) == expected


@given(TREES, TREES, VALUES)
def test_substitution_of_an_expression(tree: Tree, inner: Tree, values: dict[str, int]) -> None:
    try:
        argument = computed(inner, values)
        expected = computed(tree, {**values, "n": argument})
        expr = built(tree).substitute({"n": built(inner)})
    except ZeroDivisionError:
        assume(False)
        return
    assert expr.evaluate(values) == expected


@given(TREES)
def test_text_reads_back(tree: Tree) -> None:
    try:
        expr = built(tree)
    except ZeroDivisionError:
        assume(False)
        return
    again = parse(str(expr))
    assert again == expr
    assert hash(again) == hash(expr)
    assert str(again) == str(expr)


@given(TREES, VALUES)
def test_binding_reads_text_alike(tree: Tree, values: dict[str, int]) -> None:
    """What a loaded model makes of the text of a dimension in its description."""
    try:
        expected = (expr := built(tree)).evaluate(values)
    except ZeroDivisionError:
        assume(False)
        return
    assert Dimension(str(expr)).evaluate(values) == expected


@given(TREES, TREES)
def test_sums_and_products_are_equal_in_any_order(left: Tree, right: Tree) -> None:
    try:
        a, b = built(left), built(right)
    except ZeroDivisionError:
        assume(False)
        return
    for one, other in ((a + b, b + a), (a * b, b * a), (a - b, -(b - a)), (a + a, 2 * a)):
        assert one == other
        assert hash(one) == hash(other)
        assert str(one) == str(other)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Expr.const(0), "0"),
        (Expr.const(-3), "-3"),
        (n + 1 - n, "1"),
        (n - n, "0"),
        (2 * n + n, "n * 3"),
        (1 + n, "n + 1"),
        (1 - n, "-n + 1"),
        (w * h, "h * w"),
        ((n + 1) * (n - 1), "n * n - 1"),
        ((n + h) * w, "h * w + n * w"),
        # Whole multiples leave the quotient, common factors cancel.
        ((w + 1) // 2, "(w + 1) floordiv 2"),
        ((w + 3) // 2, "(w + 1) floordiv 2 + 1"),
        ((w - 1) // 2, "(w + 1) floordiv 2 - 1"),
        ((4 * n + 6) // 2, "n * 2 + 3"),
        ((4 * n + 2) // 6, "(n * 2 + 1) floordiv 3"),
        ((4 * n + 3) // 6, "(n * 4 + 3) floordiv 6"),
        ((-n) // 1, "-n"),
        ((n * h) // n, "h"),
        (n // n, "1"),
        ((n // 2) // 3, "n floordiv 6"),
        ((n // 2 + 1) // 3, "(n + 2) floordiv 6"),
        ((n // 2 - 1) // 3, "(n + 4) floordiv 6 - 1"),
        ((n // 2 + h // 2) // 3, "(h floordiv 2 + n floordiv 2) floordiv 3"),
        (n // h, "n floordiv h"),
        (n // -2, "-n + n floordiv 2"),
        (n.ceildiv(2), "n - n floordiv 2"),
        (n % 2, "n mod 2"),
        (n % -2, "-n mod 2"),
        (Expr.const(7) // -2, "-4"),
        (Expr.const(7) % -2, "-1"),
        ((n + 2) % 2, "n mod 2"),
        ((2 * n) % 2, "0"),
        ((n * h) % n, "0"),
        (3 * (n % 2), "(n mod 2) * 3"),
        (h * (n // 2), "h * (n floordiv 2)"),
        # Of two that differ by a number one is always chosen.
        (minimum(n, n + 1), "n"),
        (maximum(n, n + 1, 3), "max(3, n + 1)"),
        (maximum(h, maximum(n, 2), 5), "max(5, h, n)"),
        (maximum(n, n), "n"),
        (minimum(7, 3, 5), "3"),
        (minimum(n, maximum(n, h)), "min(max(h, n), n)"),
    ],
)
def test_canonical_form(expr: Expr, text: str) -> None:
    assert str(expr) == text
    assert parse(text) == expr


def test_ceildiv_of_a_symbol_by_number_is_one_floordiv() -> None:
    assert n.ceildiv(2).evaluate({"n": 5}) == 3
    assert n.ceildiv(2).evaluate({"n": -5}) == -2


def test_numbers_equal_python_numbers() -> None:
    assert Expr.const(3) == 3
    assert hash(Expr.const(3)) == hash(3)
    assert {Expr.const(3), n} == {3, Expr.symbol("n")}
    assert n != 3
    assert n != "n"
    assert Expr.of(n) is n


def test_value_and_symbols() -> None:
    assert (n - n + 4).value == 4
    assert Expr.const(0).value == 0
    assert (n + 4).value is None
    assert maximum(n // h, w % 2).symbols == {"n", "h", "w"}
    assert (n - n).symbols == frozenset()


def test_lists() -> None:
    assert constants([1, Expr.const(2)]) == (1, 2)
    assert constants([1, n]) is None
    assert exprs([1, n]) == (Expr.const(1), n)
    assert product([2, n, 3]) == 6 * n
    assert product([]) == prod([])
    parser = Parser(Context(), "[n, 3, (w + 1) floordiv 2]")
    assert parse_exprs(parser) == (n, Expr.const(3), (w + 1) // 2)


def test_substitute_replaces_all_at_once() -> None:
    assert (n - h).substitute({"n": h, "h": n}) == h - n
    assert (n // 2 * h).substitute({"n": 7}) == 3 * h
    assert n.substitute({"w": 1}) is n


def test_evaluate_names_a_missing_symbol() -> None:
    with pytest.raises(KeyError, match="h"):
        (n * h).evaluate({"n": 2})


@pytest.mark.parametrize("operation", [Expr.__floordiv__, Expr.__mod__])
def test_division_by_zero(operation: Callable[[Expr, Expr], Expr]) -> None:
    with pytest.raises(ZeroDivisionError):
        operation(n, h - h)


def test_floordiv_and_mod_bind_like_products_from_the_left() -> None:
    assert parse("n * 2 floordiv 3") == (2 * n) // 3
    assert parse("n floordiv 3 * 2") == 2 * (n // 3)
    assert parse("n - h mod 2 + 1") == n - h % 2 + 1
    assert parse("-n * -2") == 2 * n
    assert parse("min(n, 2, h) - max(n)") == minimum(n, 2, h) - n
