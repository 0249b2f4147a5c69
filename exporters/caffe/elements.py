"""
Values of other elements than f32 that blobs hold all the same.

A blob holds whole numbers, such as places of maxima, as the floats that they are; an input of which
only floats or places are made may arrive as floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, Block, Operation, SSAValue, Use

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.index_maps import MovesElements
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import ConcatOp, GatherOp, TopKOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    is_float,
    is_integer,
    numpy_dtype,
)

MOST_PLACES = 1 << 24
"""The whole numbers from 0 on that f32 tells apart, and one less."""


class Range(NamedTuple):
    """The least and the largest number that a value may hold."""

    low: float
    high: float

    def has(self, other: Range) -> bool:
        """True if no number of another range is outside."""
        return self.low <= other.low and other.high <= self.high


def held_as_floats(block: Block) -> Mapping[SSAValue, Range]:
    """
    The values of a function that are not f32, but that blobs hold exactly, with their numbers.

    These are the places that ArgReduce and TopK find, constants, and the inputs that are only read
    as places or cast to f32, which rounds as whoever fills the blob does; and these moved, or cast
    to integers that have all of their numbers.
    """
    read = _read_as_floats(block)
    found: dict[SSAValue, Range] = {}
    found.update((value, _limits(element_type(value))) for value in block.args if value in read)
    for op in block.ops:
        if isinstance(op, ArgReduceOp | TopKOp):
            size = dims_of(op.input)[op.axis.data].value
            if size is not None and size <= MOST_PLACES:
                found[op.results[-1]] = Range(0, size - 1)
        elif isinstance(op, ConstantOp) and element_type(op.result) != f32:
            if (range_ := _range_of(op)) is not None:
                found[op.result] = range_
        elif isinstance(op, MovesElements | ConcatOp | CastOp):
            if (range_ := _moved(op, found)) is not None:
                found.update((result, range_) for result in op.results)
    return found


def _moved(op: Operation, found: Mapping[SSAValue, Range]) -> Range | None:
    """The numbers of the results of an op that moves or casts; None if it changes any."""
    ranges = [found.get(value) for value in op.operands]
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges):
        return None
    range_ = Range(min(each.low for each in known), max(each.high for each in known))
    return None if isinstance(op, CastOp) and not _keeps(op, range_) else range_


def _keeps(op: CastOp, range_: Range) -> bool:
    """True if the result has the numbers of the operand, which are in a range."""
    return is_integer(op.to) and _limits(op.to).has(range_)


def _range_of(op: ConstantOp) -> Range | None:
    """The numbers of a constant, if they are whole numbers that f32 has."""
    try:
        array = constant_array(op.result)
    except ElidedBlobError:
        return None
    if array is None or array.size == 0 or np.iscomplexobj(array):
        return None
    if is_float(element_type(op.result)) and not _is_whole(array.astype(np.float64)):
        return None
    range_ = Range(int(array.min()), int(array.max()))
    return range_ if Range(-MOST_PLACES, MOST_PLACES).has(range_) else None


def _is_whole(array: NDArray[np.float64]) -> bool:
    return bool(np.isfinite(array).all() and (array == np.trunc(array)).all())


def _read_as_floats(block: Block) -> set[SSAValue]:
    """The values that only places and floats are made of."""
    found: set[SSAValue] = set()
    for op in reversed(list(block.ops)):
        found.update(value for value in op.results if _is_read_as_float(value, found))
    found.update(value for value in block.args if _is_read_as_float(value, found))
    return found


def _is_read_as_float(value: SSAValue, found: set[SSAValue]) -> bool:
    return element_type(value) != f32 and all(_reads_float(use, found) for use in value.uses)


def _reads_float(use: Use, found: set[SSAValue]) -> bool:
    op = use.operation
    match op:
        case CastOp() if op.to == f32:
            return True
        case CastOp():
            return _keeps(op, _limits(element_type(op.input))) and op.result in found
        case GatherOp() if use.index == 1:
            size = dims_of(op.input)[op.axis.data].value
            return size is not None and size <= MOST_PLACES
        case MovesElements():
            return all(result in found for result in op.results)
        case _:
            return False


def _limits(element: Attribute) -> Range:
    """The numbers that an element type has; of floats, any."""
    if is_float(element):
        return Range(-inf, inf)
    dtype = numpy_dtype(element)
    if dtype == np.bool_:
        return Range(0, 1)
    return Range(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
