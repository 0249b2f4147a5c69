"""
Direct convolution over channel blocks: one output element per lane, in tiles of positions by output
channel blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Counts, Schedule
from lowerdeck.dialects.core.types import dims_of, element_type, f32, static_shape
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.conv_sums import (
    OUTPUT_CHANNEL,
    POSITION,
    can_be_blocked,
    conv_sum,
    conv_wishes,
    crosses_groups,
    input_block_of_conv,
    is_depthwise,
    is_in_line,
    lanes_of_conv,
    place_of,
    spatial_labels,
    spatial_loops,
)
from lowerdeck.lowering.strategies.costs import (
    direct_cycles,
    distance_cycles,
    in_proportion,
    window_sum_tiles,
)
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    blocked_constants,
    can_be_packed,
    item_bytes,
    layout_in,
    layout_out,
    position_of,
    the,
)
from lowerdeck.lowering.targets.base import Target

PANEL = "panel"
"""The label of the loop over the panels of output channels that share one part of the sums."""

GROUP = "group"
"""The label of the loop over groups of positions in line, and the parameter of a schedule that has
them: how many positions there are in one. The inputs of a group stay in the L1 cache for all output
channels."""

DEPTH_BLOCKS, PANELS = "depth_blocks", "panels"
"""Parameters of a schedule with sums in parts: the input channel blocks in a part, and the number
of panels of output channels that take turns with the parts. Threads share groups of so many."""


SHORTEST_SUM = 64
"""Input channels of a part: results are read and written once for so many products."""


class Direct(Strategy):
    """
    A tile of positions by output channel blocks; the sums over all products are accumulated in
    registers.

    Channels are the outer loop if there are more weights than inputs, so that the larger operand is
    read once; and if the weights of one tile fit in the L1 cache, but not all weights. If the
    weights of one tile are large, sums are computed in parts, and each part is accumulated for many
    panels of output channels. Windows of one tap may take an image that is larger than the L2 cache
    by groups of positions, or by rows.
    """

    name = "direct"
    anchors = (ConvOp,)
    parameters = (DEPTH_BLOCKS, PANELS, GROUP)

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        op = the(ConvOp, kernel)
        if is_depthwise(op):
            return None
        return conv_wishes(kernel, op, is_blocked=True)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, target = the(ConvOp, kernel), setting.target
        result, source = layout_out(kernel), layout_in(kernel, op.input)
        shape, x, w = assumed_shape(op.result), assumed_shape(op.input), static_shape(op.weight)
        if w is None or not can_be_blocked(op, source, result):
            return
        if not can_be_packed(kernel, op.weight):
            return
        lanes, block = lanes_of_conv(op, result), input_block_of_conv(op, source)
        # A tile across groups has one block, whose groups differ from those of the next one.
        blocks = 1 if crosses_groups(op, result) else -(-shape[1] // lanes) // op.groups.data
        depth = prod(w[1:])
        spatial, space = [f"x{axis}" for axis in range(len(shape) - 2)], shape[2:]
        if is_in_line(kernel, op):
            spatial, space = [POSITION], [prod(space)]
        # Trailing dimensions of size one are not rows.
        wide = [axis for axis, size in enumerate(space) if size != 1]
        inner = wide[-1] if wide else len(spatial) - 1
        width, height = space[inner], space[inner - 1] if inner else 1
        item = item_bytes(op.weight)
        weight_bytes, step_bytes = depth * shape[1] * item, block * prod(w[2:]) * lanes * item
        positions_first = ("n", *spatial, OUTPUT_CHANNEL)
        ahead = position_of(kernel, op.weight)
        # A tile of two groups would have no inputs in common.
        ways = window_sum_tiles(
            target, (blocks, height, width), depth, even_only=op.groups.data > 1
        )
        whole = direct_cycles(op, lanes, setting) * _computed(op, result)
        for cycles, (count, rows, columns) in in_proportion(whole, ways):
            sizes = [(spatial[inner], columns), (OUTPUT_CHANNEL, count)]
            if inner:
                sizes.insert(0, (spatial[inner - 1], rows))
            panel_bytes = depth * count * lanes * item
            panel_stays = panel_bytes <= target.machine.l1_bytes * 2 // 3 < weight_bytes
            # Parts pay where tiles read the same weights again, and threads get equal work.
            is_read_again = rows * columns < height * width
            is_plain = op.groups.data == 1 and element_type(kernel.results[0]) == f32
            busiest = _busy(blocks // count, setting.threads) * setting.threads * count
            part, own = None, ()
            if is_read_again and is_plain and blocks % count == 0 and busiest <= blocks * 5 // 4:
                image_bytes = block * prod(x[2:]) * item_bytes(op.input)
                part = part_of_depth(
                    target, *divmod(w[1], block), step_bytes * count, image_bytes, block
                )
            channels_first = ["n", OUTPUT_CHANNEL, *spatial]
            if part is not None:
                own = (
                    (DEPTH_BLOCKS, part),
                    (PANELS, panels_in_group(blocks // count, setting.threads)),
                )
                channels_first.insert(1, PANEL)
            schedules = [
                Schedule(
                    self.name, tuple(sizes), tuple(channels_first), prefetch=ahead, parameters=own
                ),
                Schedule(self.name, tuple(sizes), positions_first),
            ]
            cut = None
            if panel_bytes <= target.machine.l1_bytes:
                cut = _cut_of_image(op, target, spatial, (rows, columns))
            if cut is not None:
                order, own = cut
                in_cuts = Schedule(self.name, tuple(sizes), order, prefetch=ahead, parameters=own)
                schedules = [in_cuts, schedules[0]]
            elif prod(w) <= prod(x) and not panel_stays and part is None:
                schedules.reverse()
            if block == 1:
                read = w[1] if part is None else part
                visits = prod(shape[2:]) / (rows * columns) * -(-blocks // count) * w[1]
                pages = distance_cycles(op, target, depth=read, visits=shape[0] * visits)
                cycles += pages / setting.threads
            yield Candidate(cycles, schedules[0])
            yield Candidate(cycles * target.costs.other_order, schedules[1])

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op, result = the(ConvOp, kernel), layout_out(kernel)
        block = input_block_of_conv(op, layout_in(kernel, op.input))
        layouts = blocked_constants(kernel, result.inner(1))
        part = schedule.get(DEPTH_BLOCKS)
        # The weight last: it may have as many input channels as there are output channels.
        layouts[op.weight] = packed_weight(
            op,
            block,
            lanes_of_conv(op, result),
            schedule.tile(OUTPUT_CHANNEL),
            None if part is None else (part, schedule.parameter(PANELS)),
        )
        return layouts

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op = the(ConvOp, k.kernel)
        if schedule.get(DEPTH_BLOCKS) is not None:
            _lower_in_parts(k, op, schedule)
        elif crosses_groups(op, k.output_layout()):
            _lower_across_groups(k, op)
        else:
            _lower_blocks(k, op, schedule)


def _computed(op: ConvOp, result: LayoutAttr) -> float:
    """How often an output channel block is computed: once for each group that it belongs to."""
    channels, lanes = dims_of(op.weight)[0].value or 0, result.inner(1)
    if not crosses_groups(op, result):
        return 1.0
    size, firsts = channels // op.groups.data, range(0, channels, lanes)
    last = channels - 1
    groups = sum(min(first + lanes - 1, last) // size - first // size + 1 for first in firsts)
    return groups / len(firsts)


def _cut_of_image(
    op: ConvOp, target: Target, spatial: Sequence[str], tile: tuple[int, int]
) -> tuple[tuple[str, ...], Counts] | None:
    """
    The order of loops by which windows of one tap take an image that does not stay in the L2 cache,
    and parameters of the schedule: by groups of positions in line, in whole tiles, whose inputs
    stay in the L1 cache, else by rows of tiles. None for an image that stays there, and for targets
    on which reading it again does not matter.
    """
    image, limit = static_shape(op.input), target.limits.position_bytes
    if image is None or not limit or any(tap != 1 for tap in dims_of(op.weight)[2:]):
        return None
    each = image[1] // op.groups.data * item_bytes(op.input)
    if prod(image[2:]) * each <= target.machine.l2_bytes:
        return None
    rows, columns = tile
    if spatial == [POSITION]:
        tiles = -(-prod(image[2:]) // columns)
        groups = -(-tiles // max(limit // each // columns, 1))
        size = -(-tiles // groups) * columns
        return ("n", GROUP, OUTPUT_CHANNEL, POSITION), ((GROUP, size),)
    if len(image) < 2 + 2 or rows * image[-1] * each > target.machine.l2_bytes // 2:
        return None
    return ("n", *spatial[:-1], OUTPUT_CHANNEL, spatial[-1]), ()


def part_of_depth(
    target: Target, blocks: int, rest: int, step: int, image: int, block: int
) -> int | None:
    """
    The number of input channel blocks to accumulate for all positions before the next ones, if the
    weights of a panel do not stay in the L1 cache: `step` bytes per block. None for all of them.
    The input stays there, too, `image` bytes per block, if that leaves sums long enough.
    """
    if rest or blocks < 2 or blocks * step < target.machine.l2_bytes // 16:
        return None
    fitting = [size for size in range(1, blocks) if blocks % size == 0]
    both = max(
        (size for size in fitting if size * (step + image) <= target.machine.l1_bytes), default=0
    )
    if both * block >= SHORTEST_SUM:
        return both
    return max((size for size in fitting if size * step <= target.machine.l1_bytes // 2), default=1)


def panels_in_group(panels: int, threads: int) -> int:
    """The number of panels that take turns, so that threads get nearly equal numbers."""
    sizes = [size for size in range(1, panels + 1) if panels % size == 0]
    return min(sizes, key=lambda size: (_busy(panels // size, threads) * size, -size))


def _busy(groups: int, threads: int) -> int:
    """The number of groups of the busiest thread."""
    return -(-groups // threads)


def packed_weight(
    op: ConvOp, block: int, lanes: int, count: int, parts: tuple[int, int] | None = None
) -> LayoutAttr:
    """
    [oc / (count lanes)][ic / block][taps][ic % block][oc / lanes % count][oc % lanes].

    With `parts`, the blocks of input channels in a part, and the panels that take turns with them:
    [oc / (turns count lanes)][ic / (part block)][oc / (count lanes) % turns][ic / block % part]...
    """
    rank = len(dims_of(op.weight))
    part, turns = parts or (1, 1)
    pieces = [Piece(0, lanes * count * turns), Piece(1, block * part)]
    if turns > 1:
        pieces.append(Piece(0, lanes * count, turns))
    if part > 1:
        pieces.append(Piece(1, block, part))
    pieces += map(Piece, range(2, rank))
    if block > 1:
        pieces.append(Piece(1, 1, block))
    if count > 1:
        pieces.append(Piece(0, lanes, count))
    return LayoutAttr.of([*pieces, Piece(0, 1, lanes)])


def _lower_blocks(k: KernelLowering, op: ConvOp, schedule: Schedule) -> None:
    """
    The sum for one output element runs over input channel blocks, taps, and channels of a block, in
    the order of packed weights. The input has a border where windows extend beyond it, and the
    output is in channel blocks, which are the lanes; if groups divide blocks, parts of them.
    """
    b, dims = k.builder, dims_of(op.result)
    lanes = lanes_of_conv(op, k.output_layout())
    blocks = dims[1].ceildiv(lanes)

    def add(image: Expr, block: Expr, place: Sequence[Expr]) -> None:
        with b.loop(lanes, label="lane", mode="lanes") as lane:
            channel = block * lanes + lane
            where = [image, channel, *place_of(op, place)]
            zero = scalars.constant(b, 0, element_type(op.input))
            start = zero if op.bias is None else k.element(op.bias, [channel])
            k.finish(op, where, conv_sum(k, op, where, start))

    images, panels = ("n", dims[0]), (OUTPUT_CHANNEL, blocks)
    if (size := schedule.get(GROUP)) is None:
        with b.labeled_nest([images, panels, *spatial_loops(op, schedule)], parallel=True) as at:
            add(at[0], at[1], at[2:])
        return
    ((label, positions),) = spatial_loops(op, schedule)
    groups, rest = positions // size, positions % size
    for first, count, each in (
        (Expr.const(0), groups, Expr.const(size)),
        (groups, Expr.const(1), rest),
    ):
        if count != 0 and each != 0:
            loops = [images, (GROUP, count), panels, (label, each)]
            with b.labeled_nest(loops, parallel=True) as at:
                image, group, panel, place = at
                add(image, panel, [(first + group) * size + place])


def _lower_in_parts(k: KernelLowering, op: ConvOp, schedule: Schedule) -> None:
    """
    The same in parts of some input channel blocks: one part for all panels of output channels in a
    group, panel after panel, and then the next part. The input of a part stays in the L2 cache
    while the panels use it, and the weights of a panel in the L1 cache while all positions use
    them; the partial sums are in the output.
    """
    b, dims = k.builder, dims_of(op.result)
    lanes = k.output_layout().inner(1)
    count, size = schedule.tile(OUTPUT_CHANNEL), schedule.parameter(DEPTH_BLOCKS)
    share = schedule.parameter(PANELS)
    channels = dims_of(op.weight)[1].value
    assert channels is not None
    parts = channels // k.layout_of(op.input).inner(1) // size
    shares = dims[1].ceildiv(lanes) // (count * share)
    inner = [
        (PANEL, Expr.const(share)),
        *spatial_loops(op, schedule),
        (OUTPUT_CHANNEL, Expr.const(count)),
    ]

    def add_part(outer: Sequence[Expr], part: Expr, *, first: bool, last: bool) -> None:
        with b.labeled_nest(inner) as at, b.loop(lanes, label="lane", mode="lanes") as lane:
            block = (outer[1] * share + at[0]) * count + at[-1]
            channel = block * lanes + lane
            where = [outer[0], channel, *place_of(op, at[1:-1])]
            zero = scalars.constant(b, 0, f32)
            total = conv_sum(k, op, where, zero, (part * size, size))
            if not first:
                total = scalars.add(b, b.load(k.outputs[0], where), total)
            elif op.bias is not None:
                total = scalars.add(b, k.element(op.bias, [channel]), total)
            if last:
                k.finish(op, where, total)
            else:
                b.store(total, k.outputs[0], where)

    with b.labeled_nest([("n", dims[0]), ("group", shares)], parallel=True) as outer:
        add_part(outer, Expr.const(0), first=True, last=False)
        if parts > 2:
            with b.loop(parts - 1, 1) as part:
                add_part(outer, part, first=False, last=False)
        add_part(outer, Expr.const(parts - 1), first=False, last=True)


def _lower_across_groups(k: KernelLowering, op: ConvOp) -> None:
    """
    The same if output channel blocks belong to several groups: once for each of them, and lanes of
    earlier groups keep the values that these have stored.
    """
    b, dims = k.builder, dims_of(op.result)
    depth, lanes = dims_of(op.weight)[1], k.output_layout().inner(1)
    size = dims[1] // op.groups.data
    blocks = dims[1].ceildiv(lanes)
    with b.labeled_nest([("n", dims[0]), ("block", blocks)], parallel=True) as outer:
        numbers = b.scratch(f32, [lanes])
        with b.loop(lanes) as number:
            b.store(b.add(arith.SIToFPOp(b.as_integer(number), f32)), numbers, [number])
        begin = outer[1] * lanes
        last = minimum(begin + (lanes - 1), dims[1] - 1)
        with b.loop(last // size + 1, begin // size) as group:
            start = b.as_integer(group * size - begin)
            first_lane = b.add(arith.SIToFPOp(start, f32))
            inner = spatial_labels(dims[2:])
            with b.labeled_nest(inner) as at, b.loop(lanes, label="lane", mode="lanes") as lane:
                where = [outer[0], begin + lane, *at]
                zero = scalars.constant(b, 0, f32)
                bias = zero if op.bias is None else k.element(op.bias, [where[1]])
                total = conv_sum(k, op, where, bias, first=group * depth)
                is_before = b.add(arith.CmpfOp(b.load(numbers, [lane]), first_lane, "olt"))
                before = b.load(k.outputs[0], where)
                result = k.finished(op, where, total)
                b.store(b.add(arith.SelectOp(is_before, before, result)), k.outputs[0], where)
