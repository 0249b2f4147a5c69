"""Attributes of nodes: between AttributeProto and properties. Subgraphs are not attributes here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import onnx
from onnx import AttributeProto, helper
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f32,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute

from lowerdeck.dialects.numbers import dense_floats, dense_ints
from lowerdeck.dialects.onnx.tensors import (
    SparseTensorAttr,
    TensorAttr,
    sparse_from_proto,
    sparse_to_proto,
    tensor_from_proto,
    tensor_to_proto,
)
from lowerdeck.dialects.onnx.types import type_from_proto, type_to_proto

TensorReader = Callable[[onnx.TensorProto], TensorAttr]


def attribute_from_proto(
    proto: AttributeProto, tensors: TensorReader = tensor_from_proto
) -> Attribute:
    """The property for an attribute that is not a subgraph; ValueError if it has no form."""
    match proto.type:
        case AttributeProto.INT:
            return IntegerAttr(proto.i, i64)
        case AttributeProto.FLOAT:
            return FloatAttr(proto.f, f32)
        case AttributeProto.STRING:
            return StringAttr(proto.s.decode("utf-8"))
        case AttributeProto.INTS:
            return cast(Attribute, dense_ints(proto.ints))
        case AttributeProto.FLOATS:
            return cast(Attribute, dense_floats(proto.floats))
        case AttributeProto.STRINGS:
            return ArrayAttr([StringAttr(text.decode("utf-8")) for text in proto.strings])
        case AttributeProto.TENSOR:
            return tensors(proto.t)
        case AttributeProto.SPARSE_TENSOR:
            return sparse_from_proto(proto.sparse_tensor)
        case AttributeProto.TYPE_PROTO:
            return type_from_proto(proto.tp)
        case _:
            raise ValueError(f"attribute '{proto.name}' has a kind that no operator uses")


def attribute_to_proto(name: str, value: Attribute) -> AttributeProto:
    """The AttributeProto of a property."""
    if isinstance(value, IntegerAttr):
        return AttributeProto(name=name, type=AttributeProto.INT, i=cast(Any, value).value.data)
    if isinstance(value, FloatAttr):
        return AttributeProto(name=name, type=AttributeProto.FLOAT, f=cast(Any, value).value.data)
    if isinstance(value, StringAttr):
        return AttributeProto(name=name, type=AttributeProto.STRING, s=value.data.encode())
    if isinstance(value, DenseArrayBase):
        return _list_to_proto(name, cast(DenseArrayBase[Any], value))
    if isinstance(value, ArrayAttr):
        texts = [text.data.encode() for text in cast(ArrayAttr[StringAttr], value)]
        return AttributeProto(name=name, type=AttributeProto.STRINGS, strings=texts)
    if isinstance(value, TensorAttr):
        return helper.make_attribute(name, tensor_to_proto(value))
    if isinstance(value, SparseTensorAttr):
        return helper.make_attribute(name, sparse_to_proto(value))
    if isinstance(value, TypeAttribute):
        return helper.make_attribute(name, type_to_proto(cast(Attribute, value)))
    raise ValueError(f"attribute '{name}' has no form in onnx: {value}")


def _list_to_proto(name: str, value: DenseArrayBase[Any]) -> AttributeProto:
    values = cast(Sequence[Any], value.get_values())
    if value.elt_type == i64:
        return AttributeProto(name=name, type=AttributeProto.INTS, ints=values)
    return AttributeProto(name=name, type=AttributeProto.FLOATS, floats=values)
