"""What the import of onnx models produces."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx import numpy_helper as arrays
from xdsl.dialects.builtin import ModuleOp, NameLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.parser import Parser

from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.interpret.onnx import Value, evaluate_region
from lowerdeck.dialects.onnx.ops import InitializerOp
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.frontends.text import default_context

from .onnx_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    function,
    info,
    model,
    varied_model,
)


def main_of(module: ModuleOp) -> FuncOp:
    first = module.body.block.first_op
    assert isinstance(first, FuncOp)
    return first


def names_of_ops(module: ModuleOp) -> list[str]:
    return [op.name for op in main_of(module).body.block.ops]


def names_of(function: FuncOp) -> tuple[list[str], list[str]]:
    inputs, outputs = function.function_type.inputs, function.function_type.outputs
    return (
        value_names(function.arg_attrs, len(inputs)),
        value_names(function.res_attrs, len(outputs)),
    )


def run(module: ModuleOp, *args: Value) -> list[Value]:
    return evaluate_region(main_of(module).body, args, {})


def saved(proto: ModelProto, folder: Path) -> str:
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return str(path)


def test_text_reads_back_as_the_same_module(tmp_path: Path) -> None:
    module = load_model(saved(varied_model(), tmp_path))
    module.verify()
    text = str(module)
    again = Parser(default_context(), text).parse_module()
    again.verify()
    assert str(again) == text


def test_arguments_and_results_have_the_names_of_the_model() -> None:
    main = main_of(import_model(varied_model()))
    assert names_of(main) == (["x", "cond"], ["v", "part"])


def test_dimension_names_become_distinct_symbols() -> None:
    shape = ["N", "N", "a b", "a_b", "min", None, 4]
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    module = import_model(model(nodes, [info("x", shape)], ["y"]))
    expected = "dims = [N, N, a_b, a_b_1, min_1, d0, 4]"
    assert expected in str(main_of(module).body.block.arg_types[0])


def test_what_stands_for_no_name_is_a_symbol_of_its_own_each_time() -> None:
    shape = ["?", "?", "-1", "-1", "None", "None", "", "unknown", "unk__7", "unk__7"]
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    module = import_model(model(nodes, [info("x", shape)], ["y"]))
    expected = "dims = [d0, d1, d2, d3, d4, d5, d6, d7, unk__7, unk__7]"
    assert expected in str(main_of(module).body.block.arg_types[0])


def test_input_shapes_replace_those_of_the_model() -> None:
    module = import_model(varied_model(), input_shapes={"x": [1, 3, 8, 8]})
    assert str(main_of(module).body.block.arg_types[0]) == "tensor<1x3x8x8xf32>"


def test_large_weights_stay_in_the_file(tmp_path: Path) -> None:
    path = saved(varied_model(), tmp_path)
    module = load_model(path)
    weight = next(op for op in module.walk() if isinstance(op, InitializerOp))
    assert f'#core.blob<"{path}", ' in str(weight)
    random = np.random.default_rng(0)
    np.testing.assert_array_equal(
        weight.array(), random.normal(size=(8, 3, 5, 5)).astype(np.float32)
    )


def test_weights_that_name_their_default_location_stay_in_the_file(tmp_path: Path) -> None:
    proto = varied_model()
    proto.graph.initializer[0].data_location = TensorProto.DEFAULT
    path = saved(proto, tmp_path)
    assert f'#core.blob<"{path}", ' in str(load_model(path))


def test_weights_in_another_file_are_mapped(tmp_path: Path) -> None:
    weights = np.arange(6, dtype=np.float32)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(b"head" + weights.tobytes())
    external = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3])
    external.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "weights/w.bin", "offset": "4", "length": "24"}.items():
        external.external_data.add(key=key, value=value)
    proto = model([helper.make_node("Relu", ["w"], ["y"])], [], ["y"], [external])
    module = load_model(saved(proto, tmp_path))
    (result,) = run(module)
    np.testing.assert_array_equal(cast(np.ndarray, result), weights.reshape(2, 3))


def test_the_location_decides_between_two_kinds_of_data(tmp_path: Path) -> None:
    weights = np.arange(512, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(weights.tobytes())
    both = arrays.from_array(-weights, "w")
    both.data_location = TensorProto.EXTERNAL
    both.external_data.add(key="location", value="w.bin")
    proto = model([helper.make_node("Identity", ["w"], ["y"])], [], ["y"], [both])
    (result,) = run(load_model(saved(proto, tmp_path)))
    np.testing.assert_array_equal(cast(np.ndarray, result), weights)


@pytest.mark.parametrize(
    "data_type",
    [t for t in TensorProto.DataType.values() if t not in (0, TensorProto.STRING)],
    ids=lambda t: TensorProto.DataType.Name(t),
)
@pytest.mark.parametrize("is_raw", [True, False])
def test_constants_of_every_element_type(data_type: int, is_raw: bool) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(data_type)
    values = np.array([0, 1, 1, 0, 1]).astype(dtype)
    tensor = arrays.from_array(values, "w")
    if not is_raw:
        plain = values if dtype.kind == "c" else values.astype(np.float32)
        tensor = helper.make_tensor("w", data_type, [5], plain.tolist())
    module = import_model(model([], [], ["w"], [tensor], opset=28))
    weight = next(op for op in module.walk() if isinstance(op, InitializerOp))
    assert weight.array().dtype == dtype
    assert weight.array().tobytes() == values.tobytes()


def test_strings_and_sparse_constants() -> None:
    proto = model(
        [helper.make_node("Identity", ["s"], ["y"])],
        [],
        ["y", "sparse"],
        [arrays.from_array(np.array(["a", "ä"], dtype=object), "s")],
    )
    proto.graph.sparse_initializer.extend(varied_model().graph.sparse_initializer)
    texts, sparse = run(import_model(proto))
    assert cast(np.ndarray, texts).tolist() == ["a", "ä"]
    assert cast(np.ndarray, sparse).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_an_input_with_an_initializer_is_a_constant_up_to_version_3() -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    weights = [arrays.from_array(np.ones(2, np.float32), "w")]
    proto = model(nodes, [info("x", [2]), info("w", [2])], ["y"], weights)
    proto.ir_version = 3
    module = import_model(proto)
    assert names_of(main_of(module))[0] == ["x"]


def test_outputs_are_apart() -> None:
    """What is given by name is given once: those of the file, and those that are asked for."""
    proto = varied_model()
    proto.graph.output.append(proto.graph.output[0])
    name = proto.graph.output[0].name
    for each, outputs in ((proto, None), (varied_model(), [name, name])):
        with pytest.raises(FrontendError, match=f"'{name}'.* name a tensor twice"):
            import_model(each, outputs=outputs)


def test_outputs_are_chosen_and_what_they_do_not_need_is_left_out() -> None:
    module = import_model(varied_model(), outputs=["t"])
    module.verify()
    assert names_of_ops(module) == [
        "onnx.initializer",
        "onnx.initializer",
        "onnx.Conv_11",
        "func.return",
    ]
    assert names_of(main_of(module))[1] == ["t"]


def test_nodes_in_any_order_are_sorted_stably() -> None:
    nodes = [
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Tanh", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Abs", ["x"], ["d"]),
    ]
    names = names_of_ops(import_model(model(nodes, [info("x", [2])], ["c", "d"])))
    assert names == ["onnx.Tanh_13", "onnx.Neg_13", "onnx.Relu_14", "onnx.Abs_13", "func.return"]


def test_locations_are_the_names_of_nodes() -> None:
    module = import_model(varied_model())
    names = {
        op.name: op.location.desc.data
        for op in module.walk()
        if isinstance(op.location, NameLoc) and op.name.startswith("onnx.")
    }
    assert names["onnx.Conv_11"] == "conv"
    assert names["onnx.LeakyRelu_16"] == "call/leaky"
    assert names["onnx.Add_14"] == "next"


def test_functions_are_inlined_in_functions_and_subgraphs() -> None:
    twice = function(
        "Twice",
        [
            helper.make_node("Once", ["x"], ["t"], domain="local"),
            helper.make_node("Once", ["t"], ["y"], domain="local"),
        ],
    )
    once = function("Once", [helper.make_node("Add", ["x", "x"], ["y"])])
    call = helper.make_node("Twice", ["x"], ["y"], domain="local")
    module = import_model(model([call], [info("x", [2])], ["y"], (), [twice, once]))
    assert names_of_ops(module) == ["onnx.Add_14", "onnx.Add_14", "func.return"]
    (result,) = run(module, np.array([1, 2], np.float32))
    assert cast(np.ndarray, result).tolist() == [4, 8]


def test_a_node_gets_the_newest_version_of_its_opset() -> None:
    for opset, name in ((6, "Relu_6"), (12, "Relu_6"), (13, "Relu_13"), (14, "Relu_14")):
        nodes = [helper.make_node("Relu", ["x"], ["y"])]
        module = import_model(model(nodes, [info("x", [2])], ["y"], opset=opset))
        assert names_of_ops(module)[0] == f"onnx.{name}"


def test_models_older_than_opsets_use_the_first() -> None:
    proto = model([helper.make_node("Neg", ["x"], ["y"])], [info("x", [2])], ["y"])
    proto.ir_version = 2
    del proto.opset_import[:]
    assert names_of_ops(import_model(proto))[0] == "onnx.Neg_1"


def test_subgraphs_run_with_the_values_around_them() -> None:
    module = import_model(varied_model(), outputs=["u"])
    image = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)
    (positive,) = run(module, image, np.array(True))
    (negative,) = run(module, image, np.array(False))
    plain = import_model(varied_model(), outputs=["t"])
    (conv,) = run(plain, image, np.array(True))
    expected = cast(np.ndarray, conv)
    np.testing.assert_allclose(cast(np.ndarray, positive), np.maximum(expected, 0))
    leaky = np.where(expected < 0, expected * np.float32(0.5), expected)
    np.testing.assert_allclose(cast(np.ndarray, negative), -leaky)


def test_the_model_in_memory_is_not_changed() -> None:
    proto = varied_model()
    before = proto.SerializeToString(deterministic=True)
    import_model(proto, outputs=["t"])
    assert proto.SerializeToString(deterministic=True) == before


def test_results_keep_their_types_where_the_schema_tells() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.INT64),
        helper.make_node("Shape", ["x"], ["b"]),
        helper.make_node("SequenceConstruct", ["x", "x"], ["c"]),
        helper.make_node("SequenceAt", ["c", "b"], ["d"]),
    ]
    ops: list[Operation] = list(
        main_of(import_model(model(nodes, [info("x", [2])], ["d"]))).body.block.ops
    )
    assert [str(op.results[0].type) for op in ops[:-1]] == [
        "tensor<*xi64>",
        "tensor<*xi64>",
        "!core.sequence<tensor<*xf32>>",
        "tensor<*xf32>",
    ]


def test_weights_are_not_held_by_protobuf(tmp_path: Path) -> None:
    from lowerdeck.frontends.onnx.parse import parse_model

    parsed = parse_model(saved(varied_model(16), tmp_path))
    assert isinstance(parsed, onnx.ModelProto)
    assert parsed.ByteSize() < 3000


@pytest.mark.parametrize(("op_type", "opset"), [("MaxPool", 1), ("MaxPool", 8), ("AveragePool", 7)])
def test_an_attribute_of_a_later_version(op_type: str, opset: int) -> None:
    attributes: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
    node = helper.make_node(op_type, ["x"], ["y"], **attributes)
    proto = model([node], [info("x", [1, 1, 6, 6])], ["y"], opset=opset)
    assert f"onnx.{op_type}_10" in str(import_model(proto))
    node.attribute.append(helper.make_attribute("nothing", 1))
    proto = model([node], [info("x", [1, 1, 6, 6])], ["y"], opset=opset)
    with pytest.raises(FrontendError, match="found attribute 'nothing'"):
        import_model(proto)
