"""Operators that make tensors from numbers and sizes."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import element_type, i64, rank_of
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.dialects.onnx.tensors import SparseTensorAttr, TensorAttr
from lowerdeck.passes.legalize.common.generators import diagonals, range_of
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue

_LISTS = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64}
_LISTS["value_ints"] = np.int64


@legalizes("Constant")
def legalize_constant(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """One of the attributes value, sparse_value, value_float(s), value_int(s), value_string(s)."""
    given = [name for name in op.schema.attributes if builder.attrs.has(name)]
    if len(given) != 1:
        builder.refuse(f"{len(given)} values", "one")
    name, value = given[0], builder.attrs.raw(given[0])
    if isinstance(value, TensorAttr):
        return [constant_tensor(builder, value)]
    if isinstance(value, SparseTensorAttr):
        return [builder.tensor(value.array())]
    if name in ("value_float", "value_int"):
        number = builder.attrs.float(name) if name == "value_float" else builder.attrs.int(name)
        return [builder.tensor(np.array(number, _LISTS[name]))]
    if name in ("value_floats", "value_ints"):
        numbers = builder.attrs.floats(name) if name == "value_floats" else builder.attrs.ints(name)
        return [builder.tensor(np.array(numbers, _LISTS[name]))]
    builder.refuse("a constant of strings", "numbers", "remove text processing from the model")


def constant_tensor(builder: OnnxLegalizer, value: TensorAttr) -> SSAValue:
    """A tensor attribute as a constant; its bytes stay where they are."""
    if isinstance(value.value, ArrayAttr):
        builder.refuse("a constant of strings", "numbers", "remove text processing from the model")
    assert isinstance(value.value, BlobAttr)
    return builder.add(ConstantOp(value.value, value.type))


@legalizes("ConstantOfShape")
def legalize_constant_of_shape(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    array = builder.attrs.tensor("value")
    number = np.zeros(1, np.float32) if array is None else array
    if number.size != 1:
        builder.refuse(f"{number.size} numbers as 'value'", "one")
    return [
        builder.broadcast(
            builder.tensor(number.reshape(())), sizes_of(builder, builder.operand(0), "the shape")
        )
    ]


@legalizes("Range")
def legalize_range(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """start + i * delta for i below max(ceil((limit - start) / delta), 0)."""
    builder.attrs.ignore("stash_type")
    parts = [builder.reshape(builder.operand(name), []) for name in ("start", "limit", "delta")]
    start, limit, delta = (TensorValue.of(builder, part) for part in parts)
    return [range_of(builder, start, limit, delta)]


def given_type(builder: OnnxLegalizer, default: Attribute) -> Attribute:
    """The element type in the attribute `dtype`, a TensorProto.DataType."""
    number = builder.attrs.opt_int("dtype")
    return default if number is None else builder.element(number)


@legalizes("EyeLike")
def legalize_eye_like(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x = builder.operand("input")
    if rank_of(x) != 2:
        builder.refuse(f"an input of rank {rank_of(x)}", "a matrix")
    element = given_type(builder, element_type(x))
    return [diagonals(builder, x).eq(builder.attrs.int("k")).cast(element).value]


@legalizes("Trilu")
def legalize_trilu(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The triangle up to (or from) diagonal `k`; zero elsewhere."""
    x, k = builder.operand("input"), builder.input("k")
    if rank_of(x) < 2:
        builder.refuse(f"an input of rank {rank_of(x)}", "matrices")
    diagonal = 0 if k is None else TensorValue.of(builder, builder.reshape(k, [])).cast(i64)
    distance = diagonals(builder, x)
    kept = distance.ge(diagonal) if builder.attrs.flag("upper") else distance.le(diagonal)
    return [builder.select(kept.value, x, builder.scalar(0, x))]


@legalizes(
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
)
def legalize_random(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    builder.refuse(
        "a random number generator",
        "an operator whose result follows from its inputs",
        "make the random tensor an input of the model",
    )
