"""The random choices of `bench.budget`, and what it tells of one network."""

from __future__ import annotations

from pathlib import Path

from bench.accuracy import CASES
from bench.budget import measured, random_choices
from lowerdeck.budgets import Budget
from lowerdeck.passes.machinery.ranges import LayerRange, Ranges


def test_choices_are_different() -> None:
    """The same each time, and no more than there are."""
    layers = tuple(LayerRange(name, -1.0, 1.0) for name in "ab")
    ranges = Ranges("model", layers)
    few, all_ = list(random_choices(ranges, 4)), list(random_choices(ranges, 50))
    assert few == all_[:4]
    assert len({each.text for each in all_}) == 3 * 3
    assert {(each.precision, each.bytes) for one in all_ for each in one.layers} == {
        ("f32", 1),
        ("int8", 1),
        ("int8", 2),
    }


def test_one_network() -> None:
    """A budget that nothing exceeds: both choices meet it, and all have times."""
    case = CASES["digits"](Path())
    row = measured("digits", case, Budget.of("error", 1.0), 2, 0.1)
    assert row.choices == 2
    assert 0 < row.lost < 0.1
    assert min(row.f32, row.auto, row.best, row.searched) > 0
    assert len(row.cells()) == 8
