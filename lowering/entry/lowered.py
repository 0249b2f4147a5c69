"""Kernels as the passes of the entry function need them: with their loops."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.buffer import kernel
from lowerdeck.lowering.errors import LoweringError


def lowered_functions(module: ModuleOp, pass_name: str) -> dict[str, kernel.FuncOp]:
    """
    The kernels of a module by name, in order.

    LoweringError, with all of their names, if kernels have no loops yet.
    """
    missing = [op for op in module.body.block.ops if isinstance(op, kernel.BufferKernelOp)]
    if missing:
        names = ", ".join(f"@{op.sym_name.data}" for op in missing)
        raise LoweringError(
            missing[0], f"no loops yet ({names}); run lower-kernels before {pass_name}"
        )
    return kernel.functions_of(module)
