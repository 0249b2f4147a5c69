"""The code for every target gives what the interpreter gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.types import dims_of, f32
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering import compile_to_c
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import module_of, typed  # noqa: TID251  (these are tests)
from .targets import Array, obstacle_to, run_on  # noqa: TID251  (these are tests)


def values(*shape: int, seed: int = 1) -> Array:
    """Numbers around zero."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def weight(*shape: int, seed: int) -> SSAValue:
    return ConstantOp.of(values(*shape, seed=seed) / np.float32(np.sqrt(np.prod(shape[1:])))).result


def conv(x: SSAValue, channels: int, size: int, seed: int, stride: int = 1) -> SSAValue:
    depth = dims_of(x)[1].value or 0
    linear = ConvOp(
        x,
        weight(channels, depth, size, size, seed=seed),
        weight(channels, seed=seed + 1),
        strides=[stride] * 2,
        dilations=[1] * 2,
        pads_begin=[size // 2] * 2,
        pads_end=[size // 2] * 2,
    )
    return e.MaxOp(linear.result, scalar(0, f32).result).result


def network(x: SSAValue) -> list[SSAValue]:
    """Convolutions, some side by side, with channels that fill no vector; a product at the end."""
    first = conv(x, 20, 3, 10)
    joined = t.ConcatOp([conv(first, 16, 1, 20), conv(first, 24, 3, 30)], 1).result
    halved = conv(joined, 33, 3, 40, stride=2)
    none, two = [0, 0], [2, 2]
    pooled = PoolOp(
        "max", halved, kernel=two, strides=two, dilations=[1, 1], pads_begin=none, pads_end=none
    ).result
    mean = ReduceOp("sum", pooled, [2, 3], keep_dims=False).result
    scores = MatmulOp(mean, weight(33, 10, seed=50)).result
    return [SoftmaxOp(scores, 1).result, e.TanhOp(pooled).result]


def module() -> ModuleOp:
    return module_of([typed(np.float32, 2, 3, 18, 13)], network)


def expected(inputs: Sequence[Array]) -> list[Array]:
    function = find_function(module(), "main")
    return [np.asarray(value) for value in Interpreter().call(function, list(inputs))]


@pytest.mark.parametrize(
    ("target", "threads"),
    [
        *(("native", 2), ("aarch64", 2), ("x86-64-v3", 1), ("x86-64", 1)),
        *(("c99", 1), ("cortex-m4", 1), ("x86-64-v4", 1)),
    ],
)
def test_network(tmp_path: Path, target: str, threads: int) -> None:
    if (reason := obstacle_to(target)) is not None:
        pytest.skip(reason)
    context = LowerdeckContext(options=CompileOptions(target=target, threads=threads))
    artifact = compile_to_c(context, module(), "net")
    inputs = [values(2, 3, 18, 13)]
    for found, wanted in zip(
        run_on(target, artifact, inputs, tmp_path), expected(inputs), strict=True
    ):
        scale = float(np.abs(wanted).max())
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * scale)
