"""bench/gains.py: what a pass is worth on the model that shows it best."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def test_table_has_the_best_model_of_each_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench import gains

    file = tmp_path / "gains.json"
    only = ["--only", "fold-control-flow,fuse-quantized", "--models", "1", "--seconds", "0.05"]
    assert gains.main(["forms=control_loop|quantized_dq_matmul", *only, "--json", str(file)]) == 0
    found = {own["name"]: own for own in json.loads(file.read_text())}
    assert found["fuse-quantized"]["model"] == "quantized_dq_matmul"
    assert found["fold-control-flow"]["model"] == "control_loop_once"
    assert found["fold-control-flow"]["rewrites"] == 1
    text = capsys.readouterr().out
    assert "fires nowhere: none" in text


def test_pass_that_fires_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    from bench import gains

    arguments = ["forms=control_if_constant", "--only", "fuse-attention", "--seconds", "0.05"]
    assert gains.main(arguments) == 1
    assert "fires nowhere: fuse-attention" in capsys.readouterr().out
