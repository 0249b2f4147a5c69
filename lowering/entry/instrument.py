"""`instrument`: the entry function measures the time of each call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import find_entry
from lowerdeck.dialects.buffer.kernel import functions_of
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import lanes_of
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.provenance import source_names

_FREE = (entry_ops.WeightOp, entry_ops.ViewOp, entry_ops.RequireOp)
"""Ops too short to be worth a mark."""

_CLOSING = (entry_ops.BarrierOp, entry_ops.CheckStatusOp)
"""Ops whose time belongs to the call before them: there, threads wait for the slowest one."""


@dataclass
class Marker:
    """Inserts marks into the entry function and numbers the slots."""

    functions: Mapping[str, kernel.FuncOp]
    slots: int = 0
    """The number of slots so far."""
    lanes: dict[str, int] = field(default_factory=dict[str, int])
    """Of functions, by name, that were asked for."""

    def mark(self, block: Block) -> None:
        """Mark every call and copy of a block and its nested blocks."""
        is_marked = False
        for op in list(block.ops):
            if isinstance(op, _CLOSING) and is_marked:
                continue
            if (timed := _timed(op)) is not None:
                if not is_marked:
                    block.insert_op_before(entry_ops.MarkOp(), op)
                block.insert_op_after(entry_ops.MarkOp(self._new_slot(timed)), _end(op))
                is_marked = True
            elif not _is_free(op):
                for region in op.regions:
                    self.mark(region.block)
                is_marked = False

    def _lanes(self, function: kernel.FuncOp) -> int:
        """The lanes of the widest vectors of a function, 1 if it has scalars alone."""
        name = function.sym_name.data
        if name not in self.lanes:
            values = (value for op in all_ops(function) for value in op.results)
            self.lanes[name] = max((lanes_of(value.type) for value in values), default=0) or 1
        return self.lanes[name]

    def _new_slot(self, op: entry_ops.CallOp | entry_ops.CopyOp) -> dict[str, Attribute]:
        name, entries = _described(op)
        outputs = 1
        if isinstance(op, entry_ops.CallOp) and name in self.functions:
            function = self.functions[name]
            schedule = function.schedule
            entries["schedule"] = StringAttr("" if schedule is None else str(schedule.data))
            entries["lanes"] = IntAttr(self._lanes(function))
            outputs = function.outputs.data
        entries["shapes"] = StringAttr(_shapes(op, outputs))
        entries["kernel"] = StringAttr(name)
        entries["nodes"] = ArrayAttr([StringAttr(node) for node in source_names(op)])
        self.slots += 1
        return {"slot": IntAttr(self.slots - 1), **entries}


def _timed(op: Operation) -> entry_ops.CallOp | entry_ops.CopyOp | None:
    """The call or copy that an op is, or the only one in a region for one thread or to share."""
    inner = op
    if isinstance(op, entry_ops.OnceOp | entry_ops.ShareOp):
        inner, *others = op.body.block.ops
        if len(others) > 1:
            return None
    return inner if isinstance(inner, entry_ops.CallOp | entry_ops.CopyOp) else None


def _is_free(op: Operation) -> bool:
    return isinstance(op, _FREE) or (
        isinstance(op, entry_ops.AllocOp) and not op.dynamic.value.data
    )


def _end(op: Operation) -> Operation:
    """The last op that belongs to a call."""
    while isinstance(op.next_op, _CLOSING):
        op = op.next_op
    return op


def _described(op: entry_ops.CallOp | entry_ops.CopyOp) -> tuple[str, dict[str, Attribute]]:
    """The kernel's name, and the work and memory traffic of a call."""
    moved = sum((ref_type(operand).bytes for operand in op.operands), Expr.const(0))
    entries: dict[str, Attribute] = {"bytes": DimsAttr.of([moved])}
    if isinstance(op, entry_ops.CopyOp):
        return "copy", entries
    if op.moved is not None:
        entries["bytes"] = op.moved
    if op.multiply_adds is not None:
        entries["multiply_adds"] = op.multiply_adds
    return op.callee.root_reference.data, entries


def _shapes(op: Operation, outputs: int) -> str:
    """`4x3 3x[n] -> 4x[n]`: what is in brackets a run gives its value."""
    texts = ["x".join(map(_size, ref_type(o).dims.data)) or "scalar" for o in op.operands]
    split = len(texts) - outputs
    return f"{' '.join(texts[:split])} -> {' '.join(texts[split:])}".strip()


def _size(dim: Expr) -> str:
    return f"[{dim}]" if dim.symbols else str(dim)


class InstrumentPass(ModulePass):
    """
    Let the entry function measure the time of each call and copy, for `Model.profile`.

    A `buffer.mark` with a slot follows each of them, after the barrier where threads wait for it; a
    mark without a slot is inserted where other ops have run since the last mark, so that only calls
    and copies are charged. The slots are numbered, and the mark with a slot describes it.
    """

    name = "instrument"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None:
            return
        Marker(functions_of(op)).mark(entry.body.block)
        entry.profile = UnitAttr()
