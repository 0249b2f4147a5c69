"""TensorFlow Lite models beside a stand-in for LiteRT."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import tflite_peer
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends import load_model

COUNTER = Path(__file__).parents[1] / "frontends" / "tflite_models" / "counter.tflite"


class Interpreter:
    """Gives what the model does in its first call, and an error."""

    error = 0.0

    def __init__(self, path: str, num_threads: int, **more: object) -> None:
        del path, num_threads, more
        self.x: Any = None

    def allocate_tensors(self) -> None:
        pass

    def get_input_details(self) -> list[dict[str, Any]]:
        return [{"index": 0}]

    def get_output_details(self) -> list[dict[str, Any]]:
        return [{"index": 1}]

    def set_tensor(self, index: int, array: Any) -> None:
        self.x = array

    def invoke(self) -> None:
        pass

    def get_tensor(self, index: int) -> Any:
        found = Calls(load_model(COUNTER))({"x": self.x})["sum"]
        return np.asarray(found) + np.float32(self.error)


def test_ratios_and_differences(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Module:
        Interpreter: Any = Interpreter

    def module(name: str) -> Any:
        return Module

    monkeypatch.setattr(tflite_peer, "import_module", module)
    arguments = [str(COUNTER), "--threads", "1", "--time", "0.01"]
    first = tflite_peer.main(arguments)
    text = capsys.readouterr().out
    assert "counter" in text
    assert "1 thread: " in text
    monkeypatch.setattr(Interpreter, "error", 5.0)
    assert tflite_peer.main(arguments) == 1
    assert first == 0


def test_what_is_apart() -> None:
    result = tflite_peer.Result("m")
    tflite_peer.compare(result, np.array([1, 5], np.int8), np.array([1, 3], np.int8))
    tflite_peer.compare(result, np.array([2.0], np.float32), np.array([4.0], np.float32))
    assert (result.steps, result.apart) == (2, 0.5)
    tflite_peer.compare(result, np.zeros(2, np.float32), np.zeros(3, np.float32))
    assert result.apart == float("inf")
    assert result.ratio(1) is None


def test_reference_kernels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Wrong(Interpreter):
        error = 1e-2

    class Rough(Interpreter):
        def __init__(self, path: str, num_threads: int, **more: object) -> None:
            super().__init__(path, num_threads)
            self.error = 1e-2 if more["experimental_op_resolver_type"] == 1 else 3e-2

    class Unable(Interpreter):
        def allocate_tensors(self) -> None:
            raise RuntimeError("no such operator\nsee elsewhere")

    class Module:
        Interpreter: Any = Interpreter
        OpResolverType: Any = SimpleNamespace(BUILTIN_REF=1, BUILTIN_WITHOUT_DEFAULT_DELEGATES=2)

    def module(name: str) -> Any:
        return Module

    monkeypatch.setattr(tflite_peer, "import_module", module)
    assert tflite_peer.main([str(COUNTER), "--reference"]) == 0
    assert "counter" in capsys.readouterr().out
    monkeypatch.setattr(Module, "Interpreter", Wrong)
    assert tflite_peer.main([str(COUNTER), "--reference"]) == 1
    monkeypatch.setattr(Module, "Interpreter", Rough)
    assert tflite_peer.main([str(COUNTER), "--reference"]) == 0
    monkeypatch.setattr(Module, "Interpreter", Unable)
    assert tflite_peer.main([str(COUNTER), "--reference"]) == 0
    assert "counter: not run by LiteRT: no such operator" in capsys.readouterr().out


def test_files_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages are got once."""
    got: list[str] = []

    def download(command: Sequence[str], check: bool) -> None:
        got.append(command[-1])
        place = Path(command[-2])
        place.mkdir()
        with zipfile.ZipFile(place / "one.whl", "w") as archive:
            archive.writestr("data/net.tflite", b"")

    monkeypatch.setattr(tflite_peer.subprocess, "run", download)
    first, again = (tflite_peer.files_of(tmp_path) for _ in range(2))
    assert first == again
    assert got == list(tflite_peer.PACKAGES)
    assert [path.relative_to(tmp_path).as_posix() for path in first] == [
        f"{package}/data/net.tflite" for package in tflite_peer.PACKAGES
    ]
