"""`interleave`: two iterations at a time of loops whose ops wait for each other."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import ForOp, FuncOp, StoreOp, YieldOp
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.chains import FEW_CHAINS, ChainLoop
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.indices import Cloner
from lowerdeck.lowering.loops.unroll_tiles import replace
from lowerdeck.lowering.loops.varying import is_varying, varying_values
from lowerdeck.lowering.targets.base import Target

COPIES = 2
"""Iterations at a time: of more, the values do not fit in 16 registers."""

LONG_CHAIN = 10
"""Ops on vectors that wait for each other: of shorter chains the processor overlaps several."""


class Interleaver:
    """Takes the iterations of one loop by twos."""

    def __init__(self, loop: ForOp) -> None:
        self._chain = ChainLoop(loop)

    def is_worthwhile(self) -> bool:
        """True for a chain of ops on vectors, in iterations that may be mixed."""
        if not self._chain.may_be_copied() or (self._chain.trips.value or COPIES) < COPIES:
            return False
        depths, count = self._chain.depths()
        depth = max(depths.values(), default=0)
        return depth >= LONG_CHAIN and count <= FEW_CHAINS * depth

    def rewrite(self) -> None:
        """A loop over pairs, and one over what remains."""
        loop, trips = self._chain.loop, self._chain.trips
        block, values = Block(), list(loop.inits)
        pairs = trips // COPIES
        if (done := pairs * COPIES) != 0:
            values = self._add(block, (Expr.const(0), pairs), COPIES, values)
        if done != trips:
            values = self._add(block, (done, trips), 1, values)
        replace(loop, block, values)

    def _add(
        self,
        block: Block,
        bounds: tuple[Expr, Expr],
        count: int,
        values: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """A loop of so many iterations at a time, and what it carries out."""
        new, number = self._chain.open(block, bounds, values)
        self._fill(new.body.block, [self._chain.cloner(number * count + k) for k in range(count)])
        return list(new.results)

    def _fill(self, body: Block, copies: Sequence[Cloner]) -> None:
        """Ops by turns; then those that wait for what the iteration before yields, in its order."""
        block = self._chain.loop.body.block
        varying = varying_values(block, block.args)
        carried = varying_values(block, block.args[1:])
        waiting: list[Operation] = []
        for op in self._chain.ops:
            if is_varying(op, carried):
                waiting.append(op)
            elif is_varying(op, varying) or isinstance(op, StoreOp):
                for copy in copies:
                    copy.clone(op, body)
            else:
                copies[0].clone(op, body)
                for copy in copies[1:]:
                    copy.take_over(op, copies[0])
        last = block.last_op
        assert isinstance(last, YieldOp)
        values: Sequence[SSAValue] = body.args[1:]
        for copy in copies:
            copy.values.update(zip(block.args[1:], values, strict=True))
            for op in waiting:
                copy.clone(op, body)
            values = [copy.value(value) for value in last.values]
        body.add_op(YieldOp(values))


class InterleavePass(FunctionPass):
    """
    for i { ops of i } -> for i { op of 2 i, op of 2 i + 1, next op of 2 i, ... }
        [a chain of at least 10 ops on vectors, no nested loops or branches]

    A function of one vector is a chain of ops that wait for each other. The processor fills the
    gaps with the next iterations as far as it can look ahead, which is not far enough for long
    chains: with two of them side by side it has to look only half as far. What iterations carry, as
    a sum, is added in the same order as before.
    """

    name = "interleave"
    optional = True

    def run(self, function: FuncOp, target: Target) -> None:
        for loop in all_ops(function):
            if isinstance(loop, ForOp) and loop.mode is None:
                interleaver = Interleaver(loop)
                if interleaver.is_worthwhile():
                    interleaver.rewrite()
