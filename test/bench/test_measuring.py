"""Statistics and tables of the measurements."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.measuring import (
    Plan,
    Summary,
    alternate,
    gain,
    geometric_mean,
    markdown_table,
    median_interval,
    memory_status,
    plan_for,
    text_table,
)


def test_alternate_takes_turns() -> None:
    calls: list[str] = []

    def contender(name: str, seconds: float) -> float:
        calls.append(name)
        return seconds

    contenders = {"a": lambda: contender("a", 1.0), "b": lambda: contender("b", 2.0)}
    times = alternate(contenders, Plan(rounds=2, block=2, uncounted=1))
    assert {"".join(calls[:6]), "".join(calls[6:])} <= {"aaabbb", "bbbaaa"}
    assert times == {"a": [1.0] * 4, "b": [2.0] * 4}


def test_alternate_has_all_orders() -> None:
    calls: list[str] = []
    contenders = {name: lambda name=name: float(calls.append(name) or 1) for name in "abc"}
    alternate(contenders, Plan(rounds=60))
    rounds = {"".join(calls[k : k + 3]) for k in range(0, 180, 3)}
    assert rounds == {"abc", "acb", "bac", "bca", "cab", "cba"}


def test_plan_fills_the_time() -> None:
    plan = plan_for([1e-3, 3e-3], seconds=10)
    assert plan.block == 20
    assert plan.rounds * (21 * 4e-3 + 2 * plan.pause) == pytest.approx(10, rel=0.01)


def test_plan_for_slow_contenders_has_some_rounds() -> None:
    assert plan_for([5.0, 7.0], seconds=1) == Plan(5, 2, 1, plan_for([1.0], 1).pause)


def test_summary() -> None:
    summary = Summary.of([float(k) for k in range(11, 0, -1)])
    assert summary.data() == {"median": 6.0, "p10": 2.0, "minimum": 1.0, "runs": 11}


def test_median_interval_is_that_of_the_tables() -> None:
    # Tables of the sign test say: the 2nd and the 9th of 10, the 40th and the 61st of 100.
    assert median_interval(range(1, 11)) == (2, 9)
    assert median_interval(range(100, 0, -1)) == (40, 61)


def test_median_interval_of_few_values_is_everything() -> None:
    assert median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert median_interval([2.0]) == (2.0, 2.0)


def test_gain_of_paired_noise() -> None:
    # The noise of a round is common to both, so that the interval is narrow.
    noise = np.random.default_rng(3).uniform(1, 2, 301)
    found = gain((0.9 * noise).tolist(), noise.tolist())
    assert found.saved == pytest.approx(0.1)
    assert found.low == pytest.approx(0.1)
    assert found.high == pytest.approx(0.1)


def test_gain_of_equals_holds_zero() -> None:
    rng = np.random.default_rng(4)
    found = gain(rng.uniform(1, 2, 200).tolist(), rng.uniform(1, 2, 200).tolist())
    assert found.low < 0 < found.high
    assert found.low <= found.saved <= found.high


def test_geometric_mean() -> None:
    assert geometric_mean([0.5, 8.0]) == pytest.approx(2)
    assert math.isnan(geometric_mean([]))


def test_tables() -> None:
    head, rows = ("name", "ms"), [["a", "1.25"], ["longer", "10"]]
    assert text_table(head, rows) == "name      ms\na       1.25\nlonger    10"
    assert markdown_table(head, rows) == "\n".join(
        ["| name | ms |", "| --- | ---: |", "| a | 1.25 |", "| longer | 10 |"]
    )


def test_memory_status() -> None:
    assert memory_status("VmHWM") >= memory_status("RssAnon") > 1_000_000
