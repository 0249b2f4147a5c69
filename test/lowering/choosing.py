"""Schedules that tests ask for, beside those that estimates choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.lowering.strategies.base import Candidate, Setting
from lowerdeck.lowering.strategies.registry import (
    apply_schedule,
    candidates,
    schedule_copy,
)
from lowerdeck.passes.machinery.context import options_of

Filter = Callable[[Candidate], bool]
Change = Callable[[Schedule], Schedule]


def any_way(candidate: Candidate) -> bool:
    """Every candidate will do."""
    return True


def unchanged(schedule: Schedule) -> Schedule:
    """The schedule as it was chosen."""
    return schedule


def with_numbers(
    schedule: Schedule, *, tiles: dict[str, int] | None = None, **parameters: int
) -> Schedule:
    """A schedule with other sizes of tiles, and other numbers of its strategy's own."""
    return replace(
        schedule,
        tiles=tuple(({**dict(schedule.tiles), **(tiles or {})}).items()),
        parameters=tuple(({**dict(schedule.parameters), **parameters}).items()),
    )


@dataclass(frozen=True)
class ChooseAmong(ModulePass):
    """
    As `choose-strategies`, among the candidates that are wanted, where a kernel has such; with a
    change of what was chosen.
    """

    name = "choose-strategies"
    wanted: Filter = any_way
    change: Change = unchanged

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        setting = Setting.of(options_of(ctx))
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            ways = list(candidates(kernel, setting))
            ways = [way for way in ways if self.wanted(way)] or ways
            if ways:
                best = min(ways, key=lambda way: way.cycles)
                for copy in apply_schedule(kernel, self.change(best.schedule)):
                    schedule_copy(copy, setting)
