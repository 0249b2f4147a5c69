"""`#core.schedule`: what it prints is what it reads, and what it refuses."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.schedule import Schedule, ScheduleAttr
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.passes.machinery.context import LowerdeckContext

WINOGRAD = Schedule(
    "winograd",
    tiles=(("tile", 6), ("oc", 2)),
    order=("v0", "v1", "oc", "tile"),
    prefetch=1,
    parameters=(("size", 4), ("group", 24), ("parts", 1)),
)


@pytest.mark.parametrize(
    ("schedule", "text", "summary"),
    [
        (
            Schedule("row_maps", lanes=(("d1", 8),)),
            "row_maps, lanes {d1 = 8}",
            "row_maps lanes d1=8",
        ),
        (Schedule("channel_blocks"), "channel_blocks", "channel_blocks"),
        (
            WINOGRAD,
            "winograd, tile {tile = 6, oc = 2}, order [v0, v1, oc, tile], prefetch 1, "
            "size = 4, group = 24, parts = 1",
            "winograd tile tile=6,oc=2 order v0,v1,oc,tile prefetch 1 size=4 group=24 parts=1",
        ),
    ],
)
def test_text(schedule: Schedule, text: str, summary: str) -> None:
    context = LowerdeckContext()
    register_dialects(context)
    attribute = Parser(context, f"#core.schedule<{text}>").parse_attribute()
    assert attribute == ScheduleAttr(schedule)
    out = StringIO()
    Printer(out).print_attribute(attribute)
    assert out.getvalue() == f"#core.schedule<{text}>"
    assert str(schedule) == summary


def test_numbers() -> None:
    assert [WINOGRAD.tile("oc"), WINOGRAD.tile("n"), WINOGRAD.vector("oc")] == [2, 1, 1]
    assert [WINOGRAD.get("group"), WINOGRAD.get("band"), WINOGRAD.parameter("size")] == [
        24,
        None,
        4,
    ]


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        (Schedule("a", tiles=(("n", 0),)), r"'n' has 0 iterations, expected 1 or more \(C1\)"),
        (Schedule("a", parameters=(("size", -1),)), r"size is -1, which is negative \(C1\)"),
        (Schedule("a", prefetch=-2), r"prefetch is -2, which is negative \(C1\)"),
        (Schedule("a", order=("n", "m", "n")), r"n, m, n: a name occurs twice \(C2\)"),
        (Schedule("a", tiles=(("n", 2), ("n", 3))), r"a name occurs twice \(C2\)"),
        (Schedule("a", lanes=(("n", 6),)), r"'n' has 6 lanes, which is no power of two \(C3\)"),
        (Schedule("a", parameters=(("tile", 1),)), r"tile: no parameter is called so \(C4\)"),
    ],
)
def test_refused(schedule: Schedule, problem: str) -> None:
    with pytest.raises(VerifyException, match=problem):
        ScheduleAttr(schedule)
