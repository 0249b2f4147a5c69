"""Elementwise ops: every op, every element type, special values, in all three ways."""

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
from xdsl.dialects import arith

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.types import bf16, element_of, f16, f32, f64
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.dialects.interpret.buffer import run_entry
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Suite,
    module_of,
    symbol,
    typed,
)

Array = NDArray[Any]

FLOATS = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)
INTEGERS = tuple(np.dtype(f"{sign}{size}").type for sign in "iu" for size in (1, 2, 4, 8))
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, np.bool_)

ARITHMETIC = (e.AddOp, e.SubOp, e.MulOp, e.DivOp, e.RemOp, e.ModOp, e.PowOp, e.MaxOp, e.MinOp)
BITWISE = (e.AndOp, e.OrOp, e.XorOp)
SHIFTS = (e.ShlOp, e.ShrOp)
EXACT_UNARY = (e.NegOp, e.AbsOp, e.SignOp)
PREDICATES = tuple(Predicate)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def specials(dtype: Any) -> Array:
    """Values where something is different."""
    if dtype is np.bool_:
        return np.array([False, True])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        width = info.bits
        values = [info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 3, 5, 7, width - 1, width, width + 1]
        values += [info.max // 2, info.max - 1, info.max]
        return np.array([v for v in values if info.min <= v <= info.max], dtype)
    info = ml_dtypes.finfo(dtype)
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25, 100.0, float(info.max), float(info.tiny)]
    values += [float(info.smallest_subnormal), np.inf]
    return np.array([*values, *(-v for v in values), np.nan], np.float64).astype(dtype)


def pairs(dtype: Any) -> tuple[Array, Array]:
    """Every special value with every other."""
    values = specials(dtype)
    both = list(itertools.product(range(len(values)), repeat=2))
    return values[[a for a, _ in both]], values[[b for _, b in both]]


@pytest.mark.parametrize("group", [FLOATS, INTEGERS], ids=["floats", "integers"])
def test_unary(suite: Suite, group: tuple[Any, ...]) -> None:
    for dtype in group:
        ops: list[Any] = [*EXACT_UNARY, e.RectifyOp if dtype in FLOATS else e.NotOp]
        suite.on(lambda x, ops=ops: [op(x) for op in ops], specials(dtype), ulps=0)
    if group is INTEGERS:
        suite.on(lambda x: [e.NotOp(x)], specials(np.bool_))
    suite.check()


def test_float_functions(suite: Suite) -> None:
    """4 ulp: the C library is within 1 or 2, the sigmoid is three operations."""
    rng = np.random.default_rng(0)
    for dtype in FLOATS:
        values = np.concatenate(
            [specials(dtype), (rng.standard_normal(40) * 3).astype(dtype), [-1, 1, 0.999, -0.999]]
        ).astype(dtype)
        suite.on(lambda x: [op(x) for op in e.FLOAT_UNARY], values, ulps=4)
    suite.check()


@pytest.mark.parametrize("group", [FLOATS, INTEGERS], ids=["floats", "integers"])
def test_binary(suite: Suite, group: tuple[Any, ...]) -> None:
    for dtype in group:
        ops = [*ARITHMETIC, *(() if dtype in FLOATS else (*BITWISE, *SHIFTS))]
        suite.on(lambda x, y, ops=ops: [op(x, y) for op in ops], *pairs(dtype), ulps=2)
    if group is INTEGERS:
        ops = [*BITWISE, e.MaxOp, e.MinOp]
        suite.on(lambda x, y: [op(x, y) for op in ops], *pairs(np.bool_))
    suite.check()


def test_compare_and_select(suite: Suite) -> None:
    for dtype in ALL:
        x, y = pairs(dtype)
        suite.on(lambda x, y: [e.CompareOp(p, x, y) for p in PREDICATES], x, y)
        condition = np.arange(x.size) % 3 == 0
        suite.on(e.SelectOp, condition, x, y, ulps=0)
    suite.check()


def test_of_one_value_and_itself(suite: Suite) -> None:
    """NaN differs from itself; compilers warn where nothing else does. Extrema of Booleans."""
    for dtype in ALL:
        x, _ = pairs(dtype)
        suite.on(lambda x: [e.CompareOp(p, x, x) for p in PREDICATES], x)
    flags = np.array([True, False, True])
    for kind in ("max", "min"):
        suite.on(lambda x, kind=kind: ReduceOp(kind, x, [0]), flags)
    suite.on(lambda x: [e.MaxOp(x, x), e.MinOp(x, x)], flags)
    suite.check()


def fits(values: Array, dtype: Any) -> Array:
    """The values that a cast to `dtype` may be asked about."""
    if dtype is np.bool_ or dtype in FLOATS or values.dtype.kind in "iub":
        return values
    wide = values.astype(np.float64)
    info = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        inside = (wide > float(info.min) - 1) & (wide < float(info.max))
    return values[inside]


def test_cast(suite: Suite) -> None:
    """All pairs; exact, since a cast rounds once."""
    rng = np.random.default_rng(1)
    for source in ALL:
        values = specials(source)
        if source in FLOATS:
            values = np.concatenate([values, (rng.standard_normal(30) * 90).astype(source)])
        elif source in INTEGERS:
            info = np.iinfo(source)
            random = rng.integers(info.min, info.max, 30, source, endpoint=True)
            ties = [v for v in (257, 259, 2049, 2051, 2**24 + 1, 2**53 + 1) if v <= info.max]
            values = np.concatenate([values, random, np.array(ties, source)])
        targets = [target for target in ALL if target is not source]
        shared = [target for target in targets if len(fits(values, target)) == len(values)]
        suite.on(
            lambda x, to=shared: [e.CastOp(x, element_of(np.dtype(t))) for t in to], values, ulps=0
        )
        for target in targets:
            if target not in shared:
                element = element_of(np.dtype(target))
                suite.on(lambda x, to=element: e.CastOp(x, to), fits(values, target), ulps=0)
                suite.on(lambda x, to=element: e.CastOp(x, to), values, compare_core=False)
    suite.check()


def test_bits(suite: Suite) -> None:
    for floats, bits in ((np.float32, "i4 u4"), (np.float64, "i8 u8")):
        values = specials(floats)
        for name in bits.split():
            element = element_of(np.dtype(name))
            suite.on(lambda x, to=element: e.BitcastOp(x, to), values, ulps=0)
            suite.on(
                lambda x, to=element_of(np.dtype(floats)): [e.NegOp(e.BitcastOp(x, to).result)],
                values.view(name),
                ulps=0,
            )
    suite.on(lambda x: e.BitcastOp(x, element_of(np.dtype("u1"))), specials(np.int8), ulps=0)
    suite.check()


TIES = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 3 * 2**-8 + 2**-40, 1 + 2**-11])
NEAR = np.concatenate([TIES, TIES + 2**-45, [65519.999999, 65520.0, 2**-25, 2**-25 + 2**-60]])
"""What f32 has no room for is just above or below the middle of two halves."""


def test_double_rounding(suite: Suite) -> None:
    """To half precision from what f32 cannot hold: rounding twice would move these."""
    large = np.array([2**25 + 2**17 + 1, 2**25 + 2**17 - 1, -(2**25) - 2**17 - 1], np.int32)
    huge = np.array([2**60 + 2**52 + 1, 2**60 + 2**52, 2**60 + 2**52 - 1, -(2**62) - 2**54 - 1])
    for target in (np.float16, ml_dtypes.bfloat16):
        element = element_of(np.dtype(target))
        for values in (NEAR, -NEAR, large, large.astype(np.uint32), huge, huge.astype(np.uint64)):
            suite.on(lambda x, to=element: e.CastOp(x, to), values, ulps=0)
    suite.check()


def test_double_rounding_in_one_step() -> None:
    """Kernels round at once until `expand-math` has them round to odd before."""
    x = np.concatenate([NEAR, -NEAR])
    module = module_of([typed(np.float64, x.size)], lambda x: e.CastOp(x, bf16))
    (expected,) = Interpreter().call(find_function(module, "main"), [x])
    context = LowerdeckContext(options=CompileOptions(target="c99"))
    run_to_phase(context, module, "buffer", after="optimized", instead={"expand-math": None})
    roundings = [op for op in module.walk() if isinstance(op, arith.TruncFOp)]
    assert [op.input.type for op in roundings] == [f64]
    (found,) = run_entry(module, {"0": x}).values()
    assert found.tobytes() == np.asarray(expected).tobytes()


SHAPES = (
    ((), ()),
    ((), (3,)),
    ((1,), (5,)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((4, 1, 3), (2, 1)),
    ((0,), (1,)),
    ((3, 0), (0,)),
    ((2, 0, 3), (1, 1, 3)),
    ((7, 11, 2), (11, 2)),
)


def test_broadcasting(suite: Suite) -> None:
    rng = np.random.default_rng(2)
    for dtype in (np.float32, np.int16):
        for a, b in SHAPES:
            x = np.asarray(rng.standard_normal(a) * 9).astype(dtype)
            y = np.asarray(rng.standard_normal(b) * 9).astype(dtype)
            condition = np.asarray(rng.random(b) < 0.5)
            suite.on(e.AddOp, x, y)
            suite.on(e.SubOp, y, x)
            suite.on(e.SelectOp, condition, x, y)
    suite.check()


def test_dynamic_broadcasting(suite: Suite) -> None:
    """Dimensions that are equal, or one, only at run time."""
    n, m = symbol("n"), symbol("m")
    for sizes in ((3, 3), (1, 3), (3, 1), (1, 1), (0, 0)):
        x = np.arange(2 * sizes[0], dtype=np.float32).reshape(2, sizes[0])
        y = np.arange(sizes[1], dtype=np.float32)
        types = [typed(np.float32, 2, n), typed(np.float32, m)]
        suite.add(types, lambda x, y: [e.AddOp(x, y), e.MulOp(e.NegOp(y).result, x)], x, y)
    for size in (1, 5):
        x, y = np.arange(size, dtype=np.int32), np.arange(5, dtype=np.int32)
        suite.add([typed(np.int32, n), typed(np.int32, 5)], e.SubOp, x, y)
    suite.check()


def test_literals(suite: Suite) -> None:
    """Constants of one element become literals, others weights."""
    for dtype in NUMBERS:
        values = specials(dtype)
        numbers = values[[0, 3, -1]] if dtype in INTEGERS else values
        for number in numbers:
            array = np.array(number, dtype)
            suite.on(lambda x, c=array: [e.AddOp(x, ConstantOp.of(c).result)], values, ulps=0)
        suite.on(lambda x, c=values: [e.MaxOp(x, ConstantOp.of(c).result)], values, ulps=0)
    suite.on(lambda x: e.XorOp(x, ConstantOp.of(np.array(True)).result), np.array([True, False]))
    suite.check()


def test_chain(suite: Suite) -> None:
    """A long chain is cut into several kernels; one value used twice is computed once."""

    def body(x: Any, y: Any) -> Any:
        value = x
        for k in range(100):
            step = e.MulOp(value, scalar(0.5, element_of(np.dtype(np.float32))).result)
            value = e.AddOp(step.result, y if k % 7 == 0 else step.result).result
        return [value, e.SigmoidOp(value)]

    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((3, 5)).astype(np.float32) for _ in range(2))
    suite.on(body, x, y, ulps=16, scale=1)
    suite.check()


def test_subnormal_half_precision(suite: Suite) -> None:
    """Multiples of 2^-24, halves to even, up to the first normal numbers and down to zero."""
    steps = np.array([0.25, 0.5, 0.75, 1, 1.5, 2.5, 511.5, 1023.4, 1023.5, 1023.75, 1024, 1025.5])
    numbers = np.concatenate([steps, -steps]).astype(np.float32) * np.float32(2**-24)
    suite.on(lambda x: e.CastOp(x, f16), numbers, ulps=0)
    suite.on(lambda x: e.CastOp(x, f16), numbers.astype(np.float64), ulps=0)
    suite.on(lambda x: e.CastOp(x, f32), numbers.astype(np.float16), ulps=0)
    suite.check()
