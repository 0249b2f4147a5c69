"""
Transposed convolutions over channels in blocks.

Along each dimension the outputs fall into as many phases as the stride has: those of one phase use
the same taps of the kernel, on inputs side by side. So each combination of phases is a direct
convolution of its own, with a small kernel and stride 1, that writes every stride-th output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import gcd, prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvTransposeOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.lowering.kernels import scalars
from lowerdeck.lowering.kernels.convolution import OUTPUT_CHANNEL, sum_over_channels
from lowerdeck.lowering.kernels.lower import Index, KernelLowering


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
    """The phases of one dimension; outputs without a tap have one, too."""
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
    """True if everything is known that phases depend on."""
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
    """True for f32 of one group, if the output has its channels in blocks and the input borders."""
    if element_type(op.result) != f32 or op.groups.data != 1 or target.inner(1) == 1:
        return False
    if not has_phases(op):
        return False
    begin, end = transposed_border(op)
    have = (*source.data.begin[2:], *source.data.end[2:])
    return all(border >= need for border, need in zip(have, (*begin, *end), strict=True))


def lower_blocked_transposed(k: KernelLowering, op: ConvTransposeOp) -> None:
    """One nest for each combination of phases."""
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
    """Over blocks of input channels, taps, channels of a block: the order of packed weights."""
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
