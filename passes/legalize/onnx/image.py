"""Images from blocks and from pooled values, and the choice of detected boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.tensor import GatherNdOp, ScatterElementsOp, ScatterNdOp
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    i64,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, maximum, minimum, product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.boxes import columns_of
from lowerdeck.passes.legalize.common.movement import pad
from lowerdeck.passes.legalize.common.selection import nonzero
from lowerdeck.passes.legalize.common.suppression import kept_in_order, proper
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.windows import read_list, read_numbers
from lowerdeck.passes.legalize.sizes import size_of, sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat, stack


@legalizes("Col2Im")
def legalize_col2im(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The sum of overlapping blocks [N, C * block, positions]."""
    x = builder.operand("input")
    image = sizes_of(builder, builder.operand("image_shape"), "the image shape")
    block = builder.require_ints(builder.operand("block_shape"), "a block shape")
    rank = len(block)
    strides = read_list(builder, "strides", 1, rank)
    dilations = read_list(builder, "dilations", 1, rank)
    begin, end = read_numbers(builder, rank)
    if len(image) != rank:
        builder.refuse(
            f"a block of {rank} dimensions in an image of {len(image)}", "the same number"
        )
    places = [
        (size + b + e - (k - 1) * d - 1) // s + 1
        for size, b, e, k, d, s in zip(image, begin, end, block, dilations, strides, strict=True)
    ]
    size = int(np.prod(block))
    work = f32 if element_type(x) in (f16, bf16) else element_type(x)
    images = dims_of(x)[0] * (dims_of(x)[1] // size)
    wide = [dim + b + e for dim, b, e in zip(image, begin, end, strict=True)]
    values = builder.cast(builder.reshape(x, [images, *block, *places]), work)
    if all(d == 1 or s == 1 for d, s in zip(dilations, strides, strict=True)):
        whole = _overlapped(builder, values, strides, dilations)
    else:
        whole = _scattered(builder, values, wide, strides, dilations)
    # What no window reaches is zero.
    dims = [0, *(maximum(w - d, 0) for w, d in zip(wide, dims_of(whole)[1:], strict=True))]
    whole = pad(builder, whole, [Expr.const(0)] * (rank + 1), [Expr.of(dim) for dim in dims])
    whole = builder.slice(whole, [0, *begin], [images, *image])
    whole = builder.reshape(whole, [dims_of(x)[0], dims_of(x)[1] // size, *image])
    return [builder.cast(whole, element_type(x))]


def _overlapped(
    builder: OnnxLegalizer, values: SSAValue, strides: Sequence[int], dilations: Sequence[int]
) -> SSAValue:
    """
    The sum of blocks [images, *block, *places], each `strides` behind the one before it; of the
    elements of a block, which follow each other, or `dilations` apart at strides of 1.

    A block is several layers of as many elements as it moves by: layer k of block p lies where the
    first layer of block p + k lies. So a layer of all blocks is an image, moved by k of its blocks,
    and the sum of these is the result.
    """
    rank = len(strides)
    block, places = dims_of(values)[1 : rank + 1], dims_of(values)[rank + 1 :]
    layers = [-(-(k.value or 0) // s) for k, s in zip(block, strides, strict=True)]
    apart = [d if s == 1 else 1 for s, d in zip(strides, dilations, strict=True)]
    reach = [(count - 1) * d for count, d in zip(layers, apart, strict=True)]
    # Layers that are moved have zeros around them.
    zero = Expr.const(0)
    rest = [Expr.of(n * s) - k for n, s, k in zip(layers, strides, block, strict=True)]
    around = [Expr.const(r) for r in reach]
    padded = pad(builder, values, [zero, *([zero] * rank), *around], [zero, *rest, *around])
    split = [dim for n, s in zip(layers, strides, strict=True) for dim in (n, s)]
    padded = builder.reshape(padded, [dims_of(values)[0], *split, *dims_of(padded)[rank + 1 :]])
    sizes = [dim + r for dim, r in zip(places, reach, strict=True)]
    total: SSAValue | None = None
    for layer in np.ndindex(*layers):
        starts = [Expr.of(r - k * d) for r, k, d in zip(reach, layer, apart, strict=True)]
        first = [at for k in layer for at in (k, 0)]
        one = [dim for s in strides for dim in (1, s)]
        images = dims_of(values)[0]
        part = builder.slice(padded, [0, *first, *starts], [images, *one, *sizes])
        part = builder.reshape(part, [images, *strides, *sizes])
        total = part if total is None else builder.add(AddOp(total, part))
    assert total is not None
    order = [0, *(axis for k in range(rank) for axis in (rank + 1 + k, 1 + k))]
    total = builder.transpose(total, order)
    return builder.reshape(
        total, [dims_of(values)[0], *(n * s for n, s in zip(sizes, strides, strict=True))]
    )


def _scattered(
    builder: OnnxLegalizer,
    values: SSAValue,
    image: Sequence[Expr],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> SSAValue:
    """
    The same for any strides and dilations, in an image: rows of images side by side are added to
    the place where they belong.
    """
    rank, dims = len(strides), dims_of(values)
    images, block, places = dims[0], dims[1 : rank + 1], dims[rank + 1 :]
    count = product(dims[1:])
    rows = builder.transpose(builder.reshape(values, [images, count]), [1, 0])
    target = TensorValue.number(builder, 0, i64)
    for axis in range(rank):
        inside = TensorValue.iota(builder, block[axis]) * dilations[axis]
        at = TensorValue.iota(builder, places[axis]) * strides[axis]
        both = inside.column(2 * rank, axis) + at.column(2 * rank, rank + axis)
        target = target * TensorValue.dim(builder, image[axis]) + both
    index = target.broadcast([*block, *places]).reshape([count, 1])
    zeros = builder.broadcast(builder.scalar(0, rows), [product(image), images])
    whole = builder.add(ScatterNdOp(zeros, index.value, rows, "add"))
    return builder.reshape(builder.transpose(whole, [1, 0]), [images, *image])


@legalizes("MaxUnpool")
def legalize_max_unpool(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    Each value goes to the place, in the whole image that the window gives, that its index names.

    A larger `output_shape` has zeros behind that.
    """
    x, indices = builder.operand("X"), builder.operand("I")
    kernel = builder.attrs.ints("kernel_shape")
    strides = read_list(builder, "strides", 1, len(kernel))
    margins = [b + e for b, e in zip(*read_numbers(builder, len(kernel)), strict=True)]
    if rank_of(x) != len(kernel) + 2:
        builder.refuse(f"a kernel of {len(kernel)} dimensions for {x.type}", f"{rank_of(x) - 2}")
    n, c, *spatial = dims_of(x)
    image = [
        (dim - 1) * s - m + k
        for dim, s, m, k in zip(spatial, strides, margins, kernel, strict=True)
    ]
    whole = product([n, c, *image])
    count = product(dims_of(x))
    zeros = builder.broadcast(builder.scalar(0, x), [whole])
    flat = builder.reshape(indices, [count])
    result = builder.add(ScatterElementsOp(zeros, flat, builder.reshape(x, [count]), 0))
    result = builder.reshape(result, [n, c, *image])
    shape = builder.input("output_shape")
    if shape is None:
        return [result]
    sizes = sizes_of(builder, shape, "the output shape")
    if len(sizes) != rank_of(x):
        builder.refuse(f"an output shape of {len(sizes)} numbers", f"{rank_of(x)}")
    behind = [size - dim for size, dim in zip(sizes, dims_of(result), strict=True)]
    return [pad(builder, result, [Expr.const(0)] * rank_of(x), behind)]


# NonMaxSuppression


@legalizes("NonMaxSuppression")
def legalize_non_max_suppression(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    For each image and class, over and over: take the best box that is left, and drop the boxes that
    overlap it. The rows of the result are [image, class, box], in that order.

    boxes [B, N, 4], scores [B, C, N].
    """
    boxes = TensorValue.of(builder, builder.operand("boxes"))
    scores = TensorValue.of(builder, builder.operand("scores"))
    limit = builder.input("max_output_boxes_per_class")
    most = Expr.const(0) if limit is None else _at_least_zero(builder, limit)
    threshold = builder.input("score_threshold")
    alive = scores.eq(scores)
    if threshold is not None:
        alive = scores.gt(TensorValue.of(builder, threshold).reshape([]))
    lowest = TensorValue.number(builder, -np.inf, scores.element)
    ranked = alive.where(scores, lowest)
    overlap = builder.input("iou_threshold")
    bound = builder.scalar(0, f32) if overlap is None else builder.reshape(overlap, [])
    bound = TensorValue.of(builder, bound).maximum(0.0).value
    # Without a threshold, scores of minus infinity count.
    order, kept = kept_in_order(
        builder,
        ranked,
        _boxes(builder, boxes),
        bound,
        most=minimum(most, scores.dims[2]),
        alive=alive if threshold is None else None,
    )
    ranked = nonzero(builder, kept.value)
    found = dims_of(ranked)[1]
    rows = TensorValue(builder, ranked).transpose([1, 0])
    box = builder.add(GatherNdOp(order.value, rows.value))
    kept = builder.slice(rows.value, [0, 0], [found, 2])
    result = concat([TensorValue(builder, kept), TensorValue(builder, box).reshape([found, 1])], 1)
    return [result.value]


def _boxes(builder: OnnxLegalizer, boxes: TensorValue) -> TensorValue:
    """Boxes with the lower corner first; they name opposite corners, or a center and sizes."""
    if not builder.attrs.flag("center_point_box"):
        return proper(boxes)
    x, y, width, height = columns_of(boxes)
    return stack([y - height / 2.0, x - width / 2.0, y + height / 2.0, x + width / 2.0], 2)


def _at_least_zero(builder: OnnxLegalizer, value: SSAValue) -> Expr:
    clipped = TensorValue.of(builder, builder.reshape(value, [])).cast(i64).maximum(0)
    return size_of(builder, clipped.value, "the number of boxes")
