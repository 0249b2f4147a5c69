"""TensorLists: values that never change; what changes a list gives another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lowerdeck.dialects.interpret.tf1.registry import (
    Array,
    dtype_of,
    fail,
    ints,
    kernel,
    require,
    scalar,
)
from lowerdeck.dialects.tf1.ops import Tf1Op

Shape = tuple[int, ...] | None
"""-1 where a dimension is not known; None without a rank."""


@dataclass(frozen=True, eq=False)
class TensorList:
    """The elements, None where nothing was written, and the shape that all of them must have."""

    dtype: np.dtype[Any]
    shape: Shape
    elements: tuple[Array | None, ...] = ()

    def at(self, index: int, stated: Shape = None) -> Array:
        """
        An element; InterpretationError if there is none. One that was not written is zero if the
        shape of elements is known.
        """
        require(0 <= index < len(self.elements), f"{index} is not one of {len(self.elements)}")
        element = self.elements[index]
        return self.zero(stated) if element is None else element

    def zero(self, stated: Shape = None) -> Array:
        """An element that was not written."""
        shape = _merged(self.shape, stated)
        # Elements that were written tell, too.
        for element in self.elements:
            shape = _merged(shape, None if element is None else element.shape)
        if shape is None or -1 in shape:
            fail("an element is read before it is written, and its shape is not known")
        return np.zeros(shape, self.dtype)

    def rows(self, indices: Sequence[int], stated: Shape = None) -> Array:
        """Elements along a new axis."""
        if not indices:
            return self.zero(stated)[None][:0]
        return np.stack([self.at(index, stated) for index in indices])

    def resized(self, size: int) -> TensorList:
        """The list with as many elements."""
        require(size >= 0, f"the size {size} is negative")
        more = (None,) * (size - len(self.elements))
        return replace(self, elements=self.elements[:size] + more)

    def written(self, index: int, value: Array) -> TensorList:
        """The list with another element; InterpretationError if it does not fit."""
        require(0 <= index < len(self.elements), f"{index} is not one of {len(self.elements)}")
        require(value.dtype == self.dtype, f"found {value.dtype}, expected {self.dtype}")
        _merged(self.shape, value.shape)
        return replace(self, elements=(*self.elements[:index], value, *self.elements[index + 1 :]))


def _merged(one: Shape, other: Shape) -> Shape:
    if one is None or other is None:
        return other if one is None else one
    fits = len(one) == len(other) and all(
        -1 in (a, b) or a == b for a, b in zip(one, other, strict=True)
    )
    require(fits, f"the shapes {one} and {other} do not fit")
    return tuple(b if a == -1 else a for a, b in zip(one, other, strict=True))


def _shape(value: Array) -> Shape:
    """A shape in an operand; a scalar, -1, is that of any rank."""
    return tuple(ints(value)) if value.ndim else None


@kernel("EmptyTensorList")
def run_empty_list(op: Tf1Op, args: Sequence[Any]) -> TensorList:
    """No elements."""
    return TensorList(dtype_of(op, "element_dtype"), _shape(args[0]))


@kernel("TensorListReserve")
def run_reserve(op: Tf1Op, args: Sequence[Any]) -> TensorList:
    """Elements that are not written."""
    return TensorList(dtype_of(op, "element_dtype"), _shape(args[0])).resized(scalar(args[1]))


@kernel("TensorListFromTensor")
def run_from_tensor(op: Tf1Op, args: Sequence[Any]) -> TensorList:
    """The rows of a tensor."""
    return _of_rows(op, args[0], _shape(args[1]))


def _of_rows(op: Tf1Op, rows: Sequence[Array], shape: Shape) -> TensorList:
    made = TensorList(dtype_of(op, "element_dtype"), shape).resized(len(rows))
    for index, row in enumerate(rows):
        made = made.written(index, np.asarray(row))
    return made


@kernel("TensorListStack")
def run_stack(op: Tf1Op, args: Sequence[Any]) -> Array:
    """All elements along a new axis."""
    count, expected = len(args[0].elements), op.attr("num_elements")
    require(expected in (-1, count), f"{count} elements, expected {expected}")
    return args[0].rows(range(count), _shape(args[1]))


@kernel("TensorListGather")
def run_list_gather(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Some elements along a new axis."""
    return args[0].rows(ints(args[1]), _shape(args[2]))


@kernel("TensorListScatter", "TensorListScatterV2")
def run_list_scatter(op: Tf1Op, args: Sequence[Any]) -> TensorList:
    """One row to each index."""
    made = TensorList(dtype_of(op, "element_dtype"), _shape(args[2]))
    count = scalar(args[3]) if len(args) > 3 else 0
    return _scattered(made.resized(max(count, 0)), args[0], ints(args[1]))


@kernel("TensorListScatterIntoExistingList")
def run_scatter_into(_: Tf1Op, args: Sequence[Any]) -> TensorList:
    """One row to each index of a list."""
    return _scattered(args[0], args[1], ints(args[2]))


def _scattered(made: TensorList, rows: Sequence[Array], indices: Sequence[int]) -> TensorList:
    require(len(rows) == len(indices), f"{len(rows)} rows for {len(indices)} indices")
    made = made.resized(max(len(made.elements), *(index + 1 for index in indices), 0))
    for index, row in zip(indices, rows, strict=True):
        made = made.written(index, np.asarray(row))
    return made


@kernel("TensorListSplit")
def run_list_split(op: Tf1Op, args: Sequence[Any]) -> TensorList:
    """Consecutive rows to each element."""
    value, sizes = args[0], ints(args[2])
    require(sum(sizes) == len(value), f"{sizes} do not add up to {len(value)} rows")
    return _of_rows(op, np.split(value, np.cumsum(sizes[:-1])), _shape(args[1]))


@kernel("TensorListConcat")
def run_list_concat(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, Array]:
    """All elements along their first dimension, and their sizes in it."""
    return _joined(args[0], op.attr("element_shape"))


@kernel("TensorListConcatV2")
def run_list_concat_v2(_: Tf1Op, args: Sequence[Any]) -> tuple[Array, Array]:
    """The same."""
    require(not args[2].size, "lengths of elements that were not written are not supported")
    return _joined(args[0], _shape(args[1]))


def _joined(made: TensorList, stated: Shape) -> tuple[Array, Array]:
    parts = [made.at(index, stated) for index in range(len(made.elements))]
    require(all(part.ndim for part in parts), "scalars cannot be concatenated")
    lengths = np.array([len(part) for part in parts], np.int64)
    shape = _merged(made.shape, stated)
    if parts or shape is None or -1 in shape[1:]:
        require(parts, "no elements are concatenated, and their shape is not known")
        return np.concatenate(parts), lengths
    return np.zeros((0, *shape[1:]), made.dtype), lengths


@kernel("TensorListSetItem")
def run_set_item(op: Tf1Op, args: Sequence[Any]) -> TensorList:
    """Another element."""
    made, index = args[0], scalar(args[1])
    if op.attr("resize_if_index_out_of_bounds"):
        made = made.resized(max(len(made.elements), index + 1))
    return made.written(index, args[2])


@kernel("TensorListGetItem")
def run_get_item(_: Tf1Op, args: Sequence[Any]) -> Array:
    """An element."""
    return args[0].at(scalar(args[1]), _shape(args[2]))


@kernel("TensorListPushBack")
def run_push_back(_: Tf1Op, args: Sequence[Any]) -> TensorList:
    """One element more."""
    count = len(args[0].elements)
    return args[0].resized(count + 1).written(count, args[1])


@kernel("TensorListPopBack")
def run_pop_back(_: Tf1Op, args: Sequence[Any]) -> tuple[TensorList, Array]:
    """All but the last element, and that."""
    count = len(args[0].elements)
    return args[0].resized(count - 1), args[0].at(count - 1, _shape(args[1]))


@kernel("TensorListLength")
def run_length(_: Tf1Op, args: Sequence[Any]) -> Array:
    """The number of elements."""
    return np.array(len(args[0].elements), np.int32)


@kernel("TensorListResize")
def run_resize(_: Tf1Op, args: Sequence[Any]) -> TensorList:
    """More elements, or only the first ones."""
    return args[0].resized(scalar(args[1]))


@kernel("TensorListConcatLists")
def run_concat_lists(_: Tf1Op, args: Sequence[Any]) -> TensorList:
    """The elements of two lists."""
    shape = _merged(args[0].shape, args[1].shape)
    return replace(args[0], shape=shape, elements=args[0].elements + args[1].elements)


@kernel("TensorListElementShape")
def run_element_shape(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The shape that was stated when the list was made."""
    shape = -1 if args[0].shape is None else args[0].shape
    return np.array(shape, dtype_of(op, "shape_type"))
