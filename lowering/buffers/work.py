"""The amount of arithmetic of a kernel, independent of the algorithm."""

from __future__ import annotations

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.machinery.statistics import multiply_adds


def multiply_adds_of_kernel(kernel: KernelOp) -> DimsAttr | None:
    """The `multiply_adds` property of calls of a kernel; None if there are none."""
    total = sum(map(multiply_adds, kernel.body.block.ops), Expr.const(0))
    return None if total == 0 else DimsAttr.of([total])
