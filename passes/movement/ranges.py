"""Parts of tensors: which elements of each dimension, as slices take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.tensor import SliceOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr, ExprLike, constants
from lowerdeck.dialects.records import record


@record
class Range:
    """What is taken of one dimension: elements start + i * step, i < size."""

    start: Expr
    size: Expr
    step: Expr

    @staticmethod
    def of(start: ExprLike, size: ExprLike, step: ExprLike = 1) -> Range:
        return Range(Expr.of(start), Expr.of(size), Expr.of(step))

    @property
    def numbers(self) -> tuple[int, int, int] | None:
        """Start, size and step, if all of them are known."""
        known = constants((self.start, self.size, self.step))
        return None if known is None else (known[0], known[1], known[2])

    def is_whole(self, dim: Expr) -> bool:
        """True if it is all of the dimension, in order."""
        return self.start == 0 and self.step == 1 and self.size == dim


Ranges: TypeAlias = list[Range]
"""A part of a tensor: one range a dimension."""


@record
class Crop:
    """An op of which only a part of the result is left: what it is given, and how it changes."""

    operands: Sequence[tuple[SSAValue, Ranges | None]]
    """Its operands (some may be left out), and the part needed of each; None: all of it."""
    properties: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    """The properties that change."""


def whole(dims: Sequence[Expr]) -> Ranges:
    """All of a tensor with these dimensions."""
    return [Range.of(0, dim) for dim in dims]


def are_whole(parts: Sequence[Range], dims: Sequence[Expr]) -> bool:
    """True if nothing of these dimensions is left out."""
    return all(part.is_whole(dim) for part, dim in zip(parts, dims, strict=True))


def needed(value: SSAValue, parts: Ranges) -> tuple[SSAValue, Ranges | None]:
    """An operand of a crop; None in place of `parts` that are all of it."""
    return value, None if are_whole(parts, dims_of(value)) else parts


def parts_of(op: SliceOp) -> Ranges:
    """What a slice takes."""
    lists = zip(op.starts.data, op.sizes.data, op.steps.data, strict=True)
    return [Range(*values) for values in lists]


def slice_of(value: SSAValue, parts: Ranges) -> SliceOp:
    """A part of a value."""
    lists = ([getattr(part, name) for part in parts] for name in ("start", "size", "step"))
    return SliceOp(value, *lists)


def inside(part: tuple[int, int, int], begin: int, end: int) -> tuple[int, int]:
    """From which and before which number a part with a positive step is in begin .. end - 1."""
    start, size, step = part
    first, last = (min(max(-((start - edge) // step), 0), size) for edge in (begin, end))
    return first, max(last, first)
