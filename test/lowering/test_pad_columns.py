"""Right matrices with columns of zeros: the same numbers."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import SliceOp
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.pipeline import PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import module_of, typed  # noqa: TID251  (these are tests, not sources)
from .targets import OTHER_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add, values  # noqa: TID251  (as above)

COLUMNS = (39, 68, 79, 95, 127)


def _product(x: SSAValue, columns: int) -> SSAValue:
    """With a bias, and a map of the sums."""
    weight = ConstantOp.of(values(130, columns, seed=1)).result
    bias = ConstantOp.of(values(columns, seed=2)).result
    return e.TanhOp(e.AddOp(MatmulOp(x, weight).result, bias).result).result


@pytest.mark.parametrize("columns", COLUMNS)
def test_same_numbers(columns: int) -> None:
    x = values(2, 7, 130)
    module = module_of([typed(x.dtype, *x.shape)], lambda x: _product(x, columns))
    (expected,) = Interpreter().call(find_function(module, "main"), [x])
    context = LowerdeckContext(options=CompileOptions(target="x86-64-v3"))
    PASSES["pad-columns"]()().apply(context, module)
    module.verify()
    sliced = [op for op in module.walk() if isinstance(op, SliceOp)]
    assert len(sliced) == (columns != 68)
    (found,) = Interpreter().call(find_function(module, "main"), [x])
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)


def test_small_weights_stay() -> None:
    module = module_of([typed(np.float32, 7, 130)], lambda x: _product(x, 39))
    before = str(module)
    options = CompileOptions(target="x86-64-v3", small_weights=True)
    PASSES["pad-columns"]()().apply(LowerdeckContext(options=options), module)
    assert str(module) == before


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_compiled(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for columns in COLUMNS:
        x = values(9, 130)
        add(
            suite,
            target,
            [typed(x.dtype, *x.shape)],
            lambda x, columns=columns: _product(x, columns),
            x,
        )
        y, w = values(2, 5, 130), values(2, 130, columns, seed=3)
        add(suite, target, [typed(v.dtype, *v.shape) for v in (y, w)], MatmulOp, y, w)
    suite.check()
