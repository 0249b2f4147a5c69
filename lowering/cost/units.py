"""
What keeps a core busy: instructions, arithmetic, loads and stores, and values that wait.

Of a loop, the busiest unit counts, or the longest chain from one iteration to the next. A processor
looks some instructions ahead: loops so short that it sees their ends are part of what is around
them, and chains within an iteration matter as far as it does not see the next ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from math import ceil, log2

from xdsl.dialects import arith, math, scf, vector
from xdsl.dialects.builtin import AnyFloat, FixedBitwidthType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.tiles import DotTilesOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import (
    AnyOp,
    CompareOp,
    ConvertOp,
    DotHalvesOp,
    DotPairsOp,
    DotQuadsOp,
    DotSmallQuadsOp,
    FromLanesOp,
    LookUpOp,
    MaxfOp,
    MinfOp,
    PrefetchOp,
    ReduceOp,
    TransposeOp,
    lanes_of,
    scalar_of,
)
from lowerdeck.lowering.loops.estimate import (
    Values,
    estimated_steps,
    estimated_trips,
    middle_values,
)
from lowerdeck.lowering.targets.base import F32_BYTES, Target

_FREE = (
    arith.BitcastOp,
    arith.ConstantOp,
    arith.IndexCastOp,
    kernel.ApplyOp,
    kernel.ReturnOp,
    kernel.ScratchOp,
    kernel.YieldOp,
    scf.YieldOp,
    vector.BroadcastOp,
)
"""Numbers, addresses, names, and splats, which are loads or stay in a register."""
_MULTIPLIES = (
    *(math.FmaOp, arith.MulfOp, arith.MuliOp),
    *(DotPairsOp, DotQuadsOp, DotSmallQuadsOp, DotHalvesOp),
    *(MaxfOp, MinfOp, CompareOp, arith.MaximumfOp, arith.MinimumfOp, arith.CmpfOp),
)
"""On the units that multiply, which compare, too."""
_DIVISIONS = (
    *(arith.DivfOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp),
    *(math.SqrtOp, kernel.RemfOp),
)
_FUNCTIONS = tuple(
    cls
    for cls in math.Math.operations
    if cls
    not in (math.AbsFOp, math.CeilOp, math.FloorOp, math.FmaOp, math.RoundEvenOp, math.SqrtOp)
)
_CONVERSIONS = (
    ConvertOp,
    arith.ExtFOp,
    arith.TruncFOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
)
"""Elements that become wider or narrower change places."""


@dataclass
class Busy:
    """How much of each unit is used: whole vectors, or cycles of units of their own."""

    instructions: float = 0.0
    operations: float = 0.0
    multiplies: float = 0.0
    shuffles: float = 0.0
    loads: float = 0.0
    splits: float = 0.0
    """Loads of vectors that lie in two lines."""
    stores: float = 0.0
    cycles: float = 0.0

    def add(self, other: Busy, times: float = 1) -> None:
        """What is done so many times."""
        for each in fields(Busy):
            own, more = getattr(self, each.name), getattr(other, each.name)
            setattr(self, each.name, own + more * times)

    def most(self, target: Target) -> float:
        """The cycles of the busiest unit."""
        m = target.machine
        loads = self.loads / m.loads_per_cycle
        return max(
            self.instructions / m.instructions_per_cycle,
            self.operations / m.operations_per_cycle,
            self.multiplies / m.multiply_adds_per_cycle,
            self.shuffles / m.shuffles_per_cycle,
            loads + self.splits * max(m.split_load_cycles - 1 / m.loads_per_cycle, 0),
            self.stores / m.stores_per_cycle,
            self.cycles,
        )


@dataclass
class Work:
    """What a block takes."""

    busy: Busy = field(default_factory=Busy)
    """What overlaps with all around."""
    cycles: float = 0.0
    """Of long loops, of which one follows the other."""
    starts: float = 0.0
    """How often such loops begin."""
    path: float = 0.0
    """Cycles from the first value to the last that waits for it."""
    carried: float = 0.0
    """The longest chain from what one iteration gives to the next."""


def busy_cycles(function: kernel.FuncOp, target: Target) -> Work:
    """One run of a finished kernel: `cycles` are those of all units, or of what waits."""
    counter = _Counter(target, middle_values(function.body.block))
    work = counter.count(function.body.block)
    work.cycles += max(work.busy.most(target), work.path)
    return work


@dataclass
class _Counter:
    """Walks blocks from the outside inward."""

    target: Target
    values: Values
    """Of the variables of loops, as they are assumed."""

    def count(self, block: Block, carried: Sequence[SSAValue] = ()) -> Work:
        """One run of a block; `carried` are values of the iteration before."""
        work = Work()
        ready = dict.fromkeys(carried, 0.0)
        waits = dict.fromkeys(carried, 0.0)
        """The chains from carried values."""
        for op in block.ops:
            inner = self._inner(op)
            if inner is None:
                latency, busy = self._op(op)
                work.busy.add(busy)
            else:
                latency = inner.path
                work.busy.add(inner.busy)
                work.cycles += inner.cycles
                work.starts += inner.starts
            used = _used_values(op)
            at = max((ready.get(value, 0.0) for value in used), default=0.0) + latency
            behind = [waits[value] for value in used if value in waits]
            for result in op.results:
                ready[result] = at
                if behind:
                    waits[result] = max(behind) + latency
            work.path = max(work.path, at)
        last = block.last_op
        if last is not None and carried:
            work.carried = max((waits.get(value, 0.0) for value in last.operands), default=0.0)
        return work

    def _inner(self, op: Operation) -> Work | None:
        """What the regions of an op take; None if it has none."""
        if isinstance(op, kernel.ForOp):
            return self._loop(op)
        if not op.regions:
            return None
        blocks = [self.count(block) for region in op.regions for block in region.blocks]
        blocks.sort(key=lambda own: own.cycles + own.busy.most(self.target))
        is_rare = isinstance(op.operands[0].owner, AnyOp)
        if len(blocks) > 1:
            return blocks[0 if is_rare else -1]
        # A branch without an alternative is rarely taken; what one lane may need hardly ever is.
        found, most = Work(Busy(instructions=1)), blocks[0]
        if is_rare:
            return found
        rare = 1 / self.target.costs.rare_branch
        found.busy.add(most.busy, rare)
        found.cycles, found.starts = most.cycles * rare, most.starts * rare
        return found

    def _loop(self, loop: kernel.ForOp) -> Work:
        body = self.count(loop.body.block, loop.body.block.args[1:])
        trips = estimated_trips(loop, self.values)
        if trips > 1:
            body.busy.instructions += 2
        ahead = self.target.machine.instructions_ahead
        number = body.busy.instructions
        if not body.cycles and number * trips <= ahead:
            found = Work(path=body.carried * max(trips - 1, 0) + body.path)
            found.busy.add(body.busy, trips)
            return found
        seen = min(number / ahead, 1.0)
        each = max(body.busy.most(self.target), body.carried, body.path * seen) + body.cycles
        return Work(cycles=each * trips, starts=body.starts * trips + 1)

    def _op(self, op: Operation) -> tuple[float, Busy]:
        """How long its result is waited for, and what it uses."""
        machine, latency = self.target.machine, self.target.machine.latency_cycles
        if isinstance(op, _FREE):
            return 0.0, Busy()
        if isinstance(op, kernel.LoadOp):
            return latency, self._load(op)
        if isinstance(op, kernel.StoreOp):
            size = self._size(op.value.type)
            return 0.0, Busy(instructions=ceil(size), stores=size)
        if isinstance(op, DotTilesOp):
            own = estimated_steps(op, self.target, self.values) + machine.tile_store_cycles
            return 0.0, Busy(instructions=1, cycles=own)
        if isinstance(op, TransposeOp):
            return self._transpose(op)
        if isinstance(op, PrefetchOp):
            return 0.0, Busy(instructions=1, loads=self._least)
        if isinstance(op, LookUpOp):
            # Both halves of a table, a mask and a choice, in whole registers.
            return 2 * latency, Busy(instructions=2 + 2, operations=2.0 + 2.0, shuffles=2.0)
        is_vector = any(lanes_of(value.type) for value in (*op.operands, *op.results))
        size = max(
            (self._size(value.type) for value in (*op.operands, *op.results)), default=self._least
        )
        if isinstance(op, ReduceOp):
            steps = log2(max(lanes_of(op.operands[0].type), 2))
            used = Busy(instructions=2 * steps, operations=2 * steps * size, shuffles=steps * size)
            return steps * 2 * latency, used
        if isinstance(op, FromLanesOp):
            count = len(op.operands)
            return latency, Busy(instructions=count, operations=count * size, shuffles=count * size)
        if isinstance(op, _DIVISIONS):
            return latency + self.target.machine.division_cycles, self._division(op, size)
        if isinstance(op, _FUNCTIONS):
            steps = self.target.costs.function_steps
            return latency * steps, Busy(instructions=steps, operations=steps * size)
        used = Busy(instructions=ceil(size))
        is_float = any(isinstance(scalar_of(value.type), AnyFloat) for value in op.operands)
        if is_vector or is_float:
            used.operations = size
        if isinstance(op, _MULTIPLIES):
            used.multiplies = size
        if is_vector and isinstance(op, _CONVERSIONS):
            used.shuffles = size
        if isinstance(op, MaxfOp | MinfOp) and op.keeps_nan:
            used.instructions += 2 * ceil(size)  # a comparison and a choice
            used.multiplies += size
            used.operations += 2 * size
        if isinstance(op, CompareOp):
            # It gives a mask, of which a vector is made.
            used.operations += size
        return latency if is_float and not isinstance(op, arith.SelectOp) else 1.0, used

    @property
    def _least(self) -> float:
        """The share of a vector that takes as long as one element."""
        return min(self.target.machine.unit_bytes / self.target.vector_bytes, 1.0)

    def _size(self, type_: Attribute) -> float:
        """Whole vectors of a value."""
        size = max(lanes_of(type_), 1) * _bytes(scalar_of(type_))
        return max(size / self.target.vector_bytes, self._least)

    def _load(self, op: kernel.LoadOp) -> Busy:
        size = self._size(op.result.type)
        lanes = lanes_of(op.result.type)
        if lanes and op.axis is not None:
            return Busy(instructions=2 * lanes, loads=lanes * self._least, shuffles=lanes * size)
        if op.stride is not None:
            # Whole vectors, which are merged.
            count = op.stride.data
            used = Busy(2 * count - 1, (count - 1) * size, 0.0, (count - 1) * size, count * size)
        else:
            used = Busy(instructions=ceil(size), loads=size)
        if lanes:
            used.splits = self._share_of_splits(op) * used.loads
        return used

    def _share_of_splits(self, op: kernel.LoadOp) -> float:
        """Of the loads of a vector, how many lie in two lines."""
        type_, line = ref_type(op.ref), self.target.machine.line_bytes
        size = lanes_of(op.result.type) * type_.item_size
        for index, stride in zip(op.map.data, type_.strides.data, strict=True):
            place = index * stride * type_.item_size
            if (place % min(size, line)).value != 0:
                return max(size - type_.item_size, 0) / line
        return 0.0

    def _transpose(self, op: TransposeOp) -> tuple[float, Busy]:
        size = op.lanes * ref_type(op.ref).item_size / self.target.vector_bytes
        size = max(size, self._least)
        # Each of so many rounds brings vectors that lie twice as far apart together.
        rounds = log2(op.rows)
        number = op.rows * rounds
        latency = self.target.machine.latency_cycles * rounds
        return latency, Busy(number, number * size, 0.0, number * size)

    def _division(self, op: Operation, size: float) -> Busy:
        machine, type_ = self.target.machine, op.results[0].type
        if not isinstance(scalar_of(type_), AnyFloat):
            # Integers are divided one by one, each behind the last, and moved out and back.
            count = max(lanes_of(type_), 1)
            each = machine.latency_cycles + machine.division_cycles
            return Busy(instructions=2 * count + count, cycles=each * count)
        # Twice as many digits take twice as long.
        cycles = machine.division_cycles * size * max(_bytes(scalar_of(type_)) / F32_BYTES, 1)
        return Busy(instructions=1, operations=size, cycles=cycles)


def _used_values(op: Operation) -> Sequence[SSAValue]:
    """Those of an op and of all in its regions."""
    if not op.regions:
        return op.operands
    return [value for inner in op.walk() for value in inner.operands]


def _bytes(type_: Attribute) -> int:
    """Of an element; 1 for what has none."""
    return type_.size if isinstance(type_, FixedBitwidthType) else 1
