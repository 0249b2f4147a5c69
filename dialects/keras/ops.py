"""
The ops of the `keras` dialect: one class for each class of layer and of `keras.ops`.

A call of a layer is an op. Its properties are the layer's configuration, and how it was called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.frameworks import FrameworkOp
from lowerdeck.dialects.keras.classes import CLASSES
from lowerdeck.dialects.plain import attribute_of, value_of

_ARGUMENTS, _NAMES, _VERSION = "arguments", "weights", "version"
_OPERAND = "operand"


class Operand:
    """What stands in the arguments of a call for a tensor: the number of an operand."""

    def __init__(self, number: int) -> None:
        self.number = number


class KerasOp(Operation, FrameworkOp):
    """
    The call of a layer, or an operation of `keras.ops`.

    Operands are the tensors of the call, then the layer's variables, whose names are in `weights`.
    `arguments` has the positional arguments and, by name, the others, with `{operand = k}` for a
    tensor; `config` is the configuration of the layer, and `version` the Keras that wrote it.

    Constraints:

    - (C1) `arguments` refers to operands that are no weights.

    Example:

    ```mlir
    %y = "keras.ReLU"(%x) <{arguments = [[{operand = 0}], {}], config = {}, version = 3}>
        : (tensor<2x3xf32>) -> tensor<*xf32>
    ```
    """

    def __init__(
        self,
        arguments: tuple[Sequence[Any], Mapping[str, Any]],
        tensors: Sequence[SSAValue],
        weights: Mapping[str, SSAValue],
        config: Mapping[str, Any],
        version: int,
        result_types: Sequence[Attribute],
    ) -> None:
        """`arguments` has an `Operand` for each of the `tensors`."""
        super().__init__(
            operands=[*tensors, *weights.values()],
            result_types=result_types,
            properties={
                _ARGUMENTS: config_attribute([list(arguments[0]), dict(arguments[1])]),
                _NAMES: config_attribute(list(weights)),
                "config": config_attribute(dict(config)),
                _VERSION: IntegerAttr(version, 64),
            },
        )

    @property
    def op_type(self) -> str:
        """The name of the class."""
        return Dialect.split_name(self.name)[1]

    @property
    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """The positional arguments and those by name; tensors are values."""
        positional, named = self._plain(self.properties[_ARGUMENTS])
        return positional, named

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the layer, as plain values."""
        return cast("dict[str, Any]", self._plain(self.properties["config"]))

    @property
    def version(self) -> int:
        """The major version of Keras whose words the configuration has."""
        return cast(Any, self.properties[_VERSION]).value.data

    @property
    def weights(self) -> dict[str, SSAValue]:
        """The variables by name."""
        names = cast("list[str]", self._plain(self.properties[_NAMES]))
        return dict(zip(names, self.operands[len(self.operands) - len(names) :], strict=True))

    def _plain(self, attribute: Attribute) -> Any:
        match attribute:
            case ArrayAttr():
                items = cast(Any, attribute).data
                return [self._plain(item) for item in items]
            case DictionaryAttr():
                if set(attribute.data) == {_OPERAND}:
                    return cast(Any, self.operands[self._plain(attribute.data[_OPERAND])])
                return {name: self._plain(item) for name, item in attribute.data.items()}
            case _:
                return value_of(attribute)

    def verify_(self) -> None:
        count = len(self.operands) - len(self._plain(self.properties[_NAMES]))
        for number in _operands_in(self.properties[_ARGUMENTS]):
            if not 0 <= number < count:
                raise VerifyException(f"operand {number} of {count} (C1)")


def _operands_in(attribute: Attribute) -> Iterator[int]:
    """The operands that arguments refer to."""
    if isinstance(attribute, ArrayAttr):
        for item in cast("ArrayAttr[Attribute]", attribute):
            yield from _operands_in(item)
    elif isinstance(attribute, DictionaryAttr):
        number = attribute.data.get(_OPERAND)
        if isinstance(number, IntegerAttr):
            yield number.value.data
        for item in attribute.data.values():
            yield from _operands_in(item)


def config_attribute(value: Any) -> Attribute:
    """The attribute of a value of a configuration: what JSON has."""
    match value:
        case None | bool() | int() | float() | str():
            return attribute_of(value)
        case Operand():
            return DictionaryAttr({_OPERAND: IntegerAttr(value.number, 64)})
        case dict():
            items = cast("dict[str, Any]", value)
            return DictionaryAttr({name: config_attribute(item) for name, item in items.items()})
        case _:
            return ArrayAttr([config_attribute(item) for item in value])


@cache
def op_class(name: str) -> type[KerasOp] | None:
    """The op of a class, or None if it is not known."""
    if name not in CLASSES:
        return None
    members: dict[str, object] = {
        "name": f"keras.{name}",
        "traits": traits_def(Pure()),
        "__module__": __name__,
        "__doc__": f"Keras' {name}.",
    }
    return type(f"{name}Op", (KerasOp,), members)


def op_classes() -> Iterator[type[KerasOp]]:
    """The ops of all classes."""
    for name in CLASSES:
        cls = op_class(name)
        assert cls is not None
        yield cls
