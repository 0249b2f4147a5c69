"""Weights that the graph computes of constants: the values, and that no kernel computes them."""

# onnx has only some types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import lowerdeck
from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.core.control_flow import KernelOp

Nodes = list[onnx.NodeProto]
RANDOM = np.random.default_rng(7)


def constant(name: str, array: NDArray[Any]) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))


def filled(name: str, shape: Sequence[int], value: float) -> Nodes:
    """A tensor of one value, which is as many bytes in the file."""
    return [
        constant(f"{name}_ones", np.ones(shape, np.int8)),
        constant(f"{name}_value", np.array(value, np.float32)),
        helper.make_node("Cast", [f"{name}_ones"], [f"{name}_floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{name}_floats", f"{name}_value"], [name]),
    ]


def filled_weights() -> Nodes:
    """Two matrices of one value and one number of elements, and one of another value."""
    return [
        *filled("a", (180, 200), 0.25),
        *filled("b", (200, 180), 0.25),
        *filled("c", (180, 200), -0.5),
        helper.make_node("MatMul", ["x", "a"], ["xa"]),
        helper.make_node("MatMul", ["xa", "b"], ["xb"]),
        helper.make_node("MatMul", ["xb", "c"], ["y"]),
    ]


def dequantized_weights() -> Nodes:
    """int8 by channels, transposed and scaled once more."""
    return [
        constant("q", RANDOM.integers(-128, 128, (200, 180)).astype(np.int8)),
        constant("scale", RANDOM.uniform(0.01, 0.1, 200).astype(np.float32)),
        constant("zero", RANDOM.integers(-3, 3, 200).astype(np.int8)),
        constant("half", np.array(0.5, np.float32)),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"], axis=0),
        helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]),
        helper.make_node("Mul", ["t", "half"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]


def assembled_weights() -> Nodes:
    """Parts tiled, expanded, selected by a mask and joined."""
    return [
        constant("row", RANDOM.standard_normal((1, 100)).astype(np.float16)),
        constant("shape", np.array([180, 100], np.int64)),
        constant("repeats", np.array([180, 100], np.int64)),
        constant("dot", np.array([[0.125]], np.float32)),
        constant("mask", RANDOM.integers(0, 2, (180, 1)).astype(bool)),
        helper.make_node("Cast", ["row"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Expand", ["wide", "shape"], ["left"]),
        helper.make_node("Tile", ["dot", "repeats"], ["tiled"]),
        helper.make_node("Where", ["mask", "left", "tiled"], ["right"]),
        helper.make_node("Concat", ["left", "right"], ["w"], axis=1),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]


def weights_of_a_branch() -> Nodes:
    """Each branch computes weights of its own."""

    def branch(name: str, value: float) -> onnx.GraphProto:
        nodes = [
            *filled(f"{name}_w", (180, 200), value),
            helper.make_node("MatMul", ["x", f"{name}_w"], [f"{name}_y"]),
        ]
        output = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, [3, 200])
        return helper.make_graph(nodes, name, [], [output])

    return [
        constant("zero", np.array(0, np.float32)),
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["condition"]),
        helper.make_node(
            "If",
            ["condition"],
            ["y"],
            then_branch=branch("then", 2),
            else_branch=branch("else", -0.75),
        ),
    ]


def weights_carried_by_a_loop() -> Nodes:
    """The loop hands on weights that it never changes, and gives them back."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["v", "w"], ["product"]),
            helper.make_node("Identity", ["w"], ["w_out"]),
            helper.make_node("Identity", ["go"], ["go_out"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [3, 180]),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [180, 180]),
        ],
        [
            helper.make_tensor_value_info("go_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("product", TensorProto.FLOAT, [3, 180]),
            helper.make_tensor_value_info("w_out", TensorProto.FLOAT, [180, 180]),
        ],
    )
    return [
        *filled("weights", (180, 180), 0.0625),
        *filled("others", (180, 200), 0.5),
        constant("trips", np.array(3, np.int64)),
        constant("go_on", np.array(True)),
        helper.make_node("Loop", ["trips", "go_on", "x", "weights"], ["z", "same"], body=body),
        helper.make_node("MatMul", ["z", "same"], ["s"]),
        helper.make_node("MatMul", ["s", "others"], ["y"]),
    ]


@pytest.mark.parametrize("target", ["native", "c99"])
@pytest.mark.parametrize(
    "program",
    [
        filled_weights,
        dequantized_weights,
        assembled_weights,
        weights_of_a_branch,
        weights_carried_by_a_loop,
    ],
)
def test_weights(tmp_path: Path, program: Callable[[], Nodes], target: str) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 180])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 200])
    graph = helper.make_graph(program(), "weights", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    model.ir_version = 9
    path = str(tmp_path / "model.onnx")
    onnx.save(model, path)
    module, _ = import_and_lower(path, "kernels", CompileOptions(target=target))
    kernels = {op.sym_name.data for op in module.walk() if isinstance(op, KernelOp)}
    assert {name.rsplit("_", 1)[0] for name in kernels} <= {"matmul", "reduce", "compare"}
    compiled = lowerdeck.compile(path, target=target, cache=False)
    for sign in (1, -1):
        values = (sign * RANDOM.uniform(0, 1, (3, 180))).astype(np.float32)
        expected = cast(list[NDArray[Any]], ReferenceEvaluator(model).run(None, {"x": values}))[0]
        np.testing.assert_allclose(compiled(values)[0], expected, rtol=2e-5, atol=2e-5)
