"""The demo: its networks agree with their frameworks, and it fails when one does not."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from lowerdeck.digits import demo
from lowerdeck.tools.lowerdeck import main

pytestmark = pytest.mark.usefixtures("optimized_c")

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo is started in an empty folder, and measures once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "REPETITIONS", 1)


def test_networks_agree_with_their_frameworks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    for accuracy in ("98.89%", "98.06%", "98.61%"):
        assert accuracy in shown
    assert shown.count("360 of 360") == 3
    for name in ("digits", "digits_lstm", "digits_lenet"):
        assert (Path("build") / name / f"{name}.c").exists()


def test_a_difference_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("digits.onnx", "held_back.npz"):
        shutil.copy(DIGITS / name, tmp_path)
    logits = np.load(DIGITS / "digits.npz")["logits"]
    logits[17, 3] += 1e-3
    np.savez(tmp_path / "digits.npz", logits=logits)
    monkeypatch.setattr(demo, "HERE", tmp_path)
    monkeypatch.setattr(demo, "EXAMPLES", demo.EXAMPLES[:1])
    assert main(["demo", "-o", "c"]) == 1
    assert "digits.onnx: the C and PyTorch disagree" in capsys.readouterr().err
