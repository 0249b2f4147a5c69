"""
Which function legalizes which operator: found where it is defined.

A handler registers itself with a decorator. The modules of its package are imported when the first
handler is looked up, so there is no list of them to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, TypeVar

H = TypeVar("H")


class HandlerTable(Generic[H]):
    """
    Handlers by the name of the operator, defined anywhere in a package:

        legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.toy")

        @legalizes("Relu", "Relu6")
        def legalize_relu(op, builder): ...
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._handlers: dict[str, H] = {}
        self._is_loaded = False

    def __call__(self, *op_types: str) -> Callable[[H], H]:
        """Register a function as the legalization of operators; ValueError for a second one."""

        def register(handler: H) -> H:
            for op_type in op_types:
                if op_type in self._handlers:
                    raise ValueError(f"{op_type} has two legalizations")
                self._handlers[op_type] = handler
            return handler

        return register

    def rows(self, handlers: Mapping[str, H]) -> None:
        """Register a function for each of several operators."""
        for op_type, handler in handlers.items():
            self(op_type)(handler)

    def get(self, op_type: str) -> H | None:
        """The function for an operator, or None."""
        self._load()
        return self._handlers.get(op_type)

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._handlers)

    def _load(self) -> None:
        if not self._is_loaded:
            # Modules may ask for what others have registered before them.
            self._is_loaded = True
            try:
                import_modules(self._package)
            except BaseException:
                self._is_loaded = False
                raise


def import_modules(package: str) -> None:
    """Import every module of a package, so that what registers itself there does."""
    for module in sorted(module.name for module in iter_modules(import_module(package).__path__)):
        import_module(f"{package}.{module}")


def pairs(text: str) -> dict[str, str]:
    """Names of operators and of functions: `name=function`, separated by spaces."""
    return dict(pair.split("=") for pair in text.split())
