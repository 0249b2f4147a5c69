"""The offsets of buffers in one arena, so that buffers live at the same time do not overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr

_TRIES = 40
"""The number of attempts to reorder buffers for a better plan."""


@dataclass(eq=False)
class Buffer:
    """One planned buffer: its size in bytes, rounded up, and its live range."""

    op: entry_ops.AllocOp
    size: Expr
    start: int
    end: int


Sizes: TypeAlias = Mapping[Buffer, int]
Offsets: TypeAlias = dict[Buffer, int]
Conflicts: TypeAlias = Mapping[Buffer, Sequence[Buffer]]


def place(buffers: Sequence[Buffer]) -> Expr:
    """Assign an offset to every buffer of known size; returns the bytes of the workspace."""
    sizes = {buffer: buffer.size.value or 0 for buffer in buffers}
    plan = best_plan(sizes, conflicts_of(buffers), bound_of(sizes))
    for buffer in buffers:
        buffer.op.properties["offset"] = DimsAttr.of([plan[buffer]])
    return Expr.const(extent(plan, sizes))


def best_plan(sizes: Sizes, conflicts: Conflicts, bound: int, tries: int = _TRIES) -> Offsets:
    """The offsets of the plan with the smallest extent, which is never below `bound`."""
    plans = [
        _best_of(order(sizes), conflicts, sizes, bound, tries)
        for order in (_by_size, _by_breadth, _by_duration)
    ]
    return min(plans, key=lambda plan: extent(plan, sizes))


def largest_sum(
    buffers: Iterable[Buffer], size_of: Callable[[Buffer], Expr] = lambda buffer: buffer.size
) -> int | None:
    """
    The largest sum of the sizes of buffers live at one position, both ends included; None if a size
    is not a constant.
    """
    sizes: dict[Buffer, int] = {}
    for buffer in buffers:
        if (size := size_of(buffer).value) is None:
            return None
        sizes[buffer] = size
    return bound_of(sizes)


def bound_of(sizes: Sizes) -> int:
    """The largest sum of the sizes of buffers live at one position: no plan needs less."""
    changes: defaultdict[int, int] = defaultdict(int)
    for buffer, size in sizes.items():
        changes[buffer.start] += size
        changes[buffer.end + 1] -= size
    current = largest = 0
    for position in sorted(changes):
        current += changes[position]
        largest = max(largest, current)
    return largest


def extent(offsets: Mapping[Buffer, int], sizes: Sizes) -> int:
    """Where the last buffer ends."""
    return max((offset + sizes[buffer] for buffer, offset in offsets.items()), default=0)


def _in_use_at_starts(buffers: Iterable[Buffer]) -> list[list[Buffer]]:
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


def conflicts_of(buffers: Sequence[Buffer]) -> dict[Buffer, list[Buffer]]:
    """For each buffer the others that are live at the same time."""
    conflicts: dict[Buffer, list[Buffer]] = {buffer: [] for buffer in buffers}
    for *others, buffer in _in_use_at_starts(buffers):
        for other in others:
            conflicts[other].append(buffer)
            conflicts[buffer].append(other)
    return conflicts


def _by_size(sizes: Sizes, among: Iterable[Buffer] | None = None) -> list[Buffer]:
    """Largest first, then by beginning."""
    return sorted(sizes if among is None else among, key=lambda b: (-sizes[b], b.start))


def _by_breadth(sizes: Sizes) -> list[Buffer]:
    """Buffers live at the point of highest demand, largest first, then at the next highest, etc."""
    order: dict[Buffer, None] = {}
    groups = _in_use_at_starts(sizes)
    for group in sorted(groups, key=lambda group: -sum(sizes[buffer] for buffer in group)):
        order.update(dict.fromkeys(_by_size(sizes, group)))
    return list(order)


def _by_duration(sizes: Sizes) -> list[Buffer]:
    """Longest live range first, then by size."""
    return sorted(sizes, key=lambda b: (b.start - b.end, -sizes[b]))


def _best_of(
    order: list[Buffer], conflicts: Conflicts, sizes: Sizes, bound: int, tries: int
) -> Offsets:
    """
    The best plan found from an order: the highest buffer is placed first in the next attempt, until
    none lies above `bound`.
    """
    best = plan = _first_fit(order, conflicts, sizes)
    for _ in range(tries):
        if extent(best, sizes) <= bound:
            break
        top = extent(plan, sizes)
        high = [buffer for buffer in order if plan[buffer] + sizes[buffer] == top]
        order = [*high, *(buffer for buffer in order if buffer not in high)]
        plan = _first_fit(order, conflicts, sizes)
        best = min(best, plan, key=lambda each: extent(each, sizes))
    return best


def _first_fit(order: Sequence[Buffer], conflicts: Conflicts, sizes: Sizes) -> Offsets:
    """First fit in this order: each buffer at the lowest offset without an overlap."""
    offsets: Offsets = {}
    for buffer in order:
        offset, size = 0, sizes[buffer]
        taken = [(offsets[o], offsets[o] + sizes[o]) for o in conflicts[buffer] if o in offsets]
        for start, end in sorted(taken):
            if offset + size <= start:
                break
            offset = max(offset, end)
        offsets[buffer] = offset
    return offsets
