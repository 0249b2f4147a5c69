"""A pattern of `cancel-transpose`: what is written along an inner dimension is written in place."""

from __future__ import annotations

from math import prod

import numpy as np

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    ScatterNdOp,
    TransposeOp,
    ints,
)
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype, static_shape
from lowerdeck.dialects.dims import constants
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, is_ranked, producer
from lowerdeck.passes.movement.transposes import Permutation, Worth

MOVED = 8
"""The elements that are moved in the time in which an index is computed, read and checked."""


class SinkTransposePastScatter(Pattern[int]):
    """scatter_nd(transpose(x, p), i, u) -> transpose(scatter_nd(x, i', u'), p)"""

    name = "sink-transpose-past-scatter"
    roots = (ScatterNdOp,)
    ranked = True

    def __init__(self, worth: Worth) -> None:
        self._worth = worth

    def match(self, op: ScatterNdOp) -> Match[int] | None:
        transpose = producer(op.input, TransposeOp)
        if transpose is None or not is_ranked(transpose):
            return None
        permutation, depth = ints(transpose.permutation), dims_of(op.indices)[-1].value or 0
        first, rank = permutation[0], len(permutation)
        # Indices that go on past the dimensions brought to the front are of those before, too.
        if not 0 < depth <= rank - first or first == 0:
            return None
        if permutation != _to_front(first, depth, rank):
            return None
        if not _are_few(op, first, depth) or (reason := self._worth(op, [transpose])) is None:
            return None
        return Match((op, transpose), reason, first)

    def rewrite(self, match: Match[int], rewriter: Rewriter) -> None:
        op, transpose = match.consumed
        assert isinstance(op, ScatterNdOp)
        assert isinstance(transpose, TransposeOp)
        first, indices = match.data, dims_of(op.indices)
        leading, places = dims_of(transpose.input)[:first], indices[:-1]
        sizes = [dim.value or 0 for dim in leading]
        # Beside each index, in all of the dimensions before, the numbers of these.
        dtype = numpy_dtype(element_type(op.indices))
        numbers = np.moveaxis(np.indices(sizes, dtype), 0, -1)
        numbers = numbers.reshape([*sizes, *[1] * len(places), first])
        parts = (rewriter.add(ConstantOp.of(numbers)).result, op.indices)
        wide = [
            rewriter.add(BroadcastOp(part, [*leading, *places, last])).result
            for part, last in zip(parts, (first, indices[-1]), strict=True)
        ]
        index = rewriter.add(ConcatOp(wide, first + len(places))).result
        rank, count = len(dims_of(op.updates)), len(places)
        inner = range(count, count + first)
        order = [*inner, *range(count), *range(count + first, rank)]
        updates = rewriter.add(TransposeOp(op.updates, order)).result
        new = ScatterNdOp(transpose.input, index, updates, op.reduction.data)
        result = rewriter.add(new).result
        rewriter.replace(op, TransposeOp(result, ints(transpose.permutation)))


def _to_front(first: int, count: int, rank: int) -> Permutation:
    """The permutation that brings so many dimensions to the front and keeps the others in order."""
    moved = range(first, first + count)
    return [*moved, *(axis for axis in range(rank) if axis not in moved)]


def _are_few(op: ScatterNdOp, first: int, depth: int) -> bool:
    """
    True if indices that count the dimensions before, too, can be written down, and take less time
    than to move all elements there and back. An unknown number of them is as many as there are
    places.
    """
    dims, places = dims_of(op.input), static_shape(op.indices)
    leading, rows = constants(dims[depth : depth + first]), constants(dims[:depth])
    inner, dtype = constants(dims[depth + first :]), numpy_dtype(element_type(op.indices))
    if leading is None or inner is None or max(leading) > np.iinfo(dtype).max:
        return False
    share = 1.0
    if rows is not None and places is not None:
        share = prod(places[:-1]) / max(prod(rows), 1)
    return share * (first + depth) * MOVED < 2 * prod(inner)
