"""Windows over channels in blocks: depthwise and transposed convolutions, pools; every shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.reduce import PoolOp

from ..programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Suite,
    module_of,
    symbol,
    typed,
)
from ..targets import EVERY_TARGET, suite_for  # noqa: TID251  (as above)
from .blocked import (  # noqa: TID251  (as above)
    BlockedProgram,
    constant,
    values,
)

Array = NDArray[Any]


def add(suite: Suite, target: str, border: tuple[int, int], body: Any, *inputs: Array) -> None:
    """One more program, on channels in blocks."""
    add_typed(suite, target, border, [typed(x.dtype, *x.shape) for x in inputs], body, *inputs)


def add_typed(
    suite: Suite,
    target: str,
    border: tuple[int, int],
    types: Sequence[Attribute],
    body: Any,
    *inputs: Array,
) -> None:
    """The same for inputs of any type."""
    name = f"p{len(suite.programs)}"
    module = module_of(types, body)
    suite.programs.append(
        BlockedProgram(name, module, inputs, target=target, border=border, ulps=8, scale=1)
    )


DEPTHWISE: list[tuple[tuple[int, ...], Sequence[int], int, int, int]] = [
    # input, taps, stride, dilation, padding
    ((1, 16, 5, 17), (3, 3), 1, 1, 1),
    ((2, 19, 4, 6), (3, 3), 2, 1, 1),
    ((1, 5, 9, 7), (5, 3), 1, 2, 2),
    ((1, 17, 3, 4), (7, 7), 1, 1, 3),
    ((1, 2, 1, 1), (1, 1), 1, 1, 0),
    ((2, 17, 31), (5,), 3, 1, 2),
    ((1, 4, 2, 3, 3), (3, 3, 3), 1, 1, 1),
]


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_depthwise(tmp_path: Path, target: str) -> None:
    suite = suite_for(target, tmp_path)
    for shape, taps, stride, dilation, pad in DEPTHWISE:
        rank, channels = len(taps), shape[1]

        def body(
            x: SSAValue,
            weight: Array = values(channels, 1, *taps, seed=1),
            bias: Array = values(channels, seed=2),
            stride: list[int] = [stride] * rank,
            dilation: list[int] = [dilation] * rank,
            pads: list[int] = [pad] * rank,
            channels: int = channels,
        ) -> SSAValue:
            conv = ConvOp(
                x,
                constant(weight),
                constant(bias),
                strides=stride,
                dilations=dilation,
                pads_begin=pads,
                pads_end=pads,
                groups=channels,
            )
            return e.MaxOp(conv.result, constant(np.zeros((), np.float32))).result

        add(suite, target, (pad, pad + 1), body, values(*shape))
    suite.check()


POOLS: list[tuple[tuple[int, ...], Sequence[int], int, int, tuple[int, int], int]] = [
    # input, kernel, stride, dilation, pads before and behind, overhang
    ((1, 16, 6, 19), (3, 3), 2, 1, (1, 0), 0),
    ((2, 5, 7, 7), (5, 5), 1, 1, (2, 2), 0),
    ((1, 3, 9, 11), (2, 3), 2, 2, (0, 1), 1),
    ((1, 17, 5, 5), (3, 3), 2, 1, (1, 1), 0),
    ((1, 16, 7, 7), (7, 7), 1, 1, (0, 0), 0),
    ((1, 16, 2, 3), (3, 3), 1, 1, (2, 2), 0),
    ((2, 17, 31), (4,), 3, 1, (3, 2), 2),
    ((1, 4, 2, 3, 3), (2, 3, 1), 1, 1, (0, 0), 0),
]


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_pools(tmp_path: Path, target: str) -> None:
    """NaN stays NaN, and a maximum of what is padding alone would not be read."""
    suite = suite_for(target, tmp_path)
    for shape, kernel, stride, dilation, (before, behind), overhang in POOLS:
        x = values(*shape)
        x.flat[len(x.flat) // 2] = np.nan
        for kind, count_pads in (("max", False), ("average", False), ("average", True)):
            rank = len(kernel)

            def body(
                x: SSAValue,
                kind: str = kind,
                count_pads: bool = count_pads,
                kernel: Sequence[int] = kernel,
                stride: list[int] = [stride] * rank,
                dilation: list[int] = [dilation] * rank,
                before: list[int] = [before] * rank,
                behind: list[int] = [behind] * rank,
                overhang: list[int] = [overhang] * rank,
            ) -> SSAValue:
                return PoolOp(
                    kind,
                    x,
                    kernel=kernel,
                    strides=stride,
                    dilations=dilation,
                    pads_begin=before,
                    pads_end=behind,
                    overhang=overhang,
                    count_pads=count_pads,
                ).result

            add(suite, target, (0, 1), body, x)
    suite.check()


@pytest.mark.parametrize("pad", [0, 1])
def test_pools_of_open_size(tmp_path: Path, pad: int) -> None:
    suite = suite_for("x86-64-v4", tmp_path)

    def body(x: SSAValue) -> SSAValue:
        return PoolOp(
            "average",
            x,
            kernel=[3, 2],
            strides=[2, 1],
            dilations=[1, 1],
            pads_begin=[pad, pad],
            pads_end=[pad, 0],
        ).result

    types = [typed(np.float32, 1, 5, symbol("h"), symbol("w"))]
    add_typed(suite, "x86-64-v4", (0, 1), types, body, values(1, 5, 6, 19))
    suite.check()


TRANSPOSED: list[tuple[tuple[int, ...], int, Sequence[int], int, int, int, int]] = [
    # input, output channels, taps, stride, dilation, padding, output padding
    ((1, 16, 3, 5), 16, (2, 2), 2, 1, 0, 0),
    ((2, 3, 4, 3), 5, (3, 3), 2, 1, 1, 1),
    ((1, 17, 3, 4), 33, (4, 3), 2, 1, 1, 0),
    ((1, 4, 3, 3), 4, (3, 3), 1, 2, 1, 0),
    ((1, 5, 3, 2), 6, (1, 2), 3, 1, 0, 0),
    ((1, 3, 3, 3), 4, (3, 3), 3, 2, 2, 2),
    ((2, 7, 6), 9, (5,), 4, 2, 3, 1),
]


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_transposed(tmp_path: Path, target: str) -> None:
    suite = suite_for(target, tmp_path)
    for shape, channels, taps, stride, dilation, pad, extra in TRANSPOSED:
        rank = len(taps)

        def body(
            x: SSAValue,
            weight: Array = values(shape[1], channels, *taps, seed=1),
            bias: Array = values(channels, seed=2),
            stride: list[int] = [stride] * rank,
            dilation: list[int] = [dilation] * rank,
            pads: list[int] = [pad] * rank,
            extra: list[int] = [extra] * rank,
        ) -> SSAValue:
            conv = ConvTransposeOp(
                x,
                constant(weight),
                constant(bias),
                strides=stride,
                dilations=dilation,
                pads_begin=pads,
                pads_end=pads,
                output_padding=extra,
            )
            return e.MaxOp(conv.result, constant(np.zeros((), np.float32))).result

        add(suite, target, (3, 4), body, values(*shape))
    suite.check()
