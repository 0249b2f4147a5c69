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
from lowerdeck.passes.legalize.generators import diagonals, range_of
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.sizes import sizes_of

_LISTS = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64}
_LISTS["value_ints"] = np.int64


@legalizes("Constant")
def legalize_constant(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """One of the attributes value, sparse_value, value_float(s), value_int(s), value_string(s)."""
    given = [name for name in op.schema.attributes if lower.attrs.has(name)]
    if len(given) != 1:
        lower.refuse(f"{len(given)} values", "one")
    name, value = given[0], lower.attrs.raw(given[0])
    if isinstance(value, TensorAttr):
        return [constant_tensor(lower, value)]
    if isinstance(value, SparseTensorAttr):
        return [lower.tensor(value.array())]
    if name in ("value_float", "value_int"):
        number = lower.attrs.float(name) if name == "value_float" else lower.attrs.int(name)
        return [lower.tensor(np.array(number, _LISTS[name]))]
    if name in ("value_floats", "value_ints"):
        numbers = lower.attrs.floats(name) if name == "value_floats" else lower.attrs.ints(name)
        return [lower.tensor(np.array(numbers, _LISTS[name]))]
    lower.refuse("a constant of strings", "numbers", "remove text processing from the model")


def constant_tensor(lower: OnnxLegalizer, value: TensorAttr) -> SSAValue:
    """A tensor attribute as a constant; its bytes stay where they are."""
    if isinstance(value.value, ArrayAttr):
        lower.refuse("a constant of strings", "numbers", "remove text processing from the model")
    assert isinstance(value.value, BlobAttr)
    return lower.add(ConstantOp(value.value, value.type))


@legalizes("ConstantOfShape")
def legalize_constant_of_shape(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    array = lower.attrs.tensor("value")
    number = np.zeros(1, np.float32) if array is None else array
    if number.size != 1:
        lower.refuse(f"{number.size} numbers as 'value'", "one")
    return [
        lower.broadcast(
            lower.tensor(number.reshape(())), sizes_of(lower, lower.operand(0), "the shape")
        )
    ]


@legalizes("Range")
def legalize_range(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """start + i * delta for i below max(ceil((limit - start) / delta), 0)."""
    lower.attrs.ignore("stash_type")
    parts = [lower.reshape(lower.operand(name), []) for name in ("start", "limit", "delta")]
    start, limit, delta = (Quantity.of(lower, part) for part in parts)
    return [range_of(lower, start, limit, delta)]


def given_type(lower: OnnxLegalizer, default: Attribute) -> Attribute:
    """The element type in the attribute `dtype`, a TensorProto.DataType."""
    number = lower.attrs.opt_int("dtype")
    return default if number is None else lower.element(number)


@legalizes("EyeLike")
def legalize_eye_like(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x = lower.operand("input")
    if rank_of(x) != 2:
        lower.refuse(f"an input of rank {rank_of(x)}", "a matrix")
    element = given_type(lower, element_type(x))
    return [diagonals(lower, x).eq(lower.attrs.int("k")).cast(element).value]


@legalizes("Trilu")
def legalize_trilu(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The triangle up to (or from) diagonal `k`; zero elsewhere."""
    x, k = lower.operand("input"), lower.input("k")
    if rank_of(x) < 2:
        lower.refuse(f"an input of rank {rank_of(x)}", "matrices")
    diagonal = 0 if k is None else Quantity.of(lower, lower.reshape(k, [])).cast(i64)
    distance = diagonals(lower, x)
    kept = distance.ge(diagonal) if lower.attrs.flag("upper") else distance.le(diagonal)
    return [lower.select(kept.value, x, lower.scalar(0, x))]


@legalizes(
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
)
def legalize_random(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    lower.refuse(
        "a random number generator",
        "an operator whose result follows from its inputs",
        "make the random tensor an input of the model",
    )
