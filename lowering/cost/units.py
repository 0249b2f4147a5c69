"""What keeps the units of a core busy: arithmetic, loads and stores, and sums that wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log2, prod

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import FixedBitwidthType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.tiles import DotTilesOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import TransposeOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.lowering.cost.nests import NO_SCHEDULE, Chain, has_vectors, is_vectorizable
from lowerdeck.lowering.loops.estimate import (
    Values,
    estimated_steps,
    estimated_trips,
    middle_values,
)
from lowerdeck.lowering.loops.parameters import Part
from lowerdeck.lowering.targets.base import Target

_FREE = (
    arith.ConstantOp,
    arith.IndexCastOp,
    kernel.ApplyOp,
    kernel.YieldOp,
    kernel.ReturnOp,
    scf.YieldOp,
)
_SLOW = (arith.DivfOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, math.SqrtOp)
_FUNCTIONS = tuple(
    cls for cls in math.Math.operations if cls not in (math.AbsFOp, math.FmaOp, math.SqrtOp)
)


@dataclass
class Work:
    """Cycles, and how often loops begin."""

    cycles: float = 0.0
    starts: float = 0.0

    def add(self, other: Work, times: float) -> None:
        """What is done so many times."""
        self.cycles += other.cycles * times
        self.starts += other.starts * times


@dataclass
class _Busy:
    """Of the ops of one block, those in loops of it left out."""

    arithmetic: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    divisions: float = 0.0
    others: float = 0.0
    """Cycles of units of their own."""

    def cycles(self, target: Target) -> float:
        machine = target.machine
        arithmetic = self.arithmetic / machine.multiply_adds_per_cycle
        return max(
            arithmetic + self.divisions * machine.division_cycles,
            self.loads / machine.loads_per_cycle,
            self.stores / machine.stores_per_cycle,
            self.others,
        )


def busy_cycles(function: kernel.FuncOp, target: Target) -> Work:
    """The cycles of all units, and the loops that begin, of one run of a kernel."""
    schedule = NO_SCHEDULE if function.schedule is None else function.schedule.data
    values = middle_values(function.body.block)
    counter = _Counter(target, not has_vectors(function, schedule), values)
    total = Work()
    counter.count(function.body.block, {}, schedule, total)
    return total


Tile = Mapping[str, Part]


@dataclass
class _Counter:
    """Walks blocks from the outside inward."""

    target: Target
    is_free: bool
    """True if no schedule says which loops become vectors, so that innermost ones do."""
    values: Values
    """Of the variables of loops, as they are assumed."""
    side_by_side: int = 1
    """Vectors whose sums do not wait for each other."""
    labels: dict[SSAValue, frozenset[str]] = field(default_factory=dict[SSAValue, frozenset[str]])
    """The loops of tiles that a value depends on."""

    def count(self, block: Block, tile: Tile, schedule: Schedule, total: Work) -> None:
        """Add what one run of a block takes, for all the instances of its ops in a tile."""
        busy = _Busy()
        for op in block.ops:
            if isinstance(op, kernel.ForOp):
                total.add(self._loop(op, tile, schedule), 1)
            else:
                self._op(op, tile, schedule, busy, total)
        total.cycles += busy.cycles(self.target)

    def _loop(self, loop: kernel.ForOp, tile: Tile, schedule: Schedule) -> Work:
        if (chain := Chain.of(loop, schedule, self.values)) is not None:
            return self._chain(chain, tile)
        trips, work = float(estimated_trips(loop, self.values)), Work()
        for argument, init in zip(loop.body.block.args[1:], loop.inits, strict=True):
            self.labels[argument] = self._of(init)
        chains, is_free = self.side_by_side, self.is_free
        if loop.mode is not None and loop.mode.data == "lanes":
            trips = -(-trips // self.target.lanes)
        elif self.is_free and is_vectorizable(loop):
            trips = -(-trips // self.target.lanes)
            chains = self._chains(loop) if loop.inits else self.target.limits.sum_vectors
            # Only one of loops in one another becomes vectors; sums in it are of several of them.
            self.is_free, self.side_by_side = False, chains
        self.count(loop.body.block, tile, schedule, work)
        if is_free:
            self.is_free, self.side_by_side = True, 1
        if loop.inits:
            # The sums of one step wait for those of the step before.
            work.cycles = max(work.cycles, self.target.machine.latency_cycles / chains)
        last = loop.body.block.last_op
        assert last is not None
        for result, value in zip(loop.results, last.operands, strict=False):
            self.labels[result] = self._of(value)
        return Work(work.cycles * trips, work.starts * trips + bool(loop.inits))

    def _chains(self, loop: kernel.ForOp) -> int:
        """Into how many independent sums its sums are split."""
        ops = len(list(loop.body.block.ops))
        found = (chains for most, chains in self.target.limits.chains_by_ops if ops <= most)
        return next(found, 1)

    def _chain(self, chain: Chain, around: Tile) -> Work:
        total = Work()
        for label, loop in chain.loops.items():
            self.labels[loop.body.block.args[0]] = frozenset({label})
        for number, tile in chain.variants():
            work = Work()
            self.count(chain.body.body.block, {**around, **tile}, chain.schedule, work)
            total.add(work, number)
        total.starts += chain.starts()
        return total

    def _of(self, value: SSAValue) -> frozenset[str]:
        return self.labels.get(value, frozenset())

    def _op(self, op: Operation, tile: Tile, schedule: Schedule, busy: _Busy, total: Work) -> None:
        labels = frozenset[str]().union(*map(self._of, op.operands))
        for result in op.results:
            self.labels[result] = labels
        for region in op.regions:
            for block in region.blocks:
                self.count(block, tile, schedule, total)
        if isinstance(op, _FREE) or op.regions:
            return
        if isinstance(op, DotTilesOp):
            own = estimated_steps(op, self.target, self.values)
            own += self.target.machine.tile_store_cycles
            parts = [part for label in labels if (part := tile.get(label)) is not None]
            busy.others += own * prod(part.count * part.lanes for part in parts)
            return
        if isinstance(op, TransposeOp):
            # Shuffles of two vectors, of which one port does one a cycle.
            busy.others += op.rows * log2(op.lanes)
            return
        number = self._instances(labels, tile, _types_of(op))
        if isinstance(op, kernel.LoadOp):
            busy.loads += number
        elif isinstance(op, kernel.StoreOp):
            busy.stores += number
        elif isinstance(op, _SLOW):
            busy.divisions += number
        elif isinstance(op, _FUNCTIONS):
            busy.arithmetic += number * self.target.costs.function_steps
        else:
            busy.arithmetic += number

    def _instances(self, labels: frozenset[str], tile: Tile, types: Iterable[Attribute]) -> float:
        """How many instructions an op is, for all of a tile."""
        number = 1.0
        for label in labels:
            if (part := tile.get(label)) is not None:
                number *= part.count
                if part.lanes > 1:
                    width = max((_size(type_) for type_ in types), default=1)
                    number *= max(part.lanes * width / self.target.vector_bytes, 1)
        return number


def _types_of(op: Operation) -> list[Attribute]:
    if isinstance(op, (kernel.LoadOp, kernel.StoreOp)):
        return [ref_type(op.ref).element]
    return [value.type for value in (*op.operands, *op.results)]


def _size(type_: Attribute) -> int:
    """Bytes of an element; 1 for what has none."""
    return type_.size if isinstance(type_, FixedBitwidthType) else 1
