"""Which function legalizes which operator, for frameworks whose operators have no versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

H = TypeVar("H")


class HandlerTable(Generic[H]):
    """
    Handlers by the name of the operator:

        @legalizes("Relu", "Relu6")
        def legalize_relu(op, builder): ...
    """

    def __init__(self) -> None:
        self._handlers: dict[str, H] = {}

    def __call__(self, *op_types: str) -> Callable[[H], H]:
        """Register a function as the legalization of operators; ValueError for a second one."""

        def register(handler: H) -> H:
            for op_type in op_types:
                if op_type in self._handlers:
                    raise ValueError(f"{op_type} has two legalizations")
                self._handlers[op_type] = handler
            return handler

        return register

    def get(self, op_type: str) -> H | None:
        """The function for an operator, or None."""
        return self._handlers.get(op_type)

    def __iter__(self) -> Iterator[str]:
        return iter(self._handlers)
