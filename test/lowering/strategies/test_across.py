"""Maps that transpose squares in registers: copies between layouts, and transposed tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.dialects.buffer.vector import TransposeOp
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as core

from ..forms import EVERY_FORM  # noqa: TID251  (these are tests)
from ..programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    VECTOR_FLAGS,
    Suite,
    module_of,
    symbol,
    typed,
)
from ..test_layouts import add  # noqa: TID251  (as above)
from .blocked import BlockedProgram, constant, values  # noqa: TID251  (as above)

Array = NDArray[Any]
TARGETS = [("x86-64-v4", 16), ("x86-64-v3", 8), ("x86-64", 4)]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path, flags=VECTOR_FLAGS)


def check_squares(
    suite: Suite,
    target: str,
    body: Callable[[SSAValue], SSAValue],
    cases: list[tuple[Any, Array]],
    *,
    is_blocked: bool = True,
) -> set[int]:
    """Run a program for each type and value; the sides of the squares that they transpose."""
    for number, (type_, x) in enumerate(cases):
        program = BlockedProgram(
            f"p{number}",
            module_of([type_], body),
            [x],
            target=target,
            border=(1, 2) if is_blocked else (0, 0),
            is_blocked=is_blocked,
            threads=1 + number % 2,
        )
        suite.programs.append(program)
    suite.check()
    ops = (op for program in suite.programs for op in program.module.walk())
    return {op.lanes for op in ops if isinstance(op, TransposeOp)}


def sides_up_to(lanes: int) -> set[int]:
    """What a vector of so many lanes is halved into."""
    return {side for side in (16, 8, 4) if side <= lanes}


@pytest.mark.parametrize(("target", "lanes"), TARGETS)
def test_layouts(suite: Suite, target: str, lanes: int) -> None:
    """To blocks and back: whole vectors, every remainder, and channels that fill no block."""

    def body(x: SSAValue) -> SSAValue:
        return e.MulOp(x, constant(values(37, 1, 1, seed=1))).result

    cases: list[tuple[Attribute, Array]] = []
    for shape in ((1, 37, 2, 29), (2, 37, 1, 3), (3, 37, 4, 19))[: 3 if lanes == 16 else 1]:
        cases.append((typed(np.float32, *shape), values(*shape)))
    for shape in ((1, 37, 1, 31), (1, 37, 1, 2)):
        dims = (symbol("n"), 37, symbol("h"), symbol("w"))
        cases.append((typed(np.float32, *dims), values(*shape)))
    assert check_squares(suite, target, body, cases) == sides_up_to(lanes)


@pytest.mark.parametrize(("target", "lanes"), TARGETS)
def test_squares_that_overlap(suite: Suite, target: str, lanes: int) -> None:
    """Whole blocks of rows that end within a square, next to an operand that is read as it lies."""

    def body(x: SSAValue) -> SSAValue:
        return e.AddOp(x, constant(values(64, 1, 1, seed=1))).result

    cases: list[tuple[Attribute, Array]] = []
    shapes = ((1, 64, 5, 19), (1, 64, 2, 7), (2, 64, 3, 30), (1, 64, 9, lanes + 1))
    for shape in shapes[: 4 if lanes == 16 else 2]:
        cases.append((typed(np.float32, *shape), values(*shape)))
    assert lanes in check_squares(suite, target, body, cases)
    schedules = {
        op.schedule.data.get("overlap")
        for program in suite.programs
        for op in program.module.walk()
        if isinstance(op, FuncOp) and op.schedule is not None
    }
    assert {0, 1} <= schedules


@pytest.mark.parametrize(("target", "lanes"), TARGETS)
def test_matrices(suite: Suite, target: str, lanes: int) -> None:
    """Rows that become columns, with what is computed before and behind."""

    def body(x: SSAValue) -> SSAValue:
        zero = constant(np.zeros((), np.float32))
        positive = e.MaxOp(x, zero).result
        return e.AddOp(core.TransposeOp(positive, [1, 0]).result, zero).result

    cases: list[tuple[Attribute, Array]] = [
        (typed(np.float32, *shape), values(*shape)) for shape in ((37, 30), (5, 64), (4, 4))
    ]
    for shape in ((45, 20), (3, 18), (0, 7)):
        cases.append((typed(np.float32, symbol("r"), symbol("c")), values(*shape)))
    assert check_squares(suite, target, body, cases) == sides_up_to(lanes)


@pytest.mark.parametrize("shape", [(1000, 300), (513, 515), (2000, 65)])
def test_threads_share_squares(suite: Suite, shape: tuple[int, int]) -> None:
    """All but what is left at the ends, which may be a single square without a loop."""
    x = values(*shape)
    add(
        suite, "x86-64-v3", [typed(x.dtype, *shape)], transposed, x, threads=2, runs_scheduled=False
    )
    (artifact,) = suite.artifacts
    assert "part_number" in artifact.files[f"{artifact.name}.c"]
    suite.check()


def transposed(x: SSAValue) -> SSAValue:
    """A matrix, the other way round."""
    return core.TransposeOp(x, [1, 0]).result


@pytest.mark.parametrize(("target", "lanes"), TARGETS)
def test_types(suite: Suite, target: str, lanes: int) -> None:
    """Of every width; the least vectors have 64 bits, the largest squares 16 rows."""

    def body(x: SSAValue) -> SSAValue:
        return core.TransposeOp(x, [0, 2, 1]).result

    cases: list[tuple[Any, Array]] = []
    # Narrow ones have the largest squares: on each target one of them, with two of the others.
    types = (np.int8, np.uint16, np.float64, np.bool_, np.float16, np.int64)
    for dtype in types if EVERY_FORM else types[lanes // 8 % 2 :: 2]:
        x = (values(2, 43, 29) * 50).astype(dtype)
        cases.append((typed(dtype, *x.shape), x))
    sides = check_squares(suite, target, body, cases)
    assert {16, 8} <= sides <= {16, 8, 4}


@pytest.mark.parametrize(("target", "lanes"), TARGETS)
def test_few_columns(suite: Suite, target: str, lanes: int) -> None:
    """Rows of each number of elements, of every width and of sizes known at run time only."""

    def turned(x: SSAValue) -> SSAValue:
        return core.TransposeOp(x, [0, 2, 1]).result

    cases: list[tuple[Any, Array]] = []
    for columns in (2, 3, 4, 5, 6, 7, 9, 12, 16):
        x = (values(2, columns, 2 * lanes + 5) * 50).astype(np.int32)
        cases.append((typed(np.int32, *x.shape), x))
    for dtype in (np.int8, np.bool_, np.float16, np.int64):
        x = (values(3, 3, 37) * 50).astype(dtype)
        cases.append((typed(dtype, 3, 3, symbol("w")), x))
    for shape in ((1, 3, 3), (0, 3, 20), (2, 3, 0), (1, 3, 17)):
        x = values(*shape)
        cases.append((typed(np.float32, symbol("n"), 3, symbol("w")), x))
    assert check_squares(suite, target, turned, cases, is_blocked=False)
    rows = {
        op.rows
        for program in suite.programs
        for op in program.module.walk()
        if isinstance(op, TransposeOp)
    }
    assert {2, 3} <= rows


def test_few_columns_in_expressions(suite: Suite) -> None:
    """What is computed before and behind is so in vectors along the rows of the input."""

    def body(x: SSAValue) -> SSAValue:
        turned = core.TransposeOp(e.NegOp(x).result, [0, 2, 1]).result
        return e.AddOp(turned, constant(np.array(3, np.float32))).result

    cases: list[tuple[Any, Array]] = [(typed(np.float32, 2, 3, 70), values(2, 3, 70))]
    assert check_squares(suite, "x86-64-v4", body, cases, is_blocked=False) == {16}


def test_nearest_misses(suite: Suite) -> None:
    """
    Columns that stay columns, a sum with a matrix that lies as the result does, and fewer columns
    than the smallest vector has lanes.
    """

    def stays(x: SSAValue) -> SSAValue:
        return e.MaxOp(x, constant(np.zeros((), np.float32))).result

    def mixed(x: SSAValue) -> SSAValue:
        return e.AddOp(core.TransposeOp(x, [1, 0]).result, constant(values(16, 16, seed=1))).result

    def turned(x: SSAValue) -> SSAValue:
        return core.TransposeOp(x, [1, 0]).result

    for body, x in (
        (stays, values(16, 16)),
        (mixed, values(16, 16)),
        (turned, values(16, 3)),
    ):
        name = f"p{len(suite.programs)}"
        type_ = typed(x.dtype.type, *x.shape)
        suite.programs.append(BlockedProgram(name, module_of([type_], body), [x]))
    suite.check()
    ops = (op for program in suite.programs for op in program.module.walk())
    assert not any(isinstance(op, TransposeOp) for op in ops)
