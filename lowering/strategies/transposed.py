"""
Transposed convolutions over channel blocks.

Along each dimension, the outputs form as many phases as the stride: the outputs of one phase use
the same taps of the kernel, on adjacent inputs. Each combination of phases is therefore a direct
convolution of its own, with a small kernel and stride 1, that writes every stride-th output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.channel_links import channel_offsets, is_depthwise_transposed
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.nests.sums import sum_over_channels
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.conv_sums import OUTPUT_CHANNEL
from lowerdeck.lowering.strategies.costs import likely_shape, window_sum_tiles
from lowerdeck.lowering.strategies.facts import (
    assumed_size,
    blocked_constants,
    can_be_packed,
    has_channels,
    is_of,
    layout_in,
    layout_out,
    position_of,
    the,
)
from lowerdeck.lowering.targets.base import FEWEST_LANES


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
        if not has_phases(op) or not all(can_be_packed(kernel, value) for value in parameters):
            return None
        if is_narrow(op, setting.target.lanes):
            return None
        begin, end = transposed_border(op)
        border = (0, 0, *begin, 0, 0, *end)
        return Wishes(offsets, is_blocked=True, image=image, border=border)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, result = the(ConvTransposeOp, kernel), layout_out(kernel)
        source, w = layout_in(kernel, op.input), static_shape(op.weight)
        if w is None or not can_be_packed(kernel, op.weight):
            return
        if not can_be_blocked_transposed(op, source, result):
            return
        first = [own[0] for own in phases_of(op)]
        groups = op.groups.data
        depth = w[0] // groups * max(1, prod(phase.taps for phase in first))
        counts = [assumed_size(own.count) for own in first]
        height = counts[-2] if len(first) > 1 else 1
        # A tile of two groups would have no inputs in common.
        blocks = -(-w[1] // _lanes(op, result))
        spatial = [f"x{axis}" for axis in range(len(first))]
        sizes = (blocks, height, counts[-1])
        ways = window_sum_tiles(setting.target, sizes, depth, even_only=groups > 1)
        images = prod(counts[:-2]) * prod(map(len, phases_of(op))) * groups
        images *= likely_shape(op)[0] / setting.threads
        for cycles, (count, rows, columns) in ways:
            tile = [(spatial[-1], columns), (OUTPUT_CHANNEL, count)]
            if len(spatial) > 1:
                tile.insert(0, (spatial[-2], rows))
            order = ("n", OUTPUT_CHANNEL, *spatial)
            yield Candidate(images * cycles, Schedule(self.name, tuple(tile), order))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op, lanes = the(ConvTransposeOp, kernel), layout_out(kernel).inner(1)
        layouts = blocked_constants(kernel, lanes)
        block, count = _input_block(op, layout_in(kernel, op.input)), schedule.tile(OUTPUT_CHANNEL)
        # The weight last: it may have as many input channels as there are output channels.
        if is_depthwise_transposed(op):
            layouts[op.weight] = depthwise_weight(op, lanes)
        else:
            layouts[op.weight] = packed_weight(op, block, _lanes(op, layout_out(kernel)), count)
        return layouts

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        _lower_blocks(k, the(ConvTransposeOp, k.kernel))


def is_narrow(op: ConvTransposeOp, lanes: int) -> bool:
    """True if there are several groups, which fill no whole parts of vectors with their filters."""
    if op.groups.data == 1 or is_depthwise_transposed(op):
        return False
    return gcd(dims_of(op.weight)[1].value or 0, lanes) < FEWEST_LANES


def packed_weight(op: ConvTransposeOp, block: int, lanes: int, count: int) -> LayoutAttr:
    """[taps][oc / (count lanes)][ic][oc / lanes % count][oc % lanes]."""
    taps = [Piece(axis) for axis in range(2, len(dims_of(op.weight)))]
    pieces = [*taps, Piece(1, lanes * count), Piece(0, block)]
    if block > 1:
        pieces.append(Piece(0, 1, block))
    if count > 1:
        pieces.append(Piece(1, lanes, count))
    return LayoutAttr.of([*pieces, Piece(1, 1, lanes)])


def depthwise_weight(op: ConvTransposeOp, lanes: int) -> LayoutAttr:
    """[taps][c / lanes][c % lanes]."""
    taps = [Piece(axis) for axis in range(2, len(dims_of(op.weight)))]
    return LayoutAttr.of([*taps, Piece(1), Piece(0, lanes), Piece(0, 1, lanes)])


def _lanes(op: ConvTransposeOp, target: LayoutAttr) -> int:
    """How many output channels, of one group, are computed side by side."""
    if op.groups.data == 1 or is_depthwise_transposed(op):
        return target.inner(1)
    return gcd(target.inner(1), dims_of(op.weight)[1].value or 1)


def _input_block(op: ConvTransposeOp, source: LayoutAttr) -> int:
    """How many input channels, of one group, lie side by side wherever they begin."""
    if op.groups.data == 1:
        return source.inner(1)
    return gcd(source.inner(1), (dims_of(op.weight)[0].value or 1) // op.groups.data)


@record
class Phase:
    """
    Along one dimension: output `start + q * stride`, for q below `count`, is the sum over j below
    `taps` of input `q + first - j * back` times tap `tap + j * step`.
    """

    start: int
    count: Expr
    tap: int
    step: int
    taps: int
    first: int
    back: int

    @property
    def reach(self) -> tuple[int, Expr]:
        """The least and the greatest input index that is read."""
        if not self.taps or self.count == 0:
            return 0, Expr.const(0)
        return self.first - (self.taps - 1) * self.back, self.count + (self.first - 1)


def phases(size: Expr, kernel: int, stride: int, dilation: int, begin: int) -> list[Phase]:
    """The phases of one dimension; outputs without a tap have one, too."""
    step = stride // gcd(stride, dilation)
    found: list[Phase] = []
    for start in range(stride if size.value is None else min(stride, size.value)):
        count = (size - start).ceildiv(stride)
        hits = [k for k in range(min(step, kernel)) if (start + begin - k * dilation) % stride == 0]
        tap = hits[0] if hits else 0
        taps = len(range(tap, kernel, step)) if hits else 0
        first = (start + begin - tap * dilation) // stride
        found.append(Phase(start, count, tap, step, taps, first, step * dilation // stride))
    return found


def phases_of(op: ConvTransposeOp) -> list[list[Phase]]:
    """The phases of each spatial dimension; the taps have to be known."""
    sizes, taps = dims_of(op.result)[2:], constants(dims_of(op.weight)[2:])
    begin = constants(op.pads_begin.data)
    assert taps is not None
    assert begin is not None
    lists = (sizes, taps, ints(op.strides), ints(op.dilations), begin)
    return [phases(*values) for values in zip(*lists, strict=True)]


def has_phases(op: ConvTransposeOp) -> bool:
    """True if everything is known that phases depend on, and how far they reach."""
    if constants(op.pads_begin.data) is None or constants(dims_of(op.weight)) is None:
        return False
    channels = (dims_of(op.result)[1], dims_of(op.input)[1])
    return constants(channels) is not None and None not in _ends(op)


def transposed_border(op: ConvTransposeOp) -> tuple[list[int], list[int]]:
    """How far beyond its input a transposed convolution reads, per spatial dimension."""
    begin = [max([0, *(-phase.reach[0] for phase in own)]) for own in phases_of(op)]
    return begin, [end or 0 for end in _ends(op)]


def _ends(op: ConvTransposeOp) -> list[int | None]:
    """How far beyond the end of its input, per spatial dimension; None if that is not known."""
    ends: list[int | None] = []
    for size, own in zip(dims_of(op.input)[2:], phases_of(op), strict=True):
        reading = [phase for phase in own if phase.taps and phase.count != 0]
        beyond = constants([phase.reach[1] - size + 1 for phase in reading])
        ends.append(None if beyond is None else max([0, *beyond]))
    return ends


def can_be_blocked_transposed(op: ConvTransposeOp, source: LayoutAttr, target: LayoutAttr) -> bool:
    """
    True for f32, if the output has its channels in blocks that groups cut into large parts if at
    all, and the input borders; filters of single channels need inputs in the same blocks.
    """
    if not is_of(op, f32) or target.inner(1) == 1 or not has_phases(op):
        return False
    if _lanes(op, target) < min(FEWEST_LANES, target.inner(1)):
        return False
    if is_depthwise_transposed(op) and source.inner(1) != target.inner(1):
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
    lanes = _lanes(op, k.output_layout())
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
    """Over blocks of input channels, taps, channels of a block: the order of packed weights."""
    b, block = k.builder, _input_block(op, k.layout_of(op.input))
    start = scalars.constant(b, 0, f32) if op.bias is None else k.element(op.bias, [at[1]])
    inputs, outputs = dims_of(op.weight)[:2]
    channels = (inputs // op.groups.data).value
    assert channels is not None
    first, output = Expr.const(0), at[1]
    if op.groups.data > 1:
        first, output = at[1] // outputs * channels, at[1] % outputs
    bounds = [(Expr.const(0), Expr.const(phase.taps)) for phase in own]
    if not all(phase.taps for phase in own):
        return start

    def add_product(channel: Expr, taps: Index, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        where = [
            q + phase.first - j * phase.back for q, phase, j in zip(at[2:], own, taps, strict=True)
        ]
        tap = [phase.tap + j * phase.step for phase, j in zip(own, taps, strict=True)]
        value = k.element(op.input, [at[0], first + channel, *where])
        weight = k.element(op.weight, [first + channel, output, *tap])
        return [b.fma(value, weight, values[0])]

    taps = prod(phase.taps for phase in own)
    return sum_over_channels(b, (channels, block, taps), bounds, start, add_product)
