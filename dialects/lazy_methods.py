"""
Methods of dataclasses, compiled when they are first asked for.

A dataclass writes each of its methods as text and compiles it, up to seven for a class: for those
of xDSL and of this package together a fifth of the time of a small compilation, which uses one
method in eight. Here each stands in its class as what makes it, and makes way for it at the first
look, by whoever looks: so a signature, a wrapper and a call all see the method itself.

Only classes of the two packages are concerned, and only in versions of Python that compile each
method by itself (up to 3.12; later ones compile those of a class together).
"""

# The function of `dataclasses` that is replaced here is not public.
# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import FunctionType
from typing import Any

_PACKAGES = frozenset({"lowerdeck", "xdsl"})

_create: Callable[..., FunctionType] | None = getattr(dataclasses, "_create_fn", None)
"""Compiles a method: of its name, arguments and lines, with the names that these use."""


class LazyMethod:
    """Stands where a method belongs, until someone looks."""

    def __init__(self, name: str, module: str, make: Callable[[], FunctionType]) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = module
        self._make = make
        self._made: FunctionType | None = None

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        method = self._method()
        for cls in owner.__mro__:
            if vars(cls).get(self.__name__) is self:
                method.__qualname__ = f"{cls.__qualname__}.{self.__name__}"
                setattr(cls, self.__name__, method)
                break
        return method.__get__(instance, owner)

    def __call__(self, *values: Any, **named: Any) -> Any:
        """The method itself, called by a function that is wrapped around it."""
        return self._method()(*values, **named)

    def _method(self) -> FunctionType:
        if self._made is None:
            self._made = self._make()
        return self._made


def install() -> None:
    """From here on, methods of dataclasses of the two packages are lazy."""
    if _create is not None:
        setattr(dataclasses, "_create_fn", _create_later)


def _create_later(name: str, *values: Any, **named: Any) -> Any:
    """`dataclasses._create_fn`"""
    create = _create
    assert create is not None
    names: dict[str, Any] = named.get("globals") or {}
    module = str(names.get("__name__", ""))
    if module.partition(".")[0] not in _PACKAGES:
        return create(name, *values, **named)
    return LazyMethod(name, module, lambda: create(name, *values, **named))
