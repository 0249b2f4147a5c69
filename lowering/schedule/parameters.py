"""The schedule of a kernel as data: what it says, and the parts that it cuts a loop into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, StringAttr
from xdsl.ir import Attribute

from lowerdeck.dialects.dims import Expr

SCHEDULE = "schedule"
"""The attribute of a kernel that says how its loops run."""

MIN_LANES = 4
"""A remainder of fewer elements than this is done one by one."""


@dataclass(frozen=True)
class Schedule:
    """
    How the labeled loops of a nest run.

    `lanes`: into how many lanes a loop is to be cut, innermost. `tiles`: how many iterations (of
    vectors, where a loop has lanes) lie in a tile, from the outer to the inner loop in the tile.
    `order`: the loops over tiles from the outermost inward; those not named follow as they were.
    `prefetch`: the number of the buffer that is asked for ahead of its use.
    """

    tiles: tuple[tuple[str, int], ...] = ()
    order: tuple[str, ...] = ()
    lanes: tuple[tuple[str, int], ...] = ()
    prefetch: int | None = None

    def attribute(self) -> DictionaryAttr:
        """As it stands on a kernel."""
        order = ArrayAttr([StringAttr(label) for label in self.order])
        entries: dict[str, Attribute] = {
            "tile": _counts(self.tiles),
            "order": order,
            "lanes": _counts(self.lanes),
        }
        if self.prefetch is not None:
            entries["prefetch"] = IntAttr(self.prefetch)
        return DictionaryAttr(entries)

    @staticmethod
    def of(attribute: Attribute | None) -> Schedule | None:
        """What stands on a kernel; None if there is none."""
        if not isinstance(attribute, DictionaryAttr):
            return None
        order = cast(ArrayAttr[StringAttr], attribute.data.get("order", ArrayAttr([])))
        return Schedule(
            _pairs(attribute.data.get("tile")),
            tuple(entry.data for entry in order),
            _pairs(attribute.data.get("lanes")),
            None if (position := attribute.data.get("prefetch")) is None else _count(position),
        )


def _counts(pairs: Sequence[tuple[str, int]]) -> DictionaryAttr:
    return DictionaryAttr({label: IntAttr(count) for label, count in pairs})


def _pairs(attribute: Attribute | None) -> tuple[tuple[str, int], ...]:
    if not isinstance(attribute, DictionaryAttr):
        return ()
    return tuple((label, _count(count)) for label, count in attribute.data.items())


def _count(attribute: Attribute) -> int:
    return cast(IntAttr, attribute).data


@dataclass(frozen=True)
class Part:
    """A range of a loop that is done in equal tiles: `count` vectors of `lanes` lanes each."""

    lower: Expr
    upper: Expr
    count: int
    lanes: int

    @property
    def step(self) -> int:
        """Elements of one tile."""
        return self.count * self.lanes


def parts_of(upper: Expr, count: int, lanes: int) -> list[Part]:
    """The range from 0 to `upper` in whole tiles, and what remains in smaller ones."""
    size = count * lanes
    number = upper.value
    if number is None:
        return _open_parts(upper, count, lanes)
    parts = [Part(Expr.const(0), Expr.const(number // size * size), count, lanes)]
    done, rest = number // size * size, number % size
    if rest >= lanes > 1 or (lanes == 1 and rest):
        step = rest // lanes * lanes
        parts.append(Part(Expr.const(done), Expr.const(done + step), rest // lanes, lanes))
        done, rest = done + step, rest % lanes
    while (lanes := lanes // 2) >= MIN_LANES:
        if rest >= lanes:
            parts.append(Part(Expr.const(done), Expr.const(done + lanes), 1, lanes))
            done, rest = done + lanes, rest - lanes
    if rest:
        parts.append(Part(Expr.const(done), upper, 1, 1))
    return [part for part in parts if part.lower != part.upper]


_FEW = 6
"""Tiles of at least so many are followed by smaller ones before single steps."""


def _open_parts(upper: Expr, count: int, lanes: int) -> list[Part]:
    """Of a size that is known only at run time: tiles, smaller tiles, single steps."""
    steps = [(count, lanes), (1, lanes), (1, 1)]
    if count >= _FEW:
        steps.insert(1, (count // 3, lanes))
    parts: list[Part] = []
    done = Expr.const(0)
    for number, width in dict.fromkeys(steps):
        end = done + (upper - done) // (number * width) * (number * width)
        parts.append(Part(done, end, number, width))
        done = end
    return parts
