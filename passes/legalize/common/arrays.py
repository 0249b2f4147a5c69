"""
Arrays of tensors as values: what the flow of a TensorArray, the handle of a TensorList and the like
stand for.

An array is the tensor of its elements, stacked. It has none until the first write gives its
elements a shape; until then it is the result of the op that made it. Elements that were not written
are zero. Elements may differ in their length (`uneven`), and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.tensor import ConcatOp, GatherOp, ScatterNdOp
from lowerdeck.dialects.core.types import dims_of, element_type, i64, rank_of, tensor
from lowerdeck.dialects.dims import Expr, maximum
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.uneven import (
    appended,
    element_at,
    joined_rows,
    resized,
    rows_at,
    stacked,
    uniform_lengths,
    with_element,
)
from lowerdeck.passes.legalize.legalizer import Legalizer, refuse

Dims: TypeAlias = "Sequence[Expr | None] | None"
"""The shape of elements as far as it is stated: a dimension, or all of them, may be open."""


# Arrays that were not written yet


@record
class Maker:
    """What an op of a framework that makes an array says of it."""

    size: Callable[[CoreBuilder, Operation], Expr]
    """The number of elements at first."""
    element: Callable[[Operation], Attribute]
    """The type of what is in the elements."""
    dims: Callable[[CoreBuilder, Operation], Dims]
    """The shape of the elements."""


MAKERS: dict[type[Operation], Maker] = {}
"""The ops that make an array; they stay while something refers to what has no elements yet."""


def is_maker(op: Operation | Block) -> bool:
    """True for an op that makes an array."""
    return type(op) in MAKERS


def is_unwritten(value: SSAValue) -> bool:
    """True for an array that has no elements yet."""
    return is_maker(value.owner)


def creator(value: SSAValue) -> Operation:
    """The op that made an array that was not written yet."""
    assert isinstance(value.owner, Operation)
    return value.owner


def initial_size(builder: CoreBuilder, op: Operation) -> Expr:
    """The number of elements that an op makes an array with."""
    return MAKERS[type(op)].size(builder, op)


def element_of(op: Operation) -> Attribute:
    """The type of what is in the elements of an array."""
    return MAKERS[type(op)].element(op)


def stated_dims(builder: CoreBuilder, op: Operation) -> Dims:
    """The shape of elements that the op which makes an array states."""
    return MAKERS[type(op)].dims(builder, op)


def lengths_of(builder: Legalizer, elements: SSAValue) -> SSAValue | None:
    """The lengths of the elements of an uneven array; None for any other value."""
    return builder.companions.get(elements)


def set_lengths(builder: Legalizer, elements: SSAValue, lengths: SSAValue) -> SSAValue:
    """`elements`, which are the padded elements of an array, have these lengths."""
    builder.companions[elements] = lengths
    # It stays although no op uses it yet.
    builder.created[:] = [op for op in builder.created if op is not lengths.owner]
    return elements


def zeros(builder: CoreBuilder, type_: Attribute) -> SSAValue:
    """A tensor of zeros."""
    return builder.broadcast(builder.scalar(0, element_type(type_)), dims_of(type_))


def empty_array(
    builder: CoreBuilder, unwritten: SSAValue, like: SSAValue, *, is_uneven: bool
) -> SSAValue:
    """
    An array that was not written yet, as a tensor of elements like those of another one: all zero,
    or of length zero if uneven.
    """
    dims = list(dims_of(like)[1:])
    dims = [Expr.const(0), *dims[1:]] if is_uneven else dims
    return zeros(
        builder, tensor(element_type(like), [initial_size(builder, creator(unwritten)), *dims])
    )


def all_zero(builder: CoreBuilder, unwritten: SSAValue) -> SSAValue:
    """An array that was not written yet, as a tensor of elements of the stated shape."""
    op = creator(unwritten)
    return _zero_elements(builder, op, initial_size(builder, op), stated_dims(builder, op))


def _zero_elements(builder: CoreBuilder, op: Operation, size: Expr, stated: Dims) -> SSAValue:
    known = [dim for dim in stated or () if dim is not None]
    if stated is None or len(known) != len(stated):
        refuse("an array that is read and never written", "a write before it")
    return zeros(builder, tensor(element_of(op), [size, *known]))


def merged(one: Dims, other: Dims) -> Dims:
    """What is stated in two places of one shape; refused if the ranks differ."""
    if one is None or other is None:
        return other if one is None else one
    if len(one) != len(other):
        refuse(f"elements of rank {len(one)} and of rank {len(other)}", "one rank")
    return [b if a is None else a for a, b in zip(one, other, strict=True)]


# Elements


@record
class Array:
    """An array as it is at one point; what changes it gives another one."""

    builder: Legalizer
    value: SSAValue
    can_grow: bool = False
    """True if there is room for what is written behind the last element."""
    stated: Dims = None
    """What the shape of elements is said to be where the array is used."""
    room: Expr | None = None
    """The number of elements of an array that was resized before it was written."""

    @property
    def size(self) -> Expr:
        """The number of elements."""
        if not is_unwritten(self.value):
            return dims_of(self.value)[0]
        return initial_size(self.builder, creator(self.value)) if self.room is None else self.room

    @property
    def lengths(self) -> SSAValue | None:
        """The lengths of the elements, if they are not known to be equal."""
        return lengths_of(self.builder, self.value)

    def elements(self) -> SSAValue:
        """The array as a tensor; one that was never written must state the shape of elements."""
        if not is_unwritten(self.value):
            return self.value
        op = creator(self.value)
        stated = merged(stated_dims(self.builder, op), self.stated)
        return _zero_elements(self.builder, op, self.size, stated)

    def _of_stated_dims(self, value: SSAValue) -> SSAValue:
        """A value of the shape of elements, with the dimensions that are stated to be numbers."""
        dims = dims_of(value)
        if self.stated is None or len(self.stated) != len(dims):
            return value
        known: list[Expr] = []
        for dim, said in zip(dims, self.stated, strict=True):
            is_news = said is not None and said.value is not None and dim.value is None
            known.append(said if said is not None and is_news else dim)
        return self.builder.reshape(value, known)

    # Reading

    def at(self, index: SSAValue) -> SSAValue:
        """The element at an integer scalar."""
        elements, index = self.elements(), self.builder.cast(index, i64)
        if (lengths := self.lengths) is not None:
            return self._of_stated_dims(element_at(self.builder, elements, lengths, index))
        return self._of_stated_dims(self.builder.add(GatherOp(elements, index, 0)))

    def stacked(self) -> SSAValue:
        """All elements, which have one shape, along a new first dimension."""
        elements = self.elements()
        return elements if self.lengths is None else stacked(self.builder, elements, self.lengths)

    def gathered(self, indices: SSAValue) -> SSAValue:
        """The elements at `indices`, stacked."""
        elements = self.elements()
        if covers(self.builder, indices, dims_of(elements)[0]):
            return self.stacked()
        indices = self.builder.cast(indices, i64)
        if (lengths := self.lengths) is not None:
            return stacked(self.builder, *rows_at(self.builder, elements, lengths, indices))
        return self.builder.add(GatherOp(elements, indices, 0))

    def joined(self) -> tuple[SSAValue, SSAValue]:
        """The elements one after the other along their first dimension, and their lengths."""
        builder, elements = self.builder, self.elements()
        if rank_of(elements) < 2:
            builder.refuse("elements of rank 0", "elements with a first dimension")
        if (own := self.lengths) is not None:
            return joined_rows(builder, elements, own), own
        count, length, *rest = dims_of(elements)
        joined = builder.reshape(elements, [count * length, *rest])
        return joined, builder.broadcast(builder.dims([length], []), [count])

    # Writing

    def with_element(self, index: SSAValue, value: SSAValue) -> SSAValue:
        """The array with another element at an integer scalar."""
        builder, array, dims = self.builder, self, dims_of(value)
        if self.can_grow:
            number = builder.require_expr(index, "an index")
            array = self.resized(maximum(self.size, number + 1))
        index = builder.cast(index, i64)
        if array.has_other_length(dims):
            own = array.known_lengths()
            return set_lengths(builder, *with_element(builder, array.value, own, index, value))
        elements = array.fitting(dims, "an element")
        update = builder.reshape(value, [1, *dims_of(elements)[1:]])
        return builder.add(ScatterNdOp(elements, builder.reshape(index, [1, 1]), update))

    def with_elements(self, indices: SSAValue, rows: SSAValue) -> SSAValue:
        """The array with the rows of a tensor as the elements at `indices`."""
        builder, size = self.builder, self.size
        count, *rest = dims_of(rows)
        covered = covers(builder, indices, count)
        grown = (
            maximum(size, count if covered else self._end_of(indices)) if self.can_grow else size
        )
        if covered and grown == count:
            return rows
        if self.lengths is not None:
            builder.refuse(
                "scattering into an array of elements of different lengths", "one length"
            )
        elements = self.resized(grown).fitting(rest, "elements")
        positions = builder.unsqueeze(builder.cast(indices, i64), [1])
        rows = builder.reshape(rows, [count, *dims_of(elements)[1:]])
        return builder.add(ScatterNdOp(elements, positions, rows))

    def _end_of(self, indices: SSAValue) -> Expr:
        last = self.builder.require_expr(self.builder.reduce("max", indices, [0]), "the indices")
        return last + 1

    def resized(self, size: Expr) -> Array:
        """The array with as many elements: what is new is zero, or of length zero."""
        if size == self.size:
            return self
        if is_unwritten(self.value):
            return replace(self, room=size)
        if (lengths := self.lengths) is None:
            return replace(self, value=resized(self.builder, self.value, size))
        elements = resized(self.builder, self.value, size)
        lengths = resized(self.builder, lengths, size)
        return replace(self, value=set_lengths(self.builder, elements, lengths))

    def with_last(self, value: SSAValue) -> SSAValue:
        """The array with one element more."""
        builder, dims = self.builder, dims_of(value)
        if is_unwritten(self.value) and self.size == 0:
            return builder.unsqueeze(value, [0])
        if self.has_other_length(dims):
            return set_lengths(builder, *appended(builder, self.value, self.known_lengths(), value))
        elements = self.fitting(dims, "an element")
        row = builder.reshape(value, [1, *dims_of(elements)[1:]])
        return builder.add(ConcatOp([elements, row], 0))

    # Shapes

    def has_other_length(self, dims: Sequence[Expr]) -> bool:
        """True if the array has lengths, or needs them for an element of shape `dims`."""
        if is_unwritten(self.value) or rank_of(self.value) != len(dims) + 1 or not dims:
            return False
        _, length, *rest = dims_of(self.value)
        differs = None not in (length.value, dims[0].value) and length != dims[0]
        return rest == list(dims[1:]) and (differs or self.lengths is not None)

    def known_lengths(self) -> SSAValue:
        """The lengths of the elements, which may be all the same."""
        return uniform_lengths(self.builder, self.value) if self.lengths is None else self.lengths

    def fitting(self, dims: Sequence[Expr], what: str) -> SSAValue:
        """
        The array as a tensor, for elements of shape `dims`: they may differ in one dimension that
        is not known, which has to turn out to be the same.
        """
        if is_unwritten(self.value):
            element = element_of(creator(self.value))
            return zeros(self.builder, tensor(element, [self.size, *dims]))
        found = dims_of(self.value)[1:]
        if len(found) != len(dims) or _differing(found, dims) > 1:
            self.builder.refuse(
                f"{what} of shape [{', '.join(map(str, dims))}] in an array of elements of shape "
                f"[{', '.join(map(str, found))}]",
                "elements of one shape",
            )
        return self.value


def _differing(found: Sequence[Expr], dims: Sequence[Expr]) -> int:
    """The number of different dimensions; more than their number if two can never be equal."""
    pairs = [pair for pair in zip(found, dims, strict=True) if pair[0] != pair[1]]
    if any(None not in (one.value, other.value) for one, other in pairs):
        return len(dims) + 1
    return len(pairs)


def _is_whole_range(indices: SSAValue, count: Expr) -> bool:
    """True if the indices are 0, 1, ..., count - 1."""
    owner = indices.owner
    while isinstance(owner, CastOp):
        owner = owner.input.owner
    return isinstance(owner, IotaOp) and owner.dims.data == (count,)


def covers(builder: Legalizer, indices: SSAValue, count: Expr) -> bool:
    """True if the indices are known to be 0, 1, ..., count - 1."""
    if _is_whole_range(indices, count):
        return True
    known = builder.ints(indices)
    return known is not None and count.value == len(known) and known == list(range(len(known)))
