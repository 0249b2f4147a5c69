"""What opt-tool writes, and leaves alone when it fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.parser import Parser

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.frontends.text import default_context
from lowerdeck.tools.opt_tool import main

WEIGHT = np.arange(600, dtype=np.float32)

ADD = """
func.func @main(%x : tensor<4xf32> {core.name = "x"}) -> (tensor<4xf32> {core.name = "y"}) {
  %a = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = core.add %a, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("the-node")
  func.return %b : tensor<4xf32>
}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """x + w, with a weight of 2,400 bytes."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"], name="add")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [600])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [600])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


def anonymous_constant(path: Path) -> Path:
    """A text whose folded constant is too large to print."""
    text = path / "fold.mlir"
    text.write_text(
        """
func.func @main() -> (tensor<600xi64> {core.name = "y"}) {
  %a = core.iota [600] axis 0 : tensor<600xi64>
  func.return %a : tensor<600xi64>
}
"""
    )
    return text


def constants(text: str) -> list[ConstantOp]:
    module = Parser(default_context(), text).parse_module()
    return [op for op in module.walk() if isinstance(op, ConstantOp)]


def test_model_as_input(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(model), "--compile-to=legal"]) == 0
    (constant,) = constants(capsys.readouterr().out)
    assert constant.value.data.file is not None
    np.testing.assert_array_equal(constant.array, WEIGHT)


def test_format_is_found_by_content(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = model.rename(model.with_suffix(".weird"))
    assert main([str(other)]) == 0
    assert "onnx.Add" in capsys.readouterr().out


def test_large_constants_print_elided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(anonymous_constant(tmp_path)), "-p", "fold"]) == 0
    text = capsys.readouterr().out
    assert "elided" in text
    (tmp_path / "elided.mlir").write_text(text)
    assert main([str(tmp_path / "elided.mlir"), "--compile-to=c"]) == 1
    assert "elided" in capsys.readouterr().err


def test_weights_out_round_trip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = tmp_path / "w.bin"
    source = str(anonymous_constant(tmp_path))
    assert main([source, "-p", "fold", "--weights-out", str(weights)]) == 0
    (constant,) = constants(capsys.readouterr().out)
    np.testing.assert_array_equal(constant.array, np.arange(600))
    assert weights.stat().st_size == 4800


def test_weights_beside_an_output_file(tmp_path: Path) -> None:
    out = tmp_path / "out.mlir"
    assert main([str(anonymous_constant(tmp_path)), "-p", "fold", "-o", str(out)]) == 0
    (constant,) = constants(out.read_text())
    np.testing.assert_array_equal(constant.array, np.arange(600))
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "fold.mlir",
        "out.mlir",
        "out.mlir.weights",
    ]


def test_small_constants_need_no_file(tmp_path: Path) -> None:
    source, out = tmp_path / "add.mlir", tmp_path / "out.mlir"
    source.write_text(ADD)
    assert main([str(source), "-o", str(out)]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["add.mlir", "out.mlir"]


def test_a_pipe_has_no_file_for_weights(tmp_path: Path) -> None:
    pipe, source = tmp_path / "pipe", anonymous_constant(tmp_path)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main([str(source), "-p", "fold", "-o", str(pipe)]) == 0
        assert b"core.constant" in os.read(reader, 1 << 16)
    finally:
        os.close(reader)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fold.mlir", "pipe"]


def test_failure_keeps_the_old_output(tmp_path: Path) -> None:
    source, out = tmp_path / "bad.mlir", tmp_path / "out.mlir"
    source.write_text(f"{ADD}// -----\nnot IR\n")
    out.write_text("old")
    assert main([str(source), "--split-input-file", "-o", str(out)]) == 1
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.mlir", "out.mlir"]


def test_all_wrong_ops_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "bad.mlir"
    text = ADD.replace("(tensor<4xf32>) -> tensor<4xf32>", "(tensor<4xf32>) -> tensor<5xf32>")
    text = text.replace("%a, %x : (tensor<4xf32>", "%a, %x : (tensor<5xf32>")
    source.write_text(text)
    assert main([str(source)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{source}:3:3: op 'core.exp': ")
    assert lines[1].startswith(f"{source}: node 'the-node' (core.add): ")


@pytest.mark.parametrize("depth", [400, 20_000])
def test_deep_nesting_is_an_error(
    depth: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "deep.mlir"
    source.write_text("builtin.module {\n" * depth + "}\n" * depth)
    assert main([str(source)]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


def test_check_each_finds_a_wrong_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "add.mlir"
    source.write_text(ADD)
    (tmp_path / "wrong_pass.py").write_text(WRONG_PASS)
    cast(Any, monkeypatch).syspath_prepend(str(tmp_path))
    arguments = [str(source), "--load=wrong_pass:WrongPass", "-p", "cse,wrong,dce"]
    assert main(arguments) == 0
    assert "core.sub" in capsys.readouterr().out
    assert main([*arguments, "--check-each"]) == 1
    error = capsys.readouterr().err
    assert f"{source}: the pass 'wrong' changes the results: output 'y' differs" in error
    assert "first wrong rewrite" in error
    assert "the-node" in error


WRONG_PASS = '''
from lowerdeck.dialects.core.elementwise import AddOp, SubOp
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass


class Wrong(Pattern):
    """x + y -> x - y"""

    name = "wrong"
    roots = (AddOp,)

    def match(self, op):
        return Match((op,), "it is an addition")

    def rewrite(self, match, rewriter):
        add = match.root
        rewriter.replace(add, SubOp(add.lhs, add.rhs))


class WrongPass(PatternPass):
    """Replaces additions by subtractions."""

    name = "wrong"

    def patterns(self, module):
        return [Wrong()]
'''


def test_check_each_says_what_it_could_not_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "other.mlir"
    source.write_text(ADD.replace("@main", "private @other"))
    assert main([str(source), "-p", "cse", "--check-each"]) == 1
    error = capsys.readouterr().err
    assert "not checked: the pass 'cse': the module has no function @main" in error


def test_check_each_takes_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, inputs = tmp_path / "add.mlir", tmp_path / "in.npz"
    source.write_text(ADD)
    np.savez(inputs, x=np.zeros(4, np.float32))
    arguments = [str(source), "-p", "cse", "--check-each", "--inputs", str(inputs)]
    assert main(arguments) == 0
    assert "not checked" not in capsys.readouterr().err
    inputs.write_bytes(b"no archive")
    assert main(arguments) == 1
    assert f"{inputs}: expected a file of numpy.savez" in capsys.readouterr().err


def test_onnx_stays_unchanged_by_reading(model: Path) -> None:
    before = model.read_bytes()
    assert main([str(model), "--compile-to=c", "-o", str(model.with_suffix(".c"))]) == 0
    assert model.read_bytes() == before


def test_what_passes_do_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, those of passes that change nothing left out."""
    path, folder = tmp_path / "in.mlir", tmp_path / "steps"
    path.write_text(
        """
        func.func @main(%x : tensor<4xf32>) -> tensor<4xf32> {
          %a = core.neg %x : (tensor<4xf32>) -> tensor<4xf32>
          %b = core.neg %a : (tensor<4xf32>) -> tensor<4xf32>
          %c = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
          func.return %b : tensor<4xf32>
        }
        """
    )
    command = [str(path), "--pass-pipeline=fold,simplify-arithmetic,cse,dce"]
    command.append(f"--print-ir-tree-dir={folder}")
    assert main([*command, "--print-ir-after-change"]) == 0
    assert capsys.readouterr().err == ""
    names = ["001-after-simplify-arithmetic.mlir", "002-after-dce.mlir"]
    assert sorted(file.name for file in folder.iterdir()) == names
    first, second = ((folder / name).read_text() for name in names)
    assert "core.exp" in first
    assert "core.exp" not in second
    # Each of them can be read again.
    assert main([str(folder / names[1])]) == 0
    assert main([*command, "--print-ir-diff"]) == 0
    assert "-    %c = core.exp" in (folder / "002-after-dce.diff").read_text()
