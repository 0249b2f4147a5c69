"""The demo: its networks agree with their frameworks, and it fails when one does not."""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program as a module, with a working folder of its own."""
    spec = importlib.util.spec_from_file_location("digits_demo", DIGITS / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "digits_demo", module)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "REPETITIONS", 1)
    return module


def test_networks_agree_with_their_frameworks(
    demo: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main() == 0
    shown = capsys.readouterr().out
    for accuracy in ("98.89%", "98.06%", "98.61%"):
        assert accuracy in shown
    assert shown.count("360 of 360") == 3
    for name in ("digits", "digits_lstm", "digits_lenet"):
        assert (Path("build") / name / f"{name}.c").exists()


def test_a_difference_is_an_error(
    demo: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("digits.onnx", "held_back.npz"):
        shutil.copy(DIGITS / name, tmp_path)
    logits = np.load(DIGITS / "digits.npz")["logits"]
    logits[17, 3] += 1e-3
    np.savez(tmp_path / "digits.npz", logits=logits)
    monkeypatch.setattr(demo, "HERE", tmp_path)
    monkeypatch.setattr(demo, "EXAMPLES", demo.EXAMPLES[:1])
    assert demo.main() == 1
    assert "digits.onnx: the C and PyTorch disagree" in capsys.readouterr().err
