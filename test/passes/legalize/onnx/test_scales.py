"""Scales of quantized operators that are no scales, each refused with the node that has it."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, ValueInfoProto, helper
from onnx import numpy_helper as arrays

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.errors import FrontendError
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


STANDARD = ("QuantizeLinear", "DequantizeLinear", "QLinearMatMul", "QLinearConv", "MatMulInteger")


def write(path: Path, op_type: str, inputs: list[Any], given: tuple[int, list[int]]) -> str:
    """The file of a node whose inputs are arrays, or names."""
    names = [each if isinstance(each, str) else f"c{k}" for k, each in enumerate(inputs)]
    constants = [
        arrays.from_array(cast("Array", each), f"c{k}")
        for k, each in enumerate(inputs)
        if not isinstance(each, str)
    ]
    is_standard = op_type in STANDARD
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


COLUMN = MATRIX[:, :1]
ROWS = np.arange(-6, 6, dtype=np.int8).reshape(6, 2)
FOUR_BITS = ROWS.astype(ml_dtypes.int4)


def some(*shape: int) -> Array:
    return np.full(shape, 0.5, np.float32)


def none(*shape: int, dtype: Any = np.int8) -> Array:
    return np.zeros(shape, dtype)


def q_conv(filter_: Array, scales: Array, zeros: Array) -> list[Any]:
    return ["x", 1.0, ZERO, filter_, scales, zeros, 1.0, ZERO]


def q_product(matrix: Array, scales: Array, zeros: Array, row: Array) -> list[Any]:
    return ["x", row, ZERO, matrix, scales, zeros, 1.0, ZERO]


IMAGE, TWO_ROWS = (TensorProto.UINT8, [1, 3, 5, 5]), (TensorProto.UINT8, [2, 3])
NUMBERS = (TensorProto.FLOAT, [1, 3, 4])
FITTING: list[tuple[str, dict[str, int], list[Any], list[Any], tuple[int, list[int]]]] = [
    ("QuantizeLinear", {"axis": 1}, ["x", some(3)], ["x", some(2)], NUMBERS),
    # One entry would be broadcast to as many as there are scales.
    ("QuantizeLinear", {"axis": 0}, ["x", some(1)], ["x", some(2)], NUMBERS),
    ("DequantizeLinear", {"axis": 1}, [COLUMN, some(1)], [COLUMN, some(3)], NUMBERS),
    ("DequantizeLinear", {}, [ROWS, some(2), none(2)], [ROWS, some(2), none(3)], NUMBERS),
    *[
        ("DequantizeLinear", {"axis": 0, "block_size": 3}, [ROWS, right], [ROWS, wrong], NUMBERS)
        for right, wrong in ((some(2, 2), some(3, 2)), (some(2, 2), some(2, 1)))
    ],
    (
        "DequantizeLinear",
        {"axis": 0, "block_size": 3},
        [FOUR_BITS, some(2, 2), none(2, 2, dtype=ml_dtypes.int4)],
        [FOUR_BITS, some(2, 2), none(2, 1, dtype=ml_dtypes.int4)],
        NUMBERS,
    ),
    (
        "QLinearConv",
        {},
        q_conv(FILTER, some(4), none(4)),
        q_conv(FILTER, some(3), none(4)),
        IMAGE,
    ),
    (
        "QLinearConv",
        {},
        q_conv(FILTER[:1], some(1), none(1)),
        q_conv(FILTER[:1], some(4), none(1)),
        IMAGE,
    ),
    (
        "QLinearMatMul",
        {},
        q_product(COLUMN, some(1), none(1), some()),
        q_product(COLUMN, some(4), none(1), some()),
        TWO_ROWS,
    ),
    (
        "QLinearMatMul",
        {},
        q_product(MATRIX, some(4), none(4), some(2)),
        q_product(MATRIX, some(4), none(3), some(2)),
        TWO_ROWS,
    ),
    (
        "QLinearMatMul",
        {},
        q_product(MATRIX, some(4), none(4), some(2)),
        q_product(MATRIX, some(4), none(4), some(3)),
        TWO_ROWS,
    ),
    (
        "MatMulInteger",
        {},
        ["x", MATRIX, ZERO, none(4)],
        ["x", MATRIX, ZERO, none(3)],
        TWO_ROWS,
    ),
]
"""Operators with parameters that fit, and with such that do not."""


@pytest.mark.parametrize(("op_type", "attributes", "right", "wrong", "given"), FITTING)
def test_scales_and_zero_points_fit_what_they_are_of(
    op_type: str,
    attributes: dict[str, int],
    right: list[Any],
    wrong: list[Any],
    given: tuple[int, list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ATTRIBUTES, op_type, attributes)
    right, wrong = (
        [np.float32(each) if isinstance(each, float) else each for each in inputs]
        for inputs in (right, wrong)
    )
    import_and_lower(write(tmp_path, op_type, right, given), "legal", CompileOptions())
    file = write(tmp_path, op_type, wrong, given)
    with pytest.raises(LegalizationError, match=r"'its name.* scales or zero points.*, expected"):
        import_and_lower(file, "legal", CompileOptions())


@pytest.mark.parametrize("op_type", ["MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QGemm"])
def test_scales_are_as_many_as_columns(op_type: str, tmp_path: Path) -> None:
    """A matrix of one column would be repeated for each of four scales."""
    for matrix, count, fits in ((MATRIX, 4, True), (COLUMN, 1, True), (COLUMN, 4, False)):
        starts = {
            "MatMulIntegerToFloat": (["x", matrix, some(), some(count)], TWO_ROWS),
            "DynamicQuantizeMatMul": (["x", matrix, some(count)], (TensorProto.FLOAT, [2, 3])),
            "QGemm": (
                ["x", some(), ZERO, matrix, some(count), BYTE_ZERO, "", some(), ZERO],
                TWO_ROWS,
            ),
        }
        file = write(tmp_path, op_type, *starts[op_type])
        with nullcontext() if fits else pytest.raises(FrontendError, match="found 4 scales of B"):
            import_and_lower(file, "legal", CompileOptions())


@pytest.mark.parametrize("value", [-1, 256, 300])
def test_zero_points_are_of_their_type(value: int, tmp_path: Path) -> None:
    """Files may hold wider numbers, of which the lower byte would be another zero point."""
    file = write(tmp_path, "QuantizeLinear", ["x", some(), ZERO], NUMBERS)
    model = ModelProto.FromString(Path(file).read_bytes())
    zero = model.graph.initializer[1]
    zero.ClearField("raw_data")
    zero.int32_data.append(255)
    Path(file).write_bytes(model.SerializeToString())
    import_and_lower(file, "legal", CompileOptions())
    zero.int32_data[0] = value
    Path(file).write_bytes(model.SerializeToString())
    with pytest.raises(FrontendError, match=f"'c2'.*has {value}, expected 0 to 255"):
        import_and_lower(file, "legal", CompileOptions())


def test_weights_of_few_bits_are_as_many_as_attributes_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing as large as they say is made before that is known."""
    inputs = ["x", none(6, 2, 8, dtype=np.uint8), some(12)]
    for rows, has_room in ((6, True), (1 << 31, False)):
        attributes = {"K": 32, "N": rows, "bits": 4, "block_size": 16}
        monkeypatch.setitem(ATTRIBUTES, "MatMulNBits", attributes)
        file = write(tmp_path, "MatMulNBits", inputs, (TensorProto.FLOAT, [2, 32]))
        with nullcontext() if has_room else pytest.raises(FrontendError, match="of 96 bytes, exp"):
            import_and_lower(file, "legal", CompileOptions())


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
