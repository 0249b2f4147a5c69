"""The work of passes is linear in the ops; how that is measured."""

from __future__ import annotations

from cProfile import Profile
from pstats import Stats
from typing import Any, cast

import pytest

from bench.scaling_passes import KINDS, Measurement, growths, measure, render


def calls(kind: str, count: int) -> tuple[float, int]:
    """Calls of functions by op, which do not depend on the machine, and the ops."""
    module = KINDS[kind](count)
    profile = Profile()
    found = profile.runcall(measure, kind, module)
    return cast(Any, Stats(profile)).total_calls / found.ops, found.ops


@pytest.mark.parametrize("kind", KINDS)
def test_work_is_linear(kind: str) -> None:
    calls(kind, 24)  # what happens once
    # A round of programs has some hundred ops.
    sizes = (100, 1000) if kind == "programs" else (60, 300)
    (few, ops), (many, more) = (calls(kind, size) for size in sizes)
    assert more > 2.5 * ops
    assert many < 1.25 * few


def test_growth_is_of_the_time_per_op() -> None:
    found = [
        Measurement("chain", 10, {"cse": 1.0, "fold": 3.0}),
        Measurement("chain", 100, {"cse": 10.0, "fold": 70.0}),
    ]
    assert growths(found) == {"chain": pytest.approx(2.0)}
    rows = render(found).splitlines()
    assert [row.split()[:2] for row in rows[-2:]] == [["chain", "all"], ["chain", "fold"]]
    assert rows[-1].split()[-1] == "2.33"
