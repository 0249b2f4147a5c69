"""Nodes that contradict themselves, each refused with its name: numbers, ranks, lengths, types."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, helper
from onnx import numpy_helper as arrays

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.passes.legalize.walk import LegalizationError

make_node: Any = helper.make_node
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def refusal(path: Path, node: NodeProto, opset: int = 17, **inputs: Any) -> str:
    """Why a node is refused; its inputs are shapes (of floats) or arrays."""
    values = [
        helper.make_tensor_value_info(name, FLOAT, cast("list[int]", shape))
        for name, shape in inputs.items()
        if isinstance(shape, list)
    ]
    constants = [
        arrays.from_array(cast("NDArray[Any]", array), name)
        for name, array in inputs.items()
        if isinstance(array, np.ndarray)
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "g", values, outputs, constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (file := path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(LegalizationError) as error:
        import_and_lower(str(file), "legal", CompileOptions())
    assert f"node '{node.name}' ({node.op_type})" in str(error.value)
    return str(error.value)


def body(inputs: int, outputs: int) -> GraphProto:
    """A subgraph with these numbers of inputs and outputs."""
    scalar: list[int] = []
    kinds = [(INT, scalar), (BOOL, scalar), *[(FLOAT, [2])] * inputs][:inputs]
    given = [helper.make_tensor_value_info(f"i{k}", *kind) for k, kind in enumerate(kinds)]
    true = helper.make_tensor("t", BOOL, [], [True])
    nodes = [make_node("Constant", [], ["o0"], value=true)]
    for k in range(1, outputs):
        two = helper.make_tensor("v", FLOAT, [2], [1.0, 2.0])
        nodes.append(make_node("Constant", [], [f"o{k}"], value=two))
    results = [onnx.ValueInfoProto(name=f"o{k}") for k in range(outputs)]
    return helper.make_graph(nodes, "body", given, results)


@pytest.mark.parametrize(("inputs", "outputs"), [(0, 2), (2, 2), (4, 2), (3, 1), (3, 3)])
def test_loop_with_another_body(inputs: int, outputs: int, tmp_path: Path) -> None:
    node = make_node("Loop", ["n", "", "x"], ["y"], "loop", body=body(inputs, outputs))
    text = refusal(tmp_path, node, n=np.array(3), x=[2])
    assert f"'body' of {inputs} inputs and {outputs} outputs, expected 3 and 2" in text


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 2), (3, 2), (2, 1), (2, 3)])
def test_scan_with_another_body(inputs: int, outputs: int, tmp_path: Path) -> None:
    node = make_node(
        "Scan", ["s", "x"], ["t", "y"], "scan", body=body(inputs, outputs), num_scan_inputs=1
    )
    text = refusal(tmp_path, node, s=[2], x=[5, 2])
    assert f"'body' of {inputs} inputs and {outputs} outputs, expected 2 and 2" in text


@pytest.mark.parametrize("count", [-1, 0, 3, 2**31])
def test_scan_with_another_number_of_inputs(count: int, tmp_path: Path) -> None:
    node = make_node("Scan", ["s", "x"], ["t", "y"], "scan", body=body(2, 2), num_scan_inputs=count)
    assert f"found {count} scan inputs, expected 1 to 2" in refusal(tmp_path, node, s=[2], x=[5, 2])


@pytest.mark.parametrize(
    "name",
    ["scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions"],
)
def test_scan_with_lists_of_other_lengths(name: str, tmp_path: Path) -> None:
    step = make_node("Identity", ["a"], ["b"])
    infos = [helper.make_tensor_value_info(k, FLOAT, [2]) for k in ("a", "b")]
    graph = helper.make_graph([step], "body", infos[:1], infos[1:])
    node = make_node("Scan", ["x"], ["y"], "scan", body=graph, num_scan_inputs=1, **{name: [0, 0]})
    assert f"attribute '{name}' of 2 numbers, expected 1" in refusal(tmp_path, node, x=[5, 2])


@pytest.mark.parametrize("outputs", [2, 3])
def test_if_with_another_branch(outputs: int, tmp_path: Path) -> None:
    branches = {"then_branch": body(0, 1), "else_branch": body(0, outputs)}
    node = make_node("If", ["c"], ["y"], "if", **branches)
    text = refusal(tmp_path, node, c=np.array(True))
    assert f"'else_branch' of 0 inputs and {outputs} outputs, expected 0 and 1" in text


@pytest.mark.parametrize("count", [0, 2])
def test_if_with_another_condition(count: int, tmp_path: Path) -> None:
    branches = {"then_branch": body(0, 1), "else_branch": body(0, 1)}
    node = make_node("If", ["c"], ["y"], "if", **branches)
    assert "expected one element" in refusal(tmp_path, node, c=np.ones(count, np.bool_))


@pytest.mark.parametrize("name", ["x", "w", "r"])
@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("rank", [2, 4])
def test_recurrent_layers_of_other_ranks(
    name: str, operator: str, rank: int, tmp_path: Path
) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    shapes: dict[str, Any] = {"x": [5, 1, 2], "w": [1, gates * 3, 2], "r": [1, gates * 3, 3]}
    shapes[name] = [*shapes[name], 1] if rank == 4 else shapes[name][:2]
    node = make_node(operator, ["x", "w", "r"], ["y"], "rnn", hidden_size=3)
    assert f"'{name.upper()}' of type" in refusal(tmp_path, node, **shapes)


@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_of_other_batches(operator: str, tmp_path: Path) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    names = ["x", "w", "r", "", "l", "h"]
    shapes: dict[str, Any] = {
        "x": [5, 2, 2],
        "w": [1, gates * 3, 2],
        "r": [1, gates * 3, 3],
        "h": [1, 4, 3],
    }
    node = make_node(operator, names, ["y"], "rnn", hidden_size=3)
    text = refusal(tmp_path, node, **shapes, l=np.array([5, 3], np.int32))
    assert "inputs for 2 and 4 sequences, expected the same number in each" in text


@pytest.mark.parametrize("number", [0, 99, -(2**63)])
def test_element_types_that_are_none(number: int, tmp_path: Path) -> None:
    node = make_node("EyeLike", ["x"], ["y"], "eye", dtype=number)
    assert f"{number} is not an element type" in refusal(tmp_path, node, x=[2, 2])


@pytest.mark.parametrize("name", ["strides", "dilations", "pads"])
def test_blocks_with_lists_of_other_lengths(name: str, tmp_path: Path) -> None:
    node = make_node("Col2Im", ["x", "i", "b"], ["y"], "image", **{name: [1]})
    sizes = {"i": np.array([5, 5]), "b": np.array([1, 5])}
    assert f"1 {name}" in refusal(tmp_path, node, 18, x=[1, 5, 5], **sizes)


def test_strides_that_are_no_steps(tmp_path: Path) -> None:
    node = make_node("MaxPool", ["x"], ["y"], "pool", kernel_shape=[2], strides=[0])
    assert "strides [0], expected numbers from 1 on" in refusal(tmp_path, node, x=[1, 1, 4])


def test_what_is_found_is_not_told_at_any_length(tmp_path: Path) -> None:
    node = make_node("MaxPool", ["x"], ["y"], "pool", kernel_shape=[1], pads=[-1, 0])
    assert "pads [-1, 0]" in refusal(tmp_path, node, x=[1, 1, 4])
    node = make_node("ReduceSum", ["x"], ["y"], "sum", axes=[7] * 100_000)
    assert len(refusal(tmp_path, node, 11, x=[1, 1, 4])) < 2_000


@pytest.mark.parametrize("op", ["Exp", "CastLike", "Pow"])
def test_inputs_without_a_type(op: str, tmp_path: Path) -> None:
    inputs = ["x"] if op == "Exp" else ["x", "x"]
    value = onnx.ValueInfoProto(name="x")
    value.type.tensor_type.shape.dim.add(dim_value=2)
    graph = helper.make_graph(
        [make_node(op, inputs, ["y"], "n")], "g", [value], [onnx.ValueInfoProto(name="y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (file := tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(LegalizationError, match=r"node 'n' .*input 0 of unknown element type"):
        import_and_lower(str(file), "legal", CompileOptions())


def test_shapes_filled_with_several_numbers(tmp_path: Path) -> None:
    value = helper.make_tensor("v", FLOAT, [2, 2], [1.0] * 4)
    node = make_node("ConstantOfShape", ["s"], ["y"], "c", value=value)
    assert "found 4 numbers as 'value'" in refusal(tmp_path, node, s=np.array([2, 3]))


@pytest.mark.parametrize("axes", [[], [1, 2]])
def test_transforms_along_several_axes(axes: list[int], tmp_path: Path) -> None:
    node = make_node("DFT", ["x", "", "axis"], ["y"], "d")
    text = refusal(tmp_path, node, 20, x=[1, 4, 1], axis=np.array(axes, np.int64))
    assert f"found {len(axes)} numbers as an axis" in text


def test_updates_at_other_places(tmp_path: Path) -> None:
    node = make_node("TensorScatter", ["x", "u", "places"], ["y"], "t")
    places = np.zeros(3, np.int64)
    assert "(3,1,1)" in refusal(tmp_path, node, 24, x=[2, 4, 5], u=[2, 1, 5], places=places)


def test_trees_with_scores_beyond_all_memory(tmp_path: Path) -> None:
    lists = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    nodes: dict[str, Any] = {f"nodes_{name}": [0] for name in lists}
    target: dict[str, Any] = {f"target_{name}": [0] for name in ("treeids", "nodeids", "ids")}
    node = make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        "t",
        domain="ai.onnx.ml",
        **nodes,
        **target,
        nodes_modes=["LEAF"],
        nodes_values=[0.0],
        target_weights=[1.0],
        n_targets=1 << 40,
    )
    assert f"found {1 << 40} scores of 1 nodes" in refusal(tmp_path, node, x=[1, 2])


@pytest.mark.parametrize("rank", [65, 20_000])
@pytest.mark.parametrize("is_weight", [False, True])
@pytest.mark.parametrize("op", ["Add", "Flatten", "Identity"])
def test_more_dimensions_than_there_can_be(
    op: str, is_weight: bool, rank: int, tmp_path: Path
) -> None:
    weight = TensorProto(name="x", data_type=FLOAT, dims=[1] * rank, raw_data=bytes(4))
    given = helper.make_tensor_value_info("x", FLOAT, [f"d{k}" for k in range(rank)])
    inputs = ["x", "x"] if op == "Add" else ["x"]
    node = make_node(op, inputs, ["y"], "n")
    outputs = [onnx.ValueInfoProto(name="y")]
    inputs_of_model = [] if is_weight else [given]
    weights = [weight] if is_weight else []
    graph = helper.make_graph([node], "g", inputs_of_model, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (file := tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(LegalizationError, match=f"node 'n' .* of {rank} dimensions, expected up"):
        import_and_lower(str(file), "legal", CompileOptions())


def test_results_of_more_dimensions_than_there_can_be(tmp_path: Path) -> None:
    shape = np.ones(65, np.int64)
    assert "65 dimensions" in refusal(
        tmp_path, make_node("Expand", ["x", "s"], ["y"], "n"), x=[1], s=shape
    )


def test_statistics_of_a_vector(tmp_path: Path) -> None:
    node = make_node("BatchNormalization", [*"xsbmv"], ["y"], "n", training_mode=1)
    assert "2 or more dimensions" in refusal(tmp_path, node, x=[4], s=[1], b=[1], m=[1], v=[1])


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize(
    ("x", "w"), [([], []), ([2, 3], [3, 3]), ([1, 3, 5], [3]), ([1, 3, 5], [])]
)
def test_convolution_of_few_dimensions(
    op_type: str, x: list[int], w: list[int], tmp_path: Path
) -> None:
    node = make_node(op_type, ["x", "w"], ["y"], "conv")
    assert "3 or more dimensions" in refusal(tmp_path, node, x=x, w=w)


def test_convolution_with_a_bias_for_what_is_no_channel(tmp_path: Path) -> None:
    node = make_node("Conv", ["x", "w", "b"], ["y"], "conv")
    assert "1 dimensions" in refusal(tmp_path, node, x=[1, 3, 5], w=[4, 3, 3], b=[4, 1])


@pytest.mark.parametrize("op_type", ["CumSum", "CumProd"])
@pytest.mark.parametrize("axes", [[], [0, 1]])
def test_running_sum_over_no_or_two_axes(op_type: str, axes: list[int], tmp_path: Path) -> None:
    node = make_node(op_type, ["x", "axis"], ["y"], "node")
    opset = 14 if op_type == "CumSum" else 26
    text = refusal(tmp_path, node, opset, x=[2, 3], axis=np.array(axes, np.int64))
    assert f"'axis' of {len(axes)} numbers, expected one number" in text


@pytest.mark.parametrize("op_type", ["SpaceToDepth", "DepthToSpace"])
@pytest.mark.parametrize("size", [-1, 0])
def test_blocks_of_nothing(op_type: str, size: int, tmp_path: Path) -> None:
    node = make_node(op_type, ["x"], ["y"], "node", blocksize=size)
    assert f"blocksize {size}" in refusal(tmp_path, node, x=[1, 4, 4, 4])


def test_scatter_with_indices_of_another_rank(tmp_path: Path) -> None:
    node = make_node("ScatterElements", ["x", "i", "u"], ["y"], "node")
    text = refusal(tmp_path, node, x=[2, 2], i=np.array([0, 1]), u=[2])
    assert "ranks differ" in text


def test_scatter_with_indices_longer_than_the_rank(tmp_path: Path) -> None:
    node = make_node("ScatterND", ["x", "i", "u"], ["y"], "node")
    text = refusal(tmp_path, node, x=[2, 2], i=np.array([[0, 1, 0]]), u=[1])
    assert "the indices are longer" in text


@pytest.mark.parametrize("shape", [[9], [9, 9, 9]])
def test_transposed_convolution_to_a_shape_of_another_rank(
    shape: list[int], tmp_path: Path
) -> None:
    node = make_node("ConvTranspose", ["x", "w"], ["y"], "conv", output_shape=shape)
    text = refusal(tmp_path, node, x=[1, 3, 4, 4], w=[3, 2, 3, 3])
    assert f"an output_shape of {len(shape)} numbers, expected 2" in text


def test_sizes_beyond_all_memory(tmp_path: Path) -> None:
    """More elements than 64 bits count, in an input and behind, and more axes than a tensor has."""
    node = make_node("RMSNormalization", ["x", "s"], ["y"], name="n", axis=0)
    with pytest.raises(FrontendError, match=r"2\^80 elements in input 'x'"):
        refusal(tmp_path, node, 23, x=[1 << 40, 1 << 40], s=[1])
    sizes = arrays.from_array(np.array([1 << 40, 1 << 40]), "sizes")
    graph = helper.make_graph(
        [
            make_node("Expand", ["x", "sizes"], ["w"], name="w"),
            make_node("RMSNormalization", ["w", "s"], ["y"], name="n", axis=0),
        ],
        "g",
        [helper.make_tensor_value_info(name, FLOAT, [1]) for name in "xs"],
        [onnx.ValueInfoProto(name="y")],
        [sizes],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=8)
    (file := tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(LegalizationError, match=f"a number of elements of {1 << 80}, in 64 bits"):
        import_and_lower(str(file), "legal", CompileOptions())
    node = make_node("Unsqueeze", ["x", "a"], ["y"], name="n")
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("x", FLOAT, [2, 3]),
            helper.make_tensor_value_info("a", INT, [1 << 40]),
        ],
        [onnx.ValueInfoProto(name="y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (file := tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(LegalizationError, match=f"found {1 << 40} axes, expected up to 64"):
        import_and_lower(str(file), "legal", CompileOptions())


def test_parts_of_gather_nd(tmp_path: Path) -> None:
    """Each has its list of indices."""
    node = make_node("GatherND", ["x", "i"], ["y"], name="n", batch_dims=1)
    text = refusal(tmp_path, node, x=[9, 8], i=np.zeros((6, 3, 1), np.int64))
    assert "6 lists of indices for 9 parts" in text
