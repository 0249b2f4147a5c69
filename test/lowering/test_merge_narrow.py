"""Narrow siblings as one: each gets its own numbers, in its own order."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.tensor import SplitOp
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.form.merge_narrow import pays
from lowerdeck.lowering.pipeline import PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import module_of, typed  # noqa: TID251  (these are tests, not sources)
from .test_layouts import values  # noqa: TID251  (as above)


def _conv(x: SSAValue, filters: int, rank: int, *, has_bias: bool) -> SSAValue:
    weight = ConstantOp.of(values(filters, 32, *[3] * rank, seed=filters)).result
    bias = ConstantOp.of(values(filters, seed=9)).result if has_bias else None
    ones, twos = [1] * rank, [2] * rank
    return ConvOp(
        x, weight, bias, strides=twos, dilations=ones, pads_begin=ones, pads_end=ones
    ).result


def _product(x: SSAValue, columns: int) -> SSAValue:
    product = MatmulOp(x, ConstantOp.of(values(140, columns, seed=columns)).result).result
    return e.AddOp(product, ConstantOp.of(values(columns, seed=8)).result).result


Body = Callable[[SSAValue], list[SSAValue]]

FORMS: dict[str, tuple[tuple[int, ...], Body]] = {
    "1-d": ((2, 32, 7), lambda x: [_conv(x, count, 1, has_bias=True) for count in (6, 2, 8)]),
    "2-d": ((1, 32, 5, 6), lambda x: [_conv(x, count, 2, has_bias=False) for count in (3, 5)]),
    "3-d": ((1, 32, 3, 4, 5), lambda x: [_conv(x, count, 3, has_bias=True) for count in (5, 2)]),
    "row": ((1, 140), lambda x: [_product(x, count) for count in (2, 5)]),
    "batches": ((2, 3, 140), lambda x: [_product(x, count) for count in (1, 20, 3, 2)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_same_numbers(form: str) -> None:
    dims, body = FORMS[form]
    x = values(*dims, seed=1)
    module = module_of([typed(x.dtype, *x.shape)], lambda v: [e.TanhOp(y).result for y in body(v)])
    expected = Interpreter().call(find_function(module, "main"), [x])
    context = LowerdeckContext(options=CompileOptions(target="x86-64-v3"))
    PASSES["merge-narrow"]()().apply(context, module)
    module.verify()
    assert len([op for op in module.walk() if isinstance(op, SplitOp)]) == 1
    found = Interpreter().call(find_function(module, "main"), [x])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-6)


def test_when_it_pays() -> None:
    assert pays([3, 5], 100, 8)
    assert not pays([3, 5], 60, 8)
    assert pays([12, 4], 100, 16)
    assert not pays([12, 12], 1000, 8)
    assert not pays([5, 3, 2], 1000, 8)
    assert not pays([8, 16], 1000, 8)
