"""
The ops of the `pt2` dialect: one class for each overload in `ops.txt`.

Operands are the tensors and symbolic numbers that an operator is given, in order; all other
arguments are properties under their names in the schema. An argument that is left out has the
schema's default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    UnitAttr,
)
from xdsl.dialects.builtin import i64 as builtin_i64
from xdsl.ir import Attribute, Dialect, Operation, SSAValue, TypeAttribute
from xdsl.irdl import traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.frameworks import FrameworkOp
from lowerdeck.dialects.plain import attribute_of, value_of
from lowerdeck.dialects.pt2.schema import Schema, schemas

Given: TypeAlias = "SSAValue | Sequence[SSAValue | None] | Attribute"
"""What stands for an argument: a value, several of them, or an attribute."""

_PLACES, _IN_PLACE = "places", "in_place"


class Pt2Op(Operation, FrameworkOp):
    """
    An overload of an operator; the classes below it are made from the table.

    Properties besides the arguments: `places` has for each argument that is a value the operands
    that it is, -1 for one of a list that is left out; `in_place` is set where the operator wrote
    into its first operand: the result has the type of that.

    Constraints:

    - (C1) `places` names each operand once, in order.
    - (C2) Arguments are those of the schema.

    Example:

    ```mlir
    %r = "pt2.aten.add.Tensor"(%x, %y) <{places = {self = array<i64: 0>, other = array<i64: 1>}}>
        : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
    ```
    """

    schema: ClassVar[Schema]

    def __init__(
        self, given: Mapping[str, Given], result_types: Sequence[Attribute], in_place: bool = False
    ) -> None:
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
        properties[_PLACES] = DictionaryAttr(places)
        if in_place:
            properties[_IN_PLACE] = UnitAttr()
        super().__init__(operands=operands, result_types=result_types, properties=properties)

    @property
    def op_type(self) -> str:
        """The operator with its namespace and overload."""
        return Dialect.split_name(self.name)[1]

    @property
    def is_in_place(self) -> bool:
        """True if the operator wrote into its first operand."""
        return _IN_PLACE in self.properties

    def argument(self, name: str) -> Any:
        """A value, a list of values, a plain number, text, list or element type, or None."""
        if (numbers := self._places().get(name)) is not None:
            values = [None if k < 0 else self.operands[k] for k in numbers]
            return values if self.schema.arguments[name].is_list else values[0]
        found = self.properties.get(name)
        return self.schema.arguments[name].default if found is None else _plain(found)

    def _places(self) -> dict[str, list[int]]:
        found = self.properties.get(_PLACES)
        if not isinstance(found, DictionaryAttr):
            return {}
        return {key: list(cast(Any, value).get_values()) for key, value in found.data.items()}

    def verify_(self) -> None:
        places = self._places()
        found = sorted(k for numbers in places.values() for k in numbers if k >= 0)
        if found != list(range(len(self.operands))):
            raise VerifyException(f"places {found} for {len(self.operands)} operands (C1)")
        names = {*places, *self.properties} - {_PLACES, _IN_PLACE}
        if unknown := names - self.schema.arguments.keys():
            raise VerifyException(f"no arguments are called {sorted(unknown)} (C2)")


def plain_attribute(value: Any) -> Attribute:
    """The attribute of a plain argument; that of an element type is the type."""
    match value:
        case Attribute():
            return value
        case None | bool() | int() | float() | str():
            return attribute_of(value)
        case _:
            return ArrayAttr(plain_attribute(item) for item in value)


def _plain(attribute: Attribute) -> Any:
    match attribute:
        case ArrayAttr():
            return [_plain(item) for item in attribute]
        case TypeAttribute():
            return attribute
        case _:
            return value_of(attribute)


@cache
def op_class(target: str) -> type[Pt2Op] | None:
    """The class of an overload, or None if the table does not have it."""
    schema = schemas().get(target)
    if schema is None:
        return None
    members: dict[str, object] = {
        "name": f"pt2.{target}",
        "schema": schema,
        "traits": traits_def(Pure()),
        "__module__": __name__,
        "__doc__": f"PyTorch's operator {target}.",
    }
    return type(f"{target.replace('.', '_')}_Op", (Pt2Op,), members)


def op_classes() -> Iterator[type[Pt2Op]]:
    """The classes of all overloads."""
    for target in schemas():
        cls = op_class(target)
        assert cls is not None
        yield cls
