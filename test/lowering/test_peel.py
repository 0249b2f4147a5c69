"""Padding in all modes, of every shape of border, for all targets and widths of elements."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.tensor import PadOp

from .programs import symbol, typed  # noqa: TID251  (these are tests, not sources)
from .targets import OTHER_TARGETS, suite_in_turn  # noqa: TID251
from .test_layouts import add, constant, conv  # noqa: TID251

MODES = ("constant", "reflect", "edge", "wrap")

BORDERS: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    ((37,), (5,), (3,)),
    ((9,), (8,), (8,)),
    ((5, 40), (0, 3), (0, 0)),
    ((4, 35), (3, 0), (1, 20)),
    ((3, 2, 6, 19), (0, 0, 2, 3), (0, 0, 1, 4)),
    ((3, 4, 5, 6), (2, 1, 1, 2), (1, 3, 2, 5)),
    ((1, 33), (0, 30), (0, 30)),
]
"""Shapes, with what is added before and behind each dimension."""


def _body(begin: tuple[int, ...], end: tuple[int, ...], mode: str, value: Any = None) -> Any:
    def pad(x: SSAValue) -> PadOp:
        filler = None if value is None else ConstantOp.of(value).result
        return PadOp(x, begin, end, filler, mode)

    return pad


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_borders(tmp_path: Path, target: str) -> None:
    """Of known sizes, cut and not; and of sizes known only at run time."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    rng = np.random.default_rng(0)
    for (shape, begin, end), mode in product(BORDERS, MODES):
        x = rng.standard_normal(shape).astype(np.float32)
        value = np.float32(-0.0) if mode == "constant" else None
        body = _body(begin, end, mode, value)
        add(suite, target, [typed(x.dtype, *shape)], body, x)
        if len(shape) == 2:
            add(suite, target, [typed(x.dtype, symbol("n"), shape[1])], body, x)
    for dtype in (np.uint8, np.bool_, np.int16, np.int64, np.float16, np.float64):
        x = rng.integers(0, 2, (3, 70)).astype(dtype)
        for mode in MODES:
            add(suite, target, [typed(dtype, 3, 70)], _body((1, 2), (2, 33), mode), x)
    suite.check()


CHANNELS = [(16, 0, 16), (32, 0, 16), (24, 0, 4), (40, 0, 8), (8, 8, 16), (20, 3, 10), (64, 0, 24)]
"""Of an image, and how many are added before and behind them."""


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_channels_between_convolutions(tmp_path: Path, target: str) -> None:
    """Blocks of channels that lie on the image, beside it, and both; in rows with a border."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    rng = np.random.default_rng(1)
    for channels, begin, end in CHANNELS:
        x = rng.standard_normal((1, channels, 6, 5)).astype(np.float32)
        body = partial(_residual, channels, begin, end)
        add(suite, target, [typed(np.float32, *x.shape)], body, x)
    suite.check()


def _residual(channels: int, begin: int, end: int, x: SSAValue) -> SSAValue:
    rng, total = Random(0), begin + channels + end
    image = conv(x, constant(rng, channels, channels, 1, 1), constant(rng, channels), [0, 0])
    wide = conv(image, constant(rng, total, channels, 1, 1), constant(rng, total), [0, 0])
    padded = PadOp(image, (0, begin, 0, 0), (0, end, 0, 0), None, "constant")
    both = AddOp(padded.result, wide)
    return conv(both.result, constant(rng, 8, total, 3, 3), constant(rng, 8), [1, 1])
