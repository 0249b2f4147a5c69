"""`lowerdeck ops` of graphs: every unsupported operator, its nodes, and what helps."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from lowerdeck.dialects.tf1.advice import next_step
from lowerdeck.frontends.tf1.graph_pb2 import DataType, GraphDef
from lowerdeck.tools.lowerdeck import main

UNSUPPORTED = {
    "StringJoin": "process text outside of the model",
    "LookupTableFindV2": "look keys up outside of the model",
    "RandomStandardNormal": "make the numbers an input",
    "CudnnRNNV3": "it runs on GPUs only",
    "PyFunc": "it runs Python code",
    "IteratorGetNext": "it feeds the model from a pipeline",
    "DecodeJpeg": "make the decoded tensor an input",
    "ParseExampleV2": "parse records outside of the model",
    "XlaLaunch": "export the model for one CPU",
    "Svd": "compute the decomposition outside",
    "ZipfSampler": "if it is from a library of custom operators",
}


def write_graph(path: Path, operators: list[str]) -> Path:
    """A graph of nodes that read what the one before gives, and a Relu at the end."""
    graph = GraphDef()
    before = graph.node.add(name="x", op="Placeholder")
    before.attr["dtype"].type = DataType.DT_FLOAT
    before.attr["shape"].shape.dim.add(size=3)
    for index, op in enumerate([*operators, "Relu"]):
        node = graph.node.add(name=f"part/{op}_{index}", op=op, input=[before.name])
        node.attr["T"].type = DataType.DT_FLOAT
        before = node
    path.write_bytes(graph.SerializeToString())
    return path


def test_all_unsupported_operators_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_graph(tmp_path / "m.pb", list(UNSUPPORTED))
    assert main(["ops", str(model)]) == 1
    lines = capsys.readouterr().out.splitlines()
    found = {line.split()[1]: line for line in lines}
    assert found["Relu"].endswith("legalized")
    refused = {op for op, line in found.items() if "NOT SUPPORTED" in line}
    assert refused == set(UNSUPPORTED)
    for index, (op, step) in enumerate(UNSUPPORTED.items()):
        assert f"'part/{op}_{index}'; " in found[op]
        assert step in found[op]


def test_only_what_outputs_need(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_graph(tmp_path / "m.pb", ["Relu6", "PyFunc"])
    assert main(["ops", str(model), "--output", "part/Relu6_0"]) == 0
    assert "PyFunc" not in capsys.readouterr().out
    feeds = write_graph(tmp_path / "feeds.pb", ["Relu6", "Svd"])
    assert main(["ops", str(feeds), "--input-shape", "part/Svd_1=3"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["Relu"]
    assert main(["ops", str(model), "--output", "nothing"]) == 1
    assert "there is no node 'nothing' for an output" in capsys.readouterr().err


def test_functions_of_the_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes in functions that are called count, at any depth; those of others do not."""
    graph = GraphDef()
    graph.node.add(name="call", op="outer")
    for name, inner in (("outer", "middle"), ("middle", "PyFunc"), ("unused", "Svd")):
        function = graph.library.function.add()
        function.signature.name = name
        function.signature.output_arg.add(name="y", type=DataType.DT_FLOAT)
        function.node_def.add(name="node", op=inner)
    path = tmp_path / "m.pb"
    path.write_bytes(graph.SerializeToString())
    assert main(["ops", str(path)]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert "PyFunc" in line
    assert "'middle/node'" in line


@pytest.mark.parametrize("op_type", ["Frobnicate", "MyLayer"])
def test_operators_of_others(op_type: str) -> None:
    assert "custom operators" in next_step(op_type, is_known=False)
    assert "docs/operators.md" in next_step(op_type, is_known=True)


def test_only_what_outputs_of_an_onnx_model_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also nodes of functions that only the others call."""
    body = [helper.make_node("Unknown", ["a"], ["b"], domain="nobody")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    opsets += [helper.make_opsetid("nobody", 1)]
    function = helper.make_function("mine", "Strange", ["a"], ["b"], body, opsets)
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="first"),
        helper.make_node("Strange", ["y"], ["z"], name="second", domain="mine"),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "z")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=[function])
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    assert main(["ops", str(path)]) == 1
    assert "nobody.Unknown" in capsys.readouterr().out
    assert main(["ops", str(path), "--output", "y"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["Relu"]
