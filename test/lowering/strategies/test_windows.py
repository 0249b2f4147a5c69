"""Windows over channels in blocks: depthwise and transposed convolutions, pools; every shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

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
from ..targets import OTHER_TARGETS, SOME_TARGETS, suite_for, suite_in_turn  # noqa: TID251  (as above)
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


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_depthwise(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
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


Pool: TypeAlias = tuple[tuple[int, ...], Sequence[int], int, int, tuple[int, int], int]
"""Input, kernel, stride, dilation, pads before and behind, overhang."""

POOLS: list[Pool] = [
    ((1, 16, 6, 19), (3, 3), 2, 1, (1, 0), 0),
    ((2, 5, 7, 7), (5, 5), 1, 1, (2, 2), 0),
    ((1, 3, 9, 11), (2, 3), 2, 2, (0, 1), 1),
    ((1, 17, 5, 5), (3, 3), 2, 1, (1, 1), 0),
    ((1, 16, 7, 7), (7, 7), 1, 1, (0, 0), 0),
    ((1, 16, 2, 3), (3, 3), 1, 1, (2, 2), 0),
    ((2, 17, 31), (4,), 3, 1, (3, 2), 2),
    ((1, 4, 2, 3, 3), (2, 3, 1), 1, 1, (0, 0), 0),
]


def pool_of(form: Pool, kind: str, *, count_pads: bool) -> Any:
    """The body of a program that is one pool."""
    _, kernel, stride, dilation, (before, behind), overhang = form
    rank = len(kernel)

    def body(x: SSAValue) -> SSAValue:
        return PoolOp(
            kind,
            x,
            kernel=kernel,
            strides=[stride] * rank,
            dilations=[dilation] * rank,
            pads_begin=[before] * rank,
            pads_end=[behind] * rank,
            overhang=[overhang] * rank,
            count_pads=count_pads,
        ).result

    return body


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_pools(tmp_path: Path, target: str) -> None:
    """NaN stays NaN, and a maximum of what is padding alone would not be read."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for form in POOLS:
        x = values(*form[0])
        x.flat[len(x.flat) // 2] = np.nan
        for kind, count_pads in (("max", False), ("average", False), ("average", True)):
            add(suite, target, (0, 1), pool_of(form, kind, count_pads=count_pads), x)
    suite.check()


FAR_POOLS: list[Pool] = [
    # Windows behind what counts, right behind it and farther away; before it; between
    # two elements of a window.
    ((1, 16, 3, 20), (2, 2), 2, 1, (0, 7), 7),
    ((1, 3, 3, 20), (2, 2), 2, 1, (1, 9), 8),
    ((2, 16, 4, 5), (2, 2), 1, 2, (6, 7), 6),
    ((2, 3, 17), (2,), 3, 1, (4, 5), 4),
    ((1, 16, 2, 2), (2, 2), 1, 3, (1, 1), 0),
    ((1, 2, 2, 2), (2, 2), 1, 3, (1, 1), 0),
]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("target", SOME_TARGETS)
def test_averages_of_nothing(tmp_path: Path, target: str, is_open: bool) -> None:
    """They are NaN, and those of windows outside along two axes are no quotients of minus signs."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    n, sizes = symbol("n"), [symbol("h"), symbol("w")]
    for form in FAR_POOLS:
        x = values(*form[0])
        for count_pads in (False, True):
            body = pool_of(form, "average", count_pads=count_pads)
            dims = (n, x.shape[1], *sizes[: x.ndim - 2]) if is_open else x.shape
            add_typed(suite, target, (0, 1), [typed(x.dtype, *dims)], body, x)
    suite.check()
    for program in (part for one in suite.programs for part in one.parts or [one]):
        number, (y,) = int(program.name.removeprefix("p")), program.expected
        assert np.isnan(y).any() == (number < 8 or number % 2 == 0)
        assert np.isfinite(y).any() or number >= 8


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


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_transposed(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
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
