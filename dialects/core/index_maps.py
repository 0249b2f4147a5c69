"""The interface of ops that say which elements of their operands an element of a result needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

from xdsl.ir import Operation

from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr, ExprLike, maximum, minimum

Index: TypeAlias = Sequence[Expr]
"""The index of an element, one expression a dimension."""


class HasIndexMaps(Operation, ABC):
    """Interface of ops of which an element of a result needs elements at known places."""

    @abstractmethod
    def operand_index(self, operand: int, at: Index, result: int = 0) -> Sequence[Expr | None]:
        """
        The index of the element of an operand that element `at` of a result needs.

        None along a dimension: several elements of it, or one that depends on data. An index
        outside of the operand: none, as in what pads, or in the other operands of a concatenation.
        """


class MovesElements(HasIndexMaps, ABC):
    """Interface of ops each element of which is one element of their only operand."""

    @abstractmethod
    def operand_index(self, operand: int, at: Index, result: int = 0) -> Sequence[Expr]: ...


class Broadcasts(HasIndexMaps, ABC):
    """Interface of ops of one result, to the dimensions of which all operands broadcast."""

    def operand_index(self, operand: int, at: Index, result: int = 0) -> Sequence[Expr]:
        return broadcast_index(at, dims_of(self.operands[operand]), dims_of(self.results[result]))


def any_index(dims: Sequence[Expr]) -> list[Expr]:
    """The index of any element: a symbol for each dimension, but 0 for those of one."""
    # No dimension of a model has a dot in its name.
    symbols = (Expr.symbol(f"at.{axis}") for axis in range(len(dims)))
    return [Expr.const(0) if dim == 1 else d for d, dim in zip(symbols, dims, strict=True)]


def broadcast_index(at: Index, dims: Sequence[Expr], result: Sequence[Expr]) -> list[Expr]:
    """
    The index into an operand of shape `dims` that broadcasts to `result`.

    A dimension that differs and may turn out to be one is clamped: then all indices read its only
    element, and otherwise the clamp changes nothing.
    """
    skipped = len(result) - len(dims)
    indices: list[Expr] = []
    for index, dim, whole in zip(at[skipped:], dims, result[skipped:], strict=True):
        if dim == 1:
            indices.append(Expr.const(0))
        elif dim == whole or dim.value is not None:
            indices.append(index)
        else:
            indices.append(minimum(index, dim - 1))
    return indices


def linear_index(at: Index, dims: Sequence[Expr]) -> Expr:
    """The position of an element in C order."""
    position = Expr.const(0)
    for index, dim in zip(at, dims, strict=True):
        position = position * dim + index
    return position


def unravel(position: ExprLike, dims: Sequence[Expr]) -> list[Expr]:
    """The index of the element at a position in C order."""
    indices: list[Expr] = []
    rest = Expr.of(position)
    for axis in range(len(dims) - 1, -1, -1):
        first = all(dim == 1 for dim in dims[:axis])
        indices.append(rest if first else rest % dims[axis])
        if first:
            indices.extend([Expr.const(0)] * axis)
            break
        rest = rest // dims[axis]
    return indices[::-1]


def clamped(index: Expr, dim: Expr) -> Expr:
    """The nearest index inside of a dimension."""
    return minimum(maximum(index, 0), dim - 1)


def reflected(index: Expr, dim: Expr) -> Expr:
    """The index mirrored at the ends of a dimension, which are not repeated."""
    if dim == 1:
        return Expr.const(0)
    # A dimension of one at run time has period 0: it reads element 0 through a period of 1.
    period = maximum((dim - 1) * 2, 1)
    phase = index % period
    return minimum(phase, period - phase)


def wrapped(index: Expr, dim: Expr) -> Expr:
    """The index in a dimension that repeats itself."""
    # A check refuses a dimension of none before it comes to this.
    return index % (1 if dim == 0 else dim)
