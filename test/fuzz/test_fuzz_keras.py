"""The fuzzer of Keras models, without Keras: what it says of models that were not made as drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.fuzz_keras import main


def test_what_keras_refused_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "4.no").write_text("IndexError: list index out of range")
    (tmp_path / "5.drawn").write_text("dense: ValueError: no\nimage: ValueError: too small")
    (tmp_path / "5.no").write_text("ValueError: nothing left")
    (tmp_path / "9.no").write_text("not of these seeds")
    assert main(["--made", str(tmp_path), "--seed", "4", "--models", "2"]) == 0
    text = capsys.readouterr().out
    assert "4: not made: IndexError: list index out of range" in text
    assert "5: layer refused by Keras: image: ValueError: too small" in text
    assert text.splitlines()[-1] == "2 not made, 2 layer refused by Keras"


def test_seeds_of_which_nothing_is_there(tmp_path: Path) -> None:
    (tmp_path / "4.no").write_text("IndexError: list index out of range")
    with pytest.raises(SystemExit, match="nothing of 2 seeds, the first is 5"):
        main(["--made", str(tmp_path), "--seed", "4", "--models", "3"])
