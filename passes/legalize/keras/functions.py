"""Functions of TensorFlow that Keras 2 calls like layers: `TFOpLambda` and `SlicingOpLambda`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import is_float, rank_of
from lowerdeck.dialects.tf1.signatures import signature_of
from lowerdeck.passes.legalize.common import activation as common
from lowerdeck.passes.legalize.common.decomposition import swapped
from lowerdeck.passes.legalize.common.linear import matmul
from lowerdeck.passes.legalize.keras.activation import sigmoid, softmax
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import both, named_element
from lowerdeck.passes.legalize.keras.operations import item
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.table import pairs
from lowerdeck.passes.legalize.tf1.applied import applied
from lowerdeck.passes.legalize.torch_tables import Overload, overloads

_UNARY = pairs("""
    abs=Abs ceil=Ceil cos=Cos elu=Elu exp=Exp floor=Floor identity=Identity log1p=Log1p log=Log
    logical_not=LogicalNot negative=Neg reciprocal=Reciprocal relu6=Relu6 relu=Relu round=Round
    rsqrt=Rsqrt selu=Selu sigmoid=Sigmoid sign=Sign sin=Sin softplus=Softplus sqrt=Sqrt
    square=Square stop_gradient=Identity tanh=Tanh
""")

_BINARY = pairs("""
    add=AddV2 divide=RealDiv equal=Equal floordiv=FloorDiv floormod=FloorMod greater=Greater
    greater_equal=GreaterEqual less=Less less_equal=LessEqual logical_and=LogicalAnd
    logical_or=LogicalOr maximum=Maximum minimum=Minimum multiply=Mul not_equal=NotEqual pow=Pow
    squared_difference=SquaredDifference subtract=Sub truediv=RealDiv
""")

_OTHERS = """
    cast: Cast x DstT=dtype
    clip_by_value: ClipByValue t clip_value_min clip_value_max
    concat: ConcatV2 values axis
    expand_dims: ExpandDims input axis
    leaky_relu: LeakyRelu features alpha
    reduce_max: Max input_tensor axis keep_dims=keepdims
    reduce_mean: Mean input_tensor axis keep_dims=keepdims
    reduce_min: Min input_tensor axis keep_dims=keepdims
    reduce_prod: Prod input_tensor axis keep_dims=keepdims
    reduce_sum: Sum input_tensor axis keep_dims=keepdims
    reshape: Reshape tensor shape
    squeeze: Squeeze input squeeze_dims=axis
    stack: Pack values axis
    tile: Tile input multiples
    transpose: Transpose a perm
"""
"""The operator, and the arguments of the function in order: inputs or attributes."""

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
    if (row := overloads(_OTHERS).get(name)) is not None:
        return _as_tensorflow(builder, row)
    if name in _FORMULAS:
        return [_FORMULAS[name](builder)]
    builder.refuse(f"the function tf.{module}.{name}", "one that is known, or layers")


def _as_tensorflow(builder: KerasLegalizer, row: Overload) -> Results:
    """An operator of TensorFlow for the arguments of its row."""
    signature = signature_of(row.target)
    assert signature is not None
    operands: list[SSAValue | Sequence[SSAValue]] = []
    attributes: dict[str, Any] = {}
    for place, (name, source) in enumerate(row.sources.items()):
        given = builder.argument(place, source)
        if name not in signature.attrs:
            operands.append(_operand(builder, given, source, operands))
        elif name == "DstT":
            attributes[name] = named_element(builder, given)
        elif name == "squeeze_dims":
            attributes[name] = builder.integers(given, "axes")
        elif given is not None:
            attributes[name] = given
    return applied(builder, row.target, *operands, **attributes)


def _operand(
    builder: KerasLegalizer, given: Any, name: str, before: Sequence[SSAValue | Sequence[SSAValue]]
) -> SSAValue | Sequence[SSAValue]:
    """An argument as an input: a tensor, several, a number like the tensor before it, or sizes."""
    if not before:
        return builder.operands() if isinstance(given, list) else builder.input(0, name)
    x = before[0]
    if given is None and isinstance(x, SSAValue):
        given = {"axis": [*range(rank_of(x))], "perm": [*reversed(range(rank_of(x)))]}.get(name)
    if name.startswith("clip_value") and isinstance(x, SSAValue):
        return builder.number_like(given, x)
    sizes = np.array(builder.integers(given, f"'{name}' is"), np.int32)
    return builder.tensor(sizes if isinstance(given, list) else sizes.reshape(()))


def _matmul(builder: KerasLegalizer) -> SSAValue:
    first, second = builder.input(0, "a"), builder.input(1, "b")
    first = swapped(builder, first) if builder.keyword("transpose_a") else first
    return matmul(
        builder, first, swapped(builder, second) if builder.keyword("transpose_b") else second
    )


def _softmax(builder: KerasLegalizer) -> SSAValue:
    return softmax(builder.x(0, "logits"), int(builder.argument(1, "axis", -1))).value


def _gelu(builder: KerasLegalizer) -> SSAValue:
    by_tanh = bool(builder.argument(1, "approximate", False))
    return common.gelu(builder.x(0, "features"), by_tanh).value


def _silu(builder: KerasLegalizer) -> SSAValue:
    x = builder.x(0, "features")
    if builder.argument(1, "beta", 1.0) != 1.0:
        builder.refuse("a beta", "1")
    return (x * sigmoid(x)).value


_FORMULAS: Mapping[str, Callable[[KerasLegalizer], SSAValue]] = {
    "gelu": _gelu,
    "matmul": _matmul,
    "silu": _silu,
    "softmax": _softmax,
    "swish": _silu,
}


@legalizes("SlicingOpLambda")
def legalize_slicing(builder: KerasLegalizer) -> Results:
    """Python's `x[key]`."""
    if not str(builder.config("function")).endswith("getitem"):
        builder.refuse(f"the function {builder.config('function')}", "an index")
    keys = builder.keyword("slice_spec")
    listed = cast("list[Any]", keys) if isinstance(keys, list) else [keys]
    return [item(builder, builder.input(), listed)]
