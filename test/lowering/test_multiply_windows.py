"""Convolutions whose weights have open sizes, as products of matrices."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AbsOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, WindowsOp
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
from .strategies.blocked import Array, values  # noqa: TID251  (as above)
from .targets import suite_for  # noqa: TID251  (as above)


def _convolution(rng: Random, rank: int) -> tuple[ModuleOp, list[Array]]:
    """All sizes open; windows with and without padding, phases with any number of taps."""
    is_transposed = rng.choice([True, False])
    groups = 1 if is_transposed else rng.choice([1, 1, 2])
    image = [rng.randint(5, 20) for _ in range(rank)]
    taps = [rng.randint(1, 5) for _ in range(rank)]
    strides = [rng.randint(1, 3 if rank < 3 else 2) for _ in range(rank)]
    depth, filters = rng.choice([1, 3, 17]), groups * rng.choice([1, 5, 18])
    pads = [[rng.randrange(tap) for tap in taps] for _ in range(2)]
    kernel = (depth, filters) if is_transposed else (filters, depth)
    inputs = [
        values(2, depth * groups, *image, seed=1),
        values(*kernel, *taps, seed=2),
        values(filters, seed=3),
    ]
    bias = "i" if is_transposed else "o"
    names = [["n", "c", *(f"s{k}" for k in range(rank))], ["o", "i"], [bias]]
    names[1] += [f"t{k}" for k in range(rank)]
    extra = [rng.randrange(stride) for stride in strides]
    dilations = [rng.randint(1, 2) for _ in range(rank)]

    def body(x: SSAValue, w: SSAValue, b: SSAValue) -> SSAValue:
        if is_transposed:
            op = ConvTransposeOp(
                x,
                w,
                b,
                strides=strides,
                dilations=[1] * rank,
                pads_begin=pads[0],
                pads_end=pads[1],
                output_padding=extra,
            )
        else:
            op = ConvOp(
                x,
                w,
                b,
                strides=strides,
                dilations=dilations if all(tap < 3 for tap in taps) else [1] * rank,
                pads_begin=pads[0],
                pads_end=pads[1],
                groups=groups,
            )
        return AbsOp(op.result).result

    return module_of([typed(np.float32, *map(symbol, own)) for own in names], body), inputs


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_any_sizes(rank: int) -> None:
    """The same numbers in the reference, of phases without taps, too."""
    for seed in some(range(40)):
        module, inputs = _convolution(Random(seed), rank)
        (expected,) = Interpreter().call(find_function(module, "main"), inputs)
        context = LowerdeckContext(options=CompileOptions(target="x86-64-v4"))
        PASSES["multiply-windows"]()().apply(context, module)
        module.verify()
        assert any(isinstance(op, WindowsOp) for op in module.walk())
        (found,) = Interpreter().call(find_function(module, "main"), inputs)
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), 1e-5, 1e-4)


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3"])
def test_compiled(tmp_path: Path, target: str) -> None:
    """In C, for one thread and for two."""
    suite = suite_for(target, tmp_path)
    for seed in some(range(8)):
        module, inputs = _convolution(Random(seed + 100), 1 + seed % 2)
        program = Program(f"p{seed}", module, inputs, ulps=64, scale=1.0, threads=1 + seed % 2)
        suite.programs.append(program)
    suite.check()
