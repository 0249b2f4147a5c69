"""Convolutions over channels in blocks: one output element a lane, for schedules to tile."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from math import gcd, prod

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32
from lowerdeck.dialects.dims import Expr, constants, maximum, minimum
from lowerdeck.lowering.kernels import scalars
from lowerdeck.lowering.kernels.builder import KernelBuilder
from lowerdeck.lowering.kernels.lower import KernelLowering, parameter
from lowerdeck.lowering.kernels.taps import position_range
from lowerdeck.lowering.schedule.parameters import SCHEDULE, Schedule

OUTPUT_CHANNEL = "oc"
"""The label of the loop over blocks of output channels; `n` is that over the batch, `x0`, `x1`, ...
those over space."""

DEPTH = "depth"
"""What a schedule has under `tile` if sums are to be made in parts: how many blocks of input
channels a part has."""

PANEL = "panel"
"""The label of the loop over the panels of output channels that one part of sums is made for."""

TAPS = "taps"
"""What a schedule has under `tile` if sums are made tap by tap: how many taps at a time."""

FEWEST_LANES = 4
"""The smallest block: of tensors with few channels."""

SHARE = "share"
"""What a schedule has under `tile` beside `depth`: how many panels take turns with the parts.
Threads share groups of so many panels."""


def lower_blocked_conv(k: KernelLowering, op: ConvOp) -> None:
    """
    The sum for one output element runs over blocks of input channels, taps, channels of a block, in
    the order of packed weights. The input has a border where windows reach beyond it, and the
    output has its channels in blocks, which are the lanes; where groups cut blocks, parts of them.
    """
    if (size := parameter(k.kernel, DEPTH)) is not None:
        _lower_in_parts(k, op, size)
        return
    if parameter(k.kernel, TAPS) is not None:
        _lower_by_taps(k, op)
        return
    if crosses_groups(op, k.output_layout()):
        _lower_across_groups(k, op)
        return
    b, dims = k.builder, dims_of(op.result)
    lanes = lanes_of_conv(op, k.output_layout())
    blocks = dims[1].ceildiv(lanes)
    with b.labeled_nest(
        [("n", dims[0]), (OUTPUT_CHANNEL, blocks), *_spatial(dims[2:])], parallel=True
    ) as at:
        with b.loop(lanes, label="lane", mode="lanes") as lane:
            channel = at[1] * lanes + lane
            where = [at[0], channel, *at[2:]]
            zero = scalars.constant(b, 0, element_type(op.input))
            start = zero if op.bias is None else k.element(op.bias, [channel])
            k.finish(op, where, conv_sum(k, op, where, start))


def lower_row_conv(k: KernelLowering, op: ConvOp) -> None:
    """Of few channels, row-major: positions side by side are the lanes, weights are the same."""
    b, dims = k.builder, dims_of(op.result)
    labels = [("n", dims[0]), (OUTPUT_CHANNEL, dims[1]), *_spatial(dims[2:])]
    with b.labeled_nest(labels, parallel=True) as at:
        zero = scalars.constant(b, 0, f32)
        start = zero if op.bias is None else k.element(op.bias, [at[1]])
        k.finish(op, at, conv_sum(k, op, at, start))


def is_row_conv(k: KernelLowering, op: ConvOp) -> bool:
    """True if a schedule wants positions in lanes."""
    schedule = Schedule.of(k.kernel.attributes.get(SCHEDULE))
    return schedule is not None and dict(schedule.lanes).keys() == {last_position(op)}


def last_position(op: ConvOp) -> str:
    """The label of the loop over positions along the last dimension."""
    return f"x{len(dims_of(op.result)) - 3}"


def can_be_rows(op: ConvOp, source: LayoutAttr, target: LayoutAttr) -> bool:
    """True for f32, row-major, with the border that windows need and a last stride of one."""
    plain = LayoutAttr.row_major(source.rank).data.pieces
    return (
        element_type(op.result) == f32
        and source.data.pieces == target.data.pieces == plain
        and op.groups.data == 1
        and ints(op.strides)[-1] == 1
        and dims_of(op.weight)[1].value is not None
        and has_border(op, source)
    )


def _lower_in_parts(k: KernelLowering, op: ConvOp, size: int) -> None:
    """
    The same in parts of `size` blocks of input channels: one part for all panels of output channels
    in a share, panel after panel, and then the next part. The input of a part stays in the second
    cache while the panels use it, the weights of a panel in the first one while all positions do;
    the sums so far lie in the output.
    """
    b, dims = k.builder, dims_of(op.result)
    lanes = k.output_layout().inner(1)
    count = parameter(k.kernel, OUTPUT_CHANNEL) or 1
    share = parameter(k.kernel, SHARE) or 1
    channels = dims_of(op.weight)[1].value
    assert channels is not None
    parts = channels // k.layout_of(op.input).inner(1) // size
    shares = dims[1].ceildiv(lanes) // (count * share)
    inner = [(PANEL, Expr.const(share)), *_spatial(dims[2:]), (OUTPUT_CHANNEL, Expr.const(count))]

    def add_part(outer: Sequence[Expr], part: Expr, *, first: bool, last: bool) -> None:
        with b.labeled_nest(inner) as at, b.loop(lanes, label="lane", mode="lanes") as lane:
            block = (outer[1] * share + at[0]) * count + at[-1]
            channel = block * lanes + lane
            where = [outer[0], channel, *at[1:-1]]
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
    The same where blocks of output channels belong to several groups: once for each of them, and
    lanes that belong to the groups before keep what these have stored.
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
            inner = _spatial(dims[2:])
            with b.labeled_nest(inner) as at, b.loop(lanes, label="lane", mode="lanes") as lane:
                where = [outer[0], begin + lane, *at]
                zero = scalars.constant(b, 0, f32)
                bias = zero if op.bias is None else k.element(op.bias, [where[1]])
                total = conv_sum(k, op, where, bias, first=group * depth)
                is_before = b.add(arith.CmpfOp(b.load(numbers, [lane]), first_lane, "olt"))
                before = b.load(k.outputs[0], where)
                result = k.finished(op, where, total)
                b.store(b.add(arith.SelectOp(is_before, before, result)), k.outputs[0], where)


def _lower_by_taps(k: KernelLowering, op: ConvOp) -> None:
    """
    The same tap by tap, for the positions where it lies on the image: nothing reads padding, so
    that the input needs no border. The sums so far lie in the output.
    """
    b, dims = k.builder, dims_of(op.result)
    x, w = dims_of(op.input), dims_of(op.weight)
    strides, dilations = ints(op.strides), ints(op.dilations)
    begin, end = op.pads_begin.data, op.pads_end.data
    lanes = k.output_layout().inner(1)
    count = parameter(k.kernel, OUTPUT_CHANNEL) or 1
    groups = dims[1].ceildiv(lanes) // count

    @contextmanager
    def positions(
        outer: Sequence[Expr], ranges: Sequence[tuple[Expr, Expr]]
    ) -> Generator[list[Expr]]:
        """Indices of the result: `ranges` say where they begin, and how many there are."""
        inner = [*_spatial([size for _, size in ranges]), (OUTPUT_CHANNEL, Expr.const(count))]
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


def _spatial(dims: Sequence[Expr]) -> list[tuple[str, Expr]]:
    return [(f"x{number}", dim) for number, dim in enumerate(dims)]


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


Products = Callable[[Expr, Sequence[Expr], Sequence[SSAValue]], Sequence[SSAValue]]
"""The sums with the product of a channel and taps added to them."""


def sum_over_channels(
    b: KernelBuilder,
    sizes: tuple[int, int, int],
    bounds: Sequence[tuple[Expr, Expr]],
    start: SSAValue,
    add_product: Products,
    part: tuple[Expr, int] | None = None,
) -> SSAValue:
    """
    The sum over blocks of channels, taps within `bounds`, channels of a block; the channels that
    make up no block come last. `sizes`: how many channels, channels of a block, and taps. With
    `part` only so many blocks from the first one on.
    """
    channels, block, taps = sizes
    whole, rest = channels // block, channels % block

    def add_blocks(first: Expr, count: int, value: SSAValue) -> SSAValue:
        """The products of `count` blocks of input channels more."""
        return b.carry_nest(
            [(Expr.const(0), Expr.const(count)), *bounds, (Expr.const(0), Expr.const(block))],
            [value],
            lambda i, values: add_product((first + i[0]) * block + i[-1], i[1:-1], values),
        )[0]

    if part is not None:
        return add_blocks(*part, start)
    total = sum_in_parts(b, whole, max(1, PART // (taps * block)), start, add_blocks)
    if rest:
        total = b.carry_nest(
            [*bounds, (Expr.const(0), Expr.const(rest))],
            [total],
            lambda i, values: add_product(i[-1] + whole * block, i[:-1], values),
        )[0]
    return total


PART = 192
"""Products that are added up one by one, before their sum goes to the total."""


def sum_in_parts(
    b: KernelBuilder,
    count: int,
    part: int,
    start: SSAValue,
    add: Callable[[Expr, int, SSAValue], SSAValue],
) -> SSAValue:
    """
    A sum of `count` terms, of which `part` are added up from zero at a time: rounding errors grow
    with the length of a sum, and those of the parts cancel. `add` adds a number of terms from the
    first one on to a value.
    """
    if count < 2 * part:
        return add(Expr.const(0), count, start) if count else start
    zero = scalars.constant(b, 0, start.type)
    total = b.carry(
        count // part,
        [start],
        lambda i, values: [scalars.add(b, values[0], add(i * part, part, zero))],
    )[0]
    if rest := count % part:
        total = scalars.add(b, total, add(Expr.const(count - rest), rest, zero))
    return total


def is_blocked_conv(k: KernelLowering, op: ConvOp) -> bool:
    """True if layouts are such that `lower_blocked_conv` applies."""
    by_taps = parameter(k.kernel, TAPS) is not None
    return by_taps or can_be_blocked(op, k.layout_of(op.input), k.output_layout())


def can_be_blocked(op: ConvOp, source: LayoutAttr, target: LayoutAttr) -> bool:
    """
    True for f32 with static channels, if the output has its channels in blocks that groups cut into
    large parts if at all, and the input has borders as wide as the padding.
    """
    return has_blocks(op, target) and has_border(op, source)


def has_blocks(op: ConvOp, target: LayoutAttr) -> bool:
    """The same but for the border."""
    w = dims_of(op.weight)
    if element_type(op.result) != f32 or w[0].value is None or w[1].value is None:
        return False
    return lanes_of_conv(op, target) >= min(FEWEST_LANES, max(target.inner(1), 2))


def lanes_of_conv(op: ConvOp, target: LayoutAttr) -> int:
    """How many output channels are computed side by side if they lie in blocks."""
    if op.groups.data == 1 or crosses_groups(op, target):
        return target.inner(1)
    return gcd(target.inner(1), (dims_of(op.weight)[0].value or 1) // op.groups.data)


def crosses_groups(op: ConvOp, target: LayoutAttr) -> bool:
    """True if whole blocks are computed though groups cut them: those are larger than a block."""
    size = (dims_of(op.weight)[0].value or 0) // op.groups.data
    return op.groups.data > 1 and size % target.inner(1) != 0 and size > target.inner(1)


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
