"""Linear ops by constants between movers, convolutions and products: the numbers stay the same."""

from __future__ import annotations

from collections import Counter
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
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import BatchNormOp, ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ChannelShuffleOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
    TransposeOp,
)
from lowerdeck.dialects.core.types import f32, f64, numpy_dtype, static_shape, tensor
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.fuse.fuse import FusePass
from lowerdeck.passes.linear import weights
from lowerdeck.passes.linear.fuse_linear import FuseLinearPass
from lowerdeck.passes.linear.merge_linear import MergeLinearPass
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.contracts import check_contract
from lowerdeck.passes.machinery.recorder import Recorder

TOLERANCE: dict[Attribute, float] = {f64: 1e-9, f32: 2e-4}
"""Of the largest element; f64 shows mistakes that rounding would hide."""


class Network:
    """A block of linear ops, movers, convolutions and products, in a drawn order."""

    def __init__(self, random: Random, element: Attribute) -> None:
        self.random = random
        self.numbers = np.random.default_rng(random.randint(0, 1 << 32))
        self.dtype = numpy_dtype(element)
        shape = random.choice([(2, 4, 5), (1, 4, 4, 3), (2, 6, 4), (3, 4)])
        self.block = Block(arg_types=[tensor(element, shape)])
        self.inputs = {"0": self.array(shape)}
        self.results: list[SSAValue] = []

    def array(self, shape: Sequence[int]) -> NDArray[Any]:
        return self.numbers.standard_normal(shape).astype(self.dtype)

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def constant(self, *shape: int, positive: bool = False) -> SSAValue:
        array = self.array(shape)
        return self.add(ConstantOp.of(np.abs(array) + self.dtype.type(0.25) if positive else array))

    def grow(self, length: int) -> ModuleOp:
        value: SSAValue = self.block.args[0]
        for _ in range(length):
            kinds = ["linear", "linear", "linear", "move", "move", "product", "relu", "fork"]
            value = getattr(self, self.random.choice(kinds))(value)
        self.results.append(value)
        self.block.add_op(ReturnOp(*self.results))
        types = [arg.type for arg in self.block.args], [value.type for value in self.results]
        return ModuleOp([FuncOp("main", types, Region(self.block))])

    def shape(self, value: SSAValue) -> tuple[int, ...]:
        shape = static_shape(value)
        assert shape is not None
        return shape

    def relu(self, x: SSAValue) -> SSAValue:
        return self.add(e.MaxOp(x, self.constant()))

    def fork(self, x: SSAValue) -> SSAValue:
        """Something else uses the value, too."""
        if self.random.random() < 0.3:
            self.results.append(x)
        return x

    def factor(self, x: SSAValue, *, positive: bool = False) -> SSAValue:
        """A constant along one dimension, all, or none."""
        shape, axis = self.shape(x), self.random.randrange(len(self.shape(x)))
        kind = self.random.choice(["axis", "axis", "axis", "one", "all"])
        sizes = [
            n if kind == "all" or (kind == "axis" and k == axis) else 1 for k, n in enumerate(shape)
        ]
        while sizes and sizes[0] == 1 and self.random.random() < 0.5:
            del sizes[0]
        return self.constant(*sizes, positive=positive)

    def linear(self, x: SSAValue) -> SSAValue:
        match self.random.choice(["mul", "add", "sub", "from", "div", "neg", "norm"]):
            case "mul":
                return self.add(e.MulOp(x, self.factor(x)))
            case "add":
                return self.add(e.AddOp(self.factor(x), x))
            case "sub":
                return self.add(e.SubOp(x, self.factor(x)))
            case "from":
                return self.add(e.SubOp(self.factor(x), x))
            case "div":
                return self.add(e.DivOp(x, self.factor(x, positive=True)))
            case "neg":
                return self.add(e.NegOp(x))
            case _:
                axis = self.random.randrange(len(self.shape(x)))
                count = self.shape(x)[axis]
                scale, bias, mean = (self.constant(count) for _ in range(3))
                variance = self.constant(count, positive=True)
                return self.add(BatchNormOp(x, scale, bias, mean, variance, 1e-3, axis))

    def product(self, x: SSAValue) -> SSAValue:
        shape = self.shape(x)
        rank = len(shape)
        if rank < 3 or self.random.random() < 0.4:
            if self.random.random() < 0.3:
                return self.add(MatmulOp(self.constant(3, shape[-2]), x))
            batch = shape[:-2] if self.random.random() < 0.3 else ()
            return self.add(MatmulOp(x, self.constant(*batch, shape[-1], 4)))
        channels = shape[1]
        groups = self.random.choice([g for g in (1, 2, channels) if channels % g == 0])
        bias = self.constant(2 * groups) if self.random.random() < 0.5 else None
        pad = self.random.choice([0, 0, 1])
        taps = [self.random.choice([1, 2]) if size + 2 * pad > 1 else 1 for size in shape[2:]]
        window: dict[str, Any] = {
            "strides": [1] * (rank - 2),
            "dilations": [1] * (rank - 2),
            "pads_begin": [pad] * (rank - 2),
            "pads_end": [pad] * (rank - 2),
            "groups": groups,
        }
        if self.random.random() < 0.3:
            window |= {"pads_begin": [0] * (rank - 2), "pads_end": [0] * (rank - 2)}
            weight = self.constant(channels, 2, *taps)
            return self.add(
                ConvTransposeOp(x, weight, bias, output_padding=[0] * (rank - 2), **window)
            )
        weight = self.constant(2 * groups, channels // groups, *taps)
        return self.add(ConvOp(x, weight, bias, **window))

    def move(self, x: SSAValue) -> SSAValue:
        shape = self.shape(x)
        rank, axis = len(shape), self.random.randrange(len(shape))
        kinds = ["transpose", "flatten", "divide", "shuffle", "spread", "split", "slice", "concat"]
        kinds += ["pad", "edge"]
        match self.random.choice(kinds):
            case "transpose":
                return self.add(TransposeOp(x, self.random.sample(range(rank), rank)))
            case "flatten" if rank > 2:
                merged = [*shape[:1], shape[1] * shape[2], *shape[3:]]
                return self.add(ReshapeOp(x, merged))
            case "divide" if shape[axis] % 2 == 0 and rank < 4:
                return self.add(
                    ReshapeOp(x, [*shape[:axis], 2, shape[axis] // 2, *shape[axis + 1 :]])
                )
            case "shuffle" if shape[1] % 2 == 0:
                return self.add(ChannelShuffleOp(x, 2))
            case "spread" if shape[0] == 1:
                return self.add(BroadcastOp(x, [2, *shape[1:]]))
            case "split" if shape[axis] > 1:
                split = SplitOp(x, axis, [1, shape[axis] - 1])
                self.add(split)
                first, second = split.parts
                kept, other = (second, first) if self.random.random() < 0.7 else (first, second)
                if self.random.random() < 0.5:
                    self.results.append(other)
                return kept
            case "slice":
                starts, sizes, steps = [0] * rank, list(shape), [1] * rank
                starts[axis], steps[axis] = shape[axis] - 1, -1
                sizes[axis] = max(shape[axis] - 1, 1)
                return self.add(SliceOp(x, starts, sizes, steps))
            case "concat" if np.prod(shape) < 200:
                other = self.linear(x) if self.random.random() < 0.5 else self.product(x)
                if len(self.shape(other)) != rank:
                    return x
                same = [k for k in range(rank) if self.shape(other)[k] == shape[k]]
                if len(same) < rank - 1:
                    return other
                places = [k for k in range(rank) if k not in same] or [axis]
                values = [x, other] if self.random.random() < 0.5 else [other, x]
                return self.add(ConcatOp(values, places[0]))
            case "pad" if np.prod(shape) < 200:
                value = self.constant() if self.random.random() < 0.5 else None
                begin = [int(k == axis) for k in range(rank)]
                return self.add(PadOp(x, begin, [0] * rank, value))
            case "edge" if np.prod(shape) < 200:
                end = [int(k == axis) for k in range(rank)]
                return self.add(PadOp(x, [0] * rank, end, mode="edge"))
            case _:
                return x


def compare(found: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    for name, reference in expected.items():
        assert found[name].dtype == reference.dtype
        scale = float(np.abs(reference).max(initial=0)) + 1
        np.testing.assert_allclose(found[name], reference, rtol=tolerance, atol=tolerance * scale)


PASSES: tuple[type[ModulePass], ...] = (FuseLinearPass, MergeLinearPass, FusePass)


@settings(max_examples=60)
@given(st.integers(0, 1 << 32), st.integers(2, 12))
@pytest.mark.parametrize("pass_", PASSES, ids=lambda pass_: pass_.name)
@pytest.mark.parametrize("element", TOLERANCE, ids=str)
def test_same_numbers(element: Attribute, pass_: type[ModulePass], seed: int, length: int) -> None:
    network = Network(Random(seed), element)
    module = network.grow(length)
    module.verify()
    expected = run_module(module, network.inputs)
    pass_().apply(LowerdeckContext(), module)
    module.verify()
    check_contract(module, "optimized")
    compare(run_module(module, network.inputs), expected, TOLERANCE[element])


def test_networks_cover_the_patterns() -> None:
    """Random networks are worth something only if the passes do something to them."""
    done: Counter[tuple[str, str]] = Counter()
    for seed in range(150):
        recorder = Recorder()
        module = Network(Random(seed), f64).grow(8)
        FuseLinearPass().run(module, recorder)
        MergeLinearPass().run(module, recorder)
        done += recorder.statistics
    assert min(done.values()) > 10, done
    assert len(done) == 3


def test_large_weights_are_scaled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two elements at a time, as if the weights were large."""
    monkeypatch.setattr(weights, "_SLAB", 2)
    for seed in range(60):
        network = Network(Random(seed), f64)
        module = network.grow(8)
        expected = run_module(module, network.inputs)
        FuseLinearPass().run(module, Recorder())
        compare(run_module(module, network.inputs), expected, TOLERANCE[f64])


@pytest.mark.parametrize("columns", [2, weights.COPY_LIMIT // 8])
def test_a_large_weight_is_not_there_twice(columns: int) -> None:
    """Two products share a weight, and one of them is scaled: a copy is made of a small one."""
    network = Network(Random(0), f32)
    x = network.block.args[0]
    weight = network.constant(network.shape(x)[-1], columns)
    plain = network.add(MatmulOp(x, weight))
    scaled = network.add(e.MulOp(network.add(MatmulOp(x, weight)), network.constant()))
    network.block.add_op(ReturnOp(plain, scaled))
    types = [x.type], [plain.type, scaled.type]
    module = ModuleOp([FuncOp("main", types, Region(network.block))])
    expected = run_module(module, network.inputs)
    FuseLinearPass().run(module, Recorder())
    assert any(isinstance(op, e.MulOp) for op in module.walk()) == (columns > 2)
    compare(run_module(module, network.inputs), expected, TOLERANCE[f32])


@pytest.mark.parametrize(("factors", "left"), [([2, 3], 0), ([2, 3, 2], 3), ([2, 2, 2], 0)])
def test_a_large_weight_that_all_readers_scale(factors: list[float], left: int) -> None:
    """Two readers have a weight each; more share one, if they scale it by the same factor."""
    network = Network(Random(0), f32)
    x = network.block.args[0]
    weight = network.constant(network.shape(x)[-1], weights.COPY_LIMIT // 8)
    results: list[SSAValue] = []
    for factor in factors:
        constant = network.add(ConstantOp.of(np.array(factor, np.float32)))
        results.append(network.add(e.MulOp(network.add(MatmulOp(x, weight)), constant)))
    network.block.add_op(ReturnOp(*results))
    types = [x.type], [value.type for value in results]
    module = ModuleOp([FuncOp("main", types, Region(network.block))])
    expected = run_module(module, network.inputs)
    FuseLinearPass().run(module, Recorder())
    assert sum(isinstance(op, e.MulOp) for op in module.walk()) == left
    compare(run_module(module, network.inputs), expected, TOLERANCE[f32])
