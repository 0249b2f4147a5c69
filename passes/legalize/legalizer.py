"""What legalizations of every framework work with: a builder that can refuse the node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from lowerdeck.dialects.core.types import rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.builder import CoreBuilder, whole_numbers
from lowerdeck.passes.legalize.symbolic import SymbolicValues

_MANY = 64
"""More dimensions than any operator bounds."""

_LONGEST = 500
"""Characters of what was found: attributes may be lists of any length."""


class RefusalError(Exception):
    """A node that has no form in `core`: what was found, expected, and what to do."""


class PoisonedError(Exception):
    """A subgraph holds a node that was refused, and reported, already."""


def refuse(found: str, expected: str = "", next_step: str = "") -> NoReturn:
    """Give up on the current node: `found ..., expected ...; next step`."""
    found = found if len(found) <= _LONGEST else f"{found[:_LONGEST]} ..."
    text = f"found {found}"
    text += f", expected {expected}" if expected else ""
    text += f"; {next_step}" if next_step else ""
    raise RefusalError(text)


class Legalizer(CoreBuilder):
    """A builder before the node that is legalized, which it can refuse."""

    def __init__(
        self,
        op: Operation,
        symbols: SymbolicValues,
        companions: dict[SSAValue, SSAValue] | None = None,
    ) -> None:
        super().__init__(InsertPoint.before(op), symbols, op.location)
        self.companions: dict[SSAValue, SSAValue] = {} if companions is None else companions
        """What goes with a value where one of the framework's becomes two of `core`."""

    def refuse(self, found: str, expected: str = "", next_step: str = "") -> NoReturn:
        """Give up on this node: `found ..., expected ...; next step`."""
        refuse(found, expected, next_step)

    def axis(self, axis: int, rank: int) -> int:
        """`axis` counted from the front; refused if it is out of range."""
        if not -rank <= axis < rank:
            self.refuse(f"axis {axis}", f"-{rank} to {rank - 1}")
        return axis % rank

    def axes(self, axes: Sequence[int], rank: int) -> list[int]:
        """The distinct `axes` counted from the front, in order of their appearance."""
        found = [self.axis(axis, rank) for axis in axes]
        if len(set(found)) != len(found):
            self.refuse(f"axes {list(axes)}", "each dimension once")
        return found

    def require_rank(self, value: SSAValue, ranks: int | range, name: str) -> None:
        """Refuse an operand with another number of dimensions, if that is known."""
        type_ = str(value.type)
        if not isinstance(value.type, TensorType):
            return
        rank = rank_of(value)
        if isinstance(ranks, range) and rank not in ranks:
            most = "or more" if ranks.stop > _MANY else f"to {ranks.stop - 1}"
            self.refuse(f"'{name}' of type {type_}", f"{ranks.start} {most} dimensions")
        if isinstance(ranks, int) and rank != ranks:
            self.refuse(f"'{name}' of type {type_}", f"{ranks} dimensions")

    # Values that must be known

    def require_constant(self, value: SSAValue, what: str) -> NDArray[Any]:
        """The elements of `value`; refused if they depend on data."""
        array = self.constant(value)
        if array is None:
            self.refuse(f"{what} that depends on data", "a constant")
        return array

    def require_ints(self, value: SSAValue, what: str) -> list[int]:
        """The elements of an integer tensor; refused if they depend on data or symbols."""
        return whole_numbers(value, self.require_constant(value, what))

    def require_int(self, value: SSAValue, what: str) -> int:
        """The only element of an integer tensor, as `require_ints`."""
        numbers = self.require_ints(value, what)
        if len(numbers) != 1:
            self.refuse(f"{len(numbers)} numbers as {what}", "one")
        return numbers[0]

    def require_expr(self, value: SSAValue, what: str) -> Expr:
        """The only element of an integer tensor, as `require_exprs`."""
        numbers = self.require_exprs(value, what)
        if len(numbers) != 1:
            self.refuse(f"{len(numbers)} numbers as {what}", "one")
        return numbers[0]

    def require_exprs(self, value: SSAValue, what: str) -> list[Expr]:
        """The elements of a small integer tensor, as `exprs`; refused if it is not one."""
        found = self.exprs(value)
        if found is None:
            self.refuse(f"{what} of type {value.type}", "a short list of integers of known length")
        return found
