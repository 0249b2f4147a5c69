"""Kernels whose dimensions have become fewer compute what they did before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.reduce import (
    ArgReduceOp,
    CumulativeOp,
    PoolOp,
    ReduceOp,
    SoftmaxOp,
)
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.pipeline import PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext

from .programs import module_of, typed  # noqa: TID251  (these are tests, not the folder of sources)

SHAPES = [
    shape for rank in (2, 3, 4) for shape in product((1, 2, 3), repeat=rank) if max(shape) > 1
]


def _shape(value: SSAValue) -> list[int]:
    return [dim.value or 0 for dim in dims_of(value)]


def _any_op(rng: Random, x: SSAValue, i: SSAValue) -> SSAValue:
    """An op of each kind that a rule is there for, along any axes of a value."""
    shape = _shape(x)
    rank = len(shape)
    axis = rng.randrange(rank)
    axes = sorted(rng.sample(range(rank), rng.randint(1, rank)))
    match rng.randrange(16):
        case 0:
            smaller = [dim if rng.random() < 0.5 else 1 for dim in shape]
            part = t.SliceOp(x, [0] * rank, smaller).result
            return e.AddOp(x, part).result
        case 1:
            return t.TransposeOp(x, rng.sample(range(rank), rank)).result
        case 2:
            step = rng.choice([1, 1, 2, -1])
            size = rng.randint(1, -(-shape[axis] // abs(step)))
            reach = (size - 1) * abs(step)
            first = rng.randint(0, shape[axis] - 1 - reach) + (reach if step < 0 else 0)
            starts = [first if k == axis else 0 for k in range(rank)]
            sizes = [size if k == axis else dim for k, dim in enumerate(shape)]
            steps = [step if k == axis else 1 for k in range(rank)]
            return t.SliceOp(x, starts, sizes, steps).result
        case 3:
            mode = rng.choice(["constant", "edge"])
            begin, end = ([rng.choice([0, 0, 1]) for _ in shape] for _ in range(2))
            return t.PadOp(x, begin, end, mode=mode).result
        case 4:
            return t.ConcatOp([x, x, x][: rng.randint(1, 3)], axis).result
        case 5:
            return ReduceOp(rng.choice(["sum", "max", "prod"]), x, axes, rng.random() < 0.5).result
        case 6:
            return ArgReduceOp("max", x, axis, rng.random() < 0.5).result
        case 7:
            return SoftmaxOp(x, axis).result
        case 8:
            return CumulativeOp("sum", x, axis, reverse=rng.random() < 0.5).result
        case 9:
            return t.GatherOp(x, i, axis).result
        case 10:
            return t.BroadcastOp(x, [rng.randint(1, 2), *shape]).result
        case 11 | 12:
            return _any_pool(rng, t.BroadcastOp(x, [2, *shape]).result)
        case 13 | 14:
            return _any_conv(rng, t.BroadcastOp(x, [1, 2, *shape]).result)
        case _:
            return e.CompareOp("lt", x, e.NegOp(x).result).result


def _any_pool(rng: Random, x: SSAValue) -> SSAValue:
    """Windows of one element or of all along some axes, some with padding."""
    spatial = _shape(x)[2:] or [1]
    count = len(spatial)
    x = x if len(_shape(x)) > 2 else t.ReshapeOp(x, [*_shape(x), 1]).result
    return PoolOp(
        rng.choice(["max", "sum", "average"]),
        x,
        kernel=[rng.choice([1, dim, dim]) for dim in spatial],
        strides=[rng.choice([1, 1, 2]) for _ in spatial],
        dilations=[1] * count,
        pads_begin=[rng.choice([0, 0, 0, 1]) for _ in spatial],
        pads_end=[0] * count,
    ).result


def _any_conv(rng: Random, x: SSAValue) -> SSAValue:
    """Taps along no, some or all dimensions, some with padding, strides or gaps between taps."""
    spatial = _shape(x)[2:]
    numbers = np.random.default_rng(rng.randrange(1000))
    groups = rng.choice([1, 2])
    kernel = [rng.choice([1, 1, 1, min(dim, 2)]) for dim in spatial]
    gaps = [
        rng.choice([1, 1, 2]) if dim > 2 or tap == 1 else 1 for dim, tap in zip(spatial, kernel)
    ]
    weight = numbers.standard_normal((4, 2 // groups, *kernel)).astype(np.float32)
    bias = numbers.standard_normal(4).astype(np.float32)
    return ConvOp(
        x,
        ConstantOp.of(weight).result,
        ConstantOp.of(bias).result,
        strides=[rng.choice([1, 1, 1, 2]) for _ in spatial],
        dilations=gaps,
        pads_begin=[rng.choice([0, 0, 0, 1]) for _ in spatial],
        pads_end=[rng.choice([0, 0, 0, 2]) for _ in spatial],
        groups=groups,
    ).result


@pytest.mark.parametrize("part", range(4))
def test_any_op(part: int) -> None:
    merged = 0
    for seed, shape in list(enumerate(SHAPES * 4))[part::4]:
        rng, numbers = Random(seed), np.random.default_rng(seed)
        places = rng.choice([(), (2,), (2, 2), (1, 2)])

        def body(x: SSAValue, i: SSAValue, rng: Random = rng) -> list[SSAValue]:
            first = _any_op(rng, x, i)
            return [first, _any_op(rng, x, i)]

        x = numbers.standard_normal(shape).astype(np.float32)
        i = numbers.integers(-min(shape), min(shape), places)
        module = module_of([typed(np.float32, *shape), typed(np.int64, *places)], body)
        expected = Interpreter().call(find_function(module, "main"), [x, i])
        context = LowerdeckContext()
        PASSES["form-kernels"]()().apply(context, module)
        ranks = _ranks(module.walk())
        PASSES["merge-dims"]()().apply(context, module)
        module.verify()
        merged += _ranks(module.walk()) < ranks
        found = Interpreter().call(find_function(module, "main"), [x, i])
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6)
    assert merged > len(SHAPES) // 3


def _ranks(ops: Iterator[object]) -> int:
    """The number of dimensions of what all kernels read and give."""
    return sum(
        len(dims_of(value))
        for op in ops
        if isinstance(op, KernelOp)
        for value in (*op.inputs, *op.results)
    )
