"""Whatever is wrong with an onnx model: one FrontendError that says what, and nothing else."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx import numpy_helper as arrays

from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.frontends.onnx.parse import FORMAT
from lowerdeck.frontends.wire import ScanError, detach

from .onnx_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    function,
    info,
    model,
    varied_model,
)


def messages(proto: ModelProto, outputs: Sequence[str] | None = None) -> list[str]:
    """What the import says is wrong with a model."""
    with pytest.raises(FrontendError) as error:
        import_model(proto, outputs=outputs)
    return [str(problem) for problem in error.value.problems]


def load(data: bytes, path: Path) -> FrontendError | None:
    """The error of loading a file with this content; any other exception fails the test."""
    path.write_bytes(data)
    found = None
    try:
        str(load_model(path))
    except FrontendError as error:
        found = error
    assert found is None or str(found).startswith(str(path))
    return found


# Damaged files


def test_an_empty_file(tmp_path: Path) -> None:
    error = load(b"", tmp_path / "model.onnx")
    assert error is not None
    assert "the file is empty" in str(error)


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FrontendError, match="cannot be read: No such file"):
        load_model(tmp_path / "missing.onnx")


def test_a_format_that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(FrontendError, match=r"its format is not known, expected onnx \(.onnx\)"):
        load_model(_written(tmp_path / "model.dat", b"\x89NNG\r\n\x1a\n\0\0"))


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_the_format_is_recognized_by_content(tmp_path: Path) -> None:
    data = varied_model().SerializeToString()
    assert load_model(_written(tmp_path / "model", data)).body.block.first_op is not None
    text = str(import_model(varied_model(1)))
    assert str(load_model(_written(tmp_path / "text", text.encode()))) == text


def test_every_truncated_file_is_an_error(tmp_path: Path) -> None:
    data = varied_model().SerializeToString()
    for size in range(0, len(data), 13):
        assert load(data[:size], tmp_path / "model.onnx") is not None, size


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bits_are_an_error_or_harmless(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    data = varied_model(1).SerializeToString()
    for _ in range(40):
        damaged = bytearray(data)
        for _ in range(source.choice([1, 1, 2, 5])):
            damaged[source.randrange(len(damaged))] ^= 1 << source.randrange(8)
        load(bytes(damaged), tmp_path / "model.onnx")


def test_a_field_that_ends_behind_its_message() -> None:
    """Inside of the file, but outside of the graph that it belongs to."""
    graph = b"\x0a" + b"\xd0\x0f" + bytes(1097)  # a node of 2000 bytes
    data = b"\x3a" + b"\xcc\x08" + graph + b"\x12" + b"\xb8\x17" + bytes(3000)
    with pytest.raises(ScanError, match="a field ends 903 bytes after its message"):
        detach(memoryview(data), FORMAT)


# External data


def external_model(entries: dict[str, str]) -> ModelProto:
    """A model with a weight of 24 bytes in another file."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3])
    weight.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    return model([helper.make_node("Relu", ["w"], ["y"])], [], ["y"], [weight])


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ({}, "names no file"),
        ({"location": "missing.bin"}, "'missing.bin' does not exist"),
        ({"location": "../outside.bin"}, "leads out of the model's folder"),
        ({"location": "link.bin"}, "leads out of the model's folder"),
        ({"location": "../model2/w.bin"}, "leads out of the model's folder"),
        ({"location": "/etc/passwd"}, "expected a path relative to the model"),
        ({"location": "short.bin"}, "holds 8 bytes, but bytes 0 to 24 are used"),
        ({"location": "good.bin", "offset": "8"}, "holds 24 bytes, but bytes 8 to 32 are used"),
        ({"location": "good.bin", "offset": "-8"}, "the offset of its external data is '-8'"),
        ({"location": "good.bin", "offset": "x"}, "the offset of its external data is 'x'"),
        ({"location": "good.bin", "length": "8"}, "has 8 bytes of data, expected 24"),
        ({"location": "good.bin", "length": "32"}, "has 32 bytes of data, expected 24"),
        ({"location": "model"}, "does not exist"),
    ],
)
def test_external_data_is_checked(entries: dict[str, str], expected: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    _written(tmp_path / "outside.bin", bytes(24))
    _written(folder / "good.bin", bytes(24))
    _written(folder / "short.bin", bytes(8))
    os.symlink(tmp_path / "outside.bin", folder / "link.bin")
    error = load(external_model(entries).SerializeToString(), folder / "model.onnx")
    assert error is not None
    assert expected in str(error)
    # Nothing is said of the nodes that read the weight.
    assert str(error).count("\n") == 0


def test_tensors_with_one_fault_share_a_line() -> None:
    problems = [
        Problem("m", "", "", f"initializer 'w{k}': its file does not exist") for k in range(10)
    ]
    others = [Problem("m", "n", "Conv", "is wrong"), Problem("m", "", "", "has no graph")]
    names = ", ".join(f"'w{k}'" for k in range(8))
    assert str(FrontendError([*problems, *others])).splitlines() == [
        f"m: initializers {names} and 2 more: its file does not exist",
        "m: node 'n' (Conv): is wrong",
        "m: has no graph",
    ]


def test_external_data_of_a_model_in_memory() -> None:
    assert "load the model from its path" in messages(external_model({"location": "w.bin"}))[0]


# Wrong graphs


def test_all_unknown_operators_are_listed() -> None:
    nodes = [
        helper.make_node("Foo", ["x"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Bar", ["b"], ["y"], "second", domain="com.example"),
    ]
    found = messages(model(nodes, [info("x", [2])], ["y"]))
    assert len(found) == 2
    assert found[0].startswith("model: node 'first' (Foo): operator 'Foo' is unknown in opset 18")
    assert "no opset for the domain 'com.example' of operator 'com.example.Bar'" in found[1]


def test_messages_are_limited() -> None:
    nodes = [helper.make_node("Nothing", ["x"], [f"y{k}"]) for k in range(3000)]
    proto = model(nodes, [info("x", [2])], [f"y{k}" for k in range(3000)])
    with pytest.raises(FrontendError) as error:
        import_model(proto)
    assert len(error.value.problems) == 3000
    lines = str(error.value).splitlines()
    assert len(lines) == 51
    assert lines[-1] == "model: 3000 problems, of which these are 50"


def test_a_node_with_an_attribute_twice() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=0)
    node.attribute.append(helper.make_attribute("axis", 1))
    found = messages(model([node], [info("x", [2, 3])], ["y"]))
    assert any("'axis'" in message for message in found), found


def test_functions_that_onnx_rejects() -> None:
    proto = varied_model()
    imports = [helper.make_opsetid("", 17)]
    node = helper.make_node("Relu", ["nowhere"], ["y"])
    proto.functions.append(helper.make_function("own", "f", ["x"], ["y"], [node], imports))
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.graph.node.append(helper.make_node("f", ["x"], ["z"], domain="own"))
    proto.graph.output.append(onnx.ValueInfoProto(name="z"))
    assert any("'nowhere'" in message for message in messages(proto))


def test_names_of_many_digits() -> None:
    name = "9" * 5000
    nodes = [helper.make_node("Relu", ["x"], [name]), helper.make_node("Neg", [name], ["y"])]
    assert import_model(model(nodes, [info("x", [2])], ["y"])).body.block.first_op is not None
    assert messages(model([helper.make_node("Relu", [name], ["y"])], [], ["y"]))


def test_a_cycle() -> None:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], "one"),
        helper.make_node("Relu", ["a"], ["b"], "two"),
    ]
    found = messages(model(nodes, [info("x", [2])], ["b"]))
    assert "model: node 'one' (Add): it is part of or behind a cycle, waiting for 'two'" in found


def test_names_that_are_defined_twice() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])]
    assert "tensor 'y' is defined twice" in messages(model(nodes, [info("x", [2])], ["y"]))[0]
    one = arrays.from_array(np.ones(2, np.float32), "w")
    twice = model([helper.make_node("Relu", ["w"], ["y"])], [], ["y"], [one, one])
    assert "initializer 'w' is given twice" in messages(twice)[0]


def test_functions_that_call_each_other() -> None:
    functions = [
        function("F", [helper.make_node("G", ["x"], ["y"], domain="local")]),
        function("G", [helper.make_node("F", ["x"], ["y"], domain="local")]),
    ]
    call = helper.make_node("F", ["x"], ["y"], domain="local")
    found = messages(model([call], [info("x", [2])], ["y"], (), functions))
    assert "function 'F' calls itself" in found[0]


def test_functions_that_expand_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowerdeck.dialects.onnx.convert.MAX_NODES", 1000)
    functions = [function("F0", [helper.make_node("Relu", ["x"], ["y"])])]
    for level in range(1, 60):
        inner = f"F{level - 1}"
        nodes = [
            helper.make_node(inner, ["x"], ["t"], domain="local"),
            helper.make_node(inner, ["t"], ["y"], domain="local"),
        ]
        functions.append(function(f"F{level}", nodes))
    call = helper.make_node("F59", ["x"], ["y"], domain="local")
    found = messages(model([call], [info("x", [2])], ["y"], (), functions))
    assert "expand to more than 1000 nodes" in found[0]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (helper.make_node("Relu", ["z"], ["y"]), "input 'z' is not the name of any tensor"),
        (helper.make_node("Relu", [], ["y"]), "found 0 inputs, expected 1"),
        (helper.make_node("Relu", ["x"], ["y", "z"]), "found 2 outputs, expected 1"),
        (helper.make_node("Relu", ["x"], ["y"], alpha=1.0), "found attribute 'alpha'"),
        (helper.make_node("Cast", ["x"], ["y"]), "the required attribute 'to' is missing"),
        (helper.make_node("Cast", ["x"], ["y"], to="f"), "is of kind STRING, expected INT"),
        (helper.make_node("BitwiseNot", ["x"], ["y"]), "not among the types of T"),
        (helper.make_node("Add", ["x", ""], ["y"]), "operand 'B' is absent"),
        (helper.make_node("Loop", ["", "", "x"], ["y"]), "attribute 'body' is missing"),
    ],
)
def test_nodes_that_do_not_fit_their_schema(node: onnx.NodeProto, expected: str) -> None:
    found = messages(model([node], [info("x", [2])], ["y"]))
    assert any(expected in message for message in found), found
    assert all(message.startswith("model: node 'y' (") for message in found), found


def test_an_output_that_nothing_computes() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    found = messages(model(nodes, [info("x", [2])], ["y"]), outputs=["y", "nowhere"])
    assert found == ["model: output 'nowhere' is not computed by any node"]


def test_a_shape_for_an_input_that_is_not_there() -> None:
    with pytest.raises(FrontendError, match=r"a shape is given for 'z', but the inputs are 'x'"):
        import_model(varied_model(), input_shapes={"z": [1]})


def test_versions_that_are_not_known() -> None:
    proto = varied_model()
    proto.ir_version = 99
    proto.opset_import[0].version = 99
    found = messages(proto)
    assert "found IR version 99" in found[0]
    assert "found opset 99 of the default domain" in found[1]


def test_versions_that_functions_import() -> None:
    proto = varied_model()
    imports = [helper.make_opsetid("", 99)]
    node = helper.make_node("Relu", ["x"], ["y"])
    proto.functions.append(helper.make_function("own", "f", ["x"], ["y"], [node], imports))
    assert "function 'f': found opset 99 of the default domain" in messages(proto)[0]


def test_a_tensor_whose_size_is_wrong() -> None:
    weight = arrays.from_array(np.ones(2, np.float32), "w")
    weight.dims[0] = 1 << 40
    found = messages(model([helper.make_node("Relu", ["w"], ["y"])], [], ["y"], [weight]))
    assert "initializer 'w': its raw data has 8 bytes, expected 4398046511104" in found[0]


def test_a_sparse_tensor_of_any_size() -> None:
    proto = varied_model()
    proto.graph.sparse_initializer[0].dims[:] = [1 << 30, 1 << 30]
    assert "the dense form of its shape" in messages(proto)[0]


def test_names_that_are_not_text(tmp_path: Path) -> None:
    data = varied_model().SerializeToString().replace(b"branch", b"br\xffnch")
    error = load(data, tmp_path / "model.onnx")
    assert error is not None
    assert "a name in it is not UTF-8 text" in str(error)
