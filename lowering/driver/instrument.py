"""`instrument`: the driver takes the time of each call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import driver, kernel
from lowerdeck.dialects.buffer.kernel import DRIVER
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.buffers.work import MULTIPLY_ADDS
from lowerdeck.passes.provenance import source_names

SLOTS = "profile"
"""The attribute of the driver that describes each slot: a dictionary for each, in order."""

_FREE = (driver.WeightOp, driver.ViewOp, driver.RequireOp)
"""Ops that take no time worth a mark."""

_CLOSING = (driver.BarrierOp, driver.CheckStatusOp)
"""Ops whose time belongs to the call before them: there threads wait for the slowest."""


@dataclass
class Marker:
    """Puts marks into a driver and numbers the slots."""

    functions: Mapping[str, kernel.FuncOp]
    slots: list[DictionaryAttr] = field(default_factory=list[DictionaryAttr])

    def mark(self, block: Block) -> None:
        """Every call and copy of a block, and of the blocks in it."""
        is_marked = False
        for op in list(block.ops):
            if isinstance(op, _CLOSING) and is_marked:
                continue
            if (timed := _timed(op)) is not None:
                if not is_marked:
                    block.insert_op_before(driver.MarkOp(), op)
                block.insert_op_after(driver.MarkOp(self._new_slot(timed)), _end(op))
                is_marked = True
            elif not _is_free(op):
                for region in op.regions:
                    self.mark(region.block)
                is_marked = False

    def _new_slot(self, op: driver.CallOp | driver.CopyOp) -> int:
        name, entries = _described(op)
        outputs = 1
        if isinstance(op, driver.CallOp) and name in self.functions:
            schedule = self.functions[name].schedule
            entries["schedule"] = StringAttr("" if schedule is None else str(schedule.data))
            outputs = self.functions[name].outputs.data
        entries["shapes"] = StringAttr(_shapes(op, outputs))
        entries["kernel"] = StringAttr(name)
        entries["nodes"] = ArrayAttr([StringAttr(node) for node in source_names(op)])
        self.slots.append(DictionaryAttr(entries))
        return len(self.slots) - 1


def _timed(op: Operation) -> driver.CallOp | driver.CopyOp | None:
    """The call or copy that an op is, or all that one thread makes, or that they share."""
    inner = op
    if isinstance(op, driver.OnceOp | driver.ShareOp):
        inner, *others = op.body.block.ops
        if len(others) > 1:
            return None
    return inner if isinstance(inner, driver.CallOp | driver.CopyOp) else None


def _is_free(op: Operation) -> bool:
    return isinstance(op, _FREE) or (isinstance(op, driver.AllocOp) and not op.dynamic.value.data)


def _end(op: Operation) -> Operation:
    """The last op that belongs to a call."""
    while isinstance(op.next_op, _CLOSING):
        op = op.next_op
    return op


def _described(op: driver.CallOp | driver.CopyOp) -> tuple[str, dict[str, Attribute]]:
    """The kernel's name, and what a call computes and moves."""
    moved = sum((ref_type(operand).bytes for operand in op.operands), Expr.const(0))
    entries: dict[str, Attribute] = {"bytes": DimsAttr.of([moved])}
    if isinstance(op, driver.CopyOp):
        return "copy", entries
    if (work := op.attributes.get(MULTIPLY_ADDS)) is not None:
        entries[MULTIPLY_ADDS] = work
    return op.callee.root_reference.data, entries


def _shapes(op: Operation, outputs: int) -> str:
    """`4x3 3x5 -> 4x5`"""
    texts = ["x".join(map(str, ref_type(o).dims.data)) or "scalar" for o in op.operands]
    split = len(texts) - outputs
    return f"{' '.join(texts[:split])} -> {' '.join(texts[split:])}".strip()


@dataclass(frozen=True)
class InstrumentPass(ModulePass):
    """
    Let the driver take the time of each call and copy, for `Model.profile`.

    A `buffer.mark` with a slot follows each of them and what threads wait for behind it; one
    without a slot stands where something else has happened since the last mark, so that only calls
    and copies are charged. The driver gets the attribute `profile`, a dictionary for each slot:
    `kernel`, `nodes` of the model, `schedule` (of the kernel), `multiply_adds` (of the call),
    `shapes` of its buffers, and `bytes`, their sizes.
    """

    name = "instrument"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, kernel.FuncOp)}
        if (run := functions.get(DRIVER)) is None:
            return
        marker = Marker(functions)
        marker.mark(run.body.block)
        run.attributes[SLOTS] = ArrayAttr(marker.slots)
