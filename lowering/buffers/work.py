"""The arithmetic and the memory traffic of a kernel, independent of the algorithm."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.tensor import ScatterElementsOp, ScatterNdOp
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, numpy_dtype
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.machinery.statistics import multiply_adds


def multiply_adds_of_kernel(kernel: KernelOp) -> DimsAttr | None:
    """The `multiply_adds` property of calls of a kernel; None if there are none."""
    total = sum(map(multiply_adds, kernel.body.block.ops), Expr.const(0))
    return None if total == 0 else DimsAttr.of([total])


def bytes_of_update(kernel: KernelOp) -> DimsAttr | None:
    """
    The `moved` property of calls of a kernel that updates an input in place, by a scatter: the
    other inputs are read, and the elements of the updates written. None of any other kernel.
    """
    if kernel.in_place is None:
        return None
    read = [value for k, value in enumerate(kernel.inputs) if k != kernel.in_place.data]
    scatters = (
        op for op in kernel.body.block.ops if isinstance(op, ScatterElementsOp | ScatterNdOp)
    )
    total = sum(
        (_bytes(value) for value in (*read, *(op.updates for op in scatters))), Expr.const(0)
    )
    return DimsAttr.of([total])


def _bytes(value: SSAValue) -> Expr:
    return product(dims_of(value)) * numpy_dtype(element_type(value)).itemsize
