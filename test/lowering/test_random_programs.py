"""Random programs of core, straight-line and with nested control flow, in all three ways."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.builder import ImplicitBuilder
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import ConstantOp, FromDimsOp, scalar
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.reduce import (
    ArgReduceOp,
    CumulativeOp,
    PoolOp,
    ReduceOp,
    SoftmaxOp,
)
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i1, i64, static_shape, tensor
from lowerdeck.dialects.dims import Expr

from .forms import some  # noqa: TID251  (as below)
from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Suite,
    symbol,
    typed,
)

Array = NDArray[Any]
Maker = Callable[[Random, list[SSAValue]], Operation]

N = symbol("n")
SHAPES = ((2, 3), (3, 4), (2, 3, 4), (1, 2, 4, 5), (N, 3), (3,), (N,), ())


def _pick(rng: Random, values: Sequence[SSAValue], rank: int = 0) -> SSAValue:
    """A f32 value of at least some rank; the later ones more often, so that chains grow."""
    found = [v for v in values if element_type(v) == f32 and len(dims_of(v)) >= rank]
    return found[max(rng.randrange(len(found)), rng.randrange(len(found)))]


def _unary(rng: Random, values: list[SSAValue]) -> Operation:
    op: Any = rng.choice([e.NegOp, e.AbsOp, e.SigmoidOp, e.TanhOp, e.SinOp, e.FloorOp, e.SignOp])
    return op(_pick(rng, values))


def _binary(rng: Random, values: list[SSAValue]) -> Operation:
    op: Any = rng.choice([e.AddOp, e.SubOp, e.MulOp, e.MaxOp, e.MinOp])
    first = _pick(rng, values)
    same = [v for v in values if v.type == first.type]
    other = rng.choice([rng.choice(same), _pick(rng, values), scalar(0.75, f32).result])
    return op(*rng.sample([first, other], 2))


def _select(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values)
    condition = e.CompareOp(rng.choice(list(Predicate)), x, scalar(0.25, f32).result)
    return e.SelectOp(condition.result, x, e.NegOp(x).result)


def _reduce(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values)
    rank = len(dims_of(x))
    axes = sorted(rng.sample(range(rank), rng.randint(0, rank)))
    return ReduceOp(rng.choice(["sum", "max", "min"]), x, axes, rng.random() < 0.5)


def _along_axis(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values, 1)
    axis = rng.randrange(len(dims_of(x)))
    match rng.randrange(4):
        case 0:
            return SoftmaxOp(x, axis)
        case 1:
            return CumulativeOp("sum", x, axis, rng.random() < 0.5, rng.random() < 0.5)
        case 2:
            index = ArgReduceOp("max", x, axis, True, rng.random() < 0.5)
            return e.CastOp(index.result, f32)
        case _:
            return t.TopKOp(x, dims_of(x)[axis], axis, rng.random() < 0.5)


def _transpose(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values, 1)
    rank = len(dims_of(x))
    return t.TransposeOp(x, rng.sample(range(rank), rank))


def _reshape(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values)
    dims = list(dims_of(x))
    if len(dims) > 1 and rng.random() < 0.5:
        return t.ReshapeOp(x, [dims[0] * dims[1], *dims[2:]])
    dims.insert(rng.randint(0, len(dims)), Expr.const(1))
    return t.ReshapeOp(x, dims[-4:] if dims[0] == 1 else dims)


def _slice(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values, 1)
    starts: list[Any] = []
    sizes: list[Any] = []
    steps: list[Any] = []
    for dim in dims_of(x):
        if rng.random() < 0.3:
            rule = (dim - 1, dim, -1)
        elif dim.value is not None and dim.value > 1:
            rule = (rng.randint(0, 1), (dim.value - 1) // 2 + (dim.value % 2 == 0) * 0, 2)
        else:
            rule = (0, dim, 1)
        for values_, number in zip((starts, sizes, steps), rule, strict=True):
            values_.append(number)
    return t.SliceOp(x, starts, sizes, steps)


def _pad(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values, 1)
    rank = len(dims_of(x))
    mode = rng.choice(["constant", "edge", "reflect", "wrap"])
    amounts = [[rng.choice([0, 0, 1, 2]) for _ in range(rank)] for _ in range(2)]
    return t.PadOp(x, amounts[0], amounts[1], mode=mode)


def _concat(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values, 1)
    axis = rng.randrange(len(dims_of(x)))
    same = [v for v in values if v.type == x.type]
    return t.ConcatOp([x, rng.choice(same), e.NegOp(x).result], axis)


def _split(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values, 1)
    axis = rng.randrange(len(dims_of(x)))
    dim = dims_of(x)[axis]
    return t.SplitOp(x, axis, [dim // 2, 0, dim - dim // 2] if rng.random() < 0.8 else [1, dim - 1])


def _gather(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values, 1)
    axis = rng.randrange(len(dims_of(x)))
    size = dims_of(x)[axis].value
    indices = np.array([[0, -1], [-1, 0]] if size != 0 else [], np.int64)
    return t.GatherOp(x, ConstantOp.of(indices).result, axis)


def _matmul(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values, 2)
    rank = len(dims_of(x))
    if rng.random() < 0.5:
        swap = [*range(rank - 2), rank - 1, rank - 2]
        return MatmulOp(x, t.TransposeOp(x, swap).result)
    return MatmulOp(x, t.BroadcastOp(_scalar_of(x), [dims_of(x)[-1], 2]).result)


def _scalar_of(x: SSAValue) -> SSAValue:
    return ReduceOp("max", x, list(range(len(dims_of(x))))).result


def _window(rng: Random, values: list[SSAValue]) -> Operation:
    x = _pick(rng, values, 3)
    dims = dims_of(x)
    spatial = len(dims) - 2
    rule: dict[str, Any] = {
        "strides": [rng.randint(1, 2) for _ in range(spatial)],
        "dilations": [1] * spatial,
        "pads_begin": [1] * spatial,
        "pads_end": [rng.randint(0, 1) for _ in range(spatial)],
    }
    if dims[1].value is None or rng.random() < 0.5:
        return PoolOp(rng.choice(["max", "average"]), x, kernel=[2] * spatial, **rule)
    shape = [3, dims[1].value, *[2] * spatial]
    weight = (np.arange(np.prod(shape)).reshape(shape) % 7 - 3).astype(np.float32) / 4
    return ConvOp(x, ConstantOp.of(weight).result, **rule)


MAKERS: tuple[Maker, ...] = (
    _unary,
    _unary,
    _binary,
    _binary,
    _binary,
    _select,
    _reduce,
    _along_axis,
    _transpose,
    _reshape,
    _slice,
    _pad,
    _concat,
    _split,
    _gather,
    _matmul,
    _window,
)

MAX_ELEMENTS = 4000


def grow(rng: Random, values: list[SSAValue], count: int) -> None:
    """Add ops to the current block, and what they compute to `values`."""
    block = values[0].owner
    assert isinstance(block, Block)
    for _ in range(count):
        last = block.last_op
        try:
            op = rng.choice(MAKERS)(rng, values)
        except (VerifyException, ValueError, IndexError):
            # What was drawn does not fit together; draw something else.
            while (op := block.last_op) is not last and op is not None:
                op.detach()
                op.erase()
            continue
        sizes = [r for r in op.results if element_type(r) == f32 and _size(r) <= MAX_ELEMENTS]
        values.extend(sizes)


def _size(value: SSAValue) -> int:
    dims = [dim.evaluate(dict.fromkeys(dim.symbols, 5)) for dim in dims_of(value)]
    return int(np.prod(dims))


def _inputs(rng: Random, size: int) -> tuple[list[Any], list[Array]]:
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    types: list[Any] = []
    arrays: list[Array] = []
    for dims in rng.sample(SHAPES, 4):
        shape = [size if isinstance(dim, Expr) else dim for dim in dims]
        types.append(typed(np.float32, *dims))
        # Few binary digits: sums and products of some of them are exact.
        arrays.append(np.asarray(numbers.integers(-8, 9, shape) / 4).astype(np.float32))
    return types, arrays


def _results(rng: Random, made: list[SSAValue]) -> list[SSAValue]:
    return rng.sample(made, min(len(made), 4)) + made[-1:]


@pytest.mark.parametrize("block", some(range(4)))
def test_straight_line(tmp_path: Path, block: int) -> None:
    suite = Suite(tmp_path)
    for seed in range(block * 20, block * 20 + 20):
        rng = Random(seed)
        types, arrays = _inputs(rng, rng.choice([1, 2, 5]))

        def body(*args: SSAValue, rng: Random = rng) -> list[SSAValue]:
            values = list(args)
            grow(rng, values, 14)
            return _results(rng, values)

        # Rounding decides the sign, floor and order of close numbers, so those inputs are coarse.
        suite.add(types, body, *arrays, ulps=64, scale=1, threads=1 + seed % 2, may_fail=True)
    suite.check()


# Control flow. Values are small integers, so every result is exact and comparisons are safe.

STATE = (typed(np.int32, 3), typed(np.int32, 3), typed(np.int32, 2, 2), typed(np.int64))
"""The types of the values that loops carry."""


def _step(rng: Random, pool: list[SSAValue], type_: Any) -> SSAValue:
    """A value of a type, computed from others of it (or one of them as it is)."""
    same = [value for value in pool if value.type == type_]
    element = type_.element_type
    x, y = rng.choice(same), rng.choice(same)
    match rng.randrange(6):
        case 0:
            return x
        case 1:
            return e.AddOp(x, scalar(rng.randint(-3, 3), element).result).result
        case 2:
            return e.SubOp(x, y).result
        case 3:
            return e.MaxOp(x, e.NegOp(y).result).result
        case 4:
            dims = dims_of(x)
            return t.ReshapeOp(t.ReshapeOp(x, [_count(x)]).result, dims).result
        case _:
            return e.MulOp(x, scalar(3, element).result).result


def _count(value: SSAValue) -> int:
    return int(np.prod(static_shape(value) or ()))


def _condition(rng: Random, pool: list[SSAValue]) -> SSAValue:
    integers = [value for value in pool if value.type == STATE[3]]
    limit = scalar(rng.randint(-4, 9), i64).result
    return e.CompareOp(rng.choice(["lt", "ge", "ne"]), rng.choice(integers), limit).result


class ControlFlow:
    """Random nested programs."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._loops = 0

    def block(self, pool: list[SSAValue], depth: int) -> list[SSAValue]:
        """Values made of the pool, some of them by control flow."""
        rng = self._rng
        pool = list(pool)
        for _ in range(rng.randint(1, 4)):
            kind = rng.random()
            if depth > 0 and kind < 0.35:
                pool.extend(self._if(pool, depth - 1))
            elif depth > 0 and kind < 0.8:
                pool.extend(self._loop(pool, depth - 1))
            else:
                pool.append(_step(rng, pool, rng.choice(STATE)))
        return pool

    def _if(self, pool: list[SSAValue], depth: int) -> Sequence[SSAValue]:
        types = [self._rng.choice(STATE) for _ in range(self._rng.randint(1, 3))]
        regions: list[Region] = []
        condition = _condition(self._rng, pool)
        for _ in range(2):
            block = Block()
            with ImplicitBuilder(block):
                inner = self.block(pool, depth)
                YieldOp([_step(self._rng, inner, type_) for type_ in types])
            regions.append(Region(block))
        return IfOp(condition, regions[0], regions[1]).results

    def _loop(self, pool: list[SSAValue], depth: int) -> Sequence[SSAValue]:
        rng = self._rng
        self._loops += 1
        types = [rng.choice(STATE) for _ in range(rng.randint(1, 3))]
        scans = [rng.choice(STATE) for _ in range(rng.choice([0, 0, 1, 2]))]
        inits = [rng.choice([v for v in pool if v.type == type_]) for type_ in types]
        trips = scalar(rng.choice([0, 1, 2, 3, 5, -1]), i64).result
        if rng.random() < 0.4:
            # Only known at run time.
            lowest = e.MinOp(rng.choice([v for v in pool if v.type == STATE[3]]), trips).result
            trips = lowest
        iteration, count = f"i{self._loops}", f"t{self._loops}"
        has_condition = rng.random() < 0.5
        start = _condition(rng, pool) if has_condition else None
        block = Block(arg_types=[tensor(i64, []), *types])
        with ImplicitBuilder(block):
            number = FromDimsOp([symbol(iteration)], []).result
            inner = self.block([*pool, *block.args, number], depth)
            # Swaps, rotations, passed on as they are: a parallel assignment.
            carried = [_step(rng, inner, type_) for type_ in types]
            if rng.random() < 0.5:
                same = list(block.args[1:])
                rng.shuffle(same)
                for position, value in enumerate(same):
                    if value.type == types[position]:
                        carried[position] = value
            yielded = [_step(rng, inner, type_) for type_ in scans]
            conditions = [_condition(rng, inner)] if has_condition else []
            YieldOp([*conditions, *carried, *yielded])
        loop = LoopOp(
            trips, start, inits, Region(block), iteration=iteration, count=count if scans else None
        )
        # Scan outputs are reduced to something that lives on in fixed shapes.
        results = list(loop.results[: len(types)])
        for scan, type_ in zip(loop.results[len(types) :], scans, strict=True):
            if type_.element_type != i1:
                results.append(ReduceOp("sum", scan, [0]).result)
        return results


@pytest.mark.parametrize("block", range(2))
def test_control_flow(tmp_path: Path, block: int) -> None:
    suite = Suite(tmp_path)
    for seed in range(block * 10, block * 10 + 10):
        numbers = np.random.default_rng(seed)
        arrays = [
            np.asarray(numbers.integers(-5, 6, static_shape(type_) or ())).astype(
                np.int64 if type_ == STATE[3] else np.int32
            )
            for type_ in STATE
        ]

        def body(*args: SSAValue, seed: int = seed) -> list[SSAValue]:
            pool = ControlFlow(seed).block(list(args), 2)
            return pool[-4:]

        suite.add(STATE, body, *arrays, threads=1 + seed % 2)
    suite.check()
