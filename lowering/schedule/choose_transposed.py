"""How transposed convolutions run."""

from __future__ import annotations

from math import prod

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvTransposeOp
from lowerdeck.dialects.core.types import dims_of, static_shape
from lowerdeck.lowering.kernels.convolution import OUTPUT_CHANNEL
from lowerdeck.lowering.kernels.transposed import can_be_blocked_transposed, phases_of
from lowerdeck.lowering.schedule.parameters import Schedule
from lowerdeck.lowering.schedule.rules import (
    Choice,
    blocked_constants,
    is_constant,
    layout_in,
    schedule_rule,
    window_sums_tile,
)
from lowerdeck.lowering.targets import Machine


@schedule_rule(ConvTransposeOp)
def choose_transposed(kernel: KernelOp, op: ConvTransposeOp, machine: Machine) -> Choice | None:
    """Each phase as a direct convolution; weights change with the outer loop."""
    target = kernel.layout_at(len(kernel.inputs))
    source, w = layout_in(kernel, op.input), static_shape(op.weight)
    if w is None or not is_constant(kernel, op.weight):
        return None
    if not can_be_blocked_transposed(op, source, target):
        return None
    lanes = target.inner(1)
    first = [own[0] for own in phases_of(op)]
    depth = w[0] * max(1, prod(phase.taps for phase in first))
    height = first[-2].count if len(first) > 1 else 1
    blocks = -(-w[1] // lanes)
    count, rows, columns = window_sums_tile(machine, (blocks, height, first[-1].count), depth)
    spatial = [f"x{axis}" for axis in range(len(first))]
    sizes = [(spatial[-1], columns), (OUTPUT_CHANNEL, count)]
    if len(spatial) > 1:
        sizes.insert(0, (spatial[-2], rows))
    layouts = blocked_constants(kernel, lanes)
    # The weight last: it may have as many input channels as there are output channels.
    layouts[op.weight] = packed_weight(op, source.inner(1), lanes, count)
    return Choice(Schedule(tuple(sizes), ("n", OUTPUT_CHANNEL, *spatial)), layouts)


def packed_weight(op: ConvTransposeOp, block: int, lanes: int, count: int) -> LayoutAttr:
    """[taps][oc / (count lanes)][ic][oc / lanes % count][oc % lanes]."""
    taps = [Piece(axis) for axis in range(2, len(dims_of(op.weight)))]
    pieces = [*taps, Piece(1, lanes * count), Piece(0, block)]
    if block > 1:
        pieces.append(Piece(0, 1, block))
    if count > 1:
        pieces.append(Piece(1, lanes, count))
    return LayoutAttr.of([*pieces, Piece(1, 1, lanes)])
