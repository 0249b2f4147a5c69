"""The meaning of the suppression of boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lowerdeck.dialects.core.suppress import SuppressOp
from lowerdeck.dialects.interpret.core_numbers import Array, Symbols, meaning_of, numbers
from lowerdeck.dialects.interpret.errors import InterpretError


@meaning_of(SuppressOp)
def _suppress(op: SuppressOp, args: Sequence[Array], symbols: Symbols) -> Array:
    alive, boxes, limit, *rest = args
    if boxes.shape != (*alive.shape, 4) or any(each.shape != alive.shape for each in rest):
        raise InterpretError(f"shapes {[value.shape for value in args]}")
    most = alive.shape[1] if op.most is None else numbers(op.most, symbols)[0]
    kept = np.zeros_like(alive)
    for group, sides in enumerate(np.moveaxis(boxes, 2, 1)):
        labels = rest[0][group] if rest else None
        kept[group, _kept(op, alive[group], sides, limit[()], labels, most)] = True
    return kept


def _kept(
    op: SuppressOp, alive: Array, sides: Array, limit: Array, labels: Array | None, most: int
) -> list[int]:
    """The numbers of the boxes of one group that are kept; `sides` are [4, boxes]."""
    dtype = sides.dtype
    found: list[int] = []
    largest = np.full(alive.shape, -np.inf, dtype)
    border, half = dtype.type(op.margin), dtype.type(0.5)
    for box in range(len(alive)):
        if len(found) >= most:
            break
        is_dropped = largest[box] > limit
        if op.strict is not None:
            is_dropped = not largest[box] <= limit
        if not alive[box] or is_dropped:
            continue
        found.append(box)
        if limit > half:
            limit = limit * dtype.type(op.shrinking)
        overlap = _overlap(op, sides[:, box, None], sides[:, box + 1 :], border)
        if labels is not None:
            overlap = np.where(labels[box + 1 :] == labels[box], overlap, dtype.type(0))
        rest = largest[box + 1 :]
        combine = np.fmax if op.strict is None else np.maximum
        rest[...] = combine(rest, overlap)
    return found


def _overlap(op: SuppressOp, one: Array, other: Array, border: Array) -> Array:
    """The overlap of a box [4, 1] with others [4, boxes]."""
    zero = one.dtype.type(0)
    shared = _shared_length(op, 0, one, other, border) * _shared_length(op, 1, one, other, border)
    union = _area(one, border) + _area(other, border) - shared
    if op.strict is None:
        return shared / union
    return np.where(shared > 0, shared / np.where(shared > 0, union, one.dtype.type(1)), zero)


def _shared_length(op: SuppressOp, axis: int, one: Array, other: Array, border: Array) -> Array:
    zero = one.dtype.type(0)
    length = np.minimum(one[axis + 2], other[axis + 2]) - np.maximum(one[axis], other[axis])
    shared = np.maximum(length + border, zero)
    if op.must_meet is not None:
        shared[length < zero] = zero  # NaN stays, which shares nothing either
    return shared


def _area(box: Array, border: Array) -> Array:
    return (box[2] - box[0] + border) * (box[3] - box[1] + border)
