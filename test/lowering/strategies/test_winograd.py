"""Winograd's convolutions: the algebra exactly, the code on every shape, and when it is chosen."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, Region, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.winograd import Matrix, matrices, transformed_taps
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.strategies.base import Candidate, Setting
from lowerdeck.lowering.strategies.registry import apply_schedule, choose
from lowerdeck.lowering.strategies.winograd import SIZE, Winograd, transformed_weight
from lowerdeck.lowering.targets import target_named

from ..programs import module_of, typed  # noqa: TID251  (these are tests)
from ..targets import OTHER_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from .blocked import (  # noqa: TID251  (as above)
    BlockedProgram,
    constant,
    values,
)

Array = NDArray[Any]

V4 = target_named("x86-64-v4")


def times(matrix: Matrix, vector: list[Fraction]) -> list[Fraction]:
    """A product of a matrix and a vector."""
    zero = Fraction(0)
    return [sum((a * b for a, b in zip(row, vector, strict=True)), zero) for row in matrix]


@pytest.mark.parametrize(("size", "taps"), [(4, 3), (2, 3), (2, 5), (3, 4)])
def test_matrices(size: int, taps: int) -> None:
    random = Random(size)
    weights = [Fraction(random.randint(-9, 9)) for _ in range(taps)]
    inputs = [Fraction(random.randint(-9, 9)) for _ in range(size + taps - 1)]
    m = matrices(size, taps)
    products = [a * b for a, b in zip(times(m.taps, weights), times(m.inputs, inputs), strict=True)]
    windows = [inputs[k : k + taps] for k in range(size)]
    zero = Fraction(0)
    assert times(m.outputs, products) == [
        sum((a * b for a, b in zip(window, weights, strict=True)), zero) for window in windows
    ]


@pytest.mark.parametrize("size", [4, 2])
def test_constants_are_exact_in_f32(size: int) -> None:
    m = matrices(size, 3)
    for value in (v for matrix in (m.inputs, m.outputs) for row in matrix for v in row):
        assert Fraction(float(np.float32(float(value)))) == value


def test_sizes_without_points() -> None:
    with pytest.raises(ValueError, match=r"no points for F\(6, 3\)"):
        matrices(6, 3)


def test_transformed_taps_of_two_axes() -> None:
    weight = values(2, 3, 3, 3)
    g = np.array(matrices(4, 3).taps, np.float64)
    expected = np.einsum("ai,ocij,bj->ocab", g, weight.astype(np.float64), g)
    found = transformed_taps(weight, 4)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_transformed_taps_of_volumes() -> None:
    """The axes before the last two stay as they are, and so do those that come back."""
    weight = values(2, 3, 1, 3, 3)
    transformed = transformed_taps(weight, 2)
    np.testing.assert_array_equal(transformed[:, :, 0], transformed_taps(weight[:, :, 0], 2))
    layout = transformed_weight(5, 2, 16, 1)
    shape = layout.dims(list(map(Expr.const, weight.shape)))
    assert [size.value for size in shape] == list(layout.pack(weight).shape) == [1, 4, 4, 1, 3, 16]
    np.testing.assert_allclose(layout.unpack(layout.pack(weight), weight.shape), weight, rtol=1e-6)


CASES: list[tuple[tuple[int, ...], int, list[int], list[int], list[int], int]] = [
    # input, output channels, pads before and behind, dilations, groups
    ((2, 17, 6, 5), 18, [1, 1], [1, 1], [1, 1], 1),
    ((1, 5, 13, 6), 33, [0, 0], [0, 0], [1, 1], 1),
    ((1, 1, 4, 17), 1, [1, 1], [1, 1], [1, 1], 1),
    ((1, 16, 4, 5), 16, [1, 0], [2, 1], [1, 1], 1),
    # Images between each other of different sizes, one of which ends with a tile.
    ((2, 3, 9, 13), 17, [2, 3], [2, 3], [2, 3], 1),
    ((1, 64, 5, 9), 32, [1, 1], [1, 1], [1, 1], 2),
    ((1, 48, 7, 8), 48, [1, 1], [0, 2], [1, 2], 3),
    # Planes of volumes; every second one, with a plane of padding before and two behind them.
    ((2, 17, 3, 6, 5), 18, [0, 1, 1], [0, 1, 1], [1, 1, 1], 1),
    ((1, 32, 5, 5, 7), 32, [1, 0, 1], [2, 1, 0], [3, 1, 1], 2),
    ((1, 3, 2, 3, 5, 4), 5, [0, 1, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1], 1),
]

OUTER_STRIDE = 2
"""Of volumes, along the dimensions of windows of a single element."""


def convolution(
    shape: tuple[int, ...],
    channels: int,
    begin: list[int],
    end: list[int],
    dilations: list[int],
    groups: int,
) -> Any:
    """A bias, a residual and an activation follow the sums."""
    outer = len(shape) - 4

    def body(x: SSAValue, residual: SSAValue) -> SSAValue:
        conv = ConvOp(
            x,
            constant(values(channels, shape[1] // groups, *[1] * outer, 3, 3, seed=1)),
            constant(values(channels, seed=2)),
            strides=[*[OUTER_STRIDE] * outer, 1, 1],
            dilations=dilations,
            pads_begin=begin,
            pads_end=end,
            groups=groups,
        )
        total = e.AddOp(conv.result, residual)
        return e.MaxOp(total.result, constant(np.zeros((), np.float32))).result

    return body


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_every_shape(target: str, tmp_path: Path) -> None:
    """Tiles that do not divide the output, channels that do not divide into vectors, parts."""
    threads = 2 if target == "x86-64-v3" else 1
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)

    def of_size(size: int, candidate: Candidate) -> bool:
        return candidate.schedule.get(SIZE) == size

    cases = [(size, *case) for case in CASES for size in (4, 2)]
    for number, (size, shape, channels, begin, end, dilations, groups) in enumerate(cases):
        outer = len(shape) - 4
        padded = [dim + low + high for dim, low, high in zip(shape[2:], begin, end, strict=True)]
        planes = [-(-size // OUTER_STRIDE) for size in padded[:outer]]
        sizes = zip(padded[outer:], dilations[outer:], strict=True)
        spatial = [*planes, *(size - 2 * dilation for size, dilation in sizes)]
        inputs = [values(*shape), values(shape[0], channels, *spatial, seed=3)]
        types = [typed(np.float32, *value.shape) for value in inputs]
        program = BlockedProgram(
            f"p{number}",
            module_of(types, convolution(shape, channels, begin, end, dilations, groups)),
            inputs,
            target=target,
            border=(3, 3),
            ulps=64,
            scale=1,
            threads=threads,
            strategies=frozenset({"winograd"}),
            wanted=partial(of_size, size),
        )
        suite.programs.append(program)
    suite.check()


def kernel_of(channels: int, size: int, stride: int = 1, taps: int = 3) -> KernelOp:
    """A kernel of one convolution of a square image."""
    shape = [(size - 1) * stride + 1] * 2
    layout = LayoutAttr.blocked(4, 1, 16, [0, 0, 1, 1], [0, 0, 1, 1])
    x = typed(np.float32, 1, channels, *shape)
    weight = constant(np.zeros((channels, channels, taps, taps), np.float32))
    block = Block(arg_types=[x, weight.type])
    pads = [taps // 2] * 2
    conv = ConvOp(
        block.args[0],
        block.args[1],
        strides=[stride] * 2,
        dilations=[1, 1],
        pads_begin=pads,
        pads_end=pads,
    )
    block.add_ops([conv, YieldOp([conv.result])])
    kernel = KernelOp("k", [Block(arg_types=[x]).args[0], weight], Region(block))
    kernel.properties["layouts"] = ArrayAttr([layout, LayoutAttr.row_major(4), layout])
    return kernel


@pytest.mark.parametrize(
    ("channels", "size", "setting", "expected"),
    [
        (64, 56, Setting(V4), 4),
        (64, 56, Setting(V4, strict=True), 2),
        (256, 14, Setting(V4), 2),
        # 16 transformed values of 3 x 3 weights take longer to read than their products.
        (512, 7, Setting(V4), 0),
        (16, 2, Setting(V4), 0),
        (64, 56, Setting(V4, disabled=frozenset({"winograd"})), 0),
        (512, 7, Setting(V4, strict=True, asked=frozenset({"winograd"})), 2),
    ],
)
def test_choice(channels: int, size: int, setting: Setting, expected: int) -> None:
    kernel = kernel_of(channels, size)
    candidate = choose(kernel, setting)
    assert candidate is not None
    apply_schedule(kernel, candidate.schedule)
    assert (candidate.schedule.strategy == "winograd") == (expected > 0)
    assert kernel.layout_at(1).data.winograd == (candidate.schedule.get(SIZE) or 0) == expected


@pytest.mark.parametrize(("stride", "taps"), [(2, 3), (1, 1), (1, 5)])
def test_other_windows(stride: int, taps: int) -> None:
    kernel = kernel_of(64, 56, stride, taps)
    assert list(Winograd().candidates(kernel, Setting(V4))) == []
