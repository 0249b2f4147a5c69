"""
The reference semantics of single operators against the answers of TensorFlow 2.21 on a CPU, which
`make_tf1_cases.py` wrote.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, UnrankedTensorType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import InterpretationError

from lowerdeck.dialects.core.types import f32, i1
from lowerdeck.dialects.interpret.tf1 import run_op
from lowerdeck.dialects.tf1.attributes import ELEMENTS, DTypeAttr
from lowerdeck.dialects.tf1.ops import Tf1Op, op_class
from lowerdeck.dialects.tf1.signatures import signature_of

CASES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("tf1_cases.json").read_text(encoding="utf-8")
)
_DTYPES = {"float32": "float", "float64": "double", "float16": "half"}


def make_op(op_type: str, inputs: list[Any], attributes: dict[str, Any]) -> Tf1Op:
    """The op for inputs of these element types; the types of operands become attributes."""
    signature, cls = signature_of(op_type), op_class(op_type)
    assert signature is not None
    assert cls is not None
    dtypes = [_DTYPES.get(str(array.dtype), str(array.dtype)) for array in inputs]
    found: dict[str, Attribute] = {}
    for argument, dtype in zip(signature.inputs, dtypes, strict=False):
        if argument.type_attr is not None:
            found[argument.type_attr] = DTypeAttr(dtype)
    for name, value in attributes.items():
        found[name] = _attribute(value, signature.attrs[name].kind)
    source = test.TestOp(result_types=[UnrankedTensorType(ELEMENTS[dtype]) for dtype in dtypes])
    op = cls(source.results, found)
    op.verify()
    return op


def _attribute(value: Any, kind: str) -> Attribute:
    match kind:
        case "int":
            return IntegerAttr(value, 64)
        case "bool":
            return IntegerAttr(int(value), i1)
        case "float":
            return FloatAttr(value, f32)
        case "type":
            return DTypeAttr(_DTYPES.get(str(value), str(value)))
        case "list(int)":
            return ArrayAttr([IntegerAttr(item, 64) for item in value])
        case _:
            return StringAttr(value)


def arrays(listed: list[Any]) -> list[Any]:
    """The arrays of `[dtype, values]`."""
    return [np.array(values, dtype) for dtype, values in listed]


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{number}-{case['op']}" for number, case in enumerate(CASES)]
)
def test_an_operator_gives_what_tensorflow_gives(case: dict[str, Any]) -> None:
    inputs, expected = arrays(case["inputs"]), arrays(case["outputs"])
    found = run_op(make_op(case["op"], inputs, case["attrs"]), inputs)
    if case["op"] == "FusedBatchNormV3":
        del found[-1], expected[-1]  # reserved, it means nothing
    for value, answer in zip(found, expected, strict=True):
        assert value.dtype == answer.dtype
        if answer.size == 0:
            assert value.size == 0  # empty lists do not tell the sizes of inner dimensions
        elif answer.dtype.kind == "f":
            np.testing.assert_allclose(value, answer, rtol=2e-6, atol=2e-6)
        else:
            np.testing.assert_array_equal(value, answer)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("Div", [[1], [0]], {}, "divided by zero"),
        ("FloorMod", [[1], [0]], {}, "divided by zero"),
        ("Pow", [[2], [-1]], {}, "negative power"),
        ("Reshape", [[1, 2, 3], [2, -1]], {}, "cannot reshape"),
        ("Reshape", [[1, 2, 3], [-1, -1]], {}, "is not valid"),
        ("GatherV2", [[1, 2, 3], [3], 0], {}, "not within 0 to 3"),
        ("GatherNd", [[1, 2, 3], [[-1]]], {}, "not within 0 to"),
        ("ScatterNd", [[[4]], [1], [4]], {}, "not within 0 to"),
        ("Slice", [[1, 2, 3], [1], [3]], {}, "not within 0 to 3"),
        ("StridedSlice", [[1, 2], [2], [3], [1]], {"shrink_axis_mask": 1}, "out of range"),
        ("StridedSlice", [[1, 2], [0], [2], [0]], {}, "a stride is zero"),
        ("ExpandDims", [[1], 3], {}, "axis 3"),
        ("ArgMax", [[1], 1], {}, "axis 1"),
        ("Sum", [[1], [0, -1]], {}, "repeat"),
        ("SplitV", [[1, 2, 3], [1, 1], 0], {"num_split": 2}, "do not fit 3"),
        ("Unpack", [[1, 2, 3]], {"num": 2}, "found 3 slices, expected 2"),
        ("AddN", [[1, 2], [1]], {"N": 2}, "not equal"),
        ("InvertPermutation", [[0, 0]], {}, "not a permutation"),
        ("Equal", [[1, 2], [1, 2, 3]], {}, "broadcast"),
        ("TopKV2", [[1, 2], 3], {}, "expected 0 to 2"),
        ("Transpose", [[1, 2], [0, 1]], {}, "axes"),
    ],
)
def test_what_tensorflow_refuses(
    op_type: str, inputs: list[Any], attributes: dict[str, Any], message: str
) -> None:
    values = [np.array(value, np.int32) for value in inputs]
    with pytest.raises(InterpretationError, match=message):
        run_op(make_op(op_type, values, attributes), values)


def test_assertions_and_checks() -> None:
    condition, value = np.array(False), np.array([np.nan], np.float32)
    assertion = make_op("CheckNumerics", [value], {"message": "the loss"})
    with pytest.raises(InterpretationError, match="the loss: found Inf or NaN"):
        run_op(assertion, [value])
    source = test.TestOp(result_types=[UnrankedTensorType(i1)])
    cls = op_class("Assert")
    assert cls is not None
    with pytest.raises(InterpretationError, match="the assertion fails"):
        run_op(cls(source.results, {"T": ArrayAttr([])}), [condition])


def test_an_operator_without_a_kernel() -> None:
    value = np.array([1], np.float32)
    with pytest.raises(InterpretationError, match="has no reference"):
        run_op(make_op("MatrixInverse", [value], {}), [value])


def test_an_empty_reshape_leaves_out_what_is_zero() -> None:
    inputs = [np.zeros((0, 3), np.float32), np.array([0, -1], np.int32)]
    (found,) = run_op(make_op("Reshape", inputs, {}), inputs)
    assert found.shape == (0, 3)
