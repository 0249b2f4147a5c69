"""Pools of deep windows, as pools of planes: the same numbers, and the same ones of equal zeros."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.types import element_type, f32
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.pipeline import PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext

from .programs import module_of, symbol, typed  # noqa: TID251  (these are tests, not sources)
from .targets import OTHER_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add, values  # noqa: TID251  (as above)


def _pool(rng: Random, x: SSAValue, kind: str) -> SSAValue:
    kernel = [rng.choice([3, 4, 5]), rng.choice([4, 5]), rng.choice([4, 5])]
    dilations = [rng.choice([1, 1, 2]) for _ in kernel]
    pads = [rng.choice([0, 1, 2]) for _ in kernel]
    return PoolOp(
        kind,
        x,
        kernel=kernel,
        strides=[1, *(rng.choice([1, 2]) for _ in kernel[1:])],
        dilations=dilations,
        pads_begin=pads,
        pads_end=pads[::-1],
        from_lowest=kind == "max" and element_type(x) == f32 and rng.random() < 0.3,
    ).result


def _values(seed: int, dtype: Any) -> Any:
    """Many zeros of either sign, and what is no number."""
    x = np.round(values(2, 3, 9, 10, 11, seed=seed))
    x.flat[seed::7] = -0.0
    if np.dtype(dtype).kind == "f":
        x.flat[seed::5] = [np.nan, -np.inf][seed % 2]
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
@pytest.mark.parametrize("kind", ["max", "sum"])
def test_same_numbers(kind: str, dtype: Any) -> None:
    for seed in range(20):
        dims = [symbol("n"), 3, symbol("d"), 10, symbol("w")] if seed % 2 else [2, 3, 9, 10, 11]
        module = module_of([typed(dtype, *dims)], lambda x, seed=seed: _pool(Random(seed), x, kind))
        x = _values(seed, dtype)
        (expected,) = Interpreter().call(find_function(module, "main"), [x])
        PASSES["split-pools"]()().apply(LowerdeckContext(), module)
        module.verify()
        assert sum(isinstance(op, PoolOp) for op in module.walk()) == 2
        (found,) = Interpreter().call(find_function(module, "main"), [x])
        if kind == "max":
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
        else:
            np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5)


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_compiled(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for seed in range(6):
        x = _values(seed, np.float32)[:1, :2]
        kind = ["max", "max", "sum"][seed % 3]
        add(
            suite,
            target,
            [typed(np.float32, *x.shape)],
            lambda x, seed=seed, kind=kind: _pool(Random(seed), x, kind),
            x,
        )
    suite.check()
