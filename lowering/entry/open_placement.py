"""
The offsets of buffers whose sizes are expressions: who lies on whom is decided for some sizes, and
holds for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.dialects.sizes import largest
from lowerdeck.lowering.entry.placement import (
    Buffer,
    Conflicts,
    Offsets,
    Sizes,
    best_plan,
    bound_of,
    conflicts_of,
    extent,
)

_TRIES = 8
"""Attempts to reorder buffers for a better plan, for each choice of sizes."""

_SYMBOLS = 3
"""Symbols whose sizes are tried one by one; those of more are all the same."""


@record
class _Stack:
    """Which buffers lie on which: the order of their offsets, and what is right below each."""

    order: Sequence[Buffer]
    below: Mapping[Buffer, Sequence[Buffer]]

    def offsets(self, sizes: Sizes) -> Offsets:
        """Each buffer as low as those below it allow."""
        found: Offsets = {}
        for buffer in self.order:
            ends = (found[other] + sizes[other] for other in self.below[buffer])
            found[buffer] = max(ends, default=0)
        return found


def place_open(buffers: Sequence[Buffer]) -> Expr:
    """
    Assign an offset to every buffer; returns the size of the workspace in bytes.

    A plan is made for each of some choices of sizes. Of two buffers that are live at the same time,
    one lies on the other in it, and does so for any other sizes: an offset is the largest end of
    what lies below. The plan is taken that is the best where it is worst.
    """
    conflicts = conflicts_of(buffers)
    choices = [
        {buffer: max(buffer.size.evaluate(point), 0) for buffer in buffers}
        for point in _points(sorted({name for b in buffers for name in b.size.symbols}))
    ]
    bounds = [bound_of(sizes) for sizes in choices]
    stacks = [
        _stack(best_plan(sizes, conflicts, bound, _TRIES), sizes, conflicts)
        for sizes, bound in zip(choices, bounds, strict=True)
    ]
    tests = list(zip(choices, bounds, strict=True))
    best = min(
        stacks,
        key=lambda stack: max(
            extent(stack.offsets(sizes), sizes) / max(bound, 1) for sizes, bound in tests
        ),
    )
    return _assign(best)


def _points(symbols: Sequence[str]) -> list[dict[str, int]]:
    """Choices of sizes: all alike, one that is small, one that is large."""
    points = [dict.fromkeys(symbols, size) for size in (64, 512)]
    if 1 < len(symbols) <= _SYMBOLS:
        for name in symbols:
            points.append({**dict.fromkeys(symbols, 128), name: 16})
            points.append({**dict.fromkeys(symbols, 64), name: 512})
    return points


def _stack(offsets: Offsets, sizes: Sizes, conflicts: Conflicts) -> _Stack:
    """What a plan says of the order, without what follows from the rest."""
    order = sorted(offsets, key=lambda b: (offsets[b], offsets[b] + sizes[b]))
    place = {buffer: number for number, buffer in enumerate(order)}
    above: dict[Buffer, int] = {}
    """For each buffer all that lie below it, as bits."""
    below: dict[Buffer, list[Buffer]] = {}
    for buffer in order:
        others = [other for other in conflicts[buffer] if place[other] < place[buffer]]
        found, kept = 0, list[Buffer]()
        for other in sorted(others, key=place.__getitem__, reverse=True):
            if not found >> place[other] & 1:
                kept.append(other)
                found |= above[other] | 1 << place[other]
        above[buffer], below[buffer] = found, kept
    return _Stack(order, below)


def _assign(stack: _Stack) -> Expr:
    ends: dict[Buffer, Expr] = {}
    for buffer in stack.order:
        offset = largest(Expr.const(0), *(ends[other] for other in stack.below[buffer]))
        buffer.op.properties["offset"] = DimsAttr.of([offset])
        ends[buffer] = offset + buffer.size
    covered = {other for others in stack.below.values() for other in others}
    return largest(Expr.const(0), *(end for buffer, end in ends.items() if buffer not in covered))
