"""
Parameter messages as attributes, and back.

Only fields that are set become attributes, so that a message is the same after a round trip: an
integer is an i64, a float an f32, a bool an i1, an enum and a string a string, a message a
dictionary; repeated ones are arrays of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f32,
    i1,
    i64,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.numbers import dense_floats, dense_ints, parse_float32, parse_int64


def fields_of(kind: type[Message]) -> Mapping[str, FieldDescriptor]:
    """The fields of a kind of message, by name."""
    return cast(Mapping[str, FieldDescriptor], kind.DESCRIPTOR.fields_by_name)


def is_repeated(field: FieldDescriptor) -> bool:
    """True for a field that holds a list."""
    return bool(cast(Any, field).is_repeated)


def _is_integer(field: FieldDescriptor) -> bool:
    return field.cpp_type in (
        field.CPPTYPE_INT32,
        field.CPPTYPE_INT64,
        field.CPPTYPE_UINT32,
        field.CPPTYPE_UINT64,
    )


# To attributes


def attributes_of(message: Message) -> dict[str, Attribute]:
    """The fields that are set in `message`, by name."""
    return {field.name: _attribute(field, value) for field, value in message.ListFields()}


def _attribute(field: FieldDescriptor, value: Any) -> Attribute:
    if not is_repeated(field):
        return _single(field, value)
    if _is_integer(field):
        return cast(Attribute, dense_ints(value))
    if field.cpp_type == field.CPPTYPE_FLOAT:
        return cast(Attribute, dense_floats(value))
    return ArrayAttr([_single(field, item) for item in value])


def _single(field: FieldDescriptor, value: Any) -> Attribute:
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        return DictionaryAttr(attributes_of(value))
    if field.cpp_type == field.CPPTYPE_BOOL:
        return IntegerAttr(int(value), i1)
    if field.cpp_type == field.CPPTYPE_FLOAT:
        return FloatAttr(value, f32)
    if field.cpp_type == field.CPPTYPE_ENUM:
        return StringAttr(_enum(field).values_by_number[value].name)
    if field.cpp_type == field.CPPTYPE_STRING:
        return StringAttr(value)
    return IntegerAttr(value, i64)


def _enum(field: FieldDescriptor) -> Any:
    return cast(Any, field.enum_type)


# To messages


def set_fields(message: Message, attributes: Mapping[str, Attribute]) -> None:
    """Set the fields of `message`; VerifyException if an attribute does not fit its field."""
    fields = fields_of(type(message))
    for name, attribute in attributes.items():
        if (field := fields.get(name)) is None:
            raise VerifyException(f"{message.DESCRIPTOR.name} has no field '{name}'")
        try:
            _set_field(message, field, attribute)
        except (TypeError, ValueError):
            raise VerifyException(f"field '{name}' cannot hold {attribute}") from None


def _set_field(message: Message, field: FieldDescriptor, attribute: Attribute) -> None:
    if not is_repeated(field):
        if field.cpp_type == field.CPPTYPE_MESSAGE:
            nested = getattr(message, field.name)
            nested.SetInParent()
            set_fields(nested, _dictionary(attribute))
        else:
            setattr(message, field.name, _scalar(field, attribute))
        return
    target = getattr(message, field.name)
    if isinstance(attribute, DenseArrayBase):
        array = cast(DenseArrayBase[Any], attribute)
        if array.elt_type != (i64 if _is_integer(field) else f32):
            raise ValueError
        target.extend(array.get_values())
        return
    for item in _items(attribute):
        if field.cpp_type == field.CPPTYPE_MESSAGE:
            set_fields(target.add(), _dictionary(item))
        else:
            target.append(_scalar(field, item))


def _dictionary(attribute: Attribute) -> Mapping[str, Attribute]:
    if not isinstance(attribute, DictionaryAttr):
        raise ValueError
    return attribute.data


def _items(attribute: Attribute) -> Sequence[Attribute]:
    if not isinstance(attribute, ArrayAttr):
        raise ValueError
    return cast(ArrayAttr[Attribute], attribute).data


def _scalar(field: FieldDescriptor, attribute: Attribute) -> Any:
    if isinstance(attribute, StringAttr):
        if field.cpp_type == field.CPPTYPE_ENUM:
            values = _enum(field).values_by_name
            if attribute.data not in values:
                raise ValueError
            return values[attribute.data].number
        if field.cpp_type == field.CPPTYPE_STRING:
            return attribute.data
    if isinstance(attribute, FloatAttr) and field.cpp_type == field.CPPTYPE_FLOAT:
        return cast(FloatAttr[Any], attribute).value.data
    if isinstance(attribute, IntegerAttr):
        integer = cast(IntegerAttr[Any], attribute)
        if field.cpp_type == field.CPPTYPE_BOOL and integer.type == i1:
            return bool(integer.value.data)
        if _is_integer(field) and integer.type == i64:
            return integer.value.data
    raise ValueError


# Text


def print_fields(
    printer: Printer, fields: Mapping[str, FieldDescriptor], attributes: Mapping[str, Attribute]
) -> None:
    """Print `{name = value, ...}` in the order of the names."""

    def print_one(item: tuple[str, Attribute]) -> None:
        name, attribute = item
        printer.print_string(f"{name} = ")
        _print_value(printer, fields.get(name), attribute)

    with printer.in_braces():
        printer.print_list(sorted(attributes.items()), print_one)


def _print_value(printer: Printer, field: FieldDescriptor | None, attribute: Attribute) -> None:
    match attribute:
        case _ if field is None:
            printer.print_attribute(attribute)
        case DictionaryAttr() if field.message_type is not None:
            print_fields(printer, field.message_type.fields_by_name, attribute.data)
        case ArrayAttr() if field.message_type is not None:
            with printer.in_square_brackets():
                printer.print_list(
                    attribute,
                    lambda item: _print_value(printer, field, item),
                )
        case DenseArrayBase():
            array = cast(DenseArrayBase[Any], attribute)
            texts = map(str if array.elt_type == i64 else _float_text, array.get_values())
            printer.print_string(f"[{', '.join(texts)}]")
        case FloatAttr():
            printer.print_string(_float_text(cast(FloatAttr[Any], attribute).value.data))
        case IntegerAttr() if cast(IntegerAttr[Any], attribute).type == i64:
            printer.print_string(str(cast(IntegerAttr[Any], attribute).value.data))
        case _:
            printer.print_attribute(attribute)


def _float_text(value: float) -> str:
    """The shortest text that reads back as the same float32; a string for NaN and infinities."""
    if not np.isfinite(value):
        return f'"{value}"'
    text = str(np.float32(value))
    return text if "." in text else text.replace("e", ".0e")


def parse_fields(parser: Parser, fields: Mapping[str, FieldDescriptor]) -> dict[str, Attribute]:
    """Parse what `print_fields` prints; empty if no brace is there."""
    items = parser.parse_optional_comma_separated_list(
        parser.Delimiter.BRACES, lambda: _parse_field(parser, fields)
    )
    return dict(items or ())


def _parse_field(parser: Parser, fields: Mapping[str, FieldDescriptor]) -> tuple[str, Attribute]:
    start = parser.pos
    name = parser.parse_identifier(" as name of a field")
    if (field := fields.get(name)) is None:
        parser.raise_error(f"the layer has no field '{name}'", start, parser.pos)
    parser.parse_punctuation("=")
    if not is_repeated(field):
        return name, _parse_single(parser, field)
    square = parser.Delimiter.SQUARE
    if _is_integer(field):
        integers = parser.parse_comma_separated_list(square, lambda: parse_int64(parser))
        return name, cast(Attribute, dense_ints(integers))
    if field.cpp_type == field.CPPTYPE_FLOAT:
        floats = parser.parse_comma_separated_list(square, lambda: parse_float32(parser))
        return name, cast(Attribute, dense_floats(floats))
    items = parser.parse_comma_separated_list(square, lambda: _parse_single(parser, field))
    return name, ArrayAttr(items)


def _parse_single(parser: Parser, field: FieldDescriptor) -> Attribute:
    message: Descriptor | None = field.message_type
    if message is not None:
        return DictionaryAttr(parse_fields(parser, message.fields_by_name))
    if field.cpp_type == field.CPPTYPE_BOOL:
        return IntegerAttr(int(parser.parse_boolean()), i1)
    if field.cpp_type == field.CPPTYPE_FLOAT:
        return FloatAttr(parse_float32(parser), f32)
    if _is_integer(field):
        return IntegerAttr(parse_int64(parser), i64)
    return StringAttr(parser.parse_str_literal())
