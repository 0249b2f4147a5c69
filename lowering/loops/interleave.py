"""`interleave`: two iterations at a time of loops whose ops wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from lowerdeck.dialects.buffer.kernel import ApplyOp, ForOp, FuncOp, LoadOp, StoreOp, YieldOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import lanes_of
from lowerdeck.dialects.dims import Atom, Expr
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents, replace
from lowerdeck.lowering.loops.varying import is_varying, varying_values

COPIES = 2
"""Iterations at a time: of more, the values do not fit in 16 registers."""

LONG_CHAIN = 10
"""Ops on vectors that wait for each other: of shorter chains the processor overlaps several."""
FEW_CHAINS = 2.5
"""Of ops in a body for each one of the longest chain: more chains fill each other's gaps."""
MOST_OPS = 100
"""Ops of a body that is copied: longer ones would make the code long."""


class Interleaver:
    """Takes the iterations of one loop by twos."""

    def __init__(self, loop: ForOp) -> None:
        self._loop = loop
        self._indices = Indices()
        limit_by_parents(loop, self._indices)
        self._index = self._indices.loop(loop)
        self._ops = [op for op in loop.body.block.ops if not isinstance(op, YieldOp)]
        (self._lower, upper, self._step) = self._indices.read(loop.range.data, loop.indices)
        self._trips = self._indices.extent(0, (upper - self._lower).ceildiv(self._step))

    def is_worthwhile(self) -> bool:
        """True for a chain of ops on vectors, in iterations that may be mixed."""
        if len(self._ops) > MOST_OPS or (self._trips.value or COPIES) < COPIES:
            return False
        if not all(map(_may_move, self._ops)):
            return False
        depth, count = self._longest_chain()
        return depth >= LONG_CHAIN and count <= FEW_CHAINS * depth and self._are_apart()

    def _longest_chain(self) -> tuple[int, int]:
        """
        The length of the longest chain of ops on vectors, and the number of all, without those that
        wait for the iteration before.
        """
        block = self._loop.body.block
        carried = varying_values(block, block.args[1:])
        depths: dict[SSAValue, int] = {}
        count = 0
        for op in self._ops:
            if isinstance(op, StoreOp) or is_varying(op, carried):
                continue
            is_computed = _is_computed(op)
            count += is_computed
            depth = max((depths.get(value, 0) for value in op.operands), default=0) + is_computed
            depths.update(dict.fromkeys(op.results, depth))
        return max(depths.values(), default=0), count

    def rewrite(self) -> None:
        """A loop over pairs, and one over what remains."""
        block, values = Block(), list(self._loop.inits)
        pairs = self._trips // COPIES
        if (done := pairs * COPIES) != 0:
            values = self._add(block, (Expr.const(0), pairs), COPIES, values)
        if done != self._trips:
            values = self._add(block, (done, self._trips), 1, values)
        replace(self._loop, block, values)

    def _are_apart(self) -> bool:
        """
        True if no iteration loads what another one stores, or what it has stored itself, and stores
        to a buffer keep their order.
        """
        loads: list[LoadOp] = []
        stored: set[SSAValue] = set()
        for op in self._ops:
            if isinstance(op, LoadOp):
                if op.volatile is not None or op.ref in stored:
                    return False
                loads.append(op)
            elif isinstance(op, StoreOp):
                if op.ref in stored:
                    return False
                stored.add(op.ref)
                if not all(self._are_same(load, op) for load in loads if load.ref is op.ref):
                    return False
        return True

    def _are_same(self, load: LoadOp, store: StoreOp) -> bool:
        """True for the same elements, others in each iteration: a result over an operand."""
        type_ = ref_type(load.ref)
        places = [type_.offset(self._indices.read(op.map.data, op.indices)) for op in (load, store)]
        lanes = [lanes_of(value.type) or 1 for value in (load.result, store.value)]
        is_plain = load.stride is load.axis is load.repeat is None
        if places[0] != places[1] or lanes[0] != lanes[1] or not is_plain:
            return False
        width = (self._coefficient(places[0]) or 0) * (self._step.value or 0)
        return abs(width) >= lanes[0]

    def _coefficient(self, place: Expr) -> int | None:
        """By how much a place moves with the index; None if not in a straight line."""
        (((atom,), _),) = self._index.terms
        found = [c for monomial, c in place.terms if _mentions(monomial, str(self._index))]
        alone = [c for monomial, c in place.terms if monomial == (atom,)]
        return alone[0] if found == alone and alone else None

    def _add(
        self,
        block: Block,
        bounds: tuple[Expr, Expr],
        count: int,
        values: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """A loop of so many iterations at a time, and what it carries out."""
        loop, indices = self._loop, self._indices
        body = Block(arg_types=[IndexType(), *(value.type for value in values)])
        number = indices.symbol(body.args[0])
        indices.limit(number, *bounds)
        copies = [
            Cloner(
                indices, moved={str(self._index): self._lower + (number * count + k) * self._step}
            )
            for k in range(count)
        ]
        self._fill(body, copies)
        (lower, upper), operands = indices.write(bounds)
        new = ForOp(
            (lower, upper, Expr.const(1)),
            operands,
            values,
            Region(body),
            parallel=bool(loop.parallel.value.data),
            label=None if loop.label is None else loop.label.data,
        )
        new.location = loop.location
        block.add_op(new)
        return list(new.results)

    def _fill(self, body: Block, copies: Sequence[Cloner]) -> None:
        """Ops by turns; then those that wait for what the iteration before yields, in its order."""
        block = self._loop.body.block
        varying = varying_values(block, block.args)
        carried = varying_values(block, block.args[1:])
        waiting: list[Operation] = []
        for op in self._ops:
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


def _may_move(op: Operation) -> bool:
    return not op.regions and (isinstance(op, LoadOp | StoreOp) or op.has_trait(Pure))


def _is_computed(op: Operation) -> bool:
    """True for arithmetic on vectors: other bits of the same, and another type, take no time."""
    is_moved = isinstance(op, LoadOp | ApplyOp | arith.ConstantOp | arith.BitcastOp)
    return not is_moved and any(lanes_of(operand.type) for operand in op.operands)


def _mentions(monomial: Sequence[Atom], name: str) -> bool:
    return name in Expr(((tuple(monomial), 1),)).symbols


@dataclass(frozen=True)
class InterleavePass(ModulePass):
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if not isinstance(function, FuncOp):
                continue
            for loop in list(function.walk()):
                if isinstance(loop, ForOp) and loop.mode is None:
                    interleaver = Interleaver(loop)
                    if interleaver.is_worthwhile():
                        interleaver.rewrite()
