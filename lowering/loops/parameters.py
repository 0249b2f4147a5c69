"""The ranges into which a schedule splits a loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.lowering.targets.base import FEWEST_LANES

REST = "rest"
"""The parameter of a schedule that may compute what whole tiles leave of an open dimension at once,
and not in a few tiles of given sizes: the most single steps that are one tile."""


@record
class Part:
    """A range of a loop with equal tiles: `count` vectors of `lanes` lanes each."""

    lower: Expr
    upper: Expr
    count: int
    lanes: int

    @property
    def step(self) -> int:
        """Elements of one tile."""
        return self.count * self.lanes


def parts_of(
    upper: Expr, count: int, lanes: int, rest_steps: int = 0, *, is_short: bool = False
) -> list[Part]:
    """
    The range from 0 to `upper` in whole tiles, and the remainder in smaller ones. Where `upper` is
    known at run time only, there is a tile for each number of single steps up to `rest_steps`;
    where the code of a step `is_short`, also some of shorter vectors, before single steps.
    """
    size = count * lanes
    number = upper.value
    if number is None:
        steps = _halves(count, rest_steps) if lanes == 1 and rest_steps else _steps(count, lanes)
        if is_short:
            steps[-1:] = [*((1, width) for width in _quarters(lanes)), (1, 1)]
        return _open_parts(upper, steps)
    parts = [Part(Expr.const(0), Expr.const(number // size * size), count, lanes)]
    done, rest = number // size * size, number % size
    if rest >= lanes > 1 or (lanes == 1 and rest):
        step = rest // lanes * lanes
        parts.append(Part(Expr.const(done), Expr.const(done + step), rest // lanes, lanes))
        done, rest = done + step, rest % lanes
    while (lanes := lanes // 2) >= FEWEST_LANES:
        if rest >= lanes:
            parts.append(Part(Expr.const(done), Expr.const(done + lanes), 1, lanes))
            done, rest = done + lanes, rest - lanes
    if rest:
        parts.append(Part(Expr.const(done), upper, 1, 1))
    return [part for part in parts if part.lower != part.upper]


_FEW, _MANY = 6, 9
"""
Tiles of at least this many steps are followed by smaller ones before single steps, and those by
pairs: the sums of a step alone wait for each other.
"""


def _steps(count: int, lanes: int) -> list[tuple[int, int]]:
    """Tiles, smaller tiles, single steps."""
    steps = [(count, lanes), (1, lanes), (1, 1)]
    if count >= _FEW:
        steps[1:1] = [(count // 3, lanes), *([(2, lanes)] if count >= _MANY else [])]
    return steps


def _quarters(lanes: int) -> Iterator[int]:
    """A quarter of the lanes of vectors, and so on to the shortest."""
    while (lanes := lanes // 4) >= FEWEST_LANES:
        yield lanes


def _halves(count: int, rest_steps: int) -> list[tuple[int, int]]:
    """Tiles of single steps, half of them, and so on to those of which there is each."""
    counts = [count]
    while counts[-1] > rest_steps + 1:
        counts.append(-(-counts[-1] // 2))
    return [(number, 1) for number in (*counts, *range(min(rest_steps, counts[-1] - 1), 0, -1))]


def average_tiles(steps: float, count: int, rest_steps: int) -> list[tuple[float, int]]:
    """
    How many tiles of which number of single steps an open number of steps takes, of which `steps`
    are assumed: whole tiles first, then those of what is left, on average over what that may be.
    """
    counts = [number for number, _ in _halves(count, rest_steps)]
    numbers = dict.fromkeys(counts, 0)
    for rest in range(count):
        for number in counts:
            numbers[number] += rest // number
            rest %= number
    left = (count - 1) / 2
    whole = max(steps - left, 0) / count
    return [(whole, count), *((number / count, of) for of, number in numbers.items() if number)]


def _open_parts(upper: Expr, steps: Iterable[tuple[int, int]]) -> list[Part]:
    """As many as there are of each, one after the other, for a size known at run time only."""
    parts: list[Part] = []
    done = Expr.const(0)
    for number, width in dict.fromkeys(steps):
        end = done + (upper - done) // (number * width) * (number * width)
        parts.append(Part(done, end, number, width))
        done = end
    return parts
