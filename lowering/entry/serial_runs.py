"""Consecutive ops that only the first thread executes become one `buffer.once`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, BlockArgument, Operation, Region

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.walking import all_ops

IsShared = Callable[[entry_ops.CallOp], bool]

_POINTERS = (entry_ops.WeightOp, entry_ops.AllocOp, entry_ops.ViewOp)
"""Ops that name memory; those that are also used elsewhere are moved before the run."""


def gather_runs(block: Block, is_shared: IsShared) -> None:
    """
    Put every maximal run of calls, copies and control flow that no other thread takes part in into
    a `buffer.once`, here and in the remaining control flow.

    Control flow stays with all threads if they share something in it, if it may end the run of the
    model, or if later ops need a buffer or a symbol that it defines.
    """
    run: list[Operation] = []
    for op in list(block.ops):
        if _may_join(op, is_shared):
            run.append(op)
            continue
        _close(run, is_shared)
        run = []
        _gather_inside(op, is_shared)
    _close(run, is_shared)


def _gather_inside(op: Operation, is_shared: IsShared) -> None:
    for region in op.regions:
        gather_runs(region.block, is_shared)


def _may_join(op: Operation, is_shared: IsShared) -> bool:
    match op:
        case entry_ops.WeightOp() | entry_ops.ViewOp() | entry_ops.RequireOp():
            return True
        case entry_ops.AllocOp():
            return not op.dynamic.value.data
        case entry_ops.CallOp():
            return not is_shared(op)
        case entry_ops.CopyOp():
            return not _opens_output(op)
        case entry_ops.IfOp():
            return op.result_symbols is None and _is_serial(op, is_shared)
        case entry_ops.LoopOp():
            names = (op.count, op.result_symbols)
            return names == (None, None) and _is_serial(op, is_shared)
        case _:
            return False


def _opens_output(op: entry_ops.CopyOp) -> bool:
    """True if the target's size may be unknown until now: all threads check its capacity."""
    return isinstance(op.target, BlockArgument) and any(
        dim.value is None for dim in ref_type(op.target).dims.data
    )


def _is_serial(op: Operation, is_shared: IsShared) -> bool:
    """True if an op's regions contain no barrier, and no thread can leave the run in them."""
    for inner in all_ops(op):
        match inner:
            case entry_ops.CallOp():
                serial = not is_shared(inner)
            case entry_ops.AllocOp():
                serial = not inner.dynamic.value.data
            case entry_ops.RequireOp() | entry_ops.CheckStatusOp():
                serial = False
            case _:
                serial = True
        if not serial:
            return False
    return True


def _close(run: Sequence[Operation], is_shared: IsShared) -> None:
    """Put a run into one region, or into several around control flow that others need."""
    outer = _needed_outside(run)
    for number, op in enumerate(run):
        if op in outer and not isinstance(op, (*_POINTERS, entry_ops.RequireOp)):
            _close(run[:number], is_shared)
            _gather_inside(op, is_shared)
            _close(run[number + 1 :], is_shared)
            return
    inner = [op for op in run if op not in outer]
    if all(isinstance(op, _POINTERS) for op in inner):
        return
    first = run[0]
    block = first.parent
    assert block is not None
    last = kernel.YieldOp()
    once = entry_ops.OnceOp(Region(Block([last])))
    once.location = inner[0].location
    block.insert_op_before(once, first)
    for op in run:
        op.detach()
        if op in outer:
            block.insert_op_before(op, once)
        else:
            once.body.block.insert_op_before(op, last)


def _needed_outside(run: Sequence[Operation]) -> set[Operation]:
    """The ops of a run that all threads execute: those used after it, constants and tests."""
    members, outer = set(run), set[Operation]()
    for op in reversed(run):
        users = {_in_block(use.operation, op.parent) for r in op.results for use in r.uses}
        always = isinstance(op, entry_ops.WeightOp | entry_ops.RequireOp)
        if always or not users <= members or users & outer:
            outer.add(op)
    return outer


def _in_block(op: Operation, block: Block | None) -> Operation:
    """The op of a block that an op is or is nested in."""
    found = block.find_ancestor_op_in_block(op) if block is not None else None
    assert found is not None
    return found
