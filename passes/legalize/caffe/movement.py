"""Layers that only choose where elements come from."""

from __future__ import annotations

from itertools import pairwise

from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.shapes import permutation
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.common.movement import concat, tile


@legalizes("Split")
def legalize_split(builder: CaffeLegalizer) -> Results:
    """The bottom several times: Caffe needs a copy for each reader."""
    return [builder.x] * len(builder.op.results)


@legalizes("Silence", "HDF5Output")
def legalize_silence(builder: CaffeLegalizer) -> Results:
    """Nothing: the layer only keeps blobs from being outputs, or writes them to a file."""
    return []


@legalizes("Concat")
def legalize_concat(builder: CaffeLegalizer) -> Results:
    p = builder.layer.concat_param
    axis = p.concat_dim if p.HasField("concat_dim") else p.axis
    return [concat(builder, builder.bottoms, builder.axis(axis, rank_of(builder.x)))]


@legalizes("Slice")
def legalize_slice(builder: CaffeLegalizer) -> Results:
    """Parts that begin at the slice points, or equal parts without them."""
    p = builder.layer.slice_param
    axis = builder.axis(p.slice_dim if p.HasField("slice_dim") else p.axis, rank_of(builder.x))
    size, count = builder.shape[axis], len(builder.op.results)
    if not p.slice_point:
        return builder.split(builder.x, axis, [size // count] * count)
    if len(p.slice_point) != count - 1:
        builder.refuse(f"{len(p.slice_point)} slice points", f"{count - 1}")
    bounds = [Expr.const(0), *map(Expr.const, p.slice_point), size]
    return builder.split(builder.x, axis, [high - low for low, high in pairwise(bounds)])


@legalizes("Crop")
def legalize_crop(builder: CaffeLegalizer) -> Results:
    """The part of the first bottom that begins at the offsets and is as large as the second."""
    p = builder.layer.crop_param
    reference = dims_of(builder.bottoms[1])
    rank = rank_of(builder.x)
    axis = builder.axis(p.axis, rank)
    offsets = list(p.offset) or [0]
    if len(offsets) not in (1, rank - axis):
        builder.refuse(f"{len(offsets)} offsets", f"1 or {rank - axis}")
    offsets = offsets * (rank - axis) if len(offsets) == 1 else offsets
    sizes = [*builder.shape[:axis], *reference[axis:]]
    return [builder.slice(builder.x, [0] * axis + offsets, sizes)]


@legalizes("Flatten")
def legalize_flatten(builder: CaffeLegalizer) -> Results:
    """The dimensions from axis to end_axis as one."""
    p, dims = builder.layer.flatten_param, builder.shape
    first, last = builder.axis(p.axis, len(dims)), builder.axis(p.end_axis, len(dims))
    middle = product(dims[first : last + 1])
    return [builder.reshape(builder.x, [*dims[:first], middle, *dims[last + 1 :]])]


@legalizes("Reshape")
def legalize_reshape(builder: CaffeLegalizer) -> Results:
    """
    `num_axes` dimensions from `axis` on (which may be behind the last) become those of the shape.

    There 0 stays as it is, and -1 is what is left.
    """
    p, dims = builder.layer.reshape_param, builder.shape
    start = p.axis if p.axis >= 0 else len(dims) + p.axis + 1
    end = len(dims) if p.num_axes == -1 else start + p.num_axes
    if not 0 <= start <= end <= len(dims):
        builder.refuse(f"axis {p.axis} and num_axes {p.num_axes}", f"dimensions of {len(dims)}")
    before, after = dims[:start], dims[end:]
    middle = [_given(builder, size, start + k) for k, size in enumerate(p.shape.dim)]
    known = product([*before, *(size for size in middle if size != -1), *after])
    whole = product(dims)
    filled = [whole // known if size == -1 else size for size in middle]
    return [builder.reshape(builder.x, [*before, *filled, *after])]


def _given(builder: CaffeLegalizer, size: int, axis: int) -> Expr:
    if size:
        return Expr.const(size)
    if axis >= len(builder.shape):
        builder.refuse(
            f"size 0 for dimension {axis}", f"one of {len(builder.shape)} to take it from"
        )
    return builder.shape[axis]


@legalizes("Permute")
def legalize_permute(builder: CaffeLegalizer) -> Results:
    """Axes that are not named follow in their order."""
    return [builder.transpose(builder.x, permutation(builder.layer, rank_of(builder.x)))]


@legalizes("Tile")
def legalize_tile(builder: CaffeLegalizer) -> Results:
    p = builder.layer.tile_param
    repeats = [Expr.const(1)] * rank_of(builder.x)
    repeats[builder.axis(p.axis, len(repeats))] = Expr.const(p.tiles)
    return [tile(builder, builder.x, repeats)]


@legalizes("BatchReindex")
def legalize_batch_reindex(builder: CaffeLegalizer) -> Results:
    """The items that the second bottom lists."""
    return [rows(builder, builder.x, builder.bottoms[1])]


def rows(builder: CaffeLegalizer, table: SSAValue, index: SSAValue) -> SSAValue:
    """The parts of `table` along its first dimension at whole numbers that are stored as floats."""
    return builder.add(GatherOp(table, builder.cast(index, i64), 0))
