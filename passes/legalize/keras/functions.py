"""Functions of TensorFlow that Keras 2 calls like layers: `TFOpLambda` and `SlicingOpLambda`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.dialects.core.types import is_float, rank_of
from lowerdeck.passes.legalize.common.linear import matmul
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.keras.activation import gelu, softmax
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.movement import reshaped
from lowerdeck.passes.legalize.keras.operands import both
from lowerdeck.passes.legalize.keras.operations import item, named_element
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.applied import applied

_UNARY: Mapping[str, str] = {
    "relu": "Relu",
    "relu6": "Relu6",
    "elu": "Elu",
    "selu": "Selu",
    "abs": "Abs",
    "ceil": "Ceil",
    "cos": "Cos",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "log1p": "Log1p",
    "logical_not": "LogicalNot",
    "negative": "Neg",
    "reciprocal": "Reciprocal",
    "round": "Round",
    "rsqrt": "Rsqrt",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "softplus": "Softplus",
    "sqrt": "Sqrt",
    "square": "Square",
    "tanh": "Tanh",
    "identity": "Identity",
    "stop_gradient": "Identity",
}

_BINARY: Mapping[str, str] = {
    "add": "AddV2",
    "subtract": "Sub",
    "multiply": "Mul",
    "truediv": "RealDiv",
    "divide": "RealDiv",
    "floordiv": "FloorDiv",
    "floormod": "FloorMod",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "pow": "Pow",
    "squared_difference": "SquaredDifference",
    "equal": "Equal",
    "not_equal": "NotEqual",
    "greater": "Greater",
    "greater_equal": "GreaterEqual",
    "less": "Less",
    "less_equal": "LessEqual",
    "logical_and": "LogicalAnd",
    "logical_or": "LogicalOr",
}

_MODULES = frozenset({"", "math", "nn", "linalg", "compat.v1", "__operators__"})
"""Where the functions are; each name has one meaning in all of these."""


@legalizes("TFOpLambda")
def legalize_function(builder: KerasLegalizer) -> Results:
    """A function by its name in the module `tensorflow`."""
    module, _, name = str(builder.config("function")).rpartition(".")
    if module not in _MODULES:
        builder.refuse(f"the function tf.{module}.{name}", "one that is known, or layers")
    if name in _UNARY:
        return applied(builder, _UNARY[name], builder.input(0, "x"))
    if name in _BINARY:
        first, second = both(builder, builder.argument(0, "x"), builder.argument(1, "y"))
        if _BINARY[name] == "RealDiv" and not is_float(first.element):
            builder.refuse(f"a quotient of {first.element}", "floats")
        return applied(builder, _BINARY[name], first.value, second.value)
    if name in _OTHERS:
        return [_OTHERS[name](builder)]
    if name.startswith("reduce_") and (kind := name.removeprefix("reduce_")) in _REDUCTIONS:
        return [_reduced(builder, kind)]
    builder.refuse(f"the function tf.{module}.{name}", "one that is known, or layers")


_REDUCTIONS = {"mean", "sum", "max", "min", "prod"}


def _axes(builder: KerasLegalizer, axis: Any, rank: int) -> list[int]:
    if axis is None:
        return list(range(rank))
    return builder.axes([axis] if isinstance(axis, int) else list(axis), rank)


def _reduced(builder: KerasLegalizer, kind: str) -> SSAValue:
    x = builder.input(0, "input_tensor")
    axes = _axes(builder, builder.argument(1, "axis"), rank_of(x))
    keep = bool(builder.keyword("keepdims", False))
    if kind == "mean":
        return mean(builder, x, axes, keep)
    return builder.reduce(kind, x, axes, keep)


def _concat(builder: KerasLegalizer) -> SSAValue:
    values = builder.operands()
    axis = builder.axis(int(builder.argument(1, "axis", 0)), rank_of(values[0]))
    return builder.add(ConcatOp(values, axis))


def _stack(builder: KerasLegalizer) -> SSAValue:
    values = [TensorValue(builder, value) for value in builder.operands()]
    return stack(
        values, builder.axis(int(builder.argument(1, "axis", 0)), len(values[0].dims) + 1)
    ).value


def _reshape(builder: KerasLegalizer) -> SSAValue:
    shape = _integers(builder, builder.argument(1, "shape"))
    return reshaped(builder, builder.input(0, "tensor"), shape, 0)


def _integers(builder: KerasLegalizer, value: Any) -> list[int]:
    """A list of numbers that are known."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    if any(not isinstance(item, int) for item in items):
        builder.refuse("sizes that are computed", "numbers")
    return items


def _transpose(builder: KerasLegalizer) -> SSAValue:
    x, order = builder.input(0, "a"), builder.argument(1, "perm")
    order = list(reversed(range(rank_of(x)))) if order is None else order
    return builder.transpose(x, builder.axes(order, rank_of(x)))


def _expand(builder: KerasLegalizer) -> SSAValue:
    x = builder.input(0, "input")
    return builder.unsqueeze(x, [builder.axis(int(builder.argument(1, "axis")), rank_of(x) + 1)])


def _squeeze(builder: KerasLegalizer) -> SSAValue:
    x, axis = builder.input(0, "input"), builder.argument(1, "axis")
    if axis is None:
        builder.refuse("axes that are not given", "numbers")
    return builder.squeeze(x, _axes(builder, axis, rank_of(x)))


def _cast(builder: KerasLegalizer) -> SSAValue:
    element = named_element(builder, builder.argument(1, "dtype"))
    return applied(builder, "Cast", builder.input(0, "x"), DstT=element, Truncate=False)[0]


def _clip(builder: KerasLegalizer) -> SSAValue:
    low, high = builder.argument(1, "clip_value_min"), builder.argument(2, "clip_value_max")
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        builder.refuse("limits that are computed", "numbers")
    return builder.x(0, "t").clip(low, high).value


def _matmul(builder: KerasLegalizer) -> SSAValue:
    first, second = builder.input(0, "a"), builder.input(1, "b")
    if builder.keyword("transpose_a"):
        first = _turned(builder, first)
    if builder.keyword("transpose_b"):
        second = _turned(builder, second)
    return matmul(builder, first, second)


def _turned(builder: KerasLegalizer, x: SSAValue) -> SSAValue:
    """The last two dimensions in the other order."""
    rank = rank_of(x)
    return builder.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _softmax(builder: KerasLegalizer) -> SSAValue:
    axis = builder.argument(1, "axis")
    return softmax(builder.x(0, "logits"), -1 if axis is None else int(axis)).value


def _leaky(builder: KerasLegalizer) -> SSAValue:
    x = builder.x(0, "features")
    return x.lt(0).where(x * float(builder.argument(1, "alpha", 0.2)), x).value


def _gelu(builder: KerasLegalizer) -> SSAValue:
    return gelu(builder.x(0, "features"), bool(builder.argument(1, "approximate", False))).value


def _silu(builder: KerasLegalizer) -> SSAValue:
    x = builder.x(0, "features")
    if builder.argument(1, "beta", 1.0) != 1.0:
        builder.refuse("a beta", "1")
    return (x * TensorValue(builder, applied(builder, "Sigmoid", x.value)[0])).value


def _tile(builder: KerasLegalizer) -> SSAValue:
    times = _integers(builder, builder.argument(1, "multiples"))
    return applied(builder, "Tile", builder.input(0), builder.tensor(np.array(times, np.int32)))[0]


_OTHERS: Mapping[str, Callable[[KerasLegalizer], SSAValue]] = {
    "concat": _concat,
    "stack": _stack,
    "reshape": _reshape,
    "transpose": _transpose,
    "expand_dims": _expand,
    "squeeze": _squeeze,
    "cast": _cast,
    "clip_by_value": _clip,
    "matmul": _matmul,
    "softmax": _softmax,
    "leaky_relu": _leaky,
    "gelu": _gelu,
    "silu": _silu,
    "swish": _silu,
    "tile": _tile,
}


@legalizes("SlicingOpLambda")
def legalize_slicing(builder: KerasLegalizer) -> Results:
    """Python's `x[key]`."""
    if not str(builder.config("function")).endswith("getitem"):
        builder.refuse(f"the function {builder.config('function')}", "an index")
    keys = builder.keyword("slice_spec")
    listed = cast("list[Any]", keys) if isinstance(keys, list) else [keys]
    return [item(builder, builder.input(), listed)]
