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
from lowerdeck.passes.legalize.movement import concat, tile


@legalizes("Split")
def legalize_split(lower: CaffeLegalizer) -> Results:
    """The bottom several times: Caffe needs a copy for each reader."""
    return [lower.x] * len(lower.op.results)


@legalizes("Silence")
def legalize_silence(lower: CaffeLegalizer) -> Results:
    """Nothing: the layer only keeps blobs from being outputs."""
    return []


@legalizes("Concat")
def legalize_concat(lower: CaffeLegalizer) -> Results:
    p = lower.layer.concat_param
    axis = p.concat_dim if p.HasField("concat_dim") else p.axis
    return [concat(lower, lower.bottoms, lower.axis(axis, rank_of(lower.x)))]


@legalizes("Slice")
def legalize_slice(lower: CaffeLegalizer) -> Results:
    """Parts that begin at the slice points, or equal parts without them."""
    p = lower.layer.slice_param
    axis = lower.axis(p.slice_dim if p.HasField("slice_dim") else p.axis, rank_of(lower.x))
    size, count = lower.shape[axis], len(lower.op.results)
    if not p.slice_point:
        return lower.split(lower.x, axis, [size // count] * count)
    if len(p.slice_point) != count - 1:
        lower.refuse(f"{len(p.slice_point)} slice points", f"{count - 1}")
    bounds = [Expr.const(0), *map(Expr.const, p.slice_point), size]
    return lower.split(lower.x, axis, [high - low for low, high in pairwise(bounds)])


@legalizes("Crop")
def legalize_crop(lower: CaffeLegalizer) -> Results:
    """The part of the first bottom that begins at the offsets and is as large as the second."""
    p = lower.layer.crop_param
    reference = dims_of(lower.bottoms[1])
    rank = rank_of(lower.x)
    axis = lower.axis(p.axis, rank)
    offsets = list(p.offset) or [0]
    if len(offsets) not in (1, rank - axis):
        lower.refuse(f"{len(offsets)} offsets", f"1 or {rank - axis}")
    offsets = offsets * (rank - axis) if len(offsets) == 1 else offsets
    sizes = [*lower.shape[:axis], *reference[axis:]]
    return [lower.slice(lower.x, [0] * axis + offsets, sizes)]


@legalizes("Flatten")
def legalize_flatten(lower: CaffeLegalizer) -> Results:
    """The dimensions from axis to end_axis as one."""
    p, dims = lower.layer.flatten_param, lower.shape
    first, last = lower.axis(p.axis, len(dims)), lower.axis(p.end_axis, len(dims))
    middle = product(dims[first : last + 1])
    return [lower.reshape(lower.x, [*dims[:first], middle, *dims[last + 1 :]])]


@legalizes("Reshape")
def legalize_reshape(lower: CaffeLegalizer) -> Results:
    """
    `num_axes` dimensions from `axis` on (which may be behind the last) become those of the shape.

    There 0 stays as it is, and -1 is what is left.
    """
    p, dims = lower.layer.reshape_param, lower.shape
    start = p.axis if p.axis >= 0 else len(dims) + p.axis + 1
    end = len(dims) if p.num_axes == -1 else start + p.num_axes
    if not 0 <= start <= end <= len(dims):
        lower.refuse(f"axis {p.axis} and num_axes {p.num_axes}", f"dimensions of {len(dims)}")
    before, after = dims[:start], dims[end:]
    middle = [_given(lower, size, start + k) for k, size in enumerate(p.shape.dim)]
    known = product([*before, *(size for size in middle if size != -1), *after])
    whole = product(dims)
    filled = [whole // known if size == -1 else size for size in middle]
    return [lower.reshape(lower.x, [*before, *filled, *after])]


def _given(lower: CaffeLegalizer, size: int, axis: int) -> Expr:
    if size:
        return Expr.const(size)
    if axis >= len(lower.shape):
        lower.refuse(f"size 0 for dimension {axis}", f"one of {len(lower.shape)} to take it from")
    return lower.shape[axis]


@legalizes("Permute")
def legalize_permute(lower: CaffeLegalizer) -> Results:
    """Axes that are not named follow in their order."""
    return [lower.transpose(lower.x, permutation(lower.layer, rank_of(lower.x)))]


@legalizes("Tile")
def legalize_tile(lower: CaffeLegalizer) -> Results:
    p = lower.layer.tile_param
    repeats = [Expr.const(1)] * rank_of(lower.x)
    repeats[lower.axis(p.axis, len(repeats))] = Expr.const(p.tiles)
    return [tile(lower, lower.x, repeats)]


@legalizes("BatchReindex")
def legalize_batch_reindex(lower: CaffeLegalizer) -> Results:
    """The items that the second bottom lists."""
    return [rows(lower, lower.x, lower.bottoms[1])]


def rows(lower: CaffeLegalizer, table: SSAValue, index: SSAValue) -> SSAValue:
    """The parts of `table` along its first dimension at whole numbers that are stored as floats."""
    return lower.add(GatherOp(table, lower.cast(index, i64), 0))
