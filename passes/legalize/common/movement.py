"""Data movement: concatenation, parts, slices, padding and repetition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.elementwise import BitcastOp, ShlOp, ShrOp, has_bits
from lowerdeck.dialects.core.tensor import ConcatOp, GatherOp, PadOp, ScatterElementsOp, ScatterNdOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    i1,
    i64,
    is_integer,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, ExprLike, maximum, minimum, product
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.sizes import (
    UNBOUNDED,
    Axes,
    from_front,
    is_nonnegative,
    limited,
    sizes_of,
)
from lowerdeck.passes.legalize.tensor_value import TensorValue, index_vector, stack


def concat(builder: Legalizer, values: Sequence[SSAValue], axis: int) -> SSAValue:
    """Tensors joined along an axis."""
    return values[0] if len(values) == 1 else builder.add(ConcatOp(values, axis))


# Slices


def signs_known(builder: Legalizer, steps: SSAValue) -> bool:
    """True if every step is known to go forward, or backward."""
    elements = builder.symbols.elements(steps)
    if elements is None:
        return False
    return all(step is not None and _sign(builder, step) for step in elements.reshape(-1))


def _sign(builder: Legalizer, step: Expr) -> int:
    """1 or -1; 0 if it is not known."""
    if is_nonnegative(builder, step - 1):
        return 1
    return -1 if is_nonnegative(builder, -step - 1) else 0


def sliced(
    builder: Legalizer,
    x: SSAValue,
    axes: Sequence[int],
    starts: Sequence[Expr],
    ends: Sequence[Expr],
    steps: Sequence[Expr],
    *,
    may_start_before: bool = True,
) -> SSAValue:
    """
    `x[start:end:step]` at some axes, as numpy slices: negative bounds count from the end, and what
    lies outside is cut off.

    Unless a slice `may_start_before` the first element, which gives nothing if it goes backward,
    it begins there, as those of ONNX do.
    """
    if not len(axes) == len(starts) == len(ends) == len(steps):
        builder.refuse(
            f"{len(starts)} starts, {len(ends)} ends, {len(steps)} steps", f"{len(axes)}"
        )
    all_starts: list[ExprLike] = [0] * rank_of(x)
    all_steps: list[ExprLike] = [1] * rank_of(x)
    sizes = list(dims_of(x))
    for axis, *bounds_and_step in zip(axes, starts, ends, steps, strict=True):
        start, end, step = map(limited, bounds_and_step)
        dim = sizes[axis]
        if _sign(builder, step) > 0:
            bounds = _forward(builder, dim, start, end, step)
        else:
            bounds = _backward(builder, dim, start, end, step, -1 if may_start_before else 0)
        all_starts[axis], sizes[axis] = bounds
        all_steps[axis] = step
    return builder.slice(x, all_starts, sizes, all_steps)


def _forward(
    builder: Legalizer, dim: Expr, start: Expr, end: Expr, step: Expr
) -> tuple[Expr, Expr]:
    """
    First element and number of elements of start:end:step for a positive step.

    A start past the end that is a number or a size is left as it is: then there are no elements.
    """
    first, last = from_front(builder, start, dim), _forward_end(builder, dim, end)
    distance = last - first
    if not is_nonnegative(builder, first):
        if start.value is None:
            # It may be any number: sums stay small if everything lies in the dimension first.
            first = builder.symbols.smallest(builder.symbols.largest(first, 0), dim)
            distance = last - first
        else:
            first, distance = (
                builder.symbols.largest(first, 0),
                builder.symbols.smallest(distance, last),
            )
    return _counted(builder, first, distance, step)


def _forward_end(builder: Legalizer, dim: Expr, end: Expr) -> Expr:
    if end.value is not None and end.value >= UNBOUNDED:
        return dim
    last = from_front(builder, end, dim)
    if is_nonnegative(builder, last - dim):
        return dim
    if end.value is None and not is_nonnegative(builder, last):
        last = builder.symbols.largest(last, 0)
    return _at_most(builder, last, dim)


def _backward(
    builder: Legalizer, dim: Expr, start: Expr, end: Expr, step: Expr, lowest: int
) -> tuple[Expr, Expr]:
    """As `_forward` for a negative step; the first element is not before `lowest`."""
    """First element and number of elements of start:end:step for a negative step."""
    if start == -1 or (start.value is not None and start.value >= UNBOUNDED):
        first = dim - 1
    else:
        first = from_front(builder, start, dim)
        first = first if is_nonnegative(builder, first) else builder.symbols.largest(first, lowest)
        first = _at_most(builder, first, dim - 1)
    if end.value is not None and end.value <= -UNBOUNDED:
        last = Expr.const(-1)
    else:
        last = from_front(builder, end, dim)
        last = last if is_nonnegative(builder, last + 1) else builder.symbols.largest(last, -1)
        last = last if end.value is not None else _at_most(builder, last, dim)
    return _counted(builder, first, first - last, -step)


def _counted(builder: Legalizer, first: Expr, distance: Expr, step: Expr) -> tuple[Expr, Expr]:
    """`first`, and how many elements `step` apart lie in a distance."""
    count = distance.ceildiv(step)
    if not is_nonnegative(builder, distance):
        count = builder.symbols.largest(count, 0)
    return (Expr.const(0), count) if count == 0 else (first, count)


def _at_most(builder: Legalizer, index: Expr, limit: Expr) -> Expr:
    return (
        index if is_nonnegative(builder, limit - index) else builder.symbols.smallest(index, limit)
    )


def sliced_at_run_time(
    builder: Legalizer,
    x: SSAValue,
    axes: Axes,
    starts: SSAValue,
    ends: SSAValue,
    steps: SSAValue,
) -> SSAValue:
    """Axes or directions come from data: everything is resolved by arithmetic on vectors."""
    rank = rank_of(x)
    if axes.known is not None:
        axes = Axes(None, TensorValue(builder, np.array(axes.known, np.int64)))
    first, last, step = (
        axes.spread(builder, TensorValue.of(builder, value), rank, fill)
        for value, fill in ((starts, 0), (ends, np.iinfo(np.int64).max), (steps, 1))
    )
    dims = TensorValue(builder, builder.dims(dims_of(x)))
    step = step.clip(-UNBOUNDED, UNBOUNDED)
    back = step.lt(0)
    zero = TensorValue.number(builder, 0, i64)
    low = back.where(TensorValue.number(builder, -1, i64), zero)
    high = back.where(dims - 1, dims)
    # The lowest end for a negative step stays below every index that counts from the end.
    first = first.lt(0).where(first + dims, first).clip(low.maximum(0), high)
    last = last.lt(0).where(last.maximum(-UNBOUNDED) + dims, last).clip(low, high)
    stride = step.abs().maximum(1)
    distance = back.where(first - last, last - first).maximum(0)
    # A step of zero gives no size at all, which is found out when the program runs.
    count = (distance + stride - 1) // stride
    sizes = step.eq(0).where(TensorValue.number(builder, -1, i64), count)
    return builder.slice(
        x,
        builder.require_exprs(first.value, "starts"),
        sizes_of(builder, sizes.value, "sizes"),
        builder.require_exprs(step.value, "steps"),
    )


Bounds: TypeAlias = "tuple[Expr, Expr, Expr]"
"""The start, the end and the step of a slice."""


def places_of(
    builder: Legalizer, x: SSAValue, bounds: Sequence[Bounds | None]
) -> list[TensorValue]:
    """The i64 places along each dimension that slices take, all of them for None."""
    places: list[TensorValue] = []
    for dim, given in zip(dims_of(x), bounds, strict=True):
        number = TensorValue.iota(builder, dim)
        if given is not None:
            start, end, step = ([bound] for bound in given)
            number = TensorValue(builder, sliced(builder, number.value, [0], start, end, step))
        places.append(number)
    return places


def written(
    builder: Legalizer, x: SSAValue, places: Sequence[TensorValue], value: SSAValue
) -> SSAValue:
    """x with other elements at all combinations of places along its dimensions."""
    counts = [place.dims[0] for place in places]
    flat = TensorValue.number(builder, 0, i64)
    for axis, place in enumerate(places):
        stride = TensorValue.dim(builder, product(dims_of(x)[axis + 1 :]))
        flat = flat + (place * stride).column(len(places), axis)
    count = product(counts)
    index = flat.broadcast(counts).reshape([count])
    rows = builder.reshape(x, [product(dims_of(x))])
    op = ScatterElementsOp(rows, index.value, builder.reshape(value, [count]), 0)
    return builder.reshape(builder.add(op), dims_of(x))


def fitting(
    builder: Legalizer, places: Sequence[TensorValue], dims: Sequence[Expr], sizes: Sequence[Expr]
) -> list[TensorValue]:
    """Where parts of `sizes` begin, i64, moved to where all of them fits into `dims`."""
    found: list[TensorValue] = []
    for place, dim, size in zip(places, dims, sizes, strict=True):
        room = dim - size
        if room.value is not None and room.value < 0:
            builder.refuse(f"{size} elements of {dim}", "at most as many")
        found.append(place.maximum(0).minimum(TensorValue.dim(builder, room)))
    return found


def updated(
    builder: Legalizer,
    x: TensorValue,
    update: TensorValue,
    firsts: Sequence[TensorValue],
) -> SSAValue:
    """`x` with an update in place of the part that begins at given places, i64 scalars."""
    rank = len(x.dims)
    if not rank:
        return update.value
    index: list[TensorValue] = []
    for axis, (first, size) in enumerate(zip(firsts, update.dims, strict=True)):
        here = first + TensorValue.iota(builder, size).column(rank, axis)
        index.append(here.broadcast(update.dims))
    return builder.add(ScatterNdOp(x.value, stack(index, rank).value, update.value))


# Padding


def pad(
    builder: Legalizer,
    x: SSAValue,
    begin: Sequence[Expr],
    end: Sequence[Expr],
    value: SSAValue | None = None,
    mode: str = "constant",
) -> SSAValue:
    """`x` with elements added, or removed by negative amounts, which comes first."""
    if not len(begin) == len(end) == rank_of(x):
        builder.refuse(f"{len(begin)} and {len(end)} amounts to pad by", f"{rank_of(x)} of each")
    cut_begin, cut_end = ([_cut(builder, amount) for amount in side] for side in (begin, end))
    sizes = [d - b - e for d, b, e in zip(dims_of(x), cut_begin, cut_end, strict=True)]
    x = builder.slice(x, cut_begin, sizes)
    begin = [_added(builder, amount) for amount in begin]
    end = [_added(builder, amount) for amount in end]
    if all(amount == 0 for amount in (*begin, *end)):
        return x
    if mode != "constant":
        return builder.add(PadOp(x, begin, end, None, mode))
    return builder.add(PadOp(x, begin, end, builder.scalar(0, x) if value is None else value))


_MOST = 1 << 54
"""Elements that a tensor never has, and some of which can be added up."""


def _added(builder: Legalizer, amount: Expr) -> Expr:
    """How much a positive amount adds; what is beyond all memory stays so, but sums of it fit."""
    added = positive_part(builder, amount)
    is_any = added != 0 and not is_nonnegative(builder, amount)
    return minimum(added, _MOST) if is_any else added


def _cut(builder: Legalizer, amount: Expr) -> Expr:
    """How much a negative amount takes away; limited first, the least number has no negative."""
    if amount.value is not None or is_nonnegative(builder, amount):
        return positive_part(builder, -amount)
    return -maximum(minimum(amount, 0), -UNBOUNDED)


def positive_part(builder: Legalizer, amount: Expr) -> Expr:
    """The amount, or 0 if it is negative."""
    if is_nonnegative(builder, -amount):
        return Expr.const(0)
    return amount if is_nonnegative(builder, amount) else maximum(amount, 0)


def dilated(builder: Legalizer, x: SSAValue, steps: Sequence[int], value: SSAValue) -> SSAValue:
    """Elements `steps` apart along each dimension, with a value between them."""
    for axis, step in enumerate(steps):
        if step == 1:
            continue
        dims = list(dims_of(x))
        if dims[axis].value == 0:
            continue
        y = builder.reshape(x, [*dims[: axis + 1], 1, *dims[axis + 1 :]])
        ends = [Expr.const(0)] * (len(dims) + 1)
        ends[axis + 1] = Expr.const(step - 1)
        y = pad(builder, y, [Expr.const(0)] * (len(dims) + 1), ends, value)
        size = dims[axis]
        dims[axis] = size * step
        x = builder.slice_axis(builder.reshape(y, dims), axis, 0, (size - 1) * step + 1)
    return x


def padded_first(
    builder: Legalizer,
    x: SSAValue,
    low: Sequence[int],
    high: Sequence[int],
    value: SSAValue | None = None,
) -> SSAValue:
    """
    Elements added, and then removed by negative amounts, which may be more than there were before.
    """
    begin, end = ([Expr.const(max(amount, 0)) for amount in side] for side in (low, high))
    wide = pad(builder, x, begin, end, value)
    cut = [[max(-amount, 0) for amount in side] for side in (low, high)]
    sizes = [dim - a - b for dim, a, b in zip(dims_of(wide), *cut, strict=True)]
    return builder.slice(wide, cut[0], sizes)


# Repetition


def tile(builder: Legalizer, x: SSAValue, repeats: Sequence[Expr]) -> SSAValue:
    """`x` repeated along each dimension."""
    dims = dims_of(x)
    if len(repeats) != len(dims):
        builder.refuse(f"{len(repeats)} repeats", f"{len(dims)}")
    inner: list[ExprLike] = []
    outer: list[ExprLike] = []
    for dim, repeat in zip(dims, repeats, strict=True):
        if repeat != 1:
            inner.append(1)
            outer.append(repeat)
        inner.append(dim)
        outer.append(dim)
    wide = builder.broadcast(builder.reshape(x, inner), outer)
    return builder.reshape(wide, [dim * repeat for dim, repeat in zip(dims, repeats, strict=True)])


def _window_places(builder: Legalizer, dim: Expr, size: ExprLike, step: ExprLike) -> TensorValue:
    """The i64 places of the elements of windows, [count, size]."""
    count = (dim - size) // step + 1
    starts = TensorValue.iota(builder, count).column(2, 0) * TensorValue.dim(builder, step)
    return starts + TensorValue.iota(builder, size).column(2, 1)


def windows_along(
    builder: Legalizer, x: SSAValue, axis: int, size: ExprLike, step: ExprLike
) -> SSAValue:
    """The windows along an axis, which becomes two: their number and their size."""
    return builder.add(
        GatherOp(x, _window_places(builder, dims_of(x)[axis], size, step).value, axis)
    )


def frames(builder: Legalizer, x: SSAValue, axis: int, size: int, step: int) -> SSAValue:
    """Windows of a signal along its first axis, as rows, or along the last one, as columns."""
    last = rank_of(x) - 1
    if axis not in (0, -1, last):
        builder.refuse(f"the axis {axis}", "0 or -1")
    places = _window_places(builder, dims_of(x)[0 if axis == 0 else last], size, step)
    if axis == 0:
        return builder.add(GatherOp(x, places.value, 0, inside=True))
    return builder.add(GatherOp(x, places.transpose([1, 0]).value, last, inside=True))


def rolled(builder: Legalizer, x: SSAValue, axis: int, shift: Expr) -> SSAValue:
    """Elements move by the shift toward the end of an axis, and around."""
    dims = dims_of(x)
    if shift == 0 or dims[axis] == 0:
        return x
    moved = shift % (dims[axis] if dims[axis].value else maximum(dims[axis], 1))
    if moved == 0:
        return x
    kept = dims[axis] - moved
    parts = [
        builder.slice_axis(x, axis, kept, moved),
        builder.slice_axis(x, axis, 0, kept),
    ]
    return builder.reshape(concat(builder, parts, axis), dims)


def at_axis(builder: Legalizer, x: TensorValue, axis: int, rank: int) -> TensorValue:
    """A tensor whose dimensions begin at an axis of `rank`; too many ones at its end go."""
    dims = list(x.dims)
    if len(dims) == rank:
        return x
    while len(dims) > rank - axis and dims and dims[-1] == 1:
        dims.pop()
    if axis < 0 or len(dims) > rank - axis:
        builder.refuse(f"{len(dims)} dimensions at axis {axis} of {rank}", "fewer")
    one = Expr.const(1)
    return x.reshape([*[one] * axis, *dims, *[one] * (rank - axis - len(dims))])


def enlarged(x: TensorValue, first: int, factors: Sequence[ExprLike]) -> TensorValue:
    """Each element several times along each of the dimensions from `first` on."""
    if all(factor == 1 for factor in factors):
        return x
    end = first + len(factors)
    lead, space, rest = x.dims[:first], x.dims[first:end], x.dims[end:]
    ones = [part for dim in space for part in (dim, 1)]
    whole = [part for pair in zip(space, factors, strict=True) for part in pair]
    wide = x.reshape([*lead, *ones, *rest]).broadcast([*lead, *whole, *rest])
    sizes = (dim * factor for dim, factor in zip(space, factors, strict=True))
    return wide.reshape([*lead, *sizes, *rest])


def shifted_channels(builder: Legalizer, x: SSAValue, frames: int, ratio: float) -> SSAValue:
    """
    [videos * frames, channels, ...] with a share of channels from the frame before, as many from
    the one after; outside are zeros (Lin et al., TSM).
    """
    count, channels, *space = dims_of(x)
    if channels.value is None:
        builder.refuse("an open number of channels", "a known one")
    first, second = int(channels.value * ratio), int(channels.value * 2 * ratio)
    wide = builder.reshape(x, [count // frames, frames, channels, *space])
    before, after, rest = builder.split(wide, 2, [first, second - first, channels - second])
    early, late = ([Expr.const(0)] * rank_of(wide) for _ in range(2))
    early[1], late[1] = Expr.const(1), Expr.const(-1)
    moved = [pad(builder, before, early, late), pad(builder, after, late, early), rest]
    return builder.reshape(concat(builder, moved, 2), dims_of(x))


def bitcast(builder: Legalizer, x: SSAValue, element: Attribute) -> SSAValue:
    """
    The bits of a value as elements of another type: several narrower ones along one more dimension,
    or wider ones of those along the last dimension; the first ones are the lowest bits.
    """
    source = element_type(x)
    if source == element:
        return x
    old, new = (numpy_dtype(each).itemsize for each in (source, element))
    if old == new and is_integer(element) and (source == i1 or is_integer(source)):
        return builder.cast(x, element)  # the same modulo 2^width
    if not (has_bits(element) and (has_bits(source) or (source == i1 and old < new))):
        builder.refuse(f"the bits of {source} as {element}", "integers, or 32 or 64 bits")
    if old == new:
        return builder.add(BitcastOp(x, element))
    bits, parts = (IntegerType(8 * each, Signedness.UNSIGNED) for each in (old, new))
    whole = TensorValue(builder, bitcast(builder, x, bits))
    if old > new:
        moved = [_shifted(ShrOp, whole, 8 * new * k).cast(parts) for k in range(old // new)]
        return bitcast(builder, stack(moved, len(whole.dims)).value, element)
    last = len(whole.dims) - 1
    if last < 0 or whole.dims[last] != new // old:
        builder.refuse(f"the bits of {source} as {element}", f"{new // old} of them side by side")
    total, *others = (
        _shifted(ShlOp, whole.pick(last, k).cast(parts), 8 * old * k) for k in range(new // old)
    )
    for part in others:
        total = total | part
    return bitcast(builder, total.value, element)


def _shifted(op: type[ShlOp | ShrOp], x: TensorValue, bits: int) -> TensorValue:
    amount = TensorValue.number(x.builder, bits, x.element)
    return TensorValue(x.builder, x.builder.add(op(x.value, amount.value))) if bits else x


def recast_rows(builder: Legalizer, x: SSAValue, element: Attribute) -> SSAValue:
    """The bits of rows as elements of another type: rows become longer or shorter."""
    old, new = (numpy_dtype(each).itemsize for each in (element_type(x), element))
    if old != new and not rank_of(x):
        builder.refuse("a number without dimensions", "rows of numbers")
    if old < new:
        *lead, size = dims_of(x)
        x = builder.reshape(x, [*lead, size * old // new, new // old])
    found = bitcast(builder, x, element)
    if old > new:
        *lead, size, count = dims_of(found)
        found = builder.reshape(found, [*lead, size * count])
    return found


def strided_places(
    builder: Legalizer, sizes: Sequence[Expr], strides: Sequence[Expr], offset: ExprLike
) -> TensorValue:
    """The i64 places, in memory, of elements at strides; it has a dimension for each of `sizes`."""
    places = TensorValue.dim(builder, offset)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        number = index_vector(builder, size, len(sizes), axis)
        places = places + number * TensorValue.dim(builder, stride)
    return places.broadcast(sizes)


def scattered_rows(
    builder: Legalizer, x: SSAValue, source: SSAValue, axis: int, places: TensorValue
) -> SSAValue:
    """`x` whose rows at `places` along an axis are those of `source`."""
    order = [axis, *(k for k in range(rank_of(x)) if k != axis)]
    back = [order.index(k) for k in range(rank_of(x))]
    index = places.reshape([places.dims[0], 1])
    moved, rows = builder.transpose(x, order), builder.transpose(source, order)
    return builder.transpose(builder.add(ScatterNdOp(moved, index.value, rows)), back)
