"""
Convolution tap by tap, over channel blocks: each tap only for the positions where it lies within
the image.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32, static_shape
from lowerdeck.dialects.dims import Expr, constants, maximum
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.taps import position_range
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.conv_sums import (
    OUTPUT_CHANNEL,
    conv_sum,
    conv_wishes,
    has_blocks,
    spatial_labels,
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
    layout_in,
    layout_out,
    the,
)
from lowerdeck.lowering.strategies.winograd import winograd_cycles
from lowerdeck.lowering.targets.base import Costs


class Taps(Strategy):
    """
    Tap by tap, where that skips much padding: a row of positions by output channels. The partial
    sums are in the output, and the input needs no border.
    """

    name = "taps"
    anchors = (ConvOp,)

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        op = the(ConvOp, kernel)
        if not leaves_out_padding(kernel, op, setting.target.costs):
            return None
        cycles = direct_cycles(op, setting.target.lanes, setting) * share_on_image(op)
        if winograd_cycles(kernel, op, setting) < cycles:
            return None
        border = (0,) * (2 * len(dims_of(op.input)))
        return conv_wishes(kernel, op, is_blocked=True, border=border)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, result = the(ConvOp, kernel), layout_out(kernel)
        if not leaves_out_padding(kernel, op, setting.target.costs) or not has_blocks(op, result):
            return
        if not can_be_packed(kernel, op.weight):
            return
        shape, w, lanes = assumed_shape(op.result), static_shape(op.weight), result.inner(1)
        assert w is not None
        sizes = (-(-shape[1] // lanes), 1, shape[-1])
        ways = window_sum_tiles(setting.target, sizes, w[1], even_only=True)
        # The share of the products and weights of the direct sum that lies on the image.
        share, is_plain = share_on_image(op), layout_in(kernel, op.input).inner(1) == 1
        cycles = direct_cycles(op, lanes, setting) * share
        for estimate, (count, _, columns) in in_proportion(cycles, ways):
            tile = ((f"x{len(shape[2:]) - 1}", columns), (OUTPUT_CHANNEL, count))
            if is_plain:
                number = shape[0] * prod(shape[2:-1]) * -(-shape[-1] // columns) * sizes[0] / count
                visits = number * prod(w[1:]) * share
                pages = distance_cycles(op, setting.target, depth=w[1], visits=visits)
                estimate += pages / setting.threads
            yield Candidate(estimate, Schedule(self.name, tile))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op, lanes = the(ConvOp, kernel), layout_out(kernel).inner(1)
        count = schedule.tile(OUTPUT_CHANNEL)
        layouts = blocked_constants(kernel, lanes)
        taps = map(Piece, range(2, len(dims_of(op.weight))))
        pieces = [Piece(0, lanes * count), *taps, Piece(1)]
        if count > 1:
            pieces.append(Piece(0, lanes, count))
        layouts[op.weight] = LayoutAttr.of([*pieces, Piece(0, 1, lanes)])
        return layouts

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        _lower_by_taps(k, the(ConvOp, k.kernel), schedule.tile(OUTPUT_CHANNEL))


SUM_IN_MEMORY = 4
"""Products that take as long as storing a sum and loading it again."""


def leaves_out_padding(kernel: KernelOp, op: ConvOp, costs: Costs) -> bool:
    """
    True for a convolution that runs tap by tap: so many of its products have a padding factor that
    accumulating in memory pays.
    """
    pads = constants((*op.pads_begin.data, *op.pads_end.data))
    if static_shape(op.weight) is None or pads is None or op.groups.data > 1:
        return False
    if len(kernel.results) != 1 or element_type(kernel.results[0]) != f32:
        return False
    is_dilated = max(ints(op.dilations)) > 1
    most = costs.products_by_dilated_taps if is_dilated else costs.products_by_taps
    # Between two taps a sum is stored and loaded again, whatever the number of products of a tap.
    channels = max(assumed_shape(op.weight)[1], 1)
    return share_on_image(op) * (1 + SUM_IN_MEMORY / channels) < most


def share_on_image(op: ConvOp) -> float:
    """The share of its products without a padding factor."""
    weight, strides, dilations = static_shape(op.weight), ints(op.strides), ints(op.dilations)
    pads = constants((*op.pads_begin.data, *op.pads_end.data))
    assert weight is not None
    assert pads is not None
    part, rank = 1.0, len(strides)
    for d, size in enumerate(assumed_shape(op.input)[2:]):
        reach = (weight[d + 2] - 1) * dilations[d]
        count = max(1, (size + pads[d] + pads[d + rank] - reach - 1) // strides[d] + 1)
        on_image = 0
        for tap in range(weight[d + 2]):
            first = pads[d] - tap * dilations[d]
            # Of all positions those that lie at or behind the first element, and the last one.
            inside = (-(-bound // strides[d]) for bound in (first, first + size))
            begin, end = (min(max(position, 0), count) for position in inside)
            on_image += end - begin
        part *= on_image / (count * weight[d + 2])
    return part


def _lower_by_taps(k: KernelLowering, op: ConvOp, count: int) -> None:
    """
    One tap after the other, for the positions where it lies within the image: padding is never
    read, so the input needs no border. The partial sums are in the output.
    """
    b, dims = k.builder, dims_of(op.result)
    x, w = dims_of(op.input), dims_of(op.weight)
    strides, dilations = ints(op.strides), ints(op.dilations)
    begin, end = op.pads_begin.data, op.pads_end.data
    lanes = k.output_layout().inner(1)
    groups = dims[1].ceildiv(lanes) // count

    @contextmanager
    def positions(
        outer: Sequence[Expr], ranges: Sequence[tuple[Expr, Expr]]
    ) -> Generator[list[Expr]]:
        """Indices of the result: `ranges` holds the start and the length of each range."""
        inner = [*spatial_labels([size for _, size in ranges]), (OUTPUT_CHANNEL, Expr.const(count))]
        with b.labeled_nest(inner) as at, b.loop(lanes, label="lane", mode="lanes") as lane:
            space = [i + first for i, (first, _) in zip(at, ranges, strict=False)]
            yield [outer[0], (outer[1] * count + at[-1]) * lanes + lane, *space]

    whole = [(Expr.const(0), dim) for dim in dims[2:]]
    with b.labeled_nest([("n", dims[0]), ("group", groups)], parallel=True) as outer:
        with positions(outer, whole) as where:
            zero = scalars.constant(b, 0, f32)
            start = zero if op.bias is None else k.element(op.bias, [where[1]])
            b.store(start, k.outputs[0], where)
        with b.nest(w[2:]) as taps:
            ranges: list[tuple[Expr, Expr]] = []
            for d, tap in enumerate(taps):
                offset, size = tap * dilations[d], (dims[d + 2], x[d + 2])
                lower, upper = position_range(offset, *size, strides[d], begin[d], end[d])
                ranges.append((b.computed(lower), b.computed(maximum(upper - lower, 0))))
            with positions(outer, ranges) as where:
                total = b.load(k.outputs[0], where)
                b.store(conv_sum(k, op, where, total, taps=taps), k.outputs[0], where)
        if k.has_epilogue(op):
            with positions(outer, whole) as where:
                k.finish_in_place(op, where)
