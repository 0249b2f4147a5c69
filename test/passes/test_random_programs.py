"""Random core programs mean the same after passes: bit for bit, or within rounding for fusion."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp, IotaOp
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.linear import BatchNormOp, ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.reduce import ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
    TransposeOp,
)
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f16,
    f32,
    i1,
    i8,
    i64,
    is_float,
    numpy_dtype,
    static_shape,
    tensor,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.context import LowerdeckContext
from lowerdeck.passes.contracts import check_contract
from lowerdeck.passes.cse import CsePass
from lowerdeck.passes.dce import DcePass
from lowerdeck.passes.decompose_linear import DecomposeLinearPass
from lowerdeck.passes.fold import FoldPass
from lowerdeck.passes.fuse import FusePass
from lowerdeck.passes.infer_shapes import InferShapesPass
from lowerdeck.passes.reorder_binary import ReorderBinaryPass
from lowerdeck.passes.simplify import SimplifyPass

SHAPES = ((2, 3), (3,), (1, 3), (2, 1), ())
FLOATS = (0.0, -0.0, 1.0, 2.0, -1.0, 0.5, float("inf"), float("nan"))
UNARY = (e.NegOp, e.AbsOp, e.ExpOp, e.SigmoidOp, e.SqrtOp)
BINARY = (e.AddOp, e.SubOp, e.MulOp, e.DivOp, e.MaxOp, e.MinOp, e.PowOp)
INTEGER = (e.AddOp, e.SubOp, e.MulOp, e.DivOp, e.MaxOp, e.AndOp, e.OrOp, e.XorOp, e.ShlOp)


class Program:
    """Builds one block from drawn choices; every op's operands are values that are visible."""

    def __init__(self, random: Random, block: Block, values: Sequence[SSAValue]) -> None:
        self.random = random
        self.block = block
        self.values = list(values)

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        self.values.extend(op.results)
        return op.results[0]

    def pick(self, *elements: Any, rank: int | None = None) -> SSAValue:
        """A visible value of one of the element types; a new constant if there is none."""
        fitting = [
            value
            for value in self.values
            if element_type(value) in elements and rank in (None, len(dims_of(value)))
        ]
        if fitting and self.random.randint(0, 3):
            # Recent values more often, so that chains are long.
            return fitting[-1 - min(self.random.randint(0, 9), len(fitting) - 1)]
        return self.constant(elements[0], rank)

    def constant(self, element: Any, rank: int | None = None) -> SSAValue:
        shape = self.random.choice([s for s in SHAPES if rank in (None, len(s))])
        uniform = self.random.random() < 0.5
        count = 1 if uniform else int(np.prod(shape))
        numbers = FLOATS if is_float(element) else (0, 1) if element == i1 else range(-2, 4)
        drawn = self.random.choices(numbers, k=count)
        array = np.resize(np.array(drawn, numpy_dtype(element)), shape)
        return self.add(ConstantOp.of(array))

    def step(self, depth: int) -> None:
        """One drawn op; none if the operands' shapes do not fit."""
        kinds = ["unary", "binary", "integer", "compare", "select", "cast", "move", "twice"]
        if depth:
            kinds += ["if", "loop", "symbol"]
        try:
            getattr(self, f"_{self.random.choice(kinds)}")(depth)
        except VerifyException:
            return

    def _unary(self, depth: int) -> None:
        self.add(self.random.choice(UNARY)(self.pick(f32, f16)))

    def _binary(self, depth: int) -> None:
        x = self.pick(f32, f16)
        self.add(self.random.choice(BINARY)(*self._pair(x)))

    def _integer(self, depth: int) -> None:
        x = self.pick(i64, i8)
        self.add(self.random.choice(INTEGER)(*self._pair(x)))

    def _pair(self, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        y = self.pick(element_type(x))
        return (x, y) if self.random.random() < 0.5 else (y, x)

    def _compare(self, depth: int) -> None:
        x = self.pick(f32, i64)
        predicate = self.random.choice(sorted(Predicate))
        compared = self.add(e.CompareOp(predicate, x, self.pick(element_type(x))))
        if self.random.random() < 0.5:
            self.add(e.NotOp(compared))

    def _select(self, depth: int) -> None:
        x = self.pick(f32, i64)
        self.add(e.SelectOp(self.pick(i1), x, self.pick(element_type(x))))

    def _cast(self, depth: int) -> None:
        # Integers and i1 only: what does not fit from a float is unspecified.
        value = self.pick(i8, i1, i64)
        for _ in range(self.random.randint(1, 3)):
            value = self.add(e.CastOp(value, self.random.choice([i8, i64, i1])))
        if self.random.random() < 0.5:
            self.add(e.CastOp(value, self.random.choice([f32, f16])))

    def _twice(self, depth: int) -> None:
        """An op that is there already."""
        if pure := [op for op in self.block.ops if op.results and not op.regions]:
            self.add(self.random.choice(pure).clone())

    def _move(self, depth: int) -> None:
        value = self.pick(f32, i64, rank=2)
        for _ in range(self.random.randint(1, 3)):
            value = self._moved(value)

    def _moved(self, x: SSAValue) -> SSAValue:
        rows, columns = static_shape(x) or (0, 0)
        match self.random.choice(["T", "reshape", "flip", "cut", "pad", "join", "split", "spread"]):
            case "T":
                return self.add(TransposeOp(x, [1, 0]))
            case "reshape":
                flat = self.add(ReshapeOp(x, [rows * columns]))
                return self.add(ReshapeOp(flat, [columns, rows]))
            case "flip":
                sizes = [rows, columns]
                return self.add(SliceOp(x, [rows - 1, 0], sizes, [-1, 1])) if rows else x
            case "cut":
                return self.add(SliceOp(x, [0, 0], [rows, min(columns, 2)]))
            case "pad":
                amount = self.random.randint(0, 1)
                return self.add(PadOp(x, [amount, 0], [0, 0]))
            case "join":
                return self.add(ConcatOp([x, x] if rows < 6 else [x], 0))
            case "split":
                self.add(split := SplitOp(x, 0, [rows // 2, rows - rows // 2]))
                parts = split.parts if self.random.random() < 0.5 else split.parts[::-1]
                return self.add(ConcatOp(parts, 0))
            case _:
                if rows == 1:
                    return self.add(BroadcastOp(x, [2, columns]))
                return self.add(BroadcastOp(x, [rows, columns]))

    def _condition(self) -> SSAValue:
        x = self.pick(i1)
        axes = range(len(dims_of(x)))
        return self.add(ReduceOp("max", x, list(axes)))

    def _region(self, args: Sequence[SSAValue], block: Block, depth: int) -> Program:
        inner = Program(self.random, block, [*self.values, *args])
        for _ in range(self.random.randint(0, 4)):
            inner.step(depth - 1)
        return inner

    def _if(self, depth: int) -> None:
        condition = self._condition()
        outs = [self.pick(f32), self.pick(i64)]
        regions: list[Region] = []
        for _ in range(2):
            block = Block()
            inner = self._region([], block, depth)
            found = [inner.values[-1 - k] for k in range(min(4, len(inner.values)))]
            yields = [next((v for v in found if v.type == out.type), out) for out in outs]
            block.add_op(YieldOp(yields))
            regions.append(Region(block))
        self.add(IfOp(condition, *regions))

    def _loop(self, depth: int) -> None:
        trips = self.add(ConstantOp.of(np.array(self.random.randint(-1, 3))))
        if self.random.random() < 0.5:
            trips = self.add(ReduceOp("min", self.values[1], [0]))
        inits = [self.pick(f32), self.pick(f32), self.pick(i64)]
        block = Block(arg_types=[tensor(i64, []), *(value.type for value in inits)])
        inner = self._region(block.args, block, depth)
        yields: list[SSAValue] = []
        for arg in block.args[1:]:
            fitting = [value for value in inner.values if value.type == arg.type]
            yields.append(self.random.choice(fitting[-3:]))
        block.add_op(YieldOp([*yields, block.args[0]]))
        name = f"t{id(block)}"
        loop = LoopOp(trips, None, inits, Region(block), count=name)
        self.block.add_op(loop)
        self.values.extend(loop.results[:3])
        total = ReduceOp("sum", loop.results[3], [0])
        self.add(total)

    def _symbol(self, depth: int) -> None:
        """A size that is data: sometimes known after folding, sometimes not."""
        known = self.random.random() < 0.5
        size = (
            self.add(e.AddOp(self.add(FromDimsOp([1], [])), self.add(FromDimsOp([2], []))))
            if known
            else self.add(ReduceOp("max", self.values[1], [0]))
        )
        name = f"u{len(self.values)}_{id(self.block)}"
        self.block.add_op(BindSymbolsOp(size, [name]))
        row = IotaOp([Expr.symbol(name)])
        self.block.add_op(row)
        square = e.MulOp(row.result, row.result)
        self.block.add_op(square)
        self.add(ReduceOp("sum", square.result, [0]))


def function(random: Random, length: int) -> ModuleOp:
    """`main` of a float and an integer tensor, which returns what was computed last."""
    types = [tensor(f32, (2, 3)), tensor(i64, (3,)), tensor(i1, ())]
    block = Block(arg_types=types)
    program = Program(random, block, block.args)
    for _ in range(length):
        program.step(2)
    results = [program.pick(f32), program.pick(i64), program.values[-1]]
    block.add_op(ReturnOp(*results))
    kind = (types, [value.type for value in results])
    return ModuleOp([FuncOp("main", kind, Region(block))])


INPUTS = {
    "0": np.array([[1.5, -0.0, 0.0], [np.nan, -np.inf, 7.0]], np.float32),
    "1": np.array([3, 0, 2], np.int64),
    "2": np.array(True),
}


def assert_same_bits(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Equal dtypes, shapes and bytes, where all NaNs are one."""
    for name, reference in expected.items():
        value: NDArray[Any] = found[name]
        assert (value.dtype, value.shape) == (reference.dtype, reference.shape)
        if value.dtype.kind == "f":
            assert np.array_equal(np.isnan(value), np.isnan(reference))
            value, reference = (np.nan_to_num(v, nan=1.0) for v in (value, reference))
        assert value.tobytes() == reference.tobytes()


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
@given(st.integers(0, 1 << 32), st.integers(1, 15))
@pytest.mark.parametrize("passes", EXACT, ids=lambda ps: "+".join(p.name for p in ps))
def test_same_bits(passes: tuple[type[ModulePass], ...], seed: int, length: int) -> None:
    module = function(Random(seed), length)
    module.verify()
    check_contract(module, "optimized")
    expected = run_module(module, INPUTS)
    for pass_ in passes:
        pass_().apply(LowerdeckContext(), module)
        module.verify()
        check_contract(module, "optimized")
    assert_same_bits(run_module(module, INPUTS), expected)


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
