"""Where the interpreter of onnx ops does not simply ask onnx.reference."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from onnx import TensorProto, helper
from xdsl.dialects.builtin import i8
from xdsl.ir import Block
from xdsl.utils.exceptions import InterpretationError

import lowerdeck
from lowerdeck.dialects.core.types import f32, i32, tensor
from lowerdeck.dialects.interpret.onnx import run_op
from lowerdeck.dialects.onnx.convert import node_to_op


def test_old_batch_normalization_with_one_output_uses_the_given_statistics() -> None:
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    statistics = [np.array(values, np.float32) for values in ([2, 1], [0, 1], [1, 2], [4, 9])]
    names = ["x", "scale", "bias", "mean", "variance"]
    node = helper.make_node("BatchNormalization", names, ["y"], epsilon=0.0, momentum=0.5)
    block = Block(arg_types=[tensor(f32, array.shape) for array in (x, *statistics)])
    operands = dict(zip(names, block.args, strict=True))
    expected = np.array([[[-1, 0, 1, 2], [5 / 3, 2, 7 / 3, 8 / 3]]], np.float32)
    for opset in (7, 9, 13, 15):
        op = node_to_op(node, operands, {"": opset})
        (found,) = run_op(op, [x, *statistics])
        np.testing.assert_allclose(cast(np.ndarray, found), expected, rtol=1e-6)


def test_dequantization_of_every_version() -> None:
    x, scale = np.array([[1, 2], [3, 4]], np.int8), np.array([0.5, 2], np.float32)
    block = Block(arg_types=[tensor(i8, x.shape), tensor(f32, scale.shape), tensor(f32, [])])
    columns = helper.make_node("DequantizeLinear", ["x", "scale"], ["y"])
    rows = helper.make_node("DequantizeLinear", ["x", "scale"], ["y"], axis=0)
    whole = helper.make_node("DequantizeLinear", ["x", "one"], ["y"])
    operands = dict(zip(["x", "scale", "one"], block.args, strict=True))
    for opset in (10, 13, 19, 21):
        op = node_to_op(whole, operands, {"": opset})
        (found,) = run_op(op, [x, scale[0]])
        np.testing.assert_array_equal(cast(np.ndarray, found), x * np.float32(0.5))
    for opset in (13, 19):
        for node, factors in ((columns, scale), (rows, scale[:, np.newaxis])):
            (found,) = run_op(node_to_op(node, operands, {"": opset}), [x, scale])
            np.testing.assert_array_equal(cast(np.ndarray, found), x * factors)


RECURRENT: list[tuple[str, int, dict[str, Any]]] = [
    ("RNN", 1, {"activations": ["ThresholdedRelu"], "activation_alpha": [0.1]}),
    ("RNN", 1, {"direction": "reverse", "activations": ["Elu"], "clip": 0.3}),
    ("GRU", 3, {"direction": "bidirectional"}),
    ("GRU", 3, {"linear_before_reset": 1, "direction": "reverse"}),
    ("LSTM", 4, {"direction": "bidirectional", "clip": 0.4}),
    ("LSTM", 4, {"input_forget": 1, "activations": ["HardSigmoid", "Softsign", "Relu"]}),
]


@pytest.mark.parametrize(("op_type", "gates", "attributes"), RECURRENT)
def test_recurrent_networks(op_type: str, gates: int, attributes: dict[str, Any]) -> None:
    """Sequences that end early, one of them at once, beside ONNX Runtime; one network in C, too."""
    ort: Any = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    shapes = {"x": (5, 3, 2), "w": (count, gates * 4, 2), "r": (count, gates * 4, 4)}
    shapes |= {"b": (count, gates * 8), "n": (3,), "h": (count, 3, 4)}
    shapes |= {"c": (count, 3, 4), "p": (count, 12)} if op_type == "LSTM" else {}
    arrays = {name: rng.normal(size=shape).astype("f") for name, shape in shapes.items()}
    arrays["n"] = np.array([5, 2, 0], np.int32)
    outputs = ["y", "last", "cell"][: 2 + (op_type == "LSTM")]
    node = helper.make_node(op_type, list(shapes), outputs, hidden_size=4, **attributes)
    types = {n: TensorProto.INT32 if n == "n" else TensorProto.FLOAT for n in shapes}
    infos = [helper.make_tensor_value_info(n, types[n], shapes[n]) for n in shapes]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "g", infos, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    expected = ort.InferenceSession(model.SerializeToString()).run(None, arrays)
    block = Block(arg_types=[tensor(i32 if n == "n" else f32, shapes[n]) for n in shapes])
    op = node_to_op(node, dict(zip(shapes, block.args, strict=True)), {"": 14})
    for found, want in zip(run_op(op, list(arrays.values())), expected, strict=True):
        np.testing.assert_allclose(cast(np.ndarray, found), want, rtol=1e-4, atol=1e-6)
    if attributes == {"direction": "bidirectional"}:
        for found, want in zip(lowerdeck.compile(model)(arrays).values(), expected, strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)
    arrays["h"] = arrays["h"][:, :1]
    with pytest.raises(InterpretationError, match="initial_h is not for 3 sequences"):
        run_op(op, list(arrays.values()))
