"""The offsets of buffers in one arena, so that buffers live at the same time do not overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr, maximum
from lowerdeck.lowering.loops.estimate import ASSUMED_SIZE

_TRIES = 40
"""The number of attempts to reorder buffers for a better plan."""


@dataclass(eq=False)
class Buffer:
    """One planned buffer: its size in bytes, rounded up, and its live range."""

    op: entry_ops.AllocOp
    size: Expr
    start: int
    end: int


def place(buffers: Sequence[Buffer]) -> Expr:
    """Assign an offset to every buffer; returns the size of the workspace in bytes."""
    if any(buffer.size.value is None for buffer in buffers):
        return _place_in_slots(buffers)
    conflicts = _conflicts(buffers)
    bound = largest_sum(buffers) or 0
    plans = [
        _best_plan(order(buffers), conflicts, bound)
        for order in (_by_size, _by_breadth, _by_duration)
    ]
    best = min(plans, key=_extent)
    for buffer in buffers:
        buffer.op.properties["offset"] = DimsAttr.of([best[buffer]])
    return Expr.const(_extent(best))


def largest_sum(
    buffers: Iterable[Buffer], size_of: Callable[[Buffer], Expr] = lambda buffer: buffer.size
) -> int | None:
    """
    The largest sum of the sizes of buffers live at one position, both ends included; None if a size
    is not a constant.
    """
    changes: defaultdict[int, int] = defaultdict(int)
    for buffer in buffers:
        if (size := size_of(buffer).value) is None:
            return None
        changes[buffer.start] += size
        changes[buffer.end + 1] -= size
    current = largest = 0
    for position in sorted(changes):
        current += changes[position]
        largest = max(largest, current)
    return largest


def _static_size(buffer: Buffer) -> int:
    return buffer.size.value or 0


def _extent(offsets: dict[Buffer, int]) -> int:
    return max((offset + _static_size(buffer) for buffer, offset in offsets.items()), default=0)


def _in_use_at_starts(buffers: Sequence[Buffer]) -> list[list[Buffer]]:
    """
    For each position where a live range begins, the buffers live there, in the order of their
    beginnings.

    All buffers that are ever live together are live where the last of them begins.
    """
    in_use: list[list[Buffer]] = []
    active: list[Buffer] = []
    for buffer in sorted(buffers, key=lambda b: b.start):
        active = [other for other in active if other.end >= buffer.start]
        active.append(buffer)
        in_use.append(list(active))
    return in_use


def _conflicts(buffers: Sequence[Buffer]) -> dict[Buffer, list[Buffer]]:
    """For each buffer the others that are live at the same time."""
    conflicts: dict[Buffer, list[Buffer]] = {buffer: [] for buffer in buffers}
    for *others, buffer in _in_use_at_starts(buffers):
        for other in others:
            conflicts[other].append(buffer)
            conflicts[buffer].append(other)
    return conflicts


def _by_size(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Largest first, then by beginning."""
    return sorted(buffers, key=lambda b: (-_static_size(b), b.start))


def _by_breadth(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Buffers live at the point of highest demand, largest first, then at the next highest, etc."""
    order: dict[Buffer, None] = {}
    widest = sorted(_in_use_at_starts(buffers), key=lambda group: -sum(map(_static_size, group)))
    for group in widest:
        order.update(dict.fromkeys(_by_size(group)))
    return list(order)


def _by_duration(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Longest live range first, then by size."""
    return sorted(buffers, key=lambda b: (b.start - b.end, -_static_size(b)))


def _best_plan(
    order: list[Buffer], conflicts: dict[Buffer, list[Buffer]], bound: int
) -> dict[Buffer, int]:
    """
    The best plan found from an order: the highest buffer is placed first in the next attempt, until
    none lies above `bound`.
    """
    best = plan = _first_fit(order, conflicts)
    for _ in range(_TRIES):
        if _extent(best) <= bound:
            break
        top = _extent(plan)
        high = [buffer for buffer in order if plan[buffer] + _static_size(buffer) == top]
        order = [*high, *(buffer for buffer in order if buffer not in high)]
        plan = _first_fit(order, conflicts)
        best = min(best, plan, key=_extent)
    return best


def _first_fit(order: Sequence[Buffer], conflicts: dict[Buffer, list[Buffer]]) -> dict[Buffer, int]:
    """First fit in this order: each buffer at the lowest offset without an overlap."""
    offsets: dict[Buffer, int] = {}
    for buffer in order:
        offset, size = 0, _static_size(buffer)
        taken = [
            (offsets[o], offsets[o] + _static_size(o)) for o in conflicts[buffer] if o in offsets
        ]
        for start, end in sorted(taken):
            if offset + size <= start:
                break
            offset = max(offset, end)
        offsets[buffer] = offset
    return offsets


@dataclass(eq=False)
class _Slot:
    """Memory that buffers use one after the other."""

    end: int
    nominal: int
    members: list[Buffer]


def _place_in_slots(buffers: Sequence[Buffer]) -> Expr:
    """
    For sizes that are expressions: buffers that are never live together share a slot as large as
    the largest of them, and slots are laid out one after the other.
    """
    slots: list[_Slot] = []
    for buffer in sorted(buffers, key=lambda b: b.start):
        nominal = buffer.size.evaluate(dict.fromkeys(buffer.size.symbols, ASSUMED_SIZE))
        free = [slot for slot in slots if slot.end < buffer.start]
        if not free:
            slots.append(_Slot(buffer.end, nominal, [buffer]))
            continue
        best = min(free, key=lambda slot: abs(slot.nominal - nominal))
        best.end, best.nominal = buffer.end, max(best.nominal, nominal)
        best.members.append(buffer)
    offset = Expr.const(0)
    for slot in slots:
        for buffer in slot.members:
            buffer.op.properties["offset"] = DimsAttr.of([offset])
        offset = offset + maximum(*(buffer.size for buffer in slot.members))
    return offset
