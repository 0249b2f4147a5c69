"""Types of onnx values: between TypeProto, the type strings of the schemas, and IR types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import cast

import onnx
from onnx import helper
from xdsl.dialects.builtin import NoneAttr, NoneType, TensorType, UnrankedTensorType
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import (
    UNKNOWN,
    OptionalType,
    SequenceType,
    dims_of,
    element_of,
    element_type,
    numpy_dtype,
    tensor,
)
from lowerdeck.dialects.dims import ExprLike, constants

UNTYPED = UnrankedTensorType(UNKNOWN)
"""The type of a value about which nothing is known yet, not even that it is a tensor."""

ShapeReader = Callable[[onnx.TensorShapeProto], Iterable[ExprLike] | None]


def static_dims(shape: onnx.TensorShapeProto) -> Sequence[int] | None:
    """The dimensions if all of them are numbers."""
    dims = [dim.dim_value for dim in shape.dim if dim.HasField("dim_value") and dim.dim_value >= 0]
    return dims if len(dims) == len(shape.dim) else None


def no_dims(shape: onnx.TensorShapeProto) -> None:
    """Every shape as unknown."""
    del shape


def is_unknown(element: Attribute) -> bool:
    """True for the element type of a tensor whose element type is not known yet."""
    return isinstance(element, NoneAttr | NoneType)


def is_tensor_of_unknown(value: SSAValue) -> bool:
    """True for a tensor whose element type is not known."""
    type_ = value.type
    return isinstance(type_, TensorType | UnrankedTensorType) and is_unknown(element_type(value))


@cache
def element_from_proto(data_type: int) -> Attribute:
    """The element type for a TensorProto.DataType; ValueError if there is none."""
    if data_type not in onnx.TensorProto.DataType.values() or data_type == 0:
        raise ValueError(f"{data_type} is not an element type of TensorProto")
    return element_of(helper.tensor_dtype_to_np_dtype(data_type))


@cache
def element_to_proto(element: Attribute) -> int:
    """The TensorProto.DataType of an element type; 0 (undefined) if it is not known."""
    return 0 if is_unknown(element) else helper.np_dtype_to_tensor_dtype(numpy_dtype(element))


def type_from_proto(proto: onnx.TypeProto, shape: ShapeReader = static_dims) -> Attribute:
    """
    The IR type of `proto`, tensor dimensions read by `shape` (None: unranked).

    Types without an IR form (maps, sparse and opaque types) are untyped.
    """
    match proto.WhichOneof("value"):
        case "tensor_type":
            kind = proto.tensor_type
            element = UNKNOWN if kind.elem_type == 0 else element_from_proto(kind.elem_type)
            dims = shape(kind.shape) if kind.HasField("shape") else None
            return UnrankedTensorType(element) if dims is None else tensor(element, dims)
        case "sequence_type":
            return SequenceType(type_from_proto(proto.sequence_type.elem_type, shape))
        case "optional_type":
            return OptionalType(type_from_proto(proto.optional_type.elem_type, shape))
        case _:
            return UNTYPED


def type_to_proto(type_: Attribute) -> onnx.TypeProto:
    """The TypeProto of an IR type; symbolic dimensions carry their expression as a name."""
    if isinstance(type_, SequenceType):
        return helper.make_sequence_type_proto(type_to_proto(type_.element))
    if isinstance(type_, OptionalType):
        return helper.make_optional_type_proto(type_to_proto(type_.element))
    if not isinstance(type_, TensorType | UnrankedTensorType):
        return onnx.TypeProto()
    shape: list[int | str] | None = None
    if isinstance(type_, TensorType):
        dims = dims_of(cast(Attribute, type_))
        numbers = constants(dims)
        shape = [str(dim) for dim in dims] if numbers is None else list(numbers)
        shape = [int(dim) if isinstance(dim, str) and dim.isdigit() else dim for dim in shape]
    element = element_type(cast(Attribute, type_))
    return helper.make_tensor_type_proto(element_to_proto(element), shape)


@cache
def _element_name(element: Attribute) -> str | None:
    if is_unknown(element):
        return None
    try:
        name = onnx.TensorProto.DataType.Name(element_to_proto(element)).lower()
    except KeyError:
        name = str(element)  # a type that no operator of onnx takes
    return f"tensor({name})"


def type_string(type_: Attribute) -> str | None:
    """The name of a type in the schemas, `seq(tensor(float))`; None if it is not known."""
    if isinstance(type_, TensorType | UnrankedTensorType):
        return _element_name(element_type(cast(Attribute, type_)))
    if isinstance(type_, SequenceType | OptionalType):
        inner = type_string(type_.element)
        kind = "seq" if isinstance(type_, SequenceType) else "optional"
        return None if inner is None else f"{kind}({inner})"
    return None


@cache
def type_from_string(text: str) -> Attribute:
    """The IR type (without rank) for a type name of the schemas; maps are untyped."""
    kind, _, inner = text.removesuffix(")").partition("(")
    match kind:
        case "tensor":
            return UnrankedTensorType(
                element_from_proto(onnx.TensorProto.DataType.Value(inner.upper()))
            )
        case "seq":
            return SequenceType(type_from_string(inner))
        case "optional":
            return OptionalType(type_from_string(inner))
        case _:
            return UNTYPED


def without_rank(type_: Attribute) -> Attribute:
    """The type with the ranks of its tensors dropped."""
    if isinstance(type_, TensorType):
        return UnrankedTensorType(element_type(cast(Attribute, type_)))
    if isinstance(type_, SequenceType):
        return SequenceType(without_rank(type_.element))
    if isinstance(type_, OptionalType):
        return OptionalType(without_rank(type_.element))
    return type_
