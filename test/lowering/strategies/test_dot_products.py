"""Products of few columns: sums of every length, with an epilogue, constant and computed."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import MatmulOp

from ..programs import symbol, typed  # noqa: TID251  (these are tests, not the folder of sources)
from ..targets import suite_for  # noqa: TID251  (as above)
from ..test_layouts import add  # noqa: TID251  (as above)

Array = NDArray[Any]

SHAPES = ((9, 300, 3), (1, 64, 1), (5, 33, 15), (2, 17, 5), (7, 3200, 1), (3, 16, 2))
"""Rows, terms and columns: with a remainder of terms, and so many that they are summed in parts."""


def numbers(dtype: Any, *shape: int, seed: int = 0) -> Array:
    """Around zero."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3", "x86-64"])
def test_dot_products(tmp_path: Path, target: str) -> None:
    """By a constant, by a computed column, and in a batch, of known and unknown rows."""
    suite = suite_for(target, tmp_path, share=2)
    for dtype in (np.float32, np.float64):
        for rows, terms, columns in SHAPES:
            x, w = numbers(dtype, rows, terms), numbers(dtype, terms, columns, seed=1)
            bias = numbers(dtype, columns, seed=2)

            def body(v: Any, w: Array = w, bias: Array = bias) -> list[Any]:
                product = MatmulOp(v, ConstantOp.of(w).result).result
                return [e.AddOp(product, ConstantOp.of(bias).result)]

            add(suite, target, [typed(dtype, *x.shape)], body, x)
            ports = [typed(dtype, *x.shape), typed(dtype, *w.shape)]
            add(suite, target, ports, lambda v, w: [MatmulOp(v, w)], x, w)
            if rows == 5:
                add(suite, target, [typed(dtype, symbol("n"), terms)], body, x)
        for columns in (1, 3):
            x, w = numbers(dtype, 3, 4, 37), numbers(dtype, 3, 37, columns)
            ports = [typed(dtype, *x.shape), typed(dtype, *w.shape)]
            add(suite, target, ports, lambda v, w: [MatmulOp(v, w)], x, w)
    suite.check()
