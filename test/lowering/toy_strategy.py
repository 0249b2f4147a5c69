"""A strategy in one file: sums of two vectors, two at a time. The test registers it in one line."""

from __future__ import annotations

from collections.abc import Iterator

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy


class Toy(Strategy):
    """For sums of vectors: faster than anything, so it says."""

    name = "toy"
    anchors = ()
    parameters = ("pairs",)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        has_sum = any(isinstance(op, AddOp) for op in kernel.body.block.ops)
        if has_sum and len(dims_of(kernel.results[0])) == 1:
            yield Candidate(0, Schedule(self.name, (("d0", 2),), parameters=(("pairs", 1),)))

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        assert schedule.parameter("pairs") == 1
        k.lower_plain()
