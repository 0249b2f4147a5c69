"""Vectors in place of loops: the same numbers for every shape, also where nothing fits."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.linear import ConvOp, LayerNormOp, MatmulOp
from lowerdeck.dialects.core.reduce import (
    ArgReduceOp,
    CumulativeOp,
    PoolOp,
    ReduceOp,
    SoftmaxOp,
)
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.lowering.loops.unroll_tiles import UnrollTilesPass
from lowerdeck.lowering.loops.vectorize_loops import VectorizeLoopsPass

from ..programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    VECTOR_FLAGS,
    Suite,
    symbol,
    typed,
)
from ..targets import OTHER_TARGETS, SOME_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from ..test_layouts import add  # noqa: TID251  (as above)

Array = NDArray[Any]

SCHEDULES = {lanes: [VectorizeLoopsPass(lanes=lanes), UnrollTilesPass()] for lanes in (4, 8, 16)}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path, flags=VECTOR_FLAGS)


def values(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("lanes", [4, 16])
def test_rows(suite: Suite, lanes: int) -> None:
    """Reductions along rows, in lanes, with every kind of remainder."""
    for size in (1, 3, 4, 7, 29, 130):
        suite.on(
            lambda x, s, b: [
                SoftmaxOp(x, 1),
                LayerNormOp(x, s, b, 1e-5, 1),
                *(ReduceOp(kind, x, [1]) for kind in ("sum", "max", "min", "prod")),
            ],
            values((2, size)),
            values((size,), 1),
            values((size,), 2),
            scheduling=SCHEDULES[lanes],
            ulps=16,
            scale=1,
        )
    suite.check()


@pytest.mark.parametrize("lanes", [4, 16])
def test_columns(suite: Suite, lanes: int) -> None:
    """The innermost dimension stays, or what is left of it: its elements are the lanes."""
    for size in (3, 23, 70 if lanes == 4 else 150):
        suite.on(
            lambda x: [
                SoftmaxOp(x, 1),
                CumulativeOp("sum", x, 1),
                *(ReduceOp(kind, x, [0, 1], True) for kind in ("sum", "max")),
                ReduceOp("sum", x, [0, 2]),
            ],
            values((2, 5, size)),
            scheduling=SCHEDULES[lanes],
            ulps=16,
            scale=1,
        )
    suite.check()


def test_nan_and_infinity(suite: Suite) -> None:
    """Extrema in lanes keep NaN, wherever it is; -infinity alone is no number in a softmax."""
    x = values((6, 21))
    x[0, 3] = x[1, 17] = x[2, 20] = np.nan
    x[3, 4] = np.inf
    x[4, :] = -np.inf
    x[5, 2] = -np.inf
    suite.on(
        lambda x: [SoftmaxOp(x, 1), *(ReduceOp(kind, x, [1]) for kind in ("sum", "max", "min"))],
        x,
        scheduling=SCHEDULES[4],
        scale=1,
    )
    suite.check()


def test_threads(suite: Suite) -> None:
    """What remains of a loop that threads share is theirs to share as well."""
    suite.on(
        lambda x: [SoftmaxOp(x, 1), ReduceOp("sum", x, [0])],
        values((7, 45)),
        scheduling=SCHEDULES[4],
        threads=2,
        scale=1,
    )
    suite.check()


def test_unknown_sizes(suite: Suite) -> None:
    n = symbol("n")
    for size in (0, 2, 5, 27, 38):
        x = values((2, size))
        suite.add(
            [typed(np.float32, 2, n)],
            lambda x: [SoftmaxOp(x, 1), ReduceOp("max", x, [1]), ReduceOp("sum", x, [0])],
            x,
            scheduling=SCHEDULES[8],
            scale=1,
        )
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_sizes_that_may_be_one(tmp_path: Path, target: str) -> None:
    """Operands of other open sizes than each other: as long, or broadcast, both ways."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    m, n, k = symbol("m"), symbol("n"), symbol("k")
    ports = [typed(np.float32, 3, m), typed(np.float32, n, k)]

    def body(x: Any, y: Any) -> list[Any]:
        total = e.AddOp(x, y).result
        return [
            total,
            ReduceOp("max", e.MulOp(e.ExpOp(x).result, y).result, [1]),
            SoftmaxOp(total, 1),
        ]

    for columns in (0, 1, 5, 16, 37):
        shapes = ((columns, columns, 3), (1, columns, 3), (columns, 1, 1))
        for mine, others, rows in shapes if columns else shapes[:1]:
            add(suite, target, ports, body, values((3, mine)), values((rows, others), 1))
    fixed = [typed(np.float32, 6, n), typed(np.float32, 20)]
    for columns in (1, 20):
        x, y = values((6, columns)), values((20,), 1)
        add(suite, target, fixed, lambda x, y: [e.AddOp(x, y)], x, y)
    suite.check()


def test_what_stays(suite: Suite) -> None:
    """Half precision and f64, windows that overlap, rows of products."""
    schedule = SCHEDULES[4]
    for dtype in (np.float64, np.float16):
        x = values((2, 9)).astype(dtype)
        suite.on(lambda x: [SoftmaxOp(x, 1), ReduceOp("sum", x, [1])], x, scheduling=schedule)
    window = functools.partial(
        PoolOp, kernel=[3], strides=[1], dilations=[1], pads_begin=[1], pads_end=[1]
    )
    suite.on(
        lambda x: [window("max", x), window("average", x)],
        values((1, 2, 19)),
        scheduling=schedule,
        scale=1,
    )
    suite.on(MatmulOp, values((3, 6)), values((6, 19)), scheduling=schedule, scale=1)
    suite.on(
        lambda x, y: e.AddOp(e.ExpOp(x).result, y),
        values((3, 19)),
        values((3, 19)),
        scheduling=schedule,
    )
    suite.check()


def resized(x: SSAValue, size: int) -> SSAValue:
    """Linear interpolation along the last dimension: weighted sums of gathered neighbors."""
    (columns,) = (dim.value for dim in dims_of(x)[-1:])
    assert columns is not None
    place = (np.arange(size) + 0.5) * columns / size - 0.5
    low = np.floor(place).astype(np.int64)
    weight = (place - low).astype(np.float32)
    axis = len(dims_of(x)) - 1
    left, right = (
        t.GatherOp(x, ConstantOp.of(np.clip(at, 0, columns - 1)).result, axis).result
        for at in (low, low + 1)
    )
    first = e.MulOp(left, ConstantOp.of(np.float32(1) - weight).result).result
    return e.AddOp(first, e.MulOp(right, ConstantOp.of(weight).result).result).result


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_every_target(tmp_path: Path, target: str) -> None:
    """What has no tiles: rows, columns, running sums, interpolation, maps and movements."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for rows, columns in ((1, 1), (3, 7), (5, 29), (2, 130)):
        x, scale, shift = values((2, rows, columns)), values((columns,), 1), values((columns,), 2)
        ports = [typed(np.float32, *array.shape) for array in (x, scale, shift)]

        def body(x: Any, s: Any, b: Any) -> list[Any]:
            return [
                SoftmaxOp(x, 2),
                SoftmaxOp(x, 1),
                LayerNormOp(x, s, b, 1e-5, 2),
                *(ReduceOp(kind, x, [2]) for kind in ("sum", "max", "min", "prod")),
                *(ReduceOp(kind, x, [0, 1], True) for kind in ("sum", "max")),
                ReduceOp("sum", x, [0, 2]),
                ArgReduceOp("max", x, 2),
                CumulativeOp("sum", x, 1),
                CumulativeOp("sum", x, 2),
            ]

        def maps(x: Any, s: Any, b: Any, size: int = 2 * columns + 1) -> list[Any]:
            y = e.AddOp(e.MulOp(x, s).result, e.TanhOp(b).result).result
            z = e.ExpOp(e.NegOp(e.AbsOp(y).result).result).result
            last = t.TransposeOp(z, [2, 0, 1]).result
            return [
                z,
                e.ErfOp(last).result,
                t.ConcatOp([z, y, x], 2).result,
                t.ConcatOp([y, z], 1).result,
                resized(e.SigmoidOp(y).result, size),
                t.PadOp(y, [0, 1, 2], [1, 0, 3]).result,
                e.SelectOp(e.CompareOp(Predicate.GT, x, b).result, y, x).result,
            ]

        add(suite, target, ports, body, x, scale, shift)
        add(suite, target, ports, maps, x, scale, shift)
    suite.check()


@pytest.mark.parametrize("lanes", [4, 16])
@pytest.mark.parametrize("is_open", [False, True])
def test_loops_that_end_before_they_begin(suite: Suite, lanes: int, *, is_open: bool) -> None:
    """Taps that reach no element of a narrow image: there are no vectors, and no remainder."""
    for width in (1, 2, 3, 5, 17):
        for taps in (5, 9):
            x, w = values((1, 4, 2, width)), values((2, 2, 3, taps), 1)
            types = [
                typed(np.float32, 1, 4, symbol("h"), symbol("w"))
                if is_open
                else typed(x.dtype, *x.shape),
                typed(w.dtype, *w.shape),
            ]
            pads = [1, taps // 2]
            suite.add(
                types,
                lambda x, w, pads=pads: ConvOp(
                    x, w, strides=[1, 1], dilations=[1, 1], pads_begin=pads, pads_end=pads, groups=2
                ),
                x,
                w,
                scheduling=SCHEDULES[lanes],
                ulps=16,
                scale=1,
            )
    suite.check()
