"""Windows of pools, and where their largest elements are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as cartesian
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import ArgReduceOp, PoolOp
from lowerdeck.dialects.core.tensor import GatherElementsOp, PadOp, ScatterElementsOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    i64,
    is_float,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, constants, product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.legalizer import Legalizer, refuse
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat

MAX_TAPS = 1024
"""Indices are computed with a few ops for each element of the window, up to this many."""


def pool(
    builder: CoreBuilder,
    kind: str,
    x: SSAValue,
    window: Window,
    *,
    count_pads: bool = False,
    keeps_first: bool = False,
    from_lowest: bool = False,
    keeps_nan: bool = False,
) -> SSAValue:
    """Each window of [N, C, spatial...] combined; one without elements is all of an empty image."""
    for size, dim in zip(window.kernel, dims_of(x)[2:], strict=False):
        if size.value is not None and size.value < 1 and size != dim:
            refuse(f"windows of {' x '.join(map(str, window.kernel))}", "positive sizes")
    op = PoolOp(
        kind,
        x,
        kernel=window.kernel,
        strides=window.strides,
        dilations=window.dilations,
        pads_begin=window.begin,
        pads_end=window.end,
        overhang=window.overhang,
        count_pads=count_pads,
        keeps_first=keeps_first,
        from_lowest=from_lowest,
        keeps_nan=keeps_nan,
    )
    return builder.add(op)


def max_places(
    builder: CoreBuilder, value: SSAValue, places: SSAValue, window: Window, dims: Sequence[Expr]
) -> SSAValue:
    """
    The `places` of the first largest elements; the windows have the dimensions `dims`. NaN is
    passed over, unless there is nothing else: then it is the first element.
    """
    return largest(builder, value, places, window, dims)[1]


def largest(
    builder: CoreBuilder,
    value: SSAValue,
    places: SSAValue,
    window: Window,
    dims: Sequence[Expr],
    *,
    keeps_first: bool = False,
    keeps_nan: bool = False,
) -> tuple[SSAValue, SSAValue]:
    """
    The first largest element of each window, and its place. NaN is passed over, unless there is
    nothing else or, with `keeps_first`, it is the first element of its window; with `keeps_nan` the
    last one is more than all.

    One comparison for each element of the window, each a strided slice of the padded input. Padding
    has place -1 and is replaced by any real element.
    """
    kernel = constants(window.kernel)
    if kernel is None or np.prod(kernel) > MAX_TAPS:
        refuse(f"indices of windows of {list(map(str, window.kernel))}", "small windows")
    element = element_type(value)
    lowest = -np.inf if is_float(element) else np.iinfo(numpy_dtype(element)).min
    x = padded(builder, value, window, builder.scalar(lowest, value))
    index = padded(builder, places, window, builder.scalar(-1, i64))
    best, where = TensorValue(builder, x), TensorValue(builder, index)
    for number, offset in enumerate(cartesian(*map(range, kernel))):
        here = tap(builder, x, window, dims, offset)
        place = tap(builder, index, window, dims, offset)
        if number == 0:
            best, where = here, place
            continue
        better = here.gt(best) | (where.lt(0) & place.ge(0))
        if is_float(element) and keeps_nan:
            better = better | here.ne(here)
        elif is_float(element) and not keeps_first:
            better = better | (best.ne(best) & here.eq(here) & place.ge(0))
        best, where = better.where(here, best), better.where(place, where)
    return best.value, where.value


def padded(builder: CoreBuilder, x: SSAValue, window: Window, value: SSAValue) -> SSAValue:
    """[N, C, spatial...] with the padding of a window, of the scalar `value`."""
    if window.is_whole:
        return x
    return builder.add(PadOp(x, [0, 0, *window.begin], [0, 0, *window.end], value))


def tap(
    builder: CoreBuilder, x: SSAValue, window: Window, dims: Sequence[Expr], offset: Sequence[int]
) -> TensorValue:
    """One element of every window."""
    starts = [0, 0, *(t * d for t, d in zip(offset, window.dilations, strict=True))]
    return TensorValue(builder, builder.slice(x, starts, dims, [1, 1, *window.strides]))


# Adaptive pools

_MOST_WINDOWS = 2048
"""Each window is a few ops."""


def adaptive_ranges(dim: Expr, size: int) -> list[tuple[Expr, Expr]]:
    """The first element of each of `size` windows that fill a dimension, and the one after it."""
    return [(dim * k // size, (dim * (k + 1) + (size - 1)) // size) for k in range(size)]


def adaptive(
    builder: CoreBuilder, x: SSAValue, axis: int, dim: Expr, size: int, kind: str
) -> SSAValue:
    """The max or mean of windows along one dimension: those of images are products of ranges."""
    if size == 0:
        return builder.slice_axis(x, axis, Expr.const(0), Expr.const(0))
    parts: list[TensorValue] = []
    for first, last in adaptive_ranges(dim, size):
        part = builder.slice_axis(x, axis, first, last - first)
        if kind == "mean":
            parts.append(TensorValue(builder, mean(builder, part, [axis], True)))
        else:
            parts.append(TensorValue(builder, builder.reduce(kind, part, [axis], True)))
    return concat(parts, axis).value


def adaptive_pool(builder: CoreBuilder, x: SSAValue, sizes: Sequence[int], kind: str) -> SSAValue:
    """The max or mean of so many windows of nearly equal size as fill [N, C, spatial...]."""
    axes = list(range(2, rank_of(x)))
    _require_sizes(sizes, len(axes))
    if all(size == 1 for size in sizes):
        is_mean = kind == "mean"
        return mean(builder, x, axes, True) if is_mean else builder.reduce(kind, x, axes, True)
    _limit(max(sizes))
    for axis, size in zip(axes, sizes, strict=True):
        if dims_of(x)[axis] != size:
            x = adaptive(builder, x, axis, dims_of(x)[axis], size, kind)
    return x


def _require_sizes(sizes: Sequence[int], rank: int) -> None:
    if len(sizes) != rank:
        refuse(f"{len(sizes)} numbers of windows for {rank} dimensions", "as many")
    if min(sizes, default=0) < 0:
        refuse(f"the numbers of windows {[*sizes]}", "none below zero")


def _limit(windows: int) -> None:
    if windows > _MOST_WINDOWS:
        refuse(f"{windows} windows in an adaptive pool", f"at most {_MOST_WINDOWS}")


def adaptive_places(
    builder: Legalizer, x: SSAValue, sizes: Sequence[int], *, last_nan: bool = False
) -> tuple[SSAValue, SSAValue]:
    """
    The largest of each window of [N, C, spatial...], and where in the plane it is: each window by
    itself, so the sizes of the planes are known. NaN is more than all, the first one or the last.
    """
    lead, space = dims_of(x)[:2], dims_of(x)[2:]
    _require_sizes(sizes, len(space))
    if constants(space) is None:
        builder.refuse("places in an adaptive pool of an open size", "a known size")
    _limit(prod(sizes))
    if not all(sizes):
        nothing = [*lead, *map(Expr.const, sizes)]
        best, where = (TensorValue.number(builder, 0, each) for each in (element_type(x), i64))
        return best.broadcast(nothing).value, where.broadcast(nothing).value
    number = TensorValue.iota(builder, product(space)).reshape([1, 1, *space])
    places = number.broadcast(dims_of(x)).value
    values: list[TensorValue] = []
    indices: list[TensorValue] = []
    ranges = [adaptive_ranges(dim, size) for dim, size in zip(space, sizes, strict=True)]
    for window in cartesian(*ranges):
        starts = [Expr.const(0)] * 2 + [first for first, _ in window]
        counts = [*lead, *(last - first for first, last in window)]
        flat = [*lead, product(counts[2:])]
        part = builder.reshape(builder.slice(x, starts, counts), flat)
        where = builder.reshape(builder.slice(places, starts, counts), flat)
        place = builder.add(ArgReduceOp("max", part, 2, True))
        best = TensorValue(builder, builder.reduce("max", part, [2], True))
        if last_nan and is_float(element_type(x)):
            last = TensorValue(builder, builder.add(ArgReduceOp("max", part, 2, True, True)))
            place = best.ne(best).where(last, TensorValue(builder, place)).value
        values.append(best)
        indices.append(TensorValue(builder, builder.add(GatherElementsOp(where, place, 2))))
    best, where = (concat(part, 2).reshape([*lead, *sizes]).value for part in (values, indices))
    return best, where


# Other pools


def fractional_pool(
    builder: Legalizer,
    x: SSAValue,
    samples: Sequence[TensorValue],
    kernel: Sequence[int],
    sizes: Sequence[int],
) -> tuple[SSAValue, SSAValue]:
    """
    The largest of each window of [N, C, spatial...], and where in the plane it is. Windows of each
    plane begin where its `samples` say, numbers [N, C] below 1 for each dimension. The last NaN is
    more than all.
    """
    lead, space = dims_of(x)[:2], dims_of(x)[2:]
    rank = len(space)
    if prod(kernel) > MAX_TAPS:
        refuse(f"places in windows of {list(kernel)}", "small windows")
    flat = builder.reshape(x, [*lead, product(space)])
    first = TensorValue.number(builder, 0, i64)
    for axis, (dim, size, width) in enumerate(zip(space, sizes, kernel, strict=True)):
        start = _fractional_starts(samples[axis], dim - width, size)
        dims = [*lead, *(size if k == axis else 1 for k in range(rank))]
        first = first * TensorValue.dim(builder, dim) + start.reshape(dims)
    best = where = None
    for offset in cartesian(*map(range, kernel)):
        step = TensorValue.number(builder, 0, i64)
        for dim, number in zip(space, offset, strict=True):
            step = step * TensorValue.dim(builder, dim) + number
        place = (first + step).broadcast([*lead, *sizes])
        index = place.reshape([*lead, prod(sizes)]).value
        found = builder.add(GatherElementsOp(flat, index, 2))
        here = TensorValue(builder, found).reshape([*lead, *sizes])
        if best is None or where is None:
            best, where = here, place
            continue
        better = here.gt(best) | here.ne(here)
        best, where = better.where(here, best), better.where(place, where)
    assert best is not None
    assert where is not None
    return best.value, where.value


def _fractional_starts(sample: TensorValue, most: Expr, size: int) -> TensorValue:
    """Where `size` windows begin [N, C, size], the last one at `most`."""
    builder = sample.builder
    last = TensorValue.dim(builder, most)
    number = TensorValue.iota(builder, size)
    if size == 1:
        return (number + last).broadcast([*sample.dims, 1])
    step = last.cast(sample.element) / float(size - 1)
    sample = sample.reshape([*sample.dims, 1])
    place = ((number.cast(sample.element) + sample) * step).cast(i64) - (sample * step).cast(i64)
    return number.eq(size - 1).where(last, place)


def pyramid(builder: Legalizer, x: SSAValue, height: int, is_max: bool) -> SSAValue:
    """Pools of [N, C, spatial...] to 1, 2, 4, ... windows in each direction, in rows."""
    batch, channels, *space = dims_of(x)
    parts: list[TensorValue] = []
    for level in range(height):
        count = 2**level
        kernel = [(dim + count - 1) // count for dim in space]
        pads = [(k * count - dim + 1) // 2 for k, dim in zip(kernel, space, strict=True)]
        strides = constants(kernel)
        if strides is None:
            builder.refuse("open sizes", "known ones")
        none = [Expr.const(0)] * len(space)
        window = Window(tuple(kernel), list(strides), [1] * len(space), pads, pads, none)
        found = TensorValue(builder, pool(builder, "max" if is_max else "average", x, window))
        parts.append(found.reshape([batch, channels * count ** len(space)]))
    return concat(parts, 1).value


def unpooled(builder: CoreBuilder, x: SSAValue, places: SSAValue, size: Sequence[Expr]) -> SSAValue:
    """The elements of [N, C, spatial...] at their i64 places in an image of zeros."""
    lead, count = dims_of(x)[:2], product(dims_of(x)[2:])
    zeros = builder.broadcast(builder.scalar(0, x), [*lead, product(size)])
    index, values = (builder.reshape(each, [*lead, count]) for each in (places, x))
    return builder.reshape(builder.add(ScatterElementsOp(zeros, index, values, 2)), [*lead, *size])
