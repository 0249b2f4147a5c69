"""The models and the tables of `bench/compile_time.py`."""

from __future__ import annotations

from pathlib import Path

from bench.compile_time import LARGE, SMALL, Times, best, measure, model_table, pass_table

ROOT = Path(__file__).parents[2]


def times(python: float, cc: float = 0.0) -> Times:
    return Times(python, 0.1, cc, 50_000_000, {"": 0.2, "fold": python - 0.2})


def test_there_are_twelve_models_of_either_size() -> None:
    assert (len(SMALL), len(LARGE)) == (12, 12)
    assert not SMALL.keys() & LARGE.keys()


def test_the_best_run_has_the_least_times() -> None:
    found = best([times(1.0, 3.0), times(0.5, 4.0), times(0.7, 2.0)])
    assert (found.python, found.cc) == (0.5, 2.0)


def test_tables_compare_with_what_was_before() -> None:
    now, before = {"digits": times(0.5)}, {"digits": times(2.0)}
    assert model_table(now, before).splitlines()[1].split()[-2:] == ["0.25", "50"]
    assert "ratio" not in model_table(now, {})
    assert [line.split() for line in pass_table(now, before).splitlines()[1:]] == [
        ["fold", "0.30", "1.80"],
        ["between", "0.20", "0.20"],
    ]


def test_passes_take_the_time_of_a_compilation() -> None:
    model = ROOT / "examples" / "digits" / "digits.onnx"
    found = measure(str(model), "c99", cc=False, profiled=True)
    assert {"import", "fold", "lower-kernels", "emit C"} <= found.passes.keys()
    assert 0 < sum(found.passes.values()) <= found.python
    assert any("walking.py" in name for name in found.functions)
