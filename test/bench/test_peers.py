"""The comparison with other runtimes: what is computed from times, and its tables."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bench.measuring import markdown_table, text_table
from bench.peer_runs import BEFORE, OPENVINO, ORT, OURS, OURS_IN_C
from bench.peers import is_exact, is_short, ratio, ratios, render, share_of_peak
from lowerdeck.tools.peak import MultiplyAdds


def times(median: float) -> dict[str, Any]:
    return {"median": median, "p10": median / 2, "minimum": median / 4, "runs": 9}


def run(ours: float, ort: float, openvino: float | None) -> dict[str, Any]:
    found = {OURS: times(ours), OURS_IN_C: times(ours * 0.9), ORT: times(ort)}
    return {
        "times": found if openvino is None else {**found, OPENVINO: times(openvino)},
        "failures": {} if openvino is not None else {OPENVINO: "no"},
        "peak_flops": 1e11,
        "errors": {OURS: 1e-7, ORT: 2e-7, "largest value": 3.0},
        "python_seconds": 1.5,
        "cc_seconds": 2.25,
    }


def model(name: str, run_: dict[str, Any], workspace: int | str = 2048) -> dict[str, Any]:
    peer = {"resident": 3_000_000, "peak": 4_000_000}
    return {
        "name": name,
        "runs": {"1": run_},
        "multiply_adds": 10_000_000,
        "is_exact": True,
        "memory": {
            "workspace": workspace,
            "live": 1024 if isinstance(workspace, int) else None,
            "row_major": 512 if isinstance(workspace, int) else None,
            "weights": 5_000_000,
            "example": 6_000_000 if isinstance(workspace, int) else None,
            ORT: peer,
            **({} if run_["failures"] else {OPENVINO: peer}),
        },
    }


def test_ratio_is_to_the_better_peer() -> None:
    assert ratio(run(0.002, 0.005, 0.003), "median") == pytest.approx(1.5)
    assert ratio(run(0.002, 0.003, 0.005), "p10") == pytest.approx(1.5)
    assert ratio(run(0.002, 0.003, None), "median") == pytest.approx(1.5)


def test_a_model_that_no_peer_runs_has_no_ratio() -> None:
    alone = run(0.002, 0.003, None)
    del alone["times"][ORT]
    assert math.isnan(ratio(alone, "median"))
    assert ratios([alone, run(1, 2, 3)], "median") == [2]


def test_short_models() -> None:
    assert is_short(run(0.001, 0.00019, 0.003))
    assert not is_short(run(0.0009, 0.0008, 0.0007))


def test_share_of_peak() -> None:
    assert share_of_peak(25, seconds=2.0, peak_flops=100.0) == 0.25


REPORT = {
    "machine": {"cpu": "C", "cpus": 2, "compiler": "gcc", "load": [1, 1, 1], "load after": [2]},
    "versions": {OURS: "0", ORT: "1"},
    "models": [
        model("large", run(0.002, 0.005, 0.003)),
        model("medium", run(0.002, 0.012, None), "n * 4"),
        model("small", run(0.0001, 0.0002, 0.0003)),
    ],
}


def test_tables() -> None:
    text = render(REPORT, text_table)
    lines = text.splitlines()
    assert "C, 2 CPUs; gcc; load 1.0 before, 2.0 after; lowerdeck 0, onnxruntime 1" in lines
    # sqrt(1.5 * 6): the small model is not in the mean.
    title = "1 thread: the better peer takes 3.000 times as long (geometric mean over 2 models;"
    assert any(line.startswith(title) for line in lines)
    cells = [line.split() for line in lines]
    long = "large 2.000 1.000 1.800 5.000 2.500 3.000 1.500 1.500 1.500 10.0% 6.7%"
    assert long.split() in cells
    assert "medium 2.000 1.000 1.800 12.000 6.000 - - 6.000 6.000 10.0% 1.7%".split() in cells
    assert "large 6.00 3.00 4.00 3.00 4.00 5.00 0.00 0.00 2.000 4.000".split() in cells
    assert "medium - 3.00 4.00 - - 5.00 - - - -".split() in cells
    assert "small 1 1.50 2.25".split() in cells
    assert text.index("less than 0.2 ms") < text.index("small") < text.index("max|y - y64|")


def test_code_from_before() -> None:
    faster, slower = run(0.002, 0.005, 0.003), run(0.004, 0.008, None)
    faster["times"][BEFORE], slower["times"][BEFORE] = times(0.004), times(0.002)
    alone = run(0.001, 0.002, 0.003)
    models = [model(n, r) for n, r in (("up", faster), ("down", slower), ("alone", alone))]
    text = render({**REPORT, "models": models}, text_table)
    cells = [line.split() for line in text.splitlines()]
    assert "1 thread: 1.000 times as fast as before (geometric mean over 2 models;" in text
    assert "up 4.000 2.000 2.000 2.000 0.750 1.500".split() in cells
    assert "down 2.000 4.000 0.500 0.500 4.000 2.000".split() in cells
    assert "times as fast as before" not in render(REPORT, text_table)


def test_markdown() -> None:
    text = render(REPORT, markdown_table)
    assert "| large | 1.00e-07 | 2.00e-07 | - | 3.00e+00 | 0.50 | pass | 3.00e-05 | pass |" in text


def test_errors_have_two_limits() -> None:
    slow = model("m", run(1, 2, 3))
    # Of all runs the largest: 2 threads may add in another order.
    slow["runs"]["2"] = {"errors": {OURS: 2e-5, ORT: 1e-6, "largest value": 3.0}}
    assert not is_exact(slow, strict=True)
    assert is_exact(slow, strict=False)
    slow["runs"]["2"]["errors"][OURS] = 3.1e-5
    assert not is_exact(slow, strict=False)
    slow["runs"]["2"]["errors"][ORT] = 1e-5
    assert is_exact(slow, strict=True)


def test_peak() -> None:
    assert MultiplyAdds().peak_flops(2, seconds=0.05) > 1e8
