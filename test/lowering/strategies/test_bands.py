"""A convolution and a depthwise one by bands of rows, for every shape, and when that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.entry.parallelize import ParallelizePass
from lowerdeck.lowering.pipeline import Observer, run_to_phase
from lowerdeck.lowering.strategies.bands import BAND, Bands, Geometry, estimates, plans
from lowerdeck.lowering.strategies.base import Setting
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from ..choosing import ChooseAmong, with_numbers  # noqa: TID251  (these are tests)
from ..programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Program,
    module_of,
    symbol,
    typed,
)
from ..targets import EVERY_TARGET, suite_for, suite_in_turn  # noqa: TID251  (as above)
from .blocked import constant, values  # noqa: TID251  (as above)

Array = NDArray[Any]

V4 = target_named("x86-64-v4")


@dataclass(eq=False)
class BandedProgram(Program):
    """A program on which all passes of lowering run, for a target."""

    target: str = "x86-64-v4"
    band: int = 1
    """Rows of a band, which there are however small all is."""

    def lower(self, runs: Sequence[Program]) -> tuple[CArtifact, list[str]]:
        """As `Program` has it."""
        options = CompileOptions(target=self.target, threads=self.threads, strategy=[Bands.name])
        context = LowerdeckContext(options=options)
        # However small: these kernels have a few elements.
        others: dict[str, ModulePass | None] = {
            "parallelize": ParallelizePass(worth=0),
            "choose-strategies": ChooseAmong(change=self._in_bands),
        }
        has_bands = target_named(self.target).lanes > 1

        class Checks(Observer):
            def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
                if pass_.name == "choose-strategies":
                    assert is_in_bands(module) == has_bands
                if pass_.name == "parallelize" and has_bands:
                    functions = (op for op in module.walk() if isinstance(op, FuncOp))
                    assert any(f.parallel is not None for f in functions if f.outputs.data == 2)

        run_to_phase(context, self.module, "scheduled", Checks(), after="optimized", instead=others)
        problems = self.check_scheduled(runs)
        return emit_c(self.module, self.name, self.target), problems

    def _in_bands(self, schedule: Schedule) -> Schedule:
        return with_numbers(schedule, band=self.band) if schedule.get(BAND) else schedule


def is_in_bands(module: ModuleOp) -> bool:
    """True if there is a kernel of two convolutions that runs so."""
    schedules = (op.schedule for op in module.walk() if isinstance(op, KernelOp))
    return any(each is not None and each.data.strategy == Bands.name for each in schedules)


@dataclass(frozen=True)
class Case:
    """Two convolutions, the second one depthwise; bands of some rows."""

    shape: tuple[int, int, int, int]
    channels: int
    band: int
    first: tuple[int, int, int] = (1, 1, 0)
    """Taps, stride, padding."""
    taps: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: int = 1
    begin: tuple[int, int] = (1, 1)
    end: tuple[int, int] = (1, 1)


CASES = [
    Case((1, 5, 9, 7), 16, 4),
    Case((2, 16, 11, 6), 33, 2, stride=(2, 2)),
    Case((1, 3, 8, 19), 48, 1, taps=(5, 5), begin=(2, 2), end=(2, 2)),
    Case((1, 4, 24, 9), 20, 2, (3, 2, 1), dilation=2, begin=(2, 2), end=(2, 2)),
    Case((1, 16, 14, 15), 16, 3, taps=(5, 5), stride=(2, 2), begin=(2, 2), end=(2, 2)),
    # Nothing is read twice but by the last band, and then by none.
    Case((1, 16, 15, 4), 16, 2, stride=(3, 1), begin=(0, 0), end=(0, 0)),
    Case((1, 17, 12, 5), 31, 2, stride=(3, 3), begin=(0, 0), end=(0, 0)),
    # Rows and columns that nothing reads.
    Case((1, 16, 8, 11), 16, 2, taps=(1, 2), stride=(2, 3), begin=(0, 0), end=(0, 0)),
    # Whole bands of padding.
    Case((1, 2, 2, 3), 19, 1, taps=(7, 3), begin=(5, 0), end=(5, 2)),
    Case((1, 16, 5, 3), 16, 9, taps=(2, 3), begin=(0, 1), end=(1, 1)),
]


def body_of(case: Case) -> Any:
    """Maps stand behind both, and the first ones are not zero where the tensor is padded."""

    def body(x: SSAValue) -> SSAValue:
        taps, stride, pad = case.first
        channels = case.channels
        first = ConvOp(
            x,
            constant(values(channels, case.shape[1], taps, taps, seed=1)),
            constant(values(channels, seed=2)),
            strides=[stride] * 2,
            dilations=[1, 1],
            pads_begin=[pad] * 2,
            pads_end=[pad] * 2,
        )
        moved = e.AddOp(first.result, constant(np.array(0.5, np.float32)))
        second = ConvOp(
            e.SigmoidOp(moved.result).result,
            constant(values(channels, 1, *case.taps, seed=3)),
            constant(values(channels, seed=4)),
            strides=list(case.stride),
            dilations=[case.dilation] * 2,
            pads_begin=list(case.begin),
            pads_end=list(case.end),
            groups=channels,
        )
        return e.MaxOp(second.result, constant(np.zeros((), np.float32))).result

    return body


def program_of(
    case: Case, name: str, target: str, threads: int, shape: Sequence[int | Expr] | None = None
) -> BandedProgram:
    """A program of a case; `shape` is that of the argument's type, if it is open."""
    return BandedProgram(
        name,
        module_of([typed(np.float32, *(shape or case.shape))], body_of(case)),
        [values(*case.shape)],
        target=target,
        band=case.band,
        ulps=16,
        scale=1,
        threads=threads,
    )


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_every_shape(target: str, tmp_path: Path) -> None:
    """Bands that do not divide the rows, channels that do not divide into vectors, threads."""
    suite = suite_in_turn(target, tmp_path)
    threads = 2 if target == "x86-64-v3" else 1
    for number, case in enumerate(CASES):
        suite.programs.append(program_of(case, f"p{number}", target, threads))
    suite.check()


@pytest.mark.parametrize("threads", [1, 2])
def test_open_batch(threads: int, tmp_path: Path) -> None:
    suite = suite_for("x86-64-v4", tmp_path)
    case = Case((3, 16, 7, 5), 17, 3)
    open_shape = [symbol("n"), *case.shape[1:]]
    suite.programs.append(program_of(case, "p0", "x86-64-v4", threads, open_shape))
    suite.check()


def convolutions(size: int, source: int, channels: int, stride: int) -> tuple[ConvOp, ConvOp]:
    """1x1 from a number of channels to another, and 3x3 of each of these."""
    block = Block(arg_types=[typed(np.float32, 1, source, size, size)])
    first = ConvOp(
        block.args[0],
        constant(np.zeros((channels, source, 1, 1), np.float32)),
        strides=[1, 1],
        dilations=[1, 1],
        pads_begin=[0, 0],
        pads_end=[0, 0],
    )
    second = ConvOp(
        first.result,
        constant(np.zeros((channels, 1, 3, 3), np.float32)),
        strides=[stride] * 2,
        dilations=[1, 1],
        pads_begin=[1, 1],
        pads_end=[1, 1],
        groups=channels,
    )
    return first, second


def with_cache(size: int) -> Target:
    """The target with another second cache, of so many bytes."""
    return replace(V4, machine=V4.machine.but("set: a test", l2_bytes=size))


@pytest.mark.parametrize(
    ("sizes", "setting", "expected"),
    [
        # size, input channels, channels, stride
        ((112, 16, 96, 2), Setting(V4), True),
        ((56, 24, 144, 1), Setting(V4), True),
        ((56, 24, 144, 1), Setting(V4, threads=2), True),
        # Two threads would meet between the two, and one has nothing to wait for.
        ((14, 64, 64, 1), Setting(V4, threads=2), True),
        ((14, 64, 64, 1), Setting(V4), False),
        # The rows of the other thread are computed again, which takes longer.
        ((14, 256, 256, 1), Setting(V4, threads=2), False),
        # All of it stays in a large cache.
        ((56, 24, 144, 1), Setting(with_cache(8 << 20)), False),
        # More weights than inputs.
        ((14, 96, 576, 1), Setting(V4), False),
        # A row of 17 columns does not fit into a small one.
        ((56, 24, 144, 1), Setting(with_cache(4 << 10)), False),
    ],
)
def test_worth(sizes: tuple[int, int, int, int], setting: Setting, expected: bool) -> None:
    cycles = estimates(*convolutions(*sizes), V4.lanes, setting)
    assert (cycles is not None and cycles[0] < cycles[1]) == expected


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_have_alike_many_bands(threads: int) -> None:
    first, second = convolutions(112, 16, 96, 2)
    ways = plans(first, second, 16, Setting(V4, threads=threads))
    plan = min(ways, key=lambda plan: plan.cycles)
    geometry = Geometry.of(second, plan.band)
    assert geometry is not None
    assert geometry.bands % threads == 0
