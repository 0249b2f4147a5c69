"""Programs of one kernel that works on channels in blocks, run as a target's schedules have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.entry.parallelize import ParallelizePass
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from ..choosing import (  # noqa: TID251  (these are tests, not the folder of sources)
    Change,
    ChooseAmong,
    Filter,
    any_way,
    unchanged,
)
from ..programs import Program  # noqa: TID251  (these are tests, not the folder of sources)

Array = NDArray[Any]


def constant(array: Array) -> SSAValue:
    """A tensor that is known."""
    return ConstantOp.of(array).result


def copied(value: SSAValue, source: LayoutAttr, target: LayoutAttr, name: str) -> KernelOp:
    """A kernel that brings a tensor into another layout."""
    block = Block(arg_types=[value.type])
    block.add_op(YieldOp([block.args[0]]))
    kernel = KernelOp(name, [value], Region(block))
    kernel.properties["layouts"] = ArrayAttr([source, target])
    return kernel


def set_layouts(module: ModuleOp, lanes: int, border: Sequence[int]) -> None:
    """
    Let each kernel read and write channels in blocks with a border around the spatial axes: its
    inputs are copied before it, and its result behind it.
    """
    for function in module.body.block.ops:
        assert isinstance(function, func.FuncOp)
        kernels = [op for op in function.body.block.ops if isinstance(op, KernelOp)]
        for number, kernel in enumerate(kernels):
            _set_kernel_layouts(kernel, lanes, border, number)


def _set_kernel_layouts(kernel: KernelOp, lanes: int, border: Sequence[int], number: int) -> None:
    block = kernel.parent
    assert block is not None
    layouts: list[LayoutAttr] = []
    for position, value in enumerate(list(kernel.operands)):
        layout = _layout(value, lanes, border)
        if isinstance(value.owner, ConstantOp) or layout.is_row_major:
            layouts.append(LayoutAttr.row_major(len(dims_of(value))))
            continue
        name = f"before_{number}_{position}"
        copy = copied(value, LayoutAttr.row_major(layout.rank), layout, name)
        block.insert_op_before(copy, kernel)
        kernel.operands[position] = copy.results[0]
        layouts.append(layout)
    (result,) = kernel.results
    layout = _layout(result, lanes, border)
    kernel.properties["layouts"] = ArrayAttr([*layouts, layout])
    if not layout.is_row_major:
        copy = copied(result, layout, LayoutAttr.row_major(layout.rank), f"behind_{number}")
        block.insert_op_after(copy, kernel)
        result.replace_uses_with_if(copy.results[0], lambda use: use.operation is not copy)


def _layout(value: SSAValue, lanes: int, border: Sequence[int]) -> LayoutAttr:
    rank = len(dims_of(value))
    if rank < 3:
        return LayoutAttr.row_major(rank)
    sides = [0, 0, *([border[0]] * (rank - 2))], [0, 0, *([border[1]] * (rank - 2))]
    if lanes == 1:
        return LayoutAttr.row_major(rank, *sides)
    return LayoutAttr.blocked(rank, 1, lanes, *sides)


@dataclass(frozen=True)
class _GivenLayouts(ModulePass):
    """Layouts as a test has them, in place of those that are worth most."""

    name = "assign-layouts"
    lanes: int
    border: tuple[int, int]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        set_layouts(op, self.lanes, self.border)


@dataclass(eq=False)
class BlockedProgram(Program):
    """A program whose kernels work on channels in blocks, scheduled for a target."""

    target: str = "x86-64-v4"
    border: tuple[int, int] = (0, 0)
    is_blocked: bool = True
    """False if channels lie as they do in C order, with the same border."""
    strategies: frozenset[str] = frozenset()
    """What kernels are to run by, if they can."""
    disabled: frozenset[str] = frozenset()
    """What they are not to run by."""
    wanted: Filter = any_way
    change: Change = unchanged

    def lower(self, runs: Sequence[Program]) -> tuple[CArtifact, list[str]]:
        """As `Program` has it."""
        options = CompileOptions(
            target=self.target,
            threads=self.threads,
            strategy=self.strategies,
            disable_strategy=self.disabled,
        )
        context = LowerdeckContext(options=options)
        others: dict[str, ModulePass | None] = {
            **dict.fromkeys(("fuse-epilogue", "view-parts", "fuse-bands")),
            "assign-layouts": _GivenLayouts(
                target_named(self.target).lanes if self.is_blocked else 1, self.border
            ),
            "choose-strategies": ChooseAmong(self.wanted, self.change),
            # However small: these kernels have a few elements.
            "parallelize": ParallelizePass(worth=0),
        }
        run_to_phase(context, self.module, "scheduled", after="optimized", instead=others)
        problems = self.check_scheduled(runs)
        return emit_c(self.module, self.name, self.target), problems


def values(*shape: int, seed: int = 0) -> Array:
    """Numbers around zero."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
