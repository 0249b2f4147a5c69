"""A few rows times a transposed matrix, which is read as it lies: the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import DTypeLike
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import TransposeOp
from lowerdeck.dialects.core.types import rank_of
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.pipeline import PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import module_of, symbol, typed  # noqa: TID251  (these are tests, not sources)
from .targets import OTHER_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add, values  # noqa: TID251  (as above)

_Case: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], DTypeLike]

CASES: list[_Case] = [
    # queries, keys, type
    ((1, 20), (70, 20), np.float32),
    ((2, 3, 1, 33), (2, 3, 50, 33), np.float32),
    ((2, 3, 48), (2, 61, 48), np.float32),
    ((1, 7, 64), (65, 64), np.float32),
    ((2, 1, 17), (2, 9, 17), np.float64),
]


def _scores(q: SSAValue, k: SSAValue) -> SSAValue:
    """With a map of the products."""
    rank = rank_of(k)
    turned = TransposeOp(k, [*range(rank - 2), rank - 1, rank - 2]).result
    return e.NegOp(MatmulOp(q, turned).result).result


@pytest.mark.parametrize("case", CASES)
def test_same_numbers(case: _Case) -> None:
    """Of as many keys as are known or not."""
    q, k = (values(*shape, seed=seed).astype(case[2]) for seed, shape in enumerate(case[:2]))
    for count in (k.shape[-2], symbol("n")):
        types = [typed(q.dtype, *q.shape), typed(k.dtype, *k.shape[:-2], count, k.shape[-1])]
        module = module_of(types, _scores)
        before = str(module)
        (expected,) = Interpreter().call(find_function(module, "main"), [q, k])
        context = LowerdeckContext(options=CompileOptions(target="x86-64-v3"))
        PASSES["turn-products"]()().apply(context, module)
        module.verify()
        assert str(module) != before
        (found,) = Interpreter().call(find_function(module, "main"), [q, k])
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_compiled(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for *shapes, dtype in CASES:
        q, k = (values(*shape, seed=seed).astype(dtype) for seed, shape in enumerate(shapes))
        for count in (k.shape[-2], symbol("n")):
            types = [typed(q.dtype, *q.shape), typed(k.dtype, *k.shape[:-2], count, k.shape[-1])]
            add(suite, target, types, _scores, q, k)
    suite.check()
