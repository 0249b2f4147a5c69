"""`check-ahead`: indices from data are checked in vectors, some of them before their use."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Block, Operation, Region

from lowerdeck.dialects.buffer.kernel import (
    CheckIndexOp,
    ForOp,
    FuncOp,
    LoadOp,
    ScratchOp,
    StoreOp,
    YieldOp,
)
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.core.types import f64
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.loop_vectors import LoopVectorizer
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents, replace
from lowerdeck.lowering.loops.varying import varying_values
from lowerdeck.lowering.targets.base import FEWEST_LANES, Limits, Target

AT_ONCE = 512
"""Indices that are checked before the first of them is used: they stay in the L1 cache."""


class _Splitter:
    """Makes of a loop one that checks indices and one that uses them, for a part at a time."""

    def __init__(self, loop: ForOp, checks: list[CheckIndexOp]) -> None:
        self._loop = loop
        self._checks = checks
        self._indices = Indices()
        limit_by_parents(loop, self._indices)
        lower, upper, _ = self._indices.read(loop.range.data, loop.indices)
        self._lower, self._size = lower, self._indices.extent(lower, upper)
        self._index = str(self._indices.symbol(loop.body.block.args[0]))

    def rewrite(self) -> ForOp:
        """The loop that checks, in the place of the old one."""
        block, size = Block(), self._size
        if size.value is not None and size.value <= AT_ONCE and not self._is_parallel:
            first = self._part(Expr.const(0), size, block)
        else:
            body = Block(arg_types=[IndexType()])
            count = size.ceildiv(AT_ONCE)
            number = self._indices.symbol(body.args[0])
            self._indices.limit(number, 0, count)
            start = number * AT_ONCE
            first = self._part(start, minimum(size - start, AT_ONCE), body)
            body.add_op(YieldOp())
            self._add_loop(count, body, block, parallel=self._is_parallel)
        replace(self._loop, block)
        return first

    @property
    def _is_parallel(self) -> bool:
        return bool(self._loop.parallel.value.data)

    def _part(self, start: Expr, count: Expr, block: Block) -> ForOp:
        checked = {check: ScratchOp(RefType.of(i64, [AT_ONCE])) for check in self._checks}
        block.add_ops(checked.values())
        ahead, place, cloner = self._body(start, count)
        needed = _needed_for(self._checks, self._loop.body.block)
        for op in self._loop.body.block.ops:
            if op not in needed:
                continue
            new = cloner.clone(op, ahead)
            if op in checked:
                assert isinstance(op, CheckIndexOp)
                number = arith.IndexCastOp(new.results[0], i64)
                store = StoreOp(number.result, checked[op].ref, *self._indices.write([place]))
                ahead.add_ops([number, store])
        ahead.add_op(YieldOp())
        first = self._add_loop(count, ahead, block)
        body, place, cloner = self._body(start, count)
        needed = _needed_for(
            [op for op in self._loop.body.block.ops if _is_kept(op) and op not in checked],
            self._loop.body.block,
            set(checked),
        )
        for op in self._loop.body.block.ops:
            if op not in needed:
                continue
            if op in checked:
                assert isinstance(op, CheckIndexOp)
                load = LoadOp(checked[op].ref, *self._indices.write([place]))
                body.add_op(load)
                cloner.add(arith.IndexCastOp(load.result, IndexType()), op, body)
            else:
                cloner.clone(op, body)
        self._add_loop(count, body, block)
        return first

    def _body(self, start: Expr, count: Expr) -> tuple[Block, Expr, Cloner]:
        """An empty body, the index in it, and what copies ops of the loop there."""
        body = Block(arg_types=[IndexType()])
        place = self._indices.symbol(body.args[0])
        self._indices.limit(place, 0, count)
        moved = {self._index: self._lower + start + place}
        return body, place, Cloner(self._indices, moved=moved)

    def _add_loop(self, upper: Expr, body: Block, block: Block, *, parallel: bool = False) -> ForOp:
        (first, last, step), operands = self._indices.write([0, upper, 1])
        new = ForOp((first, last, step), operands, [], Region(body), parallel=parallel)
        new.location = self._loop.location
        block.add_op(new)
        return new


def _checks_of(loop: ForOp) -> list[CheckIndexOp]:
    """The checks of an innermost loop that differ between its iterations; none if it is another."""
    ops = list(loop.body.block.ops)
    if loop.inits or loop.mode is not None or loop.range.data[2] != 1:
        return []
    if any(op.regions or isinstance(op, ScratchOp) for op in ops):
        return []
    lower, upper, _ = loop.range.data
    size = (upper - lower).value
    if size is not None and size < 2 * FEWEST_LANES:
        return []
    varying = varying_values(loop.body.block, [loop.body.block.args[0]])
    checks = [op for op in ops if isinstance(op, CheckIndexOp) and op.result in varying]
    stored = {op.ref for op in ops if isinstance(op, StoreOp)}
    ahead = {op.ref for op in _needed_for(checks, loop.body.block) if isinstance(op, LoadOp)}
    return [] if stored & ahead else checks


def _is_kept(op: Operation) -> bool:
    """True for what is there for its effect."""
    return isinstance(op, StoreOp | CheckIndexOp | YieldOp)


def _needed_for(
    ops: Sequence[Operation], block: Block, ends: Collection[Operation] = ()
) -> set[Operation]:
    """These ops, and those in a block that they depend on, with none of those before the `ends`."""
    pending, found = list(ops), set[Operation]()
    while pending:
        op = pending.pop()
        if op not in found and op.parent is block:
            found.add(op)
            operands = () if op in ends else op.operands
            pending += [v.owner for v in operands if isinstance(v.owner, Operation)]
    return found


def check_ahead(block: Block, lanes: int, limits: Limits) -> None:
    """Split the loops of a block that check the index of each element."""
    for op in list(block.ops):
        if isinstance(op, ForOp) and (checks := _checks_of(op)):
            first = _Splitter(op, checks).rewrite()
            if not any(result.type == f64 for inner in all_ops(first) for result in inner.results):
                vectorizer = LoopVectorizer(first, lanes, limits, [], lanes, far=False, exact=False)
                vectorizer.rewrite()
            continue
        for region in op.regions:
            for inner in region.blocks:
                check_ahead(inner, lanes, limits)


class CheckAheadPass(FunctionPass):
    """
    Split loops that check an index from data in every iteration: for some hundreds of iterations at
    a time, one loop checks the indices, in vectors, and keeps them; the other one goes on with
    them, without a branch.
    """

    name = "check-ahead"
    optional = True

    def run(self, function: FuncOp, target: Target) -> None:
        if target.lanes > 1:
            check_ahead(function.body.block, target.lanes, target.limits)
