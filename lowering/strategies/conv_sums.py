"""What the strategies of convolutions share: the sum of one element, and which layouts it takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, f32, static_shape
from lowerdeck.dialects.dims import Expr, constants, product
from lowerdeck.lowering.nests.channel_links import channel_offsets
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.sums import sum_over_channels
from lowerdeck.lowering.strategies.base import Border, Wishes
from lowerdeck.lowering.strategies.facts import (
    can_be_packed,
    has_channels,
    is_of,
    layout_in,
    layout_out,
    position_of,
)
from lowerdeck.lowering.targets.base import FEWEST_LANES

OUTPUT_CHANNEL = "oc"
"""The label of the loop over blocks of output channels; `n` is that over the batch, `x0`, `x1`, ...
those over space."""


POSITION = "x"
"""The label of the loop over all positions, where inputs and results of a position are in line."""


def conv_wishes(
    kernel: KernelOp,
    op: ConvOp,
    *,
    is_blocked: bool = False,
    works_on_rows: bool = False,
    saved: float = 0.0,
    border: Border | None = None,
) -> Wishes | None:
    """
    What strategies of convolutions ask for that need packed weights and known padding: a border as
    wide as that, if no other is given.
    """
    offsets = channel_offsets(kernel)
    pads = [pad.value for pad in (*op.pads_begin.data, *op.pads_end.data)]
    if offsets is None or None in pads or static_shape(op.weight) is None or not is_of(op, f32):
        return None
    image = position_of(kernel, op.input)
    parameters = [op.weight] if op.bias is None else [op.weight, op.bias]
    if image is None or not all(can_be_packed(kernel, value) for value in parameters):
        return None
    if not has_channels(kernel.results[0]):
        return None
    if border is None:
        begin, end = (
            [pad.value or 0 for pad in pads.data] for pads in (op.pads_begin, op.pads_end)
        )
        border = (0, 0, *begin, 0, 0, *end)
    return Wishes(
        offsets,
        is_blocked=is_blocked,
        image=image,
        border=border,
        saved=saved,
        works_on_rows=works_on_rows,
    )


def is_depthwise(op: ConvOp) -> bool:
    """True if every channel has its own filter: one output channel per input channel."""
    outputs, depth = dims_of(op.weight)[:2]
    return op.groups.data > 1 and depth == 1 and outputs == op.groups.data


def spatial_labels(dims: Sequence[Expr]) -> list[tuple[str, Expr]]:
    """The loops over space."""
    return [(f"x{number}", dim) for number, dim in enumerate(dims)]


def is_in_line(kernel: KernelOp, op: ConvOp) -> bool:
    """
    True if each result is a sum over one position, and the next position lies beside it even where
    a row ends, in the input as in the result: tiles can then be of any number of positions.
    """
    if crosses_groups(op, layout_out(kernel)) or len(dims_of(op.result)) < 2 + 2:
        return False
    is_point = {*ints(op.strides)} == {1} and all(tap == 1 for tap in dims_of(op.weight)[2:])
    layouts = (layout_in(kernel, op.input), layout_out(kernel))
    edges = [edge for at in layouts for edge in (*at.data.begin[2:], *at.data.end[2:])]
    has_pads = any(pad != 0 for pad in (*op.pads_begin.data, *op.pads_end.data))
    is_empty = any(size == 0 for size in dims_of(op.result)[2:])
    return is_point and not has_pads and not any(edges) and not is_empty


def spatial_loops(op: ConvOp, schedule: Schedule) -> list[tuple[str, Expr]]:
    """The loops over space."""
    space = dims_of(op.result)[2:]
    return [(POSITION, product(space))] if POSITION in schedule.order else spatial_labels(space)


def place_of(op: ConvOp, at: Sequence[Expr]) -> Sequence[Expr]:
    """The index in space at a point of these loops."""
    space = dims_of(op.result)[2:]
    if len(at) == len(space):
        return at
    index, rest = list[Expr](), at[0]
    for axis in range(len(space) - 1):
        size = product(space[axis + 1 :])
        # Not `mod`: an address then is again the position in line.
        index.append(rest // size)
        rest -= index[-1] * size
    return [*index, rest]


def conv_sum(
    k: KernelLowering,
    op: ConvOp,
    at: Sequence[Expr],
    start: SSAValue,
    part: tuple[Expr, int] | None = None,
    taps: Sequence[Expr] | None = None,
    first: Expr | None = None,
) -> SSAValue:
    """
    Of all products, or of those of a part: the first block of input channels, and how many; or of
    one tap. `first` is the first input channel of the group, if it is another than that of `at`.
    """
    b, w = k.builder, dims_of(op.weight)
    strides, dilations = ints(op.strides), ints(op.dilations)
    begin = op.pads_begin.data
    channels = w[1].value
    assert channels is not None
    if first is None:
        group = at[1] // (w[0] // op.groups.data) if op.groups.data > 1 else Expr.const(0)
        first = group * channels
    origin = first
    block = input_block_of_conv(op, k.layout_of(op.input))

    def add_product(
        channel: Expr, taps: Sequence[Expr], values: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        where = [
            position * stride + tap * dilation - pad
            for position, stride, tap, dilation, pad in zip(
                at[2:], strides, taps, dilations, begin, strict=True
            )
        ]
        value = k.element(op.input, [at[0], origin + channel, *where])
        weight = k.element(op.weight, [at[1], channel, *taps])
        return [b.fma(value, weight, values[0])]

    bounds = [(Expr.const(0), tap) for tap in w[2:]]
    if taps is not None:
        bounds = [(tap, tap + 1) for tap in taps]
    number = prod(constants([upper - lower for lower, upper in bounds]) or ())
    return sum_over_channels(b, (channels, block, number), bounds, start, add_product, part)


def can_be_blocked(op: ConvOp, source: LayoutAttr, target: LayoutAttr) -> bool:
    """
    True for f32 with static channels, if the output has its channels in blocks that groups cut into
    large parts if at all, and the input has borders as wide as the padding.
    """
    return has_blocks(op, target) and has_border(op, source)


def has_blocks(op: ConvOp, target: LayoutAttr) -> bool:
    """The same but for the border."""
    w = dims_of(op.weight)
    if not is_of(op, f32) or w[0].value is None or w[1].value is None:
        return False
    return lanes_of_conv(op, target) >= min(FEWEST_LANES, max(target.inner(1), 2))


def lanes_of_conv(op: ConvOp, target: LayoutAttr) -> int:
    """How many output channels are computed side by side if they lie in blocks."""
    if op.groups.data == 1 or crosses_groups(op, target):
        return target.inner(1)
    return gcd(target.inner(1), (dims_of(op.weight)[0].value or 1) // op.groups.data)


def crosses_groups(op: ConvOp, target: LayoutAttr) -> bool:
    """
    True if whole blocks are computed though groups cut them: those are larger than a block, or
    have so few lanes in common with it that it is faster to compute all lanes for each of them.
    """
    size, lanes = (dims_of(op.weight)[0].value or 0) // op.groups.data, target.inner(1)
    if op.groups.data == 1 or size % lanes == 0:
        return False
    return size > lanes or gcd(size, lanes) < min(FEWEST_LANES, max(lanes, 2))


def input_block_of_conv(op: ConvOp, source: LayoutAttr) -> int:
    """How many input channels, of one group, lie side by side wherever they begin."""
    if op.groups.data == 1:
        return source.inner(1)
    return gcd(source.inner(1), dims_of(op.weight)[1].value or 1)


def has_border(op: ConvOp, source: LayoutAttr) -> bool:
    """True if windows of a convolution never reach beyond the border of its input."""
    begin = [pad.value for pad in op.pads_begin.data]
    end = [pad.value for pad in op.pads_end.data]
    return all(
        pad is not None and pad <= border
        for pad, border in zip(
            (*begin, *end), (*source.data.begin[2:], *source.data.end[2:]), strict=True
        )
    )
