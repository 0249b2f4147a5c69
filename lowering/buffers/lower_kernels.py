"""`lower-kernels`: the ops of kernels become loops over scalars."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.control_flow import names_in, yielded
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.buffers.finishing import Finisher, Loops, lower
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.machinery.context import kernels_of, options_of
from lowerdeck.passes.machinery.driver import is_enabled


@record
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

    def __init__(self, lower: Callable[[kernel.BufferKernelOp], Loops] = lower) -> None:
        self._lower = lower
        self._functions: dict[Hashable, kernel.FuncOp] = {}
        self.lowered: dict[str, Lowered] = {}
        """By the names of the kernels."""

    def lower(self, op: kernel.BufferKernelOp) -> None:
        """Replace a kernel by a function, unless an identical one precedes it."""
        loops = self._lower(op)
        function = loops.function
        names, results = names_in(op.symbols), len(yielded(op.body))
        if unknown := [s.data for s in function.symbols if s.data not in names]:
            raise LoweringError(op, f"uses the symbols {unknown}, which it does not declare")
        first = self._functions.setdefault(loops.identity, function)
        self.lowered[op.sym_name.data] = Lowered(
            first.sym_name.data,
            [names.index(symbol.data) for symbol in function.symbols],
            [ref_type(argument) for argument in _outputs(function)[results:]],
            loops.can_fail,
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
        self._apply(op, KernelsLowering())

    def _apply(self, op: ModuleOp, lowering: KernelsLowering) -> None:
        for kernel_op in list(op.body.block.ops):
            if isinstance(kernel_op, kernel.BufferKernelOp):
                lowering.lower(kernel_op)
        for call in all_ops(op):
            if isinstance(call, entry_ops.CallOp):
                lowering.call(call)


class FinishKernelsPass(LowerKernelsPass):
    """
    `lower-kernels` and passes on functions at once, kernel by kernel: equal ones, also of other
    models, are finished once (`Finisher`).
    """

    def __init__(self, then: Sequence[FunctionPass]) -> None:
        self._then = then

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of(ctx)
        passes = [pass_ for pass_ in self._then if is_enabled(pass_, options)]
        finisher = Finisher(passes, target_named(options.target), kernels_of(ctx))
        self._apply(op, KernelsLowering(finisher.finish))
