"""
How constants that meet a moved tensor meet it before, or after, the op that moves it.

A factor is an array with one dimension for each of the value that it meets: as long as it, or 1
where it does not vary along it. `fill` stands where nothing is known: 1 for a scale, 0 for a shift.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.ir import Operation

from lowerdeck.dialects.core.enums import PadMode
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ChannelShuffleOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
    TransposeOp,
    ints,
)
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.passes.linear.affine import compressed
from lowerdeck.passes.machinery.values import UNIFORM_LIMIT, Array

Move: TypeAlias = Callable[[Array, float], "list[Array] | None"]
"""A factor and its fill on one side of an op, and the factors on the other side, if there are."""

MOVERS: tuple[type[Operation], ...] = (
    TransposeOp,
    ReshapeOp,
    ChannelShuffleOp,
    BroadcastOp,
    SplitOp,
    SliceOp,
    ConcatOp,
    PadOp,
)
"""The ops that factors are moved past."""


def before(op: Operation, result: int, factor: Array, fill: float) -> list[Array] | None:
    """
    The factor of each moved operand that gives a factor of a result; None if there are none.
    """
    match op:
        case TransposeOp():
            return [factor.transpose(np.argsort(ints(op.permutation)))]
        case ReshapeOp():
            return _one(refitted(factor, op.dims.data, dims_of(op.input)))
        case ChannelShuffleOp():
            if factor.shape[1] == 1:
                return [factor]
            dealt = np.empty_like(factor)
            dealt[:, _dealt(op)] = factor
            return [dealt]
        case BroadcastOp():
            return _one(_before_broadcast(op, factor))
        case SplitOp():
            axis, start = op.axis.data, op.starts[result].value
            size, dim = op.sizes.data[result].value, dims_of(op.input)[axis].value
            if start is None or size is None or dim is None:
                return None
            return [_spread(factor, axis, range(start, start + size), dim, fill)]
        case SliceOp():
            return _one(_before_slice(op, factor, fill))
        case ConcatOp():
            return _parts(factor, op.axis.data, [dims_of(v)[op.axis.data] for v in op.inputs])
        case PadOp():
            return _one(_before_pad(op, factor))
        case _:
            return None


def after(op: Operation, operands: Sequence[int], factor: Array, fill: float) -> list[Array] | None:
    """
    The factor of each result that a factor of the operands with these numbers, all one value,
    gives; None if there are none.
    """
    match op:
        case TransposeOp():
            return [factor.transpose(ints(op.permutation))]
        case ReshapeOp():
            return _one(refitted(factor, dims_of(op.input), op.dims.data))
        case ChannelShuffleOp():
            return [factor if factor.shape[1] == 1 else factor[:, _dealt(op)]]
        case BroadcastOp():
            return [factor.reshape([1] * (len(op.dims.data) - factor.ndim) + list(factor.shape))]
        case SplitOp():
            return _parts(factor, op.axis.data, op.sizes.data)
        case SliceOp():
            return _one(_after_slice(op, factor))
        case ConcatOp():
            return _one(_after_concat(op, operands, factor, fill))
        case PadOp():
            return _one(_after_pad(op, factor, fill))
        case _:
            return None


def _one(factor: Array | None) -> list[Array] | None:
    return None if factor is None else [factor]


def _dealt(op: ChannelShuffleOp) -> Array:
    """The input channel of each channel of the result, of which there is a known number."""
    total, groups = dims_of(op.input)[1].value, op.groups.data
    assert total is not None
    channels = np.arange(total)
    return channels % groups * (total // groups) + channels // groups


# Reshapes


def refitted(factor: Array, dims: Sequence[Expr], new: Sequence[Expr]) -> Array | None:
    """The factor of a value of shape `dims` as one of the same elements with the shape `new`."""
    most = min(len(dims), len(new))
    head = 0
    while head < most and dims[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and dims[-1 - tail] == new[-1 - tail]:
        tail += 1
    end = len(dims) - tail
    middle = factor.shape[head:end]
    count = len(new) - head - tail
    if all(size == 1 for size in middle):
        return factor.reshape([*factor.shape[:head], *[1] * count, *factor.shape[end:]])
    old, sizes = constants(dims[head:end]), constants(new[head : head + count])
    if old is None or sizes is None or prod(old) != prod(sizes):
        return None
    outside = (*factor.shape[:head], *factor.shape[end:])
    if prod(outside) * prod(old) * factor.itemsize > UNIFORM_LIMIT:
        return None
    whole = np.broadcast_to(factor, (*factor.shape[:head], *old, *factor.shape[end:]))
    return compressed(whole.reshape([*factor.shape[:head], *sizes, *factor.shape[end:]]))


# Along one axis


def _spread(factor: Array, axis: int, places: Sequence[int], dim: int, fill: float) -> Array:
    """The factor of a tensor of which the elements at `places` along an axis are scaled."""
    if len(places) == dim and list(places) == list(range(dim)):
        return factor
    shape = [*factor.shape[:axis], dim, *factor.shape[axis + 1 :]]
    whole = np.full(shape, fill)
    whole[(slice(None),) * axis + (list(places),)] = factor
    return compressed(whole)


def _parts(factor: Array, axis: int, sizes: Sequence[Expr]) -> list[Array] | None:
    """The factors of consecutive parts."""
    if factor.shape[axis] == 1:
        return [factor] * len(sizes)
    known = constants(sizes)
    if known is None or sum(known) != factor.shape[axis]:
        return None
    ends = np.cumsum(known)[:-1]
    return [compressed(part) for part in np.split(factor, ends, axis)]


def _places(op: SliceOp, axis: int) -> list[int] | None:
    """The indices that a slice takes along an axis."""
    lists = (op.starts.data, op.sizes.data, op.steps.data)
    known = constants(values[axis] for values in lists)
    if known is None:
        return None
    start, size, step = known
    return [start + index * step for index in range(size)]


def _before_slice(op: SliceOp, factor: Array, fill: float) -> Array | None:
    """Where the factor does not vary, it may be anything for what the slice leaves out."""
    dims = dims_of(op.input)
    for axis, size in enumerate(factor.shape):
        if size == 1:
            continue
        places, dim = _places(op, axis), dims[axis].value
        if places is None or dim is None:
            return None
        factor = _spread(factor, axis, places, dim, fill)
    return factor


def _after_slice(op: SliceOp, factor: Array) -> Array | None:
    for axis, size in enumerate(factor.shape):
        if size == 1:
            continue
        places = _places(op, axis)
        if places is None:
            return None
        factor = factor.take(places, axis)
    return compressed(factor)


def _after_concat(
    op: ConcatOp, operands: Sequence[int], factor: Array, fill: float
) -> Array | None:
    axis = op.axis.data
    sizes = constants(dims_of(value)[axis] for value in op.inputs)
    if len(operands) == len(op.inputs) and factor.shape[axis] == 1:
        return factor
    if sizes is None:
        return None
    parts: list[Array] = []
    for number, size in enumerate(sizes):
        shape = [*factor.shape[:axis], size, *factor.shape[axis + 1 :]]
        part = np.broadcast_to(factor, shape) if number in operands else np.full(shape, fill)
        parts.append(part)
    return compressed(np.concatenate(parts, axis))


# Broadcasts and pads


def _before_broadcast(op: BroadcastOp, factor: Array) -> Array | None:
    dims = dims_of(op.input)
    added = len(op.dims.data) - len(dims)
    repeated = [
        size
        for axis, size in enumerate(factor.shape)
        if axis < added or dims[axis - added] != op.dims.data[axis]
    ]
    if any(size != 1 for size in repeated):
        return None
    return factor.reshape(factor.shape[added:])


def _padded(op: PadOp, axis: int) -> bool:
    return op.begin.data[axis] != 0 or op.end.data[axis] != 0


def _before_pad(op: PadOp, factor: Array) -> Array | None:
    """The factor of what is not added."""
    dims = dims_of(op.input)
    for axis, size in enumerate(factor.shape):
        if size == 1 or not _padded(op, axis):
            continue
        begin, dim = op.begin.data[axis].value, dims[axis].value
        if op.mode.data is not PadMode.CONSTANT or begin is None or dim is None:
            return None
        factor = factor.take(range(begin, begin + dim), axis)
    return compressed(factor)


def _after_pad(op: PadOp, factor: Array, fill: float) -> Array | None:
    for axis, size in enumerate(factor.shape):
        if size == 1 or not _padded(op, axis):
            continue
        begin, dim = op.begin.data[axis].value, dims_of(op.result)[axis].value
        if op.mode.data is not PadMode.CONSTANT or begin is None or dim is None:
            return None
        factor = _spread(factor, axis, range(begin, begin + size), dim, fill)
    return factor
