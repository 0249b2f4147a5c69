"""The simulation of campaigns: its limits are those that can be computed."""

from __future__ import annotations

import pytest

from bench.scale import Cluster, Work, simulate, table


def test_limits() -> None:
    even = Work("even", 1000, 2.0, 0.0)
    one = Cluster(1, 1, 0.0, 0.0, 0.0)
    assert simulate(even, one) == pytest.approx(2000)
    assert simulate(even, Cluster(10, 10, 0.0, 0.0, 0.0)) == pytest.approx(20)
    assert simulate(even, Cluster(10, 10, 0.0, 7.0, 0.0)) == pytest.approx(27)
    # With more places than tasks, the longest task is left; alone, a node is one place.
    assert simulate(even, Cluster(1000, 10, 0.0, 0.0, 0.0)) == pytest.approx(2)
    alone = Work("alone", 1000, 2.0, 0.0, is_alone=True)
    assert simulate(alone, Cluster(10, 10, 0.0, 0.0, 0.0)) == pytest.approx(200)
    # The driver hands out one task after the other.
    assert simulate(even, Cluster(1000, 10, 0.5, 0.0, 0.0)) == pytest.approx(502)


def test_failures_cost_time_and_lose_nothing() -> None:
    work = Work("w", 200, 60.0, 0.0)
    without, few, many = (
        simulate(work, Cluster(2, 4, 0.0, 10.0, failures)) for failures in (0.0, 0.5, 20.0)
    )
    assert without < few < many


def test_table() -> None:
    text = table([Work("w", 80, 1.0, 0.0)], [Cluster(n, 8, 0.0, 0.0, 0.0) for n in (1, 10)])
    assert "10 s (100%)" in text
    assert "1 s (100%)" in text
