"""How the loops of a kernel run: the strategy that builds them, and the numbers it was given."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.records import record

Counts = tuple[tuple[str, int], ...]
"""Numbers by name, in an order that may matter."""


@record
class Schedule:
    """
    A strategy, how the labeled loops that it builds run, and its own numbers.

    `tiles`: how many iterations (of vectors, where a loop has lanes) lie in a tile, from the outer
    to the inner loop in the tile. `order`: the loops over tiles from the outermost inward; those
    not named follow as they were. `lanes`: into how many lanes a loop is to be cut, innermost.
    `prefetch`: the number of the buffer that is asked for ahead of its use. `parameters`: what the
    strategy alone reads, by the names that it has for them.
    """

    strategy: str
    tiles: Counts = ()
    order: tuple[str, ...] = ()
    lanes: Counts = ()
    prefetch: int | None = None
    parameters: Counts = ()

    def tile(self, label: str) -> int:
        """How many iterations of a loop lie in a tile."""
        return dict(self.tiles).get(label, 1)

    def vector(self, label: str) -> int:
        """Into how many lanes a loop is cut."""
        return dict(self.lanes).get(label, 1)

    def get(self, name: str) -> int | None:
        """A number of the strategy's own; None if the schedule does not have it."""
        return dict(self.parameters).get(name)

    def parameter(self, name: str) -> int:
        """A number of the strategy's own that it cannot do without; KeyError."""
        return dict(self.parameters)[name]

    def __str__(self) -> str:
        tiles, lanes = (
            f"{name} {','.join(f'{label}={count}' for label, count in counts)}" if counts else ""
            for name, counts in (("tile", self.tiles), ("lanes", self.lanes))
        )
        order = f"order {','.join(self.order)}" if self.order else ""
        ahead = "" if self.prefetch is None else f"prefetch {self.prefetch}"
        own = " ".join(f"{name}={count}" for name, count in self.parameters)
        return " ".join(filter(None, (self.strategy, tiles, order, lanes, ahead, own)))


_WORDS = frozenset({"tile", "order", "lanes", "prefetch"})
"""What no strategy may call a parameter."""


@irdl_attr_definition
class ScheduleAttr(Data[Schedule]):
    """
    `#core.schedule<direct, tile {x1 = 14, oc = 2}, order [n, oc, x0, x1], prefetch 1>`: the loops
    that the strategy `direct` builds, fourteen columns by two blocks of channels in a tile, and the
    weights of operand 1 asked for ahead of their use. A strategy's own numbers follow at the end:
    `#core.schedule<winograd, tile {oc = 2, tile = 6}, size = 4, group = 24, parts = 1>`.

    Constraints:

    - (C1) Counts of iterations and lanes are positive; other numbers are not negative.
    - (C2) No label or parameter occurs twice in one list.
    - (C3) The lanes of a vector are a power of two.
    - (C4) No parameter is called `tile`, `order`, `lanes` or `prefetch`.

    Which strategies there are, and which parameters they have, lowering knows.
    """

    name = "core.schedule"

    def verify(self) -> None:
        schedule = self.data
        for name, count in (*schedule.tiles, *schedule.lanes):
            if count < 1:
                raise VerifyException(f"'{name}' has {count} iterations, expected 1 or more (C1)")
        numbers = [*schedule.parameters, ("prefetch", schedule.prefetch or 0)]
        for name, number in numbers:
            if number < 0:
                raise VerifyException(f"{name} is {number}, which is negative (C1)")
        for names in (
            [label for label, _ in schedule.tiles],
            [label for label, _ in schedule.lanes],
            [name for name, _ in schedule.parameters],
            schedule.order,
        ):
            if len(set(names)) != len(names):
                raise VerifyException(f"{', '.join(names)}: a name occurs twice (C2)")
        if taken := _WORDS.intersection(name for name, _ in schedule.parameters):
            raise VerifyException(f"{', '.join(sorted(taken))}: no parameter is called so (C4)")
        for label, lanes in schedule.lanes:
            if lanes & (lanes - 1):
                raise VerifyException(f"'{label}' has {lanes} lanes, which is no power of two (C3)")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Schedule:
        tiles: list[tuple[str, int]] = []
        lanes: list[tuple[str, int]] = []
        parameters: list[tuple[str, int]] = []
        order: list[str] = []
        prefetch: int | None = None
        with parser.in_angle_brackets():
            strategy = parser.parse_identifier()
            while parser.parse_optional_punctuation(",") is not None:
                match parser.parse_identifier():
                    case "tile":
                        tiles += _parse_counts(parser)
                    case "lanes":
                        lanes += _parse_counts(parser)
                    case "order":
                        square = parser.Delimiter.SQUARE
                        order += parser.parse_comma_separated_list(square, parser.parse_identifier)
                    case "prefetch":
                        prefetch = parser.parse_integer(allow_boolean=False)
                    case name:
                        parser.parse_punctuation("=")
                        parameters.append((name, parser.parse_integer(allow_boolean=False)))
        lists = (tuple(tiles), tuple(order), tuple(lanes), prefetch, tuple(parameters))
        return Schedule(strategy, *lists)

    def print_parameter(self, printer: Printer) -> None:
        schedule = self.data
        parts = [schedule.strategy]
        if schedule.tiles:
            parts.append(f"tile {_counts(schedule.tiles)}")
        if schedule.order:
            parts.append(f"order [{', '.join(schedule.order)}]")
        if schedule.lanes:
            parts.append(f"lanes {_counts(schedule.lanes)}")
        if schedule.prefetch is not None:
            parts.append(f"prefetch {schedule.prefetch}")
        parts += [f"{name} = {number}" for name, number in schedule.parameters]
        printer.print_string(f"<{', '.join(parts)}>")


def _counts(counts: Sequence[tuple[str, int]]) -> str:
    return f"{{{', '.join(f'{label} = {count}' for label, count in counts)}}}"


def _parse_counts(parser: AttrParser) -> list[tuple[str, int]]:
    def parse_count() -> tuple[str, int]:
        label = parser.parse_identifier()
        parser.parse_punctuation("=")
        return label, parser.parse_integer(allow_boolean=False)

    return parser.parse_comma_separated_list(parser.Delimiter.BRACES, parse_count)
