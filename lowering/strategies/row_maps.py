"""Maps with row-major results: the lanes are the innermost dimension."""

from __future__ import annotations

from collections.abc import Iterator

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.channel_blocks import map_cycles
from lowerdeck.lowering.strategies.facts import layout_out


class RowMaps(Strategy):
    """
    Vectors along the innermost dimension. Only the loops show whether inputs are contiguous there,
    too, so the estimate is that of single elements.
    """

    name = "row_maps"
    anchors = ()

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        if setting.target.lanes == 1 or len(kernel.results) != 1:
            return
        layout = layout_out(kernel)
        if layout.rank and layout.inner(layout.data.pieces[-1].axis) == 1:
            lanes = ((f"d{len(layout.data.pieces) - 1}", setting.target.lanes),)
            yield Candidate(
                map_cycles(kernel, setting.target.costs), Schedule(self.name, lanes=lanes)
            )

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        k.lower_plain()
