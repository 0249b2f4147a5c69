"""Types and attributes of the tf1 dialect: element types, partial shapes and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

from xdsl.dialects.builtin import ComplexType, TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.types import (
    StringType,
    bf16,
    element_type,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    ui8,
    ui16,
    ui32,
    ui64,
)


@irdl_attr_definition
class ControlType(ParametrizedAttribute, TypeAttribute):
    """What a control edge carries: that a node has run."""

    name = "tf1.control"


@irdl_attr_definition
class ResourceType(ParametrizedAttribute, TypeAttribute):
    """A handle of a stateful object, such as a TensorArray (DT_RESOURCE)."""

    name = "tf1.resource"


@irdl_attr_definition
class VariantType(ParametrizedAttribute, TypeAttribute):
    """A value of any kind, such as a TensorList (DT_VARIANT)."""

    name = "tf1.variant"


CONTROL, RESOURCE, VARIANT = ControlType(), ResourceType(), VariantType()

ELEMENTS: dict[str, Attribute] = {
    "float": f32,
    "double": f64,
    "half": f16,
    "bfloat16": bf16,
    "bool": i1,
    "int8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
    "uint8": ui8,
    "uint16": ui16,
    "uint32": ui32,
    "uint64": ui64,
    "qint8": i8,
    "quint8": ui8,
    "qint16": i16,
    "quint16": ui16,
    "qint32": i32,
    "complex64": ComplexType(f32),
    "complex128": ComplexType(f64),
    "string": StringType(),
}
"""The element types by their TensorFlow names; quantized ones are stored as integers."""


def is_complex_value(value: SSAValue) -> bool:
    """True for a tensor of complex numbers."""
    type_ = value.type
    if not isinstance(type_, TensorType | UnrankedTensorType):
        return False
    return isinstance(element_type(value), ComplexType)


@irdl_attr_definition
class DTypeAttr(Data[str]):
    """An element type by its TensorFlow name, without `DT_`: `#tf1.dtype<float>`."""

    name = "tf1.dtype"

    @property
    def base(self) -> str:
        """The name without the mark of a reference."""
        return self.data.removesuffix("_ref")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_identifier()

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


@irdl_attr_definition
class ShapeAttr(Data[tuple[int, ...] | None]):
    """A partial shape: `#tf1.shape<[?, 3]>` (-1 in `data`), or `#tf1.shape<*>` without a rank."""

    name = "tf1.shape"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, ...] | None:
        with parser.in_angle_brackets():
            if parser.parse_optional_punctuation("*") is not None:
                return None
            return tuple(
                parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, lambda: _parse_dim(parser)
                )
            )

    def print_parameter(self, printer: Printer) -> None:
        if self.data is None:
            printer.print_string("<*>")
            return
        dims = ", ".join("?" if dim < 0 else str(dim) for dim in self.data)
        printer.print_string(f"<[{dims}]>")


def _parse_dim(parser: AttrParser) -> int:
    if parser.parse_optional_punctuation("?") is not None:
        return -1
    return parser.parse_integer(allow_boolean=False, allow_negative=False)


@cache
def value_type(dtype: str) -> Attribute:
    """
    The type of a value of an element type, before its shape is known.

    VerifyException if no value in a graph can have it.
    """
    base = dtype.removesuffix("_ref")
    match base:
        case "resource":
            return RESOURCE
        case "variant":
            return VARIANT
        case _ if base in ELEMENTS:
            return UnrankedTensorType(ELEMENTS[base])
        case _:
            raise VerifyException(f"'{dtype}' is not an element type")


def fits(type_: Attribute, dtype: str) -> bool:
    """True if a value of type `type_`, ranked or not, may have an element type."""
    element = ELEMENTS.get(dtype.removesuffix("_ref"))
    if element is None or not isinstance(type_, TensorType | UnrankedTensorType):
        return type_ == value_type(dtype)
    return element_type(cast(Attribute, type_)) == element


def dtype_attr(value: SSAValue) -> DTypeAttr:
    """The element type of a tensor; of a quantized one that of what it is stored as."""
    element = element_type(value)
    return DTypeAttr(next(name for name, known in ELEMENTS.items() if known == element))


def shape_attr(dims: Sequence[int] | None) -> ShapeAttr:
    """The attribute for a shape; -1 is an unknown dimension, None an unknown rank."""
    return ShapeAttr(None if dims is None else tuple(-1 if dim < 0 else dim for dim in dims))
