"""Pools over the bins of regions: one region after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

import numpy as np
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i64, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.special import rounded
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.legalize.tensor_value import LIMIT, TensorValue


def largest_of_bins(
    builder: CoreBuilder, x: SSAValue, rois: SSAValue, scale: float, size: Sequence[int]
) -> SSAValue:
    """
    The maximum over each bin of the regions [image, left, top, right, bottom] of x [N, C, H, W],
    whose corners are rounded; a bin without elements is zero. NaN is passed over.
    """
    regions = _columns(builder, rois)
    left, top, right, bottom = (rounded(part * scale) for part in regions[1:])
    height, width = dims_of(x)[2:]
    rows = _bins(top, (bottom - top + 1).maximum(1), size[0], height, whole=True)
    columns = _bins(left, (right - left + 1).maximum(1), size[1], width, whole=True)

    def pooled(image: TensorValue, tall: TensorValue, wide: TensorValue) -> TensorValue:
        channels = image.dims[0]
        image = image.eq(image).where(image, -np.inf)
        down = tall.reshape([1, size[0], height, 1])
        image = down.where(image.reshape([channels, 1, height, width]), -np.inf)
        image = image.reduce("max", [2]).reshape([channels, size[0], 1, width])
        across = wide.reshape([1, 1, size[1], width])
        found = across.where(image, -np.inf).reduce("max", [3])
        filled = _counts(tall).reshape([1, size[0], 1]) * _counts(wide)
        return filled.gt(0).where(found, 0)

    return _for_each(builder, x, regions[0], rows, columns, pooled)


def means_of_bins(
    builder: CoreBuilder, x: SSAValue, rois: SSAValue, scale: float, channels: int, size: int
) -> SSAValue:
    """
    The average over each of `size` by `size` bins of the regions, of the channel that belongs to
    the bin, `channels` of them; a bin without elements is zero.
    """
    regions = _columns(builder, rois)
    left, top = (rounded(part) * scale for part in regions[1:3])
    right, bottom = ((rounded(part) + 1) * scale for part in regions[3:])
    height, width = dims_of(x)[2:]
    rows = _bins(top, (bottom - top).maximum(0.1), size, height)
    columns = _bins(left, (right - left).maximum(0.1), size, width)

    def pooled(image: TensorValue, tall: TensorValue, wide: TensorValue) -> TensorValue:
        parts = image.reshape([channels, size, size, height, width])
        mask = tall.reshape([1, size, 1, height, 1]) & wide.reshape([1, 1, size, 1, width])
        total = mask.where(parts, 0).reduce("sum", [3, 4])
        area = (_counts(tall).reshape([1, size, 1]) * _counts(wide)).cast(f32)
        return area.gt(0).where(total / area.maximum(1), 0)

    return _for_each(builder, x, regions[0], rows, columns, pooled)


def _columns(builder: CoreBuilder, rois: SSAValue) -> list[TensorValue]:
    """Image, left, top, right and bottom of all regions."""
    regions = TensorValue(builder, rois)
    rows = regions.reshape([regions.dims[0], 5])
    return [rows.pick(1, k) for k in range(5)]


def _bins(
    start: TensorValue, extent: TensorValue, count: int, size: Expr, *, whole: bool = False
) -> TensorValue:
    """
    Which elements of a dimension belong to which bin, i1 [regions, bins, size].

    Where regions start at `whole` places, these are added after the edges are rounded.
    """
    if not 0 < count <= LIMIT:
        refuse(f"{count} bins", f"1 to {LIMIT}")
    builder, regions = start.builder, start.dims[0]
    step = (extent / float(count)).reshape([regions, 1])
    origin = start.reshape([regions, 1])
    edges = TensorValue(builder, np.arange(count + 1, dtype=np.float32)).reshape([1, count + 1])
    edges = edges * step
    if whole:
        low, high = edges.floor() + origin, edges.ceil() + origin
    else:
        low, high = (edges + origin).floor(), (edges + origin).ceil()
    first = builder.slice_axis(low.reshape([regions, count + 1, 1]).value, 1, 0, count)
    last = builder.slice_axis(high.reshape([regions, count + 1, 1]).value, 1, 1, count)
    place = TensorValue.iota(builder, size).cast(f32).reshape([1, 1, size])
    return place.ge(TensorValue(builder, first)) & place.lt(TensorValue(builder, last))


def _counts(mask: TensorValue) -> TensorValue:
    """How many elements each bin has."""
    return mask.cast(i64).reduce("sum", [len(mask.dims) - 1])


def _for_each(
    builder: CoreBuilder,
    x: SSAValue,
    images: TensorValue,
    rows: TensorValue,
    columns: TensorValue,
    pooled: Callable[[TensorValue, TensorValue, TensorValue], TensorValue],
) -> SSAValue:
    """`pooled` of each region's image and of the elements in its bins, behind each other."""
    regions = images.dims[0]
    symbol, count = (builder.symbols.fresh(nonnegative=True) for _ in range(2))
    index = Expr.symbol(symbol)
    block = Block(arg_types=[tensor(i64, [])])
    builder.symbols.know(block.args[0], [index])
    inner = copy(builder)
    inner.point = InsertPoint.at_end(block)
    number = inner.slice(images.cast(i64).value, [index], [1])
    image = inner.squeeze(inner.add(GatherOp(x, number, 0)), [0])
    masks: Sequence[SSAValue] = [
        inner.squeeze(inner.slice_axis(mask.value, 0, index, 1), [0]) for mask in (rows, columns)
    ]
    result = pooled(*(TensorValue(inner, value) for value in (image, *masks)))
    inner.insert(YieldOp([result.value]))
    trips = builder.dims([regions], [])
    loop = LoopOp(trips, None, [], Region(block), iteration=symbol, count=count)
    (outputs,) = builder.insert(loop)
    type_ = tensor(element_type(outputs), [regions, *dims_of(outputs)[1:]])
    return Rewriter.replace_value_with_new_type(outputs, type_)
