"""Data movement: operators that order, join, cut, pad or repeat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.passes.legalize.common.movement import concat, pad, rolled, tile
from lowerdeck.passes.legalize.sizes import sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


def axis_of(builder: Tf1Legalizer, name: str, rank: int) -> int:
    """The axis that an operand gives, counted from the front; refused if data decides it."""
    return builder.axis(builder.require_int(builder.operand(name), "the axis"), rank)


# Order


@legalizes("Transpose", "ConjugateTranspose")
def legalize_transpose(builder: Tf1Legalizer) -> Results:
    """Conjugating real numbers changes nothing."""
    x = builder.operand("x")
    return [builder.transpose(x, builder.require_ints(builder.operand("perm"), "a permutation"))]


@legalizes("Reverse")
def legalize_reverse(builder: Tf1Legalizer) -> Results:
    """The dimensions whose flag is set."""
    flags = builder.require_constant(builder.operand("dims"), "a choice of dimensions")
    return [builder.flip(builder.operand("tensor"), [k for k, flag in enumerate(flags) if flag])]


@legalizes("ReverseV2")
def legalize_reverse_axes(builder: Tf1Legalizer) -> Results:
    x = builder.operand("tensor")
    axes = builder.axes(builder.require_ints(builder.operand("axis"), "axes"), rank_of(x))
    return [builder.flip(x, axes)]


@legalizes("Roll")
def legalize_roll(builder: Tf1Legalizer) -> Results:
    """Elements move by the shift toward the end, and around; shifts of one axis add up."""
    x = builder.operand("input")
    shifts = builder.require_exprs(builder.operand("shift"), "a shift")
    axes = builder.require_ints(builder.operand("axis"), "axes")
    if len(axes) != len(shifts):
        builder.refuse(f"{len(shifts)} shifts", f"{len(axes)}, one for each axis")
    for axis, shift in zip(axes, shifts, strict=True):
        x = rolled(builder, x, builder.axis(axis, rank_of(x)), shift)
    return [x]


@legalizes("DataFormatVecPermute")
def legalize_permute_format(builder: Tf1Legalizer) -> Results:
    """A vector or rows of numbers for the dimensions of one format, in the order of another."""
    x = builder.operand("x")
    count = dims_of(x)[0].value
    source, target = (builder.attrs.string(f"{name}_format") for name in ("src", "dst"))
    if count == len(source) - 2:
        source, target = (_spatial_letters(text) for text in (source, target))
    _require_permutation(builder, source, target)
    if count != len(source):
        builder.refuse(f"{dims_of(x)[0]} numbers", f"{len(source)}, or the spatial ones")
    order = builder.tensor(np.array([source.index(letter) for letter in target]))
    return [builder.add(GatherOp(x, order, 0))]


@legalizes("DataFormatDimMap")
def legalize_map_format(builder: Tf1Legalizer) -> Results:
    """The places in one format of dimensions in another; negative ones count from the end."""
    source, target = (builder.attrs.string(f"{name}_format") for name in ("src", "dst"))
    _require_permutation(builder, source, target)
    x = TensorValue.of(builder, builder.operand("x"))
    table = TensorValue(builder, np.array([target.index(letter) for letter in source]))
    index = x.cast(i64) % len(source)
    found = TensorValue(builder, builder.add(GatherOp(table.value, index.value, 0)))
    return [found.cast(x.element).value]


def _spatial_letters(text: str) -> str:
    return "".join(letter for letter in text if letter not in "NC")


def _require_permutation(builder: Tf1Legalizer, source: str, target: str) -> None:
    if sorted(source) != sorted(target) or len(set(source)) != len(source):
        builder.refuse(f"formats {source} and {target}", "the same letters in two orders")


# Joining and cutting


@legalizes("Concat")
def legalize_concat_axis_first(builder: Tf1Legalizer) -> Results:
    values = builder.operands("values")
    return [concat(builder, values, axis_of(builder, "concat_dim", rank_of(values[0])))]


@legalizes("ConcatV2")
def legalize_concat(builder: Tf1Legalizer) -> Results:
    values = builder.operands("values")
    return [concat(builder, values, axis_of(builder, "axis", rank_of(values[0])))]


@legalizes("ParallelConcat")
def legalize_parallel_concat(builder: Tf1Legalizer) -> Results:
    """Along the first axis, of parts whose first dimension is one."""
    return [concat(builder, builder.operands("values"), 0)]


@legalizes("Pack")
def legalize_pack(builder: Tf1Legalizer) -> Results:
    """Tensors of one shape along a new axis."""
    values = builder.operands("values")
    axis = builder.axis(builder.attrs.int("axis"), rank_of(values[0]) + 1)
    return [concat(builder, [builder.unsqueeze(value, [axis]) for value in values], axis)]


@legalizes("Unpack")
def legalize_unpack(builder: Tf1Legalizer) -> Results:
    x, count = builder.operand("value"), builder.attrs.int("num")
    axis = builder.axis(builder.attrs.int("axis"), rank_of(x))
    if (size := dims_of(x)[axis].value) not in (None, count):
        builder.refuse(f"dimension {axis} of {size}", f"{count}")
    parts = builder.split(x, axis, [1] * count) if count else []
    return [builder.squeeze(part, [axis]) for part in parts]


@legalizes("Split")
def legalize_split(builder: Tf1Legalizer) -> Results:
    """Equal parts."""
    x, count = builder.operand("value"), builder.attrs.int("num_split")
    axis = axis_of(builder, "split_dim", rank_of(x))
    dim = dims_of(x)[axis]
    if dim.value is not None and dim.value % count:
        builder.refuse(f"{dim} elements in {count} equal parts", "a multiple")
    return builder.split(x, axis, [dim // count] * count)


@legalizes("SplitV")
def legalize_split_sizes(builder: Tf1Legalizer) -> Results:
    """One size may be -1: what the others leave."""
    builder.attrs.ignore("num_split")
    x = builder.operand("value")
    axis = axis_of(builder, "split_dim", rank_of(x))
    given = TensorValue.of(builder, builder.operand("size_splits")).cast(i64)
    is_rest = given.eq(-1)
    zero = TensorValue.number(builder, 0, i64)
    rest = TensorValue.dim(builder, dims_of(x)[axis]) - is_rest.where(zero, given).reduce(
        "sum", [0]
    )
    sizes = sizes_of(builder, is_rest.where(rest, given).value, "the sizes of the parts")
    if len(sizes) != len(builder.op.outputs):
        builder.refuse(f"{len(sizes)} sizes for {len(builder.op.outputs)} outputs", "as many")
    return builder.split(x, axis, sizes)


# Padding


@legalizes("Pad")
def legalize_pad(builder: Tf1Legalizer) -> Results:
    begin, end = _paddings(builder, "paddings", rank_of(builder.operand("input")))
    return [pad(builder, builder.operand("input"), begin, end)]


@legalizes("PadV2")
def legalize_pad_value(builder: Tf1Legalizer) -> Results:
    begin, end = _paddings(builder, "paddings", rank_of(builder.operand("input")))
    value = builder.reshape(builder.operand("constant_values"), [])
    return [pad(builder, builder.operand("input"), begin, end, value)]


def _paddings(builder: Tf1Legalizer, name: str, count: int) -> tuple[list[Expr], list[Expr]]:
    """The amounts before and after, from an operand of shape [count, 2]."""
    amounts = sizes_of(builder, builder.operand(name), "amounts")
    if dims_of(builder.operand(name)) != (count, 2):
        builder.refuse(f"'{name}' of type {builder.operand(name).type}", f"the shape [{count}, 2]")
    return amounts[::2], amounts[1::2]


@legalizes("MirrorPad")
def legalize_mirror_pad(builder: Tf1Legalizer) -> Results:
    return [mirrored(builder, builder.operand("input"))]


def mirrored(builder: Tf1Legalizer, x: SSAValue) -> SSAValue:
    """`x` padded as `paddings` and `mode` say: SYMMETRIC repeats the border, REFLECT does not."""
    begin, end = _paddings(builder, "paddings", rank_of(x))
    if builder.attrs.string("mode", among=("REFLECT", "SYMMETRIC")) == "REFLECT":
        return pad(builder, x, begin, end, mode="reflect")
    for axis, (before, after) in enumerate(zip(begin, end, strict=True)):
        x = _symmetric(builder, x, axis, before, after)
    return x


def _symmetric(
    builder: Tf1Legalizer, x: SSAValue, axis: int, before: Expr, after: Expr
) -> SSAValue:
    """`x` with its first and last elements in reverse around it."""
    parts = [x]
    if before != 0:
        parts.insert(0, _backward(builder, x, axis, before - 1, before))
    if after != 0:
        parts.append(_backward(builder, x, axis, dims_of(x)[axis] - 1, after))
    return concat(builder, parts, axis)


def _backward(builder: Tf1Legalizer, x: SSAValue, axis: int, start: Expr, count: Expr) -> SSAValue:
    starts, steps = [Expr.const(0)] * rank_of(x), [1] * rank_of(x)
    sizes = list(dims_of(x))
    starts[axis], sizes[axis], steps[axis] = start, count, -1
    return builder.slice(x, starts, sizes, steps)


# Repetition


@legalizes("Tile")
def legalize_tile(builder: Tf1Legalizer) -> Results:
    x = builder.operand("input")
    repeats = sizes_of(builder, builder.operand("multiples"), "repeats")
    if len(repeats) != rank_of(x):
        builder.refuse(f"{len(repeats)} repeats", f"{rank_of(x)}")
    return [tile(builder, x, repeats)]


@legalizes("BroadcastTo")
def legalize_broadcast_to(builder: Tf1Legalizer) -> Results:
    shape = sizes_of(builder, builder.operand("shape"), "the shape")
    return [builder.broadcast(builder.operand("input"), shape)]


# Blocks


def _block_amounts(builder: Tf1Legalizer, name: str, count: int) -> tuple[list[Expr], list[Expr]]:
    """The amounts for the `count` dimensions after the first, which are cut in blocks."""
    rank = rank_of(builder.operand("input"))
    if not 0 < count < rank:
        builder.refuse(f"blocks of {count} dimensions", f"1 to {rank - 1}")
    return _paddings(builder, name, count)


@legalizes("SpaceToBatchND")
def legalize_space_to_batch_nd(builder: Tf1Legalizer) -> Results:
    blocks = sizes_of(builder, builder.operand("block_shape"), "a block")
    return [_space_to_batch(builder, blocks)]


@legalizes("SpaceToBatch")
def legalize_space_to_batch(builder: Tf1Legalizer) -> Results:
    """Square blocks of [N, H, W, C]."""
    return [_space_to_batch(builder, [Expr.const(builder.attrs.int("block_size"))] * 2)]


def _space_to_batch(builder: Tf1Legalizer, blocks: Sequence[Expr]) -> SSAValue:
    """Padded, then the places in blocks of the dimensions after the first go before the batch."""
    x, count = builder.operand("input"), len(blocks)
    begin, end = _block_amounts(builder, "paddings", count)
    rest = [Expr.const(0)] * (rank_of(x) - 1 - count)
    zero = [Expr.const(0)]
    x = pad(builder, x, [*zero, *begin, *rest], [*zero, *end, *rest])
    dims = dims_of(x)
    apart: list[ExprLike] = [dims[0]]
    for dim, block in zip(dims[1:], blocks, strict=False):
        if None not in (dim.value, block.value) and dim % block != 0:
            builder.refuse(f"{dim} padded elements in blocks of {block}", "a multiple")
        apart += [dim // block, block]
    x = builder.reshape(x, [*apart, *dims[1 + count :]])
    inner = [2 + 2 * k for k in range(count)]
    outer = [1 + 2 * k for k in range(count)]
    x = builder.transpose(x, [*inner, 0, *outer, *range(1 + 2 * count, rank_of(x))])
    batch = dims[0]
    for block in blocks:
        batch = batch * block
    return builder.reshape(x, [batch, *apart[1::2], *dims[1 + count :]])


@legalizes("BatchToSpaceND")
def legalize_batch_to_space_nd(builder: Tf1Legalizer) -> Results:
    return [_batch_to_space(builder, sizes_of(builder, builder.operand("block_shape"), "a block"))]


@legalizes("BatchToSpace")
def legalize_batch_to_space(builder: Tf1Legalizer) -> Results:
    """Square blocks of [N, H, W, C]."""
    return [_batch_to_space(builder, [Expr.const(builder.attrs.int("block_size"))] * 2)]


def _batch_to_space(builder: Tf1Legalizer, blocks: Sequence[Expr]) -> SSAValue:
    """The inverse of `_space_to_batch`: amounts are cropped at the end."""
    x, count = builder.operand("input"), len(blocks)
    begin, end = _block_amounts(builder, "crops", count)
    dims = dims_of(x)
    batch = dims[0]
    for block in blocks:
        batch = batch // block
    x = builder.reshape(x, [*blocks, batch, *dims[1:]])
    order = [count]
    for k in range(count):
        order += [count + 1 + k, k]
    x = builder.transpose(x, [*order, *range(1 + 2 * count, rank_of(x))])
    sizes = [dim * block for dim, block in zip(dims[1:], blocks, strict=False)]
    whole = [batch, *sizes, *dims[1 + count :]]
    x = builder.reshape(x, whole)
    starts: list[ExprLike] = [0, *begin, *[0] * (rank_of(x) - 1 - count)]
    cropped = [size - b - e for size, b, e in zip(sizes, begin, end, strict=True)]
    return builder.slice(x, starts, [batch, *cropped, *whole[1 + count :]])


@legalizes("SpaceToDepth")
def legalize_space_to_depth(builder: Tf1Legalizer) -> Results:
    x, block = builder.operand("input"), builder.attrs.int("block_size")
    n, h, w, c = _image(builder, x)
    h, w = h // block, w // block
    if _is_channels_first(builder):
        apart = builder.reshape(x, [n, c, h, block, w, block])
        apart = builder.transpose(apart, [0, 3, 5, 1, 2, 4])
        return [builder.reshape(apart, [n, c * (block * block), h, w])]
    apart = builder.transpose(builder.reshape(x, [n, h, block, w, block, c]), [0, 1, 3, 2, 4, 5])
    return [builder.reshape(apart, [n, h, w, c * (block * block)])]


@legalizes("DepthToSpace")
def legalize_depth_to_space(builder: Tf1Legalizer) -> Results:
    x, block = builder.operand("input"), builder.attrs.int("block_size")
    n, h, w, c = _image(builder, x)
    depth = c // (block * block)
    if _is_channels_first(builder):
        apart = builder.reshape(x, [n, block, block, depth, h, w])
        apart = builder.transpose(apart, [0, 3, 4, 1, 5, 2])
        return [builder.reshape(apart, [n, depth, h * block, w * block])]
    apart = builder.transpose(
        builder.reshape(x, [n, h, w, block, block, depth]), [0, 1, 3, 2, 4, 5]
    )
    return [builder.reshape(apart, [n, h * block, w * block, depth])]


def _is_channels_first(builder: Tf1Legalizer) -> bool:
    return builder.attrs.string("data_format", among=("NHWC", "NCHW")) == "NCHW"


def _image(builder: Tf1Legalizer, x: SSAValue) -> tuple[Expr, Expr, Expr, Expr]:
    """N, H, W and C."""
    if rank_of(x) != 4:
        builder.refuse(f"an input of rank {rank_of(x)}", "4")
    dims = dims_of(x)
    if _is_channels_first(builder):
        return dims[0], dims[2], dims[3], dims[1]
    return dims[0], dims[1], dims[2], dims[3]
