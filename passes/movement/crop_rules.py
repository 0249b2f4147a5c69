"""Which part of each operand an op needs for a part of its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.enums import PadMode
from lowerdeck.dialects.core.index_maps import HasIndexMaps
from lowerdeck.dialects.core.linear import (
    BatchNormOp,
    ConvOp,
    ConvTransposeOp,
    LayerNormOp,
    MatmulOp,
)
from lowerdeck.dialects.core.reduce import CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    TransposeOp,
    ints,
)
from lowerdeck.dialects.core.types import DimsAttr, dims_of, rank_of
from lowerdeck.dialects.dims import Expr, constants, product
from lowerdeck.passes.machinery.driver import is_ranked
from lowerdeck.passes.movement.crop_windows import (
    cropped_conv,
    cropped_conv_transpose,
    cropped_pool,
)
from lowerdeck.passes.movement.ranges import Crop, Range, Ranges, are_whole, inside, needed, whole
from lowerdeck.passes.movement.reshapes import dim_groups

Rule: TypeAlias = Callable[[Any, Ranges], "Crop | None"]


def crop_of(op: Operation, parts: Ranges) -> Crop | None:
    """What computes `parts` of the only result of `op`, or None. Nothing is left of no part."""
    rule = RULES.get(type(op))
    if rule is None or not is_ranked(op) or any(part.size == 0 for part in parts):
        return None
    return rule(op, parts)


# Where elements come from


def _followed(op: HasIndexMaps, parts: Ranges) -> Crop | None:
    """The parts by where elements come from; None if they do not tell which parts are needed."""
    result = dims_of(op.results[0])
    at = [Expr.symbol(f"at.{axis}") for axis in range(len(result))]
    followed: set[int] = set()
    operands: list[tuple[SSAValue, Ranges | None]] = []
    for number, value in enumerate(op.operands):
        operand: Ranges = []
        for index, dim in zip(op.operand_index(number, at), dims_of(value), strict=True):
            if index is None or (index == 0 and dim == 1):
                operand.append(Range.of(0, dim))
                continue
            axis = at.index(index) if index in at else None
            if axis is None or result[axis] != dim:
                return None
            followed.add(axis)
            operand.append(parts[axis])
        operands.append(needed(value, operand))
    rest = (axis for axis in range(len(result)) if axis not in followed)
    if isinstance(op, BroadcastOp):
        return Crop(operands, {"dims": DimsAttr.of([part.size for part in parts])})
    return Crop(operands) if all(parts[axis].is_whole(result[axis]) for axis in rest) else None


def _reshape(op: ReshapeOp, parts: Ranges) -> Crop | None:
    """A part of dimensions that stay, or of one that is divided or made of several."""
    before, after = dims_of(op.input), op.dims.data
    operand = whole(before)
    for old, new in dim_groups(before, after):
        found = _regrouped(before[old], after[new], parts[new])
        if found is None:
            return None
        operand[old] = found
    return Crop([needed(op.input, operand)], {"dims": DimsAttr.of([part.size for part in parts])})


def _regrouped(before: Sequence[Expr], after: Sequence[Expr], parts: Ranges) -> Ranges | None:
    """The part of some dimensions that is `parts` after a reshape of them."""
    found = whole(before)
    if are_whole(parts, after):
        return found
    old = [axis for axis, dim in enumerate(before) if dim != 1]
    new = [axis for axis, dim in enumerate(after) if dim != 1]
    if not old or not new or not all(parts[k].is_whole(after[k]) for k in new[1:]):
        return None
    if not all(parts[k].is_whole(dim) for k, dim in enumerate(after) if dim == 1):
        return None
    part = parts[new[0]]
    if len(old) == len(new) == 1:
        found[old[0]] = part
        return found
    if len(old) == 1 and part.step == 1:
        inner = product(after[k] for k in new[1:])
        found[old[0]] = Range(part.start * inner, part.size * inner, part.step)
        return found
    inner = product(before[k] for k in old[1:])
    if len(new) > 1 or part.step != 1 or part.start % inner != 0 or part.size % inner != 0:
        return None
    found[old[0]] = Range(part.start // inner, part.size // inner, part.step)
    return found


def _concat(op: ConcatOp, parts: Ranges) -> Crop | None:
    """Parts of the operands that the range meets; the others are left out."""
    axis, result = op.axis.data, dims_of(op.result)
    for k, part in enumerate(parts):
        same = all(dims_of(value)[k] == result[k] for value in op.inputs)
        if k != axis and not same and not part.is_whole(result[k]):
            return None
    along = parts[axis]
    if along.is_whole(result[axis]):
        each = [Range.of(0, dims_of(value)[axis]) for value in op.inputs]
    elif (found := _met(op, along)) is not None:
        each = found
    else:
        return None
    operands: list[tuple[SSAValue, Ranges | None]] = []
    for value, part in zip(op.inputs, each, strict=True):
        if part.size == 0:
            continue
        taken = whole(dims_of(value))
        for k, other in enumerate(parts):
            if k == axis:
                taken[k] = part
            elif not other.is_whole(result[k]):
                taken[k] = other
        operands.append(needed(value, taken))
    return Crop(operands) if operands else None


def _met(op: ConcatOp, along: Range) -> list[Range] | None:
    """The part of each operand that a range along the axis takes; size 0 for none of it."""
    sizes = [dims_of(value)[op.axis.data] for value in op.inputs]
    numbers, known = along.numbers, constants(sizes)
    if numbers is None or known is None:
        # One of the operands may be just what is taken.
        lists = list(zip(op.starts, sizes, strict=True))
        if along.step != 1 or (along.start, along.size) not in lists:
            return None
        taken = lists.index((along.start, along.size))
        return [Range.of(0, size if k == taken else 0) for k, size in enumerate(sizes)]
    start, _, step = numbers
    if step < 1:
        return None
    found: list[Range] = []
    begin = 0
    for size in known:
        first, last = inside(numbers, begin, begin + size)
        found.append(Range.of(start + first * step - begin, last - first, step))
        begin += size
    return found


def _pad(op: PadOp, parts: Ranges) -> Crop | None:
    """What is left of the input and of each pad."""
    lists = zip(dims_of(op.input), op.begin.data, op.end.data, parts, strict=True)
    operand: Ranges = []
    begin: list[Expr] = []
    end: list[Expr] = []
    for dim, before, after, part in lists:
        if part.is_whole(dim + before + after):
            found = (Range.of(0, dim), before, after)
        elif before == 0 and after == 0:
            found = (part, before, after)
        elif (found := _padded(op.mode.data, dim, before, part)) is None:
            return None
        operand.append(found[0])
        begin.append(found[1])
        end.append(found[2])
    properties = {"begin": DimsAttr.of(begin), "end": DimsAttr.of(end)}
    others = [(value, None) for value in op.operands[1:]]
    return Crop([needed(op.input, operand), *others], properties)


def _padded(mode: PadMode, dim: Expr, begin: Expr, part: Range) -> tuple[Range, Expr, Expr] | None:
    """The part of a dimension, and the pads around it, that give a part of the padded dimension."""
    numbers, known = part.numbers, constants((dim, begin))
    if numbers is None or known is None or numbers[2] < 1:
        return None
    (start, size, step), (length, before) = numbers, known
    first, last = inside(numbers, before, before + length)
    count, pads = last - first, (first, size - last)
    fits = {
        PadMode.CONSTANT: count > 0,
        PadMode.EDGE: count > 0 and step == 1,
        # What is mirrored has to be there, and what is repeated is all of it.
        PadMode.REFLECT: count > max(pads) and step == 1,
        PadMode.WRAP: count == length and step == 1,
    }
    if not fits[mode] and not (count > 0 and pads == (0, 0)):
        return None
    taken = Range.of(start + first * step - before, count, step)
    return taken, Expr.const(pads[0]), Expr.const(pads[1])


# Rows, products and windows


def _reduce(op: ReduceOp, parts: Ranges) -> Crop | None:
    """A part of the dimensions that are left."""
    dims, axes = dims_of(op.input), set(ints(op.axes))
    if op.keep_dims.value.data:
        left = list(parts)
    else:
        rest = iter(parts)
        left = [Range.of(0, 1) if axis in axes else next(rest) for axis in range(len(dims))]
    if not all(left[axis].is_whole(Expr.const(1)) for axis in axes):
        return None
    lists = enumerate(zip(left, dims, strict=True))
    return Crop([needed(op.input, [Range.of(0, d) if k in axes else p for k, (p, d) in lists])])


def _cumulative(op: CumulativeOp, parts: Ranges) -> Crop | None:
    """A part of the dimensions that the sum does not run along."""
    axis = op.axis.data
    if not parts[axis].is_whole(dims_of(op.input)[axis]):
        return None
    return Crop([needed(op.input, parts)])


def _layer_norm(op: LayerNormOp, parts: Ranges) -> Crop | None:
    axis, dims = op.axis.data, dims_of(op.input)
    if not are_whole(parts[axis:], dims[axis:]):
        return None
    if any(rank_of(parameter) > len(dims) - axis for parameter in op.operands[1:]):
        return None
    return Crop([(op.input, parts), *((value, None) for value in op.operands[1:])])


def _matmul(op: MatmulOp, parts: Ranges) -> Crop | None:
    if op.zero_points:
        return None
    lhs, rhs, result = dims_of(op.lhs), dims_of(op.rhs), dims_of(op.result)
    left, right = whole(lhs), whole(rhs)
    if not are_whole(parts[:-2], result[:-2]):
        if len(rhs) != 2:
            return None
        left[:-2] = parts[:-2]
    left[-2], right[-1] = parts[-2], parts[-1]
    return Crop([needed(op.lhs, left), needed(op.rhs, right)])


def _attention(op: AttentionOp, parts: Ranges) -> Crop | None:
    """A part of the queries."""
    dims, place = dims_of(op.result), rank_of(op.result) - 3
    if not are_whole([*parts[:place], *parts[place + 1 :]], [*dims[:place], *dims[place + 1 :]]):
        return None
    query = whole(dims_of(op.query))
    query[place] = parts[place]
    operands: list[tuple[SSAValue, Ranges | None]] = [
        (op.query, query),
        (op.operands[1], None),
        (op.operands[2], None),
    ]
    for part in op.masks:
        mask = whole(dims_of(part))
        if len(mask) > 1 and dims_of(part)[-2] != 1:
            mask[-2] = parts[place]
        operands.append(needed(part, mask))
    return Crop(operands)


RULES: Mapping[type[Operation], Rule] = {
    **dict.fromkeys((*ELEMENTWISE, BatchNormOp, SoftmaxOp, TransposeOp, BroadcastOp), _followed),
    # Index maps do not tell that a row is normalized as a whole, which parts of a product pay, or
    # what properties say of sizes.
    ReshapeOp: _reshape,
    ConcatOp: _concat,
    PadOp: _pad,
    ReduceOp: _reduce,
    CumulativeOp: _cumulative,
    LayerNormOp: _layer_norm,
    MatmulOp: _matmul,
    AttentionOp: _attention,
    ConvOp: cropped_conv,
    ConvTransposeOp: cropped_conv_transpose,
    PoolOp: cropped_pool,
}
"""The ops that a slice may pass."""
