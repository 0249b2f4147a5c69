"""`choose-schedules`: how the loops of each kernel run, by rule from shapes and the target."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.lowering.kernels.bands import convolutions_in_bands
from lowerdeck.lowering.kernels.lower import ANCHORS
from lowerdeck.lowering.schedule import (
    choose_attention,
    choose_products,
    choose_transposed,
    choose_windows,
    choose_winograd,
)
from lowerdeck.lowering.schedule.choose_across import choose_across
from lowerdeck.lowering.schedule.choose_bands import choose_bands
from lowerdeck.lowering.schedule.parameters import SCHEDULE
from lowerdeck.lowering.schedule.rules import RULES, Choice, choose_maps
from lowerdeck.lowering.targets import Machine, machine_of
from lowerdeck.passes.context import options_of
from lowerdeck.passes.structure import nameless_key

TOPICS = (choose_attention, choose_products, choose_transposed, choose_windows, choose_winograd)
"""The modules whose rules are registered when they are imported."""


def choose(kernel: KernelOp, machine: Machine) -> Choice | None:
    """How a kernel runs; with plain loops if there is nothing to do."""
    if _is_of_nothing(kernel):
        return None
    if (both := convolutions_in_bands(kernel)) is not None:
        return choose_bands(kernel, *both, machine)
    anchors = [op for op in kernel.body.block.ops if type(op) in ANCHORS]
    if anchors:
        choices = (rule(kernel, anchors[0], machine) for rule in RULES.get(type(anchors[0]), ()))
        return next((choice for choice in choices if choice is not None), None)
    return choose_across(kernel, machine) or choose_maps(kernel, machine)


def _is_of_nothing(kernel: KernelOp) -> bool:
    """True if a tensor that the kernel reads or writes is known to have no elements."""
    values = (*kernel.inputs, *kernel.results)
    return any(dim == 0 for value in values for dim in dims_of(value))


def apply_choice(kernel: KernelOp, choice: Choice) -> None:
    """Write the schedule and the layouts of constants to a kernel."""
    kernel.attributes[SCHEDULE] = choice.schedule.attribute()
    if not choice.layouts:
        return
    count = len(kernel.inputs) + len(kernel.results)
    layouts = [kernel.layout_at(position) for position in range(count)]
    for position, argument in enumerate(kernel.body.block.args):
        layouts[position] = choice.layouts.get(argument, layouts[position])
    kernel.properties["layouts"] = ArrayAttr(layouts)


@dataclass(frozen=True)
class ChooseSchedulesPass(ModulePass):
    """
    Give kernels a `schedule`, and the constants that they read the layout it wants.

    The rule looks at shapes, layouts and the description of the target only. A kernel without a
    rule keeps plain loops. In tuning, equal kernels get what the user asks for by the first one's
    name.
    """

    name = "choose-schedules"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of(ctx)
        machine = replace(
            machine_of(options.target), threads=options.threads, strict=options.strict_accuracy
        )
        names: dict[Hashable, str] = {}
        for kernel in op.walk():
            if not isinstance(kernel, KernelOp):
                continue
            if options.is_tuned:
                name = names.setdefault(nameless_key(kernel), kernel.sym_name.data)
                machine = replace(machine, rank=options.ranks.get(name, options.rank))
            if (choice := choose(kernel, machine)) is not None:
                apply_choice(kernel, choice)
