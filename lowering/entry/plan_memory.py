"""`plan-memory`: the offsets of buffers in the workspace, and of constants in the weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import Blob
from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.dialects.buffer.entry import EntryOp, find_entry
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.sizes import largest
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.aliases import find_roots
from lowerdeck.lowering.entry.open_placement import place_open
from lowerdeck.lowering.entry.parallelize import is_done_once
from lowerdeck.lowering.entry.placement import Buffer, largest_sum, place

ALIGNMENT = 64
"""In bytes; a cache line, and the widest vector."""

WEIGHTS_HEADER = 64
"""Bytes before the first constant in the weights."""


class Lifetimes:
    """
    Numbers the ops of the entry function and finds the live range of each buffer.

    If threads share the entry function, some may still be at an op while others have reached the
    next barrier, so a buffer that any of them uses stays live up to there. Only the ops of the
    first thread between two barriers run one after the other.
    """

    def __init__(self, entry: EntryOp) -> None:
        self.buffers: dict[SSAValue, Buffer] = {}
        self.positions: dict[Operation, int] = {}
        """The number of each op; live ranges are of these numbers."""
        self._roots = find_roots(entry)
        self._position = 0
        self._is_parallel = entry.parallel is not None
        self._since_barrier = _Unfinished()
        self._visit(entry.body.block)
        self._meet()

    def _visit(self, block: Block) -> set[SSAValue]:
        """Visit a block; returns the buffers used in it."""
        used: set[SSAValue] = set()
        for op in block.ops:
            self._position += 1
            self.positions[op] = self._position
            if isinstance(op, entry_ops.AllocOp):
                self._define(op)
            elif isinstance(op, entry_ops.BarrierOp):
                self._meet()
            before = self._since_barrier.copy()
            for region in op.regions:
                inner = self._visit(region.block)
                used |= inner
                if isinstance(op, entry_ops.LoopOp):
                    # The next iteration uses them again, so they stay live to the end of the loop.
                    self._position += 1
                    self._use(root for root in inner if self._is_older(root, op))
            # A region may not have run, or with other barriers.
            self._since_barrier.add(before)
            if not isinstance(op, entry_ops.ViewOp):
                used |= self._use_operands(op)
        return used

    def _use_operands(self, op: Operation) -> set[SSAValue]:
        roots = {
            root for value in op.operands for root in self._roots[value] if root in self.buffers
        }
        self._use(roots)
        alone = is_done_once(op)
        self._since_barrier.add(_Unfinished(roots, bool(roots) and not alone))
        return roots

    def _meet(self) -> None:
        """All threads have finished their ops before this point."""
        if self._is_parallel and self._since_barrier.by_all:
            self._use(self._since_barrier.roots)
        self._since_barrier = _Unfinished()

    def _define(self, op: entry_ops.AllocOp) -> None:
        if op.dynamic.value.data:
            return
        # The entry function refuses negative dimensions, but only after earlier kernels have run.
        bytes_ = largest(ref_type(op.result).bytes, Expr.const(0))
        size = (bytes_ + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
        self.buffers[op.result] = Buffer(op, size, self._position, self._position)

    def _is_older(self, root: SSAValue, loop: entry_ops.LoopOp) -> bool:
        owner = root.owner
        return isinstance(owner, Operation) and not loop.is_ancestor(owner)

    def _use(self, roots: Iterable[SSAValue]) -> None:
        for root in roots:
            self.buffers[root].end = self._position


@dataclass
class _Unfinished:
    """The buffers that threads may be using, and whether threads other than the first may."""

    roots: set[SSAValue] = field(default_factory=set[SSAValue])
    by_all: bool = False

    def add(self, other: _Unfinished) -> None:
        self.roots |= other.roots
        self.by_all |= other.by_all

    def copy(self) -> _Unfinished:
        return _Unfinished(set(self.roots), self.by_all)


def lay_out_weights(entry: EntryOp) -> int:
    """
    Assign an offset to every constant, one for equal bytes of elements of one size, which byte
    order does not tell apart; and to the defaults of inputs. Returns the total size.
    """
    offsets: dict[tuple[Blob, int], int] = {}
    end = WEIGHTS_HEADER

    def placed(blob: Blob, item_size: int) -> int:
        nonlocal end
        key = (blob, item_size)
        if key not in offsets:
            offsets[key] = end
            end += -(-blob.size // ALIGNMENT) * ALIGNMENT
        return offsets[key]

    for op in all_ops(entry):
        if isinstance(op, entry_ops.WeightOp):
            place = placed(op.value.data, ref_type(op.result).item_size)
            op.properties["offset"] = DimsAttr.of([place])
    if any(entry.input_defaults):
        inputs = zip(entry.input_defaults, entry.input_args, strict=True)
        entry.default_offsets = DimsAttr.of(
            0 if default is None else placed(default.value.data, ref_type(argument).item_size)
            for default, argument in inputs
        )
    return end


class PlanMemoryPass(ModulePass):
    """
    Assign an offset to every planned buffer.

    Buffers whose live ranges do not overlap may share memory. Static sizes are placed largest first
    at the lowest free offset. Where sizes depend on dimensions, such plans for some sizes say which
    buffer lies on which, and each lies as low as what is below it allows. The entry function gets
    `workspace`, the bytes needed, and `weights`, the bytes of the constants with their header; and
    `live` and `row_major`, which measure the quality of the plan. Buffers whose size depends on
    data still come from the allocator.
    """

    name = "plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None:
            return
        buffers = list(Lifetimes(entry).buffers.values())
        is_open = any(buffer.size.value is None for buffer in buffers)
        entry.workspace = DimsAttr.of([place_open(buffers) if is_open else place(buffers)])
        entry.weights = IntAttr(lay_out_weights(entry))
        entry.live = _number(largest_sum(buffers))
        entry.row_major = _number(largest_sum(buffers, lambda buffer: buffer.op.unpadded_bytes))


def _number(value: int | None) -> IntAttr | None:
    return None if value is None else IntAttr(value)
