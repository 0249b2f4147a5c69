"""Algebra of real numbers: results stay the same, but for roundings, and only if asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.parser import Parser

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import dims_of, element_type, f64, numpy_dtype, tensor
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.lowering.pipeline import passes_of_phase
from lowerdeck.passes.fold.fast_math import FastMathPass
from lowerdeck.passes.machinery.context import LowerdeckContext, recorder_of
from lowerdeck.passes.machinery.options import CompileOptions

Array = NDArray[Any]

CASES = (Path(__file__).parent / "fold/fast-math.mlir").read_text().split("// -----\n")
OPEN_SIZE = 4
UNARY: list[tuple[type[e.UnaryOp], Any]] = [
    (e.ExpOp, np.exp),
    (e.LogOp, np.log),
    (e.SqrtOp, np.sqrt),
]
KINDS = ("unary", "binary", "binary", "constant", "constant", "exps", "products", "sums")
BINARY: list[tuple[type[e.BinaryOp], Any]] = [
    (e.AddOp, np.add),
    (e.SubOp, np.subtract),
    (e.MulOp, np.multiply),
    (e.DivOp, np.divide),
]


def results(module: ModuleOp, inputs: list[Array]) -> list[Array]:
    with np.errstate(all="ignore"):
        values = Interpreter().call(find_function(module, function_name(module)), inputs)
    return [np.asarray(value) for value in values]


def function_name(module: ModuleOp) -> str:
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    return function.sym_name.data


def fast(module: ModuleOp) -> Counter[str]:
    """Apply the pass; the rules that fired."""
    context = LowerdeckContext()
    FastMathPass().apply(context, module)
    module.verify()
    counts = recorder_of(context).statistics
    return Counter({rule: count for (_, rule), count in counts.items()})


@pytest.mark.parametrize("text", CASES)
def test_each_rule_is_an_equation(text: str) -> None:
    context = LowerdeckContext()
    register_dialects(context)
    module = Parser(context, text).parse_module()
    rng = np.random.default_rng(0)
    inputs: list[Array] = []
    for value in find_function(module, function_name(module)).body.block.args:
        shape = [OPEN_SIZE if dim.value is None else dim.value for dim in dims_of(value)]
        inputs.append(rng.uniform(1, 3, shape).astype(numpy_dtype(element_type(value))))
    before = results(module, inputs)
    fast(module)
    for found, wanted in zip(results(module, inputs), before, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def program(random: Random) -> tuple[ModuleOp, list[Array]]:
    """Ops on positive numbers of moderate size, many of which undo others."""
    rng = np.random.default_rng(random.randrange(1 << 32))
    block = Block(arg_types=[tensor(f64, (2, 3))] * 2)
    inputs = [rng.uniform(0.5, 2, (2, 3)) for _ in range(2)]
    known: list[tuple[SSAValue, Array]] = list(zip(block.args, inputs, strict=True))
    while len(known) < 30:
        x, value = random.choice(known[-6:])
        y, other = random.choice(known)
        with np.errstate(all="ignore"):
            match random.choice(KINDS):
                case "unary":
                    function, compute = random.choice(UNARY)
                    ops, result = [function(x)], compute(value)
                case "binary":
                    operator, compute = random.choice(BINARY)
                    ops, result = [operator(x, y)], compute(value, other)
                case "constant":
                    operator, compute = random.choice([*BINARY, (e.PowOp, np.power)])
                    number = np.array(random.choice([-0.5, 0.0, 0.5, 3.0, 7.0]))
                    constant = ConstantOp.of(number)
                    ops = [constant, operator(x, constant.result)]
                    result = compute(value, number)
                case "products":
                    left, right = e.MulOp(x, y), e.MulOp(x, x)
                    ops = [left, right, e.AddOp(left.result, right.result)]
                    result = value * other + value * value
                case "sums":
                    constant = ConstantOp.of(np.array(0.5))
                    inner = e.SubOp(x, constant.result)
                    both = e.AddOp(y, inner.result)
                    ops = [constant, inner, both, e.AddOp(both.result, constant.result)]
                    result = (other + (value - 0.5)) + 0.5
                case _:
                    left, right = e.ExpOp(x), e.ExpOp(y)
                    ops = [left, right, e.DivOp(left.result, right.result)]
                    result = np.exp(value) / np.exp(other)
        if (np.abs(result) > 0.01).all() and (np.abs(result) < 100).all() and (result > 0).all():
            block.add_ops(ops)
            known.append((ops[-1].results[0], result))
    block.add_op(ReturnOp(*(value for value, _ in known[-8:])))
    types = [value.type for value, _ in known[-8:]]
    return ModuleOp([FuncOp("main", (block.arg_types, types), Region(block))]), inputs


def test_random_programs() -> None:
    fired = Counter[str]()
    for seed in range(100):
        module, inputs = program(Random(seed))
        before = results(module, inputs)
        fired += fast(module)
        for found, wanted in zip(results(module, inputs), before, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=str(seed))
    rules = {pattern.name for pattern in FastMathPass().patterns(ModuleOp([]))}
    assert fired.keys() == rules - {"collect-products"}


def test_only_the_option_runs_it() -> None:
    usual = passes_of_phase("optimized", CompileOptions())
    asked = passes_of_phase("optimized", CompileOptions(fast_math=True))
    assert "fast-math" not in usual
    start = asked.index("fast-math")
    added = len(asked) - len(usual)
    assert asked[:start] + asked[start + added :] == usual
    assert asked[-1] == "infer-shapes"
