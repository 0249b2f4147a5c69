"""Images from blocks and from pooled values, and the choice of detected boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import GatherNdOp, ScatterElementsOp
from lowerdeck.dialects.core.types import dims_of, f32, i1, i64, rank_of, tensor
from lowerdeck.dialects.dims import Expr, ExprLike, minimum, product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.linear import transposed_convolution
from lowerdeck.passes.legalize.movement import pad
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.windows import read_list, read_numbers
from lowerdeck.passes.legalize.quantity import Quantity, concat
from lowerdeck.passes.legalize.selection import nonzero
from lowerdeck.passes.legalize.sizes import size_of, sizes_of


@legalizes("Col2Im")
def legalize_col2im(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    The sum of overlapping blocks [N, C * block, positions]: a transposed convolution, each of whose
    kernels is one in one place.
    """
    x = lower.operand("input")
    image = sizes_of(lower, lower.operand("image_shape"), "the image shape")
    block = lower.require_ints(lower.operand("block_shape"), "a block shape")
    rank = len(block)
    strides = read_list(lower, "strides", 1, rank)
    dilations = read_list(lower, "dilations", 1, rank)
    begin, end = read_numbers(lower, rank)
    if len(image) != rank:
        lower.refuse(f"a block of {rank} dimensions in an image of {len(image)}", "the same number")
    places = [
        (size + b + e - (k - 1) * d - 1) // s + 1
        for size, b, e, k, d, s in zip(image, begin, end, block, dilations, strides, strict=True)
    ]
    size = int(np.prod(block))
    batch, rows = dims_of(x)[0], dims_of(x)[1]
    channels = rows // size
    apart = lower.reshape(x, [batch * channels, size, *places])
    kernel = lower.cast(lower.tensor(np.eye(size, dtype=np.int8).reshape(size, 1, *block)), x)
    whole = transposed_convolution(
        lower,
        apart,
        kernel,
        strides=strides,
        dilations=dilations,
        pads_begin=[0] * rank,
        pads_end=[0] * rank,
        output_padding=[0] * rank,
    )
    # Blocks need not reach the end of the image: what is missing there is zero.
    missing = [
        target - dim + b for target, dim, b in zip(image, dims_of(whole)[2:], begin, strict=True)
    ]
    cut = [Expr.const(-b) for b in begin]
    two = [Expr.const(0)] * 2
    whole = pad(lower, whole, [*two, *cut], [*two, *missing])
    return [lower.reshape(whole, [batch, channels, *image])]


@legalizes("MaxUnpool")
def legalize_max_unpool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    Each value goes to the place, in the whole image that the window gives, that its index names.

    A larger `output_shape` has zeros behind that.
    """
    x, indices = lower.operand("X"), lower.operand("I")
    kernel = lower.attrs.ints("kernel_shape")
    strides = read_list(lower, "strides", 1, len(kernel))
    margins = [b + e for b, e in zip(*read_numbers(lower, len(kernel)), strict=True)]
    if rank_of(x) != len(kernel) + 2:
        lower.refuse(f"a kernel of {len(kernel)} dimensions for {x.type}", f"{rank_of(x) - 2}")
    n, c, *spatial = dims_of(x)
    image = [
        (dim - 1) * s - m + k
        for dim, s, m, k in zip(spatial, strides, margins, kernel, strict=True)
    ]
    whole = product([n, c, *image])
    count = product(dims_of(x))
    zeros = lower.broadcast(lower.scalar(0, x), [whole])
    flat = lower.reshape(indices, [count])
    result = lower.add(ScatterElementsOp(zeros, flat, lower.reshape(x, [count]), 0))
    result = lower.reshape(result, [n, c, *image])
    shape = lower.input("output_shape")
    if shape is None:
        return [result]
    sizes = sizes_of(lower, shape, "the output shape")
    if len(sizes) != rank_of(x):
        lower.refuse(f"an output shape of {len(sizes)} numbers", f"{rank_of(x)}")
    behind = [size - dim for size, dim in zip(sizes, dims_of(result), strict=True)]
    return [pad(lower, result, [Expr.const(0)] * rank_of(x), behind)]


# NonMaxSuppression


@legalizes("NonMaxSuppression")
def legalize_non_max_suppression(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    For each image and class, over and over: take the best box that is left, and drop the boxes that
    overlap it. The rows of the result are [image, class, box], in that order.

    boxes [B, N, 4], scores [B, C, N].
    """
    boxes = Quantity.of(lower, lower.operand("boxes"))
    scores = Quantity.of(lower, lower.operand("scores"))
    count = scores.dims[2]
    limit = lower.input("max_output_boxes_per_class")
    most = Expr.const(0) if limit is None else _at_least_zero(lower, limit)
    rounds = minimum(most, count)
    corners = _corners(boxes, center=lower.attrs.flag("center_point_box"))
    threshold = lower.input("score_threshold")
    alive = scores.eq(scores)
    if threshold is not None:
        alive = scores.gt(Quantity.of(lower, threshold).reshape([]))
    overlap = lower.input("iou_threshold")
    bound = lower.scalar(0, f32) if overlap is None else lower.reshape(overlap, [])
    chosen, valid = _rounds(lower, scores, corners, alive, bound, rounds)
    # [rounds, B, C] in the order of the result: [B, C, rounds].
    ranked = nonzero(lower, lower.transpose(valid, [1, 2, 0]))
    found = dims_of(ranked)[1]
    rows = Quantity(lower, ranked).transpose([1, 0])
    box = lower.add(GatherNdOp(lower.transpose(chosen, [1, 2, 0]), rows.value))
    kept = lower.slice(rows.value, [0, 0], [found, 2])
    result = concat([Quantity(lower, kept), Quantity(lower, box).reshape([found, 1])], 1)
    return [result.value]


def _at_least_zero(lower: OnnxLegalizer, value: SSAValue) -> Expr:
    clipped = Quantity.of(lower, lower.reshape(value, [])).cast(i64).maximum(0)
    return size_of(lower, clipped.value, "the number of boxes")


def _corners(boxes: Quantity, center: bool) -> list[Quantity]:
    """The lower and upper ends of y and x, [B, N] each; boxes may name opposite corners."""
    a, b, c, d = (boxes.pick(2, k) for k in range(4))
    if center:
        return [b - d / 2.0, a - c / 2.0, b + d / 2.0, a + c / 2.0]
    return [a.minimum(c), b.minimum(d), a.maximum(c), b.maximum(d)]


def _rounds(
    lower: OnnxLegalizer,
    scores: Quantity,
    corners: Sequence[Quantity],
    alive: Quantity,
    bound: SSAValue,
    rounds: Expr,
) -> tuple[SSAValue, SSAValue]:
    """
    The box taken in each round and whether there was one, [rounds, B, C]; there are no more rounds
    once no box is left.
    """
    whole = [corner.value for corner in corners]
    given = scores.value
    block = Block(arg_types=[tensor(i64, []), alive.value.type])
    inner = lower.at(InsertPoint.at_end(block))
    taken, valid, left = _round(
        inner, Quantity(inner, given), whole, Quantity(inner, block.args[1]), bound
    )
    inner.insert(YieldOp([_is_any(left), left.value, taken.value, valid.value]))
    iteration, symbol = (lower.symbols.fresh(nonnegative=True) for _ in range(2))
    loop = LoopOp(
        lower.dims([rounds], []),
        _is_any(alive),
        [alive.value],
        Region(block),
        iteration=iteration,
        count=symbol,
    )
    _, chosen, had = lower.insert(loop)
    return chosen, had


def _is_any(alive: Quantity) -> SSAValue:
    """True if one element is."""
    return alive.cast(i64).reduce("sum", [0, 1, 2]).cast(i1).value


def _round(
    builder: CoreBuilder,
    scores: Quantity,
    corners: Sequence[SSAValue],
    alive: Quantity,
    bound: SSAValue,
) -> tuple[Quantity, Quantity, Quantity]:
    """The best box of each image and class, whether there is one, and which boxes are left."""
    batch, classes, count = scores.dims
    lowest = Quantity.number(builder, -np.inf, scores.element)
    ranked = alive.where(scores, lowest)
    best = Quantity(builder, builder.add(ArgReduceOp("max", ranked.value, 2)))
    valid = alive.cast(i64).reduce("max", [2]).cast(i1)
    one: list[ExprLike] = [batch, classes, 1]
    areas: list[Quantity] = []
    overlaps: list[Quantity] = []
    ends = [Quantity(builder, corner) for corner in corners]
    for low, high in ((ends[0], ends[2]), (ends[1], ends[3])):
        own = [_picked(builder, end, best).reshape(one) for end in (low, high)]
        others = [end.reshape([batch, 1, count]) for end in (low, high)]
        overlap = own[1].minimum(others[1]) - own[0].maximum(others[0])
        overlaps.append(overlap.maximum(0.0))
        areas.append(own[1] - own[0])
        areas.append(others[1] - others[0])
    shared = overlaps[0] * overlaps[1]
    union = areas[0] * areas[2] + areas[1] * areas[3] - shared
    ratio = shared / shared.gt(0.0).where(union, 1.0)
    dropped = ratio.gt(Quantity(builder, bound)) & shared.gt(0.0)
    index = Quantity.iota(builder, count).reshape([1, 1, count])
    left = alive & ~dropped & index.ne(best.reshape(one))
    return best, valid, left


def _picked(builder: CoreBuilder, values: Quantity, index: Quantity) -> Quantity:
    """values [B, N] at index [B, C]."""
    places = index.reshape([*index.dims, 1])
    return Quantity(builder, builder.add(GatherNdOp(values.value, places.value, 1)))
