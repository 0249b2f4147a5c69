"""Data movement: operators that only choose where elements come from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ConcatOp, PadOp
from lowerdeck.dialects.core.types import broadcast, dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike, exprs, maximum, minimum
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.sizes import (
    UNBOUNDED,
    Axes,
    from_front,
    is_nonnegative,
    length_of,
    sizes_of,
)


@legalizes("Transpose")
def legalize_transpose(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x = lower.operand("data")
    permutation = lower.attrs.opt_ints("perm")
    return [lower.transpose(x, permutation or list(reversed(range(rank_of(x)))))]


@legalizes("Concat")
def legalize_concat(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Version 1 joins along axis 1 if nothing else is said."""
    inputs = lower.inputs
    axis = lower.attrs.int("axis", default=1 if op.since_version == 1 else None)
    return [concat(lower, inputs, lower.axis(axis, rank_of(inputs[0])))]


def concat(lower: OnnxLegalizer, values: Sequence[SSAValue], axis: int) -> SSAValue:
    """Tensors joined along an axis."""
    return values[0] if len(values) == 1 else lower.add(ConcatOp(values, axis))


@legalizes("Split")
def legalize_split(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    Sizes from an operand (or, before version 13, an attribute), else equal parts.

    With `num_outputs` the last part is what is left.
    """
    x = lower.operand("input")
    axis = lower.axis(lower.attrs.int("axis", default=0), rank_of(x))
    sizes = _split_sizes(op, lower, dims_of(x)[axis])
    if len(sizes) != len(op.results):
        lower.refuse(f"{len(sizes)} sizes for {len(op.results)} outputs", "as many")
    return split(lower, x, axis, sizes)


def split(lower: OnnxLegalizer, x: SSAValue, axis: int, sizes: Sequence[Expr]) -> list[SSAValue]:
    """Consecutive parts of `x`."""
    total = sum(sizes, Expr.const(0))
    if None not in (total.value, dims_of(x)[axis].value) and total != dims_of(x)[axis]:
        lower.refuse(f"parts of {total} elements together", f"{dims_of(x)[axis]}")
    parts: list[SSAValue] = []
    start = Expr.const(0)
    for size in sizes:
        parts.append(lower.slice_axis(x, axis, start, size))
        start = start + size
    return parts


def _split_sizes(op: OnnxOp, lower: OnnxLegalizer, dim: Expr) -> list[Expr]:
    count = len(op.results)
    if op.since_version < 13:
        numbers = lower.attrs.opt_ints("split")
        if numbers is not None:
            return [Expr.const(number) for number in numbers]
    if op.since_version != 2 and op.since_version != 11:
        value = lower.input("split")
        if value is not None:
            return sizes_of(lower, value, "the sizes of the parts")
    if op.since_version >= 18 and lower.attrs.opt_int("num_outputs") is not None:
        part = dim.ceildiv(count)
        return [*[part] * (count - 1), dim - part * (count - 1)]
    if dim.value is not None and dim.value % count:
        lower.refuse(f"{dim} elements in {count} equal parts", "a multiple")
    return [dim // count] * count


# Slices


@legalizes("Slice", until=9)
def legalize_slice_attributes(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x = lower.operand("data")
    starts, ends = lower.attrs.ints("starts"), lower.attrs.ints("ends")
    axes = lower.axes(lower.attrs.ints("axes", default=range(len(starts))), rank_of(x))
    return [_sliced(lower, x, axes, exprs(starts), exprs(ends), exprs([1] * len(axes)))]


@legalizes("Slice", since=10)
def legalize_slice(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x = lower.operand("data")
    starts, ends = lower.operand("starts"), lower.operand("ends")
    given, steps = lower.input("axes"), lower.input("steps")
    count = length_of(lower, starts, "starts")
    if steps is None:
        steps = lower.tensor(np.ones(count, np.int64))
    axes = Axes(list(range(count))) if given is None else Axes.of(lower, given, rank_of(x))
    if axes.known is None or not _signs_known(lower, steps):
        return [_sliced_at_run_time(lower, x, axes, starts, ends, steps)]
    first, last, step = (lower.require_exprs(v, "a bound") for v in (starts, ends, steps))
    return [_sliced(lower, x, axes.known, first, last, step)]


def _signs_known(lower: OnnxLegalizer, steps: SSAValue) -> bool:
    elements = lower.symbols.elements(steps)
    if elements is None:
        return False
    return all(step is not None and _sign(lower, step) for step in elements.reshape(-1))


def _sign(lower: OnnxLegalizer, step: Expr) -> int:
    """1 or -1; 0 if it is not known."""
    if is_nonnegative(lower, step - 1):
        return 1
    return -1 if is_nonnegative(lower, -step - 1) else 0


def _sliced(
    lower: OnnxLegalizer,
    x: SSAValue,
    axes: Sequence[int],
    starts: Sequence[Expr],
    ends: Sequence[Expr],
    steps: Sequence[Expr],
) -> SSAValue:
    if not len(axes) == len(starts) == len(ends) == len(steps):
        lower.refuse(f"{len(starts)} starts, {len(ends)} ends, {len(steps)} steps", f"{len(axes)}")
    all_starts: list[ExprLike] = [0] * rank_of(x)
    all_steps: list[ExprLike] = [1] * rank_of(x)
    sizes = list(dims_of(x))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        dim = sizes[axis]
        bounds = _forward if _sign(lower, step) > 0 else _backward
        all_starts[axis], sizes[axis] = bounds(lower, dim, start, end, step)
        all_steps[axis] = step
    return lower.slice(x, all_starts, sizes, all_steps)


def _forward(
    lower: OnnxLegalizer, dim: Expr, start: Expr, end: Expr, step: Expr
) -> tuple[Expr, Expr]:
    """
    First element and number of elements of start:end:step for a positive step.

    A start past the end is left as it is: then there are no elements.
    """
    first, last = from_front(lower, start, dim), _forward_end(lower, dim, end)
    distance = last - first
    if not is_nonnegative(lower, first):
        first, distance = maximum(first, 0), minimum(distance, last)
    return _counted(lower, first, distance, step)


def _forward_end(lower: OnnxLegalizer, dim: Expr, end: Expr) -> Expr:
    if end.value is not None and end.value >= UNBOUNDED:
        return dim
    last = from_front(lower, end, dim)
    return dim if is_nonnegative(lower, last - dim) else _at_most(lower, last, dim)


def _backward(
    lower: OnnxLegalizer, dim: Expr, start: Expr, end: Expr, step: Expr
) -> tuple[Expr, Expr]:
    """First element and number of elements of start:end:step for a negative step."""
    if start == -1 or (start.value is not None and start.value >= UNBOUNDED):
        first = dim - 1
    else:
        first = from_front(lower, start, dim)
        first = first if is_nonnegative(lower, first) else maximum(first, 0)
        first = _at_most(lower, first, dim - 1)
    if end.value is not None and end.value <= -UNBOUNDED:
        last = Expr.const(-1)
    else:
        last = from_front(lower, end, dim)
        last = last if is_nonnegative(lower, last + 1) else maximum(last, -1)
    return _counted(lower, first, first - last, -step)


def _counted(lower: OnnxLegalizer, first: Expr, distance: Expr, step: Expr) -> tuple[Expr, Expr]:
    """`first`, and how many elements `step` apart lie in a distance."""
    count = distance.ceildiv(step)
    if not is_nonnegative(lower, distance):
        count = maximum(count, 0)
    return (Expr.const(0), count) if count == 0 else (first, count)


def _at_most(lower: OnnxLegalizer, index: Expr, limit: Expr) -> Expr:
    return index if is_nonnegative(lower, limit - index) else minimum(index, limit)


def _sliced_at_run_time(
    lower: OnnxLegalizer,
    x: SSAValue,
    axes: Axes,
    starts: SSAValue,
    ends: SSAValue,
    steps: SSAValue,
) -> SSAValue:
    """Axes or directions come from data: everything is resolved by arithmetic on vectors."""
    rank = rank_of(x)
    if axes.known is not None:
        axes = Axes(None, Quantity(lower, np.array(axes.known, np.int64)))
    first, last, step = (
        axes.spread(lower, Quantity.of(lower, value), rank, fill)
        for value, fill in ((starts, 0), (ends, np.iinfo(np.int64).max), (steps, 1))
    )
    dims = Quantity(lower, lower.dims(dims_of(x)))
    back = step.lt(0)
    zero = Quantity.number(lower, 0, i64)
    low = back.where(Quantity.number(lower, -1, i64), zero)
    high = back.where(dims - 1, dims)
    # The lowest end for a negative step stays below every index that counts from the end.
    first = first.lt(0).where(first + dims, first).clip(low.maximum(0), high)
    last = last.lt(0).where(last.maximum(-UNBOUNDED) + dims, last).clip(low, high)
    stride = step.abs().maximum(1)
    distance = back.where(first - last, last - first).maximum(0)
    sizes = (distance + stride - 1) // stride
    return lower.slice(
        x,
        lower.require_exprs(first.value, "starts"),
        sizes_of(lower, sizes.value, "sizes"),
        lower.require_exprs(step.value, "steps"),
    )


# Padding


@legalizes("Pad")
def legalize_pad(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Amounts are attributes before version 11; negative ones remove elements, and come first."""
    x = lower.operand("data")
    mode = lower.attrs.string("mode", among=("constant", "edge", "reflect", "wrap"))
    if op.since_version < 11:
        names = ("paddings" if op.since_version == 1 else "pads", "value")
        pads = [Expr.const(number) for number in lower.attrs.ints(names[0])]
        value = lower.scalar(lower.attrs.float(names[1]), x)
    else:
        pads = _pads(op, lower, rank_of(x))
        given = lower.input("constant_value")
        value = lower.scalar(0, x) if given is None else lower.reshape(given, [])
    if len(pads) != 2 * rank_of(x):
        lower.refuse(f"{len(pads)} amounts", f"{2 * rank_of(x)}")
    return [pad(lower, x, pads[: rank_of(x)], pads[rank_of(x) :], value, mode)]


def _pads(op: OnnxOp, lower: OnnxLegalizer, rank: int) -> list[Expr]:
    pads = lower.operand("pads")
    given = lower.input("axes") if op.since_version >= 18 else None
    if given is None:
        return lower.require_exprs(pads, "amounts")
    axes = Axes.of(lower, given, rank)
    if axes.known is None:
        both = Quantity.of(lower, pads).reshape([2, axes.count])
        ends = [axes.spread(lower, both.pick(0, k), rank, 0) for k in range(2)]
        return [e for end in ends for e in lower.require_exprs(end.value, "amounts")]
    numbers = lower.require_exprs(pads, "amounts")
    if len(numbers) != 2 * len(axes.known):
        lower.refuse(f"{len(numbers)} amounts for {len(axes.known)} axes", "two an axis")
    spread = [Expr.const(0)] * (2 * rank)
    for k, axis in enumerate(axes.known):
        spread[axis], spread[rank + axis] = numbers[k], numbers[len(axes.known) + k]
    return spread


def pad(
    lower: OnnxLegalizer,
    x: SSAValue,
    begin: Sequence[Expr],
    end: Sequence[Expr],
    value: SSAValue | None = None,
    mode: str = "constant",
) -> SSAValue:
    """`x` with elements added, or removed by negative amounts, which comes first."""
    cut_begin, cut_end = ([_positive(lower, -amount) for amount in side] for side in (begin, end))
    sizes = [d - b - e for d, b, e in zip(dims_of(x), cut_begin, cut_end, strict=True)]
    x = lower.slice(x, cut_begin, sizes)
    begin, end = ([_positive(lower, amount) for amount in side] for side in (begin, end))
    if all(amount == 0 for amount in (*begin, *end)):
        return x
    if mode != "constant":
        return lower.add(PadOp(x, begin, end, None, mode))
    return lower.add(PadOp(x, begin, end, lower.scalar(0, x) if value is None else value))


def _positive(lower: OnnxLegalizer, amount: Expr) -> Expr:
    if is_nonnegative(lower, -amount):
        return Expr.const(0)
    return amount if is_nonnegative(lower, amount) else maximum(amount, 0)


@legalizes("CenterCropPad")
def legalize_center_crop_pad(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Centered; of an odd difference the smaller half is before."""
    x = lower.operand("input_data")
    rank = rank_of(x)
    axes = lower.axes(lower.attrs.ints("axes", default=range(rank)), rank)
    targets = sizes_of(lower, lower.operand("shape"), "the shape")
    if len(targets) != len(axes):
        lower.refuse(f"{len(targets)} sizes for {len(axes)} axes", "as many")
    begin, end = [Expr.const(0)] * rank, [Expr.const(0)] * rank
    for axis, target in zip(axes, targets, strict=True):
        grow = _positive(lower, target - dims_of(x)[axis])
        shrink = _positive(lower, dims_of(x)[axis] - target)
        begin[axis] = grow // 2 - shrink // 2
        end[axis] = grow - shrink - begin[axis]
    return [pad(lower, x, begin, end)]


# Repetition


@legalizes("Expand")
def legalize_expand(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The shape and the input broadcast to each other."""
    x = lower.operand("input")
    shape = sizes_of(lower, lower.operand("shape"), "the shape")
    return [lower.broadcast(x, broadcast([dims_of(x), shape]))]


@legalizes("Tile", until=5)
def legalize_tile_axis(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Version 1 repeats along one axis."""
    x = lower.operand("input")
    tiles = sizes_of(lower, lower.operand("tiles"), "tiles")
    axes = lower.require_ints(lower.operand("axis"), "the axis")
    repeats: list[Expr] = [Expr.const(1)] * rank_of(x)
    repeats[lower.axis(axes[0], rank_of(x))] = tiles[0]
    return [tile(lower, x, repeats)]


@legalizes("Tile", since=6)
def legalize_tile(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x = lower.operand("input")
    repeats = sizes_of(lower, lower.operand("repeats"), "repeats")
    if len(repeats) != rank_of(x):
        lower.refuse(f"{len(repeats)} repeats", f"{rank_of(x)}")
    return [tile(lower, x, repeats)]


def tile(lower: OnnxLegalizer, x: SSAValue, repeats: Sequence[Expr]) -> SSAValue:
    """`x` repeated along each dimension."""
    dims = dims_of(x)
    inner: list[ExprLike] = []
    outer: list[ExprLike] = []
    for dim, repeat in zip(dims, repeats, strict=True):
        if repeat != 1:
            inner.append(1)
            outer.append(repeat)
        inner.append(dim)
        outer.append(dim)
    wide = lower.broadcast(lower.reshape(x, inner), outer)
    return lower.reshape(wide, [dim * repeat for dim, repeat in zip(dims, repeats, strict=True)])


# Blocks


@legalizes("DepthToSpace")
def legalize_depth_to_space(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x, block = lower.operand("input"), lower.attrs.int("blocksize")
    mode = "DCR"
    if op.since_version >= 11:
        mode = lower.attrs.string("mode", among=("DCR", "CRD"))
    n, c, h, w = _image(lower, x)
    depth = c // (block * block)
    if mode == "DCR":
        apart = lower.reshape(x, [n, block, block, depth, h, w])
        apart = lower.transpose(apart, [0, 3, 4, 1, 5, 2])
    else:
        apart = lower.reshape(x, [n, depth, block, block, h, w])
        apart = lower.transpose(apart, [0, 1, 4, 2, 5, 3])
    return [lower.reshape(apart, [n, depth, h * block, w * block])]


@legalizes("SpaceToDepth")
def legalize_space_to_depth(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x, block = lower.operand("input"), lower.attrs.int("blocksize")
    n, c, h, w = _image(lower, x)
    mode = "DCR"
    if op.since_version >= 28:
        mode = lower.attrs.string("mode", among=("DCR", "CRD"))
    apart = lower.reshape(x, [n, c, h // block, block, w // block, block])
    apart = lower.transpose(apart, [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4])
    return [lower.reshape(apart, [n, c * (block * block), h // block, w // block])]


def _image(lower: OnnxLegalizer, x: SSAValue) -> tuple[Expr, Expr, Expr, Expr]:
    if rank_of(x) != 4:
        lower.refuse(f"an input of rank {rank_of(x)}", "[N, C, H, W]")
    n, c, h, w = dims_of(x)
    return n, c, h, w
