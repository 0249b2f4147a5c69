"""Padding of open sizes: rows that are cut where they lie on the input, in all modes."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import scalar
from lowerdeck.dialects.core.tensor import PadOp
from lowerdeck.dialects.core.types import f32

from .programs import symbol, typed  # noqa: TID251  (these are tests, not the folder of sources)
from .targets import OTHER_TARGETS, SOME_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add, values  # noqa: TID251  (as above)

PADS = [
    ([0, 1, 2], [0, 0, 3]),
    ([0, 0, 9], [0, 0, 0]),
    ([2, 0, 0], [1, 3, 0]),
    ([1, 1, 1], [1, 1, 1]),
    ([0, 0, 0], [0, 0, 17]),
]
"""In the last dimension, in others, in all, on one side; more than there is to reflect."""


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_open_sizes(tmp_path: Path, target: str) -> None:
    """After one map and before another, in whole vectors and beside them; also of nothing."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    n, m, k = map(symbol, "nmk")
    shapes = [(2, 3, 5), (1, 1, 1), (3, 2, 37), (1, 4, 16)]
    for mode, (begin, end) in itertools.product(("constant", "edge", "reflect", "wrap"), PADS):

        def body(x: Any, begin: Any = begin, end: Any = end, mode: str = mode) -> Any:
            value = scalar(-1.5, f32).result if mode == "constant" else None
            padded = PadOp(e.SqrtOp(x).result, begin, end, value, mode=mode).result
            return e.MulOp(padded, padded)

        for shape in [*shapes, *([(0, 2, 3), (2, 2, 0)] if mode == "constant" else [])]:
            x = np.abs(values(*shape))
            add(suite, target, [typed(np.float32, n, m, k)], body, x)
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_types_and_amounts(tmp_path: Path, target: str) -> None:
    """Some sizes known, others not; as much padding as there is of the input."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    n, m = map(symbol, "nm")
    for dtype, mode in itertools.product((np.uint8, np.int64, np.float16), ("constant", "reflect")):
        x = values(3, 21).astype(dtype)
        for types in ([typed(dtype, 3, m)], [typed(dtype, n, 21)]):
            add(suite, target, types, lambda x, mode=mode: PadOp(x, [2, 1], [1, 2], mode=mode), x)
        ports = [typed(dtype, n, m)]
        add(suite, target, ports, lambda x, mode=mode: PadOp(x, [0, m], [n, n - 1], mode=mode), x)
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_what_is_not_cut(tmp_path: Path, target: str) -> None:
    """Two paddings in one kernel, one that is broadcast, and one that moves before it ends."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    n, m = map(symbol, "nm")
    types = [typed(np.float32, n, m), typed(np.float32, 4, n + 1, m)]

    def body(x: Any, y: Any) -> Any:
        padded = PadOp(x, [0, 1], [1, 0]).result
        both = e.AddOp(padded, PadOp(x, [1, 0], [0, 1]).result)
        wide = e.AddOp(y, PadOp(x, [1, 0], [0, 0]).result)
        return [both, wide]

    add(suite, target, types, body, values(3, 9), values(4, 4, 9, seed=1))
    suite.check()
