"""Products of packed bytes in tiles of the processor, and in the loops that stand for them."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.enums import Packing
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import f32, i8
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.emit_c.tiles import dot_tiles_name
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.lowering.strategies.matrix_tiles import MatrixTiles
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from ..programs import (  # noqa: TID251  (these are tests)
    VECTOR_FLAGS,
    Program,
    Suite,
    module_of,
    symbol,
    typed,
)
from ..targets import suite_for  # noqa: TID251  (as above)

TARGET = "x86-64-amx"
SIZES = [1, 15, 16, 17, 32, 33, 70]
BOTH = [Packing.UNSIGNED_LEFT, Packing.UNSIGNED_RIGHT]


@dataclass(eq=False)
class Tiled(Program):
    """A program whose products run in tiles."""

    def lower(self, runs: Any) -> tuple[CArtifact, list[str]]:
        """As `Program` has it."""
        options = CompileOptions(target=TARGET, threads=self.threads, strategy=[MatrixTiles.name])
        context = LowerdeckContext(options=options)
        run_to_phase(context, self.module, "scheduled", after="optimized")
        problems = self.check_scheduled(runs)
        return emit_c(self.module, self.name, TARGET), problems


def words(*shape: int, seed: int = 0) -> Any:
    """All numbers of 32 bits."""
    limits = np.iinfo(np.int32)
    return np.random.default_rng(seed).integers(limits.min, limits.max, shape, np.int32)


def add(suite: Suite, types: Any, body: Callable[..., Any], *inputs: Any, threads: int = 1) -> None:
    """One more program."""
    name = f"p{len(suite.programs)}"
    suite.programs.append(Tiled(name, module_of(types, body), inputs, threads=threads))


def typed_like(*arrays: Any) -> list[Any]:
    """Static types."""
    return [typed(array.dtype, *array.shape) for array in arrays]


def check(suite: Suite) -> None:
    """Everything agrees, and all products are in tiles."""
    for artifact in suite.artifacts:
        assert "lowerdeck_dot_tiles_unsigned" in artifact.files[f"{artifact.name}.c"]
    suite.check()


@pytest.mark.parametrize("packing", BOTH)
def test_sizes(tmp_path: Path, packing: Packing) -> None:
    """All numbers of tiles, whole and cut off, along rows, columns and depth."""
    suite = suite_for(TARGET, tmp_path)
    for number, rows in enumerate(SIZES):
        columns, depth = SIZES[(number * 3 + 1) % 7], [1, 7, 16, 19, 32, 45, 96][number]
        x, w = words(rows, depth), words(depth, columns, seed=1)
        add(suite, typed_like(x, w), lambda x, w: MatmulOp(x, w, packing=packing), x, w)

        def by_constant(x: Any, w: Any = w) -> MatmulOp:
            return MatmulOp(x, ConstantOp.of(w).result, packing=packing)

        add(suite, typed_like(x), by_constant, x)

        def of_constant(w: Any, x: Any = x) -> MatmulOp:
            return MatmulOp(ConstantOp.of(x).result, w, packing=packing)

        add(suite, typed_like(w), of_constant, w)
    check(suite)


@pytest.mark.parametrize("packing", BOTH)
def test_without_tiles(tmp_path: Path, packing: Packing) -> None:
    """The loops of a processor, or of a compiler, that has none."""
    suite = Suite(tmp_path, flags=(*VECTOR_FLAGS, "-U__AMX_INT8__"))
    x, w = words(37, 21), words(21, 50, seed=1)
    add(suite, typed_like(x, w), lambda x, w: MatmulOp(x, w, packing=packing), x, w)
    left, right = words(37, 36), words(36, 50, seed=1)

    def of_constant(x: Any) -> MatmulOp:
        return MatmulOp(ConstantOp.of(left).result, x, packing=packing)

    add(suite, typed_like(right), of_constant, right)
    check(suite)


def test_batches_and_open_sizes(tmp_path: Path) -> None:
    """Matrices that are shared or not, and rows or columns that only a run knows, also none."""
    suite, m, n = suite_for(TARGET, tmp_path), symbol("m"), symbol("n")

    def body(x: Any, w: Any) -> MatmulOp:
        return MatmulOp(x, w, packing=Packing.UNSIGNED_LEFT)

    for left, right in [((2, 3, 20, 9), (3, 9, 40)), ((3, 33, 16), (16, 5)), ((40, 8), (2, 8, 3))]:
        x, w = words(*left), words(*right, seed=1)
        add(suite, typed_like(x, w), body, x, w)
    for rows, columns in [(0, 7), (5, 0), (32, 64), (33, 70), (64, 31)]:
        x, w = words(rows, 18), words(18, columns, seed=1)
        add(suite, [typed(np.int32, m, 18), typed(np.int32, 18, n)], body, x, w)
    check(suite)


def test_threads_share_products() -> None:
    """Also of matrices that no core has in its cache before another one has made them."""
    x, w = words(64, 256), words(256, 512, seed=1)

    def body(x: Any, w: Any) -> MatmulOp:
        return MatmulOp(x, w, packing=Packing.UNSIGNED_RIGHT)

    module = module_of(typed_like(x, w), body)
    context = LowerdeckContext(options=CompileOptions(target=TARGET, threads=2))
    run_to_phase(context, module, "scheduled", after="optimized")
    assert "lowerdeck_team_take" in emit_c(module, "shared", TARGET).files["shared.c"]


@pytest.mark.parametrize("threads", [1, 2])
def test_epilogue(tmp_path: Path, threads: int) -> None:
    """What follows is computed from the sums, in bytes, also over an operand; by threads, too."""
    suite = suite_for(TARGET, tmp_path)
    x, residual = words(100, 24), words(100, 75, seed=2)
    weight, scale = words(24, 75, seed=1), np.linspace(1e-7, 1e-5, 75, dtype=np.float32)

    def quantized(x: Any, residual: Any) -> Any:
        weights = ConstantOp.of(weight).result
        total = MatmulOp(x, weights, packing=Packing.UNSIGNED_RIGHT).result
        total = e.AddOp(total, e.AbsOp(residual).result).result
        scaled = e.MulOp(e.CastOp(total, f32).result, ConstantOp.of(scale).result).result
        limits = (ConstantOp.of(np.asarray(number, np.float32)).result for number in (-128, 127))
        for op, limit in zip((e.MaxOp, e.MinOp), limits, strict=True):
            scaled = op(scaled, limit).result
        return e.CastOp(e.RoundOp(scaled).result, i8)

    add(suite, typed_like(x, residual), quantized, x, residual, threads=threads)
    check(suite)


def test_threads_share_blocks(tmp_path: Path) -> None:
    """Those of products with a constant matrix; each thread has tiles of its own."""
    suite = suite_for(TARGET, tmp_path)
    x, w = words(400, 128), words(128, 300, seed=1)

    def by_constant(x: Any) -> MatmulOp:
        return MatmulOp(x, ConstantOp.of(w).result, packing=Packing.UNSIGNED_LEFT)

    add(suite, typed_like(x), by_constant, x, threads=2)
    (artifact,) = suite.artifacts
    assert "part_number" in artifact.files[f"{artifact.name}.c"]
    check(suite)


def test_names_of_functions() -> None:
    """What `check` looks for is what is called."""
    assert [dot_tiles_name(packing) for packing in BOTH] == [
        "lowerdeck_dot_tiles_unsigned_left",
        "lowerdeck_dot_tiles_unsigned_right",
    ]
    assert target_named(TARGET).isa.tiles is not None
