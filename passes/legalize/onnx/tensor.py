"""Data movement: operators that only choose where elements come from."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import broadcast, dims_of, rank_of, static_shape
from lowerdeck.dialects.dims import Expr, exprs
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.movement import (
    concat,
    pad,
    positive_part,
    signs_known,
    sliced,
    sliced_at_run_time,
    tile,
)
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.sizes import (
    Axes,
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
    return lower.split(x, axis, sizes)


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
    return [sliced(lower, x, axes, exprs(starts), exprs(ends), exprs([1] * len(axes)))]


@legalizes("Slice", since=10)
def legalize_slice(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x = lower.operand("data")
    starts, ends = lower.operand("starts"), lower.operand("ends")
    given, steps = lower.input("axes"), lower.input("steps")
    lists = [value for value in (starts, ends, given, steps) if value is not None]
    # All are as long as the one of which that is known.
    known = next((value for value in lists if static_shape(value) is not None), starts)
    count = length_of(lower, known, "starts")
    starts, ends = (_as_long(lower, value, count) for value in (starts, ends))
    given, steps = (v if v is None else _as_long(lower, v, count) for v in (given, steps))
    if steps is None:
        steps = lower.tensor(np.ones(count, np.int64))
    axes = Axes(list(range(count))) if given is None else Axes.of(lower, given, rank_of(x))
    if axes.known is None or not signs_known(lower, steps):
        return [sliced_at_run_time(lower, x, axes, starts, ends, steps)]
    first, last, step = (lower.require_exprs(v, "a bound") for v in (starts, ends, steps))
    return [sliced(lower, x, axes.known, first, last, step, may_start_before=False)]


def _as_long(lower: OnnxLegalizer, value: SSAValue, count: int) -> SSAValue:
    return lower.reshape(value, [count]) if static_shape(value) is None else value


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
        grow = positive_part(lower, target - dims_of(x)[axis])
        shrink = positive_part(lower, dims_of(x)[axis] - target)
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


# Blocks


@legalizes("DepthToSpace")
def legalize_depth_to_space(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x, block = lower.operand("input"), _block_size(lower)
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
    x, block = lower.operand("input"), _block_size(lower)
    n, c, h, w = _image(lower, x)
    mode = "DCR"
    if op.since_version >= 28:
        mode = lower.attrs.string("mode", among=("DCR", "CRD"))
    apart = lower.reshape(x, [n, c, h // block, block, w // block, block])
    apart = lower.transpose(apart, [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4])
    return [lower.reshape(apart, [n, c * (block * block), h // block, w // block])]


def _block_size(lower: OnnxLegalizer) -> int:
    size = lower.attrs.int("blocksize")
    if size < 1:
        lower.refuse(f"blocksize {size}", "a number from 1 on")
    return size


def _image(lower: OnnxLegalizer, x: SSAValue) -> tuple[Expr, Expr, Expr, Expr]:
    if rank_of(x) != 4:
        lower.refuse(f"an input of rank {rank_of(x)}", "[N, C, H, W]")
    n, c, h, w = dims_of(x)
    return n, c, h, w
