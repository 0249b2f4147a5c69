"""Whatever no error stands for is told as a fault of ours: where, one message, its own status."""

from __future__ import annotations

import pickle
from pathlib import Path

import onnx
import pytest

import lowerdeck.compiler
from lowerdeck.dialects.errors import InternalError, LimitError, located, working_on
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.tools import lowerdeck as cli
from lowerdeck.tools import opt_tool
from lowerdeck.tools.common import FAULT

TEXT = (
    """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }"""
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(TEXT).SerializeToString())
    return path


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that goes wrong."""

    def broken(self: OnnxLegalizer, name: str | int) -> None:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr(OnnxLegalizer, "operand", broken)


@pytest.mark.usefixtures("fault")
def test_the_command_tells_of_a_fault(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compile", str(model), "-o", str(tmp_path / "out")]) == FAULT
    err = capsys.readouterr().err
    first, second = err.splitlines()
    assert first == (
        f"{model}: node 'y' (Relu): IndexError: tuple index out of range; "
        "this is a fault of lowerdeck: please report it with the model"
    )
    assert "LOWERDECK_TRACEBACK=1" in second
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.usefixtures("fault")
def test_the_traceback_is_shown_if_asked_for(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOWERDECK_TRACEBACK", "1")
    assert opt_tool.main([str(model), "--compile-to=legal"]) == FAULT
    assert "in broken" in capsys.readouterr().err


@pytest.mark.usefixtures("fault")
def test_the_interface_tells_of_a_fault(model: Path) -> None:
    with pytest.raises(InternalError, match=r"node 'y' .Relu.: IndexError") as error:
        lowerdeck.compiler.compile(model, cache=False)
    assert isinstance(error.value.__cause__, IndexError)


def test_a_fault_of_a_pass_names_the_pass(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lowerdeck.lowering.form.form_kernels import FormKernelsPass

    def broken(self: FormKernelsPass, context: object, module: object) -> None:
        raise KeyError("k")

    monkeypatch.setattr(FormKernelsPass, "apply", broken)
    with pytest.raises(InternalError, match=r"model.onnx: pass 'form-kernels': KeyError"):
        lowerdeck.compiler.compile(model, cache=False)


def test_limits_and_errors_are_no_faults() -> None:
    assert isinstance(located(RecursionError(), "m"), LimitError)
    assert isinstance(located(MemoryError(), "m"), LimitError)
    for error in (OSError("gone"), FrontendError([]), InternalError("m")):
        assert located(error, "m") is error
    with pytest.raises(LimitError, match=r"m: there is not enough memory"):
        with working_on(lambda: "m"):
            raise MemoryError


def test_a_fault_passes_between_processes() -> None:
    fault = located(ValueError("v"), "m")
    copy = pickle.loads(pickle.dumps(fault))
    assert (type(copy), str(copy)) == (InternalError, str(fault))
    assert str(copy).startswith("m: ValueError: v; this is a fault of lowerdeck")


@pytest.mark.parametrize(
    "constant", ["dense<300> : tensor<2xi8>", "dense<1e400> : tensor<2xf32>", "dense<5> : i7"]
)
def test_text_that_xdsl_cannot_read(constant: str, tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    text = f"func.func @main() {{\n  %c = core.constant {constant}\n  func.return\n}}\n"
    path.write_text(text.replace("%c = core.constant dense<5> : i7", "%c = x.y {a = 5 : i9999999}"))
    with pytest.raises(FrontendError, match="is not valid IR text"):
        load_model(path)
    assert opt_tool.main([str(path)]) == 1


def test_a_number_of_many_digits(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(f"func.func @main(%x : tensor<{'9' * 5000}xf32>) {{ func.return }}\n")
    with pytest.raises(FrontendError, match="is not valid IR text"):
        load_model(path)


def test_functions_without_a_body(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("func.func @main() {\n  func.return\n}\nfunc.func @other() -> tensor<f32>\n")
    with pytest.raises(FrontendError, match="functions without a body: other"):
        load_model(path)


def test_text_is_verified_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("func.func @main() -> (tensor<2xf32>) {\n  func.return\n}\n")
    with pytest.raises(FrontendError, match="is not valid IR text"):
        load_model(path)


@pytest.mark.parametrize("string", ['"' + "a" * 60, '"' + "a" * 60 + '\\q"'])
def test_a_string_without_an_end_is_told_at_once(string: str, tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(f"func.func @main() {{\n  func.return {{a = {string}}}\n}}\n")
    with pytest.raises(FrontendError, match=r"m.mlir:2:20[\s\S]*the string does not end"):
        load_model(path)


@pytest.mark.parametrize("rank", [65, 100_000])
def test_types_of_more_dimensions_than_there_can_be(rank: int, tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(f"func.func @main(%x: tensor<{'1x' * rank}f32>) {{\n  func.return\n}}\n")
    with pytest.raises(FrontendError, match="a type of more than 64 dimensions") as error:
        load_model(path)
    assert len(str(error.value)) < 3000
