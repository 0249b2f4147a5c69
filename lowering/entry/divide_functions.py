"""Kernels whose loops threads cannot share at once are divided, to run one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import Pure

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.tiles import ReleaseTilesOp
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.intervals import are_independent

REST = "_rest_"
"""Between the name of a kernel and the number of a later part of it."""


def may_be_in_parts(op: Operation) -> bool:
    """True for what is between loops and may be done by each thread that runs a part of them."""
    return isinstance(op, kernel.ReturnOp | ReleaseTilesOp) or op.has_trait(Pure)


def enclose_statements(function: kernel.FuncOp) -> None:
    """
    Put what is done between the parallel loops of a function, as for a last square that needs no
    such loop, into loops of one iteration. Nothing changes if other loops need what it computes.
    """
    stored = {op.ref for op in all_ops(function) if isinstance(op, kernel.StoreOp)}
    found: list[list[Operation]] = []
    for are_apart, ops in groupby(function.body.block.ops, _is_apart):
        statements = [] if are_apart else _statements(list(ops), stored)
        if statements is None:
            return
        if statements:
            found.append(statements)
    for statements in found:
        body = Block(arg_types=[IndexType()])
        loop = kernel.ForOp((0, 1, 1), [], [], Region(body))
        loop.location = statements[0].location
        # What stays outside may lie between them.
        function.body.block.insert_op_after(loop, statements[-1])
        for op in statements:
            op.detach()
            body.add_op(op)
        body.add_op(kernel.YieldOp())


def _is_apart(op: Operation) -> bool:
    """True for parallel loops, and for what is at the end of a function."""
    if isinstance(op, kernel.ForOp):
        return _is_parallel(op)
    return isinstance(op, kernel.ReturnOp | ReleaseTilesOp)


def _statements(ops: Sequence[Operation], stored: AbstractSet[SSAValue]) -> list[Operation] | None:
    """
    Of consecutive ops those that can come into one loop, with all that have effects; none if only
    loops have effects; None if what has one, or depends on one, is used outside.
    """
    inside: list[Operation] = []
    kept: set[Operation] = set()
    for op in reversed(ops):
        if all(_top_of(use.operation) in kept for value in op.results for use in value.uses):
            inside.append(op)
            kept.add(op)
        elif not op.has_trait(Pure) and not (
            isinstance(op, kernel.LoadOp) and op.ref not in stored
        ):
            return None
    are_statements = any(
        not isinstance(op, kernel.LoadOp | kernel.ForOp) and not op.has_trait(Pure) for op in inside
    )
    return inside[::-1] if are_statements else []


def _top_of(op: Operation) -> Operation:
    """The op of the body of a function that an op is, or lies in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, kernel.FuncOp):
        op, parent = parent, parent.parent_op()
    return op


def groups_of(function: kernel.FuncOp) -> list[list[kernel.ForOp]]:
    """
    The loops of a function in order, in groups: one that is not parallel alone; others together as
    long as none stores what another one accesses. There are no groups if the function cannot be
    divided between them: it contains other ops, whose effects or results would have to come along.

    Loops whose last vectors overlap the ones before store some elements twice, which is harmless
    only in order.
    """
    loops: list[kernel.ForOp] = []
    loads: list[kernel.LoadOp] = []
    for op in function.body.block.ops:
        if isinstance(op, kernel.ForOp) and not op.results:
            loops.append(op)
        elif isinstance(op, kernel.LoadOp):
            loads.append(op)
        elif not may_be_in_parts(op):
            return []
    stored = {op.ref for loop in loops for op in all_ops(loop) if isinstance(op, kernel.StoreOp)}
    if any(load.ref in stored for load in loads):
        return []
    groups: list[list[kernel.ForOp]] = []
    for loop in loops:
        together = [*(groups[-1] if groups else []), loop]
        if len(together) > 1 and all(map(_is_parallel, together)) and are_independent(together):
            groups[-1].append(loop)
        else:
            groups.append([loop])
    return groups


def _is_parallel(loop: kernel.ForOp) -> bool:
    return bool(loop.parallel.value.data)


def divide(
    function: kernel.FuncOp,
    groups: Sequence[Sequence[kernel.ForOp]],
    functions: dict[str, kernel.FuncOp],
) -> list[kernel.FuncOp]:
    """
    Leave the first group of loops to a function, and make a function with the same arguments for
    each other one, which is added to `functions` and to the module; all of them in order.
    """
    module = function.parent
    assert module is not None
    parts = [function]
    for number, group in enumerate(groups[1:], 2):
        name = f"{function.sym_name.data}{REST}{number}"
        while name in functions:
            name += "_"
        copies: dict[Operation, Operation] = {}
        copy = _clone(function, copies)
        copy.properties["sym_name"] = StringAttr(name)
        _keep(copy, {copies[loop] for loop in group})
        module.insert_op_after(copy, parts[-1])
        functions[name] = copy
        parts.append(copy)
    _keep(function, set(groups[0]))
    return parts


def _clone(function: kernel.FuncOp, copies: dict[Operation, Operation]) -> kernel.FuncOp:
    """A copy, with its locations, and which op of its block is a copy of which."""
    copy = function.clone()
    copy.location = function.location
    old, new = function.body.block.ops, copy.body.block.ops
    for mine, other in zip(old, new, strict=True):
        copies[mine] = other
    return copy


def _keep(function: kernel.FuncOp, loops: set[Operation]) -> None:
    """Remove all other loops, and what nothing uses without them."""
    for op in reversed(list(function.body.block.ops)):
        if isinstance(op, kernel.ReturnOp | ReleaseTilesOp) or op in loops:
            continue
        if isinstance(op, kernel.ForOp) or not any(_uses(op.results)):
            op.detach()
            op.erase()


def _uses(values: Sequence[SSAValue]) -> list[bool]:
    return [True for value in values for _ in value.uses]
