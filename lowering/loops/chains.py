"""Loops whose bodies are chains of ops on vectors: how long, and what iterations share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import Pure

from lowerdeck.dialects.buffer.kernel import ApplyOp, ForOp, LoadOp, StoreOp, YieldOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import lanes_of
from lowerdeck.dialects.dims import Atom, Expr
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents
from lowerdeck.lowering.loops.varying import is_varying, varying_values

MOST_OPS = 100
"""Ops of a body that is copied: longer ones would make the code long."""

FEW_CHAINS = 2.5
"""Of ops in a body for each one of the longest chain: more chains fill each other's gaps."""


class ChainLoop:
    """
    A loop, the ops of its body, and its number of iterations. Most loops are no such chains by
    their ops alone; what indices say is read of the others.
    """

    def __init__(self, loop: ForOp) -> None:
        self.loop = loop
        self.ops = [op for op in loop.body.block.ops if not isinstance(op, YieldOp)]

    @cached_property
    def indices(self) -> Indices:
        """The indices of the loop and of those around it."""
        indices = Indices()
        limit_by_parents(self.loop, indices)
        indices.loop(self.loop)
        return indices

    @cached_property
    def _index(self) -> Expr:
        return self.indices.symbol(self.loop.body.block.args[0])

    @cached_property
    def _bounds(self) -> list[Expr]:
        """The first index, the last one, and the step."""
        return self.indices.read(self.loop.range.data, self.loop.indices)

    @cached_property
    def trips(self) -> Expr:
        """The number of iterations."""
        lower, upper, step = self._bounds
        return self.indices.extent(0, (upper - lower).ceildiv(step))

    def may_be_copied(self) -> bool:
        """True if iterations may be mixed, and their ops are not too many."""
        return len(self.ops) <= MOST_OPS and all(map(_may_move, self.ops)) and self._are_apart()

    def depths(self) -> tuple[dict[SSAValue, int], int]:
        """
        How many ops on vectors wait for each other up to each value, and the number of all, without
        those that wait for the iteration before.
        """
        block = self.loop.body.block
        carried = varying_values(block, block.args[1:])
        depths: dict[SSAValue, int] = {}
        count = 0
        for op in self.ops:
            if isinstance(op, StoreOp) or is_varying(op, carried):
                continue
            is_own = is_computed(op)
            count += is_own
            depth = max((depths.get(value, 0) for value in op.operands), default=0) + is_own
            depths.update(dict.fromkeys(op.results, depth))
        return depths, count

    def cloner(self, number: Expr) -> Cloner:
        """Copies ops for the iteration of this number."""
        return Cloner(
            self.indices, moved={str(self._index): self._bounds[0] + number * self._bounds[2]}
        )

    def open(
        self,
        block: Block,
        bounds: tuple[Expr, Expr],
        values: Sequence[SSAValue] = (),
        *,
        parallel: bool | None = None,
    ) -> tuple[ForOp, Expr]:
        """A loop with an empty body, added to `block` for this one, and its index."""
        loop = self.loop
        body = Block(arg_types=[IndexType(), *(value.type for value in values)])
        number = self.indices.symbol(body.args[0])
        self.indices.limit(number, *bounds)
        (lower, upper), operands = self.indices.write(bounds)
        new = ForOp(
            (lower, upper, Expr.const(1)),
            operands,
            values,
            Region(body),
            parallel=bool(loop.parallel.value.data) if parallel is None else parallel,
            label=None if loop.label is None else loop.label.data,
        )
        new.location = loop.location
        block.add_op(new)
        return new, number

    def _are_apart(self) -> bool:
        """
        True if no iteration loads what another one stores, or what it has stored itself, and stores
        to a buffer keep their order.
        """
        loads: list[LoadOp] = []
        stored: set[SSAValue] = set()
        for op in self.ops:
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
        places = [type_.offset(self.indices.read(op.map.data, op.indices)) for op in (load, store)]
        lanes = [lanes_of(value.type) or 1 for value in (load.result, store.value)]
        is_plain = load.stride is load.axis is load.repeat is None
        if places[0] != places[1] or lanes[0] != lanes[1] or not is_plain:
            return False
        width = (self._coefficient(places[0]) or 0) * (self._bounds[2].value or 0)
        return abs(width) >= lanes[0]

    def _coefficient(self, place: Expr) -> int | None:
        """By how much a place moves with the index; None if not in a straight line."""
        (((atom,), _),) = self._index.terms
        found = [c for monomial, c in place.terms if _mentions(monomial, str(self._index))]
        alone = [c for monomial, c in place.terms if monomial == (atom,)]
        return alone[0] if found == alone and alone else None


def _may_move(op: Operation) -> bool:
    return not op.regions and (isinstance(op, LoadOp | StoreOp) or op.has_trait(Pure))


def is_computed(op: Operation) -> bool:
    """True for arithmetic on vectors: other bits of the same, and another type, take no time."""
    is_moved = isinstance(op, LoadOp | ApplyOp | arith.ConstantOp | arith.BitcastOp)
    return not is_moved and any(lanes_of(operand.type) for operand in op.operands)


def _mentions(monomial: Sequence[Atom], name: str) -> bool:
    return name in Expr(((tuple(monomial), 1),)).symbols
