"""Maps and concatenations with blocked results: the lanes are channels."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.lowering.nests.channel_links import channel_offsets
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    blocked_constants,
    has_channels,
    layout_out,
)
from lowerdeck.lowering.targets.base import Costs


def map_cycles(kernel: KernelOp, costs: Costs) -> float:
    """The cycles to move the elements of a result one by one, without contiguous accesses."""
    return prod(assumed_shape(kernel.results[0])) * costs.element_cycles


def linked_wishes(kernel: KernelOp, setting: Setting) -> Wishes:
    """Inputs and result blocked, if any of them is; any layout where channels do not correspond."""
    offsets = channel_offsets(kernel)
    if offsets is None or not has_channels(kernel.results[0]):
        return Wishes(is_free=True)
    if any(offset % setting.target.lanes for offset in offsets.values()):
        return Wishes(is_free=True)
    return Wishes(offsets)


class ChannelBlocks(Strategy):
    """For maps."""

    name = "channel_blocks"
    anchors = ()

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        return linked_wishes(kernel, setting)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        if setting.target.lanes > 1 and len(kernel.results) == 1 and _block(kernel) > 1:
            yield Candidate(map_cycles(kernel, setting.target.costs), Schedule(self.name))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        return blocked_constants(kernel, _block(kernel))

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        k.lower_plain()


class ConcatBlocks(Strategy):
    """For concatenations: parts are copied; for row-major ones, each loop separately."""

    name = "concat_blocks"
    anchors = (ConcatOp,)

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        return linked_wishes(kernel, setting)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        layout = layout_out(kernel)
        if layout.rank > 1 and layout.inner(1) > 1:
            yield Candidate(map_cycles(kernel, setting.target.costs), Schedule(self.name))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        return blocked_constants(kernel, layout_out(kernel).inner(1))

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        k.lower_plain()


def _block(kernel: KernelOp) -> int:
    layout = layout_out(kernel)
    return layout.inner(layout.data.pieces[-1].axis) if layout.rank else 1
