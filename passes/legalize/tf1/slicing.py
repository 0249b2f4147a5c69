"""Slices, and tensors of which a slice is replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ConcatOp, GatherOp, ReshapeOp, ScatterElementsOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.passes.legalize.movement import signs_known, sliced
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.sizes import UNBOUNDED, from_front, length_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("Slice")
def legalize_slice(lower: Tf1Legalizer) -> Results:
    """A size of -1 is what is left from the beginning on."""
    x = lower.operand("input")
    starts = lower.require_exprs(lower.operand("begin"), "the first element")
    given = lower.operand("size")
    if len(starts) != rank_of(x) or length_of(lower, given, "sizes") != rank_of(x):
        lower.refuse(f"{len(starts)} bounds", f"{rank_of(x)}")
    rests = [dim - start for dim, start in zip(dims_of(x), starts, strict=True)]
    return [lower.slice(x, starts, _resolved_sizes(lower, given, rests))]


def _resolved_sizes(lower: Tf1Legalizer, given: SSAValue, rests: Sequence[Expr]) -> list[Expr]:
    """
    The sizes, of which -1 means the rest.

    An expression that is at least -1 is -1 only where dimensions have no elements, so it is a size.
    """
    elements = lower.symbols.elements(given)
    entries = [] if elements is None else list(elements.reshape(-1))
    if all(entry is not None and _is_size(lower, entry) for entry in entries):
        sizes = [rest if e == -1 else e for e, rest in zip(entries, rests, strict=True)]
    else:
        numbers = Quantity.of(lower, given).cast(i64)
        rest = Quantity(lower, lower.dims(rests))
        sizes = lower.require_exprs(numbers.eq(-1).where(rest, numbers).value, "sizes")
    lower.symbols.assume_nonnegative(sizes)
    return sizes


def _is_size(lower: Tf1Legalizer, entry: Expr) -> bool:
    bound = lower.symbols.lower_bound(entry)
    return bound is not None and bound >= -1


# Strided slices


@dataclass(frozen=True)
class _Selection:
    """What a strided slice does, dimension for dimension of its operand."""

    indices: dict[int, int]
    """Axes of which one element is taken, with its position in the vector of bounds."""
    ranges: dict[int, int]
    """Axes that are sliced, with their positions in the vectors of bounds."""
    layout: list[int | None]
    """The dimensions of the result: an axis of the operand, or None for a new one."""


def _selection(lower: Tf1Legalizer, rank: int, count: int) -> _Selection:
    """
    The meaning of the masks for `count` bounds on an operand of a rank.

    One ellipsis stands for the axes that nothing else is about; without one it is at the end.
    """
    ellipsis, new, shrink = (
        lower.attrs.int(f"{name}_mask") for name in ("ellipsis", "new_axis", "shrink_axis")
    )
    is_ellipsis = [bool(ellipsis >> k & 1) for k in range(count)]
    if sum(is_ellipsis) > 1:
        lower.refuse("more than one ellipsis", "at most one")
    is_new = [bool(new >> k & 1) and not is_ellipsis[k] for k in range(count)]
    used = count - sum(is_ellipsis) - sum(is_new)
    if used > rank:
        lower.refuse(f"bounds for {used} dimensions", f"at most {rank}")
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
def legalize_strided_slice(lower: Tf1Legalizer) -> Results:
    return [_strided_slice(lower, lower.operand("input"))]


def _strided_slice(lower: Tf1Legalizer, x: SSAValue) -> SSAValue:
    """The part of `x` that the bounds and masks of the node select."""
    begin, strides = lower.operand("begin"), lower.operand("strides")
    rank = rank_of(x)
    count = length_of(lower, begin, "bounds")
    for name in ("end", "strides"):
        if (other := length_of(lower, lower.operand(name), "bounds")) != count:
            lower.refuse(f"{other} numbers as '{name}'", f"{count}, as in 'begin'")
    selection = _selection(lower, rank, count)
    if not signs_known(lower, strides):
        lower.refuse("strides whose direction depends on data", "known directions")
    positions = lower.symbols.elements(begin)
    assert positions is not None
    at_run_time = {
        axis: k for axis, k in selection.indices.items() if positions.reshape(-1)[k] is None
    }
    kept = [axis for axis in range(rank) if axis not in at_run_time]
    for axis in sorted(at_run_time, reverse=True):
        x = lower.add(GatherOp(x, _component(lower, begin, at_run_time[axis]), axis))
    part = _ranges(lower, x, kept, selection)
    sizes = dict(zip(kept, dims_of(part), strict=True))
    return lower.reshape(part, [1 if axis is None else sizes[axis] for axis in selection.layout])


def _ranges(
    lower: Tf1Legalizer, x: SSAValue, kept: Sequence[int], selection: _Selection
) -> SSAValue:
    """The ranges and single elements of `x`, whose dimensions are the axes `kept`."""
    places = {axis: place for place, axis in enumerate(kept)}
    axes, firsts, lasts, steps = list[int](), list[Expr](), list[Expr](), list[Expr]()
    for axis, k in selection.ranges.items():
        first, last, step = _bounds(lower, k)
        axes.append(places[axis])
        firsts.append(first)
        lasts.append(last)
        steps.append(step)
    x = sliced(lower, x, axes, firsts, lasts, steps)
    starts: list[ExprLike] = [0] * len(kept)
    sizes = list(dims_of(x))
    for axis, k in selection.indices.items():
        if axis in places:
            place = places[axis]
            starts[place] = from_front(lower, _bound(lower, "begin", k), sizes[place])
            sizes[place] = Expr.const(1)
    return lower.slice(x, starts, sizes)


def _bounds(lower: Tf1Legalizer, k: int) -> tuple[Expr, Expr, Expr]:
    """Begin, end and stride number `k`; masked ones reach to the border."""
    step = _bound(lower, "strides", k)
    direction = -1 if (lower.symbols.lower_bound(-step) or 0) > 0 else 1
    if lower.attrs.int("begin_mask") >> k & 1:
        first = Expr.const(0 if direction > 0 else UNBOUNDED)
    else:
        first = _bound(lower, "begin", k)
    if lower.attrs.int("end_mask") >> k & 1:
        return first, Expr.const(direction * UNBOUNDED), step
    return first, _bound(lower, "end", k), step


def _bound(lower: Tf1Legalizer, name: str, k: int) -> Expr:
    """Element `k` of a vector of bounds; the others need not be known."""
    value = lower.operand(name)
    elements = lower.symbols.elements(value)
    found = None if elements is None else elements.reshape(-1)[k]
    if found is not None:
        return found
    return lower.require_expr(_component(lower, value, k), "a bound")


def _component(lower: Tf1Legalizer, vector: SSAValue, k: int) -> SSAValue:
    """Element `k` of a vector as a scalar; of one that was packed, what went in."""
    owner = vector.owner
    if isinstance(owner, ConcatOp) and all(dims_of(part) == (1,) for part in owner.inputs):
        return lower.reshape(_unshaped(owner.inputs[k]), [])
    return Quantity(lower, vector).pick(0, k).value


def _unshaped(value: SSAValue) -> SSAValue:
    """What a value of one element was reshaped from."""
    owner = value.owner
    return owner.input if isinstance(owner, ReshapeOp) else value


@legalizes("TensorStridedSliceUpdate")
def legalize_strided_slice_update(lower: Tf1Legalizer) -> Results:
    """A copy of the operand in which the selected part is `value`."""
    x, value = lower.operand("input"), lower.operand("value")
    count = product(dims_of(x))
    places = _strided_slice(lower, Quantity.iota(lower, count).reshape(dims_of(x)).value)
    places_flat = lower.reshape(places, [product(dims_of(places))])
    value = lower.broadcast(value, dims_of(places))
    updates = lower.reshape(value, dims_of(places_flat))
    flat = lower.reshape(x, [count])
    return [lower.reshape(lower.add(ScatterElementsOp(flat, places_flat, updates, 0)), dims_of(x))]
