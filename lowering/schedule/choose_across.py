"""Which maps take squares of elements and transpose them in registers."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import CheckIndexOp, ForOp, FuncOp, LoadOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.tensor import TransposeOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.intervals import simplified
from lowerdeck.lowering.kernels.lower import KernelLowering
from lowerdeck.lowering.kernels.transposes import ALONG, FEWEST, LANES
from lowerdeck.lowering.schedule.indices import Indices
from lowerdeck.lowering.schedule.parameters import Schedule
from lowerdeck.lowering.schedule.rules import Choice, blocked_constants
from lowerdeck.lowering.schedule.unroll import limit_by_parents
from lowerdeck.lowering.targets import Machine


def choose_across(kernel: KernelOp, machine: Machine) -> Choice | None:
    """
    For one result of f32 whose elements lie side by side along another dimension than those of
    every input that has both dimensions, as plain loops show.
    """
    if machine.lanes == 1 or len(kernel.results) != 1 or not _may_be_across(kernel):
        return None
    layout, dims = kernel.layout_at(len(kernel.inputs)), dims_of(kernel.results[0])
    across = layout.data.pieces[-1].axis
    loops = KernelLowering(kernel).lower()
    if any(isinstance(op, CheckIndexOp | scf.IfOp) for op in loops.walk()):
        return None
    for along in range(layout.rank):
        sizes = [size for axis in (along, across) if (size := dims[axis].value) is not None]
        lanes = machine.lanes
        while sizes and lanes > min(sizes):
            lanes //= 2
        if along == across or lanes < FEWEST or not _lies_along(loops, layout, along, lanes):
            continue
        block = layout.inner(across)
        constants = blocked_constants(kernel, block) if block > 1 else {}
        return Choice(Schedule(((LANES, lanes), (ALONG, along))), constants)
    return None


def _may_be_across(kernel: KernelOp) -> bool:
    """True if dimensions change their order within the kernel, or by layouts."""
    result = kernel.layout_at(len(kernel.inputs))
    if element_type(kernel.results[0]) != f32 or result.rank < 2:
        return False
    inputs = [kernel.layout_at(number) for number in range(len(kernel.inputs))]
    return any(isinstance(op, TransposeOp) for op in kernel.body.block.ops) or any(
        layout.data.pieces != result.data.pieces for layout in inputs if layout.rank == result.rank
    )


def _lies_along(loops: FuncOp, layout: LayoutAttr, along: int, lanes: int) -> bool:
    """
    True if what is read at an index of both dimensions lies side by side along the first of them,
    in vectors of so many lanes, and nothing that it depends on lies otherwise.
    """
    across = len(layout.data.pieces) - 1
    whole = [
        number
        for number, piece in enumerate(layout.data.pieces)
        if piece.axis == along and piece.size is None and piece.stride == 1
    ]
    if not whole:
        return False
    found = False
    inputs = loops.body.block.args[: len(loops.body.block.args) - loops.outputs.data]
    for op in loops.walk():
        if not isinstance(op, LoadOp) or op.ref not in inputs:
            continue
        index, other = _index_of(op, f"d{whole[0]}"), _index_of(op, f"d{across}")
        if index is None or other is None:
            return False
        indices = Indices()
        limit_by_parents(op, indices)
        place = indices.read(op.map.data, op.indices)
        name, other_name = str(indices.symbol(index)), str(indices.symbol(other))
        if not any(name in expr.symbols for expr in place):
            continue
        if not _is_side_by_side(op, place, name, indices, lanes):
            return False
        found = found or any(other_name in expr.symbols for expr in place)
    return found


def _index_of(op: Operation, label: str) -> SSAValue | None:
    """The index of the loop around an op that has a label."""
    return next((loop.body.block.args[0] for loop in _loops_around(op) if _is(loop, label)), None)


def _is(loop: ForOp, label: str) -> bool:
    return loop.label is not None and loop.label.data == label


def _loops_around(op: Operation) -> Iterator[ForOp]:
    parent = op.parent_op()
    while isinstance(parent, ForOp):
        yield parent
        parent = parent.parent_op()


def _is_side_by_side(
    op: LoadOp, place: list[Expr], name: str, indices: Indices, lanes: int
) -> bool:
    """True if vectors that begin at multiples of their lanes lie at unit stride."""
    type_, lane = ref_type(op.ref), Expr.symbol("lane")
    ranges = {**indices.ranges, "lane": (0, lanes - 1)}
    moved = {name: Expr.symbol(name) * lanes + lane}
    # The number of a vector has another range than that of an element.
    ranges.pop(name, None)
    exprs = [simplified(expr.substitute(moved), ranges) for expr in place]
    if type_.strides.data[type_.innermost] != 1:
        return False
    exprs[type_.innermost] = exprs[type_.innermost] - lane
    return not any("lane" in expr.symbols for expr in exprs)
