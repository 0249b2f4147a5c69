"""
Trees of classes (`src/tree.c`): numbers of a class are relative to those of its parent.

`parents` has the class above each class, which comes before it, or -1. Classes one after the other
with one parent are a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import f32
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat

_PROBABLE = 0.5


def of_tree(x: TensorValue, axis: int, parents: Sequence[int]) -> TensorValue:
    """A softmax over each group of classes along an axis."""
    groups = [list(group) for _, group in groupby(range(len(parents)), lambda k: parents[k])]
    # Groups of one size at once: there are few sizes, even of thousands of groups.
    parts: list[TensorValue] = []
    order: list[int] = []
    for size in sorted({len(group) for group in groups}):
        places = [place for group in groups if len(group) == size for place in group]
        part = _gathered(x, axis, places)
        split = part.reshape([*x.dims[:axis], len(places) // size, size, *x.dims[axis + 1 :]])
        softmax = TensorValue(x.builder, x.builder.add(SoftmaxOp(split.value, axis + 1)))
        parts.append(softmax.reshape(part.dims))
        order += places
    return _gathered(concat(parts, axis), axis, [int(k) for k in np.argsort(order)])


def along_tree(x: TensorValue, axis: int, parents: Sequence[int]) -> TensorValue:
    """The products of numbers and those of all classes above."""
    count = len(parents)
    # One more class of probability 1 is above those at the top, and above itself.
    above = np.array([*(parent if parent >= 0 else count for parent in parents), count])
    one = TensorValue.number(x.builder, 1, f32)
    total = concat([x, one.broadcast([*x.dims[:axis], 1, *x.dims[axis + 1 :]])], axis)
    while (above != count).any():
        # Each has the product of twice as many classes as before.
        total = total * _gathered(total, axis, above.tolist())
        above = above[above]
    return TensorValue(x.builder, x.builder.slice_axis(total.value, axis, 0, count))


def last_probable(x: TensorValue, axis: int) -> TensorValue:
    """The last of the numbers above a half along an axis, and zeros in the place of all others."""
    count, rank = x.dims[axis], len(x.dims)
    places = TensorValue.iota(x.builder, count).column(rank, axis)
    is_probable = x.gt(_PROBABLE)
    known = is_probable.where(places.broadcast(x.dims), -1)
    is_last = known.eq(known.reduce("max", [axis], keep_dims=True)) & is_probable
    return is_last.where(x, 0)


def _gathered(x: TensorValue, axis: int, places: Sequence[int]) -> TensorValue:
    indices = TensorValue(x.builder, np.array(places, np.int64))
    return TensorValue(x.builder, x.builder.add(GatherOp(x.value, indices.value, axis)))
