"""What the rules for shapes are written with: shapes, and errors that say what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter

Shape: TypeAlias = tuple[int, ...]

MAX_ELEMENTS = (1 << 31) - 1
"""Caffe counts the elements of a blob with 32 bits."""


class LayerShapes(NamedTuple):
    """What a layer makes of its bottoms."""

    tops: list[Shape]
    blobs: list[Shape]


Rule: TypeAlias = "Callable[[LayerParameter, list[Shape], int], LayerShapes]"
"""From a layer, the shapes of its bottoms and the number of its tops."""


class ShapeError(ValueError):
    """A layer's parameters do not fit each other or its bottoms."""


def check_shape(shape: Sequence[int]) -> None:
    """ShapeError unless Caffe can hold a blob of this shape."""
    if len(shape) > 32:
        raise ShapeError(f"a blob has {len(shape)} dimensions, expected at most 32")
    if any(size < 0 for size in shape) or prod(max(1, size) for size in shape) > MAX_ELEMENTS:
        raise ShapeError(f"a blob has the shape {list(shape)}, which is impossible")


def axis_of(axis: int, rank: int) -> int:
    """An axis that may count from the end, from the front."""
    if not -rank <= axis < rank:
        raise ShapeError(f"found axis {axis}, but the bottom has {rank} dimensions")
    return axis % rank


def require(condition: bool, message: str) -> None:
    """ShapeError unless the condition holds."""
    if not condition:
        raise ShapeError(message)


def require_rank(shape: Shape, rank: int) -> None:
    """ShapeError unless a bottom has this number of dimensions."""
    require(len(shape) == rank, f"the bottom has {len(shape)} dimensions, expected {rank}")


def require_equal(shapes: Sequence[Shape]) -> None:
    """ShapeError unless all bottoms have one shape."""
    found = ", ".join(str(list(shape)) for shape in shapes)
    require(len(set(shapes)) == 1, f"the bottoms have the shapes {found}, expected equal ones")
