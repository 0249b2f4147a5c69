"""`absorb-channel-shuffle`: weights are permuted instead of channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import (
    ChannelShuffleOp,
    ConcatOp,
    GatherOp,
    SliceOp,
    SplitOp,
)
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter

MAX_PARTS = 32
"""Channels in more contiguous ranges than this are left unchanged."""

Channel = tuple[SSAValue, int]


@dataclass
class Trace:
    """The sources of channels, through ops that only move whole channels."""

    consumed: dict[Operation, None] = field(default_factory=dict[Operation, None])
    is_shuffled: bool = False

    def channels(self, value: SSAValue, wanted: Sequence[int]) -> list[Channel]:
        """The source value and channel of each wanted channel of a value."""
        op = value.owner
        found: list[Channel] | None = None
        match op:
            case ChannelShuffleOp():
                found = self._shuffled(op, wanted)
            case GatherOp():
                found = self._gathered(op, wanted)
            case ConcatOp():
                found = self._joined(op, wanted)
            case SplitOp():
                found = self._split(op, value, wanted)
            case SliceOp():
                found = self._cut(op, wanted)
            case _:
                pass
        if found is None:
            return [(value, channel) for channel in wanted]
        assert isinstance(op, Operation)
        self.consumed[op] = None
        return found

    def _shuffled(self, op: ChannelShuffleOp, wanted: Sequence[int]) -> list[Channel] | None:
        total, groups = dims_of(op.input)[1].value, op.groups.data
        if total is None:
            return None
        self.is_shuffled = True
        size = total // groups
        return self.channels(op.input, [c % groups * size + c // groups for c in wanted])

    def _gathered(self, op: GatherOp, wanted: Sequence[int]) -> list[Channel] | None:
        total = dims_of(op.input)[1].value if op.axis.data == 1 else None
        indices = constant_array(op.indices)
        if total is None or indices is None or indices.ndim != 1:
            return None
        self.is_shuffled = True
        return self.channels(op.input, [int(indices[c]) % total for c in wanted])

    def _joined(self, op: ConcatOp, wanted: Sequence[int]) -> list[Channel] | None:
        sizes = [dims_of(value)[1].value for value in op.inputs]
        if op.axis.data != 1 or None in sizes:
            return None
        places = [(value, c) for value in op.inputs for c in range(dims_of(value)[1].value or 0)]
        found: dict[int, Channel] = {}
        for value in dict.fromkeys(op.inputs):
            own = [c for c in wanted if places[c][0] is value]
            found.update(zip(own, self.channels(value, [places[c][1] for c in own]), strict=True))
        return [found[c] for c in wanted]

    def _split(self, op: SplitOp, value: SSAValue, wanted: Sequence[int]) -> list[Channel] | None:
        assert isinstance(value, OpResult)
        start = op.starts[value.index].value
        if op.axis.data != 1 or start is None:
            return None
        return self.channels(op.input, [start + c for c in wanted])

    def _cut(self, op: SliceOp, wanted: Sequence[int]) -> list[Channel] | None:
        dims, start, step = dims_of(op.input), op.starts.data[1].value, op.steps.data[1].value
        others = [axis for axis in range(len(dims)) if axis != 1]
        if start is None or step is None:
            return None
        if any(op.sizes.data[axis] != dims[axis] for axis in others):
            return None
        if any(op.steps.data[axis] != 1 for axis in others):
            return None
        return self.channels(op.input, [start + c * step for c in wanted])


@record
class ChannelRange:
    """Adjacent channels of a value."""

    value: SSAValue
    start: int
    size: int


@record
class Order:
    """The parts that contain all channels, and the old channel of each of theirs."""

    parts: tuple[ChannelRange, ...]
    channels: tuple[int, ...]


def order_of(found: Sequence[Channel]) -> Order | None:
    """Channels value by value, in storage order; None if there are too many parts."""
    if len(set(found)) < len(found):
        return None
    values = {value: number for number, (value, _) in reversed(list(enumerate(found)))}
    channels = sorted(range(len(found)), key=lambda c: (values[found[c][0]], found[c][1]))
    parts: list[ChannelRange] = []
    for value, channel in (found[c] for c in channels):
        last = parts[-1] if parts else None
        if last is not None and last.value is value and channel == last.start + last.size:
            parts[-1] = ChannelRange(value, last.start, last.size + 1)
        else:
            parts.append(ChannelRange(value, channel, 1))
    return Order(tuple(parts), tuple(channels)) if len(parts) <= MAX_PARTS else None


def is_dense(op: Operation) -> bool:
    """
    True for a convolution of one group with a constant weight; any zero points apply to all input
    channels.
    """
    if not isinstance(op, ConvOp) or op.groups.data != 1 or _weight(op) is None:
        return False
    zeros = [(dims_of(zero), rank_of(zero) - rank_of(op.weight) + 1) for zero in op.zero_points]
    return all(axis < 0 or dims[axis] == 1 for dims, axis in zeros)


def is_depthwise(op: ConvOp) -> bool:
    """True for one constant filter per channel."""
    outputs, depth = dims_of(op.weight)[:2]
    return depth == 1 and outputs == op.groups.data and _weight(op) is not None


def _weight(op: ConvOp) -> Any:
    try:
        return constant_array(op.weight)
    except ElidedBlobError:
        return None


class AbsorbChannelShuffle(Pattern[Order]):
    """conv(permuted channels of x, y, ...; w) -> conv(concat of parts of x, y, ...; permuted w)"""

    name = "absorb-channel-shuffle"
    roots = (ConvOp,)
    ranked = True

    def match(self, op: ConvOp) -> Match[Order] | None:
        count = dims_of(op.input)[1].value
        if count is None or not (is_dense(op) or self._can_pass_on(op)):
            return None
        trace = Trace()
        try:
            channels = trace.channels(op.input, range(count))
        except ElidedBlobError:
            return None
        if not trace.is_shuffled or (order := order_of(channels)) is None:
            return None
        return Match((op, *trace.consumed), "weights can have any order", order)

    def _can_pass_on(self, op: ConvOp) -> bool:
        """True for a depthwise convolution if the users of its result can absorb its order."""
        if not is_depthwise(op) or (op.bias is not None and constant_array(op.bias) is None):
            return False
        if op.zero_points:
            return False
        return all(is_dense(use.operation) and use.index == 0 for use in op.result.uses)

    def rewrite(self, match: Match[Order], rewriter: Rewriter) -> None:
        op, order = match.root, match.data
        assert isinstance(op, ConvOp)
        channels = np.array(order.channels)
        parts = [self._part(part, rewriter) for part in order.parts]
        joined = parts[0] if len(parts) == 1 else rewriter.add(ConcatOp(parts, 1)).result
        dense = is_dense(op)
        weight = _weight(op)
        moved = ConstantOp.of(
            np.ascontiguousarray(weight[:, channels] if dense else weight[channels])
        )
        bias = op.bias
        if bias is not None and not dense:
            array = constant_array(bias)
            assert array is not None
            bias = rewriter.add(ConstantOp.of(array[channels])).result
        weight = rewriter.add(moved).result
        parameters = [*([] if bias is None else [bias]), *op.zero_points]
        new = op.with_operands([joined, weight, *parameters])
        if dense:
            rewriter.replace(op, new)
            return
        back = rewriter.add(ConstantOp.of(np.argsort(channels))).result
        rewriter.replace(op, GatherOp(rewriter.add(new).result, back, 1))

    def _part(self, part: ChannelRange, rewriter: Rewriter) -> SSAValue:
        dims = dims_of(part.value)
        if dims[1] == part.size:
            return part.value
        starts = [part.start if axis == 1 else 0 for axis in range(len(dims))]
        sizes = [dims[0], part.size, *dims[2:]]
        return rewriter.add(SliceOp(part.value, starts, sizes)).result


class AbsorbChannelShufflePass(PatternPass):
    """
    Convolutions read channels in storage order, with their weights permuted to match.

    - conv(x, w), where x is made of channels of y, z, ... by channel_shuffle, split, slice, concat
      and gather -> conv(concat(slices of y, z, ...), w with its input channels in that order)
      [a shuffle or gather is among them; w constant, one group]
    - the same for a depthwise convolution, if only such convolutions use the result: the order is
      passed on to them as a gather [bias constant]

    What remains is one copy of adjacent channels.
    """

    name = "absorb-channel-shuffle"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [AbsorbChannelShuffle()]
