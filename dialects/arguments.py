"""Ops of operators whose arguments have names: values, several of them, or something plain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr
from xdsl.dialects.builtin import i64 as builtin_i64
from xdsl.ir import Attribute, Dialect, Operation, SSAValue, TypeAttribute
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.frameworks import FrameworkOp
from lowerdeck.dialects.plain import attribute_of, value_of
from lowerdeck.dialects.records import record

Given: TypeAlias = "SSAValue | Sequence[SSAValue | None] | Attribute"
"""What stands for an argument: a value, several of them, or an attribute."""

PLACES = "places"


@record
class Argument:
    """A formal argument of an operator."""

    name: str
    type: str
    default: Any
    """The value of an argument that is left out; None also for one that must be given."""

    @property
    def is_list(self) -> bool:
        """True for a list of values."""
        return self.type.rstrip("?").endswith("]")


@record
class Schema:
    """An operator, as its framework declares it."""

    target: str
    """Its name: of PyTorch's with namespace and overload, `aten.add.Tensor`."""
    arguments: Mapping[str, Argument]


class ArgumentsOp(Operation, FrameworkOp):
    """
    An operator with named arguments; the classes below it are made from a table.

    Operands are the arguments that are values, in order; others are properties. The property
    `places` has for each argument that is a value the operands that it is, -1 for one of a list
    that is left out.
    """

    schema: ClassVar[Schema]

    def __init__(self, given: Mapping[str, Given], result_types: Sequence[Attribute]) -> None:
        operands: list[SSAValue] = []
        places: dict[str, Attribute] = {}
        properties: dict[str, Attribute] = {}
        for name, argument in given.items():
            if isinstance(argument, Attribute):
                properties[name] = argument
                continue
            values = [argument] if isinstance(argument, SSAValue) else argument
            numbers: list[int] = []
            for value in values:
                numbers.append(-1 if value is None else len(operands))
                operands += [] if value is None else [value]
            places[name] = cast(Attribute, DenseArrayBase.from_list(builtin_i64, numbers))
        properties[PLACES] = DictionaryAttr(places)
        super().__init__(operands=operands, result_types=result_types, properties=properties)

    @property
    def op_type(self) -> str:
        """The operator as the framework names it."""
        return Dialect.split_name(self.name)[1]

    def argument(self, name: str) -> Any:
        """A value, a list of values, a plain number, text, list or element type, or None."""
        if (numbers := self.places.get(name)) is not None:
            values = [None if k < 0 else self.operands[k] for k in numbers]
            is_list = self.schema.arguments[name].is_list or len(values) != 1
            return values if is_list else values[0]
        found = self.properties.get(name)
        return self.schema.arguments[name].default if found is None else plain_value(found)

    @property
    def places(self) -> dict[str, list[int]]:
        """The numbers of the operands that each argument is."""
        found = self.properties.get(PLACES)
        if not isinstance(found, DictionaryAttr):
            return {}
        return {key: list(cast(Any, value).get_values()) for key, value in found.data.items()}

    def verify_(self) -> None:
        places = self.places
        found = sorted(k for numbers in places.values() for k in numbers if k >= 0)
        if found != list(range(len(self.operands))):
            raise VerifyException(f"places {found} for {len(self.operands)} operands (C1)")
        if unknown := self.named - self.schema.arguments.keys():
            raise VerifyException(f"no arguments are called {sorted(unknown)} (C2)")

    @property
    def named(self) -> set[str]:
        """The arguments that are given."""
        return {*self.places, *self.properties} - {PLACES}


def plain_attribute(value: Any) -> Attribute:
    """The attribute of a plain argument; that of an element type is the type."""
    match value:
        case Attribute():
            return value
        case None | bool() | int() | float() | str():
            return attribute_of(value)
        case _:
            return ArrayAttr(plain_attribute(item) for item in value)


def plain_value(attribute: Attribute) -> Any:
    """The plain argument of an attribute."""
    match attribute:
        case ArrayAttr():
            return [plain_value(item) for item in attribute]
        case TypeAttribute():
            return attribute
        case _:
            return value_of(attribute)
