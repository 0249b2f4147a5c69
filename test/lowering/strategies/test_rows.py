"""Convolutions of few channels into row-major results: the same numbers on every target."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.types import f32

from ..programs import symbol, typed  # noqa: TID251  (these are tests, not the folder of sources)
from ..targets import OTHER_TARGETS, suite_for, suite_in_turn  # noqa: TID251  (as above)
from ..test_layouts import add, values  # noqa: TID251  (as above)

CASES: list[tuple[tuple[int, ...], tuple[int, ...], list[int], list[int], list[int]]] = [
    # input, weight, strides, dilations, pads
    ((1, 3, 9, 37), (16, 3, 3, 3), [1, 1], [1, 1], [1, 1]),
    ((2, 1, 5, 5), (1, 1, 1, 1), [1, 1], [1, 1], [0, 0]),
    ((1, 4, 7, 50), (5, 4, 3, 5), [2, 1], [1, 2], [0, 3]),
    ((1, 2, 41), (3, 2, 4), [1], [1], [2]),
    ((1, 3, 6, 6), (7, 3, 3, 3), [1, 2], [1, 1], [1, 1]),
]


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_rows(tmp_path: Path, target: str) -> None:
    """Odd sizes, strides of other dimensions, dilations, with an epilogue."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for x_shape, w_shape, strides, dilations, pads in CASES:

        def body(
            x: Any,
            w_shape: tuple[int, ...] = w_shape,
            strides: list[int] = strides,
            dilations: list[int] = dilations,
            pads: list[int] = pads,
        ) -> Any:
            weight = ConstantOp.of(values(*w_shape, seed=1)).result
            bias = ConstantOp.of(values(w_shape[0], seed=2)).result
            conv = ConvOp(
                x,
                weight,
                bias,
                strides=strides,
                dilations=dilations,
                pads_begin=pads,
                pads_end=pads,
            )
            return e.MaxOp(conv.result, scalar(0.0, f32).result)

        x = values(*x_shape)
        add(suite, target, [typed(x.dtype, *x.shape)], body, x)
    suite.check()


def test_open_size(tmp_path: Path) -> None:
    """Tiles, smaller tiles and single steps of a size that is known only at run time."""
    suite = suite_for("x86-64-v4", tmp_path)
    for width in (1, 15, 16, 17, 83):
        x = values(1, 2, 3, width)
        weight = values(6, 2, 3, 3, seed=1)

        def body(x: Any, weight: Any = weight) -> Any:
            return ConvOp(
                x,
                ConstantOp.of(weight).result,
                strides=[1, 1],
                dilations=[1, 1],
                pads_begin=[1, 1],
                pads_end=[1, 1],
            )

        add(suite, "x86-64-v4", [typed(x.dtype, 1, 2, 3, symbol("n"))], body, x)
    suite.check()
