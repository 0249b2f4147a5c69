"""Maps in vectors: elements of every type and width, on every target, with remainders."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.types import element_of, f32

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    typed,
)
from .targets import OTHER_TARGETS, SOME_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add  # noqa: TID251  (as above)

Array = NDArray[Any]

FLOATS = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)
INTEGERS = tuple(np.dtype(f"{sign}{size}").type for sign in "iu" for size in (1, 2, 4, 8))
TYPES = (*FLOATS, *INTEGERS, np.bool_)

COUNT = 79
"""Elements: of a row with whole vectors of every width, and remainders of every length."""


def numbers(dtype: Any, seed: int = 0) -> Array:
    """Small ones and the ends of the type, in no order."""
    rng = np.random.default_rng(seed)
    if dtype is np.bool_:
        return rng.random((2, COUNT)) > 0.5
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        ends = [info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max, info.max // 2]
        some = rng.integers(max(info.min, -100), 100, 2 * COUNT - len(ends)).tolist()
        return rng.permutation(np.array([*ends, *some], dtype)).reshape(2, COUNT)
    info = ml_dtypes.finfo(dtype)
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 127.6, -128.9, 255.5, 65519.0]
    ends += [float(info.max), float(info.tiny), float(info.smallest_subnormal), 2.0**31, -(2.0**63)]
    some = rng.normal(0, 40, 2 * COUNT - len(ends)).tolist()
    with np.errstate(all="ignore"):
        return rng.permutation(np.array([*ends, *some]).astype(dtype)).reshape(2, COUNT)


def fitting(x: Array, other: Any) -> Array:
    """The numbers, those that an integer type does not hold replaced."""
    if other not in INTEGERS or x.dtype.type not in FLOATS:
        return x
    info, most = np.iinfo(other), float(ml_dtypes.finfo(x.dtype).max)
    with np.errstate(all="ignore"):
        wide = np.nan_to_num(x.astype(np.float64), nan=7.0, posinf=1e300, neginf=-1e300)
        return np.clip(wide, max(info.min / 2, -most), min(info.max / 2, most)).astype(x.dtype)


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_casts(tmp_path: Path, target: str) -> None:
    """Cut off or rounded, of every type to every other."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for source in TYPES:
        x = numbers(source)
        for other in TYPES:
            if other is source:
                continue
            to, ports = element_of(np.dtype(other)), [typed(source, *x.shape)]
            add(suite, target, ports, lambda v, to=to: [e.CastOp(v, to)], fitting(x, other))
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_arithmetic(tmp_path: Path, target: str) -> None:
    """What is exact in every type, and truth values made of comparisons of two widths."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for dtype in TYPES:
        x, y, mask = numbers(dtype, 1), numbers(dtype, 2), numbers(np.bool_)
        ports = [typed(array.dtype, *array.shape) for array in (x, y, mask)]

        def body(x: SSAValue, y: SSAValue, mask: SSAValue, dtype: Any = dtype) -> list[Any]:
            is_less = e.CompareOp(Predicate.LT, x, y).result
            found = [
                e.MaxOp(x, y),
                e.MinOp(x, y),
                is_less,
                e.CompareOp(Predicate.NE, x, y),
                e.SelectOp(mask, x, y),
                e.XorOp(e.AndOp(is_less, mask).result, e.NotOp(mask).result),
            ]
            if dtype is np.bool_:
                return [*found, e.OrOp(x, y)]
            found += [e.AddOp(x, y), e.SubOp(x, y), e.MulOp(x, y), e.AbsOp(x), e.NegOp(x)]
            found += [e.SignOp(x), e.RemOp(x, y), e.ModOp(x, y)]
            if dtype in FLOATS:
                rounded = [e.FloorOp(x), e.CeilOp(x), e.RoundOp(x), e.SqrtOp(e.AbsOp(x).result)]
                return [*found, *rounded, e.RectifyOp(x)]
            return [*found, e.DivOp(x, y), e.AndOp(x, y), e.XorOp(x, y)]

        add(suite, target, ports, body, x, y, mask)
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_every_half(tmp_path: Path, target: str) -> None:
    """Widened and rounded again, doubled on the way, in vectors of every width."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for dtype, lanes in itertools.product((np.float16, ml_dtypes.bfloat16), (4, 8, 16)):
        every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
        # What lies between the rows keeps them from becoming one.
        x = np.pad(every.reshape(-1, lanes), [(0, 0), (0, 1)])

        def body(x: SSAValue, lanes: int = lanes) -> list[Any]:
            rows = t.SliceOp(x, [0, 0], [(1 << 16) // lanes, lanes]).result
            return [e.CastOp(rows, f32), e.AddOp(rows, rows)]

        add(suite, target, [typed(dtype, *x.shape)], body, x)
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_limited_casts(tmp_path: Path, target: str) -> None:
    """Limits before a conversion: those of its type, or narrower ones."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for dtype in (np.float32, np.float64):
        x = numbers(dtype)

        def limited(v: SSAValue, low: float, high: float, to: Any, dtype: Any = dtype) -> Any:
            least, most = (ConstantOp.of(np.array(limit, dtype)).result for limit in (low, high))
            cut = e.MaxOp(e.MinOp(v, most).result, least).result
            return e.CastOp(cut, element_of(np.dtype(to)))

        limits = (
            (0, 255, np.uint8),
            (3, 200, np.uint8),
            (-128, 127, np.int8),
            (-100, 127, np.int8),
            (0, 65535, np.uint16),
        )
        add(
            suite,
            target,
            [typed(dtype, *x.shape)],
            lambda v, limits=limits, limited=limited: [limited(v, *each) for each in limits],
            x,
        )
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_functions(tmp_path: Path, target: str) -> None:
    """Those of a wider type, and where some lanes go another way than the others."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for dtype in FLOATS:
        x = numbers(dtype)
        add(
            suite,
            target,
            [typed(dtype, *x.shape)],
            lambda v: [op(v) for op in (e.SinOp, e.CosOp, e.TanOp, e.AtanOp, e.ExpOp, e.LogOp)],
            x,
        )
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_uniform_operands(tmp_path: Path, target: str) -> None:
    """One number, or one truth value, for all lanes: it stays a scalar as long as it can."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for dtype in TYPES:
        x, mask = numbers(dtype, 1), numbers(np.bool_)
        one, truth = x[:, :1].copy(), mask[:, :1].copy()
        ports = [typed(array.dtype, *array.shape) for array in (x, one, mask, truth)]

        def body(x: SSAValue, one: SSAValue, mask: SSAValue, truth: SSAValue) -> list[Any]:
            dims = [2, COUNT]
            y, same = (t.BroadcastOp(v, dims).result for v in (one, truth))
            is_less = e.CompareOp(Predicate.LT, y, t.BroadcastOp(one, dims).result).result
            found = [e.MaxOp(x, y), e.CompareOp(Predicate.LE, x, y), e.SelectOp(same, x, y)]
            found += [e.SelectOp(mask, y, x), e.AndOp(mask, same), e.OrOp(same, is_less)]
            return [*found, e.SelectOp(e.XorOp(same, is_less).result, x, y)]

        add(suite, target, ports, body, x, one, mask, truth)
    x = numbers(np.float32, 3)
    for exponent in (1.5, 2.0, 3.0, -2.5, 0.0, -0.0, 1 / 3, np.inf, -np.inf, np.nan):
        add(
            suite,
            target,
            [typed(np.float32, *x.shape), typed(np.float32, 1, 1)],
            lambda v, y: [e.PowOp(v, t.BroadcastOp(y, [2, COUNT]).result)],
            x,
            np.full((1, 1), exponent, np.float32),
        )
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_parts_of_rows(tmp_path: Path, target: str) -> None:
    """Concatenations of every type: parts of one element, and parts that are computed there."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for dtype in TYPES:
        x, y = numbers(dtype, 1), numbers(dtype, 2)
        ports = [typed(array.dtype, *array.shape) for array in (x, y)]

        def body(x: SSAValue, y: SSAValue, dtype: Any = dtype) -> list[Any]:
            columns = [t.ReshapeOp(value, [2, COUNT, 1]).result for value in (x, y)]
            half = [t.SliceOp(x, [0, k], [2, 33]).result for k in (0, 40)]
            less = e.MinOp(half[1], half[0]).result
            turned = e.NotOp(half[1]) if dtype is np.bool_ else e.MaxOp(half[1], half[1])
            return [
                t.ConcatOp(columns, 2),
                t.ConcatOp([*columns, columns[0]], 2),
                t.ConcatOp([less, turned.result, half[0]], 1),
            ]

        add(suite, target, ports, body, x, y)
    suite.check()
