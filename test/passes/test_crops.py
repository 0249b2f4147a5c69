"""Slices before an op in place of one behind it, and strides before those above: same numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.enums import PadMode, PoolKind
from lowerdeck.dialects.core.linear import BatchNormOp, ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.reduce import CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from lowerdeck.dialects.core.types import dims_of, f32, static_shape, tensor
from lowerdeck.dialects.dims import constants
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.machinery.context import LowerdeckContext, recorder_of
from lowerdeck.passes.movement.hoist_crop import HoistCropPass
from lowerdeck.passes.movement.move_stride import MoveStridePass


class Builder:
    """A function of one image, its ops drawn at random."""

    def __init__(self, seed: int, shape: Sequence[int]) -> None:
        self.random = Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.block = Block(arg_types=[tensor(f32, shape)])
        self.shape = shape

    @property
    def x(self) -> SSAValue:
        return self.block.args[0]

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def weights(self, *shape: int) -> SSAValue:
        array = self.numbers.standard_normal(shape).astype(np.float32)
        return self.add(ConstantOp.of(array))

    def module(self, *results: SSAValue) -> ModuleOp:
        self.block.add_op(ReturnOp(*results))
        types = ([self.x.type], [value.type for value in results])
        return ModuleOp([FuncOp("main", types, Region(self.block))])

    def inputs(self) -> dict[str, Any]:
        # No zeros: the sign of a sum of zeros is not the matter here.
        array = self.numbers.standard_normal(self.shape).astype(np.float32)
        return {"0": array}

    def window(self, rank: int) -> dict[str, Any]:
        def drawn(low: int, high: int) -> list[int]:
            return [self.random.randint(low, high) for _ in range(rank)]

        return {
            "strides": drawn(1, 3),
            "dilations": drawn(1, 2),
            "pads_begin": drawn(0, 2),
            "pads_end": drawn(0, 2),
        }

    def sliced(self, value: SSAValue) -> SSAValue:
        """A random part of a value, in one or more dimensions."""
        starts: list[int] = []
        sizes: list[int] = []
        steps: list[int] = []
        for dim in static_shape(value) or ():
            kind = self.random.choice(["all", "all", "some", "some", "every", "back"])
            step = {"all": 1, "some": 1, "every": self.random.randint(2, 3), "back": -1}[kind]
            start, size = 0, dim
            if kind == "some":
                start = self.random.randint(0, dim - 1)
                size = self.random.randint(1, dim - start)
            elif kind == "every":
                start = self.random.randint(0, min(1, dim - 1))
                size = (dim - 1 - start) // step + 1
            elif kind == "back":
                start = dim - 1
            starts.append(start)
            sizes.append(size)
            steps.append(step)
        return self.add(SliceOp(value, starts, sizes, steps))


def conv(b: Builder) -> SSAValue:
    groups, kernel = b.random.choice([1, 1, 2, 4]), [b.random.randint(1, 3) for _ in range(2)]
    outputs = groups * b.random.randint(1, 3)
    bias = b.weights(outputs) if b.random.random() < 0.5 else None
    weight = b.weights(outputs, 4 // groups, *kernel)
    return b.add(ConvOp(b.x, weight, bias, **b.window(2), groups=groups))


def conv_transpose(b: Builder) -> SSAValue:
    kernel, window = [b.random.randint(1, 3) for _ in range(2)], b.window(2)
    weight = b.weights(4, 3, *kernel)
    return b.add(ConvTransposeOp(b.x, weight, b.weights(3), **window, output_padding=[0, 0]))


def pool(b: Builder) -> SSAValue:
    kind, window = b.random.choice(list(PoolKind)), b.window(2)
    kernel = [b.random.randint(1, 3) for _ in range(2)]
    overhang = [b.random.randint(0, pad) for pad in window["pads_end"]]
    flags: dict[str, Any] = {"overhang": overhang, "count_pads": b.random.random() < 0.5}
    return b.add(PoolOp(kind, b.x, kernel=kernel, **window, **flags))


def pad(b: Builder) -> SSAValue:
    mode = b.random.choice(list(PadMode))
    begin, end = ([b.random.randint(0, 3) for _ in range(4)] for _ in range(2))
    value = None
    if mode is PadMode.CONSTANT and b.random.random() < 0.5:
        value = b.add(ConstantOp.of(np.array(3, np.float32)))
    return b.add(PadOp(b.x, begin, end, value, mode))


def concat(b: Builder) -> SSAValue:
    axis = b.random.randint(0, 3)
    count = b.random.randint(1, 3)
    return b.add(ConcatOp([b.x, *(b.add(e.NegOp(b.x)) for _ in range(count))], axis))


def reshape(b: Builder) -> SSAValue:
    shapes = ([2, 4, 42], [8, 7, 6], [2, 2, 2, 7, 6], [1, 2, 4, 7, 6], [2, 4, 7, 1, 3, 2], [4, 84])
    exp = b.add(e.ExpOp(b.x))
    return b.add(ReshapeOp(exp, b.random.choice(shapes)))


def transposed(b: Builder) -> SSAValue:
    order = b.random.sample(range(4), 4)
    spread = b.add(BroadcastOp(b.add(e.ExpOp(b.x)), [3, 2, 4, 7, 6]))
    return b.add(TransposeOp(spread, [0, *(axis + 1 for axis in order)]))


def rows(b: Builder) -> SSAValue:
    axis = b.random.randint(0, 3)
    match b.random.choice(["reduce", "running", "softmax", "norm", "product"]):
        case "reduce":
            axes = sorted(b.random.sample(range(4), b.random.randint(1, 3)))
            return b.add(ReduceOp("max", b.x, axes, b.random.random() < 0.5))
        case "running":
            return b.add(CumulativeOp("sum", b.x, axis))
        case "softmax":
            return b.add(SoftmaxOp(b.x, axis))
        case "norm":
            size = b.shape[axis]
            variance = b.add(e.ExpOp(b.weights(size)))
            scale, bias, mean = (b.weights(size) for _ in range(3))
            return b.add(BatchNormOp(b.x, scale, bias, mean, variance, 0.1, axis))
        case _:
            return b.add(MatmulOp(b.x, b.weights(6, 5)))


def sums(b: Builder) -> SSAValue:
    """A sum with operands that broadcast, behind a convolution."""
    made = b.add(e.MaxOp(conv(b), b.weights()))
    shape = [b.random.choice([1, dim]) for dim in static_shape(made) or ()]
    return b.add(e.AddOp(made, b.weights(*shape[b.random.randint(0, 3) :])))


MAKERS: Mapping[str, Callable[[Builder], SSAValue]] = {
    maker.__name__: maker
    for maker in (conv, conv_transpose, pool, pad, concat, reshape, transposed, rows, sums)
}


def assert_same(module: ModuleOp, inputs: dict[str, Any], expected: dict[str, Any]) -> None:
    module.verify()
    found: dict[str, Any] = run_module(module, inputs)
    for name, reference in expected.items():
        assert found[name].shape == reference.shape
        np.testing.assert_allclose(found[name], reference, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("kind", MAKERS)
def test_crops_compute_the_same(kind: str) -> None:
    fired = sum(crops_of(kind, seed) for seed in range(80))
    assert fired > 5


def crops_of(kind: str, seed: int) -> int:
    """Check one random program; returns how often the pass has rewritten it."""
    builder = Builder(seed, (2, 4, 7, 6))
    module = builder.module(builder.sliced(MAKERS[kind](builder)))
    module.verify()
    inputs = builder.inputs()
    expected: dict[str, Any] = run_module(module, inputs)
    context = LowerdeckContext()
    HoistCropPass().apply(context, module)
    assert_same(module, inputs, expected)
    return recorder_of(context).rewrites


def multiply_adds(module: ModuleOp) -> int:
    """Of all convolutions, as shapes give them."""
    total = 0
    for op in module.walk():
        if isinstance(op, ConvOp):
            sizes = constants([*dims_of(op.result), *dims_of(op.weight)[1:]])
            total += int(np.prod(sizes or ()))
    return total


def residual(b: Builder, strides: Sequence[int]) -> ModuleOp:
    """Two blocks of a residual network, the second with strides in its first convolutions."""

    def conv1(x: SSAValue, inputs: int, outputs: int, strides: Sequence[int]) -> SSAValue:
        window: dict[str, Any] = {"dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
        return b.add(ConvOp(x, b.weights(outputs, inputs, 1, 1), strides=strides, **window))

    def conv3(x: SSAValue, channels: int) -> SSAValue:
        window: dict[str, Any] = {"dilations": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1]}
        weight = b.weights(channels, channels, 3, 3)
        return b.add(ConvOp(x, weight, strides=[1, 1], **window))

    def relu(x: SSAValue) -> SSAValue:
        return b.add(e.MaxOp(x, zero))

    zero = b.add(ConstantOp.of(np.array(0, np.float32)))
    inner = conv1(relu(conv3(relu(conv1(b.x, 4, 2, [1, 1])), 2)), 2, 4, [1, 1])
    y = relu(b.add(e.AddOp(b.x, inner)))
    left, right = conv1(y, 4, 8, strides), conv1(y, 4, 2, strides)
    return b.module(b.add(e.AddOp(left, conv1(relu(conv3(relu(right), 2)), 2, 8, [1, 1]))))


@pytest.mark.parametrize("strides", [(2, 2), (1, 3), (4, 2)])
def test_strides_move_up(strides: tuple[int, int]) -> None:
    """The 3 x 3 and the second 1 x 1 convolution compute what the strides do not pass over."""
    height, width = 11, 10
    builder = Builder(7, (1, 4, height, width))
    module = residual(builder, strides)
    inputs = builder.inputs()
    expected: dict[str, Any] = run_module(module, inputs)
    before = multiply_adds(module)
    MoveStridePass().apply(LowerdeckContext(), module)
    left = -(-height // strides[0]) * -(-width // strides[1])
    passed_over = height * width - left
    assert before - multiply_adds(module) == passed_over * (2 * 2 * 9 + 4 * 2)
    assert_same(module, inputs, expected)


def test_random_strides() -> None:
    assert sum(strides_of(seed) for seed in range(150)) > 30


def strides_of(seed: int) -> int:
    """
    Windows of one element along some dimensions, behind ops of any kind, with several users: check
    one random program; returns how often the pass has rewritten it.
    """
    builder = Builder(seed, (2, 4, 7, 6))
    draw = builder.random
    made = draw.choice([conv, pool, sums, pad, conv_transpose])(builder)
    channels = dims_of(made)[1].value or 0
    results: list[SSAValue] = []
    for _ in range(draw.randint(1, 3)):
        kernel = [draw.choice([1, 1, 1, 2]) for _ in range(2)]
        window: dict[str, Any] = {
            "strides": [draw.choice([1, 2, 2, 4]) for _ in range(2)],
            "dilations": [1, 1],
            "pads_begin": [draw.choice([0, 0, 0, 1]) for _ in range(2)],
            "pads_end": [1, 1] if 2 in kernel else [0, 0],
        }
        if draw.random() < 0.3:
            results.append(builder.add(PoolOp("average", made, kernel=kernel, **window)))
        else:
            weight = builder.weights(3, channels, *kernel)
            results.append(builder.add(ConvOp(made, weight, **window)))
    module = builder.module(*results)
    module.verify()
    inputs = builder.inputs()
    expected: dict[str, Any] = run_module(module, inputs)
    context = LowerdeckContext()
    MoveStridePass().apply(context, module)
    assert_same(module, inputs, expected)
    return recorder_of(context).rewrites
