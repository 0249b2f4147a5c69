"""`choose-strategies`: the algorithm and tile sizes of each kernel."""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.strategies.base import Candidate, Setting
from lowerdeck.lowering.strategies.registry import (
    Known,
    apply_schedule,
    candidates,
    choose,
    described,
    schedule_copy,
)
from lowerdeck.passes.machinery.context import options_of
from lowerdeck.passes.machinery.structure import nameless_key


class ChooseStrategiesPass(ModulePass):
    """
    Give each kernel the `schedule` with the lowest estimate among all strategies, and the constants
    that it reads the layouts of that schedule; other values are copied into them by a kernel
    before, which computes them, too, where nothing else reads them and that takes less time.

    The estimates depend only on shapes, layouts and the description of the target. A kernel without
    candidates keeps plain loops. In tuning, identical kernels get what the user asks for by the
    name of the first one; what is asked for kernels of other shapes, or is none of their
    candidates, is refused.
    """

    name = "choose-strategies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of(ctx)
        setting = Setting.of(options)
        names: dict[Hashable, str] = {}
        known: Known = {}
        for kernel in [k for k in all_ops(op) if isinstance(k, KernelOp)]:
            wanted = None
            if options.is_tuned:
                name = names.setdefault(nameless_key(kernel), kernel.sym_name.data)
                wanted = options.schedules.get(name)
            candidate = (
                choose(kernel, setting, options.rank, known)
                if wanted is None
                else _asked_for(kernel, setting, wanted)
            )
            if candidate is not None:
                for copy in apply_schedule(kernel, candidate.schedule):
                    schedule_copy(copy, setting)
        if unknown := sorted(options.schedules.keys() - names.values()):
            raise CompileError(f"schedules for {unknown}, which are no kernels: tune again")


def _asked_for(kernel: KernelOp, setting: Setting, wanted: str) -> Candidate:
    for way in candidates(kernel, setting):
        if described(kernel, way.schedule) == wanted:
            return way
    name = kernel.sym_name.data
    raise LoweringError(kernel, f"'{name}' cannot run as asked ({wanted}): tune again")
