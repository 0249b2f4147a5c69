"""Damaged files of every format end in C or in a clear error; and what does not is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fuzz import fuzz_files
from fuzz.file_mutants import mutant
from fuzz.file_seeds import find_seeds
from fuzz.file_trees import changed, neighbors, tree_of, written
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer

FORMATS = "onnx,tf1,saved-model,checkpoint,caffe,mlir,weights"


def test_some_mutants(capfd: pytest.CaptureFixture[str]) -> None:
    status = fuzz_files.main(["--mutants", "200", "--quick", "--formats", FORMATS])
    out = capfd.readouterr().out
    assert status == 0, out
    assert "200 mutants, 0 distinct findings" in out


def test_mutants_are_the_same_each_time() -> None:
    seeds = find_seeds(["onnx", "caffe"], quick=True)
    for number in range(40):
        one, again = mutant(seeds, 0, number), mutant(seeds, 0, number)
        assert one == again
    assert mutant(seeds, 0, 1).files != mutant(seeds, 1, 1).files


def test_trees_are_written_as_they_are_read_and_changed_at_one_place() -> None:
    seeds = {seed.format: seed for seed in find_seeds(["tflite", "mxnet"], quick=True)}
    for seed in seeds.values():
        (file,) = (name for name in seed.files if name.endswith((".tflite", ".json")))
        same = replace(seed, files={**seed.files, file: written(seed, file, tree_of(seed, file))})
        tree = tree_of(same, file)
        assert tree == tree_of(seed, file)
        steps = neighbors(tree)[::3]
        others = [changed(tree, path, step) for path, _, step in steps]
        assert tree == tree_of(seed, file)
        assert sum(other != tree for other in others) > 0.9 * len(steps) > 20


def _broken(self: OnnxLegalizer, name: Any) -> Any:
    """A fault of the compiler."""
    del self, name
    raise IndexError("a fault")


def _endless(self: OnnxLegalizer, name: Any) -> Any:
    del self, name
    while True:
        pass


@pytest.mark.parametrize(
    ("function", "found"), [(_broken, "IndexError"), (_endless, "over the time")]
)
def test_faults_are_found(
    function: Any,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(OnnxLegalizer, "operand", function)
    monkeypatch.setattr(fuzz_files, "CPU_SECONDS", 0.2)
    monkeypatch.setattr(fuzz_files, "_SHRINK_SECONDS", 0.2)
    arguments = ["--mutants", "4", "--quick", "--formats", "onnx", "--out", str(tmp_path)]
    assert fuzz_files.main(arguments) == 1
    assert found in capfd.readouterr().out
    assert list(tmp_path.glob("*/finding.json"))
    assert list(tmp_path.glob("*/model.onnx"))
