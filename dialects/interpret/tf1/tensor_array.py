"""TensorArrays: objects behind a handle, whose `flow` value orders what is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

_FLOW = np.array(0, np.float32)


@dataclass
class TensorArray:
    """
    The elements; None where nothing was written. An element is written once, and read once if
    reading clears it.
    """

    dtype: np.dtype[Any]
    elements: list[Array | None]
    element_shape: tuple[int, ...] | None
    """-1 where a dimension is not known."""
    is_dynamic: bool
    is_cleared_by_reading: bool
    is_uniform: bool
    cleared: set[int]
    is_closed: bool = False

    def write(self, index: int, value: Array) -> None:
        """Write an element; InterpretationError if it is there already or does not fit."""
        require(not self.is_closed, "the TensorArray is closed")
        if self.is_dynamic and index >= len(self.elements):
            self.elements += [None] * (index + 1 - len(self.elements))
        require(0 <= index < len(self.elements), self._out_of_range(index))
        require(value.dtype == self.dtype, f"found {value.dtype}, expected {self.dtype}")
        require(
            self.elements[index] is None and index not in self.cleared,
            f"element {index} is written for the second time",
        )
        require(
            _is_compatible(self.element_shape, value.shape),
            f"found an element of shape {list(value.shape)}, expected {self.element_shape}",
        )
        if self.is_uniform:
            self.element_shape = value.shape
        self.elements[index] = value

    def read(self, index: int) -> Array:
        """
        Read an element; InterpretationError if it is not there. One that was never written is
        zero if the shape of elements is known.
        """
        require(not self.is_closed, "the TensorArray is closed")
        require(0 <= index < len(self.elements), self._out_of_range(index))
        require(index not in self.cleared, f"element {index} is read again after it was cleared")
        element = self.elements[index]
        if element is None:
            shape = self.element_shape
            if shape is None or -1 in shape:
                fail(f"element {index} is read before it is written")
            element = np.zeros(shape, self.dtype)
        if self.is_cleared_by_reading:
            self.elements[index] = None
            self.cleared.add(index)
        return element

    def stacked(self, indices: Sequence[int], element_shape: Sequence[int] | None) -> Array:
        """The elements at the indices, along a new axis; `element_shape` counts for none."""
        elements = [self.read(index) for index in indices]
        if elements:
            return np.stack(elements)
        shape = _merged(self.element_shape, element_shape)
        if shape is None or -1 in shape:
            fail("no elements are gathered, and their shape is not known")
        return np.zeros((0, *shape), self.dtype)

    def _out_of_range(self, index: int) -> str:
        return f"index {index} is out of range for {len(self.elements)} elements"


def _is_compatible(expected: Sequence[int] | None, shape: Sequence[int]) -> bool:
    if expected is None:
        return True
    if len(expected) != len(shape):
        return False
    return all(dim in (-1, size) for dim, size in zip(expected, shape, strict=True))


def _merged(first: Sequence[int] | None, second: Sequence[int] | None) -> tuple[int, ...] | None:
    if first is None or second is None:
        known = first if second is None else second
        return None if known is None else tuple(known)
    require(len(first) == len(second), f"the shapes {first} and {second} do not fit")
    return tuple(b if a == -1 else a for a, b in zip(first, second, strict=True))


@kernel("TensorArrayV3")
def run_tensor_array(op: Tf1Op, args: Sequence[Any]) -> tuple[TensorArray, Array]:
    """A new array of a size."""
    return _new(op, scalar(args[0]), is_uniform=op.attr("identical_element_shapes")), _FLOW


@kernel("TensorArray", "TensorArrayV2")
def run_old_tensor_array(op: Tf1Op, args: Sequence[Any]) -> TensorArray:
    """A new array of a size; a constant is its first flow."""
    return _new(op, scalar(args[0]), is_uniform=False)


def _new(op: Tf1Op, size: int, *, is_uniform: bool) -> TensorArray:
    require(size >= 0, f"the size {size} is negative")
    return TensorArray(
        dtype_of(op, "dtype"),
        [None] * size,
        op.attr("element_shape"),
        op.attr("dynamic_size"),
        op.attr("clear_after_read"),
        is_uniform,
        set(),
    )


@kernel("TensorArrayWrite", "TensorArrayWriteV2", "TensorArrayWriteV3")
def run_write(_: Tf1Op, args: Sequence[Any]) -> Array:
    """One element."""
    args[0].write(scalar(args[1]), args[2])
    return args[3]


@kernel("TensorArrayRead", "TensorArrayReadV2", "TensorArrayReadV3")
def run_read(_: Tf1Op, args: Sequence[Any]) -> Array:
    """One element."""
    return args[0].read(scalar(args[1]))


@kernel("TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3")
def run_array_gather(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Elements, which must be of one shape."""
    return args[0].stacked(ints(args[1]), op.attr("element_shape"))


@kernel("TensorArrayPack")
def run_array_pack(op: Tf1Op, args: Sequence[Any]) -> Array:
    """All elements, which must be of one shape."""
    return args[0].stacked(range(len(args[0].elements)), op.attr("element_shape"))


@kernel("TensorArrayUnpack")
def run_array_unpack(_: Tf1Op, args: Sequence[Any]) -> Array:
    """One slice to each element."""
    array, values, flow = args
    for index, value in enumerate(values):
        array.write(index, np.asarray(value))
    return flow


@kernel("TensorArrayScatter", "TensorArrayScatterV2", "TensorArrayScatterV3")
def run_array_scatter(_: Tf1Op, args: Sequence[Any]) -> Array:
    """One slice to each index."""
    array, indices, values, flow = args
    require(len(indices) == len(values), f"{len(values)} values for {len(indices)} indices")
    for index, value in zip(ints(indices), values, strict=True):
        array.write(index, np.asarray(value))
    return flow


@kernel("TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3")
def run_array_concat(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, Array]:
    """All elements along their first dimension, and their sizes in it."""
    array: TensorArray = args[0]
    parts = [array.read(index) for index in range(len(array.elements))]
    require(all(part.ndim for part in parts), "scalars cannot be concatenated")
    lengths = np.array([len(part) for part in parts], np.int64)
    if parts:
        return np.concatenate(parts), lengths
    rest = op.attr("element_shape_except0")
    if rest is None or -1 in rest:
        fail("no elements are concatenated, and their shape is not known")
    return np.zeros((0, *rest), array.dtype), lengths


@kernel("TensorArraySplit", "TensorArraySplitV2", "TensorArraySplitV3")
def run_array_split(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Consecutive rows to each element."""
    array, value, sizes, flow = args[0], args[1], ints(args[2]), args[3]
    require(sum(sizes) == len(value), f"{sizes} do not add up to {len(value)} rows")
    count = len(array.elements)
    require(array.is_dynamic or count == len(sizes), f"{len(sizes)} parts for {count} elements")
    for index, part in enumerate(np.split(value, np.cumsum(sizes[:-1]))):
        array.write(index, part)
    return flow


@kernel("TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3")
def run_array_size(_: Tf1Op, args: Sequence[Any]) -> Array:
    """The number of elements."""
    return np.array(len(args[0].elements), np.int32)


@kernel("TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3")
def run_array_close(_: Tf1Op, args: Sequence[Any]) -> tuple[()]:
    """Nothing can be done with the array any more."""
    args[0].is_closed = True
    return ()
