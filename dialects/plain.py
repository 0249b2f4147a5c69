"""Attributes of plain values, which options and configurations of frameworks are."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BoolAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f64,
    i1,
)
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException


def attribute_of(value: bool | float | str | None) -> Attribute:
    """Integers have 64 bits, other numbers are f64, and None is a unit."""
    match value:
        case None:
            return UnitAttr()
        case bool():
            return BoolAttr.from_bool(value)
        case int():
            return IntegerAttr(value, 64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)


def value_of(attribute: Attribute) -> bool | int | float | str | None:
    """The value of an attribute that `attribute_of` made; VerifyException for any other."""
    match attribute:
        case UnitAttr():
            return None
        case IntegerAttr():
            number = attribute.value.data
            return bool(number) if attribute.type == i1 else number
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case _:
            raise VerifyException(f"an option {attribute}")
