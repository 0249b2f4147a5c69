"""`count-scans`: loops that collect have a trip count, which another loop finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.core.constant import scalar
from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp, yielded
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.symbols import symbols_made_by, symbols_made_within
from lowerdeck.dialects.core.types import i64, tensor
from lowerdeck.passes.loops.loops import constant_int, replace_loop, yield_values
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.machinery.symbols import symbols_of, symbols_used_by

_MAX_TRIPS = 1 << 31
"""Exporters write a larger constant trip count to mean that there is none."""

Slice = tuple[list[int], list[Operation]]
"""The carried values that decide how often a loop runs, and what computes them."""


class CountScans(Pattern[Slice]):
    """loop(cond) { collect } -> n = loop(cond) { count }; loop(trip n) { collect }"""

    name = "count-scans"
    roots = (LoopOp,)

    def match(self, op: LoopOp) -> Match[Slice] | None:
        if op.condition is None or not op.yielded_scans:
            return None
        if op.trip_count is not None and (constant_int(op.trip_count) or 0) <= _MAX_TRIPS:
            return None
        carried, ops = _deciding(op)
        own = set(op.inner_symbols)
        if any(map(_makes_symbols, ops)):
            return None
        if any(own & symbols_used_by(inner) for outer in ops for inner in outer.walk()):
            return None
        if any(own & symbols_of(op.carried_args[k].type) for k in carried):
            return None
        return Match((op,), f"{len(carried)} values decide", (carried, ops))

    def rewrite(self, match: Match[Slice], rewriter: Rewriter) -> None:
        op, (carried, ops) = match.root, match.data
        assert isinstance(op, LoopOp)
        count = _counted(op, carried, ops, rewriter)
        yield_values(op, yielded(op.body)[1:], rewriter)
        replace_loop(op, rewriter, trip_count=count, condition=None)


def _makes_symbols(op: Operation) -> bool:
    """True if a copy of an op would define symbols again."""
    return bool(symbols_made_by(op)) or any(map(symbols_made_within, op.regions))


def _deciding(op: LoopOp) -> Slice:
    """What the next condition is computed from, in this iteration and those before."""
    condition = op.yielded_condition
    assert condition is not None
    needed: dict[SSAValue, None] = {condition: None}
    queue = [condition]
    for value in queue:
        found: list[SSAValue] = []
        if value in op.carried_args:
            found.append(op.yielded_carried[op.carried_args.index(value)])
        elif isinstance(owner := _within(value.owner, op), Operation):
            found += [v for inner in owner.walk() for v in inner.operands]
        for other in found:
            if other not in needed:
                needed[other] = None
                queue.append(other)
    carried = [k for k, argument in enumerate(op.carried_args) if argument in needed]
    owners = {_within(value.owner, op) for value in needed}
    return carried, [inner for inner in op.body.block.ops if inner in owners]


def _within(owner: Operation | Block, op: LoopOp) -> Operation | None:
    """The op of the loop's body that an owner is or is in; None if it is outside."""
    inner = owner if isinstance(owner, Operation) else owner.parent_op()
    while inner is not None and inner.parent is not op.body.block:
        inner = inner.parent_op()
    return inner


def _counted(
    op: LoopOp, carried: Sequence[int], ops: Sequence[Operation], rewriter: Rewriter
) -> SSAValue:
    """The number of iterations, by a loop that computes what decides it and nothing else."""
    old = op.body.block.args
    number = tensor(i64, [])
    block = Block(arg_types=[number, number, *(old[k + 1].type for k in carried)])
    values: dict[SSAValue, SSAValue] = {old[0]: block.args[0]}
    values.update((old[k + 1], block.args[n + 2]) for n, k in enumerate(carried))
    for inner in ops:
        block.add_op(inner.clone(values))
    one = scalar(1, i64)
    after = AddOp(block.args[1], one.result)
    condition = op.yielded_condition
    assert condition is not None
    following = [op.yielded_carried[k] for k in carried]
    last = [values.get(value, value) for value in (condition, *following)]
    block.add_ops([one, after, YieldOp([last[0], after.result, *last[1:]])])
    zero = rewriter.add(scalar(0, i64)).result
    inits = [zero, *(op.inits[k] for k in carried)]
    counting = LoopOp(op.trip_count, op.condition, inits, Region(block))
    counting.location = op.location
    return rewriter.add(counting).results[0]


class CountScansPass(PatternPass):
    """
    Loops that collect scan outputs while a condition holds, as loops with a trip count.

    - loop(a, b, cond) { ...; yield c(a), f(a), g(a, b), s } collecting s
      -> n = loop(0, a, cond) { yield c(a), k + 1, f(a) }; loop(trip n, a, b) { ... } [no trip
      count, or one that means that there is none; no sizes change]

    What decides how often the loop runs, a counter mostly, is computed twice; the memory for what
    is collected has a size then. Loops whose bound is known have trip counts by `count-iterations`.
    """

    name = "count-scans"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [CountScans()]
