"""Import of TensorFlow graphs: nodes, edges, tensors, what is fetched and what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from xdsl.dialects.builtin import ModuleOp, NameLoc
from xdsl.ir import Operation

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.interpret import run_module
from lowerdeck.dialects.tf1.constants import constant_array
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.tf1.graph_pb2 import (
    AttrValue,
    DataType,
    GraphDef,
    NameAttrList,
    NodeDef,
    TensorProto,
    VersionDef,
)
from lowerdeck.frontends.tf1.import_ import import_graph

from .tf1_graphs import (  # noqa: TID251  (these are tests, not the folder of sources)
    FLOAT,
    INT,
    Shape,
    Type,
    const,
    doubling_loop,
    graph,
    node,
    placeholder,
    shape_proto,
)


def ops(module: ModuleOp) -> dict[str, Operation]:
    """The ops of the graph by node name."""
    return {op.location.desc.data: op for op in module.walk() if isinstance(op.location, NameLoc)}


def names(module: ModuleOp) -> list[str]:
    """What is fetched."""
    (fetch,) = (op for op in module.walk() if op.name == "tf1.fetch")
    return [name.data for name in fetch.properties["names"]]  # pyright: ignore


def refused(*nodes: NodeDef, **options: Any) -> str:
    """The message of the refusal."""
    with pytest.raises(FrontendError) as caught:
        import_graph(graph(*nodes), **options)
    return str(caught.value)


# Nodes and edges


def test_a_loop_is_imported_as_it_is_and_runs() -> None:
    module = import_graph(doubling_loop(), outputs=["y", "count:0"])
    module.verify()
    assert names(module) == ["y:0", "count:0"]
    found = run_module(module, {"x:0": np.array(3, np.float32)})
    assert found["y:0"] == 192
    assert found["count:0"] == 6


def test_the_order_of_nodes_means_nothing() -> None:
    expected = str(import_graph(doubling_loop()))
    for seed in range(5):
        shuffled = doubling_loop()
        nodes = list(shuffled.node)
        random.Random(seed).shuffle(nodes)
        del shuffled.node[:]
        shuffled.node.extend(nodes)
        assert str(import_graph(shuffled)) == expected


def test_nodes_that_are_not_needed_are_left_out_with_what_is_wrong_in_them() -> None:
    module = import_graph(
        graph(
            placeholder("x"), node("y", "Relu", "x", T=FLOAT), node("odd", "NoSuchOp", "nothing")
        ),
        outputs=["y"],
    )
    assert sorted(ops(module)) == ["x", "y"]


def test_inputs_that_are_not_needed_may_be_given() -> None:
    nodes = [placeholder("x"), placeholder("z"), node("y", "Neg", "x", T=FLOAT)]
    module = import_graph(graph(*nodes), outputs=["y"])
    one = np.array(1, np.float32)
    assert run_module(module, {"x:0": one, "z:0": one}) == {"y:0": -1}


def test_control_inputs_are_operands_and_control_results_are_made_for_them() -> None:
    module = import_graph(
        graph(placeholder("x"), const("c", 1, "^x"), node("y", "AddV2", "c", "c", T=FLOAT)),
        outputs=["y"],
    )
    found = ops(module)
    assert list(found["c"].operands) == [found["x"].results[1]]
    assert len(found["c"].results) == 1


def test_an_output_may_be_any_port_of_any_node() -> None:
    split = node("s", "Split", "axis", "x", T=FLOAT, num_split=2)
    nodes = [placeholder("x", (4,)), const("axis", 0, dtype=np.int32), split]
    module = import_graph(graph(*nodes, node("r", "Relu", "s:1", T=FLOAT)), outputs=["s:1", "r"])
    found = run_module(module, {"x:0": np.array([1, 2, -3, 4], np.float32)})
    np.testing.assert_array_equal(found["s:1"], np.array([-3, 4], np.float32))
    np.testing.assert_array_equal(found["r:0"], np.array([0, 4], np.float32))


def test_attributes_for_tensorflow_itself_are_dropped_and_unknown_ones_refused() -> None:
    x = placeholder("x")
    module = import_graph(graph(x, node("y", "Relu", "x", T=FLOAT, _class="loc")), outputs=["y"])
    assert list(ops(module)["y"].properties) == ["T"]
    message = refused(x, node("y", "Relu", "x", T=FLOAT, slope=1.0), outputs=["y"])
    assert message == "model: node 'y' (Relu): found the attribute 'slope', expected only T"


def test_ref_edges_may_feed_plain_inputs() -> None:
    module = import_graph(
        graph(
            placeholder("x"),
            node("r", "RefIdentity", "x", T=Type("float_ref")),
            node("y", "Relu", "r", T=FLOAT),
        ),
        outputs=["y"],
    )
    module.verify()


# Placeholders


def type_of(module: ModuleOp, name: str) -> str:
    """The type of a node's first output."""
    return str(ops(module)[name].results[0].type)


def test_unknown_dimensions_of_placeholders_become_symbols_of_their_own() -> None:
    nodes = [placeholder("x", (-1, 3)), placeholder("z", (-1,)), placeholder("u", None)]
    nodes.append(node("y", "AddN", "x", "z", "u", T=FLOAT, N=3))
    module = import_graph(graph(*nodes), outputs=["y"])
    assert "dims = [d0, 3]" in type_of(module, "x")
    assert "dims = [d1]" in type_of(module, "z")
    assert type_of(module, "u") == "tensor<*xf32>"


def test_old_producers_wrote_a_scalar_for_a_shape_that_is_not_known() -> None:
    nodes = [placeholder("x"), node("y", "Relu", "x", T=FLOAT)]
    assert type_of(import_graph(graph(*nodes, producer=21)), "x") == "tensor<*xf32>"
    assert type_of(import_graph(graph(*nodes, producer=22)), "x") == "tensor<f32>"
    oldest = GraphDef(node=nodes, version=21)
    assert type_of(import_graph(oldest), "x") == "tensor<*xf32>"


@pytest.mark.parametrize("name", ["x", "x:0"])
def test_shapes_can_be_given(name: str) -> None:
    nodes = [placeholder("x", (-1, 3)), node("y", "Relu", "x", T=FLOAT)]
    module = import_graph(graph(*nodes), input_shapes={name: [5, 4]})
    assert type_of(module, "x") == "tensor<5x4xf32>"


def test_shapes_for_what_is_no_input_are_refused() -> None:
    nodes = [placeholder("x"), node("y", "Relu", "x", T=FLOAT)]
    expected = "a shape is given for 'z', but the inputs are 'x:0'"
    assert expected in refused(*nodes, input_shapes={"z": [1]})
    assert "is negative" in refused(*nodes, input_shapes={"x": [-1]})
    assert "two shapes" in refused(*nodes, input_shapes={"x": [1], "x:0": [2]})


def test_a_default_is_used_unless_a_shape_makes_it_an_input() -> None:
    nodes = [const("c", [1, 2]), node("y", "Neg", "d", T=FLOAT)]
    nodes.append(node("d", "PlaceholderWithDefault", "c", dtype=FLOAT, shape=Shape((2,))))
    module = import_graph(graph(*nodes))
    np.testing.assert_array_equal(run_module(module, {})["y:0"], np.array([-1, -2], np.float32))
    module = import_graph(graph(*nodes), input_shapes={"d": [3]})
    module.verify()
    assert sorted(ops(module)) == ["d", "y"]
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(run_module(module, {"d:0": x})["y:0"], -x)


# Constants


def constant(dtype: str, shape: tuple[int, ...], **values: Any) -> Any:
    """The elements of an imported constant."""
    proto = TensorProto(dtype=dtype, tensor_shape=shape_proto(shape), **values)
    name = Type(dtype.removeprefix("DT_").lower())
    c = node("c", "Const", value=proto, dtype=name)
    module = import_graph(graph(c), outputs=["c"])
    module.verify()
    return constant_array(ops(module)["c"])


@pytest.mark.parametrize(
    ("dtype", "shape", "values", "expected"),
    [
        ("FLOAT", (4,), {"float_val": [1, 2]}, [1, 2, 2, 2]),
        ("FLOAT", (2, 2), {}, [[0, 0], [0, 0]]),
        ("FLOAT", (), {"float_val": [3]}, 3),
        ("FLOAT", (0, 3), {}, np.zeros((0, 3))),
        ("DOUBLE", (2,), {"double_val": [0.1]}, [0.1, 0.1]),
        ("HALF", (2,), {"half_val": [0x3C00, 0xC000]}, [1, -2]),
        ("BFLOAT16", (2,), {"half_val": [0x3F80, 0xC000]}, [1, -2]),
        ("INT8", (3,), {"int_val": [-128, 127, 255]}, [-128, 127, -1]),
        ("UINT8", (2,), {"int_val": [255, -1]}, [255, 255]),
        ("INT64", (2,), {"int64_val": [-(2**63), 2**63 - 1]}, [-(2**63), 2**63 - 1]),
        ("UINT32", (1,), {"uint32_val": [2**32 - 1]}, [2**32 - 1]),
        ("UINT64", (1,), {"uint64_val": [2**64 - 1]}, [2**64 - 1]),
        ("BOOL", (3,), {"bool_val": [True, False]}, [True, False, False]),
        ("COMPLEX64", (2,), {"scomplex_val": [1, 2]}, [1 + 2j, 1 + 2j]),
        ("COMPLEX128", (1,), {"dcomplex_val": [1, -2]}, [1 - 2j]),
        ("QUINT8", (2,), {"int_val": [7]}, [7, 7]),
        ("STRING", (3,), {"string_val": [b"a", b"\xff"]}, ["a", "\xff", "\xff"]),
        ("STRING", (2,), {"tensor_content": b"\x01\x02abc"}, ["a", "bc"]),
        ("INT32", (2,), {"tensor_content": b"\1\0\0\0\2\0\0\0"}, [1, 2]),
    ],
)
def test_constants_in_all_forms(
    dtype: str, shape: tuple[int, ...], values: dict[str, Any], expected: Any
) -> None:
    found = constant(f"DT_{dtype}", shape, **values)
    assert found.shape == shape
    assert found.astype(np.asarray(expected).dtype).tolist() == np.asarray(expected).tolist()


@pytest.mark.parametrize(
    ("shape", "values", "expected"),
    [
        ((2,), {"tensor_content": b"123"}, "its content has 3 bytes, expected 8"),
        ((1,), {"float_val": [1, 2]}, "its float_val has 2 elements, expected 1"),
        ((-1,), {}, "the shape [-1] is not one of a constant"),
        ((1 << 30, 1 << 30, 8), {}, "is not one of a constant"),
        ((1 << 40,), {"float_val": [1]}, "1 elements are to fill"),
    ],
)
def test_constants_that_are_not_valid(
    shape: tuple[int, ...], values: dict[str, Any], expected: str
) -> None:
    with pytest.raises(FrontendError, match="node 'c'") as caught:
        constant("DT_FLOAT", shape, **values)
    assert expected in str(caught.value)


def test_large_constants_stay_in_the_file(tmp_path: Path) -> None:
    weights = np.arange(1000, dtype=np.float32)
    path = tmp_path / "model.pb"
    nodes = [const("c", weights), node("y", "Neg", "c", T=FLOAT)]
    path.write_bytes(graph(*nodes).SerializeToString())
    module = load_model(path)
    value = ops(module)["c"].properties["value"]
    assert isinstance(value, BlobAttr)
    assert value.data.file == str(path)
    np.testing.assert_array_equal(run_module(module, {})["y:0"], -weights)


# What is fetched


def test_outputs_are_what_no_node_reads() -> None:
    nodes = [
        placeholder("x", (2,)),
        placeholder("unused"),
        const("alone", 1),
        node("a", "Neg", "x", T=FLOAT),
        node("z_first", "Relu", "x", T=FLOAT),
        node("b10", "Abs", "a", T=FLOAT),
        node("b9", "Exp", "a", T=FLOAT),
        node("check", "Assert", "ok", "a", T=[FLOAT]),
        node("ok", "Const", value=np.array(True), dtype=Type("bool")),
        node("init", "NoOp", "^a"),
        node("tag", "Const", value=TensorProto(dtype=DataType.DT_STRING), dtype=Type("string")),
        node("summary", "ScalarSummary", "tag", "x", T=FLOAT),
        node("top", "TopKV2", "b9", "k", T=FLOAT, sorted=True),
        const("k", 1, dtype=np.int32),
    ]
    assert names(import_graph(graph(*nodes))) == ["z_first:0", "b10:0", "top:0", "top:1"]


def test_byproducts_are_no_outputs() -> None:
    nodes = [placeholder("x", (1, 1, 1, 2)), const("c", [1, 1])]
    nodes.append(node("y", "FusedBatchNorm", "x", "c", "c", "c", "c", T=FLOAT, is_training=False))
    assert names(import_graph(graph(*nodes))) == ["y:0"]


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (["z"], "there is no node 'z' for an output"),
        (["y:1"], "output 'y:1' is not there: 'y' has 1 outputs"),
        (["y", "y:0"], "name a tensor twice"),
        (["^y"], "'^y' is not the name of a tensor"),
        ([], "the list of outputs is empty"),
    ],
)
def test_outputs_that_are_not_there(outputs: list[str], expected: str) -> None:
    nodes = [placeholder("x"), node("y", "Relu", "x", T=FLOAT)]
    assert expected in refused(*nodes, outputs=outputs)


def test_a_graph_in_which_nothing_looks_like_an_output() -> None:
    assert "name the outputs" in refused(placeholder("x"))


# Refusals

X = placeholder("x")
Y = node("y", "Relu", "x", T=FLOAT)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([X, Y, Y], "node 'y' (Relu): the name is that of another node, too"),
        ([X, node("y", "NoSuchOp", "x")], "its operator is not one of TensorFlow's"),
        ([X, node("y", "Relu", "x", "x", T=FLOAT)], "found 2 inputs, expected 1"),
        ([X, node("y", "Relu", T=FLOAT)], "found 0 inputs, expected 1"),
        ([X, node("y", "AddN", "x", T=FLOAT, N=-1)], "attribute 'N' is -1, expected 0 to"),
        ([X, node("y", "AddN", "x", T=FLOAT, N=1 << 60)], "expected 0 to 65536"),
        ([X, node("y", "Relu", "x:1", T=FLOAT)], "its input 'x:1' is not there"),
        ([Y], "its input 'x' is not in the graph"),
        ([X, node("y", "Relu", "x", "^z", T=FLOAT)], "its input 'z' is not in the graph"),
        ([X, node("y", "Relu", "x:-1", T=FLOAT)], "'x:-1' is not the name of a tensor"),
        ([X, node("y", "Relu", "x:99999999999", T=FLOAT)], "is not the name of a tensor"),
        ([X, node("y", "Relu", "x", T=INT)], "input 0, 'x:0', is float, expected int32"),
        ([X, node("y", "Relu", "x", T=3)], "attribute 'T' is a value of kind int, expected type"),
        ([X, node("y", "Relu", "x", T=[FLOAT])], "attribute 'T' is a list, expected type"),
        ([X, node("y", "Relu", "x")], "the attribute 'T' is missing, expected a type"),
        ([X, node("y", "Relu", "x", T=AttrValue())], "attribute 'T' is without a value"),
        ([X, node("y", "Relu", "x", T=AttrValue(placeholder="P"))], "the placeholder 'P'"),
        ([X, node("y", "Relu", "x", T=Type("float8_e5m2"))], "DT_FLOAT8_E5M2 is not an element"),
        ([node("y", "VariableV2", dtype=FLOAT, shape=Shape(()))], "freeze the graph first"),
        (
            [node("x", "Relu", "y", T=FLOAT), node("y", "Relu", "x", T=FLOAT)],
            "a cycle without NextIteration goes through",
        ),
    ],
)
def test_nodes_that_are_not_valid(nodes: list[NodeDef], expected: str) -> None:
    message = refused(*nodes, outputs=["y"])
    assert expected in message
    assert message.count("\n") == 0


def test_all_problems_are_listed_at_once() -> None:
    nodes = [X, node("a", "NoSuchOp", "x"), node("b", "Relu", "missing", T=FLOAT)]
    nodes.append(node("y", "AddN", "a", "b", T=INT, N=2))
    message = refused(*nodes, outputs=["y", "z"])
    assert sorted(line.split(": ")[1] for line in message.split("\n")) == [
        "node 'a' (NoSuchOp)",
        "node 'b' (Relu)",
        "node 'y' (AddN)",
        "there is no node 'z' for an output; --output names others",
    ]


def test_functions_that_are_not_there() -> None:
    call = AttrValue(func=NameAttrList(name="body_1"))
    loop = node("y", "StatelessWhile", "x", T=[FLOAT], cond=call, body=call)
    assert "the function 'body_1' is not in the graph's library" in refused(X, loop, outputs=["y"])


def test_versions() -> None:
    for versions in (VersionDef(min_consumer=9999), VersionDef(bad_consumers=[2474])):
        with pytest.raises(FrontendError, match="consumer"):
            import_graph(GraphDef(node=[X, Y], versions=versions))


# Files


def test_the_text_form_gives_the_same_graph(tmp_path: Path) -> None:
    path = tmp_path / "model.pbtxt"
    path.write_text(text_format.MessageToString(doubling_loop()))
    expected = str(import_graph(doubling_loop()))
    assert str(import_graph(path)) == expected
    renamed = path.rename(tmp_path / "text.pb")
    assert str(load_model(renamed)) == expected


TEXT = """
# A comment
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  experimental_debug_info { original_node_names: ["x", "a" "b"] count: -1 } }
node { name: "y" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT%s } } }
library { function { signature { name: "f" input_arg { name: "a" type: DT_INT4 } } } }
versions { producer: 2000 novel: [1, 2] }
"""


def test_unknown_fields_of_text_are_skipped_except_in_attributes(tmp_path: Path) -> None:
    path = tmp_path / "model.pbtxt"
    path.write_text(TEXT % "")
    assert names(import_graph(path)) == ["y:0"]
    path.write_text(TEXT % " novel: { deep: 1 }")
    with pytest.raises(FrontendError, match=r"'y'.*'T' is of a kind that is not known"):
        import_graph(path)
    assert list(ops(import_graph(path, outputs=["x"]))) == ["x"]


def test_a_message_of_another_library_is_serialized() -> None:
    class Foreign:
        def SerializeToString(self) -> bytes:
            return doubling_loop().SerializeToString()

    assert str(import_graph(Foreign())) == str(import_graph(doubling_loop()))


def test_what_is_computed_only_in_loops_and_branches_is_no_output() -> None:
    inner = {"T": FLOAT, "frame_name": "inner"}
    loop = doubling_loop().node
    nested = [
        node("enter_a", "Enter", "switch_x:1", **inner),
        node("merge_a", "Merge", "enter_a", "next_a", T=FLOAT, N=2),
        node("enough", "Less", "merge_a", "merge_a", T=FLOAT),
        node("going", "LoopCond", "enough"),
        node("switch_a", "Switch", "merge_a", "going", T=FLOAT),
        node("next_a", "NextIteration", "switch_a:1", T=FLOAT),
        node("exit_a", "Exit", "switch_a", T=FLOAT),
    ]
    branches = [
        placeholder("p", dtype=Type("bool")),
        node("side", "Switch", "p", "p", T=Type("bool")),
        node("pivot", "Identity", "side", T=Type("bool")),
        node("x_in", "Switch", "x", "p", T=FLOAT),
        node("yes", "Neg", "x_in:1", T=FLOAT),
        node("deeper", "Switch", "yes", "p", T=FLOAT),
        node("deeply", "Merge", "deeper", "deeper:1", T=FLOAT, N=2),
        node("z", "Merge", "x_in", "deeply", T=FLOAT, N=2),
    ]
    assert names(import_graph(graph(*loop, *nested, *branches))) == ["z:0", "count:0", "y:0"]
