"""Scales of quantized operators that are no scales, each refused with the node that has it."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, ValueInfoProto, helper
from onnx import numpy_helper as arrays

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.legalize.walk import LegalizationError

Array = NDArray[Any]

BAD = (0.0, -0.0, -1.0, np.nan, np.inf, -np.inf)

MICROSOFT = "com.microsoft"
ZERO, BYTE_ZERO = np.array(3, np.uint8), np.array(0, np.int8)
MATRIX = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
FILTER = MATRIX.reshape(4, 3, 1, 1)
GATES = np.ones((1, 3, 8), np.int8)
SUM = ["x", 1.0, ZERO, "x", 1.0, ZERO, 1.0, ZERO]

NODES: dict[str, tuple[list[Any], tuple[int, list[int]]]] = {
    "QuantizeLinear": (["x", 1.0, ZERO], (TensorProto.FLOAT, [2, 3])),
    "DequantizeLinear": (["x", 1.0, ZERO], (TensorProto.UINT8, [2, 3])),
    "QLinearMatMul": (
        ["x", 1.0, ZERO, MATRIX, 1.0, BYTE_ZERO, 1.0, ZERO],
        (TensorProto.UINT8, [2, 3]),
    ),
    "QLinearConv": (
        ["x", 1.0, ZERO, FILTER, 1.0, BYTE_ZERO, 1.0, ZERO],
        (TensorProto.UINT8, [1, 3, 5, 5]),
    ),
    "QLinearAdd": (SUM, (TensorProto.UINT8, [2, 3])),
    "QLinearMul": (SUM, (TensorProto.UINT8, [2, 3])),
    "QLinearSigmoid": (["x", 1.0, ZERO, 1.0, ZERO], (TensorProto.UINT8, [2, 3])),
    "QLinearConcat": ([1.0, ZERO, "x", 1.0, ZERO], (TensorProto.UINT8, [2, 3])),
    "QGemm": (
        ["x", 1.0, ZERO, MATRIX, 1.0, BYTE_ZERO, "", 1.0, ZERO],
        (TensorProto.UINT8, [2, 3]),
    ),
    "MatMulIntegerToFloat": (["x", MATRIX, 1.0, 1.0], (TensorProto.UINT8, [2, 3])),
    "DynamicQuantizeMatMul": (["x", MATRIX, 1.0], (TensorProto.FLOAT, [2, 3])),
    "QAttention": (
        ["x", np.ones((4, 12), np.int8), np.zeros(12, np.float32), 1.0, 1.0],
        (TensorProto.UINT8, [1, 2, 4]),
    ),
    "DynamicQuantizeLSTM": (
        ["x", GATES, GATES[:, :2], *[""] * 5, 1.0, np.zeros(1, np.int8), 1.0, np.zeros(1, np.int8)],
        (TensorProto.FLOAT, [5, 1, 3]),
    ),
}  # fmt: skip
"""The inputs of each operator, floats the scales, and what is read."""

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "QLinearConcat": {"axis": 0},
    "QAttention": {"num_heads": 2},
    "DynamicQuantizeLSTM": {"hidden_size": 2},
}


def write(path: Path, op_type: str, inputs: list[Any], given: tuple[int, list[int]]) -> str:
    """The file of a node whose inputs are arrays, or names."""
    names = [each if isinstance(each, str) else f"c{k}" for k, each in enumerate(inputs)]
    constants = [
        arrays.from_array(cast("Array", each), f"c{k}")
        for k, each in enumerate(inputs)
        if not isinstance(each, str)
    ]
    is_standard = op_type in ("QuantizeLinear", "DequantizeLinear", "QLinearMatMul", "QLinearConv")
    attributes = {"domain": "" if is_standard else MICROSOFT, **ATTRIBUTES.get(op_type, {})}
    node = helper.make_node(op_type, names, ["y"], name="its name", **attributes)
    values = [helper.make_tensor_value_info("x", given[0], given[1])]
    graph = helper.make_graph([node], "g", values, [ValueInfoProto(name="y")], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    (file := path / "model.onnx").write_bytes(model.SerializeToString())
    return str(file)


def scale(value: float, op_type: str) -> Array:
    """As an operator has it: the LSTM one for each direction."""
    return np.full([1] if op_type == "DynamicQuantizeLSTM" else [], value, np.float32)


@pytest.mark.parametrize("op_type", NODES)
def test_what_is_no_scale_is_refused(op_type: str, tmp_path: Path) -> None:
    """At every place that a scale has in an operator; and numbers above 0 are taken."""
    inputs, given = NODES[op_type]
    places = [k for k, each in enumerate(inputs) if isinstance(each, float)]
    right = [scale(each, op_type) if isinstance(each, float) else each for each in inputs]
    import_and_lower(write(tmp_path, op_type, right, given), "legal", CompileOptions())
    bad = cycle(BAD)
    for place in places:
        for value in (next(bad) for _ in range(-(-len(BAD) // len(places)))):
            wrong = [*right]
            wrong[place] = scale(value, op_type)
            file = write(tmp_path, op_type, wrong, given)
            with pytest.raises(LegalizationError, match="expected finite numbers above 0") as error:
                import_and_lower(file, "legal", CompileOptions())
            text = str(error.value)
            assert "'its name" in text
            assert f"found a scale of {value:g}" in text


def test_scales_of_blocks_have_any_sign(tmp_path: Path) -> None:
    """As ONNX Runtime writes them, 0 for a block of zeros among them; but they are finite."""
    codes = np.arange(-8, 8, dtype=np.int8).reshape(2, 8)
    scales = np.array([[-0.5, 2.0], [-0.0, -0.25]], np.float32)
    helper_inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])]
    for kind in (TensorProto.INT4, TensorProto.INT8):
        for value in (-0.5, np.nan, np.inf):
            scales[0, 0] = value
            packed = helper.make_tensor("q", kind, [2, 8], codes.reshape(-1).tolist())
            dequantize = helper.make_node(
                "DequantizeLinear", ["q", "s"], ["w"], "its name", axis=1, block_size=4
            )
            product = helper.make_node("MatMul", ["x", "w"], ["y"])
            result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])
            graph = helper.make_graph(
                [dequantize, product], "g", helper_inputs, [result],
                [packed, arrays.from_array(scales, "s")],
            )  # fmt: skip
            opsets = [helper.make_opsetid("", 21)]
            model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
            (file := tmp_path / "model.onnx").write_bytes(model.SerializeToString())
            if not np.isfinite(value):
                with pytest.raises(LegalizationError, match=f"'its name'.*a scale of {value:g}"):
                    import_and_lower(str(file), "legal", CompileOptions())
                continue
            module, _ = import_and_lower(str(file), "optimized", CompileOptions())
            x = np.array([[1, 10]], np.float32)
            found = np.asarray(run_module(module, {"x": x})["y"])
            np.testing.assert_array_equal(found, x @ (codes * np.repeat(scales, 4, 1)))
