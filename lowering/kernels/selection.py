"""Ops whose result positions depend on data, and concatenation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import pairwise

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.constant import FromDimsOp
from lowerdeck.dialects.core.tensor import (
    ConcatOp,
    CountNonzeroOp,
    NonzeroOp,
    ScatterElementsOp,
    ScatterNdOp,
    SliceOp,
    TopKOp,
)
from lowerdeck.dialects.core.types import dims_of, element_type, i1, is_float
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.kernels import scalars
from lowerdeck.lowering.kernels.builder import KernelBuilder
from lowerdeck.lowering.kernels.lower import (
    IN_PLACE,
    Index,
    KernelLowering,
    anchor,
    unravel,
)
from lowerdeck.lowering.kernels.maps import data_index


@anchor(FromDimsOp)
def lower_from_dims(k: KernelLowering, op: FromDimsOp) -> None:
    """One store a value."""
    dims = dims_of(op.result)
    for position, value in enumerate(op.values.data):
        k.finish(op, unravel(position, dims), k.builder.as_integer(value))


@anchor(ConcatOp)
def lower_concat(k: KernelLowering, op: ConcatOp) -> None:
    """One nest an input, each writing its part of the result; whole blocks where it can."""
    axis, offset = op.axis.data, Expr.const(0)
    target = k.output_layout()
    is_blocked = target.rank > 1 and target.inner(1) > 1
    is_aligned = is_blocked and k.has_padding_to_read(0)
    if is_blocked and not is_aligned and axis == 1 and _has_few_channels(op):
        _concat_in_pieces(k, op, target.inner(1))
        return
    for value in op.inputs:
        dims, layout = dims_of(value), k.layout_of(value)
        is_alike = is_aligned and layout.data.pieces == target.data.pieces
        nest = k.nest_over(layout, dims) if is_alike else k.builder.nest(dims)
        with nest as at:
            element = k.element(value, at)
            k.finish(op, [*at[:axis], at[axis] + offset, *at[axis + 1 :]], element)
        offset = offset + dims[axis]


MIN_LANES = 4
"""Fewer elements are copied one by one."""

MOST_CHANNELS = 1024
"""Channels that are copied by straight-line code at most."""


def _has_few_channels(op: ConcatOp) -> bool:
    channels = dims_of(op.result)[1].value
    return channels is not None and channels <= MOST_CHANNELS


def _concat_in_pieces(k: KernelLowering, op: ConcatOp, block: int) -> None:
    """Position by position, channels that lie side by side in both tensors at once."""
    b, dims = k.builder, dims_of(op.result)
    with b.nest([dims[0], *dims[2:]], parallel=True) as at:
        offset = 0
        for value in op.inputs:
            size = dims_of(value)[1].value
            assert size is not None
            first, own = _place_in_blocks(k, value)
            cuts = [c for c in range(1, size) if not (offset + c) % block or not (first + c) % own]
            for start, end in pairwise([0, *cuts, size]):
                for channel, count in _powers_of_two(start, end):
                    lanes = b.loop(count, mode="lanes") if count > 1 else nullcontext(Expr.const(0))
                    with lanes as lane:
                        element = k.element(value, [at[0], lane + channel, *at[1:]])
                        k.finish(op, [at[0], lane + (offset + channel), *at[1:]], element)
            offset += size


def _place_in_blocks(k: KernelLowering, value: SSAValue) -> tuple[int, int]:
    """The channel of an argument at which a value begins, and the size of the blocks there."""
    first = 0
    while isinstance(value.owner, SliceOp):
        first += value.owner.starts.data[1].value or 0
        value = value.owner.input
    return first, k.layout_of(value).inner(1)


def _powers_of_two(start: int, end: int) -> Iterator[tuple[int, int]]:
    """A range in parts of 1, 4, 8, ... elements."""
    while start < end:
        count = 1 << (end - start).bit_length() - 1
        count = count if count >= MIN_LANES else 1
        yield start, count
        start += count


@anchor(TopKOp, alone=True)
def lower_top_k(k: KernelLowering, op: TopKOp) -> None:
    """
    Selection: each place takes the best element that comes after the one before it in the order
    (value, index). Quadratic at worst, but it needs no memory.
    """
    b, dims, axis = k.builder, dims_of(op.input), op.axis.data
    element = element_type(op.input)
    with b.nest([*dims[:axis], *dims[axis + 1 :]], parallel=True) as at:

        def value_at(position: Expr, at: Index = at) -> SSAValue:
            index = [*at[:axis], position, *at[axis:]]
            return scalars.widen(b, k.element(op.input, index))

        def place(rank: Expr, previous: Sequence[SSAValue], at: Index = at) -> Sequence[SSAValue]:
            is_first = b.compare_index("eq", rank, 0)

            def consider(position: Expr, best: Sequence[SSAValue]) -> Sequence[SSAValue]:
                value, where = value_at(position), b.as_integer(position)
                after = _comes_after(b, op, (value, where), previous, element)
                eligible = b.add(arith.OrIOp(is_first, after))
                unset = b.add(arith.CmpiOp(best[1], b.integer(-1, i64), "eq"))
                beats = _better(b, op, value, best[0], element)
                wins = b.add(arith.AndIOp(eligible, b.add(arith.OrIOp(unset, beats))))
                return [
                    b.add(arith.SelectOp(wins, value, best[0])),
                    b.add(arith.SelectOp(wins, where, best[1])),
                ]

            best = b.carry(dims[axis], [previous[0], b.integer(-1, i64)], consider)
            index = [*at[:axis], rank, *at[axis:]]
            b.store(scalars.narrow(b, best[0], element), k.outputs[0], index)
            b.store(best[1], k.outputs[1], index)
            return best

        start = [scalars.constant(b, 0, element), b.integer(-1, i64)]
        b.carry(op.k.data[0], start, place)


def _better(
    b: KernelBuilder, op: TopKOp, lhs: SSAValue, rhs: SSAValue, element: Attribute
) -> SSAValue:
    """True if lhs comes strictly before rhs by value; NaN counts as largest."""
    largest = bool(op.largest.value.data)
    before = scalars.compare(b, "gt" if largest else "lt", lhs, rhs, element)
    if not is_float(element):
        return before
    nan, number = (lhs, rhs) if largest else (rhs, lhs)
    is_nan = b.add(arith.CmpfOp(nan, nan, "uno"))
    is_number = b.add(arith.CmpfOp(number, number, "ord"))
    return b.add(arith.OrIOp(before, b.add(arith.AndIOp(is_nan, is_number))))


def _comes_after(
    b: KernelBuilder,
    op: TopKOp,
    candidate: tuple[SSAValue, SSAValue],
    previous: Sequence[SSAValue],
    element: Attribute,
) -> SSAValue:
    """True if the candidate (value, index) is behind the previous pick."""
    worse = _better(b, op, previous[0], candidate[0], element)
    better = _better(b, op, candidate[0], previous[0], element)
    one = b.integer(1, i1)
    tied = b.add(arith.XOrIOp(b.add(arith.OrIOp(worse, better)), one))
    later = b.add(arith.CmpiOp(candidate[1], previous[1], "sgt"))
    return b.add(arith.OrIOp(worse, b.add(arith.AndIOp(tied, later))))


def _is_nonzero(k: KernelLowering, value: SSAValue, at: Index) -> SSAValue:
    return scalars.cast(k.builder, k.element(value, at), element_type(value), i1)


@anchor(CountNonzeroOp)
def lower_count_nonzero(k: KernelLowering, op: CountNonzeroOp) -> None:
    """Add up the tests."""
    b = k.builder

    def count(at: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [scalars.add(b, values[0], b.add(arith.ExtUIOp(_is_nonzero(k, op.input, at), i64)))]

    bounds = [(Expr.const(0), dim) for dim in dims_of(op.input)]
    k.finish(op, [], b.carry_nest(bounds, [b.integer(0, i64)], count)[0])


@anchor(NonzeroOp, alone=True)
def lower_nonzero(k: KernelLowering, op: NonzeroOp) -> None:
    """Write each index found to the next column."""
    b = k.builder

    def find(at: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        found = _is_nonzero(k, op.input, at)
        with b.when(found):
            column = b.from_integer(values[0])
            for row, index in enumerate(at):
                b.store(b.as_integer(index), k.outputs[0], [Expr.const(row), column])
        return [scalars.add(b, values[0], b.add(arith.ExtUIOp(found, i64)))]

    bounds = [(Expr.const(0), dim) for dim in dims_of(op.input)]
    b.carry_nest(bounds, [b.integer(0, i64)], find)


@anchor(ScatterElementsOp, alone=True)
def lower_scatter_elements(k: KernelLowering, op: ScatterElementsOp) -> None:
    """Copy the input, unless it is changed in place, then let each update meet its element."""
    axis = op.axis.data
    _copy(k, op.input)
    with k.builder.nest(dims_of(op.updates)) as at:
        position = data_index(k, op.indices, at, dims_of(op.input)[axis])
        target = [*at[:axis], position, *at[axis + 1 :]]
        _update(k, op, target, k.element(op.updates, at))


@anchor(ScatterNdOp, alone=True)
def lower_scatter_nd(k: KernelLowering, op: ScatterNdOp) -> None:
    """Copy the input, unless it is changed in place, then let each slice meet its updates."""
    dims, leading = dims_of(op.input), len(dims_of(op.indices)) - 1
    depth = dims_of(op.indices)[-1].value or 0
    _copy(k, op.input)
    with k.builder.nest(dims_of(op.updates)) as at:
        positions = [
            data_index(k, op.indices, [*at[:leading], Expr.const(d)], dims[d]) for d in range(depth)
        ]
        _update(k, op, [*positions, *at[leading:]], k.element(op.updates, at))


def _copy(k: KernelLowering, value: SSAValue) -> None:
    if IN_PLACE in k.kernel.attributes:
        return
    with k.builder.nest(dims_of(value)) as at:
        k.builder.store(k.element(value, at), k.outputs[0], at)


def _update(
    k: KernelLowering, op: ScatterElementsOp | ScatterNdOp, target: Index, update: SSAValue
) -> None:
    b, element = k.builder, element_type(op.input)
    value = update
    if (reduction := op.reduction.data) != "none":
        old = scalars.widen(b, b.load(k.outputs[0], target))
        new = scalars.widen(b, update)
        if reduction in ("max", "min"):
            choose = scalars.maximum if reduction == "max" else scalars.minimum
            value = choose(b, old, new, element)
        else:
            value = (scalars.add if reduction == "add" else scalars.mul)(b, old, new)
        value = scalars.narrow(b, value, element)
    b.store(value, k.outputs[0], target)
