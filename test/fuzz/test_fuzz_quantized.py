"""The fuzzer of quantized graphs: a few graphs, that it sees what is wrong, and their exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowerdeck
from fuzz import fuzz_quantized
from fuzz.fuzz_quantized import CWay, check, optimized_results, prepared
from fuzz.quantized_graphs import random_program

SEEDS = (3, 8, 13)


def test_graphs_of_fixed_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {seed: random_program(seed) for seed in SEEDS}
    assert [item.status for item in check(programs, [CWay("c99")])] == ["ok"] * len(SEEDS)

    def other(program: Any) -> fuzz_quantized.Ready:
        found = prepared(program)
        want = {name: np.asarray(value) ^ 1 for name, value in found.want.items()}
        return fuzz_quantized.Ready(found.module, want)

    monkeypatch.setattr(fuzz_quantized, "prepared", other)
    assert [item.status for item in check({3: programs[3]}, [CWay("c99")])] == ["wrong"]


def test_nothing_is_well_that_was_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fuzz_quantized.main(["--graphs", "1", "--ways", "c99:no-such-compiler"])
    said = capsys.readouterr().err
    assert "not compared: c99, no-such-compiler, 1 thread(s): no-such-compiler not found" in said
    assert "no C of these targets and compilers runs here" in said


def test_graphs_are_what_their_seeds_say() -> None:
    one, other = (random_program(5) for _ in range(2))
    assert one.model == other.model
    assert all((one.feed[name] == other.feed[name]).all() for name in one.feed)


@pytest.mark.parametrize("seed", SEEDS)
def test_exports_give_the_same_bytes(tmp_path: Path, seed: int) -> None:
    """When they are read again; onnxruntime may go by one step where it computes in floats."""
    ort = pytest.importorskip("onnxruntime")
    program = random_program(seed)
    source, path = (str(tmp_path / name) for name in ("source.onnx", "export.onnx"))
    Path(source).write_bytes(program.model.SerializeToString())
    lowerdeck.export(source, path)
    want, again = prepared(program).want, optimized_results(path, program.feed)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(list(want), dict(program.feed))
    for value, (name, expected) in zip(found, want.items(), strict=True):
        np.testing.assert_array_equal(again[name], expected)
        apart = np.abs(value.astype(np.int64) - expected)
        assert apart.max(initial=0) <= 1
