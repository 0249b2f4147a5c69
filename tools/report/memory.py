"""The plan of memory: which buffer lies where in the arena, from when to when."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import EntryOp, find_entry
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.lowering.entry.plan_memory import Lifetimes
from lowerdeck.lowering.entry.stack import stack_bytes
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.machinery.provenance import source_names
from lowerdeck.tools.report.layers import Count, count_of, plain, sum_of


@dataclass(frozen=True)
class Placed:
    """A buffer in the arena; live from step `start` to step `end`, both included."""

    offset: int
    size: int
    start: int
    end: int
    nodes: list[str]


@dataclass(frozen=True)
class Step:
    """A call of a kernel, or a copy."""

    kernel: str
    nodes: list[str]
    live: int
    """Bytes of the buffers that are live meanwhile."""
    weights: int
    """Bytes of the constants that it reads, packed."""


@dataclass(frozen=True)
class MemoryPlan:
    """All that a compiled model needs while it runs, in bytes."""

    target: str
    arena: Count
    weights: int
    """As they lie in the weights file, with its header."""
    inputs: Count
    outputs: Count
    state: Count
    """What it remembers, of each instance; neither an input nor an output."""
    uses_allocator: bool
    """True if some buffers, of sizes that depend on data, are not in the arena."""
    buffers: list[Placed] | None
    """None, as for the steps, where sizes in the arena are open."""
    steps: list[Step] | None
    stack: int = 0
    """What a run takes of it, at most."""

    @property
    def is_exact(self) -> bool:
        """False if a size is open, because it depends on data or was not given."""
        return isinstance(self.total, int)

    @property
    def peak(self) -> int | None:
        """The largest sum of the bytes of live buffers."""
        return None if self.steps is None else max((step.live for step in self.steps), default=0)

    @property
    def total(self) -> Count:
        """All that has to be in memory at once; code comes on top, and the stack."""
        return sum_of([self.arena, self.weights, self.inputs, self.outputs, self.state])

    def data(self) -> dict[str, Any]:
        """As JSON: formulas are texts."""
        counts = {
            name: plain(getattr(self, name)) for name in ("arena", "inputs", "outputs", "state")
        }
        parts = {
            name: None if each is None else [asdict(one) for one in each]
            for name, each in (("buffers", self.buffers), ("steps", self.steps))
        }
        return {**vars(self), **counts, **parts, "peak": self.peak, "total": plain(self.total)}


def memory_plan(module: ModuleOp, target: str) -> MemoryPlan | None:
    """The plan of a module after `plan-memory`; None if it has no entry function."""
    if (entry := find_entry(module)) is None or entry.workspace is None:
        return None
    lifetimes = Lifetimes(entry)
    known = {buffer.op for buffer in lifetimes.buffers.values()}
    arena = entry.workspace.data[0]
    states = [after for _, after in entry.states_args]
    held = {each for pair in entry.states_args for each in pair}
    inputs, outputs = (
        sum_of([ref_type(each).bytes for each in arguments if each not in held])
        for arguments in (entry.input_args, entry.output_args)
    )
    buffers, steps = _placed(lifetimes) or (None, None)
    return MemoryPlan(
        target=target,
        arena=count_of(arena),
        weights=0 if entry.weights is None else entry.weights.data,
        inputs=inputs,
        outputs=outputs,
        state=sum_of([ref_type(after).bytes for after in states]),
        uses_allocator=any(
            isinstance(op, entry_ops.AllocOp) and op not in known for op in _ops_of(entry)
        ),
        buffers=buffers,
        steps=steps,
    )


def _placed(lifetimes: Lifetimes) -> tuple[list[Placed], list[Step]] | None:
    """What lies where, step by step; None if that depends on sizes that are open."""
    positions = {op: at for op, at in lifetimes.positions.items() if _is_step(op)}
    order = sorted(positions.values())
    buffers: list[Placed] = []
    changes = [0] * (len(order) + 1)
    for buffer in lifetimes.buffers.values():
        offset = buffer.op.offset
        size = buffer.size.value
        at = 0 if offset is None else offset.data[0].value
        if size is None or at is None:
            return None
        # What is made before a step, or freed after it, is live during the step.
        start = min(bisect_left(order, buffer.start), max(len(order) - 1, 0))
        end = max(bisect_right(order, buffer.end) - 1, start)
        buffers.append(Placed(at, size, start, end, source_names(buffer.op)))
        changes[start] += size
        changes[min(end + 1, len(order))] -= size
    steps = [
        Step(_title(op), source_names(op), live, _weights_of(op))
        for op, live in zip(
            sorted(positions, key=positions.__getitem__), accumulate(changes), strict=False
        )
    ]
    return buffers, steps


def with_stack(plan: MemoryPlan, module: ModuleOp) -> MemoryPlan:
    """The plan with the stack of a module's functions, which are all there after `split-entry`."""
    entry = find_entry(module)
    assert entry is not None
    functions = kernel.functions_of(module)
    return replace(plan, stack=stack_bytes(entry, functions, target_named(plan.target)))


def _ops_of(entry: EntryOp) -> list[Operation]:
    return [op for op in entry.walk() if op is not entry]


def _is_step(op: Operation) -> bool:
    return isinstance(op, entry_ops.CallOp | entry_ops.CopyOp)


def _title(op: Operation) -> str:
    return op.callee.string_value() if isinstance(op, entry_ops.CallOp) else "copy"


def _weights_of(op: Operation) -> int:
    owners = dict.fromkeys(value.owner for value in op.operands)
    return sum(one.value.data.size for one in owners if isinstance(one, entry_ops.WeightOp))
