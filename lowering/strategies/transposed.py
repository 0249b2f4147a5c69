"""
Transposed convolutions over channel blocks.

Along each dimension, the outputs form as many phases as the stride: the outputs of one phase use
the same taps of the kernel, on adjacent inputs. Each combination of phases is therefore a direct
convolution of its own, with a small kernel and stride 1, that writes every stride-th output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import gcd, prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvTransposeOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, f32, static_shape
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.channel_links import channel_offsets
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.nests.sums import sum_over_channels
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.conv_sums import OUTPUT_CHANNEL
from lowerdeck.lowering.strategies.costs import window_sum_tiles
from lowerdeck.lowering.strategies.facts import (
    blocked_constants,
    has_channels,
    is_constant,
    is_of,
    layout_in,
    layout_out,
    position_of,
    the,
)


class Transposed(Strategy):
    """Each phase as a direct convolution; weights change with the outer loop."""

    name = "transposed"
    anchors = (ConvTransposeOp,)

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        op = the(ConvTransposeOp, kernel)
        offsets, image = channel_offsets(kernel), position_of(kernel, op.input)
        if offsets is None or image is None or not has_channels(kernel.results[0]):
            return None
        if not is_of(op, f32):
            return None
        parameters = [op.weight] if op.bias is None else [op.weight, op.bias]
        if not has_phases(op) or not all(is_constant(kernel, value) for value in parameters):
            return None
        begin, end = transposed_border(op)
        border = (0, 0, *begin, 0, 0, *end)
        return Wishes(offsets, is_blocked=True, image=image, border=border)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, result = the(ConvTransposeOp, kernel), layout_out(kernel)
        source, w = layout_in(kernel, op.input), static_shape(op.weight)
        if w is None or not is_constant(kernel, op.weight):
            return
        if not can_be_blocked_transposed(op, source, result):
            return
        first = [own[0] for own in phases_of(op)]
        depth = w[0] * max(1, prod(phase.taps for phase in first))
        height = first[-2].count if len(first) > 1 else 1
        blocks = -(-w[1] // result.inner(1))
        spatial = [f"x{axis}" for axis in range(len(first))]
        ways = window_sum_tiles(setting.target, (blocks, height, first[-1].count), depth)
        for cycles, (count, rows, columns) in ways:
            sizes = [(spatial[-1], columns), (OUTPUT_CHANNEL, count)]
            if len(spatial) > 1:
                sizes.insert(0, (spatial[-2], rows))
            order = ("n", OUTPUT_CHANNEL, *spatial)
            yield Candidate(cycles, Schedule(self.name, tuple(sizes), order))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op, lanes = the(ConvTransposeOp, kernel), layout_out(kernel).inner(1)
        layouts = blocked_constants(kernel, lanes)
        block, count = layout_in(kernel, op.input).inner(1), schedule.tile(OUTPUT_CHANNEL)
        # The weight last: it may have as many input channels as there are output channels.
        layouts[op.weight] = packed_weight(op, block, lanes, count)
        return layouts

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        _lower_blocks(k, the(ConvTransposeOp, k.kernel))


def packed_weight(op: ConvTransposeOp, block: int, lanes: int, count: int) -> LayoutAttr:
    """[taps][oc / (count lanes)][ic][oc / lanes % count][oc % lanes]."""
    taps = [Piece(axis) for axis in range(2, len(dims_of(op.weight)))]
    pieces = [*taps, Piece(1, lanes * count), Piece(0, block)]
    if block > 1:
        pieces.append(Piece(0, 1, block))
    if count > 1:
        pieces.append(Piece(1, lanes, count))
    return LayoutAttr.of([*pieces, Piece(1, 1, lanes)])


@dataclass(frozen=True)
class Phase:
    """
    Along one dimension: output `start + q * stride`, for q below `count`, is the sum over j below
    `taps` of input `q + first - j * back` times tap `tap + j * step`.
    """

    start: int
    count: int
    tap: int
    step: int
    taps: int
    first: int
    back: int

    @property
    def reach(self) -> tuple[int, int]:
        """The least and the greatest input index that is read."""
        if not self.taps or not self.count:
            return 0, 0
        return self.first - (self.taps - 1) * self.back, self.first + self.count - 1


def phases(size: int, kernel: int, stride: int, dilation: int, begin: int) -> list[Phase]:
    """The phases of one dimension, including those of outputs without a tap."""
    step = stride // gcd(stride, dilation)
    found: list[Phase] = []
    for start in range(min(stride, size)):
        count = -(-(size - start) // stride)
        hits = [k for k in range(min(step, kernel)) if (start + begin - k * dilation) % stride == 0]
        tap = hits[0] if hits else 0
        taps = len(range(tap, kernel, step)) if hits else 0
        first = (start + begin - tap * dilation) // stride
        found.append(Phase(start, count, tap, step, taps, first, step * dilation // stride))
    return found


def phases_of(op: ConvTransposeOp) -> list[list[Phase]]:
    """The phases of each spatial dimension; the shapes have to be known."""
    sizes, taps = constants(dims_of(op.result)[2:]), constants(dims_of(op.weight)[2:])
    begin = constants(op.pads_begin.data)
    assert sizes is not None
    assert taps is not None
    assert begin is not None
    lists = (sizes, taps, ints(op.strides), ints(op.dilations), begin)
    return [phases(*values) for values in zip(*lists, strict=True)]


def has_phases(op: ConvTransposeOp) -> bool:
    """True if all sizes and parameters that phases depend on are known."""
    shapes = (dims_of(op.result)[1:], dims_of(op.input)[1:], dims_of(op.weight))
    return constants(op.pads_begin.data) is not None and all(map(constants, shapes))


def transposed_border(op: ConvTransposeOp) -> tuple[list[int], list[int]]:
    """How far beyond its input a transposed convolution reads, per spatial dimension."""
    begin: list[int] = []
    end: list[int] = []
    for size, own in zip(dims_of(op.input)[2:], phases_of(op), strict=True):
        assert size.value is not None
        begin.append(max([0, *(-phase.reach[0] for phase in own)]))
        end.append(max([0, *(phase.reach[1] - size.value + 1 for phase in own)]))
    return begin, end


def can_be_blocked_transposed(op: ConvTransposeOp, source: LayoutAttr, target: LayoutAttr) -> bool:
    """True for f32 of one group, if the output is in channel blocks and the input has borders."""
    if not is_of(op, f32) or op.groups.data != 1 or target.inner(1) == 1:
        return False
    if not has_phases(op):
        return False
    begin, end = transposed_border(op)
    have = (*source.data.begin[2:], *source.data.end[2:])
    return all(border >= need for border, need in zip(have, (*begin, *end), strict=True))


def _lower_blocks(k: KernelLowering, op: ConvTransposeOp) -> None:
    """One loop nest for each combination of phases."""
    for combination in combinations(*phases_of(op)):
        _lower_phases(k, op, combination)


def _lower_phases(k: KernelLowering, op: ConvTransposeOp, own: Sequence[Phase]) -> None:
    b, dims = k.builder, dims_of(op.result)
    lanes = k.output_layout().inner(1)
    blocks = dims[1].ceildiv(lanes)
    spatial = [(f"x{axis}", phase.count) for axis, phase in enumerate(own)]
    strides = ints(op.strides)
    with (
        b.labeled_nest([("n", dims[0]), (OUTPUT_CHANNEL, blocks), *spatial], parallel=True) as at,
        b.loop(lanes, label="lane", mode="lanes") as lane,
    ):
        channel = at[1] * lanes + lane
        positions = [
            q * stride + phase.start for q, stride, phase in zip(at[2:], strides, own, strict=True)
        ]
        total = _sum(k, op, [at[0], channel, *at[2:]], own)
        k.finish(op, [at[0], channel, *positions], total)


def _sum(k: KernelLowering, op: ConvTransposeOp, at: Index, own: Sequence[Phase]) -> SSAValue:
    """Over input channel blocks, taps, and channels of a block: the order of packed weights."""
    b, block = k.builder, k.layout_of(op.input).inner(1)
    start = scalars.constant(b, 0, f32) if op.bias is None else k.element(op.bias, [at[1]])
    channels = dims_of(op.weight)[0].value
    assert channels is not None
    bounds = [(Expr.const(0), Expr.const(phase.taps)) for phase in own]
    if not all(phase.taps for phase in own):
        return start

    def add_product(channel: Expr, taps: Index, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        where = [
            q + phase.first - j * phase.back for q, phase, j in zip(at[2:], own, taps, strict=True)
        ]
        tap = [phase.tap + j * phase.step for phase, j in zip(own, taps, strict=True)]
        value = k.element(op.input, [at[0], channel, *where])
        return [b.fma(value, k.element(op.weight, [channel, at[1], *tap]), values[0])]

    taps = prod(phase.taps for phase in own)
    return sum_over_channels(b, (channels, block, taps), bounds, start, add_product)
