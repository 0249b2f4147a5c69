"""Convolutions of one tap and one channel, as maps: the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.pipeline import PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext

from .programs import module_of, typed  # noqa: TID251  (these are tests, not sources)
from .targets import OTHER_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add, values  # noqa: TID251  (as above)

CASES: list[tuple[tuple[int, ...], list[int], bool, Any]] = [
    # input, strides, with a bias, type
    ((1, 3, 7), [1], True, np.float32),
    ((2, 5, 9), [2], False, np.float64),
    ((2, 16, 5, 6), [1, 3], True, np.float32),
    ((1, 9, 4, 4), [2, 2], True, np.float64),
    ((1, 4, 3, 4, 5), [1, 2, 1], False, np.float32),
]


def _case(
    shape: tuple[int, ...], strides: list[int], biased: bool, dtype: Any
) -> tuple[Any, list[Any]]:
    channels, rank = shape[1], len(strides)
    arrays = [values(*shape), values(channels, *[1] * (rank + 1), seed=1)]
    if biased:
        arrays.append(values(channels, seed=2))
    arrays[0].flat[[0, 1, 2]] = [np.inf, np.nan, -0.0]

    def body(x: SSAValue, weight: SSAValue, bias: SSAValue | None = None) -> SSAValue:
        none: Any = {"pads_begin": [0] * rank, "pads_end": [0] * rank}
        options: Any = {"strides": strides, "dilations": [2] * rank, "groups": channels}
        return ConvOp(x, weight, bias, **none, **options).result

    return body, [array.astype(dtype) for array in arrays]


@pytest.mark.parametrize("case", CASES)
def test_same_numbers(case: Any) -> None:
    body, arrays = _case(*case)
    module = module_of([typed(array.dtype, *array.shape) for array in arrays], body)
    (expected,) = Interpreter().call(find_function(module, "main"), arrays)
    PASSES["scale-channels"]()().apply(LowerdeckContext(), module)
    module.verify()
    assert not any(isinstance(op, ConvOp) for op in module.walk())
    (found,) = Interpreter().call(find_function(module, "main"), arrays)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_compiled(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for case in CASES:
        body, arrays = _case(*case)
        add(suite, target, [typed(array.dtype, *array.shape) for array in arrays], body, *arrays)
    suite.check()
