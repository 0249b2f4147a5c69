"""Slices, and tensors of which a slice is replaced."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ConcatOp, GatherOp, ReshapeOp, ScatterElementsOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.movement import signs_known, sliced
from lowerdeck.passes.legalize.sizes import UNBOUNDED, from_front, length_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("Slice")
def legalize_slice(builder: Tf1Legalizer) -> Results:
    """A size of -1 is what is left from the beginning on."""
    x = builder.operand("input")
    starts = builder.require_exprs(builder.operand("begin"), "the first element")
    given = builder.operand("size")
    if len(starts) != rank_of(x) or length_of(builder, given, "sizes") != rank_of(x):
        builder.refuse(f"{len(starts)} bounds", f"{rank_of(x)}")
    rests = [dim - start for dim, start in zip(dims_of(x), starts, strict=True)]
    return [builder.slice(x, starts, _resolved_sizes(builder, given, rests))]


def _resolved_sizes(builder: Tf1Legalizer, given: SSAValue, rests: Sequence[Expr]) -> list[Expr]:
    """
    The sizes, of which -1 means the rest.

    An expression that is at least -1 is -1 only where dimensions have no elements, so it is a size.
    """
    elements = builder.symbols.elements(given)
    entries = [] if elements is None else list(elements.reshape(-1))
    is_known = len(entries) == len(rests)
    if is_known and all(entry is not None and _is_size(builder, entry) for entry in entries):
        sizes = [rest if e == -1 else e for e, rest in zip(entries, rests, strict=True)]
    else:
        numbers = TensorValue.of(builder, given).cast(i64)
        rest = TensorValue(builder, builder.dims(rests))
        sizes = builder.require_exprs(numbers.eq(-1).where(rest, numbers).value, "sizes")
    builder.symbols.assume_nonnegative(sizes)
    return sizes


def _is_size(builder: Tf1Legalizer, entry: Expr) -> bool:
    bound = builder.symbols.lower_bound(entry)
    return bound is not None and bound >= -1


# Strided slices


@record
class _Selection:
    """What a strided slice does, dimension for dimension of its operand."""

    indices: dict[int, int]
    """Axes of which one element is taken, with its position in the vector of bounds."""
    ranges: dict[int, int]
    """Axes that are sliced, with their positions in the vectors of bounds."""
    layout: list[int | None]
    """The dimensions of the result: an axis of the operand, or None for a new one."""


def _selection(builder: Tf1Legalizer, rank: int, count: int) -> _Selection:
    """
    The meaning of the masks for `count` bounds on an operand of a rank.

    One ellipsis stands for the axes that nothing else is about; without one it is at the end.
    """
    ellipsis, new, shrink = (
        builder.attrs.int(f"{name}_mask") for name in ("ellipsis", "new_axis", "shrink_axis")
    )
    is_ellipsis = [bool(ellipsis >> k & 1) for k in range(count)]
    if sum(is_ellipsis) > 1:
        builder.refuse("more than one ellipsis", "at most one")
    is_new = [bool(new >> k & 1) and not is_ellipsis[k] for k in range(count)]
    used = count - sum(is_ellipsis) - sum(is_new)
    if used > rank:
        builder.refuse(f"bounds for {used} dimensions", f"at most {rank}")
    found = _Selection({}, {}, [])
    axis = 0
    for k in range(count):
        if is_ellipsis[k]:
            found.layout.extend(range(axis, axis + rank - used))
            axis += rank - used
        elif is_new[k]:
            found.layout.append(None)
        elif shrink >> k & 1:
            found.indices[axis] = k
            axis += 1
        else:
            found.ranges[axis] = k
            found.layout.append(axis)
            axis += 1
    found.layout.extend(range(axis, rank))
    return found


@legalizes("StridedSlice")
def legalize_strided_slice(builder: Tf1Legalizer) -> Results:
    return [selected(builder, builder.operand("input"))]


def selected(builder: Tf1Legalizer, x: SSAValue) -> SSAValue:
    """The part of `x` that the bounds and masks of the node select."""
    begin, strides = builder.operand("begin"), builder.operand("strides")
    rank = rank_of(x)
    count = length_of(builder, begin, "bounds")
    for name in ("end", "strides"):
        if (other := length_of(builder, builder.operand(name), "bounds")) != count:
            builder.refuse(f"{other} numbers as '{name}'", f"{count}, as in 'begin'")
    selection = _selection(builder, rank, count)
    if not signs_known(builder, strides):
        builder.refuse("strides whose direction depends on data", "known directions")
    positions = builder.symbols.elements(begin)
    if positions is None:
        builder.refuse(f"bounds of type {begin.type}", "integers")
    at_run_time = {
        axis: k for axis, k in selection.indices.items() if positions.reshape(-1)[k] is None
    }
    kept = [axis for axis in range(rank) if axis not in at_run_time]
    for axis in sorted(at_run_time, reverse=True):
        x = builder.add(GatherOp(x, _component(builder, begin, at_run_time[axis]), axis))
    part = _ranges(builder, x, kept, selection)
    sizes = dict(zip(kept, dims_of(part), strict=True))
    return builder.reshape(part, [1 if axis is None else sizes[axis] for axis in selection.layout])


def _ranges(
    builder: Tf1Legalizer, x: SSAValue, kept: Sequence[int], selection: _Selection
) -> SSAValue:
    """The ranges and single elements of `x`, whose dimensions are the axes `kept`."""
    places = {axis: place for place, axis in enumerate(kept)}
    axes, firsts, lasts, steps = list[int](), list[Expr](), list[Expr](), list[Expr]()
    for axis, k in selection.ranges.items():
        first, last, step = _bounds(builder, k)
        axes.append(places[axis])
        firsts.append(first)
        lasts.append(last)
        steps.append(step)
    x = sliced(builder, x, axes, firsts, lasts, steps)
    starts: list[ExprLike] = [0] * len(kept)
    sizes = list(dims_of(x))
    for axis, k in selection.indices.items():
        if axis in places:
            place = places[axis]
            starts[place] = from_front(builder, _bound(builder, "begin", k), sizes[place])
            sizes[place] = Expr.const(1)
    return builder.slice(x, starts, sizes)


def _bounds(builder: Tf1Legalizer, k: int) -> tuple[Expr, Expr, Expr]:
    """Begin, end and stride number `k`; masked ones reach to the border."""
    step = _bound(builder, "strides", k)
    direction = -1 if (builder.symbols.lower_bound(-step) or 0) > 0 else 1
    if builder.attrs.int("begin_mask") >> k & 1:
        first = Expr.const(0 if direction > 0 else UNBOUNDED)
    else:
        first = _bound(builder, "begin", k)
    if builder.attrs.int("end_mask") >> k & 1:
        return first, Expr.const(direction * UNBOUNDED), step
    return first, _bound(builder, "end", k), step


def _bound(builder: Tf1Legalizer, name: str, k: int) -> Expr:
    """Element `k` of a vector of bounds; the others need not be known."""
    value = builder.operand(name)
    elements = builder.symbols.elements(value)
    found = None if elements is None else elements.reshape(-1)[k]
    if found is not None:
        return found
    return builder.require_expr(_component(builder, value, k), "a bound")


def _component(builder: Tf1Legalizer, vector: SSAValue, k: int) -> SSAValue:
    """Element `k` of a vector as a scalar; of one that was packed, what went in."""
    owner = vector.owner
    if isinstance(owner, ConcatOp) and all(dims_of(part) == (1,) for part in owner.inputs):
        return builder.reshape(_unshaped(owner.inputs[k]), [])
    return TensorValue(builder, vector).pick(0, k).value


def _unshaped(value: SSAValue) -> SSAValue:
    """What a value of one element was reshaped from."""
    owner = value.owner
    return owner.input if isinstance(owner, ReshapeOp) else value


@legalizes("TensorStridedSliceUpdate")
def legalize_strided_slice_update(builder: Tf1Legalizer) -> Results:
    """A copy of the operand in which the selected part is `value`."""
    x, value = builder.operand("input"), builder.operand("value")
    count = product(dims_of(x))
    places = selected(builder, TensorValue.iota(builder, count).reshape(dims_of(x)).value)
    places_flat = builder.reshape(places, [product(dims_of(places))])
    value = builder.broadcast(value, dims_of(places))
    updates = builder.reshape(value, dims_of(places_flat))
    flat = builder.reshape(x, [count])
    return [
        builder.reshape(builder.add(ScatterElementsOp(flat, places_flat, updates, 0)), dims_of(x))
    ]
