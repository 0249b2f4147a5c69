"""`choose-strategies`: the algorithm and tile sizes of each kernel."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.lowering.strategies.base import Setting
from lowerdeck.lowering.strategies.registry import apply_schedule, choose
from lowerdeck.passes.context import options_of
from lowerdeck.passes.structure import nameless_key


@dataclass(frozen=True)
class ChooseStrategiesPass(ModulePass):
    """
    Give each kernel the `schedule` with the lowest estimate among all strategies, and the constants
    that it reads the layouts of that schedule; other values are
    copied into them by a kernel before.

    The estimates depend only on shapes, layouts and the description of the target. A kernel without
    candidates keeps plain loops. In tuning, identical kernels get what the user asks for by the
    name of the first one.
    """

    name = "choose-strategies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of(ctx)
        setting = Setting.of(options)
        names: dict[Hashable, str] = {}
        for kernel in op.walk():
            if not isinstance(kernel, KernelOp):
                continue
            rank = 0
            if options.is_tuned:
                name = names.setdefault(nameless_key(kernel), kernel.sym_name.data)
                rank = options.ranks.get(name, options.rank)
            if (candidate := choose(kernel, setting, rank)) is not None:
                for copy in apply_schedule(kernel, candidate.schedule):
                    if (best := choose(copy, setting)) is not None:
                        apply_schedule(copy, best.schedule)
