"""`lowerdeck reduce`: large failing modules and models become small ones that fail the same way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from lowerdeck import plugins
from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.tools import check
from lowerdeck.tools.lowerdeck import main
from lowerdeck.tools.shrink_ir import operations
from lowerdeck.tools.shrinking import Shrunk, chunks, shrink

from . import checked_models as models  # noqa: TID251  (tests, not the folder of sources)

INPUTS = Path(__file__).parent / "Inputs"
WRONG = "--load=mirroring_pass:MirroringPass"


@pytest.fixture(autouse=True)
def with_wrong_pass(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setattr(sys, "path", [str(INPUTS), *sys.path])
    with plugins.temporarily():
        yield


def network(folder: Path, count: int = 60, at: int = 33) -> Path:
    """So many nodes in a row, two branches among them; one is what the planted pass spoils."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.uniform(-0.1, 0.1, (1, 6)).astype(np.float32), "w")]
    weights.append(numpy_helper.from_array(np.roll(np.eye(6, dtype=np.float32), 1, 0), "m"))
    # None of them forgets much of its operand.
    kinds = ["Add", "Neg", "MatMul", "Sin"]
    nodes: list[NodeProto] = []
    for k in range(count):
        op = "Sigmoid" if k == at else kinds[k % 4]
        inputs = [f"v{k}", *{"Add": ["w"], "MatMul": ["m"]}.get(op, [])]
        if k == count - 1:
            op, inputs = "Sub", [f"v{k}", f"v{count // 2}"]
        nodes.append(helper.make_node(op, inputs, [f"v{k + 1}"], name=f"node{k}"))
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 6])
        for name in ("v0", f"v{count}")
    ]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    opsets = [helper.make_opsetid("", 17)]
    path = folder / "network.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    )
    return path


def read(path: Path) -> ModelProto:
    model = ModelProto()
    model.ParseFromString(path.read_bytes())
    return model


def test_a_model_of_60_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = network(tmp_path), tmp_path / "small.onnx"
    assert main(["check", str(path), WRONG]) == check.DIFFERENT
    assert main(["reduce", str(path), WRONG, "-o", str(out)]) == 0
    assert f"{out}: 60 -> 1 operations" in capsys.readouterr().out
    model = read(out)
    assert [node.op_type for node in model.graph.node] == ["Sigmoid"]
    shape = model.graph.input[0].type.tensor_type.shape
    assert [dim.dim_value for dim in shape.dim] == [1, 1]
    # It fails in the same way.
    named = "--extra-passes=mirroring"
    assert main(["check", str(out), WRONG, named]) == check.DIFFERENT
    assert "mirroring/mirror-sigmoid" in capsys.readouterr().out
    # And, as the user likes, the small one as text.
    text = tmp_path / "small.mlir"
    assert main(["reduce", str(out), WRONG, named, "-o", str(text)]) == 0
    assert "core.sigmoid %" in text.read_text()


def test_a_module_of_60_ops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from lowerdeck.tools.opt_tool import main as opt_tool

    path, out = tmp_path / "large.mlir", tmp_path / "small.mlir"
    model = str(network(tmp_path))
    assert opt_tool([model, "--compile-to=legal", "-o", str(path)]) == 0
    assert main(["reduce", str(path), WRONG, "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert "60 -> 1 operations" in text
    module, _ = import_and_lower(str(out), "legal", CompileOptions())
    assert operations(module) == 1
    assert "core.sigmoid %" in out.read_text()
    assert "tensor<1x1xf32>" in out.read_text()
    assert main(["check", str(out), WRONG]) == check.DIFFERENT


CONTROL_FLOW = """
func.func @main(%x : tensor<8xf32>, %c : tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>) {
  %n = core.constant dense<3> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<8xf32> -> tensor<8xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<8xf32>):
    %b = core.if %c : tensor<i1> -> tensor<8xf32> {
      %s = core.sigmoid %v : (tensor<8xf32>) -> tensor<8xf32>
      core.yield %s : tensor<8xf32>
    } else {
      %t = core.tanh %v : (tensor<8xf32>) -> tensor<8xf32>
      core.yield %t : tensor<8xf32>
    }
    %w = core.exp %b : (tensor<8xf32>) -> tensor<8xf32>
    core.yield %w : tensor<8xf32>
  }
  %z = core.neg %x : (tensor<8xf32>) -> tensor<8xf32>
  func.return %r, %z : tensor<8xf32>, tensor<8xf32>
}
"""


def test_regions_go(tmp_path: Path) -> None:
    path, out = tmp_path / "loop.mlir", tmp_path / "small.mlir"
    path.write_text(CONTROL_FLOW)
    assert main(["reduce", str(path), WRONG, "-o", str(out)]) == 0
    text = out.read_text()
    assert "core.sigmoid" in text
    for gone in ("core.if", "core.loop", "core.exp", "core.neg", "core.tanh"):
        assert gone not in text


NESTED = """
func.func @main(%x : tensor<8xf32>, %n : tensor<i64>) -> tensor<8xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<8xf32> -> tensor<8xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<8xf32>):
    %b = core.exp %v : (tensor<8xf32>) -> tensor<8xf32>
    %t = core.tanh %b : (tensor<8xf32>) -> tensor<8xf32>
    %w = core.neg %t : (tensor<8xf32>) -> tensor<8xf32>
    core.yield %w : tensor<8xf32>
  }
  func.return %r : tensor<8xf32>
}
"""


def test_ops_in_a_region_that_stays_go(tmp_path: Path) -> None:
    path, out = tmp_path / "loop.mlir", tmp_path / "small.mlir"
    path.write_text(NESTED)
    test = "grep -q core.tanh {} && grep -q core.loop {}"
    assert main(["reduce", str(path), "--test", test, "-o", str(out)]) == 0
    text = out.read_text()
    assert "core.exp" not in text
    assert "core.neg" not in text


@pytest.mark.parametrize("model", [models.tensorflow, models.caffe])
def test_a_model_of_another_framework_becomes_a_module(
    model: Callable[[Path], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "small.mlir"
    assert main(["reduce", str(model(tmp_path)), WRONG, "-o", str(out)]) == 0
    assert "-> 1 operations" in capsys.readouterr().out
    assert main(["check", str(out), WRONG]) == check.DIFFERENT


def test_what_only_the_c_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The C is wrong where there is a product."""
    path, out = network(tmp_path, 4, 20), tmp_path / "small.onnx"

    def has_product(module: ModuleOp) -> bool:
        calls = (op for op in module.walk() if isinstance(op, entry_ops.CallOp))
        return any(op.multiply_adds is not None for op in calls)

    models.spoil_c(monkeypatch, has_product)
    assert main(["reduce", str(path), "-o", str(out)]) == 0
    assert [node.op_type for node in read(out).graph.node] == ["MatMul"]


def test_a_command_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Interesting if it exits with 0: here, if the text has a sine and a matrix product."""
    path, out = tmp_path / "large.mlir", tmp_path / "small.mlir"
    from lowerdeck.tools.opt_tool import main as opt_tool

    model = str(network(tmp_path))
    assert opt_tool([model, "--compile-to=legal", "-o", str(path)]) == 0
    test = "grep -q core.sin {} && grep -q core.matmul {}"
    assert main(["reduce", str(path), "--test", test, "-o", str(out)]) == 0
    assert "60 -> 2 operations" in capsys.readouterr().out
    assert "tensor<1x1xf32>" in out.read_text()


def test_a_command_decides_of_a_model(tmp_path: Path) -> None:
    out = tmp_path / "small.onnx"
    path = str(network(tmp_path))
    assert main(["reduce", path, "--test", "grep -q MatMul", "-o", str(out)]) == 0
    model = read(out)
    assert [node.op_type for node in model.graph.node] == ["MatMul"]
    checker.check_model(model)  # pyright: ignore[reportUnknownMemberType]


def test_a_test_that_takes_too_long_is_not_interesting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = str(network(tmp_path, 8, 3)), tmp_path / "small.onnx"
    assert main(["reduce", path, "--test", "sleep 60", "--timeout=0.2", "-o", str(out)]) == 1
    assert "not interesting: the test does not exit with 0: sleep 60" in capsys.readouterr().err
    assert not out.exists()


def test_what_does_not_fail_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = str(network(tmp_path, 8, 3)), tmp_path / "small.onnx"
    assert main(["reduce", path, "-o", str(out)]) == 1
    assert "'lowerdeck check' finds nothing wrong in it" in capsys.readouterr().err
    text = tmp_path / "large.mlir"
    text.write_text(NESTED)
    assert main(["reduce", str(text), "-o", str(out)]) == 1
    assert "expected a file that ends with .mlir" in capsys.readouterr().err
    assert not out.exists()


def test_trials_are_limited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = str(network(tmp_path)), tmp_path / "small.onnx"
    assert main(["reduce", path, "--test", "true", "--trials=1", "-o", str(out)]) == 0
    assert "1 variants tried; there may be smaller ones" in capsys.readouterr().out


def test_shrinking_takes_large_steps_first() -> None:
    def variants(numbers: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for start, end in chunks(len(numbers)):
            yield numbers[:start] + numbers[end:]

    tried: list[tuple[int, ...]] = []

    def has_both(numbers: tuple[int, ...]) -> bool:
        tried.append(numbers)
        return {3, 700} <= set(numbers)

    found = shrink(tuple(range(1000)), variants, has_both, key=hash)
    assert (set(found.subject), found.is_minimal) == ({3, 700}, True)
    assert found.trials == len(tried) < 100
    assert shrink((1, 2), variants, lambda _: True, key=hash, max_trials=0) == Shrunk(
        (1, 2), 0, False
    )
