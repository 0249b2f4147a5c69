"""`fuse-norm` and the sign of zero, which a bias of zeros takes from -0."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp, MulOp
from lowerdeck.dialects.core.linear import LayerNormOp
from lowerdeck.dialects.core.types import f32, tensor
from lowerdeck.dialects.interpret import Interpreter
from lowerdeck.passes.fuse.fuse_norm import FuseNormPass
from lowerdeck.passes.machinery.context import LowerdeckContext

Array = NDArray[Any]

X = np.array([[-0.0, 1, -1, 0], [1, -0.0, -0.0, -1]], np.float32)


@pytest.mark.parametrize(
    ("zero", "scale", "bias", "rewrites"),
    [
        (0.0, [1, -2, 3, -4], None, 0),
        (-0.0, [1, -2, 3, -4], None, 1),
        (0.0, [1, -2, 3, -4], [1, 0, 0, 2], 2),
        (-0.0, [1, -2, 3, -4], [1, -0.0, 0, 2], 2),
        (0.0, [1, -2, 3, -4], [-0.0, -0.0, 0, 2], 0),
        (0.0, None, [-0.0, -0.0, 0, 0], 0),
        (0.0, None, [1, 0, 0, 2], 1),
    ],
)
def test_sign_of_zero(
    zero: float, scale: list[float] | None, bias: list[float] | None, rewrites: int
) -> None:
    block = Block(arg_types=[tensor(f32, X.shape)])
    one = ConstantOp.of(np.ones(4, np.float32))
    none = ConstantOp.of(np.full(4, zero, np.float32))
    norm = LayerNormOp(block.args[0], one.result, none.result, 2.0**-4, 1)
    block.add_ops([one, none, norm])
    value = norm.result
    for kind, numbers in ((MulOp, scale), (AddOp, bias)):
        if numbers is not None:
            constant = ConstantOp.of(np.array(numbers, np.float32))
            block.add_ops([constant, op := kind(value, constant.result)])
            value = op.result
    block.add_op(ReturnOp(value))
    function = FuncOp(
        "main", FunctionType.from_lists(list(block.arg_types), [value.type]), Region(block)
    )
    module = ModuleOp([function])
    before = [op for op in module.walk() if isinstance(op, MulOp | AddOp)]
    (expected,) = cast("list[Array]", Interpreter().call(function, [X]))
    FuseNormPass().apply(LowerdeckContext(), module)
    after = [op for op in module.walk() if isinstance(op, MulOp | AddOp)]
    (found,) = cast("list[Array]", Interpreter().call(function, [X]))
    assert len(before) - len(after) == rewrites
    assert (expected == 0).any()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
