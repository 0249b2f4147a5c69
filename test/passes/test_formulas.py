"""The textual tests of passes that replace formulas, as numbers: the same before and after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import dims_of, element_type, is_float, numpy_dtype
from lowerdeck.dialects.interpret import Interpreter
from lowerdeck.dialects.interpret.errors import InterpretError
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.pipeline import PASSES
from lowerdeck.passes.machinery.symbols import symbols_of

FOLDER = Path(__file__).parent
FORMULAS = (
    "absorb-channel-shuffle",
    "cancel-transpose",
    "decompose-linear",
    "fuse-activation",
    "fuse-attention",
    "fuse-channel-shuffle",
    "fuse-grouped-conv",
    "fuse-linear",
    "fuse-norm",
    "fuse-pad",
    "fuse-softmax",
    "hoist-crop",
    "merge-linear",
    "merge-duplicates",
    "merge-products",
    "move-stride",
    "reorder-binary",
    "select-rows",
    "separate-conv",
    "simplify",
    "simplify-arithmetic",
    "sink-reshape",
    "sink-transpose",
)

OPTIONS = {"merge-duplicates": {"everywhere": True}, "separate-conv": {"axes": True}}
"""With which passes do all that they can."""

WITHOUT_SIGNS_OF_ZEROS = ("fuse-linear",)
"""A sum of products is 0 where its negation is -0."""

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 40.0, -40.0)
"""Where formulas that are equal for most numbers differ."""


def parse(text: str) -> ModuleOp:
    """A module of one part of a textual test."""
    context = LowerdeckContext()
    register_dialects(context)
    return Parser(context, text).parse_module()


def programs() -> Iterator[tuple[str, str]]:
    """Each pass with each part of its textual test."""
    for name in FORMULAS:
        (path,) = FOLDER.glob(f"*/{name}.mlir")
        for part in path.read_text().split("// -----\n"):
            yield name, part


def inputs_of(types: list[Attribute], seed: int) -> list[NDArray[np.generic]]:
    """Random values, many of them near zero; every symbol has its own number."""
    rng = np.random.default_rng(seed)
    names = sorted(set[str]().union(*(symbols_of(type_) for type_ in types)))
    sizes = {name: 3 + number for number, name in enumerate(names)}
    values: list[NDArray[np.generic]] = []
    for type_ in types:
        shape = [dim.evaluate(sizes) for dim in dims_of(type_)]
        spread = rng.standard_normal(shape) * rng.choice([0.3, 3.0], shape)
        if len(shape) == 1 and shape[0] > 2 * len(SPECIAL):
            spread[: len(SPECIAL)] = SPECIAL
        value = spread if is_float(element_type(type_)) else rng.integers(0, 3, shape)
        with np.errstate(over="ignore"):
            values.append(np.asarray(value).astype(numpy_dtype(element_type(type_))))
    return values


@pytest.mark.parametrize(("name", "text"), list(programs()))
def test_same_numbers(name: str, text: str) -> None:
    check(name, parse(text))


@pytest.mark.parametrize(("name", "text"), list(programs()))
def test_near_misses(name: str, text: str) -> None:
    """Programs that are nearly those that a pass looks for: it has to see every difference."""
    rng = Random(text)
    for _ in range(MUTANTS):
        module = parse(text)
        for _ in range(rng.randint(1, 3)):
            mutate(module, rng)
        check(name, module)


BINARY = (e.AddOp, e.SubOp, e.MulOp, e.DivOp, e.MaxOp, e.MinOp)
UNARY = (e.ErfOp, e.TanhOp, e.ExpOp, e.NegOp, e.SigmoidOp, e.AbsOp)
NUMBERS = (0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -0.0, -2.0, 0.25)
MUTANTS = 2


def mutate(module: ModuleOp, rng: Random) -> None:
    """Exchange operands, or put another operator or constant in the place of one, if that fits."""
    candidates = [op for op in module.walk() if isinstance(op, (*BINARY, *UNARY, ConstantOp))]
    if not candidates:
        return
    op = rng.choice(candidates)
    match op:
        case ConstantOp():
            if not is_float(element_type(op.result)):
                return
            array = np.full_like(op.array, rng.choice(NUMBERS))
            new: Operation = ConstantOp.of(array)
        case e.BinaryOp() if rng.random() < 0.5:
            new = type(op)(op.rhs, op.lhs)
        case e.BinaryOp():
            new = rng.choice(BINARY)(op.lhs, op.rhs)
        case _ if not is_float(element_type(op.results[0])):
            return
        case _:
            new = rng.choice(UNARY)(op.operands[0])
    if new.results[0].type == op.results[0].type and op.parent is not None:
        op.parent.insert_op_before(new, op)
        op.results[0].replace_all_uses_with(new.results[0])
        op.detach()
        op.erase()


def check(name: str, before: ModuleOp) -> None:
    """What the pass makes of a module computes the same numbers."""
    after = before.clone()
    context = LowerdeckContext()
    for step in (name, "simplify", "dce"):
        PASSES[step]()(**OPTIONS.get(step, {})).apply(context, after)
    after.verify()
    for old, new in zip(before.body.block.ops, after.body.block.ops, strict=True):
        assert isinstance(old, FuncOp)
        assert isinstance(new, FuncOp)
        for seed in range(2):
            inputs = inputs_of(list(old.function_type.inputs), seed)
            try:
                expected = Interpreter().call(old, list(inputs))
            except InterpretError:
                with pytest.raises(InterpretError):
                    Interpreter().call(new, list(inputs))
                continue
            found = Interpreter().call(new, list(inputs))
            for a, b in zip(found, expected, strict=True):
                a, b = cast("NDArray[np.generic]", a), cast("NDArray[np.generic]", b)
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                if b.dtype.kind in "iub":
                    np.testing.assert_array_equal(a, b)
                    continue
                tolerance = {2: 2e-3, 4: 2e-6, 8: 1e-13}[b.dtype.itemsize]
                np.testing.assert_allclose(
                    a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance
                )
                zeros = np.asarray((b == 0) & (name not in WITHOUT_SIGNS_OF_ZEROS))
                np.testing.assert_array_equal(np.signbit(a[zeros]), np.signbit(b[zeros]))
