"""Direct convolutions over channels in blocks: the same numbers for every shape and target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import test as own
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.lowering.strategies.taps import share_on_image

from ..programs import module_of, symbol, typed  # noqa: TID251  (these are tests)
from ..targets import OTHER_TARGETS, suite_for, suite_in_turn  # noqa: TID251  (as above)
from .blocked import BlockedProgram, constant, values  # noqa: TID251  (as above)

Shape = tuple[int, ...]

CASES: list[tuple[Shape, int, Shape, Shape, Shape, Shape, int]] = [
    # input, output channels, taps, strides, dilations, pads, groups
    ((1, 1, 1, 1), 1, (1, 1), (1, 1), (1, 1), (0, 0), 1),
    ((1, 16, 5, 7), 33, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 17, 3, 5), 19, (3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((1, 13, 9, 8), 37, (3, 2), (1, 2), (2, 3), (2, 0), 1),
    ((1, 32, 4, 5), 64, (1, 1), (1, 1), (1, 1), (0, 0), 2),
    ((1, 48, 5, 4), 96, (3, 3), (2, 1), (1, 1), (1, 1), 3),
    ((1, 6, 5, 4), 9, (3, 3), (1, 1), (1, 1), (1, 1), 3),
    ((2, 5, 23), 7, (4,), (3,), (2,), (3,), 1),
    ((1, 4, 3, 4, 5), 6, (2, 3, 1), (1, 1, 2), (1, 1, 1), (1, 0, 0), 1),
    # More than fit into one partial sum, with channels that fill no block.
    ((1, 211, 2, 3), 16, (1, 1), (1, 1), (1, 1), (0, 0), 1),
    # So many weights that sums are made in parts, which lie in the output in between.
    ((1, 256, 3, 3), 32, (3, 3), (2, 2), (1, 1), (1, 1), 1),
]


DIRECT = frozenset({"winograd"})
"""Disabled: sums of products, also where Winograd's would be chosen."""


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_every_shape(tmp_path: Path, target: str) -> None:
    """With a bias, a residual and an activation."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for number, (shape, channels, taps, strides, dilations, pads, groups) in enumerate(CASES):

        def body(
            x: SSAValue,
            residual: SSAValue,
            w_shape: Shape = (channels, shape[1] // groups, *taps),
            strides: Sequence[int] = strides,
            dilations: Sequence[int] = dilations,
            pads: Sequence[int] = pads,
            groups: int = groups,
        ) -> SSAValue:
            conv = ConvOp(
                x,
                constant(values(*w_shape, seed=1)),
                constant(values(w_shape[0], seed=2)),
                strides=strides,
                dilations=dilations,
                pads_begin=pads,
                pads_end=pads,
                groups=groups,
            )
            total = e.AddOp(conv.result, residual)
            return e.MaxOp(total.result, constant(np.zeros((), np.float32))).result

        sizes = [
            (size + 2 * pad - (tap - 1) * dilation - 1) // stride + 1
            for size, pad, tap, dilation, stride in zip(
                shape[2:], pads, taps, dilations, strides, strict=True
            )
        ]
        inputs = [values(*shape), values(shape[0], channels, *sizes, seed=3)]
        suite.programs.append(
            BlockedProgram(
                f"p{number}",
                module_of([typed(x.dtype, *x.shape) for x in inputs], body),
                inputs,
                target=target,
                border=(max(pads), max(pads) + 1),
                ulps=32,
                scale=1,
                disabled=DIRECT,
            )
        )
    suite.check()


@pytest.mark.parametrize(
    ("image", "stride", "border", "images"),
    [((47, 50), 1, 0, 1), ((48, 50), 1, 1, 1), ((51, 50), 2, 0, 1), ((37, 63), 1, 0, 2)],
)
def test_images_larger_than_the_cache(
    tmp_path: Path, image: Shape, stride: int, border: int, images: int
) -> None:
    """By groups of positions, the last one smaller; by rows, where these end or are apart."""
    suite = suite_for("x86-64-v3", tmp_path)

    def body(x: SSAValue) -> SSAValue:
        weight, none = constant(values(40, 64, 1, 1, seed=1)), [0, 0]
        strides = [stride, stride]
        bias = constant(values(40, seed=2))
        conv = ConvOp(
            x, weight, bias, strides=strides, dilations=[1, 1], pads_begin=none, pads_end=none
        )
        return e.MaxOp(conv.result, constant(np.zeros((), np.float32))).result

    x = values(images, 64, *image)
    suite.programs.append(
        BlockedProgram(
            "p",
            module_of([typed(x.dtype, *x.shape)], body),
            [x],
            target="x86-64-v3",
            border=(border, border),
            ulps=32,
            scale=1,
            disabled=DIRECT,
            runs_scheduled=False,
        )
    )
    suite.check()


@pytest.mark.parametrize("target", ["x86-64-v4", "aarch64"])
def test_open_sizes(tmp_path: Path, target: str) -> None:
    """Tiles, smaller tiles and single positions, of sizes and a batch that a run knows."""
    suite = suite_for(target, tmp_path)
    types = [typed(np.float32, symbol("n"), 5, symbol("h"), symbol("w"))]

    def body(x: SSAValue) -> SSAValue:
        weight, ones = constant(values(18, 5, 3, 3, seed=1)), [1, 1]
        return ConvOp(
            x, weight, strides=[1, 2], dilations=ones, pads_begin=ones, pads_end=ones
        ).result

    for number, shape in enumerate([(1, 5, 1, 1), (2, 5, 3, 31), (1, 5, 2, 58)]):
        inputs, module = [values(*shape)], module_of(types, body)
        program = BlockedProgram(
            f"p{number}",
            module,
            inputs,
            target=target,
            border=(1, 1),
            ulps=32,
            scale=1,
            disabled=DIRECT,
        )
        suite.programs.append(program)
    suite.check()


@pytest.mark.parametrize(
    ("size", "taps", "stride", "dilation", "pads"),
    [(9, 3, 1, 1, (1, 1)), (7, 3, 2, 4, (4, 4)), (5, 5, 3, 2, (9, 0)), (4, 1, 1, 1, (3, 2))],
)
def test_share_on_image(
    size: int, taps: int, stride: int, dilation: int, pads: tuple[int, int]
) -> None:
    """Counted one by one; of an image of any size in no time."""
    op = convolution(size, taps, stride, dilation, pads)
    count = (size + sum(pads) - (taps - 1) * dilation - 1) // stride + 1
    places = [k * stride - pads[0] + t * dilation for k in range(count) for t in range(taps)]
    assert share_on_image(op) == sum(0 <= place < size for place in places) / len(places)
    assert share_on_image(convolution(1 << 50, taps, stride, dilation, pads)) > 0.999


def convolution(size: int, taps: int, stride: int, dilation: int, pads: tuple[int, int]) -> ConvOp:
    """Of one dimension, one channel and one filter."""
    types = [typed(np.float32, 1, 1, size), typed(np.float32, 1, 1, taps)]
    x, w = own.TestOp(result_types=types).results
    return ConvOp(
        x, w, strides=[stride], dilations=[dilation], pads_begin=pads[:1], pads_end=pads[1:]
    )
