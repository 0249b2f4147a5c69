"""`unroll-tiles`: the loops in a tile are unrolled, and the copies of their body interleaved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from lowerdeck.dialects.buffer.enums import LoopMode
from lowerdeck.dialects.buffer.kernel import ForOp, FuncOp, LoadOp, StoreOp, YieldOp
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.varying import is_varying, varying_values
from lowerdeck.lowering.targets.base import Target


class Unroller:
    """Interleaves copies of a body: one copy of what they share, loops merged."""

    def __init__(self, loop: ForOp, indices: Indices) -> None:
        self._varying = varying_values(loop.body.block, [loop.body.block.args[0]])

    def ops(self, ops: Sequence[Operation], copies: Sequence[Cloner], block: Block) -> None:
        """
        Append the copies of ops to a block.

        One copy after the other as far as loops allow: then few values are live at a time.
        """
        run: list[Operation] = []
        for op in ops:
            if isinstance(op, YieldOp):
                continue
            if is_varying(op, self._varying):
                if isinstance(op, ForOp) and self._can_merge(op):
                    self._copy(run, copies, block)
                    self._merge(op, copies, block)
                else:
                    run.append(op)
                continue
            if not _can_precede(op, run):
                self._copy(run, copies, block)
            copies[0].clone(op, block)
            for copy in copies[1:]:
                copy.take_over(op, copies[0])
        self._copy(run, copies, block)

    @staticmethod
    def _copy(run: list[Operation], copies: Sequence[Cloner], block: Block) -> None:
        for copy in copies:
            for op in run:
                copy.clone(op, block)
        run.clear()

    def _can_merge(self, op: ForOp) -> bool:
        return not any(index in self._varying for index in op.indices)

    def _merge(self, op: ForOp, copies: Sequence[Cloner], block: Block) -> None:
        """One loop that carries the values of all copies."""
        arguments = op.body.block.args[1:]
        carried = [
            (position, number)
            for position, argument in enumerate(arguments)
            for number in range(len(copies) if argument in self._varying else 1)
        ]
        inits = [copies[number].value(op.inits[position]) for position, number in carried]
        new, inner = copies[0].open_loop(op, [value.type for value in inits], inits)
        inners = [copy.fork() for copy in copies]
        index = str(inner.indices.symbol(op.body.block.args[0]))
        for each in inners:
            each.moved[index] = inner.moved[index]
        for (position, number), argument in zip(carried, new.body.block.args[1:], strict=True):
            shared = arguments[position] not in self._varying
            for each in inners if shared else [inners[number]]:
                each.values[arguments[position]] = argument
        self.ops(list(op.body.block.ops), inners, new.body.block)
        last = op.body.block.last_op
        assert isinstance(last, YieldOp)
        yields = [inners[number].value(last.values[position]) for position, number in carried]
        new.body.block.add_op(YieldOp(yields))
        block.add_op(new)
        for (position, number), result in zip(carried, new.results, strict=True):
            shared = arguments[position] not in self._varying
            for copy in copies if shared else [copies[number]]:
                copy.values[op.results[position]] = result


def _can_precede(op: Operation, others: Sequence[Operation]) -> bool:
    """True if an op that uses no results of others gives the same result before them."""
    if op.has_trait(Pure):
        return True
    return isinstance(op, LoadOp) and not any(
        isinstance(inner, StoreOp) for other in others for inner in all_ops(other)
    )


def unroll(loop: ForOp) -> None:
    """Replace a loop with a constant trip count by interleaved copies of its body."""
    bounds = constants(loop.range.data)
    assert bounds is not None
    indices = Indices()
    limit_by_parents(loop, indices)
    symbol = str(indices.symbol(loop.body.block.args[0]))
    copies = [Cloner(indices, moved={symbol: Expr.const(number)}) for number in range(*bounds)]
    block = Block()
    Unroller(loop, indices).ops(list(loop.body.block.ops), copies, block)
    replace(loop, block)


def limit_by_parents(op: Operation, indices: Indices) -> None:
    """Record the ranges of the loops around an op, and the sizes of its kernel."""
    parents: list[ForOp] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp):
            parents.append(parent)
        elif isinstance(parent, FuncOp):
            indices.add_sizes(parent)
        parent = parent.parent_op()
    for loop in reversed(parents):
        indices.loop(loop)


def loops_around(op: Operation) -> Iterator[ForOp]:
    """From the inner to the outer one, up to what is no loop."""
    parent = op.parent_op()
    while isinstance(parent, ForOp):
        yield parent
        parent = parent.parent_op()


def replace(loop: ForOp, block: Block, results: Sequence[SSAValue] = ()) -> None:
    """Replace a loop by the ops of a block, and the loop's results by the given ones."""
    parent = loop.parent
    assert parent is not None
    for op in list(block.ops):
        op.detach()
        parent.insert_op_before(op, loop)
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()


def _is_unrollable(op: Operation) -> bool:
    return (
        isinstance(op, ForOp)
        and op.mode is not None
        and op.mode.data == LoopMode.UNROLL
        and not op.results
        and constants(op.range.data) is not None
    )


class UnrollTilesPass(FunctionPass):
    """
    Replace each loop of mode `unroll`, innermost first, by interleaved copies of its body.

    Iterations of such a loop are independent. Ops that do not depend on its index are not
    duplicated. Loops in the body are merged into one loop that carries the values of all copies:
    the accumulators of a tile stay in registers during one reduction. A loop whose bounds differ
    between copies is copied unchanged.
    """

    name = "unroll-tiles"
    optional = True

    def run(self, function: FuncOp, target: Target) -> None:
        # Inner loops come first in this order.
        for loop in reversed(all_ops(function)):
            if isinstance(loop, ForOp) and _is_unrollable(loop):
                unroll(loop)
