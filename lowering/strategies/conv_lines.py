"""
Convolution of row-major images: the lanes are adjacent results of a row, and weights are broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.dialects.core.types import dims_of, static_shape
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import FEWEST_TO_SHARE, Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.conv_sums import (
    OUTPUT_CHANNEL,
    can_be_blocked,
    conv_wishes,
    crosses_groups,
    is_depthwise,
    lanes_of_conv,
)
from lowerdeck.lowering.strategies.costs import (
    conversion_cycles,
    direct_cycles,
    likely_images,
    likely_shape,
)
from lowerdeck.lowering.strategies.facts import (
    anchors_of,
    is_constant,
    layout_in,
    layout_out,
    position_of,
    the,
)
from lowerdeck.lowering.strategies.line_bands import Band, BandLoops
from lowerdeck.lowering.strategies.line_copies import copied_lines
from lowerdeck.lowering.strategies.line_plans import (
    BAND_COLUMNS,
    BAND_ROWS,
    COPIED,
    VECTOR,
    plan_lines,
)
from lowerdeck.lowering.strategies.line_sums import LineSums
from lowerdeck.lowering.strategies.winograd import winograd_cycles

SURELY_FASTER = 1.5
"""How much faster than in blocks it has to be for rows of unknown length."""


class ConvLines(Strategy):
    """
    A band of some rows at a time: the inputs under it are copied with their padding, those of
    strided windows apart by their place modulo the stride, so that every tap reads whole vectors.
    Where windows neither reach beyond the image nor have a stride, inputs are copied only
    where channels lie so far apart that reading them in place takes longer.

    For groups of any size, sizes known or not, and weights that may be computed.
    """

    name = "conv_lines"
    anchors = (ConvOp,)
    parameters = (VECTOR, BAND_ROWS, BAND_COLUMNS, COPIED)

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        op = the(ConvOp, kernel)
        image = position_of(kernel, op.input)
        if image is None or is_depthwise(op) or setting.target.lanes == 1:
            return None
        if not (_comes_plain(kernel.inputs[image]) and _leaves_plain(kernel.results[0])):
            return None
        plan = plan_lines(op, setting.target, setting.threads)
        in_blocks = _cycles_in_blocks(kernel, op, setting)
        if plan is None or plan.cycles / setting.threads > in_blocks:
            return None
        if dims_of(op.result)[-1].value is None and in_blocks < inf:
            # Rows may be too short for vectors.
            if plan.cycles / setting.threads * SURELY_FASTER > in_blocks:
                return None
        border = (0,) * (2 * len(dims_of(op.input)))
        return conv_wishes(kernel, op, works_on_rows=True, border=border)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op = the(ConvOp, kernel)
        plain = LayoutAttr.row_major(len(dims_of(op.input))).data.pieces
        layouts = (layout_in(kernel, op.input), layout_out(kernel))
        if any(layout.data.pieces != plain for layout in layouts):
            return
        if (plan := plan_lines(op, setting.target, setting.threads)) is not None:
            yield Candidate(plan.cycles / setting.threads, plan.schedule(self.name))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op, filters = the(ConvOp, kernel), schedule.tile(OUTPUT_CHANNEL)
        if filters == 1 or not is_constant(kernel, op.weight):
            return {}
        axes = range(1, len(dims_of(op.weight)))
        pieces = [Piece(0, filters), *map(Piece, axes), Piece(0, 1, filters)]
        return {op.weight: LayoutAttr.of(pieces)}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        _lower(BandLoops(k, the(ConvOp, k.kernel), schedule))


def _comes_plain(image: SSAValue) -> bool:
    """True for a value that no kernel makes, or a map of such values."""
    source = image.owner
    if not isinstance(source, KernelOp):
        return True
    are_plain = not any(isinstance(value.owner, KernelOp) for value in source.inputs)
    return are_plain and not anchors_of(source)


def _leaves_plain(result: SSAValue) -> bool:
    """True for a value that no kernel reads, or but maps and concatenations that are such."""
    for user in [use.operation for use in result.uses]:
        if not isinstance(user, KernelOp):
            continue
        if any(not isinstance(op, ConcatOp) for op in anchors_of(user)):
            return False
        uses = [use for value in user.results for use in value.uses]
        if any(isinstance(use.operation, KernelOp) for use in uses):
            return False
    return True


def _cycles_in_blocks(kernel: KernelOp, op: ConvOp, setting: Setting) -> float:
    """Of the same convolution over channel blocks, with both conversions."""
    lanes, weight = setting.target.lanes, static_shape(op.weight)
    pads = constants((*op.pads_begin.data, *op.pads_end.data))
    if weight is None or pads is None:
        return inf
    rank = len(weight)
    result = LayoutAttr.blocked(rank, 1, lanes)
    begin, end = pads[: rank - 2], pads[rank - 2 :]
    source = result.padded((0, 0, *begin), (0, 0, *end))
    if not can_be_blocked(op, source, result):
        return inf
    cycles = direct_cycles(op, lanes, setting)
    if crosses_groups(op, result):
        cycles *= 1 + lanes * op.groups.data / weight[0]
    elif op.groups.data > 1:
        cycles *= lanes / lanes_of_conv(op, result)
    cycles = min(cycles, winograd_cycles(kernel, op, setting))
    # An input without a border is read as it lies.
    if prod(weight[2:]) > 1:
        cycles *= setting.target.costs.window_share
    moved = prod(likely_shape(op)) + (prod(likely_images(op.input)) if any(pads) else 0)
    return cycles + moved * conversion_cycles(setting.target) / setting.threads


def _lower(loops: BandLoops) -> None:
    """
    A band of one group at a time. Where there are few groups and images, bands of rows are dealt
    out to threads.
    """
    dims, groups = loops.dims, loops.op.groups.data
    planes = [("n", dims[0]), ("g", Expr.const(groups))]
    outer = [(f"z{axis}", dim) for axis, dim in enumerate(dims[2:-2])]
    bands = [("y", dim.ceildiv(loops.rows)) for dim in dims[2:][-2:-1]]
    columns = ("x", dims[-1].ceildiv(loops.columns))
    count = (dims[0] * groups).value
    few = count is not None and count < FEWEST_TO_SHARE
    order = [*bands, *planes] if few else [*planes, *bands]
    order = [*order, *outer, columns]
    # Threads share the filters of a single band, if there is nothing to be copied before.
    is_single = not loops.is_copied and all(size == 1 for _, size in order)
    with loops.b.labeled_nest(order, parallel=True) as at:
        place = dict(zip((label for label, _ in order), at, strict=True))
        down = [loops.span(-2, place["y"], loops.rows) for _ in bands]
        across = loops.span(-1, place["x"], loops.columns)
        slice_ = [place[label] for label, _ in outer]
        band = Band(place["n"], place["g"], slice_, down, across)
        lines = copied_lines(loops, band) if loops.is_copied else None
        LineSums(loops, band, lines).build(is_single=is_single)
