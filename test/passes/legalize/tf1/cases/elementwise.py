"""Elementwise operators: signs, borders of types, infinities and NaN."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops

REALS = np.array(
    [-3.5, -2.5, -1.5, -0.5, -1e-5, -0.0, 0.0, 1e-6, 0.3, 0.5, 1.5, 2.5, 7.0, 40.0], np.float32
)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0, 2.0], np.float32)
UNARY = (
    "Abs Neg Sign Square Exp Expm1 Erf Erfc Sin Cos Tan Atan Sinh Asinh Tanh Floor Ceil Round Rint"
)
ACTIVATIONS = "Sigmoid Relu Relu6 Elu Selu Softplus Softsign"
POSITIVE = "Sqrt Rsqrt Log Log1p Reciprocal Inv"
BINARY = "Add AddV2 Sub Mul Maximum Minimum SquaredDifference"
QUOTIENTS = "Div FloorDiv FloorMod Mod TruncateDiv TruncateMod"
COMPARISONS = "Less LessEqual Greater GreaterEqual Equal NotEqual"


def build(record: Recorder) -> None:
    _reals(record)
    _integers(record)
    _pairs_of_reals(record)
    _choices(record)
    _conversions(record)
    _bits(record)
    _quotients(record)


def _call(op: str, *values: Any) -> Any:
    """A raw operator with its operands by position."""
    function = getattr(raw, op)
    names = list(function.__signature__.parameters)
    return function(**dict(zip(names, values, strict=False)))


def _reals(record: Recorder) -> None:
    for dtype in (np.float32, np.float64, np.float16):
        x = record.input(REALS.astype(dtype))
        suffix = np.dtype(dtype).name
        small = record.input(np.clip(REALS, -3.5, 7).astype(dtype))
        for op in f"{UNARY} {ACTIVATIONS}".split():
            if op == "Rint" and dtype == np.float16:
                continue
            record.case(f"{op}_{suffix}", _call(op, small if op in ("Exp", "Sinh") else x))
        positive = record.input(np.array([1e-6, 1e-4, 0.25, 1.0, 3.0, 1000.0], dtype))
        for op in POSITIVE.split():
            record.case(f"{op}_{suffix}", _call(op, positive))
        unit = record.input(np.array([-0.99, -0.5, 0.0, 1e-4, 0.75], dtype))
        for op in ("Asin", "Acos", "Atanh"):
            record.case(f"{op}_{suffix}", _call(op, unit))
        record.case(f"Acosh_{suffix}", raw.Acosh(x=positive + tf.ones([], dtype)))
        record.case(f"LeakyRelu_{suffix}", raw.LeakyRelu(features=x, alpha=0.3))
        tail = record.input(np.array([-3.0, 0.7, 2.0, 3.0, 5.0, 8.5, 12.0], dtype))
        record.case(f"Erfc_tail_{suffix}", raw.Erfc(x=tail))
    special = record.input(SPECIAL)
    for op in ("IsNan", "IsInf", "IsFinite", "Log1p", "Expm1", "Erfc", "Sign", "Softplus"):
        record.case(f"{op}_special", _call(op, special))


def _integers(record: Recorder) -> None:
    ranges = {
        np.int8: ([-128, -7, -1, 0, 1, 7, 127, 100], [3, 3, -3, 5, 127, -2, 127, -100]),
        np.uint8: ([0, 7, 200, 255, 128, 100, 3, 9], [3, 2, 200, 1, 129, 7, 255, 9]),
        np.int32: ([-(2**31), -7, 7, -8, 2**31 - 1, 0, 46341, 5], [3, 2, -2, 4, 2, -9, 46341, 1]),
        np.int64: ([-(2**63), -7, 7, 2**62, 2**53 + 1, 0, 9, 3], [3, 2, -2, 4, 1, 2, 9, -7]),
    }
    for dtype, (left, right) in ranges.items():
        suffix = np.dtype(dtype).name
        x, y = record.input(np.array(left, dtype)), record.input(np.array(right, dtype))
        ops = f"{QUOTIENTS} {COMPARISONS} BitwiseAnd BitwiseOr BitwiseXor"
        if dtype != np.int8:
            ops += f" {BINARY}"
        for op in ops.split():
            if op in ("Mod", "TruncateMod", "Minimum", "SquaredDifference") and dtype in (
                np.int8,
                np.uint8,
            ):
                continue
            record.case(f"{op}_{suffix}", _call(op, x, y))
        shift = (
            record.input(np.array([-3, 0, 1, 3, 7, 60, 6, 2], dtype)[: len(left)])
            if (dtype != np.uint8)
            else record.input(np.array([0, 1, 2, 3, 7, 60, 6, 2], dtype))
        )
        record.case(f"LeftShift_{suffix}", raw.LeftShift(x=x, y=shift))
        record.case(f"RightShift_{suffix}", raw.RightShift(x=x, y=shift))
        record.case(f"Invert_{suffix}", raw.Invert(x=x))
        record.case(f"Relu_{suffix}", raw.Relu(features=x))
        if dtype in (np.int32, np.int64):
            for op in ("Abs", "Neg", "Sign", "Square"):
                record.case(f"{op}_{suffix}", _call(op, x))
            base = record.input(np.array([-3, 0, 2, 7], dtype))
            record.case(f"Pow_{suffix}", raw.Pow(x=base, y=tf.constant([3, 0, 5, 2], dtype)))
    logic = record.input(np.array([[True, False]]))
    other = record.input(np.array([[True], [False]]))
    for op in ("LogicalAnd", "LogicalOr", "Equal", "NotEqual"):
        record.case(f"{op}_bool", _call(op, logic, other))
    record.case("LogicalNot_bool", raw.LogicalNot(x=logic))


def _pairs_of_reals(record: Recorder) -> None:
    for dtype in (np.float32, np.float64, np.float16):
        suffix = np.dtype(dtype).name
        # Broadcast from both sides.
        x = record.input(np.array([[-7.5], [-2.0], [0.0], [3.25], [9.0]], dtype))
        y = record.input(np.array([[-3.0, -2.0, 0.5, 4.0]], dtype))
        for op in f"{BINARY} RealDiv Div FloorDiv FloorMod {COMPARISONS}".split():
            record.case(f"{op}_{suffix}", _call(op, x, y))
        if dtype != np.float16:
            record.case(f"Mod_{suffix}", raw.Mod(x=x, y=y))
        zeros = record.input(np.array([0.0, -0.0, 2.0, -1.0], dtype))
        for op in ("DivNoNan", "MulNoNan", "Xdivy"):
            record.case(f"{op}_{suffix}", _call(op, x, zeros))
        record.case(f"Pow_{suffix}", raw.Pow(x=tf.abs(x), y=y))
        angles = record.input(np.array([0.0, -0.0, 1.0, -1.0, 1e-3, 3e3], dtype))
        record.case(f"Atan2_{suffix}", raw.Atan2(y=angles[:, None], x=angles[None, :]))
        factor = record.input(np.array([0.0, 1.5, -2.0], dtype)[:, None])
        logs = record.input(np.array([0.0, 0.5, 3.0, 1e-3], dtype))
        record.case(f"Xlogy_{suffix}", raw.Xlogy(x=factor, y=logs))
        record.case(f"Xlog1py_{suffix}", raw.Xlog1py(x=factor, y=logs))
    infinite = record.input(np.array([np.inf, -np.inf, np.nan, 1.0], np.float32))
    record.case("Atan2_infinite", raw.Atan2(y=infinite[:, None], x=infinite[None, :]))
    record.case("MulNoNan_infinite", raw.MulNoNan(x=infinite, y=tf.zeros([4])))
    near = record.input(np.array([1.0, 1.05, 1.2], np.float32))
    other = record.input(np.array([1.0, 1.0, 1.0], np.float32))
    record.case("ApproximateEqual", raw.ApproximateEqual(x=near, y=other, tolerance=0.1))
    record.case("ApproximateEqual_default", raw.ApproximateEqual(x=near, y=other))
    record.case("AddN", raw.AddN(inputs=[near, other, near]))


def _choices(record: Recorder) -> None:
    x = record.input(np.arange(6, dtype=np.float32).reshape(3, 2))
    y = record.input(-np.arange(6, dtype=np.float32).reshape(3, 2))
    rows = record.input(np.array([True, False, True]))
    record.case("Select_rows", raw.Select(condition=rows, x=x, y=y))
    record.case("Select_scalar", raw.Select(condition=rows[0], x=x, y=y))
    record.case("Select_all", raw.Select(condition=x > 2.0, x=x, y=y))
    record.case("Select_vectors", raw.Select(condition=rows, x=x[:, 0], y=y[:, 1]))
    record.case("SelectV2", raw.SelectV2(condition=rows[:, None], t=x, e=y[:1, :]))
    # Here a vector broadcasts along the last dimension, instead of choosing rows.
    square = record.input(np.arange(9, dtype=np.float32).reshape(3, 3))
    record.case("SelectV2_vector", raw.SelectV2(condition=rows, t=square, e=-square))
    record.case("Select_square", raw.Select(condition=rows, x=square, y=-square))
    low, high = tf.constant(1.0), tf.constant(3.0)
    record.case("ClipByValue", _call("ClipByValue", x, low, high))
    record.case(
        "ClipByValue_swapped", raw.ClipByValue(t=x, clip_value_min=high, clip_value_max=low)
    )
    record.case("ClipByValue_each", raw.ClipByValue(t=x, clip_value_min=y, clip_value_max=x - 1.0))


def _conversions(record: Recorder) -> None:
    reals = record.input(np.array([-2.7, -0.5, 0.0, 0.9, 1.5, 100.9], np.float32))
    for dtype in ("int8", "int32", "int64", "float64", "float16", "bool", "bfloat16"):
        value = tf.cast(reals, dtype)
        record.case(
            f"Cast_float32_{dtype}", tf.cast(value, "float32") if dtype == "bfloat16" else value
        )
    whole = record.input(np.array([-300, -1, 0, 255, 256, 2**24 + 1], np.int32))
    for dtype in ("int8", "uint8", "uint16", "int64", "float32", "float16", "bool"):
        record.case(f"Cast_int32_{dtype}", tf.cast(whole, dtype))
    record.case("Cast_bool_float", tf.cast(record.input(np.array([True, False])), "float32"))


def _bits(record: Recorder) -> None:
    values = [0, 1, -1, 5, 127, -128, 85, 64]
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64):
        numbers = np.array(values).astype(dtype)
        numbers[-1] = np.iinfo(dtype).max
        name = np.dtype(dtype).name
        record.case(f"PopulationCount_{name}", raw.PopulationCount(x=record.input(numbers)))
    record.case("Print", raw.Print(input=record.input(values), data=[], message="values: "))


def _quotients(record: Recorder) -> None:
    for dtype in (np.float32, np.float64, np.float16):
        x, y = (record.input(np.array(v, dtype)) for v in ([7, -7, 6, -0.5, 3], [2, 2, -3, 2, 0]))
        record.case(f"TruncateDiv_{np.dtype(dtype).name}", raw.TruncateDiv(x=x, y=y))
