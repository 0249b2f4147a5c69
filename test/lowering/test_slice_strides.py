"""Convolutions of one tap that read every so many-th position, sliced before: the same numbers."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import SliceOp
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.pipeline import PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext

from .programs import module_of, symbol, typed  # noqa: TID251  (these are tests, not sources)
from .targets import SOME_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add, values  # noqa: TID251  (as above)

CASES: list[tuple[tuple[int, ...], list[int], int, int, Any]] = [
    # input, strides, groups, filters, type
    ((2, 5, 9, 8), [2, 3], 1, 128, np.float32),
    ((1, 16, 14, 14), [2, 2], 1, 136, np.float32),
    ((1, 6, 11), [2], 2, 256, np.float64),
    ((1, 3, 4, 5, 6), [1, 2, 4], 1, 130, np.float32),
]


def _body(case: tuple[tuple[int, ...], list[int], int, int, Any]) -> Any:
    shape, strides, groups, filters, dtype = case
    rank = len(strides)
    weight = values(filters, shape[1] // groups, *[1] * rank, seed=1).astype(dtype)
    bias = values(filters, seed=2).astype(dtype)

    def body(x: SSAValue) -> SSAValue:
        options: Any = {"strides": strides, "dilations": [1] * rank, "groups": groups}
        pads: Any = {"pads_begin": [0] * rank, "pads_end": [0] * rank}
        made = ConvOp(
            x, ConstantOp.of(weight).result, ConstantOp.of(bias).result, **pads, **options
        )
        return e.NegOp(made.result).result

    return body


@pytest.mark.parametrize("case", CASES)
def test_same_numbers(case: Any) -> None:
    """Of a batch that is known or not."""
    x = values(*case[0]).astype(case[-1])
    for batch in (x.shape[0], symbol("n")):
        module = module_of([typed(x.dtype, batch, *x.shape[1:])], _body(case))
        (expected,) = Interpreter().call(find_function(module, "main"), [x])
        PASSES["slice-strides"]()().apply(LowerdeckContext(), module)
        module.verify()
        assert any(isinstance(op, SliceOp) for op in module.walk())
        (found,) = Interpreter().call(find_function(module, "main"), [x])
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_compiled(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for case in CASES:
        x = values(*case[0]).astype(case[-1])
        add(suite, target, [typed(x.dtype, *x.shape)], _body(case), x)
    suite.check()
