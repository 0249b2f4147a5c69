"""
Classes of values: what `@dataclass(frozen=True)` makes, in a fifth of its time.

A compilation defines some hundreds of such classes, and most that a dataclass takes goes into
methods that are text, and compiled, for each of them. Here that is `__init__` alone: to compare, to
hash and to show are closures over the names of the fields, as quick as the text. That fields are
not assigned to is for the type checker to see, and instances are made in a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform

_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[_Class]) -> type[_Class]:
    """
    A class of values with the annotated fields; of a dataclass it has all but what is said above.

    For a subclass of a frozen dataclass, as those of xDSL are, there is only `dataclass`.
    """
    own = dict(vars(cls))
    made = cast(Any, dataclass(eq=False, repr=False)(cls))
    compared = [one.name for one in fields(made) if one.compare]
    hashed = [one.name for one in fields(made) if (one.compare if one.hash is None else one.hash)]
    if "__eq__" not in own:
        made.__eq__ = _equality(_values(compared))
    # With an `__eq__` of its own, Python sets it to None.
    if own.get("__hash__") is None:
        made.__hash__ = _hashing(_values(hashed))
    if "__repr__" not in own:
        made.__repr__ = _showing([one.name for one in fields(made) if one.repr])
    return cls


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of some fields of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    get = attrgetter(names[0])
    return lambda one: (get(one),)


def _equality(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def equality(self: Any, other: object) -> bool:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return equality


def _hashing(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _showing(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def showing(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return showing
