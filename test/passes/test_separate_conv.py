"""`separate-conv` in numbers: how near the filters are, and the results."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.types import f64, tensor
from lowerdeck.dialects.interpret import Interpreter
from lowerdeck.passes.linear.separate_conv import SeparateConvPass
from lowerdeck.passes.machinery.context import LowerdeckContext

Array = NDArray[Any]


def module_of(weight: Array, groups: int) -> tuple[ModuleOp, FuncOp]:
    """A convolution of an image of 20 x 30, with strides, a dilation and pads."""
    block = Block(arg_types=[tensor(f64, [1, weight.shape[1] * groups, 20, 30])])
    constant = ConstantOp.of(weight)
    conv = ConvOp(
        block.args[0],
        constant.result,
        strides=[1, 2],
        dilations=[2, 1],
        pads_begin=[3, 1],
        pads_end=[4, 0],
        groups=groups,
    )
    block.add_ops([constant, conv, ReturnOp(conv.result)])
    kind = FunctionType.from_lists(list(block.arg_types), [conv.result.type])
    function = FuncOp("main", kind, Region(block))
    return ModuleOp([function]), function


def called(function: FuncOp, x: Array) -> Array:
    """Its result."""
    (result,) = Interpreter().call(function, [x])
    return cast(Array, result)


def convolutions(module: ModuleOp) -> list[tuple[Array, ConvOp]]:
    """All of them, with their weights."""
    found: list[tuple[Array, ConvOp]] = []
    for op in module.walk():
        if isinstance(op, ConvOp):
            weight = constant_array(op.weight)
            assert weight is not None
            found.append((weight, op))
    return found


def filters(module: ModuleOp, groups: int) -> Array:
    """The weight that the two convolutions of a module have together."""
    (first, _), (second, _) = convolutions(module)
    u = first.reshape(groups, -1, *first.shape[1:])
    v = second.reshape(groups, -1, *second.shape[1:])
    # One of both is of size 1 along each axis.
    return np.einsum("gtcij,gmtkl->gmcikjl", u, v).reshape(
        len(second), first.shape[1], first.shape[2] * second.shape[2], -1
    )


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("terms", [1, 2])
def test_sums_of_products(groups: int, terms: int) -> None:
    rng = np.random.default_rng(terms)
    u = rng.integers(-3, 4, (groups, terms, 2, 7))
    v = rng.integers(-3, 4, (groups, 4, terms, 5))
    weight = np.einsum("gtci,gmtj->gmcij", u, v).reshape(groups * 4, 2, 7, 5) / 8
    module, function = module_of(weight, groups)
    x = rng.normal(size=(1, 2 * groups, 20, 30))
    expected = called(function, x)
    SeparateConvPass(axes=True).apply(LowerdeckContext(), module)
    module.verify()
    assert convolutions(module)[1][0].shape[1] == terms
    np.testing.assert_allclose(filters(module, groups), weight, rtol=1e-15, atol=1e-14)
    np.testing.assert_allclose(called(function, x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("error", [0.2, 0.5])
@pytest.mark.parametrize("unit", [1.0, 2.0**-900, 2.0**900])
def test_error(groups: int, error: float, unit: float) -> None:
    rng = np.random.default_rng(groups)
    u, v = rng.normal(size=(groups, 1, 2, 7)), rng.normal(size=(groups, 4, 1, 5))
    weight = np.einsum("gtci,gmtj->gmcij", u, v) + 0.3 * rng.normal(size=(groups, 4, 2, 7, 5))
    module, _ = module_of(weight.reshape(groups * 4, 2, 7, 5) * unit, groups)
    SeparateConvPass(axes=True).apply(LowerdeckContext(), module)
    assert len(convolutions(module)) == 1
    SeparateConvPass(error=error).apply(LowerdeckContext(), module)
    module.verify()
    difference = filters(module, groups).reshape(weight.shape) / unit - weight
    distances = np.linalg.norm(difference.reshape(groups, -1), axis=1)
    norms = np.linalg.norm(weight.reshape(groups, -1), axis=1)
    assert (distances <= error * norms).all()
    # One term less is not enough for at least one group.
    terms = convolutions(module)[1][0].shape[1]
    values = np.linalg.svd(weight.transpose(0, 2, 3, 1, 4).reshape(groups, 14, 20))[1]
    less = np.sqrt((values[:, terms - 1 :] ** 2).sum(1))
    assert (less > error * norms).any()


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("error", [0.0, 0.5])
def test_weights_that_are_not_finite(value: float, error: float) -> None:
    module, _ = module_of(np.full((4, 2, 7, 5), value), 1)
    SeparateConvPass(error=error).apply(LowerdeckContext(), module)
    assert len(convolutions(module)) == 1
