"""Estimates beside measurements: which candidates are tried, and what is computed from times."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bench.estimates import (
    FAR,
    Compared,
    Measured,
    Way,
    compare,
    measure,
    render_compared,
    render_measured,
    sample,
)
from bench.measuring import rank_correlation
from lowerdeck.compiler import CompileOptions
from models.operator_forms import forms


def way(cycles: float, strategy: str = "direct") -> Way:
    return Way(cycles, strategy, f"4 -> 4: {strategy} {cycles:g}")


def test_rank_correlation() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 21, 1e9]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    # Places 1.5, 1.5, 3 beside 1, 2, 3.
    assert rank_correlation([5, 5, 7], [1, 2, 3]) == pytest.approx(math.sqrt(3) / 2)
    assert math.isnan(rank_correlation([1, 1], [1, 2]))
    assert math.isnan(rank_correlation([1], [2]))


def test_the_nearest_and_the_best_of_each_strategy_are_tried() -> None:
    ways = [way(k, "winograd" if k > 50 else "direct") for k in range(100)]
    cycles = [each.cycles for each in sample(ways, 8)]
    assert cycles[:2] == [0, 51]
    assert 1 in cycles
    assert cycles[-1] == 99
    assert len(set(cycles)) == 8
    assert [each.cycles for each in sample(ways[:3], 8)] == [0, 1, 2]
    assert sample([way(1), way(1)], 8) == [way(1)]


def test_choices() -> None:
    good = Compared("m", "conv_0", "conv", [(way(1), 1.0), (way(2), 1.5), (way(3), 2.0)], [3, 1, 2])
    fair = Compared("m", "conv_1", "conv", [(way(1), 1.2), (way(2), 1.0)], [2, 1])
    ways = [(way(1), 4.0), (way(2, "rows"), 1.0), (way(3), 2.0)]
    poor = Compared("m", "conv_2", "conv", ways, [6, 5, 4])
    assert [each.ratio_by_computed for each in (good, fair, poor)] == [1.5, 1, 2]
    assert [each.ratio for each in (good, fair, poor)] == [1, 1.2, 4]
    assert poor.ratio > FAR
    assert poor.fastest == way(2, "rows")
    lines = render_compared([good, fair, poor]).splitlines()
    cells = ["conv_2", "m", "conv", "3", "4000000.0", "4.00", "-0.50", "2.00", "0.50"]
    assert lines[1].split()[:9] == cells
    chosen = "the chosen candidate of 1 (33.3%) is within 10% of the best, of"
    assert lines[-2].startswith(f"by estimates, 3 kernels: {chosen} 2 (66.7%) ")
    assert lines[-1].startswith(f"by computed cycles, 3 kernels: {chosen} 1 (33.3%) ")
    assert lines[-1].endswith("; 1.442 times the best (geometric mean), at most 2.00")


def test_correlations_by_operator() -> None:
    kernels = [
        Measured("m", f"k{k}", kind, "4 -> 4: rows", estimated, cycles, -k, 1.1 * cycles)
        for k, (kind, estimated, cycles) in enumerate(
            [("conv", 10, 20), ("conv", 20, 30), ("conv", 30, 90), ("map", 5, 5), ("map", 1, 9)]
        )
    ]
    lines = [line.split() for line in render_measured(kernels).splitlines()]
    computed = ["0.91", "0.91", "0.91", "100%"]
    conv = ["conv", "3", "1.000", "-1.000", "1.000", "1.60", "2.00", "2.80", "0%", *computed]
    assert conv in lines
    assert [
        "map",
        "2",
        "-1.000",
        "-1.000",
        "1.000",
        "1.80",
        "5.00",
        "8.20",
        "50%",
        *computed,
    ] in lines


def test_a_form(tmp_path: Path) -> None:
    name = "matmul_64x64x64"
    model, inputs = forms()[name].build()
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    options = CompileOptions(profile=True)
    (kernel,) = measure(path, inputs, options, 0.0, 4e9)
    assert (kernel.model, kernel.kind) == (name, "matmul")
    assert kernel.estimated > 64**3 / 64
    assert kernel.computed > 64**3 / 64
    assert np.isfinite(kernel.cycles)
    (choice,) = compare(path, inputs, options, 2, 0.0)
    assert choice.times[0][0].schedule == kernel.schedule
    assert len(choice.times) == len(choice.computed) == 2
    assert choice.ratio >= 1
