"""Ops whose result positions depend on data, and concatenation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import pairwise

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import FromDimsOp
from lowerdeck.dialects.core.enums import ScatterReduction
from lowerdeck.dialects.core.index_maps import unravel
from lowerdeck.dialects.core.tensor import (
    ConcatOp,
    CountNonzeroOp,
    NonzeroOp,
    ScatterElementsOp,
    ScatterNdOp,
    SliceOp,
)
from lowerdeck.dialects.core.types import dims_of, element_type, i1
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import Index, KernelLowering, anchor
from lowerdeck.lowering.nests.maps import data_index
from lowerdeck.lowering.targets.base import FEWEST_LANES


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
        dims = dims_of(value)
        # A part that is computed here has the blocks of the result, unless it ends within one.
        layout = target if value not in k.inputs and axis != 1 else k.layout_of(value)
        is_alike = is_aligned and layout.data.pieces == target.data.pieces
        nest = k.nest_over(layout, dims) if is_alike else k.builder.nest(dims, parallel=True)
        with nest as at:
            element = k.element(value, at)
            k.finish(op, [*at[:axis], at[axis] + offset, *at[axis + 1 :]], element)
        offset = offset + dims[axis]


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
        count = count if count >= FEWEST_LANES else 1
        yield start, count
        start += count


AT_ONCE = 16
"""Elements that are passed over at once if all of them are zero."""


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
    """
    Some elements side by side are passed over if all are zero. Of others, each index found goes to
    the next column; that of the last one found is written again until there is another, so that
    nothing branches.
    """
    b, dims = k.builder, dims_of(op.input)
    if not dims:
        return  # a scalar has no index

    def find(at: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        found, (end, *last) = _is_nonzero(k, op.input, at), values
        end = scalars.add(b, end, b.add(arith.ExtUIOp(found, i64)))
        column = b.from_integer(b.add(arith.MaxSIOp(end, b.integer(0, i64))))
        place = [
            b.add(arith.SelectOp(found, b.as_integer(index), old))
            for index, old in zip(at, last, strict=True)
        ]
        for row, index in enumerate(place):
            b.store(index, k.outputs[0], [Expr.const(row), column])
        return [end, *place]

    def find_in_row(at: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        # What has no element that is found has no column to write to.
        rows = minimum(op.count.data[0], 1)
        blocks = dims[-1] // AT_ONCE * rows

        def find_in_block(number: Expr, inner: Sequence[SSAValue]) -> Sequence[SSAValue]:
            start = number * AT_ONCE
            is_any = b.carry(
                AT_ONCE,
                [b.integer(0, i1)],
                lambda place, found: [
                    b.add(arith.OrIOp(found[0], _is_nonzero(k, op.input, [*at, start + place])))
                ],
            )[0]
            steps = b.add(arith.SelectOp(is_any, b.integer(AT_ONCE, i64), b.integer(0, i64)))
            return b.carry(
                b.from_integer(steps), inner, lambda place, v: find([*at, start + place], v)
            )

        if blocks != 0:
            values = b.carry(blocks, values, find_in_block)
        size = dims[-1] * rows
        return b.carry(size, values, lambda place, v: find([*at, place], v), blocks * AT_ONCE)

    bounds = [(Expr.const(0), dim) for dim in dims[:-1]]
    b.carry_nest(bounds, [b.integer(-1, i64), *([b.integer(0, i64)] * len(dims))], find_in_row)


@anchor(ScatterElementsOp, alone=True)
def lower_scatter_elements(k: KernelLowering, op: ScatterElementsOp) -> None:
    """Copy the input, unless it is changed in place, then let each update meet its element."""
    axis = op.axis.data
    _copy(k, op.input)
    with k.builder.nest(dims_of(op.updates)) as at:
        position = data_index(k, op, at, dims_of(op.input)[axis])
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
            data_index(k, op, [*at[:leading], Expr.const(d)], dims[d]) for d in range(depth)
        ]
        _update(k, op, [*positions, *at[leading:]], k.element(op.updates, at))


def _copy(k: KernelLowering, value: SSAValue) -> None:
    if k.kernel.in_place is not None:
        return
    with k.builder.nest(dims_of(value)) as at:
        k.builder.store(k.element(value, at), k.outputs[0], at)


def _update(
    k: KernelLowering, op: ScatterElementsOp | ScatterNdOp, target: Index, update: SSAValue
) -> None:
    b, element = k.builder, element_type(op.input)
    value = update
    if (reduction := op.reduction.data) != ScatterReduction.NONE:
        old = scalars.widen(b, b.load(k.outputs[0], target))
        new = scalars.widen(b, update)
        if reduction in (ScatterReduction.MAX, ScatterReduction.MIN):
            is_max = reduction == ScatterReduction.MAX
            choose = scalars.maximum if is_max else scalars.minimum
            value = choose(b, old, new, element)
        else:
            is_sum = reduction == ScatterReduction.ADD
            value = (scalars.add if is_sum else scalars.mul)(b, old, new)
        value = scalars.narrow(b, value, element)
    b.store(value, k.outputs[0], target)
