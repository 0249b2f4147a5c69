"""`split-chains`: long chains of ops on vectors in two halves, for some iterations at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeGuard

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import (
    ApplyOp,
    ForOp,
    FuncOp,
    LoadOp,
    ScratchOp,
    StoreOp,
    YieldOp,
)
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.buffer.vector import lanes_of, scalar_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.chains import FEW_CHAINS, ChainLoop, is_computed
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.indices import Cloner
from lowerdeck.lowering.loops.unroll_tiles import replace
from lowerdeck.lowering.nests.lower import remove_unused
from lowerdeck.lowering.targets.base import Target

AT_ONCE = 16
"""Iterations whose halves follow each other: what is kept of them is little for the L1 cache."""

LONG_CHAIN = 12
"""Ops on vectors that wait for each other: of shorter chains the processor overlaps enough."""
MORE_THAN_ONE = 1.5
"""Of ops in a body for each one of the longest chain: with fewer, two iterations side by side fit
in the registers, which is as good."""
MOST_REGISTERS = 16
"""With more of them, any two iterations fit."""
MOST_KEPT = 2
"""Vectors that are stored and loaded again."""
HALF = 0.35, 0.8
"""The part of the chain that may come first."""


class ChainSplitter:
    """Cuts the body of one loop."""

    def __init__(self, loop: ForOp) -> None:
        self._chain = ChainLoop(loop)
        self._cut: int = 0
        self._kept: list[SSAValue] = []
        self._again: list[Operation] = []

    def find(self) -> bool:
        """True for a long chain that can be cut where few values are needed later."""
        chain = self._chain
        if chain.loop.inits or not chain.may_be_copied():
            return False
        if (trips := chain.trips.value) is not None and trips < 2 * AT_ONCE:
            return False
        depths, count = chain.depths()
        depth = max(depths.values(), default=0)
        if depth < LONG_CHAIN or not MORE_THAN_ONE <= count / depth <= FEW_CHAINS:
            return False
        best: tuple[int, float] | None = None
        reached = 0
        for cut, op in enumerate(chain.ops, 1):
            if isinstance(op, StoreOp):
                # What the second half loads again has to be what it was.
                break
            reached = max([reached, *(depths.get(value, 0) for value in op.results)])
            if not HALF[0] <= reached / depth <= HALF[1]:
                continue
            kept, again = _needed(chain.ops[:cut], chain.ops[cut:], depths)
            cost = len(kept), abs(reached / depth - 0.5)
            if len(kept) <= MOST_KEPT and all(lanes_of(value.type) for value in kept):
                if best is None or cost < best:
                    best, self._cut, self._kept, self._again = cost, cut, kept, again
        return best is not None

    def rewrite(self) -> None:
        """A loop over parts with two loops inside, and one over what remains."""
        chain, block = self._chain, Block()
        parts = chain.trips // AT_ONCE
        if (done := parts * AT_ONCE) != 0:
            outer, part = chain.open(block, (Expr.const(0), parts))
            self._fill(outer.body.block, part)
            outer.body.block.add_op(YieldOp([]))
        if done != chain.trips:
            rest, number = chain.open(block, (done, chain.trips))
            _clone(chain.ops, chain.cloner(number), rest.body.block)
        replace(chain.loop, block, [])

    def _fill(self, block: Block, part: Expr) -> None:
        """The first halves of some iterations, then the second ones."""
        chain, bounds = self._chain, (Expr.const(0), Expr.const(AT_ONCE))
        kept = [
            ScratchOp(RefType.of(scalar_of(value.type), [AT_ONCE, lanes_of(value.type)]))
            for value in self._kept
        ]
        for scratch in kept:
            scratch.location = chain.loop.location
            block.add_op(scratch)
        first, number = chain.open(block, bounds, parallel=False)
        cloner = chain.cloner(part * AT_ONCE + number)
        _clone(chain.ops[: self._cut], cloner, first.body.block, ends=False)
        place, operands = chain.indices.write([number, 0])
        for value, scratch in zip(self._kept, kept, strict=True):
            store = StoreOp(cloner.value(value), scratch.ref, place, operands)
            store.location = chain.loop.location
            first.body.block.add_op(store)
        first.body.block.add_op(YieldOp([]))
        second, number = chain.open(block, bounds, parallel=False)
        cloner = chain.cloner(part * AT_ONCE + number)
        place, operands = chain.indices.write([number, 0])
        for value, scratch in zip(self._kept, kept, strict=True):
            load = LoadOp(scratch.ref, place, operands, lanes_of(value.type))
            load.location = chain.loop.location
            second.body.block.add_op(load)
            cloner.values[value] = load.result
        _clone([*self._again, *chain.ops[self._cut :]], cloner, second.body.block)


def _clone(ops: Iterable[Operation], cloner: Cloner, block: Block, *, ends: bool = True) -> None:
    for op in ops:
        cloner.clone(op, block)
    if ends:
        block.add_op(YieldOp([]))


def _needed(
    first: Sequence[Operation], second: Sequence[Operation], depths: dict[SSAValue, int]
) -> tuple[list[SSAValue], list[Operation]]:
    """The values of the first half to be kept for the second one, and its ops to be done again."""
    own: dict[SSAValue, Operation] = {value: op for op in first for value in op.results}
    kept: dict[SSAValue, None] = {}
    again: set[Operation] = set()
    waiting = [value for op in second for value in op.operands]
    while waiting:
        value = waiting.pop()
        if (op := own.get(value)) is None or op in again or value in kept:
            continue
        if _is_cheap(op, depths):
            again.add(op)
            waiting += op.operands
        else:
            kept[value] = None
    return list(kept), [op for op in first if op in again]


def _is_cheap(op: Operation, depths: dict[SSAValue, int]) -> bool:
    """True for what is loaded, and for the first op on it."""
    if isinstance(op, LoadOp | ApplyOp | arith.ConstantOp):
        return True
    limit = 1 if is_computed(op) else 0
    return all(depths.get(value, 0) <= limit for value in op.results)


class SplitChainsPass(FunctionPass):
    """
    for i { ops of i } -> for part { for 16 i { first half, keep }; for 16 i { rest } }
        [a chain of at least 12 ops on vectors, 1.5 to 2.5 ops for each of them; cut where at most 2
        vectors are needed later; at most 16 registers]

    Ops that wait for others take the places in which a processor looks for such that can begin. The
    shorter the chain from the first op of an iteration to the last, the fewer wait, and the more
    iterations overlap. What is kept goes through the L1 cache, which has time for it.
    """

    name = "split-chains"
    optional = True

    def run(self, function: FuncOp, target: Target) -> None:
        if target.machine.registers > MOST_REGISTERS:
            return
        loops = [ChainSplitter(loop) for loop in all_ops(function) if _is_plain(loop)]
        long = [loop for loop in loops if loop.find()]
        for loop in long:
            loop.rewrite()
        if long:
            # What is done again in the second half may be needed there alone.
            remove_unused(function.body.block)


def _is_plain(op: Operation) -> TypeGuard[ForOp]:
    return isinstance(op, ForOp) and op.mode is None
