"""The names that the source model gives the arguments and results of a function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation

NAME = "core.name"
"""The attribute of an argument, a result or an input's op that holds the tensor's name."""


UNUSED = "core.unused_inputs"
"""The attribute of a function that lists inputs of the model that its results do not need."""


STATES = "core.states"
"""
The attribute of a function that lists what it remembers: for each state the names of the input and
of the output that hold it before and after a call, and the constant that it begins with, or a unit
for zeros.
"""


DEFAULT = "core.default"
"""
The attribute of an argument that a caller may leave out (`dialects/core/defaults.py`), and the name
of what it holds.
"""


CLASSES = "core.classes"
"""
The attribute of a function that says which classes the numbers in outputs stand for: the names of
the classes, in order, by name of the output.
"""


def named(names: Iterable[str]) -> ArrayAttr[DictionaryAttr]:
    """The attributes of arguments or results with these names."""
    return ArrayAttr([DictionaryAttr({NAME: StringAttr(name)}) for name in names])


def value_names(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> list[str]:
    """
    The tensor names in a function's `arg_attrs` or `res_attrs`; its number where one has no name.
    """
    names = [str(position) for position in range(count)]
    for position, entry in enumerate(attributes or ()):
        if isinstance(name := entry.data.get(NAME), StringAttr):
            names[position] = name.data
    return names


def class_names(classes: Attribute | None) -> dict[str, tuple[str, ...]]:
    """The classes by output that `CLASSES` of a function or of the entry lists."""
    if not isinstance(classes, DictionaryAttr):
        return {}
    return {
        output: tuple(
            name.data
            for name in cast("ArrayAttr[Attribute]", names)
            if isinstance(name, StringAttr)
        )
        for output, names in classes.data.items()
    }


def given_name(op: Operation, default: str) -> str:
    """The name of the tensor that an op stands for, where the model gives it another one."""
    name = op.attributes.get(NAME)
    return name.data if isinstance(name, StringAttr) else default


def unused_inputs(op: Operation) -> list[str]:
    """
    The names of the model's inputs that a function or graph does not have, because no result needs
    them: to give them a value is no mistake.
    """
    names = op.attributes.get(UNUSED)
    if not isinstance(names, ArrayAttr):
        return []
    return [
        name.data for name in cast("ArrayAttr[Attribute]", names) if isinstance(name, StringAttr)
    ]
