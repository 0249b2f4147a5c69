"""Decision diagrams of predicates, against truth tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowerdeck.passes.control_flow.predicates import FALSE, TRUE, Predicates

ATOMS = 4
ROWS = list(product((False, True), repeat=ATOMS))
"""Every way to choose the atoms."""

Table = tuple[bool, ...]
"""What a predicate is in each of `ROWS`."""

Formula: TypeAlias = "int | str | tuple[Formula, ...]"
"""The number of an atom, "no" or "yes", or an operation by the number of its operands."""

formulas: st.SearchStrategy[Formula] = st.recursive(
    st.one_of(st.integers(0, ATOMS - 1), st.sampled_from(("no", "yes"))),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(("and", "or")), inner, inner),
        st.tuples(st.just("choice"), inner, inner, inner),
    ),
    max_leaves=12,
)


def build(predicates: Predicates, formula: Formula) -> tuple[int, Table]:
    """The predicate of a formula, and its truth table by Python's own operators."""
    if isinstance(formula, int):
        return predicates.atom(formula, f"a{formula}"), tuple(row[formula] for row in ROWS)
    if isinstance(formula, str):
        return (TRUE if formula == "yes" else FALSE), (formula == "yes",) * len(ROWS)
    name, *operands = formula
    numbers, tables = zip(*(build(predicates, part) for part in operands), strict=True)
    combine, compute = OPERATIONS[str(name)]
    return combine(predicates, *numbers), tuple(map(compute, zip(*tables, strict=True)))


Row = tuple[bool, ...]

OPERATIONS: dict[str, tuple[Callable[..., int], Callable[[Row], bool]]] = {
    "not": (Predicates.negate, lambda x: not x[0]),
    "and": (Predicates.both, lambda x: x[0] and x[1]),
    "or": (Predicates.either, lambda x: x[0] or x[1]),
    "choice": (Predicates.choice, lambda x: x[1] if x[0] else x[2]),
}


def fresh() -> Predicates:
    """Predicates whose atoms are ordered by number."""
    predicates = Predicates()
    for atom in range(ATOMS):
        predicates.atom(atom, f"a{atom}")
    return predicates


@settings(max_examples=80, deadline=None)
@given(formulas, formulas)
def test_equal_numbers_are_equal_functions(left: Formula, right: Formula) -> None:
    predicates = fresh()
    (a, one), (b, other) = build(predicates, left), build(predicates, right)
    assert (a == b) == (one == other)
    assert (a == TRUE, a == FALSE) == (all(one), not any(one))


@settings(max_examples=80, deadline=None)
@given(formulas, formulas)
def test_relations_hold_in_every_row(left: Formula, right: Formula) -> None:
    predicates = fresh()
    (a, one), (b, other) = build(predicates, left), build(predicates, right)
    pairs = list(zip(one, other, strict=True))
    assert predicates.implies(a, b) == all(y for x, y in pairs if x)
    assert predicates.disjoint(a, b) == (not any(x and y for x, y in pairs))


@settings(max_examples=40, deadline=None)
@given(st.lists(formulas, max_size=5))
def test_many_are_combined_like_two(parts: list[Formula]) -> None:
    predicates = fresh()
    built = [build(predicates, part) for part in parts]
    tables = [table for _, table in built]
    rows = list(zip(*tables, strict=True)) if tables else [()] * len(ROWS)
    numbers = [number for number, _ in built]
    assert predicates.all(numbers) == number_of(predicates, tuple(map(all, rows)))
    assert predicates.any(numbers) == number_of(predicates, tuple(map(any, rows)))


def number_of(predicates: Predicates, table: Table) -> int:
    """The predicate of a truth table, row by row."""
    result = FALSE
    for row, holds in zip(ROWS, table, strict=True):
        if holds:
            literals = enumerate(predicates.atom(atom, f"a{atom}") for atom in range(ATOMS))
            term = TRUE
            for atom, literal in literals:
                term = predicates.both(term, literal if row[atom] else predicates.negate(literal))
            result = predicates.either(result, term)
    return result


@settings(max_examples=40, deadline=None)
@given(formulas)
def test_atoms_are_those_that_matter(formula: Formula) -> None:
    predicates = fresh()
    number, table = build(predicates, formula)
    values = dict(zip(ROWS, table, strict=True))
    matter = [
        atom
        for atom in range(ATOMS)
        if any(values[row] != values[flipped(row, atom)] for row in ROWS)
    ]
    assert predicates.atoms_of(number) == matter


def flipped(row: Table, atom: int) -> Table:
    """The same choice but for one atom."""
    return (*row[:atom], not row[atom], *row[atom + 1 :])


@settings(max_examples=40, deadline=None)
@given(formulas)
def test_descriptions_mean_the_predicate(formula: Formula) -> None:
    predicates = fresh()
    number, table = build(predicates, formula)
    text = predicates.describe(number)
    if text.endswith(" or ..."):
        told = [row for row, holds in zip(ROWS, table, strict=True) if holds]
        assert all(row in told for row in rows_of(text.removesuffix(" or ...")))
    else:
        assert tuple(row in set(rows_of(text)) for row in ROWS) == table


def rows_of(text: str) -> Iterator[Table]:
    """The rows in which a description holds."""
    for row in ROWS:
        names = {f"a{atom}": value for atom, value in enumerate(row)}
        if eval(text.replace("always", "True").replace("never", "False"), {}, names):
            yield row


def test_long_chains_do_not_recurse() -> None:
    """An exclusive or of many atoms: each has two nodes, whatever the order of its parts."""
    predicates = Predicates()
    count = 5000
    atoms = [predicates.atom(k, f"a{k}") for k in range(count)]
    parity = FALSE
    for atom in reversed(atoms):
        parity = predicates.choice(atom, predicates.negate(parity), parity)
    assert predicates.atoms_of(parity) == list(range(count))
    assert predicates.negate(predicates.negate(parity)) == parity


@pytest.mark.parametrize(("number", "text"), [(TRUE, "always"), (FALSE, "never")])
def test_constants_have_words(number: int, text: str) -> None:
    assert Predicates().describe(number) == text


def test_long_descriptions_are_cut() -> None:
    predicates = Predicates()
    either = predicates.any(predicates.atom(k, f"a{k}") for k in range(9))
    assert predicates.describe(either).startswith("a0 or not a0 and a1 or ")
    assert predicates.describe(either).endswith(" or ...")
