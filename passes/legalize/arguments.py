"""What a handler works with whose operator has named arguments, and a builder before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.arguments import ArgumentsOp
from lowerdeck.dialects.core.types import element_type, is_float, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.legalize.tensor_value import TensorValue


class ArgumentsLegalizer(Legalizer):
    """What a handler works with."""

    def __init__(
        self,
        op: ArgumentsOp,
        symbols: SymbolicValues,
        companions: dict[SSAValue, SSAValue] | None = None,
    ) -> None:
        super().__init__(op, symbols, companions)
        self.op = op
        arguments = op.schema.arguments
        self.wants: Callable[[int], bool] = lambda index: op.results[index].first_use is not None
        """Whether something uses a result, so that it has to be computed."""
        self._first = "self" if "self" in arguments else next(iter(arguments), "")

    # Results

    def element(self, index: int = 0) -> Attribute:
        """The element type that the file states for a result."""
        if index >= (count := len(self.op.results)):
            self.refuse(f"{count} results", f"{index + 1}")
        return element_type(self.op.results[index])

    def elements(self) -> list[Attribute]:
        """The element types of all results, as `element` says them."""
        return [self.element(index) for index in range(len(self.op.results))]

    def require_element(self, index: int, value: SSAValue) -> None:
        """Refuse a result of another type than the file states."""
        if element_type(value) != self.element(index) and self.wants(index):
            self.refuse(f"result {index} of {element_type(value)}", f"{self.element(index)}")

    # Arguments

    def has(self, name: str) -> bool:
        """True if the operator has such an argument, given or not."""
        return name in self.op.schema.arguments

    def get(self, name: str) -> Any:
        """An argument as it is: a value, a list of values, something plain, or None."""
        return self.op.argument(name)

    def input(self, name: str = "") -> SSAValue:
        """A tensor that must be there; without a name the one that the operator works on."""
        name = name or self._first
        found = self.optional(name)
        if found is None:
            self.refuse(f"'{name}' is {self.get(name)}", "a tensor")
        return found

    def optional(self, name: str) -> SSAValue | None:
        """A tensor, or None."""
        found = self.get(name)
        return cast("SSAValue", found) if isinstance(found, SSAValue) else None

    def inputs(self, name: str) -> list[SSAValue]:
        """Several tensors, or one, or none."""
        found = self.get(name)
        listed = cast("list[Any]", found if isinstance(found, list) else [found])
        return [value for value in listed if value is not None]

    def require_ranks(self, spans: Mapping[str, tuple[int, int | None]]) -> None:
        """Refuse inputs of fewer or more dimensions than the operator takes."""
        for name, (least, most) in spans.items():
            for value in self.inputs(name) if self.has(name) else ():
                rank = rank_of(value)
                if rank < least or (most is not None and rank > most):
                    more = "or more" if most is None else f"to {most}"
                    span = f"{least}" if least == most else f"{least} {more}"
                    self.refuse(f"'{name}' of {rank} dimensions", span)

    def value(self, name: str = "") -> TensorValue:
        """A tensor for arithmetic."""
        return TensorValue.of(self, self.input(name))

    def number(self, name: str, default: float | None = None) -> Any:
        """A plain number."""
        found = self.get(name)
        found = default if found is None else found
        if isinstance(found, SSAValue):
            array = self.require_constant(cast("SSAValue", found), f"'{name}'")
            found = array.reshape(-1)[0].item() if array.size else "empty"
        if not isinstance(found, int | float):
            self.refuse(f"'{name}' is {found}", "a number")
        return found

    def real(self, name: str) -> float:
        """A plain number as a float."""
        return float(self.number(name))

    def integer(self, name: str, default: int | None = None) -> int:
        """A plain integer."""
        return int(self.number(name, default))

    def flag(self, name: str) -> bool:
        """A truth value; None is false."""
        return bool(self.get(name))

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        found = self.get(name)
        return default if found is None else str(found)

    def choice(self, name: str, *words: str) -> str:
        """One of several words."""
        found = self.text(name)
        if found not in words:
            self.refuse(f"'{name}' is {found or 'empty'}", "one of " + ", ".join(words))
        return found

    def expr(self, name: str) -> Expr:
        """An integer, plain, symbolic, or a tensor of one element."""
        found = self.exprs_of(name)
        if len(found) != 1:
            self.refuse(f"{len(found)} numbers as '{name}'", "one")
        return found[0]

    def exprs_of(self, name: str) -> list[Expr]:
        """Integers: plain, symbolic, or all elements of tensors; floats among these are known."""
        found = self.get(name)
        listed = cast("list[Any]", found) if isinstance(found, list) else [found]
        return [size for one in listed for size in self._exprs(one, name)]

    def _exprs(self, found: Any, name: str) -> list[Expr]:
        if isinstance(found, int):
            return [Expr.const(found)]
        if not isinstance(found, SSAValue):
            self.refuse(f"'{name}' is {found}", "an integer")
        value = cast("SSAValue", found)
        if is_float(element_type(value)):
            array = self.require_constant(value, f"'{name}'")
            return [Expr.const(int(number)) for number in array.reshape(-1)]
        return self.require_exprs(value, f"'{name}'")

    def exprs_along(self, axes: Sequence[Any], *names: str) -> list[list[Expr]]:
        """Lists of integers, as `exprs_of`, with one for each axis."""
        found = [self.exprs_of(name) for name in names]
        for name, listed in zip(names, found, strict=True):
            if len(listed) != len(axes):
                self.refuse(f"{len(listed)} numbers as '{name}'", f"{len(axes)}")
        return found

    def ints_of(self, name: str, count: int | None = None) -> list[int]:
        """A list of plain integers, `count` of them, for which a single one may stand."""
        found = self.exprs_of(name)
        numbers = [one.value for one in found]
        if None in numbers:
            self.refuse(f"'{name}' that is open", "numbers")
        plain = [number for number in numbers if number is not None]
        if count is None or len(plain) == count:
            return plain
        if len(plain) != 1:
            self.refuse(f"{len(plain)} numbers as '{name}'", f"{count}")
        return plain * count

    def dim(self, name: str = "dim", value: SSAValue | None = None, default: int = 0) -> int:
        """An axis of `self`, from the front."""
        x = self.input() if value is None else value
        return self.axis(self.integer(name, default), max(rank_of(x), 1))

    def axes_of(self, name: str, rank: int) -> list[int]:
        """Axes from the front; all of them for an empty or absent list."""
        found = self.get(name)
        if found is None or found == []:
            return list(range(rank))
        if rank == 0:
            return []
        return self.axes(self.ints_of(name), rank)

    # Layout

    @property
    def is_last(self) -> bool:
        """True if channels are the last dimension."""
        return False

    def first(self, x: SSAValue) -> SSAValue:
        """An image with its channels as the second dimension."""
        return self.channels_first(x) if self.is_last else x

    def back(self, x: SSAValue) -> SSAValue:
        """An image with its channels where the operator has them."""
        return self.channels_last(x) if self.is_last else x

    # Types

    def operand(self, name: str, element: Attribute) -> TensorValue:
        """A tensor or number in an element type."""
        name = name or self._first
        if (found := self.optional(name)) is not None:
            return TensorValue.of(self, self.cast(found, element))
        return self.known(self.number(name), element)

    def known(self, number: float, element: Attribute) -> TensorValue:
        """A number in an element type; one that does not fit is wrapped, as in C."""
        return TensorValue.of(self, self.scalar(number, element))

    def stated(self, name: str = "", index: int = 0) -> TensorValue:
        """A tensor in the type that the file states for a result."""
        return self.operand(name, self.element(index))

    def floating(self, name: str = "") -> TensorValue:
        """A tensor in the type of the result, which is a float."""
        if not is_float(self.element()):
            self.refuse(f"a result of {self.element()}", "floats")
        return self.stated(name)

    def constant_of(self, values: Sequence[Any], dtype: Any = np.int64) -> SSAValue:
        """A constant."""
        return self.tensor(np.array(values, dtype))
