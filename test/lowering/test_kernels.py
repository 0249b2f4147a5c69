"""Every op of core that is not elementwise, in all three ways."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp, IotaOp, scalar
from lowerdeck.dialects.core.enums import ScatterReduction
from lowerdeck.dialects.core.linear import (
    BatchNormOp,
    ConvOp,
    ConvTransposeOp,
    LayerNormOp,
    MatmulOp,
)
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.types import f32, f64, i32
from lowerdeck.dialects.dims import Expr, ExprLike, minimum

from .forms import some  # noqa: TID251  (these are tests, not the folder of sources)
from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Suite,
    symbol,
    typed,
)

Array = NDArray[Any]

FLOATS = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)
INTEGERS = tuple(np.dtype(f"{sign}{size}").type for sign in "iu" for size in (1, 2, 4, 8))
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, np.bool_)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def values(shape: Sequence[int], dtype: Any = np.float32, seed: int = 0) -> Array:
    """Random numbers of moderate size; integers overflow when they are summed."""
    rng = np.random.default_rng(seed + sum(shape))
    if dtype is np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def with_specials(array: Array) -> Array:
    """The same with NaN, infinities and zeros of both signs strewn in."""
    result = array.copy()
    for k, number in enumerate((np.nan, np.inf, -np.inf, -0.0, 0.0)):
        result.reshape(-1)[k * 3 % max(result.size, 1) : k * 3 % max(result.size, 1) + 1] = number
    return result


# Constants and symbols


def test_constants_and_dims(suite: Suite) -> None:
    n, m = symbol("n"), symbol("m")
    x = values((3, 5))
    dims = [n, m, n * m - 7, (n + m) // 2, n % 2, minimum(n, m), Expr.const(-(2**40)), -n // 2]
    suite.add(
        [typed(np.float32, n, m)],
        lambda x: [
            FromDimsOp(dims),
            FromDimsOp(dims, [2, 4]),
            FromDimsOp([n - m], []),
            IotaOp([n, 2, m], 2),
            IotaOp([n, m], 0),
            IotaOp([4], 0),
            IotaOp([0, 3], 1),
        ],
        x,
    )
    for dtype in ALL:
        suite.on(lambda x, c=values((2, 3), dtype): [x, ConstantOp.of(c)], x)
    suite.on(lambda: [ConstantOp.of(values((0, 3))), IotaOp([1], 0)])
    suite.check()


def test_returned_as_they_are(suite: Suite) -> None:
    """Arguments, views and constants as results, some of them twice."""
    x, y = values((2, 3)), values((2, 3), seed=1)
    suite.on(lambda x, y: [y, x, x], x, y)
    suite.on(lambda x, y: [t.ReshapeOp(x, [6]), t.ReshapeOp(x, [3, 2]), e.AddOp(x, y)], x, y)

    def twice(x: Any, y: Any) -> Any:
        total = e.AddOp(x, y)
        return [total, t.ReshapeOp(total.result, [6]), total, e.NegOp(total.result)]

    suite.on(twice, x, y)
    suite.check()


# Data movement


def test_movement_of_every_type(suite: Suite) -> None:
    for dtype in ALL:
        x = values((2, 3, 4), dtype)
        suite.on(
            lambda x: [
                t.TransposeOp(x, [2, 0, 1]),
                t.ReshapeOp(x, [4, 6]),
                t.BroadcastOp(x, [2, 2, 3, 4]),
                t.SliceOp(x, [1, 2, 3], [1, 2, 2], [1, -2, -1]),
                t.PadOp(x, [1, 0, 2], [0, 1, 1]),
                t.PadOp(x, [1, 2, 3], [1, 2, 3], mode="reflect"),
                t.ConcatOp([x, x, t.SliceOp(x, [0, 0, 0], [2, 1, 4]).result], 1),
            ],
            x,
        )
    suite.check()


def test_transpose_and_reshape(suite: Suite) -> None:
    suite.on(lambda x: t.TransposeOp(x, []), values(()))
    suite.on(lambda x: t.TransposeOp(x, [1, 0]), values((0, 3)))
    suite.on(lambda x: t.TransposeOp(x, [3, 1, 0, 2]), values((1, 7, 1, 5)))
    suite.on(lambda x: t.ReshapeOp(x, [0, 9]), values((3, 0)))
    suite.on(lambda x: t.ReshapeOp(x, []), values((1, 1)))
    # Reshapes between maps are views; a transpose of a view reads through it.
    suite.on(
        lambda x: t.TransposeOp(
            t.ReshapeOp(t.TransposeOp(x, [1, 0]).result, [2, 6]).result, [1, 0]
        ),
        values((4, 3)),
    )
    n = symbol("n")
    suite.add(
        [typed(np.float32, n, 6)],
        lambda x: [t.ReshapeOp(x, [n * 2, 3]), t.ReshapeOp(x, [6, n]), t.TransposeOp(x, [1, 0])],
        values((5, 6)),
    )
    suite.check()


def test_broadcast(suite: Suite) -> None:
    for shape, dims in (((), [2, 3]), ((1, 3), [4, 3]), ((3, 1), [2, 3, 0]), ((5,), [1, 5])):
        suite.on(lambda x, dims=dims: t.BroadcastOp(x, dims), values(shape))
    n, m = symbol("n"), symbol("m")
    for size in (1, 4):
        suite.add(
            [typed(np.float32, n, 3), typed(np.float32, m)],
            lambda x, y: t.BroadcastOp(x, [2, m, 3]),
            values((size, 3)),
            values((4,)),
        )
    suite.check()


def test_slice(suite: Suite) -> None:
    x = values((7, 5))
    for starts, sizes, steps in (
        ([0, 0], [7, 5], [1, 1]),
        ([6, 4], [7, 5], [-1, -1]),
        ([1, 4], [3, 2], [2, -4]),
        ([3, 0], [0, 5], [1, 1]),
        ([6, 0], [1, 1], [-3, 9]),
        ([5, 1], [2, 2], [-5, 3]),
    ):
        suite.on(lambda x, rule=(starts, sizes, steps): t.SliceOp(x, *rule), x)
    n = symbol("n")
    for size in (6, 1):
        suite.add(
            [typed(np.float32, n, 5)],
            lambda x: [
                t.SliceOp(x, [n - 1, 0], [n, 5], [-1, 1]),
                t.SliceOp(x, [0, n // 3], [(n + 1) // 2, 3], [2, 1]),
            ],
            values((size, 5)),
        )
    suite.check()


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(suite: Suite, mode: str) -> None:
    x = values((2, 3, 4))
    for begin, end in (
        ([0, 0, 0], [0, 0, 0]),
        ([1, 2, 3], [1, 2, 3]),
        ([0, 7, 0], [0, 0, 9]),
    ):
        suite.on(lambda x, pads=(begin, end): t.PadOp(x, *pads, mode=mode), x)
    suite.on(lambda x: t.PadOp(x, [2], [3], mode=mode), values((1,)))
    n = symbol("n")
    for size in (1, 2, 5):
        suite.add(
            [typed(np.float32, n)], lambda x: t.PadOp(x, [n], [n - 1], mode=mode), values((size,))
        )
    if mode == "constant":
        for dtype in ALL:
            suite.on(
                lambda x, v: t.PadOp(x, [1], [2], v), values((3,), dtype), values((), dtype, 9)
            )
        suite.on(lambda x: t.PadOp(x, [2, 0], [0, 1], scalar(-1.5, f32).result), values((0, 2)))
        # The padding of a value that is computed on the spot.
        suite.on(lambda x: t.PadOp(e.SqrtOp(x).result, [1], [1]), abs(values((4,))))
    suite.check()


def test_concat(suite: Suite) -> None:
    a, b, c = values((2, 3, 4)), values((2, 1, 4), seed=1), values((2, 0, 4))
    suite.on(lambda a, b, c: t.ConcatOp([a, b, c, a], 1), a, b, c)
    suite.on(lambda a: t.ConcatOp([a], 2), a)
    suite.on(lambda a: [t.ConcatOp([a, a], 0), t.ConcatOp([a, e.NegOp(a).result], 2)], a)
    # Maps behind a concatenation are computed where its elements are made.
    suite.on(lambda a, b: e.AbsOp(t.ConcatOp([e.NegOp(a).result, b], 1).result), a, b)
    # What is gathered of one part is joined with the others, also where an index has to be checked.
    for places in ([3, 0, -1, 0], [0, 4, 1, 1]):
        suite.on(
            lambda a, b, i: t.ConcatOp([b, e.NegOp(t.GatherOp(a, i, 2).result).result, a], 1),
            *(a, b, np.array(places)),
            may_fail=True,
        )
    n, m = symbol("n"), symbol("m")
    suite.add(
        [typed(np.float32, n, 2), typed(np.float32, m, 2)],
        lambda x, y: t.ConcatOp([x, y, x], 0),
        values((3, 2)),
        values((0, 2)),
    )
    suite.check()


def test_split(suite: Suite) -> None:
    x = values((3, 7, 2))
    for dtype in ALL:
        suite.on(lambda x: t.SplitOp(x, 1, [2, 4, 1]).results, values((3, 7), dtype))
    suite.on(lambda x: t.SplitOp(x, 0, [3]).results, x)
    suite.on(lambda x: t.SplitOp(x, 2, [0, 2, 0]).results, x)

    def mixed(x: Any) -> Any:
        """Parts that are used by maps, by sums, twice, and not at all."""
        a, _, c, d = t.SplitOp(e.NegOp(x).result, 1, [2, 1, 2, 2]).results
        return [e.AddOp(a, c), ReduceOp("sum", d, [0, 1]), a, t.ConcatOp([d, a], 1)]

    suite.on(mixed, x)
    n, m = symbol("n"), symbol("m")
    for size in (4, 5, 0):
        suite.add(
            [typed(np.float32, n, 3)],
            lambda x: t.SplitOp(x, 0, [n // 2, n // 2]).results,
            values((size, 3)),
            may_fail=True,
        )
        suite.add(
            [typed(np.float32, n), typed(np.float32, m)],
            lambda x, y: t.SplitOp(x, 0, [m, n - m]).results,
            values((4,)),
            values((size,)),
            may_fail=True,
        )
    suite.check()


# Indices from data


def test_gather_of_nothing(suite: Suite) -> None:
    index = np.array([[1, 0], [-1, 2]])
    suite.on(lambda x, i: t.GatherOp(x, i, 0), values((3, 0)), index)
    suite.check()


def test_gather(suite: Suite) -> None:
    x = values((4, 5, 3))
    for dtype in INTEGERS:
        signed = dtype(-1).item() if np.issubdtype(dtype, np.signedinteger) else 2
        indices = np.array([[0, 3, 2], [1, signed, 0]], dtype)
        suite.on(lambda x, i: [t.GatherOp(x, i, axis) for axis in (0, 1, 2)], x, indices % 3)
        suite.on(lambda x, i: t.GatherOp(x, i, 0), x, indices)
    suite.on(lambda x, i: t.GatherOp(x, i, 1), x, np.array(-5))
    suite.on(lambda x, i: t.GatherOp(x, i, 1), x, np.zeros((0, 2), np.int64))
    suite.on(lambda x, i: t.GatherOp(x, i, 0), values((0, 3)), np.zeros((0,), np.int32))
    for dtype in (np.bool_, np.float16, np.uint8):
        suite.on(lambda x, i: t.GatherOp(x, i, 0), values((4,), dtype), np.array([-4, 3, 1]))
    # A chain behind it, and an index that is computed.
    suite.on(
        lambda x, i: e.NegOp(t.GatherOp(x, e.AddOp(i, i).result, 0).result), x, np.array([1, 0, -1])
    )
    suite.check()


def test_gather_elements_and_nd(suite: Suite) -> None:
    x = values((3, 4))
    indices = np.array([[0, -1, 1, 2], [2, 2, 0, -3]])
    suite.on(lambda x, i: t.GatherElementsOp(x, i, 0), x, indices)
    suite.on(lambda x, i: t.GatherElementsOp(x, i, 1), x, indices[:, :3].astype(np.int32))
    for indices, batch in (
        (np.array([[0, 1], [-1, 3]]), 0),
        (np.array([[2], [0], [-3]]), 0),
        (np.array([[[0], [3]], [[1], [-1]], [[2], [2]]]), 1),
        (np.zeros((2, 0), np.int64), 0),
        (np.zeros((3, 2, 0), np.int64), 1),
        (np.array([1, 2]), 0),
    ):
        suite.on(lambda x, i, b=batch: t.GatherNdOp(x, i, b), x, indices)
    suite.check()


@pytest.mark.parametrize("reduction", list(ScatterReduction))
def test_scatter(suite: Suite, reduction: str) -> None:
    for dtype in some(NUMBERS if reduction != "none" else ALL):
        x, updates = values((3, 4), dtype), values((2, 4), dtype, 5)
        indices = np.array([[0, -1, 1, 2], [0, 2, 0, -2]])
        suite.on(
            lambda x, i, u: [
                t.ScatterElementsOp(x, i, u, 0, reduction),
                t.ScatterElementsOp(x, i, u, 1, reduction),
            ],
            x,
            indices,
            updates,
        )
        suite.on(
            lambda x, i, u: t.ScatterNdOp(x, i, u, reduction),
            x,
            np.array([[1], [-2]]),
            updates,
        )
        suite.on(
            lambda x, i, u: t.ScatterNdOp(x, i, u, reduction),
            x,
            np.array([[1, 2], [1, 2], [-1, 0]]),
            values((3,), dtype, 6),
        )
    x = with_specials(values((4,)))
    suite.on(
        lambda x, i, u: t.ScatterElementsOp(x, i, u, 0, reduction),
        x,
        np.array([0, 1, 2, 3, 3]),
        with_specials(values((5,), seed=1)),
    )
    suite.on(
        lambda x, i, u: t.ScatterNdOp(x, i, u, reduction),
        values((2, 2)),
        np.zeros((3, 0), np.int64),
        values((3, 2, 2)),
    )
    suite.check()


def test_top_k(suite: Suite) -> None:
    for dtype in NUMBERS:
        x = values((2, 7, 3), dtype)
        x[0, :4, 0] = x[0, 5, 0]
        if dtype in FLOATS:
            x[1, 2, 1], x[1, 4, 1], x[1, 0, 1] = np.nan, np.nan, np.inf

        def body(x: Any) -> Any:
            results: list[Any] = []
            for k, axis, largest in ((7, 1, True), (3, 1, False), (1, 0, True), (0, 2, True)):
                results += t.TopKOp(x, k, axis, largest).results
            return results

        suite.on(body, x)
    n = symbol("n")
    for count in (0, 1, 5, 13):
        x = values((count,), np.int32)
        suite.add([typed(np.int32, n)], lambda x: t.TopKOp(x, n // 2, 0).results, x)
        suite.add([typed(np.int32, n)], lambda x: t.TopKOp(x, n, 0, False).results, x)
    suite.check()


def test_top_k_side_by_side(suite: Suite) -> None:
    """More than a few of each, with equal elements and what is no number."""
    x = np.rint(4 * values((2, 60, 16)))
    x[0, 7, 2], x[0, 20, 2], x[1, 30, 5], x[1, 31, 5] = np.nan, np.nan, np.inf, -np.inf
    for k in (9, 12):
        suite.on(lambda x, k=k: t.TopKOp(x, k, 1, k == 9).results, x)
    suite.check()


@pytest.mark.parametrize("count", [5, 16, 70, 300])
def test_top_k_of_many(suite: Suite, count: int) -> None:
    """Sorted, the other way round, all alike, few different ones and random ones."""
    rising = np.arange(count, dtype=np.float32)
    numbers = np.random.default_rng(5)
    few = numbers.integers(0, 4, count).astype(np.float32)
    x = np.stack([rising, -rising, rising * 0, few, values((count,))])
    for k in sorted({1, 2, 3, 4, 7, 8, 64, count - 6, count - 1, count}):
        if 0 < k <= count:
            suite.on(lambda x, k=k: t.TopKOp(x, k, 1, k % 2 == 0).results, x)
    for dtype in some(ALL):
        bits = numbers.integers(0, 256, (count, np.dtype(dtype).itemsize), np.uint8)
        x = bits[:, 0] > 99 if dtype == np.bool_ else bits.view(dtype).reshape(count)
        for k in (count, max(count // 3, 1)):
            for largest in (True, False):
                suite.on(lambda x, k=k, up=largest: t.TopKOp(x, k, 0, up).results, x)
    suite.check()


def test_nonzero(suite: Suite) -> None:
    """The size of the result depends on data, so it comes from the allocator."""

    def body(x: Any) -> Any:
        count = t.CountNonzeroOp(x)
        BindSymbolsOp(count.result, ["count"])
        found = t.NonzeroOp(x, symbol("count"))
        return [found, e.AddOp(found.result, found.result), count]

    for dtype in ALL:
        x = values((3, 4), dtype)
        x[1] = 0
        suite.on(body, x)
    suite.on(body, with_specials(values((11,))))
    for shape in ((), (0,), (2, 0, 3)):
        suite.on(body, values(shape))
    suite.on(body, np.zeros((4,), np.float32))
    suite.check()


# Reductions


def test_reduce(suite: Suite) -> None:
    for dtype, kind in some(list(itertools.product(NUMBERS, ("sum", "prod", "max", "min")))):
        x = values((2, 3, 5), dtype)
        suite.on(
            lambda x, kind=kind: [
                ReduceOp(kind, x, [0, 1, 2]),
                ReduceOp(kind, x, [1], True),
                ReduceOp(kind, x, [0, 2]),
                ReduceOp(kind, x, []),
                e.NegOp(ReduceOp(kind, e.MulOp(x, x).result, [2]).result),
            ],
            x,
            scale=1,
        )
    suite.check()


def test_reduce_special(suite: Suite) -> None:
    kinds = ("sum", "prod", "max", "min")
    for dtype in NUMBERS:
        empty = np.zeros((2, 0), dtype)
        suite.on(lambda x: [ReduceOp(k, x, [1]) for k in kinds], empty)
        suite.on(lambda x: [ReduceOp(k, x, [0]) for k in kinds], empty)
    for dtype in FLOATS:
        for position in range(5):
            x = np.roll(np.array([1, 2, np.nan, -np.inf, np.inf], dtype), position)
            suite.on(lambda x: [ReduceOp(k, x, [0]) for k in kinds], x)
        suite.on(lambda x: [ReduceOp(k, x, [0]) for k in kinds], np.array([np.inf, 1], dtype))
    x = values((3, 4), np.bool_)
    suite.on(lambda x: [ReduceOp(k, x, [1]) for k in ("max", "min")], x)
    suite.on(lambda x: [ReduceOp(k, x, [1]) for k in ("max", "min")], np.zeros((2, 0), np.bool_))
    n = symbol("n")
    for size in (0, 1, 7):
        suite.add(
            [typed(np.float32, n, 3)],
            lambda x: [ReduceOp(k, x, [0]) for k in kinds],
            values((size, 3)),
            scale=1,
        )
    suite.check()


def test_arg_reduce(suite: Suite) -> None:
    for dtype in NUMBERS:
        x = values((3, 6), dtype)
        x[0] = x[0, 2]
        if dtype in FLOATS:
            x[1, 2], x[1, 4] = np.nan, np.nan
        suite.on(
            lambda x: [
                ArgReduceOp(kind, x, axis, keep, last)
                for kind in ("max", "min")
                for axis, keep in ((0, False), (1, True))
                for last in (False, True)
            ],
            x,
        )
    suite.on(lambda x: ArgReduceOp("max", x, 0), values((1,)))
    suite.on(lambda x: ArgReduceOp("max", x, 1), np.zeros((0, 3), np.float32))
    n = symbol("n")
    suite.add([typed(np.float32, n)], lambda x: ArgReduceOp("min", x, 0), values((5,)))
    # There is no best one of nothing, whether or not there are results.
    for shape in ((0,), (0, 3), (0, 0)):
        empty = np.zeros(shape, np.float32)
        suite.on(lambda x: ArgReduceOp("max", x, 0), empty, may_fail=True)
        open_ = typed(np.float32, n, *shape[1:])
        suite.add([open_], lambda x: ArgReduceOp("min", x, 0), empty, may_fail=True)
    suite.check()
    assert sum(program.is_refused for program in suite.programs) == 6


def test_softmax_and_cumulative(suite: Suite) -> None:
    for dtype in FLOATS:
        x = (values((3, 4, 5), dtype) * dtype(8)).astype(dtype)
        suite.on(lambda x: [SoftmaxOp(x, axis) for axis in range(3)], x)
    suite.on(lambda x: SoftmaxOp(x, 0), np.array([np.inf, 1, -np.inf], np.float32))
    suite.on(lambda x: SoftmaxOp(x, 0), np.array([-np.inf, 1, -np.inf], np.float32))
    suite.on(lambda x: SoftmaxOp(x, 1), np.zeros((2, 0), np.float32))
    suite.on(lambda x: e.NegOp(SoftmaxOp(e.NegOp(x).result, 0).result), values((1, 3)))
    for dtype in NUMBERS:
        suite.on(
            lambda x: [
                CumulativeOp(kind, x, axis, exclusive, reverse)
                for kind, axis in (("sum", 0), ("prod", 1))
                for exclusive in (False, True)
                for reverse in (False, True)
            ],
            values((3, 4), dtype),
            scale=1,
        )
    suite.on(lambda x: CumulativeOp("sum", x, 1), np.zeros((2, 0), np.float32))
    suite.check()


WINDOWS: tuple[dict[str, Any], ...] = (
    {"kernel": [1, 1]},
    {"kernel": [3, 2]},
    {"kernel": [3, 3], "strides": [2, 3]},
    {"kernel": [2, 2], "dilations": [3, 2]},
    {"kernel": [3, 3], "pads_begin": [1, 2], "pads_end": [2, 0]},
    {"kernel": [2, 3], "strides": [2, 1], "pads_begin": [1, 1], "pads_end": [1, 1]},
    {"kernel": [2, 2], "strides": [5, 5], "dilations": [2, 2], "pads_end": [3, 3]},
    {"kernel": [3, 3], "pads_begin": [-1, 1], "pads_end": [1, -2]},
)


def window(rule: dict[str, Any], rank: int = 2) -> dict[str, Any]:
    """The rule with everything that it leaves out."""
    one, zero = [1] * rank, [0] * rank
    return {"strides": one, "dilations": one, "pads_begin": zero, "pads_end": zero, **rule}


def test_pool(suite: Suite) -> None:
    kinds = ("max", "sum", "average")
    for dtype in some(NUMBERS):
        x = values((2, 3, 7, 6), dtype)
        suite.on(
            lambda x: [
                PoolOp(kind, x, **window(rule), count_pads=count)
                for kind in kinds
                for rule in WINDOWS[2:6]
                for count in ((False, True) if kind == "average" else (False,))
            ],
            x,
            scale=1,
        )
    for rule in WINDOWS[:-1]:
        x = with_specials(values((1, 2, 7, 6)))
        suite.on(lambda x, rule=rule: [PoolOp(k, x, **window(rule)) for k in kinds], x, scale=1)
        x.flat[::3] = np.nan
        suite.on(lambda x, rule=rule: [PoolOp("max", x, **window(rule), keeps_first=True)], x)
    suite.check()


def test_pool_overhang(suite: Suite) -> None:
    """The last window hangs over by one; that does not count."""
    for overhang in ([0, 0], [1, 0], [1, 1]):
        rule = {"kernel": [3, 2], "strides": [2, 2], "pads_begin": [1, 0], "pads_end": [1, 1]}
        suite.on(
            lambda x, o=overhang, r=rule: [
                PoolOp("average", x, **window(r), overhang=o, count_pads=count)
                for count in (False, True)
            ],
            values((1, 1, 6, 5)),
            scale=1,
        )
    for rank in (1, 3):
        x = values((1, 2, *[5, 4, 6][:rank]))
        rule = {"kernel": [2] * rank, "pads_begin": [1] * rank}
        suite.on(
            lambda x, r=window(rule, rank): [PoolOp(k, x, **r) for k in ("max", "average")],
            x,
            scale=1,
        )
    n, m = symbol("n"), symbol("m")
    for size in ((5, 6), (2, 3)):
        suite.add(
            [typed(np.float32, 1, 2, n, m)],
            lambda x: [
                PoolOp("max", x, kernel=[n, m], **window({})),
                PoolOp(
                    "average",
                    x,
                    **window(
                        {"kernel": [3, 3], "strides": [2, 2], "pads_begin": [1, n % 2]}
                        | {"pads_end": [1, 1]}
                    ),
                ),
            ],
            values((1, 2, *size)),
            scale=1,
        )
    suite.check()


# Contractions: 16 ulp of the largest result, since sums of products cancel.


def test_matmul(suite: Suite) -> None:
    for dtype in NUMBERS:
        suite.on(MatmulOp, values((3, 5), dtype), values((5, 2), dtype, 1), ulps=16, scale=1)
    for a, b in (
        ((1, 1), (1, 1)),
        ((2, 0), (0, 3)),
        ((0, 2), (2, 3)),
        ((4, 1, 2, 3), (5, 3, 7)),
        ((2, 3), (4, 3, 1)),
        ((1, 3, 2), (6, 2, 2)),
        ((0, 3, 2), (1, 2, 2)),
    ):
        suite.on(MatmulOp, values(a), values(b, seed=1), ulps=16, scale=1)
    n, k, b = symbol("n"), symbol("k"), symbol("b")
    for batch in (1, 4):
        suite.add(
            [typed(np.float32, b, n, k), typed(np.float32, 4, k, 2)],
            lambda x, y: e.AddOp(MatmulOp(x, y).result, scalar(1.5, f32).result),
            values((batch, 3, 5)),
            values((4, 5, 2)),
            ulps=16,
            scale=1,
        )
    # An epilogue reads the product and what broadcasts to it.
    suite.on(
        lambda x, y, z: e.MaxOp(e.AddOp(MatmulOp(x, y).result, z).result, scalar(0, f32).result),
        values((3, 5)),
        values((5, 2)),
        values((2,)),
        ulps=16,
        scale=1,
    )
    suite.check()


def test_conv(suite: Suite) -> None:
    for dtype in NUMBERS:
        x, w, b = values((2, 4, 5, 6), dtype), values((6, 2, 3, 2), dtype), values((6,), dtype)
        rule = window({"pads_begin": [1, 0], "pads_end": [0, 2], "strides": [1, 2]})
        suite.on(lambda x, w, b, r=rule: ConvOp(x, w, b, **r, groups=2), x, w, b, ulps=16, scale=1)
    for rule in WINDOWS:
        options = window(rule)
        kernel = options.pop("kernel")
        suite.on(
            lambda x, w, r=options: ConvOp(x, w, **r),
            values((1, 3, 8, 7)),
            values((2, 3, *kernel)),
            ulps=16,
            scale=1,
        )
    suite.check()


def test_conv_shapes(suite: Suite) -> None:
    def conv(shape: Sequence[int], weight: Sequence[int], **rule: Any) -> None:
        groups = rule.pop("groups", 1)
        options = window(rule, len(shape) - 2)
        suite.on(
            lambda x, w: e.AbsOp(ConvOp(x, w, **options, groups=groups).result),
            values(shape),
            values(weight, seed=2),
            ulps=16,
            scale=1,
        )

    conv((1, 1, 1), (1, 1, 1))
    conv((2, 3, 11), (5, 3, 4), strides=[3], pads_begin=[2], dilations=[2])
    conv((1, 2, 3, 4, 5), (3, 2, 2, 2, 2), pads_begin=[1, 0, 1], strides=[1, 2, 1])
    conv((1, 5, 6, 6), (5, 1, 3, 3), groups=5, pads_begin=[1, 1], pads_end=[1, 1])
    conv((1, 6, 4, 4), (9, 2, 1, 1), groups=3)
    conv((0, 2, 4), (3, 2, 2))
    conv((1, 2, 2), (3, 2, 4), pads_begin=[3], pads_end=[3])
    conv((1, 2, 3), (3, 2, 2), pads_begin=[7], pads_end=[5], strides=[4])
    # The whole input is padding.
    conv((1, 2, 0), (3, 2, 2), pads_begin=[2], pads_end=[2])
    conv((1, 0, 4), (3, 0, 2))
    conv((1, 2, 4), (0, 2, 2))
    suite.check()


def test_dynamic_conv(suite: Suite) -> None:
    """SAME padding of an unknown size is an expression of it."""
    n, h, w = symbol("n"), symbol("h"), symbol("w")

    def total(size: Expr) -> Expr:
        return ((size + 1) // 2 - 1) * 2 + 3 - size

    def pads(size: Expr) -> tuple[Expr, Expr]:
        whole = total(size)
        return whole // 2, whole - whole // 2

    (top, bottom), (left, right) = pads(h), pads(w)

    def body(x: Any, k: Any) -> Any:
        y = ConvOp(
            x, k, strides=[2, 2], dilations=[1, 1], pads_begin=[top, left], pads_end=[bottom, right]
        )
        return e.MaxOp(y.result, scalar(0.0, f32).result)

    for size in ((1, 5, 6), (2, 8, 3), (3, 1, 1)):
        suite.add(
            [typed(np.float32, n, 2, h, w), typed(np.float32, 3, 2, 3, 3)],
            body,
            values((size[0], 2, *size[1:])),
            values((3, 2, 3, 3)),
            ulps=16,
            scale=1,
        )
    suite.check()


def test_conv_transpose(suite: Suite) -> None:
    def conv(
        dtype: Any, shape: Sequence[int], weight: Sequence[int], groups: int = 1, **rule: Any
    ) -> None:
        rank = len(shape) - 2
        options: dict[str, Any] = {"output_padding": [0] * rank, **window(rule, rank)}
        bias = values((weight[1] * groups,), dtype, 3)
        suite.on(
            lambda x, w, b: [
                ConvTransposeOp(x, w, b, **options, groups=groups),
                e.NegOp(ConvTransposeOp(x, w, **options, groups=groups).result),
            ],
            values(shape, dtype),
            values(weight, dtype, 2),
            bias,
            ulps=16,
            scale=1,
        )

    # Half precision is widened before.
    for dtype in (np.float64, np.float32, *INTEGERS):
        conv(dtype, (2, 4, 3, 4), (4, 3, 2, 3), 2, strides=[2, 1], output_padding=[1, 0])
    conv(np.float32, (1, 2, 5), (2, 3, 3), strides=[2], pads_begin=[1], pads_end=[1])
    conv(np.float32, (1, 2, 3), (2, 1, 2), dilations=[3], output_padding=[2], strides=[3])
    conv(np.float32, (1, 2, 3, 2, 2), (2, 1, 2, 1, 3), strides=[1, 2, 3])
    conv(np.float32, (1, 1, 1), (1, 1, 1))
    conv(np.float32, (1, 2, 3), (2, 0, 1))
    conv(np.float32, (1, 2, 6), (2, 1, 3), pads_begin=[4], pads_end=[2])
    conv(np.float32, (1, 2, 3), (2, 1, 3), pads_begin=[-2], pads_end=[-1])
    n = symbol("n")
    suite.add(
        [typed(np.float32, 1, 2, n), typed(np.float32, 2, 3, 4)],
        lambda x, w: ConvTransposeOp(
            x, w, strides=[2], dilations=[1], pads_begin=[1], pads_end=[n % 2], output_padding=[0]
        ),
        values((1, 2, 5)),
        values((2, 3, 4)),
        ulps=16,
        scale=1,
    )
    suite.check()


def test_normalization(suite: Suite) -> None:
    for dtype in FLOATS:
        x = values((3, 4, 5), dtype)
        scale, bias = values((4,), dtype), values((4,), dtype, 1)
        variance = abs(values((4,), dtype, 2))
        mean, factors = values((4,), dtype, 3), abs(values((3,), dtype, 4))
        suite.on(
            lambda x, s, b, m, v, f: [
                BatchNormOp(x, s, b, m, v, 1e-3, 1),
                BatchNormOp(x, f, f, f, f, 1e-3, 0),
            ],
            x, scale, bias, mean, variance, factors,
            ulps=8, scale=1,
        )  # fmt: skip
        suite.on(
            lambda x, s, b: [
                LayerNormOp(x, s, b, 1e-5, 1),
                LayerNormOp(x, s, None, 1e-5, 2),
                LayerNormOp(x, s, b, 0.1, 0),
                LayerNormOp(x, s, b, 0.1, 1, uncentered=True),
                LayerNormOp(x, s, None, 0.1, 2, uncentered=True, late_epsilon=True),
                LayerNormOp(x, s, None, 0.1, 1, late_epsilon=True),
                e.NegOp(LayerNormOp(x, s, b, 1e-5, 1).result),
            ],
            x,
            values((4, 5), dtype),
            values((5,), dtype),
            scale=1,
        )
    n = symbol("n")
    suite.add(
        [typed(np.float32, 2, n), typed(np.float32, n)],
        lambda x, s: LayerNormOp(x, s, None, 1e-5, 1),
        values((2, 7)),
        values((7,)),
        scale=1,
    )
    suite.check()


def test_channel_shuffle(suite: Suite) -> None:
    """Groups of one channel, or one group, move nothing; a prefix that differs would show."""
    for groups in (1, 2, 3, 6):
        suite.on(lambda x, g=groups: t.ChannelShuffleOp(x, g), values((2, 6, 3, 4)))
    n, w = symbol("n"), symbol("w")
    suite.add(
        [typed(np.int32, n, 6, w)],
        lambda x: e.NegOp(t.ChannelShuffleOp(x, 3).result),
        values((2, 6, 5), np.int32),
    )
    suite.check()


def test_zero_dimensions(suite: Suite) -> None:
    """Dynamic dimensions of zero: nothing is read or written."""
    n = symbol("n")
    dims: list[ExprLike] = [n, 3]
    suite.add(
        [typed(np.float32, *dims)],
        lambda x: [
            e.AbsOp(x),
            t.TransposeOp(x, [1, 0]),
            ReduceOp("max", x, [0]),
            SoftmaxOp(x, 0),
            MatmulOp(x, t.TransposeOp(x, [1, 0]).result),
            t.ConcatOp([x, x], 1),
            t.PadOp(x, [1, 0], [0, 0]),
            CumulativeOp("sum", x, 0),
            *t.TopKOp(x, n, 0).results,
        ],
        np.zeros((0, 3), np.float32),
    )
    suite.check()


# Maps behind other ops


def test_epilogue_of_another_type(suite: Suite) -> None:
    """Sums accumulate in the output, so what changes the type is not computed there."""
    a, b, x, w = (np.round(values(shape) * 4) for shape in ((3, 5), (5, 2), (1, 2, 6), (3, 2, 3)))
    suite.on(lambda x, y: e.CastOp(MatmulOp(x, y).result, f64), a, b)
    suite.on(lambda x, y: e.CompareOp("gt", MatmulOp(x, y).result, scalar(0, f32).result), a, b)
    rule = window({}, 1)
    suite.on(lambda x, w: e.CastOp(ConvOp(x, w, **rule).result, f64), x, w)
    # Of these, nothing but the type of the output says where the sums are.
    rule |= {"output_padding": [0]}
    for to in (f64, i32):
        suite.on(
            lambda x, w, to=to: e.CastOp(ConvTransposeOp(x, w, **rule).result, to),
            x,
            np.moveaxis(w, 0, 1).copy(),
        )
    suite.check()


def test_maps_behind_what_stands_alone(suite: Suite) -> None:
    """Ops that write their results themselves, in any order, are followed by another kernel."""
    x, places = values((4,)), np.array([3, 0])

    def nonzero(x: Any) -> Any:
        count = t.CountNonzeroOp(x)
        BindSymbolsOp(count.result, ["count"])
        return e.NegOp(t.NonzeroOp(x, symbol("count")).result)

    suite.on(nonzero, x)
    suite.on(lambda x: e.NegOp(t.TopKOp(x, 2, 0).results[0]), x)
    suite.on(
        lambda x, i, u: e.NegOp(t.ScatterElementsOp(x, i, u, 0).result), x, places, values((2,))
    )
    suite.on(
        lambda x, i, u: e.NegOp(t.ScatterNdOp(x, i, u).result), x, places[:, None], values((2,))
    )
    suite.check()
