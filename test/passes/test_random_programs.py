"""Random core programs mean the same after passes: bit for bit, or within rounding for fusion."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from fuzz.core_programs import random_program
from fuzz.fuzz_passes import RANDOMS, Subject, bit_difference
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import BatchNormOp, ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import (
    dims_of,
    f32,
    static_shape,
    tensor,
)
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.fold.cse import CsePass
from lowerdeck.passes.fold.dce import DcePass
from lowerdeck.passes.fold.fold import FoldPass
from lowerdeck.passes.fold.reorder_binary import ReorderBinaryPass
from lowerdeck.passes.fold.simplify import SimplifyPass
from lowerdeck.passes.fuse.fuse import FusePass
from lowerdeck.passes.legalize.infer_shapes import InferShapesPass
from lowerdeck.passes.linear.decompose_linear import DecomposeLinearPass
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.contracts import check_contract

EXACT: tuple[tuple[type[ModulePass], ...], ...] = (
    (CsePass,),
    (DcePass,),
    (FoldPass,),
    (SimplifyPass,),
    (ReorderBinaryPass,),
    (ReorderBinaryPass, CsePass, SimplifyPass),
    (InferShapesPass,),
    (FoldPass, SimplifyPass, CsePass, DcePass, FoldPass, SimplifyPass),
)


@settings(max_examples=15)
@given(RANDOMS)
@pytest.mark.parametrize("passes", EXACT, ids=lambda ps: "+".join(p.name for p in ps))
def test_same_bits(passes: tuple[type[ModulePass], ...], random: Random) -> None:
    program = random_program(random)
    before = Subject(program.module, program.feeds)
    assume(before.feeds)
    for pass_ in passes:
        pass_().apply(LowerdeckContext(), program.module)
        program.module.verify()
        check_contract(program.module, "optimized")
    after = Subject(program.module, before.feeds)
    for found, expected in zip(after.expected, before.expected, strict=True):
        assert bit_difference(found, expected) is None


def linear_program(random: Random) -> tuple[ModuleOp, dict[str, Any]]:
    """A convolution or product, and batch normalizations of what it gives or of the input."""
    numbers = np.random.default_rng(random.randint(0, 1 << 32))

    def constant(*shape: int, positive: bool = False) -> SSAValue:
        array = numbers.standard_normal(shape).astype(np.float32)
        op = ConstantOp.of(np.abs(array) + np.float32(0.1) if positive else array)
        block.add_op(op)
        return op.result

    def add(op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    groups = random.choice([1, 2])
    kind = random.choice(["conv", "transposed", "matmul"])
    shape = (2, 4, 5) if kind != "matmul" else (3, 4)
    block = Block(arg_types=[tensor(f32, shape)])
    x: SSAValue = block.args[0]
    window: dict[str, Any] = {
        "strides": [1],
        "dilations": [1],
        "pads_begin": [1],
        "pads_end": [0],
    }
    bias = constant(6) if random.random() < 0.5 else None
    if kind == "conv":
        y = add(ConvOp(x, constant(6, 4 // groups, 2), bias, **window, groups=groups))
    elif kind == "transposed":
        w = constant(4, 6 // groups, 2)
        y = add(ConvTransposeOp(x, w, bias, **window, output_padding=[0], groups=groups))
    else:
        y = add(MatmulOp(x, constant(4, 6)))
        y = y if bias is None else add(e.AddOp(y, bias))
    for _ in range(random.randint(1, 2)):
        axis = 1 if len(dims_of(y)) == 3 else random.choice([0, 1])
        channels = (static_shape(y) or ())[axis]
        parameters = [constant(channels) for _ in range(3)]
        variance = constant(channels, positive=True)
        y = add(BatchNormOp(y, *parameters, variance, 1e-3, axis))
    results = [y, add(SoftmaxOp(y, 1))]
    block.add_op(ReturnOp(*results))
    kind_of = ([tensor(f32, shape)], [value.type for value in results])
    inputs = {"0": numbers.standard_normal(shape).astype(np.float32)}
    return ModuleOp([FuncOp("main", kind_of, Region(block))]), inputs


@settings(max_examples=30)
@given(st.integers(0, 1 << 32))
@pytest.mark.parametrize("pass_", [FusePass, DecomposeLinearPass], ids=lambda pass_: pass_.name)
def test_no_batch_norm_is_left(pass_: type[ModulePass], seed: int) -> None:
    module, inputs = linear_program(Random(seed))
    module.verify()
    expected: dict[str, Any] = run_module(module, inputs)
    pass_().apply(LowerdeckContext(), module)
    assert not any(isinstance(op, BatchNormOp) for op in module.walk())
    module.verify()
    found: dict[str, Any] = run_module(module, inputs)
    for name, reference in expected.items():
        scale = float(np.abs(reference).max())
        np.testing.assert_allclose(found[name], reference, rtol=2e-5, atol=2e-5 * scale)
