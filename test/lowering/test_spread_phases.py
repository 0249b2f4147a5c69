"""Transposed convolutions with few filters, as convolutions of their phases."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.elementwise import CosOp, MulOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.tensor import ReshapeOp, SliceOp
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.pipeline import PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .forms import some  # noqa: TID251  (these are tests, not the folder of sources)
from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Program,
    module_of,
    symbol,
    typed,
)
from .strategies.blocked import values  # noqa: TID251  (as above)
from .targets import suite_for  # noqa: TID251  (as above)


def _transposed(
    rng: Random, x: SSAValue, rank: int, dtype: Any, *, computed: bool = False
) -> SSAValue:
    """Any strides, taps, padding, groups and filters; some that are none of the pass."""
    numbers = np.random.default_rng(rng.randrange(1000))
    strides = [rng.choice([1, 2, 2, 3]) for _ in range(rank)]
    taps = [
        max(1, stride * rng.choice([0, 1, 2, 2]) + rng.choice([0, 0, 1, -1])) for stride in strides
    ]
    dilations = [rng.choice([1, 1, 1, 2]) for _ in range(rank)]
    begin = [rng.randrange(tap + 1) for tap in taps]
    groups = rng.choice([1, 1, 2, 3, 6])
    end = [
        rng.choice([stride - b % stride, b, 0]) for stride, b in zip(strides, begin, strict=True)
    ]
    filters, depth = rng.choice([1, 2, 3, 4]), dims_of(x)[1].value
    assert depth is not None
    weight = numbers.standard_normal((depth, filters, *taps)).astype(dtype)
    bias = ConstantOp.of(numbers.standard_normal(filters * groups).astype(dtype)).result
    return ConvTransposeOp(
        x,
        _times_one(x, weight) if computed else ConstantOp.of(weight).result,
        rng.choice([bias, None]),
        strides=strides,
        dilations=dilations,
        pads_begin=begin,
        pads_end=[max(0, number) for number in end],
        output_padding=[rng.choice([0, 0, stride - 1]) for stride in strides],
        groups=groups,
    ).result


def _times_one(x: SSAValue, weight: NDArray[Any]) -> SSAValue:
    """A number times that of an input which is not known, but is 1."""
    size = SliceOp(x, [0] * len(dims_of(x)), [1] * len(dims_of(x))).result
    one = ReshapeOp(CosOp(MulOp(size, scalar(0, element_type(x)).result).result).result, []).result
    return MulOp(ConstantOp.of(weight).result, one).result


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_any_phases(rank: int, dtype: Any, computed: bool) -> None:
    """The same numbers in the reference, infinite ones and NaN included, of sizes open or not."""
    spread = 0
    for seed in some(range(60)):
        rng = Random(seed)
        depth = rng.choice([6, 6, 18])
        shape = [rng.choice([1, 2]), depth, *(rng.randint(4, 6) for _ in range(rank))]
        dims = [symbol("n"), depth, *(symbol(f"s{k}") for k in range(rank))]

        def body(x: SSAValue, rng: Random = rng) -> SSAValue:
            return _transposed(rng, x, rank, dtype, computed=computed)

        module = module_of([typed(dtype, *(dims if seed % 3 == 0 else shape))], body)
        x = values(*shape, seed=seed).astype(dtype)
        x.flat[1 + seed % (x.size - 1)] = [np.inf, np.nan, 1.0][seed % 3]
        (expected,) = Interpreter().call(find_function(module, "main"), [x])
        context = LowerdeckContext(options=CompileOptions(target="x86-64-v4"))
        PASSES["spread-phases"]()().apply(context, module)
        module.verify()
        spread += any(isinstance(op, ConvOp) for op in module.walk())
        (found,) = Interpreter().call(find_function(module, "main"), [x])
        tolerance = 1e-5 if dtype is np.float32 else 1e-12
        np.testing.assert_allclose(
            np.asarray(found), np.asarray(expected), rtol=tolerance, atol=tolerance
        )
    assert spread > 15


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3"])
def test_compiled(tmp_path: Path, target: str) -> None:
    """In C, with what follows, for one thread and for two."""
    suite = suite_for(target, tmp_path)
    for seed in some(range(16)):
        rng = Random(seed + 100)
        x = values(2, [6, 18][seed % 2], 9, 18, seed=seed)

        def body(x: SSAValue, rng: Random = rng) -> SSAValue:
            return _transposed(rng, x, 2, np.float32, computed=seed % 4 == 3)

        module = module_of([typed(np.float32, *x.shape)], body)
        suite.programs.append(
            Program(
                f"p{seed}",
                module,
                [x],
                ulps=32,
                scale=1.0,
                threads=1 + seed % 2,
            )
        )
    suite.check()
