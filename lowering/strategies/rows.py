"""Convolution with few input channels, row-major: lanes are adjacent positions of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, f32, static_shape
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.conv_sums import (
    OUTPUT_CHANNEL,
    conv_sum,
    conv_wishes,
    has_border,
    spatial_labels,
)
from lowerdeck.lowering.strategies.costs import (
    distance_cycles,
    fits,
    likely_shape,
    reduction_cycles,
    scored,
)
from lowerdeck.lowering.strategies.facts import can_be_packed, is_of, layout_in, layout_out, the
from lowerdeck.lowering.targets.base import FEWEST_LANES


def _vectors(columns: int, lanes: int) -> int:
    """Of a row: whole ones, shorter ones, and single columns."""
    count = 0
    while lanes >= FEWEST_LANES:
        count, columns, lanes = count + columns // lanes, columns % lanes, lanes // 2
    return count + columns


class Rows(Strategy):
    """
    Vectors of positions by output channels, row by row; a weight is broadcast to all lanes. For
    convolutions whose blocked result would only have to be converted back to row-major.
    """

    name = "rows"
    anchors = (ConvOp,)

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        op = the(ConvOp, kernel)
        leaves = not any(isinstance(use.operation, KernelOp) for use in kernel.results[0].uses)
        few = (dims_of(op.input)[1].value or FEWEST_LANES + 1) <= FEWEST_LANES
        if leaves and few and op.groups.data == 1 and ints(op.strides)[-1] == 1:
            return conv_wishes(kernel, op, works_on_rows=True)
        return None

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, target = the(ConvOp, kernel), setting.target
        shape, w = likely_shape(op), static_shape(op.weight)
        if target.lanes == 1 or w is None or not can_be_packed(kernel, op.weight):
            return
        if not can_be_rows(op, layout_in(kernel, op.input), layout_out(kernel)):
            return
        vectors = _vectors(shape[-1], target.lanes)
        ways = [
            (channels, columns)
            for channels in range(1, min(shape[1], 8) + 1)
            for columns in range(1, min(vectors, 4) + 1)
            if fits(target, channels, columns)
        ]

        def cost(tile: Sequence[int]) -> float:
            return reduction_cycles(target, [shape[1], vectors], tile, prod(w[1:]), sum)

        *outer, last = [f"x{axis}" for axis in range(len(shape) - 2)]
        rows = shape[0] * prod(shape[2:-1]) / setting.threads
        for cycles, (channels, columns) in scored(ways, cost):
            visits = rows * -(-shape[1] // channels) * -(-vectors // columns) * w[1]
            yield Candidate(
                rows * cycles + distance_cycles(op, target, depth=w[1], visits=visits),
                Schedule(
                    self.name,
                    ((OUTPUT_CHANNEL, channels), (last, columns)),
                    ("n", *outer, OUTPUT_CHANNEL, last),
                    ((last, target.lanes),),
                ),
            )

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op, channels = the(ConvOp, kernel), schedule.tile(OUTPUT_CHANNEL)
        rank = len(dims_of(op.weight))
        if channels == 1:
            return {op.weight: LayoutAttr.row_major(rank)}
        pieces = [Piece(0, channels), *map(Piece, range(1, rank)), Piece(0, 1, channels)]
        return {op.weight: LayoutAttr.of(pieces)}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op = the(ConvOp, k.kernel)
        b, dims = k.builder, dims_of(op.result)
        labels = [("n", dims[0]), (OUTPUT_CHANNEL, dims[1]), *spatial_labels(dims[2:])]
        with b.labeled_nest(labels, parallel=True) as at:
            zero = scalars.constant(b, 0, f32)
            start = zero if op.bias is None else k.element(op.bias, [at[1]])
            k.finish(op, at, conv_sum(k, op, at, start))


def can_be_rows(op: ConvOp, source: LayoutAttr, target: LayoutAttr) -> bool:
    """True for f32, row-major, with the border that windows need and a last stride of one."""
    plain = LayoutAttr.row_major(source.rank).data.pieces
    return (
        is_of(op, f32)
        and source.data.pieces == target.data.pieces == plain
        and op.groups.data == 1
        and ints(op.strides)[-1] == 1
        and dims_of(op.weight)[1].value is not None
        and has_border(op, source)
    )
