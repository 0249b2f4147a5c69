"""Random small convolutional networks with the layouts and schedules of every target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.builder import ImplicitBuilder
from xdsl.ir import Block, Region, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.types import f32, i64, static_shape
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .choosing import Change, ChooseAmong, unchanged  # noqa: TID251  (as below)
from .forms import some  # noqa: TID251  (as below)
from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    VECTOR_FLAGS,
    Program,
    Suite,
    module_of,
    symbol,
    typed,
)
from .targets import suite_in_turn  # noqa: TID251  (as above)

Array = NDArray[Any]
Layer = Callable[[Random, list[SSAValue]], SSAValue]

TARGETS = ["x86-64-v4", "x86-64-v3", "x86-64", "c99"]
CHANNELS = [1, 2, 3, 5, 8, 13, 16, 20, 32, 33]


@dataclass(eq=False)
class LayoutProgram(Program):
    """A program that takes the compiler's own way."""

    target: str = "x86-64-v4"
    change: Change = unchanged
    strategy: tuple[str, ...] = ()

    def lower(self, runs: Sequence[Program]) -> tuple[CArtifact, list[str]]:
        """As `Program` has it."""
        options = CompileOptions(target=self.target, threads=self.threads, strategy=self.strategy)
        context = LowerdeckContext(options=options)
        choice = {"choose-strategies": ChooseAmong(change=self.change)}
        run_to_phase(context, self.module, "scheduled", after="optimized", instead=choice)
        problems = self.check_scheduled(runs)
        return emit_c(self.module, self.name, self.target), problems


def add(
    suite: Suite,
    target: str,
    types: Sequence[Any],
    body: Any,
    *inputs: Array,
    change: Change = unchanged,
    threads: int = 1,
    runs_scheduled: bool = True,
    strategy: tuple[str, ...] = (),
) -> None:
    """One more program."""
    name, module = f"p{len(suite.programs)}", module_of(types, body)
    program = LayoutProgram(
        name,
        module,
        inputs,
        ulps=64,
        scale=1,
        threads=threads,
        target=target,
        change=change,
        strategy=strategy,
        runs_scheduled=runs_scheduled,
    )
    suite.programs.append(program)


def values(*shape: int, seed: int = 0) -> Array:
    """Numbers around zero."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def constant(rng: Random, *shape: int) -> SSAValue:
    """Small numbers."""
    scale = 1 / np.sqrt(max(1, np.prod(shape[1:])))
    array = values(*shape, seed=rng.randrange(1 << 30)) * np.float32(scale)
    return ConstantOp.of(array).result


def dims(value: SSAValue) -> list[int]:
    """The dimensions, which are numbers."""
    shape = static_shape(value)
    assert shape is not None
    return list(shape)


def _pick(rng: Random, known: Sequence[SSAValue]) -> SSAValue:
    """The later ones more often, so that chains grow."""
    return known[max(rng.randrange(len(known)), rng.randrange(len(known)))]


def conv(x: SSAValue, weight: SSAValue, bias: SSAValue, pad: Sequence[int], **options: Any) -> Any:
    """A convolution in two dimensions with the same padding at begin and end."""
    stride, groups = options.get("stride", 1), options.get("groups", 1)
    return ConvOp(
        x,
        weight,
        bias,
        strides=[stride, stride],
        dilations=[1, 1],
        pads_begin=pad,
        pads_end=pad,
        groups=groups,
    ).result


def _conv(rng: Random, known: list[SSAValue]) -> SSAValue:
    x = _pick(rng, known)
    channels, kernel = dims(x)[1], rng.choice([1, 3])
    groups = rng.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
    outputs = channels if groups == channels else rng.choice(CHANNELS) * groups
    weight = constant(rng, outputs, channels // groups, kernel, kernel)
    pad = [kernel // 2] * 2
    return conv(x, weight, constant(rng, outputs), pad, stride=rng.choice([1, 1, 2]), groups=groups)


def _conv_transpose(rng: Random, known: list[SSAValue]) -> SSAValue:
    x = _pick(rng, known)
    if dims(x)[2] > 2:
        return x
    outputs = rng.choice(CHANNELS)
    return ConvTransposeOp(
        x,
        constant(rng, dims(x)[1], outputs, 2, 2),
        constant(rng, outputs),
        strides=[2, 2],
        dilations=[1, 1],
        pads_begin=[0, 0],
        pads_end=[0, 0],
        output_padding=[0, 0],
        groups=1,
    ).result


def _pool(rng: Random, known: list[SSAValue]) -> SSAValue:
    return PoolOp(
        rng.choice(["max", "average"]),
        _pick(rng, known),
        kernel=[3, 3],
        strides=[rng.choice([1, 2])] * 2,
        dilations=[1, 1],
        pads_begin=[1, 1],
        pads_end=[1, 1],
        overhang=[0, 0],
        count_pads=rng.random() < 0.5,
    ).result


def _map(rng: Random, known: list[SSAValue]) -> SSAValue:
    x = _pick(rng, known)
    channels = dims(x)[1]
    same = [v for v in known if dims(v) == dims(x)]
    match rng.randrange(6):
        case 0:
            return e.SigmoidOp(x).result
        case 1:
            return e.MulOp(x, constant(rng, 1, channels, 1, 1)).result
        case 2:
            return e.AddOp(constant(rng, channels, 1, 1), x).result
        case 3:
            mean = ReduceOp("sum", x, [2, 3], True).result
            return e.MulOp(x, e.SigmoidOp(mean).result).result
        case 4:
            positive = e.CompareOp(Predicate.GT, x, scalar(0.0, f32).result)
            return e.SelectOp(positive.result, x, _pick(rng, same)).result
        case _:
            return e.AddOp(x, _pick(rng, same)).result


def _concat(rng: Random, known: list[SSAValue]) -> SSAValue:
    x = _pick(rng, known)
    same = [v for v in known if dims(v)[2:] == dims(x)[2:] and dims(v)[1] < 40]
    parts = [x, *rng.sample(same, min(len(same), rng.randint(1, 2)))]
    return t.ConcatOp(rng.sample(parts, len(parts)), 1).result


def _slice(rng: Random, known: list[SSAValue]) -> SSAValue:
    x = _pick(rng, known)
    shape = dims(x)
    start = rng.choice([k for k in (0, 3, 16) if k < shape[1]])
    size = rng.choice([shape[1] - start, (shape[1] - start + 1) // 2])
    return t.SliceOp(x, [0, start, 0, 0], [shape[0], size, *shape[2:]]).result


def _move(rng: Random, known: list[SSAValue]) -> SSAValue:
    x = _pick(rng, known)
    shape = dims(x)
    match rng.randrange(6):
        case 0:
            groups = rng.choice([g for g in (1, 2, 4) if shape[1] % g == 0])
            return t.ChannelShuffleOp(x, groups).result
        case 1:
            indices = np.array([k // 2 for k in range(2 * shape[2])][:4])
            return t.GatherOp(x, ConstantOp.of(indices).result, 2).result
        case 2:
            return t.TransposeOp(x, [0, 1, 3, 2]).result
        case 3:
            return t.PadOp(x, [0, 0, 1, 0], [0, 0, 0, 1]).result
        case 4:
            flat = t.ReshapeOp(x, [shape[0], shape[1], shape[2] * shape[3], 1]).result
            return t.ReshapeOp(e.NegOp(flat).result, shape).result
        case _:
            last = t.TransposeOp(x, [0, 2, 3, 1]).result
            return t.TransposeOp(SoftmaxOp(last, 3).result, [0, 3, 1, 2]).result


LAYERS: list[Layer] = [
    _conv,
    _conv,
    _conv,
    _conv_transpose,
    _pool,
    _map,
    _map,
    _concat,
    _slice,
    _move,
]


def network(rng: Random, *inputs: SSAValue) -> list[SSAValue]:
    """A dozen layers, and the last few values."""
    known = list(inputs)
    for _ in range(12):
        small = [v for v in known if max(dims(v)[2:]) < 7 and min(dims(v)[2:]) > 0]
        known.append(rng.choice(LAYERS)(rng, small))
    return [e.NegOp(value).result for value in known[-3:]]


@pytest.mark.parametrize("target", TARGETS)
def test_random_networks(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, TARGETS)
    for seed in range(6):
        rng = Random(seed)
        inputs = [values(rng.choice([1, 1, 2]), rng.choice(CHANNELS), 4, 3, seed=seed)]
        types = [typed(value.dtype, *value.shape) for value in inputs]
        add(suite, target, types, partial(network, rng), *inputs)
    suite.check()


SPARSE = [
    # channels in and out, image, taps, dilations, strides, padding at begin and end
    ([40, 70], [8, 8], [3, 3], [12, 9], [1, 1], [12, 9], [12, 9]),
    ([17, 33], [5, 30], [3, 3], [6, 12], [1, 1], [6, 12], [6, 12]),
    ([16, 16], [2, 2], [3, 3], [1, 1], [1, 1], [1, 1], [1, 1]),
    ([5, 128], [1, 1], [5, 3], [1, 1], [1, 1], [2, 1], [2, 1]),
    ([24, 20], [1, 21], [3, 3], [5, 5], [2, 3], [7, 4], [4, 11]),
    ([8, 48], [6, 7], [2, 4], [9, 3], [1, 2], [0, 9], [9, 1]),
    ([8, 8], [3, 3], [2, 2], [1, 2], [1, 1], [5, 6], [4, 5]),
    ([33, 9], [4, 14], [3, 3], [20, 7], [1, 1], [20, 7], [20, 7]),
    ([8, 20], [29], [4], [11], [1], [11], [22]),
    ([8, 20], [2, 3, 14], [3, 1, 3], [4, 1, 9], [1, 2, 1], [4, 0, 9], [4, 0, 9]),
]
"""Windows that lie in the padding for the most part, or as a whole."""


def sparse_body(case: Sequence[Sequence[int]], x: SSAValue) -> list[SSAValue]:
    """Convolutions with padding: one alone, one with a map behind it, one of an input."""
    (channels, outputs), _, taps, dilations, strides, begin, end = case
    one = [1] * len(taps)
    first: Array = values(channels, 3, *one, seed=1)
    second: Array = values(outputs, channels, *taps, seed=2)
    third: Array = values(7, outputs, *one, seed=3)
    bias: Array = values(outputs, seed=4)
    a = ConvOp(
        x,
        ConstantOp.of(first).result,
        strides=one,
        dilations=one,
        pads_begin=[0] * len(taps),
        pads_end=[0] * len(taps),
    ).result
    found = [
        ConvOp(
            a,
            ConstantOp.of(second * np.float32(scale)).result,
            b,
            strides=strides,
            dilations=dilations,
            pads_begin=begin,
            pads_end=end,
        ).result
        for scale, b in ((1, ConstantOp.of(bias).result), (0.5, None))
    ]
    y = e.AddOp(e.AbsOp(found[0]).result, found[1]).result
    direct = ConvOp(
        x,
        ConstantOp.of(values(outputs, 3, *taps, seed=5)).result,
        strides=strides,
        dilations=dilations,
        pads_begin=begin,
        pads_end=end,
    ).result
    z = ConvOp(
        y,
        ConstantOp.of(third).result,
        strides=one,
        dilations=one,
        pads_begin=[0] * len(taps),
        pads_end=[0] * len(taps),
    ).result
    return [y, z, direct]


@pytest.mark.parametrize("target", TARGETS)
def test_sparse_windows(tmp_path: Path, target: str) -> None:
    """Taps that lie on the image at no position, at one, at all; NaN and infinity on the image."""
    suite = suite_in_turn(target, tmp_path, TARGETS)
    for number, case in enumerate(SPARSE):
        x = values(2, 3, *case[1], seed=number)
        x[0, 1].flat[0], x[1, 2].flat[-1] = np.inf, np.nan
        add(suite, target, [typed(np.float32, *x.shape)], partial(sparse_body, case), x)
    suite.check()


@pytest.mark.parametrize("target", some(["x86-64-v4", "x86-64"]))
def test_sparse_windows_of_open_sizes(tmp_path: Path, target: str) -> None:
    """Any image: smaller and larger than the padding."""
    suite = Suite(tmp_path, flags=VECTOR_FLAGS)
    for size in ((1, 1), (3, 3), (5, 18)):
        case = ([20, 40], [*size], [3, 3], [4, 4], [1, 1], [4, 4], [4, 4])
        types = [typed(np.float32, symbol("n"), 3, symbol("h"), symbol("w"))]
        add(suite, target, types, partial(sparse_body, case), values(2, 3, *size))
    suite.check()


GROUPS = [
    (8, 8, 2),
    (24, 24, 6),
    (40, 40, 5),
    (12, 36, 3),
    (36, 12, 3),
    (20, 40, 2),
    (6, 24, 6),
    (18, 9, 3),
    (3, 12, 3),
    (96, 96, 2),
    (51, 51, 3),
]
"""Channels in and out, and groups: parts of blocks, several blocks, and what is no such part."""


@pytest.mark.parametrize("target", TARGETS)
def test_groups(tmp_path: Path, target: str) -> None:
    """NaN and infinity in one group are no concern of another; the last channels fill no block."""
    suite, rng = suite_in_turn(target, tmp_path, TARGETS), Random(4)
    for number, (channels, outputs, groups) in enumerate(GROUPS):
        stride, kernel = 1 + number % 2, 1 if number % 3 == 2 else 3
        sizes = [(channels, 3, 1, 1), (outputs, channels // groups, kernel, kernel), (5, outputs)]
        arrays = [values(*size, seed=rng.randrange(99)) for size in sizes]
        bias = values(outputs, seed=number)

        def body(
            x: SSAValue,
            y: SSAValue,
            arrays: list[Array] = arrays,
            bias: Array = bias,
            groups: int = groups,
            stride: int = stride,
            pad: int = kernel // 2,
        ) -> list[SSAValue]:
            first, second, third = (ConstantOp.of(array).result for array in arrays)
            b = ConstantOp.of(bias).result
            nothing = [ConstantOp.of(np.zeros(n, np.float32)).result for n in (len(arrays[0]), 5)]
            dense = conv(x, first, nothing[0], [0, 0])
            found = conv(
                e.AddOp(dense, y).result, second, b, [pad, pad], stride=stride, groups=groups
            )
            last = conv(
                e.AbsOp(found).result,
                t.ReshapeOp(third, [5, len(bias), 1, 1]).result,
                nothing[1],
                [0, 0],
            )
            return [e.NegOp(found).result, last]

        marked = values(1, channels, 4, 5, seed=number)
        marked[0, channels // groups - 1] = np.inf
        marked[0, -1, 1] = np.nan
        types = [typed(np.float32, 1, 3, 4, 5), typed(np.float32, *marked.shape)]
        add(suite, target, types, body, values(1, 3, 4, 5), marked)
    suite.check()


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64"])
def test_groups_and_sums(tmp_path: Path, target: str) -> None:
    """Blocks of two groups are stored twice: what is added to them is read both times."""
    suite = Suite(tmp_path, flags=VECTOR_FLAGS)
    arrays: list[Array] = [values(40, 3, 1, 1, seed=1), values(40, 20, 3, 3, seed=2)]

    def body(x: SSAValue) -> SSAValue:
        first, second = (ConstantOp.of(array).result for array in arrays)
        zeros = ConstantOp.of(np.zeros(40, np.float32)).result
        y = conv(x, first, zeros, [0, 0])
        z = conv(y, second, zeros, [1, 1], groups=2)
        return e.AbsOp(e.AddOp(z, conv(x, first, zeros, [0, 0])).result).result

    add(suite, target, [typed(np.float32, 1, 3, 4, 5)], body, values(1, 3, 4, 5))
    suite.check()


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64"])
def test_groups_of_open_sizes(tmp_path: Path, target: str) -> None:
    """Four and twelve channels a group, of any image."""
    suite = Suite(tmp_path, flags=VECTOR_FLAGS)
    arrays: list[Array] = [values(24, 4, 3, 3, seed=1), values(48, 12, 3, 3, seed=2)]

    def body(x: SSAValue) -> SSAValue:
        first, second = (ConstantOp.of(array).result for array in arrays)
        zeros = [ConstantOp.of(np.zeros(n, np.float32)).result for n in (24, 48)]
        y = conv(x, first, zeros[0], [1, 1], groups=6)
        return conv(e.NegOp(y).result, second, zeros[1], [0, 0], stride=2, groups=2)

    types = [typed(np.float32, symbol("n"), 24, symbol("h"), symbol("w"))]
    add(suite, target, types, body, values(2, 24, 5, 4))
    suite.check()


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64"])
def test_open_batch_and_size(tmp_path: Path, target: str) -> None:
    """Channels are known, the rest is not."""
    suite, rng = Suite(tmp_path, flags=VECTOR_FLAGS), Random(1)
    weights = [constant(rng, 20, 3, 3, 3), constant(rng, 20, 20, 3, 3)]
    arrays = [weight.owner.array for weight in weights if isinstance(weight.owner, ConstantOp)]

    def body(x: SSAValue) -> list[SSAValue]:
        first, second = (ConstantOp.of(array).result for array in arrays)
        bias = ConstantOp.of(np.ones(20, np.float32)).result
        y = conv(x, first, bias, [1, 1])
        z = e.AddOp(conv(y, second, bias, [1, 1]), y).result
        return [z, ReduceOp("sum", z, [2, 3], False).result]

    types = [typed(np.float32, symbol("n"), 3, symbol("h"), 5)]
    add(suite, target, types, body, values(2, 3, 4, 5))
    suite.check()


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64"])
def test_control_flow(tmp_path: Path, target: str) -> None:
    """Regions use blocked values of the outside, and are given and give row-major ones."""
    suite = Suite(tmp_path, flags=VECTOR_FLAGS)
    array = values(24, 24, 3, 3, seed=3) / np.float32(15)

    def layer(x: SSAValue) -> SSAValue:
        bias = ConstantOp.of(np.ones(24, np.float32)).result
        return conv(x, ConstantOp.of(array).result, bias, [1, 1])

    def body(x: SSAValue, condition: SSAValue) -> list[SSAValue]:
        outside = layer(x)
        then, otherwise, loop = Block(), Block(), Block(arg_types=[typed(np.int64), x.type])
        with ImplicitBuilder(then):
            YieldOp([e.MulOp(layer(outside), outside).result])
        with ImplicitBuilder(otherwise):
            YieldOp([e.MulOp(outside, outside).result])
        chosen = IfOp(condition, Region(then), Region(otherwise)).results[0]
        with ImplicitBuilder(loop):
            YieldOp([e.AddOp(layer(loop.args[1]), outside).result])
        looped = LoopOp(scalar(2, i64).result, None, [chosen], Region(loop)).results[0]
        return [layer(looped), outside]

    for choice in (True, False):
        types = [typed(np.float32, 1, 24, 3, 3), typed(np.bool_)]
        add(suite, target, types, body, values(1, 24, 3, 3), np.array(choice))
    suite.check()


@pytest.mark.parametrize("target", TARGETS)
def test_pieces_of_blocks(tmp_path: Path, target: str) -> None:
    """Parts that begin and end within blocks, of tensors that a border surrounds."""
    suite = suite_in_turn(target, tmp_path, TARGETS)
    weights: list[Array] = [values(45, 3, 1, seed=1), values(33, 3, 1, seed=2)]
    last: Array = values(5, 42, 3, seed=3) / np.float32(11)

    def layer(x: SSAValue, array: Array, pad: int) -> SSAValue:
        weight = ConstantOp.of(array).result
        bias = ConstantOp.of(np.ones(len(array), np.float32)).result
        options: dict[str, Any] = {
            "strides": [1],
            "dilations": [1],
            "pads_begin": [pad],
            "pads_end": [pad],
        }
        return ConvOp(x, weight, bias, **options, groups=1).result

    def body(x: SSAValue) -> SSAValue:
        y, z = (layer(x, array, 0) for array in weights)
        first = t.SliceOp(y, [0, 13, 0], [2, 22, 5]).result
        second = t.SliceOp(z, [0, 32, 0], [2, 1, 5]).result
        third = t.SliceOp(z, [0, 3, 0], [2, 19, 5]).result
        return layer(t.ConcatOp([first, second, third], 1).result, last, 1)

    add(suite, target, [typed(np.float32, 2, 3, 5)], body, values(2, 3, 5))
    suite.check()
