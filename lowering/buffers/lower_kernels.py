"""`lower-kernels`: the ops of kernels become loops over scalars."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.control_flow import names_in, yielded
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.strategies.registry import lower_kernel
from lowerdeck.passes.machinery.structure import region_key


@dataclass(frozen=True)
class Lowered:
    """The facts about a kernel's function that its calls need."""

    name: str
    symbols: Sequence[int]
    """The positions of the kernel's symbols that the function takes, in its order."""
    workspace: Sequence[RefType]
    """The types of its last outputs, which are its workspace."""
    can_fail: bool
    """True if it may set the status of the run."""


class KernelsLowering:
    """Makes a function of each kernel of a module; kernels with identical loops share one."""

    def __init__(self) -> None:
        self._functions: dict[Hashable, kernel.FuncOp] = {}
        self.lowered: dict[str, Lowered] = {}
        """By the names of the kernels."""

    def lower(self, op: kernel.BufferKernelOp) -> None:
        """Replace a kernel by a function, unless an identical one precedes it."""
        function = lower_kernel(op)
        names, results = names_in(op.symbols), len(yielded(op.body))
        if unknown := [s.data for s in function.symbols if s.data not in names]:
            raise LoweringError(op, f"uses the symbols {unknown}, which it does not declare")
        # Kernels may differ in details that do not affect loops, such as the names of symbols.
        key = (len(function.symbols), function.outputs, region_key(function.body, {}))
        first = self._functions.setdefault(key, function)
        self.lowered[op.sym_name.data] = Lowered(
            first.sym_name.data,
            [names.index(symbol.data) for symbol in function.symbols],
            [ref_type(argument) for argument in _outputs(function)[results:]],
            any(isinstance(inner, kernel.CheckIndexOp) for inner in all_ops(function)),
        )
        Rewriter.replace_op(op, [function] if first is function else [])

    def call(self, op: entry_ops.CallOp) -> None:
        """Call the function of a kernel, with workspace and a check of the status after it."""
        if (found := self.lowered.get(op.callee.root_reference.data)) is None:
            return
        workspace = [entry_ops.AllocOp(type_) for type_ in found.workspace]
        call = entry_ops.CallOp(
            found.name,
            [*op.arguments, *(alloc.result for alloc in workspace)],
            [op.symbols.data[number] for number in found.symbols],
            multiply_adds=op.multiply_adds,
            moved=op.moved,
        )
        checks = [entry_ops.CheckStatusOp()] if found.can_fail else []
        for new in (call, *checks):
            new.location = op.location
        Rewriter.replace_op(op, [*workspace, call, *checks])


def _outputs(function: kernel.FuncOp) -> Sequence[SSAValue]:
    arguments = function.body.block.args
    return arguments[len(arguments) - function.outputs.data :]


class LowerKernelsPass(ModulePass):
    """
    Lower each kernel to loops, one scalar at a time.

    A `buffer.kernel` becomes a `buffer.func`, with the loop nest of the strategy that its schedule
    names, or a plain one; its ops are erased. Kernels with identical loops become one function. A
    call gets workspace, if the function asks for it, and passes the symbols in the order in which
    the function takes them; a `buffer.check_status` follows if the function reads at indices from
    data.
    """

    name = "lower-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lowering = KernelsLowering()
        for kernel_op in list(op.body.block.ops):
            if isinstance(kernel_op, kernel.BufferKernelOp):
                lowering.lower(kernel_op)
        for call in all_ops(op):
            if isinstance(call, entry_ops.CallOp):
                lowering.call(call)
