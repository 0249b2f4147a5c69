"""Sparse constants, which are expanded when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.frontends.tflite.flatbuffer import FlatbufferError, Table, numbers


def expand(stored: NDArray[Any], shape: Sequence[int], sparsity: Table) -> NDArray[Any]:
    """
    The dense tensor of `shape` whose stored elements come in the order of the format.

    The dimensions of the format are those of the tensor, divided by the blocks, and those of the
    blocks; `traversal_order` is the order in which they are nested. A dense dimension has all of
    its positions, a sparse one those that segments of indices list.
    """
    order = numbers(sparsity["traversal_order"])
    blocks = numbers(sparsity["block_map"])
    levels: list[Table] = sparsity["dim_metadata"] or []
    rank, depth = len(shape), len(order)
    if depth != rank + len(blocks) or len(levels) != depth or sorted(order) != [*range(depth)]:
        raise FlatbufferError(f"a sparse tensor of {rank} dimensions with {depth} levels")
    places = _places(levels)
    if len(places) != stored.size:
        raise FlatbufferError(f"{stored.size} elements for {len(places)} places")
    if not rank:
        return stored.reshape(())  # one element, which has no place
    along = {dim: places[:, level] for level, dim in enumerate(order)}
    sizes = [1] * rank
    for number, dim in enumerate(blocks):
        level = order.index(rank + number)
        if not 0 <= dim < rank or levels[level]["format"] != "DENSE":
            raise FlatbufferError(f"a block along dimension {dim} of {rank}")
        sizes[dim] = levels[level]["dense_size"]
    index = [along[dim] * sizes[dim] for dim in range(rank)]
    for number, dim in enumerate(blocks):
        index[dim] = index[dim] + along[rank + number]
    for dim, values in enumerate(index):
        if values.size and not 0 <= values.min() <= values.max() < shape[dim]:
            raise FlatbufferError(f"a place outside of dimension {dim} of {shape[dim]}")
    dense = np.zeros(shape, stored.dtype)
    dense[tuple(index)] = stored
    return dense


_MOST = 1 << 28
"""Places of a constant."""


def _places(levels: Sequence[Table]) -> NDArray[np.int64]:
    """The position at each level of all stored elements, in order."""
    places = np.zeros((1, 0), np.int64)
    for level in levels:
        if level["format"] == "DENSE":
            size = level["dense_size"]
            counts = np.full(len(places), size, np.int64)
            inner = np.tile(np.arange(size, dtype=np.int64), len(places))
        else:
            segments = np.array(_vector(level, "array_segments"), np.int64)
            indices = np.array(_vector(level, "array_indices"), np.int64)
            counts = np.diff(segments)
            if len(counts) != len(places) or (counts < 0).any() or counts.sum() != indices.size:
                raise FlatbufferError(f"{len(segments)} segments for {len(places)} places")
            inner = indices
        if counts.sum() > _MOST:
            raise FlatbufferError(f"a sparse tensor of {counts.sum()} places")
        places = np.column_stack([np.repeat(places, counts, axis=0), inner])
    return places


def _vector(level: Table, field: str) -> list[int]:
    table = level[field]
    return [] if table is None else numbers(table["values"])
