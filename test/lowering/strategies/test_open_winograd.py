"""Winograd's convolutions of images whose size is known only at run time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.lowering.strategies.base import Candidate
from lowerdeck.lowering.strategies.winograd import SIZE, TILE, Winograd

from ..choosing import with_numbers  # noqa: TID251  (these are tests)
from ..forms import some  # noqa: TID251  (as above)
from ..programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    VECTOR_FLAGS,
    Suite,
    module_of,
    symbol,
    typed,
)
from .blocked import BlockedProgram, constant, values  # noqa: TID251  (as above)

# Images smaller than a tile in one direction or both, whole tiles, a last tile of one row or
# column, fewer tiles than a group and more than one group, several images, none.
SIZES = [
    (1, 1, 1),
    (1, 2, 9),
    (2, 3, 2),
    (1, 8, 4),
    (2, 5, 7),
    (1, 9, 14),
    (0, 4, 4),
    (1, 0, 3),
]

PADS = [([1, 1], [1, 1]), ([1, 0], [2, 1])]


def of_few_tiles(schedule: Schedule) -> Schedule:
    """Groups that products do not divide."""
    is_winograd = schedule.strategy == Winograd.name
    return with_numbers(schedule, tiles={TILE: 3}, group=7) if is_winograd else schedule


WINOGRAD = frozenset({"winograd"})


@pytest.mark.parametrize(
    ("target", "threads", "size", "sizes"),
    [
        ("x86-64-v4", 1, 4, some(SIZES)),
        ("x86-64-v3", 2, 4, SIZES[4:6]),
        ("x86-64", 1, 2, SIZES[:3]),
    ],
)
def test_every_size(
    tmp_path: Path, target: str, threads: int, size: int, sizes: Sequence[tuple[int, int, int]]
) -> None:
    suite = Suite(tmp_path, flags=VECTOR_FLAGS)
    channels, outputs = 19, 18

    def of_size(candidate: Candidate) -> bool:
        return candidate.schedule.get(SIZE) == size

    for number, (batch, height, width) in enumerate(sizes):
        begin, end = PADS[number % len(PADS)]

        def body(x: SSAValue, begin: list[int] = begin, end: list[int] = end) -> SSAValue:
            conv = ConvOp(
                x,
                constant(values(outputs, channels, 3, 3, seed=1)),
                constant(values(outputs, seed=2)),
                strides=[1, 1],
                dilations=[1, 1],
                pads_begin=begin,
                pads_end=end,
            )
            return e.MaxOp(conv.result, constant(np.zeros((), np.float32))).result

        x = values(batch, channels, height, width)
        type_ = typed(np.float32, symbol("n"), channels, symbol("h"), symbol("w"))
        program = BlockedProgram(
            f"p{number}",
            module_of([type_], body),
            [x],
            target=target,
            border=(1, 2),
            ulps=64,
            scale=1,
            threads=threads,
            strategies=WINOGRAD,
            wanted=of_size,
            change=of_few_tiles,
        )
        suite.programs.append(program)
    suite.check()


def test_only_the_batch_is_open(tmp_path: Path) -> None:
    """Rows and columns that tiles divide are stored without asking."""
    suite = Suite(tmp_path, flags=VECTOR_FLAGS)

    def body(x: SSAValue) -> SSAValue:
        pads = [1, 1]
        weight = constant(values(16, 16, 3, 3, seed=1))
        conv = ConvOp(x, weight, strides=[1, 1], dilations=[1, 1], pads_begin=pads, pads_end=pads)
        return conv.result

    module = module_of([typed(np.float32, symbol("n"), 16, 8, 6)], body)
    x = values(2, 16, 8, 6)
    suite.programs.append(
        BlockedProgram(
            "p",
            module,
            [x],
            border=(1, 1),
            ulps=64,
            scale=1,
            strategies=WINOGRAD,
            change=of_few_tiles,
        )
    )
    suite.check()
