"""`lowerdeck check`: agreement, a planted wrong pattern in models of three frameworks, exits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import lowerdeck
from lowerdeck import plugins
from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.lowering.targets import obstacle, target_names
from lowerdeck.tools import check, run_c
from lowerdeck.tools.lowerdeck import main

from .checked_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    caffe,
    onnx,
    spoil,
    spoil_c,
    tensorflow,
)

INPUTS = Path(__file__).parent / "Inputs"
WRONG = "--load=mirroring_pass:MirroringPass"


@pytest.fixture(autouse=True)
def with_passes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setattr(sys, "path", [str(INPUTS), *sys.path])
    with plugins.temporarily():
        yield


MODELS: list[Callable[..., Path]] = [onnx, tensorflow, caffe]
LAST: dict[Callable[..., Path], str] = {onnx: "last", tensorflow: "y", caffe: "y"}


@pytest.mark.parametrize("model", MODELS)
def test_models_agree(
    model: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(tmp_path)
    assert main(["check", str(path)]) == 0
    out, err = capsys.readouterr()
    numbers = {onnx: 12, tensorflow: 6, caffe: 150}[model]
    others = "the interpreter and onnxruntime and" if model is onnx else "the interpreter and"
    assert (out, err) == (f"{path}: {others} the C agree in {numbers} numbers\n", "")


@pytest.mark.parametrize("model", MODELS)
def test_a_wrong_pattern_is_found(
    model: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = model(tmp_path)
    named = ["--extra-passes=mirroring"] if model is tensorflow else []
    assert main(["check", str(path), WRONG, *named]) == check.DIFFERENT
    lines = [line.removeprefix(f"{path}: ") for line in capsys.readouterr().out.splitlines()]
    assert "differs in" in lines[0]
    assert lines[1].startswith("after the pass 'mirroring' (")
    # The sites before it, where the other pattern has made right rewrites, are passed over.
    assert "mirroring/mirror-sigmoid on core.sigmoid: the curve is symmetric; " in lines[2]
    assert lines[2].endswith(f"from '{LAST[model]}'")
    before, after = lines.index("before:"), lines.index("after:")
    assert [line.split()[2] for line in lines[before + 1 : after]] == ["core.sigmoid"]
    assert [line.split()[2] for line in lines[after + 1 :]] == ["core.neg", "core.sigmoid"]
    # What is negated is what the sigmoid was of.
    operand = lines[before + 1].split()[3]
    assert lines[after + 1].split()[3] == operand


def test_nodes_that_are_skipped_are_not_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(onnx(tmp_path))
    assert main(["check", path, WRONG, "--skip-nodes=last"]) == 0
    assert f"{path}: the pass 'mirroring' made 2 rewrites\n" in capsys.readouterr().out


BROKEN = """
from lowerdeck.dialects.core.elementwise import AddOp, SigmoidOp, TanhOp
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass


class Idle(Pattern):
    name, roots = "idle", (TanhOp,)

    def match(self, op):
        return Match((op,))

    def rewrite(self, match, rewriter):
        pass


class Broken(Idle):
    name, roots = "broken", (SigmoidOp,)

    def rewrite(self, match, rewriter):
        rewriter.replace(match.root, match.root.operands[0].owner.nothing)


class IdlePass(PatternPass):
    name = "idle"

    def patterns(self, module):
        return [Idle()]


class BrokenPass(PatternPass):
    name = "broken"

    def patterns(self, module):
        return [Broken()]
"""


def test_passes_under_test_without_an_effect_and_with_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, path = tmp_path / "mine.py", str(onnx(tmp_path))
    file.write_text(BROKEN)
    line = 1 + BROKEN[: BROKEN.index("rewriter.replace(")].count("\n")
    assert main(["check", path, "--load", f"{file}:IdlePass"]) == 0
    told = "the pass 'idle' made no rewrite: this model is no test of it"
    assert f"{path}: {told}\n" in capsys.readouterr().out
    # All passes of the file are under test.
    assert main(["check", path, "--load", str(file)]) == check.DIFFERENT
    out = capsys.readouterr().out
    assert f"{file}:{line}, in Broken.rewrite, of plugin '{file}'" in out
    assert "after the pass 'broken' (" in out
    assert "broken/broken on core.sigmoid" in out
    small = tmp_path / "small.onnx"
    assert main(["reduce", path, "--load", str(file), "-o", str(small)]) == 0
    assert "4 -> 1 operations" in capsys.readouterr().out


def swap_operands(module: ModuleOp) -> None:
    """The inputs of the first call with two of one type change places with its results."""
    for op in module.walk():
        if isinstance(op, entry_ops.CallOp):
            op.operands = [*op.operands[1:], op.operands[0]]
            return


def test_a_pass_without_rewrites_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, "lower-kernels", swap_operands)
    assert main(["check", str(onnx(tmp_path))]) == check.DIFFERENT
    assert "after the pass 'lower-kernels' (" in capsys.readouterr().out


def test_a_mistake_of_the_c_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil_c(monkeypatch)
    assert main(["check", str(onnx(tmp_path))]) == check.DIFFERENT
    out = capsys.readouterr().out
    assert "in the C; the interpreter was not asked, or agrees" in out
    assert "no optional pass makes the difference" in out


def test_a_rewrite_with_which_the_c_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The C is wrong if the product has an epilogue: the rewrite that made it one is found."""
    spoil_c(
        monkeypatch,
        lambda module: sum(isinstance(op, entry_ops.CallOp) for op in module.walk()) < 3,
    )
    assert main(["check", str(onnx(tmp_path, "MatMul"))]) == check.DIFFERENT
    out = capsys.readouterr().out
    assert "first wrong rewrite: " in out
    assert "fuse-epilogue/" in out
    assert "before:" in out


def test_a_silent_pass_with_which_the_c_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_vectors(module: ModuleOp) -> bool:
        return "vector" in str(module)

    spoil_c(monkeypatch, has_vectors)
    path = str(onnx(tmp_path, size=64))
    assert main(["check", path, "--target=x86-64"]) == check.DIFFERENT
    assert "with the pass 'vectorize-" in capsys.readouterr().out


# Exit codes


def test_nothing_compared_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(onnx(tmp_path, size=0))
    assert main(["check", path]) == check.UNCHECKED
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{path}: not compared: the interpreter: all outputs are empty" in err


def test_without_c_it_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = next(name for name in target_names() if obstacle(name) is not None)
    path = str(onnx(tmp_path))
    assert main(["check", path, f"--target={target}"]) == check.UNCHECKED
    out, err = capsys.readouterr()
    assert f"{path}: not compared: the C: " in err
    others = "the interpreter and onnxruntime and the module that passes make of it"
    assert out == f"{path}: {others} before memory is planned agree in 12 numbers\n"


def test_without_c_the_interpreter_still_finds_a_wrong_pattern(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = next(name for name in target_names() if obstacle(name) is not None)
    assert main(["check", str(onnx(tmp_path)), WRONG, f"--target={target}"]) == check.DIFFERENT
    assert "mirroring/mirror-sigmoid" in capsys.readouterr().out


def test_a_model_that_cannot_be_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(tmp_path / "missing.onnx")]) == 1
    assert main(["check", str(onnx(tmp_path)), "--load=json:JSONDecoder"]) == 1
    assert "neither a Plugin nor a class derived from ModulePass" in capsys.readouterr().err


def test_onnxruntime_that_disagrees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(path: str, inputs: Any, options: Any) -> Any:
        return {"y": np.zeros((3, 4), np.float32)}

    monkeypatch.setattr(check, "run_onnxruntime", wrong)
    assert main(["check", str(onnx(tmp_path))]) == check.DIFFERENT
    assert "in onnxruntime" in capsys.readouterr().out


def test_c_that_crashes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lowerdeck.tools import blame

    def crash(*args: Any) -> str:
        return "it crashes with exit code -11"

    monkeypatch.setattr(blame, "run_c", crash)
    assert run_c.run_c is not crash
    assert main(["check", str(onnx(tmp_path))]) == check.DIFFERENT
    assert "the C cannot be run: it crashes with exit code -11" in capsys.readouterr().out


def test_models_that_remember(capsys: pytest.CaptureFixture[str]) -> None:
    """Their states are inputs and outputs of what is compared."""
    model = Path(__file__).parents[1] / "frontends" / "tflite_models" / "counter.tflite"
    assert main(["check", str(model)]) == 0
    assert "the interpreter and the C agree in 4 numbers" in capsys.readouterr().out
    compiled = lowerdeck.compile(model)
    (name, first), *_ = compiled.state.items()
    compiled.state = {name: first + 2}
    np.testing.assert_array_equal(compiled.state[name], first + 2)
    with pytest.raises(ValueError, match=r"\['other'\] are no states"):
        compiled.state = {"other": np.zeros(1, np.float32)}
