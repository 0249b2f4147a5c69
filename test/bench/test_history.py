"""The benchmarks of the history run, and record what the folders hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.history.benchmarks import networks
from bench.history.benchmarks.networks import Networks

MODEL, TARGET = "digits_lenet.prototxt", "c99"


def test_one_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(networks, "MODELS", [MODEL])
    monkeypatch.setattr(networks, "TARGETS", [TARGET])
    suite = Networks()
    seconds = suite.setup_cache()
    suite.setup(seconds, MODEL, TARGET)
    suite.time_run(seconds, MODEL, TARGET)
    assert suite.track_compile_time(seconds, MODEL, TARGET) > 0
    folder = tmp_path / "digits_lenet-c99"
    weights = folder / "digits_lenet.weights"
    assert suite.track_weights(seconds, MODEL, TARGET) == weights.stat().st_size
    source = folder / "digits_lenet.c"
    assert suite.track_source(seconds, MODEL, TARGET) == source.stat().st_size
    arena = json.loads((folder / "digits_lenet.json").read_text())["memory"]["arena"]
    assert suite.track_workspace(seconds, MODEL, TARGET) == arena + 64


def test_units_are_told() -> None:
    assert vars(Networks.track_compile_time)["unit"] == "CPU seconds"
    assert vars(Networks.track_weights)["unit"] == "bytes"
