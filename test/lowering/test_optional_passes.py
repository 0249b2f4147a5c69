"""Passes of lowering that only make code faster: without any of them the results are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr, UnknownLoc
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.dialects.core.reduce import PoolOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import (
    ConcatOp,
    GatherElementsOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from lowerdeck.dialects.core.types import f16, f32, i8, i32, i64
from lowerdeck.lowering import emit
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.pipeline import (
    PASSES,
    Observer,
    passes_of_phase,
    run_passes,
    run_to_phase,
)
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.contracts import check_contract
from lowerdeck.passes.machinery.options import CompileOptions

from .forms import EVERY_FORM  # noqa: TID251  (as below)
from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    VECTOR_FLAGS,
    Body,
    Program,
    Suite,
    module_of,
    symbol,
    typed,
)

Array = NDArray[Any]

BELOW = ("kernels", "buffer", "scheduled")
"""The phases of lowering."""

FOR_SCALARS = {"settle-factors"}
"""Those for targets without vectors, which have tests of their own."""

OPTIONAL = [
    name
    for name, make in PASSES.items()
    if getattr(make(), "optional", False) and not getattr(make(), "rounds_numbers", False)
]


def given(*shape: int, seed: int) -> SSAValue:
    """A constant of small numbers."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return ConstantOp.of(values).result


def convolution(
    x: SSAValue,
    channels: tuple[int, int],
    taps: int,
    seed: int,
    *,
    groups: int = 1,
    stride: int = 1,
) -> SSAValue:
    """One that keeps the size of the image but for a stride."""
    weight = given(channels[1], channels[0] // groups, taps, taps, seed=seed)
    pads = [taps // 2] * 2
    strides, ones = [stride] * 2, [1, 1]
    return ConvOp(
        x, weight, groups=groups, strides=strides, dilations=ones, pads_begin=pads, pads_end=pads
    ).result


def network(x: SSAValue) -> list[SSAValue]:
    """
    A convolution whose result a depthwise one reads, a concatenation of which a part is used, and
    softmaxes.
    """
    wide = convolution(x, (8, 32), 1, 1)
    deep = e.SigmoidOp(convolution(wide, (32, 32), 3, 2, groups=32)).result
    parts = [convolution(deep, (32, 16), 3, 3), convolution(deep, (32, 16), 1, 4)]
    joined = ConcatOp(parts, 1).result
    part = SliceOp(joined, [0, 16, 0, 0], [1, 16, 9, 9]).result
    soft = e.TanhOp(part).result
    for axis in (3, 2, 3):
        soft = SoftmaxOp(soft, axis).result
    return [joined, soft]


def narrow(x: SSAValue) -> list[SSAValue]:
    """Products of halves and of bytes, a part of these, and a function from bytes to bytes."""
    half = e.CastOp(x, f16).result
    square = e.CastOp(MatmulOp(half, half).result, f32).result
    ones = ConstantOp.of(np.ones((9, 4), np.int8)).result
    small = e.CastOp(x, i8).result
    sums = MatmulOp(small, ones, accumulator=i32).result
    # No result is near an integer.
    scale = ConstantOp.of(np.asarray(103, np.float32)).result
    shares = e.MulOp(e.SigmoidOp(e.CastOp(small, f32).result).result, scale).result
    multiplier, exponent = (
        ConstantOp.of(np.array(number, np.int32)).result for number in (1 << 30, -2)
    )
    limits: dict[str, int] = {"zero": 1, "low": -128, "high": 127}
    eighths = RequantizeOp("double", sums, multiplier, exponent, to=i8, **limits)
    return [square, sums, e.CastOp(shares, i8).result, eighths.result]


def filters(x: SSAValue) -> list[SSAValue]:
    """
    Two filters for each channel, one of one tap, one tap with a stride, slopes behind a
    convolution, and a transposed one.
    """
    larger = ConvTransposeOp(
        x,
        given(8, 2, 2, 2, seed=7),
        strides=[2, 2],
        dilations=[1, 1],
        pads_begin=[0, 0],
        pads_end=[0, 0],
        output_padding=[0, 0],
    ).result
    repeated, scaled = (
        convolution(x, (8, filters), taps, 6, groups=8) for filters, taps in ((16, 3), (8, 1))
    )
    strided = convolution(x, (8, 128), 1, 9, stride=2)
    biased = e.AddOp(convolution(x, (8, 64), 3, 10), given(1, 64, 1, 1, seed=11)).result
    sloped = e.MulOp(biased, given(1, 64, 1, 1, seed=12)).result
    chosen = e.SelectOp(e.CompareOp("ge", biased, given(seed=13)).result, biased, sloped).result
    return [repeated, scaled, strided, chosen, larger]


def windows(x: SSAValue) -> list[SSAValue]:
    """A pool of deep windows, and mirrored borders."""
    none, ones = [0] * 3, [1] * 3
    planes = ReshapeOp(x, [1, 2, 4, 9, 9]).result
    pool = PoolOp(
        "max",
        planes,
        kernel=[3, 4, 4],
        strides=ones,
        dilations=ones,
        pads_begin=none,
        pads_end=none,
    ).result
    mirrored = PadOp(x, [0, 0, 0, 3], [0, 0, 0, 2], None, "reflect").result
    return [pool, mirrored]


def products(x: SSAValue) -> list[SSAValue]:
    """
    Products with long sums, maps behind one, elements that data and constants choose, and a row
    times a transposed matrix.
    """
    product = e.SigmoidOp(MatmulOp(x, given(2304, 24, seed=5)).result).result
    places = e.CastOp(e.RoundOp(product).result, i64).result
    known, twice = (
        ConstantOp.of(i).result for i in (np.array([3, -1, 0, 7]), np.arange(24).repeat(2))
    )
    chosen = [GatherOp(product, indices, 1).result for indices in (known, twice)]
    row, turned = SliceOp(x, [3, 0], [1, 2304]).result, TransposeOp(x, [1, 0]).result
    scores = MatmulOp(row, turned).result
    return [product, GatherElementsOp(x, places, 1).result, *chosen, scores]


def columns(x: SSAValue) -> list[SSAValue]:
    """Products with few columns, with many, and with zeros, and maps that differ in a number."""
    wide = MatmulOp(x, given(2304, 98, seed=8)).result
    narrow = [MatmulOp(x, given(2304, count, seed=count)).result for count in (1, 3)]
    quarter = np.where(np.arange(2304) % 4 == 0, np.float32(0.5), np.float32(0))
    sparse = MatmulOp(x, ConstantOp.of(np.outer(quarter, np.ones(32, np.float32))).result).result
    scales = (ConstantOp.of(np.asarray(number, np.float32)).result for number in (0.3, 0.7))
    scaled = [e.MulOp(x, scale).result for scale in scales]
    return [wide, *narrow, sparse, *scaled]


def opened(x: SSAValue, y: SSAValue) -> list[SSAValue]:
    """A sum of which either operand may be broadcast."""
    return [e.AddOp(x, y).result]


def filtered(x: SSAValue, w: SSAValue) -> list[SSAValue]:
    """A convolution whose weights have open sizes."""
    steps: dict[str, Any] = {"strides": [1], "dilations": [1]}
    return [ConvOp(x, w, pads_begin=[1], pads_end=[1], **steps).result]


def options(disable: Sequence[str]) -> CompileOptions:
    return CompileOptions(target="x86-64", disable=disable, strategy=["bands"])


@dataclass(eq=False)
class OptionProgram(Program):
    """A program that takes the compiler's own way by some options, from where it stands on."""

    disable: Sequence[str] = ()
    is_scheduled: bool = False
    form: int = 0
    """Which of the programs, whatever passes it is lowered without."""

    def expect(self) -> None:
        """Once, while the module is core."""
        if not self.expected:
            super().expect()

    def lower(self, runs: Sequence[Program]) -> tuple[CArtifact, list[str]]:
        """The C; interpreting kernels with so long sums would take too long."""
        del runs
        context = LowerdeckContext(options=options(self.disable))
        if not self.is_scheduled:
            run_to_phase(context, self.module, "scheduled", after="optimized")
        return emit(context, self.module, self.name), []


class Copies(Observer):
    """
    A module as it would be scheduled without each optional pass: copied where that pass runs, if it
    changes anything, and lowered on from there.
    """

    def __init__(self) -> None:
        self.before: dict[str, ModuleOp] = {}

    def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        if pass_.name in OPTIONAL:
            self.before[pass_.name] = module.clone()

    def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        if pass_.name in OPTIONAL and self.before[pass_.name].is_structurally_equivalent(module):
            del self.before[pass_.name]

    def without(self, name: str) -> ModuleOp:
        """The module without a pass that changes it."""
        module, context = self.before[name], LowerdeckContext(options=options([name]))
        way = [each for phase in BELOW for each in passes_of_phase(phase, context.options)]
        rest = way[way.index(name) + 1 :]
        run_passes(context, module, [PASSES[each]()() for each in rest])
        check_contract(module, "scheduled")
        return module


def add(suite: Suite) -> None:
    """All programs."""
    rng = np.random.default_rng(0)
    sizes = [[3, symbol("m")], [symbol("n"), symbol("k")]]
    weights = [list(map(symbol, names)) for names in ("ncs", "oct")]
    image, rows = ([[1, 8, 9, 9]], [(1, 8, 9, 9)]), ([[16, 2304]], [(16, 2304)])
    forms: list[tuple[Body, list[Any], list[tuple[int, ...]]]] = [
        *((body, *image) for body in (network, narrow, filters, windows)),
        *((body, *rows) for body in (products, columns)),
        (opened, sizes, [(3, 37), (3, 37)]),
        (filtered, weights, [(1, 5, 9), (4, 5, 3)]),
    ]
    for number, (body, types, shapes) in enumerate(forms):
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        module = module_of([typed(np.float32, *dims) for dims in types], body)
        name = f"p{len(suite.programs)}"
        program = OptionProgram(name, module, arrays, ulps=64, scale=1, form=number)
        suite.programs.append(program)


def suite_without_each(folder: Path) -> Suite:
    """
    The programs with all passes, with none that is optional, and without each that matters: in
    the first program that it changes, or in all.
    """
    suite = Suite(folder, flags=VECTOR_FLAGS)
    add(suite)
    usual = list(suite.programs)
    for program in usual:
        program.expect()
    add(suite)
    for program in suite.programs[len(usual) :]:
        assert isinstance(program, OptionProgram)
        program.disable = OPTIONAL
    known = set[str]()
    for program in usual:
        assert isinstance(program, OptionProgram)
        copies, context = Copies(), LowerdeckContext(options=options([]))
        run_to_phase(context, program.module, "scheduled", copies, after="optimized")
        program.is_scheduled = True
        for name in sorted(copies.before.keys() - (set() if EVERY_FORM else known)):
            known.add(name)
            suite.programs.append(
                replace(
                    program,
                    name=f"p{len(suite.programs)}",
                    module=copies.without(name),
                    disable=[name],
                )
            )
    return suite


def test_each_of_them_does_something_that_results_do_not_need(tmp_path: Path) -> None:
    suite = suite_without_each(tmp_path)
    programs = [one for one in suite.programs if isinstance(one, OptionProgram)]
    usual = {one.form: one.module for one in programs if not one.disable}
    useful = {
        name
        for one in programs
        for name in one.disable
        if one.disable == [name] and not one.module.is_structurally_equivalent(usual[one.form])
    }
    assert useful == {*OPTIONAL} - FOR_SCALARS
    suite.check()


def log_of(
    limit: int | None = None, skip: str | None = None, programs: slice = slice(None)
) -> list[str]:
    """The rewrites of lowering in programs."""
    suite, lines = Suite(Path()), StringIO()
    add(suite)
    for program in suite.programs[programs]:
        for number, op in enumerate(program.module.walk()):
            op.location = NameLoc(StringAttr(f"node_{number}"), UnknownLoc())
        context = LowerdeckContext()
        context.start(replace(options([]), rewrite_limit=limit, skip_nodes=skip), lines)
        run_to_phase(context, program.module, "scheduled", after="optimized")
    return lines.getvalue().splitlines()


DECISIONS = [
    "fuse-epilogue/fuse-epilogue on core.kernel: behind matmul",
    "fuse-bands/fuse-bands on core.kernel: asked for; from 'node_",
    "compute-in-place/write-over-operand on buffer.call: the result lies over operand 0; from",
    "merge-functions/read-numbers on buffer.func: differs from @mul_0 in numbers only; from 'node_",
]


def test_decisions_are_written_down() -> None:
    """All of them; with a limit, the first ones of each program that has any."""
    log = log_of()
    missing = [decision for decision in DECISIONS if not any(decision in line for line in log)]
    assert missing == [], "\n".join(log)
    limited = log_of(limit=1)
    assert limited == [line for line in log if line.startswith("1 ")]
    assert len(limited) == 7


def test_source_nodes_are_left_alone() -> None:
    some = slice(4, None)
    assert log_of(skip="no such node", programs=some) == log_of(programs=some)
    assert log_of(skip="node_", programs=some) == []
