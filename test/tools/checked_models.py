"""Small models of three frameworks with a sigmoid, and ways to make a pass or its C wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck import lowering
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.pipeline import ALL_PASSES


def tensorflow(folder: Path) -> Path:
    """Two maxima, then a sigmoid."""
    nodes = [
        'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } '
        'attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }'
    ]
    for before, name, op in [("x", "a", "Relu"), ("a", "b", "Relu6"), ("b", "y", "Sigmoid")]:
        nodes.append(
            f'node {{ name: "{name}" op: "{op}" input: "{before}" '
            'attr { key: "T" value { type: DT_FLOAT } } }'
        )
    path = folder / "graph.pbtxt"
    path.write_text("\n".join([*nodes, "versions { producer: 2000 }"]))
    return path


def caffe(folder: Path) -> Path:
    layers = [
        'layer { name: "in" type: "Input" top: "x" '
        "input_param { shape { dim: 2 dim: 3 dim: 5 dim: 5 } } }",
        'layer { name: "a" type: "ReLU" bottom: "x" top: "a" }',
        'layer { name: "y" type: "Sigmoid" bottom: "a" top: "y" }',
    ]
    path = folder / "net.prototxt"
    path.write_text("\n".join(layers))
    return path


def onnx(folder: Path, op: str = "Add", size: int = 4) -> Path:
    weights = {"Add": np.array([[-1], [0.5], [0.25]]), "MatMul": np.eye(size) * 2 - 0.5}
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node(op, ["a", "b"], ["s"], name="sum"),
        helper.make_node("Relu", ["s"], ["t"], name="second"),
        helper.make_node("Sigmoid", ["t"], ["y"], name="last"),
    ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, size]) for name in ("x", "y")
    ]
    constant = numpy_helper.from_array(weights[op].astype(np.float32), "b")
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [constant])
    path = folder / f"{op}.onnx"
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


FLIP = "((unsigned char *)args->{}.data)[3] ^= 0x40;"
"""C that changes a bit of the output with this field."""


def spoil_c(
    monkeypatch: pytest.MonkeyPatch,
    is_wrong: Callable[[ModuleOp], bool] = lambda module: True,
    text: str = FLIP,
) -> None:
    """The C of some modules does something else at its end, to its first output."""
    right = lowering.emit

    def wrong(context: Context, module: ModuleOp, name: str) -> CArtifact:
        artifact = right(context, module, name)
        if is_wrong(module):
            outputs: Any = artifact.metadata["outputs"]
            file = f"{artifact.name}.c"
            head, end, tail = artifact.files[file].partition("  return LOWERDECK_OK;\n}\n")
            assert end
            artifact.files[file] = head + text.format(outputs[0]["field"]) + end + tail
        return artifact

    monkeypatch.setattr(lowering, "emit", wrong)


def spoil(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[ModuleOp], None]) -> None:
    """A pass also does something wrong, of which it records nothing."""
    class_ = ALL_PASSES[name]()
    right = class_.apply

    def wrong(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        change(op)

    monkeypatch.setattr(class_, "apply", wrong)
