"""Data movement: operators that only choose where elements come from."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import broadcast, dims_of, rank_of, static_shape
from lowerdeck.dialects.dims import Expr, exprs
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.blocks import depth_to_space, space_to_depth
from lowerdeck.passes.legalize.common.movement import (
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
from lowerdeck.passes.legalize.sizes import (
    Axes,
    length_of,
    sizes_of,
)
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("Transpose")
def legalize_transpose(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x = builder.operand("data")
    permutation = builder.attrs.opt_ints("perm")
    return [builder.transpose(x, permutation or list(reversed(range(rank_of(x)))))]


@legalizes("Concat")
def legalize_concat(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Version 1 joins along axis 1 if nothing else is said."""
    inputs = builder.inputs
    axis = builder.attrs.int("axis", default=1 if op.since_version == 1 else None)
    return [concat(builder, inputs, builder.axis(axis, rank_of(inputs[0])))]


@legalizes("Split")
def legalize_split(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    Sizes from an operand (or, before version 13, an attribute), else equal parts.

    With `num_outputs` the last part is what is left.
    """
    x = builder.operand("input")
    axis = builder.axis(builder.attrs.int("axis", default=0), rank_of(x))
    sizes = _split_sizes(op, builder, dims_of(x)[axis])
    if len(sizes) != len(op.results):
        builder.refuse(f"{len(sizes)} sizes for {len(op.results)} outputs", "as many")
    return builder.split(x, axis, sizes)


def _split_sizes(op: OnnxOp, builder: OnnxLegalizer, dim: Expr) -> list[Expr]:
    count = len(op.results)
    if op.since_version < 13:
        numbers = builder.attrs.opt_ints("split")
        if numbers is not None:
            return [Expr.const(number) for number in numbers]
    if op.since_version != 2 and op.since_version != 11:
        value = builder.input("split")
        if value is not None:
            return sizes_of(builder, value, "the sizes of the parts")
    if op.since_version >= 18 and builder.attrs.opt_int("num_outputs") is not None:
        part = dim.ceildiv(count)
        return [*[part] * (count - 1), dim - part * (count - 1)]
    if dim.value is not None and dim.value % count:
        builder.refuse(f"{dim} elements in {count} equal parts", "a multiple")
    return [dim // count] * count


# Slices


@legalizes("Slice", until=9)
def legalize_slice_attributes(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x = builder.operand("data")
    starts, ends = builder.attrs.ints("starts"), builder.attrs.ints("ends")
    axes = builder.axes(builder.attrs.ints("axes", default=range(len(starts))), rank_of(x))
    return [sliced(builder, x, axes, exprs(starts), exprs(ends), exprs([1] * len(axes)))]


@legalizes("Slice", since=10)
def legalize_slice(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x = builder.operand("data")
    starts, ends = builder.operand("starts"), builder.operand("ends")
    given, steps = builder.input("axes"), builder.input("steps")
    lists = [value for value in (starts, ends, given, steps) if value is not None]
    # All are as long as the one of which that is known.
    known = next((value for value in lists if static_shape(value) is not None), starts)
    count = length_of(builder, known, "starts")
    starts, ends = (_as_long(builder, value, count) for value in (starts, ends))
    given, steps = (v if v is None else _as_long(builder, v, count) for v in (given, steps))
    if steps is None:
        steps = builder.tensor(np.ones(count, np.int64))
    axes = Axes(list(range(count))) if given is None else Axes.of(builder, given, rank_of(x))
    if axes.known is None or not signs_known(builder, steps):
        return [sliced_at_run_time(builder, x, axes, starts, ends, steps)]
    first, last, step = (builder.require_exprs(v, "a bound") for v in (starts, ends, steps))
    return [sliced(builder, x, axes.known, first, last, step, may_start_before=False)]


def _as_long(builder: OnnxLegalizer, value: SSAValue, count: int) -> SSAValue:
    return builder.reshape(value, [count]) if static_shape(value) is None else value


# Padding


@legalizes("Pad")
def legalize_pad(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Amounts are attributes before version 11; negative ones remove elements, and come first."""
    x = builder.operand("data")
    mode = builder.attrs.string("mode", among=("constant", "edge", "reflect", "wrap"))
    if op.since_version < 11:
        names = ("paddings" if op.since_version == 1 else "pads", "value")
        pads = [Expr.const(number) for number in builder.attrs.ints(names[0])]
        value = builder.scalar(builder.attrs.float(names[1]), x)
    else:
        pads = _pads(op, builder, rank_of(x))
        given = builder.input("constant_value")
        value = builder.scalar(0, x) if given is None else builder.reshape(given, [])
    if len(pads) != 2 * rank_of(x):
        builder.refuse(f"{len(pads)} amounts", f"{2 * rank_of(x)}")
    return [pad(builder, x, pads[: rank_of(x)], pads[rank_of(x) :], value, mode)]


def _pads(op: OnnxOp, builder: OnnxLegalizer, rank: int) -> list[Expr]:
    pads = builder.operand("pads")
    given = builder.input("axes") if op.since_version >= 18 else None
    if given is None:
        return builder.require_exprs(pads, "amounts")
    axes = Axes.of(builder, given, rank)
    if axes.known is None:
        both = TensorValue.of(builder, pads).reshape([2, axes.count])
        ends = [axes.spread(builder, both.pick(0, k), rank, 0) for k in range(2)]
        return [e for end in ends for e in builder.require_exprs(end.value, "amounts")]
    numbers = builder.require_exprs(pads, "amounts")
    if len(numbers) != 2 * len(axes.known):
        builder.refuse(f"{len(numbers)} amounts for {len(axes.known)} axes", "two an axis")
    spread = [Expr.const(0)] * (2 * rank)
    for k, axis in enumerate(axes.known):
        spread[axis], spread[rank + axis] = numbers[k], numbers[len(axes.known) + k]
    return spread


@legalizes("CenterCropPad")
def legalize_center_crop_pad(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Centered; of an odd difference the smaller half is before."""
    x = builder.operand("input_data")
    rank = rank_of(x)
    axes = builder.axes(builder.attrs.ints("axes", default=range(rank)), rank)
    targets = sizes_of(builder, builder.operand("shape"), "the shape")
    if len(targets) != len(axes):
        builder.refuse(f"{len(targets)} sizes for {len(axes)} axes", "as many")
    begin, end = [Expr.const(0)] * rank, [Expr.const(0)] * rank
    for axis, target in zip(axes, targets, strict=True):
        grow = positive_part(builder, target - dims_of(x)[axis])
        shrink = positive_part(builder, dims_of(x)[axis] - target)
        begin[axis] = grow // 2 - shrink // 2
        end[axis] = grow - shrink - begin[axis]
    return [pad(builder, x, begin, end)]


# Repetition


@legalizes("Expand")
def legalize_expand(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The shape and the input broadcast to each other."""
    x = builder.operand("input")
    shape = sizes_of(builder, builder.operand("shape"), "the shape")
    return [builder.broadcast(x, broadcast([dims_of(x), shape]))]


@legalizes("Tile", until=5)
def legalize_tile_axis(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Version 1 repeats along one axis."""
    x = builder.operand("input")
    tiles = sizes_of(builder, builder.operand("tiles"), "tiles")
    axes = builder.require_ints(builder.operand("axis"), "the axis")
    repeats: list[Expr] = [Expr.const(1)] * rank_of(x)
    repeats[builder.axis(axes[0], rank_of(x))] = tiles[0]
    return [tile(builder, x, repeats)]


@legalizes("Tile", since=6)
def legalize_tile(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x = builder.operand("input")
    repeats = sizes_of(builder, builder.operand("repeats"), "repeats")
    if len(repeats) != rank_of(x):
        builder.refuse(f"{len(repeats)} repeats", f"{rank_of(x)}")
    return [tile(builder, x, repeats)]


# Blocks


@legalizes("DepthToSpace")
def legalize_depth_to_space(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x, block = builder.operand("input"), _block_size(builder)
    mode = "DCR"
    if op.since_version >= 11:
        mode = builder.attrs.string("mode", among=("DCR", "CRD"))
    _image(builder, x)
    return [depth_to_space(builder, x, block, blocks_first=mode == "DCR")]


@legalizes("SpaceToDepth")
def legalize_space_to_depth(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x, block = builder.operand("input"), _block_size(builder)
    _image(builder, x)
    mode = "DCR"
    if op.since_version >= 28:
        mode = builder.attrs.string("mode", among=("DCR", "CRD"))
    return [space_to_depth(builder, x, block, blocks_first=mode == "DCR")]


def _block_size(builder: OnnxLegalizer) -> int:
    size = builder.attrs.int("blocksize")
    if size < 1:
        builder.refuse(f"blocksize {size}", "a number from 1 on")
    return size


def _image(builder: OnnxLegalizer, x: SSAValue) -> tuple[Expr, Expr, Expr, Expr]:
    if rank_of(x) != 4:
        builder.refuse(f"an input of rank {rank_of(x)}", "[N, C, H, W]")
    n, c, h, w = dims_of(x)
    return n, c, h, w
