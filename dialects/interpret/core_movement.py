"""The meaning of `core` ops that move elements, select them or count them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowerdeck.dialects.core import tensor
from lowerdeck.dialects.core.enums import (
    PadMode,
    ScatterReduction,
)
from lowerdeck.dialects.interpret.core_numbers import (
    FLOATS,
    NARROW,
    Array,
    Symbols,
    flag,
    ints,
    meaning_of,
    numbers,
    rounded,
)
from lowerdeck.dialects.interpret.errors import InterpretError


@meaning_of(tensor.ReshapeOp)
def _reshape(op: tensor.ReshapeOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return args[0].reshape(numbers(op.dims, symbols))


@meaning_of(tensor.TransposeOp)
def _transpose(op: tensor.TransposeOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return args[0].transpose(ints(op.permutation))


@meaning_of(tensor.ChannelShuffleOp)
def _channel_shuffle(op: tensor.ChannelShuffleOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,) = args
    batch, channels, *rest = x.shape
    groups = op.groups.data
    apart = x.reshape(batch, groups, channels // groups, *rest)
    return apart.swapaxes(1, 2).reshape(x.shape)


@meaning_of(tensor.BroadcastOp)
def _broadcast(op: tensor.BroadcastOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return np.broadcast_to(args[0], numbers(op.dims, symbols))


@meaning_of(tensor.SliceOp)
def _slice(op: tensor.SliceOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,) = args
    lists = (numbers(values, symbols) for values in (op.starts, op.sizes, op.steps))
    return x[tuple(_python_slice(*rule) for rule in zip(x.shape, *lists, strict=True))]


def _python_slice(dim: int, start: int, size: int, step: int) -> slice:
    if step == 0 or size < 0:
        raise InterpretError(f"a slice of {size} elements with step {step}")
    if size == 0:
        return slice(0, 0)
    last = start + (size - 1) * step
    if not (0 <= start < dim and 0 <= last < dim):
        raise InterpretError(f"elements {start} to {last} of a dimension of {dim}")
    stop = last + (1 if step > 0 else -1)
    return slice(start, None if stop < 0 else stop, step)


@meaning_of(tensor.PadOp)
def _pad(op: tensor.PadOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, begin, end = args[0], numbers(op.begin, symbols), numbers(op.end, symbols)
    if min((*begin, *end), default=0) < 0:
        raise InterpretError(f"padding by {begin} and {end} elements")
    if op.mode.data == PadMode.CONSTANT:
        value = args[1] if len(args) > 1 else x.dtype.type(0)
        shape = [b + dim + e for dim, b, e in zip(x.shape, begin, end, strict=True)]
        result = np.full(shape, value, x.dtype)
        result[tuple(slice(b, b + dim) for dim, b in zip(x.shape, begin, strict=True))] = x
        return result
    for axis, (b, e) in enumerate(zip(begin, end, strict=True)):
        if b + e:
            x = x.take(_padded_indices(x.shape[axis], b, e, op.mode.data), axis)
    return x


def _padded_indices(dim: int, begin: int, end: int, mode: PadMode) -> Array:
    if dim == 0:
        raise InterpretError(f"mode '{mode}' on a dimension of no elements")
    index = np.arange(-begin, dim + end)
    if mode == PadMode.EDGE:
        return index.clip(0, dim - 1)
    if mode == PadMode.WRAP:
        return index % dim
    folded = index % max(2 * (dim - 1), 1)
    return np.minimum(folded, 2 * (dim - 1) - folded)


@meaning_of(tensor.ConcatOp)
def _concat(op: tensor.ConcatOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return np.concatenate(args, op.axis.data)


@meaning_of(tensor.SplitOp)
def _split(op: tensor.SplitOp, args: Sequence[Array], symbols: Symbols) -> tuple[Array, ...]:
    (x,), sizes, axis = args, numbers(op.sizes, symbols), op.axis.data
    if min(sizes) < 0 or sum(sizes) != x.shape[axis]:
        raise InterpretError(f"parts of {sizes} elements of a dimension of {x.shape[axis]}")
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def _resolved(indices: Array, dim: int) -> Array:
    """Indices from the start; InterpretError if one is out of range."""
    index = indices.astype(np.int64)
    outside = (index < -dim) | (index >= dim)
    if outside.any():
        raise InterpretError(f"index {index[outside].flat[0]} in a dimension of {dim}")
    return np.where(index < 0, index + dim, index)


@meaning_of(tensor.GatherOp)
def _gather(op: tensor.GatherOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, indices = args
    axis = op.axis.data
    return x.take(_resolved(indices, x.shape[axis]), axis)


def _along(x: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    """The index of element (i..., indices[i..., j, k...], k...) for every element of `indices`."""
    places: list[Array] = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
    places[axis] = _resolved(indices, x.shape[axis])
    return tuple(places)


@meaning_of(tensor.GatherElementsOp)
def _gather_elements(op: tensor.GatherElementsOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, indices = args
    return x[_along(x, indices, op.axis.data)]


def _addressed(x: Array, indices: Array, batch: int) -> tuple[Array, ...]:
    """The index of the slices that the last dimension of `indices` names, after `batch` ones."""
    outer = indices.shape[:-1]
    grid: Sequence[Array] = np.ogrid[tuple(slice(size) for size in outer)] if outer else ()
    named = [_resolved(indices[..., k], x.shape[batch + k]) for k in range(indices.shape[-1])]
    return (*grid[:batch], *named)


@meaning_of(tensor.GatherNdOp)
def _gather_nd(op: tensor.GatherNdOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, indices = args
    batch, depth = op.batch_dims.data, indices.shape[-1]
    if indices.shape[:batch] != x.shape[:batch]:
        raise InterpretError(f"indices of {indices.shape} for a tensor of {x.shape}")
    if batch + depth == 0:
        return np.broadcast_to(x, (*indices.shape[:-1], *x.shape))
    result = x[_addressed(x, indices, batch)]
    # Without named dimensions only the batch ones were indexed: the rest still broadcasts.
    return np.broadcast_to(
        result.reshape(result.shape[: len(indices.shape) - 1] + x.shape[batch + depth :]),
        (*indices.shape[:-1], *x.shape[batch + depth :]),
    )


_ACCUMULATE: dict[ScatterReduction, Any] = {
    ScatterReduction.ADD: np.add,
    ScatterReduction.MUL: np.multiply,
    ScatterReduction.MAX: np.maximum,
    ScatterReduction.MIN: np.minimum,
}


def _scattered(
    x: Array, places: tuple[Array, ...], updates: Array, reduction: ScatterReduction
) -> Array:
    if reduction == ScatterReduction.NONE:
        result = x.copy()
        result[places] = updates
        return result
    # Half precision is rounded at each update, in order, as frameworks and C do.
    wide = np.float64 if x.dtype in FLOATS and x.dtype.itemsize > 2 else x.dtype
    result = x.astype(wide)
    _ACCUMULATE[reduction].at(result, places, updates.astype(wide))
    return rounded(result, x.dtype)


@meaning_of(tensor.ScatterElementsOp)
def _scatter_elements(
    op: tensor.ScatterElementsOp, args: Sequence[Array], symbols: Symbols
) -> Array:
    x, indices, updates = args
    return _scattered(x, _along(x, indices, op.axis.data), updates, op.reduction.data)


@meaning_of(tensor.ScatterNdOp)
def _scatter_nd(op: tensor.ScatterNdOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, indices, updates = args
    expected = (*indices.shape[:-1], *x.shape[indices.shape[-1] :])
    if updates.shape != expected:
        raise InterpretError(f"updates have the shape {updates.shape}, not {expected}")
    if indices.shape[-1] == 0:
        # Every update meets the whole input.
        rows = updates.reshape(-1, 1, *x.shape)
        zero = np.zeros(1, np.int64)
        result = x[np.newaxis]
        for row in rows:
            result = _scattered(result, (zero,), row, op.reduction.data)
        return result[0]
    return _scattered(x, _addressed(x, indices, 0), updates, op.reduction.data)


@meaning_of(tensor.TopKOp)
def _top_k(op: tensor.TopKOp, args: Sequence[Array], symbols: Symbols) -> tuple[Array, Array]:
    (x,) = args
    axis, (k,) = op.axis.data, numbers(op.k, symbols)
    if not 0 <= k <= x.shape[axis]:
        raise InterpretError(f"{k} elements of a dimension of {x.shape[axis]}")
    keys = x.astype(np.float32) if x.dtype in NARROW else x
    if flag(op.largest):
        # Sorting backwards puts NaN first and, of equal elements, the lower index first.
        order = np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)
        order = x.shape[axis] - 1 - order
    else:
        order = np.argsort(keys, axis=axis, kind="stable")
    order = order.take(range(k), axis).astype(np.int64)
    return np.take_along_axis(x, order, axis), order


@meaning_of(tensor.CountNonzeroOp)
def _count_nonzero(op: tensor.CountNonzeroOp, args: Sequence[Array], symbols: Symbols) -> Any:
    return np.array(np.count_nonzero(args[0] != args[0].dtype.type(0)), np.int64)


@meaning_of(tensor.NonzeroOp)
def _nonzero(op: tensor.NonzeroOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,) = args
    holds = np.asarray(x != x.dtype.type(0))
    return np.argwhere(holds).T.astype(np.int64).reshape(x.ndim, np.count_nonzero(holds))
