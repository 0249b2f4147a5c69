"""`plan-memory`: where buffers lie in the workspace, and constants in the weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import Blob
from lowerdeck.dialects.buffer import driver, kernel
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Atom, Expr, maximum
from lowerdeck.lowering.bufferize import DRIVER
from lowerdeck.lowering.placement import Buffer, largest_sum, place

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector."""

WEIGHTS_HEADER = 64
"""Bytes before the first constant in the weights."""


class Lifetimes:
    """Numbers the ops of the driver and finds from where to where each buffer is in use."""

    def __init__(self, run: kernel.FuncOp) -> None:
        self.buffers: dict[SSAValue, Buffer] = {}
        self._roots: dict[SSAValue, tuple[SSAValue, ...]] = {}
        self._position = 0
        self._visit(run.body.block)

    def _visit(self, block: Block) -> set[SSAValue]:
        """Visit a block; returns the buffers used in it."""
        used: set[SSAValue] = set()
        for op in block.ops:
            self._position += 1
            if isinstance(op, driver.AllocOp):
                self._define(op)
            self._alias(op)
            for region in op.regions:
                inner = self._visit(region.block)
                used |= inner
                if isinstance(op, driver.LoopOp):
                    # The next iteration uses them again, so nothing may take their place before.
                    self._position += 1
                    self._use(root for root in inner if self._is_older(root, op))
            roots = {root for value in op.operands for root in self._roots.get(value, ())}
            self._use(roots)
            used |= roots
        return used

    def _define(self, op: driver.AllocOp) -> None:
        if op.dynamic.value.data:
            return
        size = ref_type(op.result).bytes.ceildiv(ALIGNMENT) * ALIGNMENT
        if not is_never_negative(ref_type(op.result).bytes):
            # The driver refuses such dimensions, but only after kernels before have run.
            size = maximum(size, 0)
        buffer = Buffer(op, size, self._position, self._position)
        self.buffers[op.result] = buffer
        self._roots[op.result] = (op.result,)

    def _alias(self, op: Operation) -> None:
        if isinstance(op, driver.ViewOp):
            self._roots[op.result] = self._roots.get(op.source, ())
        elif isinstance(op, driver.LoopOp):
            arguments = op.body.block.args
            for number, result in enumerate(op.results[: len(op.slots) // 2]):
                pair = op.slots[2 * number : 2 * number + 2]
                roots = tuple(root for slot in pair for root in self._roots.get(slot, ()))
                for value in (result, *arguments[2 * number : 2 * number + 2]):
                    self._roots[value] = roots

    def _is_older(self, root: SSAValue, loop: driver.LoopOp) -> bool:
        owner = root.owner
        return isinstance(owner, Operation) and not loop.is_ancestor(owner)

    def _use(self, roots: Iterable[SSAValue]) -> None:
        for root in roots:
            self.buffers[root].end = self._position


def is_never_negative(expr: Expr) -> bool:
    """True if an expression of dimensions of inputs is plainly at least zero."""
    return all(
        coefficient > 0 and all(_is_atom_never_negative(atom) for atom in monomial)
        for monomial, coefficient in expr.terms
    )


def _is_atom_never_negative(atom: Atom) -> bool:
    if atom.kind == "symbol":
        return True
    if atom.kind == "max":
        return any(is_never_negative(argument) for argument in atom.args)
    return all(is_never_negative(argument) for argument in atom.args)


def lay_out_weights(run: kernel.FuncOp) -> tuple[list[tuple[int, Blob]], int]:
    """Give every constant its offset, equal ones the same; returns them and the total size."""
    offsets: dict[Blob, int] = {}
    end = WEIGHTS_HEADER
    for op in run.walk():
        if not isinstance(op, driver.WeightOp):
            continue
        blob = op.value.data
        if blob not in offsets:
            offsets[blob] = end
            end += -(-blob.size // ALIGNMENT) * ALIGNMENT
        op.properties["offset"] = DimsAttr.of([offsets[blob]])
    return [(offset, blob) for blob, offset in offsets.items()], end


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """
    Give every buffer of the driver its offset.

    Buffers that are never in use together may share memory. Static sizes are placed largest first
    at the lowest free offset; sizes that depend on dimensions share slots. The driver gets the
    attribute `workspace`, the bytes needed, and `weights`, the bytes of the constants with their
    header. Buffers whose size depends on data keep coming from the allocator.

    Two more attributes say how good the plan is, if all sizes are numbers: `live`, the largest sum
    of bytes of buffers in use at once, and `row_major`, the same for the values in them in C order,
    without the padding of layouts.
    """

    name = "plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for run in op.body.block.ops:
            if not isinstance(run, kernel.FuncOp) or run.sym_name.data != DRIVER:
                continue
            buffers = list(Lifetimes(run).buffers.values())
            run.attributes["workspace"] = DimsAttr.of([place(buffers)])
            run.attributes["weights"] = DimsAttr.of([lay_out_weights(run)[1]])
            sums = {
                "live": largest_sum(buffers),
                "row_major": largest_sum(buffers, lambda buffer: buffer.op.unpadded_bytes),
            }
            for name, value in sums.items():
                if value is not None:
                    run.attributes[name] = DimsAttr.of([value])
