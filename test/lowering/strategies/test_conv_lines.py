"""Convolutions of row-major images, whose lanes are positions: the same numbers on every target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.lowering.strategies.conv_lines import ConvLines

from ..choosing import Change, unchanged, with_numbers  # noqa: TID251  (these are tests)
from ..programs import module_of, symbol, typed  # noqa: TID251  (these are tests)
from ..targets import SOME_TARGETS, suite_for, suite_in_turn  # noqa: TID251  (as above)
from .blocked import BlockedProgram, constant, values  # noqa: TID251  (as above)

Shape = tuple[int, ...]

CASES: list[tuple[Shape, int, Shape, Shape, Shape, Shape, Shape, int]] = [
    # input, output channels, taps, strides, dilations, pads before, pads behind, groups
    # One filter a group: written out, for rows that fill no tile and no vector.
    ((1, 3, 5, 37), 3, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 3),
    ((2, 2, 9, 18), 2, (3, 3), (2, 2), (1, 1), (0, 0), (1, 1), 2),
    ((1, 2, 11, 21), 2, (5, 3), (1, 1), (2, 3), (4, 3), (4, 3), 2),
    ((1, 2, 7, 16), 2, (2, 4), (3, 3), (1, 1), (1, 2), (0, 3), 2),
    ((1, 2, 9, 4), 2, (1, 3), (2, 1), (1, 1), (0, 1), (1, 1), 2),
    ((1, 2, 40), 2, (5,), (1,), (2,), (4,), (4,), 2),
    ((1, 2, 3, 4, 19), 2, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), 2),
    ((1, 2, 4, 5, 8), 2, (2, 1, 3), (2, 2, 2), (2, 1, 1), (1, 1, 0), (1, 0, 1), 2),
    # One filter a group, of several channels.
    ((1, 4, 5, 37), 1, (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 1),
    ((1, 6, 6, 20), 3, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 3),
    ((2, 3, 40), 1, (5,), (2,), (1,), (2,), (2,), 1),
    # Groups of several channels and filters.
    ((1, 6, 5, 20), 4, (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 2),
    ((1, 15, 6, 9), 6, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 3),
    ((2, 5, 7, 33), 7, (3, 3), (2, 2), (1, 1), (1, 1), (1, 0), 1),
    ((1, 4, 9, 17), 5, (3, 2), (1, 2), (2, 2), (2, 1), (1, 2), 1),
    ((1, 3, 8, 12), 9, (1, 1), (2, 2), (1, 1), (0, 0), (0, 0), 1),
    ((1, 3, 6, 40), 2, (2, 5), (1, 1), (1, 1), (0, 0), (0, 0), 1),
    ((1, 4, 70), 3, (4,), (4,), (1,), (2,), (1,), 1),
    ((1, 4, 3, 5, 9), 3, (3, 2, 2), (1, 1, 1), (1, 1, 1), (1, 0, 1), (1, 1, 0), 1),
    # Taps whose places modulo the stride are in no order.
    ((1, 2, 2, 70), 3, (1, 3), (1, 4), (1, 3), (0, 1), (0, 5), 1),
    ((1, 2, 5, 33), 2, (2, 3), (2, 4), (1, 3), (1, 1), (0, 5), 2),
    # More than fit into one partial sum.
    ((1, 211, 2, 9), 3, (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 1),
]


def _sizes(case: tuple[Shape, int, Shape, Shape, Shape, Shape, Shape, int]) -> list[int]:
    shape, _, taps, strides, dilations, begin, end, _ = case
    return [
        (size + first + last - (tap - 1) * dilation - 1) // stride + 1
        for size, first, last, tap, dilation, stride in zip(
            shape[2:], begin, end, taps, dilations, strides, strict=True
        )
    ]


def _program(
    number: int,
    case: tuple[Shape, int, Shape, Shape, Shape, Shape, Shape, int],
    target: str,
    *,
    dtype: type[np.generic] = np.float32,
    is_open: bool = False,
    threads: int = 1,
    change: Change = unchanged,
) -> BlockedProgram:
    """With a bias, a residual and an activation; of open sizes with computed weights."""
    shape, channels, taps, strides, dilations, begin, end, groups = case
    w_shape = (channels, shape[1] // groups, *taps)
    weight, bias = values(*w_shape, seed=1).astype(dtype), values(channels, seed=2).astype(dtype)

    def conv(x: SSAValue, weight: SSAValue) -> SSAValue:
        return ConvOp(
            x,
            weight,
            constant(bias),
            strides=strides,
            dilations=dilations,
            pads_begin=begin,
            pads_end=end,
            groups=groups,
        ).result

    x = values(*shape).astype(dtype)
    if is_open:
        names = ["n", None, *"zyx"[-len(taps) :]]
        dims = [
            size if name is None else symbol(name) for name, size in zip(names, shape, strict=True)
        ]
        module = module_of([typed(dtype, *dims), typed(dtype, *w_shape)], conv)
        inputs = [x, weight]
    else:

        def body(x: SSAValue, residual: SSAValue) -> SSAValue:
            # Of a kernel of its own, over which the result could lie.
            made = SoftmaxOp(residual, len(shape) - 1).result
            total = e.AddOp(conv(x, constant(weight)), made)
            return e.MaxOp(total.result, constant(np.zeros((), dtype))).result

        inputs = [x, values(shape[0], channels, *_sizes(case), seed=3).astype(dtype)]
        module = module_of([typed(x.dtype, *x.shape) for x in inputs], body)
    return BlockedProgram(
        f"p{number}",
        module,
        inputs,
        target=target,
        ulps=32,
        scale=1,
        is_blocked=False,
        strategies=frozenset({ConvLines.name}),
        threads=threads,
        change=change,
    )


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_every_form(tmp_path: Path, target: str) -> None:
    """Strides, dilations, uneven padding, all ranks, groups of any size."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    suite.programs += [_program(number, case, target) for number, case in enumerate(CASES)]
    suite.check()


def test_f64_and_threads(tmp_path: Path) -> None:
    """Vectors of half as many lanes; rows and planes in parts."""
    suite, target = suite_for("x86-64-v4", tmp_path), "x86-64-v4"
    picked: Sequence[int] = (0, 2, 8, 9, 11)
    for number in picked:
        program = _program(number, CASES[number], target, dtype=np.float64, threads=2)
        suite.programs.append(program)
    suite.check()


def in_bands(schedule: Schedule) -> Schedule:
    """Few rows and columns at a time, that do not divide their numbers."""
    is_lines = schedule.strategy == ConvLines.name
    return with_numbers(schedule, rows=2, columns=8) if is_lines else schedule


def copied(schedule: Schedule) -> Schedule:
    """Few columns at a time, copied though they need not be."""
    is_lines = schedule.strategy == ConvLines.name
    return with_numbers(schedule, rows=2, columns=8, copied=1) if is_lines else schedule


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copied_taps(tmp_path: Path, dtype: type[np.generic]) -> None:
    """Without strides and padding: in parts of rows, some of which are computed twice."""
    suite, target = suite_for("x86-64-v3", tmp_path), "x86-64-v3"
    for number in (8, 11, 16, 21):
        program = _program(number, CASES[number], target, dtype=dtype, threads=2, change=copied)
        suite.programs.append(program)
    suite.check()


@pytest.mark.parametrize("threads", [1, 2])
def test_bands(tmp_path: Path, threads: int) -> None:
    """What is computed twice comes out the same, also where results lie over operands."""
    suite, target = suite_for("x86-64-v4", tmp_path), "x86-64-v4"
    for number in (0, 2, 6, 9, 10, 13):
        program = _program(number, CASES[number], target, threads=threads, change=in_bands)
        suite.programs.append(program)
    suite.check()


def test_open_sizes(tmp_path: Path) -> None:
    """Of images, and of how many there are; of rows that fill no vector, too."""
    suite, target = suite_for("x86-64-v4", tmp_path, share=2), "x86-64-v4"
    for case in CASES[::2]:
        suite.programs.append(_program(len(suite.programs), case, target, is_open=True))
    shapes = [(1, 3, 1, 1), (2, 3, 21, 5), (1, 3, 9, 67), (1, 3, 2, 130)]
    for shape in shapes:
        case = (shape, 3, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 3)
        suite.programs.append(_program(len(suite.programs), case, target, is_open=True))
    suite.check()
