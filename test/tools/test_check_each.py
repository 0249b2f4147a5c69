"""`--check-each`: every pass and the C are compared, whatever is read; what is not, is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.lowering.buffers import pack_weights
from lowerdeck.lowering.emit_c.module import MAGIC, CArtifact
from lowerdeck.lowering.entry import plan_memory
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.lowering.targets import obstacle, target_names
from lowerdeck.tools.lowerdeck import main as lowerdeck_main
from lowerdeck.tools.opt_tool import main

from .checked_models import spoil, spoil_c  # noqa: TID251  (tests, not the folder of sources)

Info = tuple[str, int, Sequence[int | str | None] | None]

GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_DOUBLE } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } }
node { name: "table" op: "Const" attr { key: "dtype" value { type: DT_DOUBLE } } attr { key: "value"
  value { tensor { dtype: DT_DOUBLE tensor_shape { dim { size: 2 } dim { size: 3 } }
                   double_val: 1 double_val: 2 double_val: 3
                   double_val: 4 double_val: 5 double_val: 6 } } } }
node { name: "read" op: "Identity" input: "table" attr { key: "T" value { type: DT_DOUBLE } } }
node { name: "rows" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value"
  value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "taken" op: "GatherV2" input: "read" input: "rows" input: "axis"
  attr { key: "Tparams" value { type: DT_DOUBLE } }
  attr { key: "Tindices" value { type: DT_INT32 } } attr { key: "Taxis" value { type: DT_INT32 } } }
node { name: "y" op: "AddV2" input: "taken" input: "x" attr { key: "T" value { type: DT_DOUBLE } } }
versions { producer: 2000 }
"""
"""Rows of a table of two, which random indices have to find, plus an open number of rows."""

NET = """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 5 dim: 5 } } }
layer { name: "p" type: "Pooling" bottom: "x" top: "p" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "y" type: "ELU" bottom: "p" top: "y" }
"""


def infos(entries: Sequence[Info]) -> list[ValueInfoProto]:
    return [helper.make_tensor_value_info(*entry) for entry in entries]


def write(
    path: Path,
    nodes: Sequence[NodeProto],
    inputs: Sequence[Info],
    outputs: Sequence[Info],
    **constants: NDArray[Any],
) -> Path:
    """An ONNX model."""
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs), weights)
    opsets = [helper.make_opsetid("", 17)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    return path


def tensorflow(folder: Path) -> Path:
    path = folder / "graph.pbtxt"
    path.write_text(GRAPH)
    return path


def caffe(folder: Path) -> Path:
    path = folder / "net.prototxt"
    path.write_text(NET)
    return path


def open_doubles(folder: Path) -> Path:
    """f64, with sizes that the model names, and one that has no name."""
    nodes = [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Add", ["e", "b"], ["y"])]
    inputs = [("x", TensorProto.DOUBLE, ["n", None, "m"]), ("b", TensorProto.DOUBLE, ["m"])]
    return write(folder / "open.onnx", nodes, inputs, [("y", TensorProto.DOUBLE, None)])


def gather(folder: Path) -> Path:
    """Indices into two rows."""
    inputs = [("i", TensorProto.INT64, ["n"])]
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    nodes = [helper.make_node("Gather", ["table", "i"], ["y"])]
    outputs = [("y", TensorProto.FLOAT, ["n", 3])]
    return write(folder / "gather.onnx", nodes, inputs, outputs, table=table)


def uniform(folder: Path, second: float = 0.1) -> Path:
    """
    Two products with matrices of one value, which differ in shape only. Their rows fill no vector,
    so they are packed.
    """
    nodes = [helper.make_node("MatMul", [x, f"w{x}"], [f"y{x}"]) for x in "ab"]
    inputs = [("a", TensorProto.FLOAT, [3, 2]), ("b", TensorProto.FLOAT, [3, 3])]
    outputs = [("ya", TensorProto.FLOAT, [3, 3]), ("yb", TensorProto.FLOAT, [3, 2])]
    wa, wb = np.full((2, 3), 0.1, np.float32), np.full((3, 2), second, np.float32)
    return write(folder / "uniform.onnx", nodes, inputs, outputs, wa=wa, wb=wb)


def pooled(folder: Path) -> Path:
    """An image of any size, of which five pools of stride two leave something if it is large."""
    names = ["x", *"abcd", "y"]
    pool: Any = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [helper.make_node("MaxPool", [a], [b], **pool) for a, b in pairwise(names)]
    inputs = [("x", TensorProto.FLOAT, [1, 1, "h", "w"])]
    return write(
        folder / "pooled.onnx", nodes, inputs, [("y", TensorProto.FLOAT, [1, 1, None, None])]
    )


MODELS = [tensorflow, caffe, open_doubles, gather, uniform, pooled]


def check(path: Path, *options: str) -> int:
    return main([str(path), "--compile-to=c", "--check-each", "-o", f"{path}.c", *options])


@pytest.mark.parametrize("model", MODELS)
def test_every_format_is_checked_down_to_the_c(
    model: Callable[[Path], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = model(tmp_path)
    spoil_c(monkeypatch)
    assert check(path) == 1
    # So every pass was compared, and found to be right.
    text = f"{path}: the C, not the module that it was made from, has other results"
    assert text in capsys.readouterr().err


def spoil_constant(module: ModuleOp) -> None:
    """Change the sign of the first number of the first constant."""
    for op in module.walk():
        if isinstance(op, ConstantOp | entry_ops.WeightOp):
            data = np.frombuffer(op.value.data.data, np.uint8).copy()
            data[3] ^= 0x80
            op.properties["value"] = BlobAttr(Blob.of(data))
            return
    raise AssertionError("no constant")


PASSES_TO_SPOIL = [
    *("legalize-onnx", "infer-shapes", "cse", "form-kernels", "choose-strategies", "bufferize"),
    *(
        "lower-kernels",
        "expand-math",
        "pack-weights",
        "tile",
        "vectorize-lanes",
        "plan-memory",
        "split-entry",
    ),
]


@pytest.mark.parametrize("name", PASSES_TO_SPOIL)
def test_every_pass_is_checked(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, name, spoil_constant)
    path = uniform(tmp_path)
    assert check(path, "--for-target=x86-64") == 1
    assert f"{path}: the pass '{name}' changes the results: output" in capsys.readouterr().err


def test_a_pass_after_which_nothing_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class_ = ALL_PASSES["expand-math"]()

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        for call in [inner for inner in op.walk() if isinstance(inner, entry_ops.CallOp)]:
            call.operands = call.operands[::-1]

    monkeypatch.setattr(class_, "apply", wrong)
    path = uniform(tmp_path)
    assert check(path) == 1
    text = f"{path}: after the pass 'expand-math' the module cannot be run any more: "
    assert text in capsys.readouterr().err


# Mistakes of packing


def pack_by_bytes_and_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants of the same bytes in the same layout are packed once, whatever their shapes."""
    right, known = pack_weights.pack, dict[Any, BlobAttr]()

    def wrong(op: entry_ops.WeightOp, packed: dict[Any, BlobAttr]) -> None:
        key = (op.value, op.layout)
        if op.layout is None:
            return
        right(op, packed)
        op.properties["value"] = known.setdefault(key, op.value)

    monkeypatch.setattr(pack_weights, "pack", wrong)


@pytest.mark.parametrize("options", [[], ["--disable-verify"]])
def test_packing_by_bytes_alone_is_found(
    options: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = uniform(tmp_path)
    pack_by_bytes_and_layout(monkeypatch)
    assert check(path, "--for-target=x86-64", *options) == 1
    error = capsys.readouterr().err
    assert "the blob has" in error
    assert "the pass 'pack-weights'" in error


def test_packing_by_bytes_alone_is_refused_without_a_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contract of the phase asks for the bytes that kernels read."""
    path = uniform(tmp_path)
    pack_by_bytes_and_layout(monkeypatch)
    assert lowerdeck_main(["compile", str(path), "--target=x86-64", f"-o{tmp_path}/out"]) == 1
    assert "pack-weights should have" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_constants_in_one_place_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = plan_memory.lay_out_weights

    def wrong(run: Any) -> int:
        size = right(run)
        for op in run.walk():
            if isinstance(op, entry_ops.WeightOp):
                op.properties["offset"] = DimsAttr.of([plan_memory.WEIGHTS_HEADER])
        return size

    monkeypatch.setattr(plan_memory, "lay_out_weights", wrong)
    path = uniform(tmp_path, second=0.2)
    assert check(path) == 1
    assert "the pass 'plan-memory' changes the results" in capsys.readouterr().err


def test_wrong_weights_of_the_c_alone_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = CArtifact.weight_chunks

    def wrong(self: CArtifact) -> Iterator[bytes | memoryview]:
        for chunk in right(self):
            is_header = bytes(chunk[:8]) == MAGIC
            yield chunk if is_header else bytes(chunk)[::-1]

    monkeypatch.setattr(CArtifact, "weight_chunks", wrong)
    path = uniform(tmp_path)
    assert check(path) == 1
    assert "the C, not the module that it was made from" in capsys.readouterr().err


def test_c_that_crashes_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = uniform(tmp_path)
    spoil_c(monkeypatch, text="*(volatile char *)8 = 0;")
    assert check(path) == 1
    assert "cannot be run: it crashes with exit code -" in capsys.readouterr().err


# What cannot be checked


def test_a_comparison_speaks_for_the_passes_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, few = uniform(tmp_path), "--check-steps=60"
    assert check(path, few) == 0
    assert capsys.readouterr().err == ""
    assert main([str(path), "--compile-to=buffer", "--check-each", few]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    error = f"{path}: not checked: the pass 'pack-weights': the step limit is used up\n"
    assert error in captured.err
    spoil_c(monkeypatch)
    assert check(path, few) == 1
    error = capsys.readouterr().err
    assert "the C, or a pass before it that was not checked, has other results" in error
    assert f"{path}: not checked before that: the pass 'lower-kernels'" in error


def test_what_is_not_checked_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, inputs = tmp_path / "far.onnx", tmp_path / "in.npz"
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    nodes = [helper.make_node("Add", ["i", "far"], ["j"])]
    nodes += [helper.make_node("Gather", ["table", "j"], ["y"])]
    ports = [("i", TensorProto.INT64, ["n"])], [("y", TensorProto.FLOAT, ["n", 3])]
    write(path, nodes, *ports, table=table, far=np.array(100))
    arguments = [str(path), "--compile-to=legal", "--check-each"]
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    note = f"{path}: not checked: the pass 'legalize-onnx': "
    assert note in captured.err
    assert "--allow-unchecked" in captured.err
    assert main([*arguments, "--allow-unchecked"]) == 0
    captured = capsys.readouterr()
    assert "core.gather" in captured.out
    assert note in captured.err
    np.savez(inputs, i=np.array([-100, -99]))
    assert main([*arguments, f"--inputs={inputs}"]) == 0
    assert capsys.readouterr().err == ""


def test_results_without_elements_are_no_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [helper.make_node("Exp", ["x"], ["y"])]
    ports = [("x", TensorProto.FLOAT, [0, 2])], [("y", TensorProto.FLOAT, [0, 2])]
    path = write(tmp_path / "empty.onnx", nodes, *ports)
    assert main([str(path), "--compile-to=legal", "--check-each"]) == 1
    assert "the pass 'legalize-onnx': all outputs are empty" in capsys.readouterr().err


def test_no_pass_is_no_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = uniform(tmp_path)
    assert main([str(path), "--check-each"]) == 1
    assert f"{path}: not checked: there is no pass to check" in capsys.readouterr().err


def test_missing_inputs_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, inputs = uniform(tmp_path), tmp_path / "in.npz"
    np.savez(inputs, a=np.zeros((3, 5), np.float32))
    assert check(path, f"--inputs={inputs}") == 1
    lines = capsys.readouterr().err.splitlines()
    reason = "no value for the inputs ['b']; given are ['a']; "
    assert lines[0].startswith(f"{path}: not checked: the pass 'legalize-onnx': {reason}")
    assert len(lines) == 2  # and what to do


def test_c_for_another_machine_is_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = next(name for name in target_names() if obstacle(name) is not None)
    path = uniform(tmp_path)
    assert check(path, f"--for-target={target}") == 1
    assert f"{path}: not checked: the C: target {target} " in capsys.readouterr().err
    assert check(path, f"--for-target={target}", "--allow-unchecked") == 0


def test_every_chunk_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = """
    func.func @main(%x : tensor<2xf32>) -> tensor<2xf32> {
      %y = core.exp %x : (tensor<2xf32>) -> tensor<2xf32>
      func.return %y : tensor<2xf32>
    }
    """
    path = tmp_path / "chunks.mlir"
    path.write_text(f"{right}// -----\n{right.replace('@main', 'private @other')}")
    assert main([str(path), "--split-input-file", "-p", "cse", "--check-each"]) == 1
    assert "the module has no function @main" in capsys.readouterr().err
