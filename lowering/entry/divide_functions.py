"""Kernels whose loops threads cannot share at once are divided, to run one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from lowerdeck.dialects.buffer import kernel
from lowerdeck.lowering.loops.intervals import are_independent

REST = "_rest_"
"""Between the name of a kernel and the number of a later part of it."""


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
        elif not isinstance(op, kernel.ReturnOp) and not op.has_trait(Pure):
            return []
    stored = {op.ref for loop in loops for op in loop.walk() if isinstance(op, kernel.StoreOp)}
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
        if isinstance(op, kernel.ReturnOp) or op in loops:
            continue
        if isinstance(op, kernel.ForOp) or not any(_uses(op.results)):
            op.detach()
            op.erase()


def _uses(values: Sequence[SSAValue]) -> list[bool]:
    return [True for value in values for _ in value.uses]
