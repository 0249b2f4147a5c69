"""Reductions and rows in vectors: every element type, rows of every length, with NaN."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.printer import Printer

import lowerdeck
from lowerdeck.dialects.core import reduce as r
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import LayerNormOp
from lowerdeck.dialects.interpret import run_module

from .programs import module_of, symbol, typed  # noqa: TID251  (these are tests, not the folder of sources)
from .targets import OTHER_TARGETS, SOME_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add  # noqa: TID251  (as above)

Array = NDArray[Any]

FLOATS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
INTEGERS = (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64)

LENGTHS = (1, 3, 5, 17, 37, 79)
"""Of rows: shorter than vectors, and with remainders of whole vectors and of several chains."""


def numbers(dtype: Any, *shape: int, seed: int = 0) -> Array:
    """Small ones, equal ones among them."""
    rng = np.random.default_rng(seed)
    if dtype in INTEGERS:
        return rng.integers(0 if np.dtype(dtype).kind == "u" else -9, 9, shape).astype(dtype)
    return (rng.integers(-40, 40, shape) / 16).astype(dtype)


def special(x: Array) -> Array:
    """Some rows with NaN, infinities and zeros of both signs."""
    rows = x.reshape(-1, x.shape[-1])
    for row, value in zip(rows, (np.nan, np.inf, -np.inf, -0.0), strict=False):
        row[-1] = row[row.size // 3] = value
    return x


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_reductions(tmp_path: Path, target: str) -> None:
    """Along the last, the first and several dimensions."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for number, dtype in enumerate((*FLOATS, *INTEGERS)):
        size = LENGTHS[number % len(LENGTHS)]
        for length in {size, 21}:
            x = numbers(dtype, 5, 7, length, seed=number)
            kinds = ("sum", "prod", "max", "min")
            ports = [typed(dtype, *x.shape)]
            for axes in ([2], [0], [0, 2], [1, 2]):
                add(
                    suite,
                    target,
                    ports,
                    lambda v, axes=axes, kinds=kinds: [r.ReduceOp(k, v, axes) for k in kinds],
                    x,
                )
    for length in LENGTHS:
        x = special(numbers(np.float32, 19, length))
        kinds = ("sum", "max", "min")
        add(
            suite,
            target,
            [typed(np.float32, *x.shape)],
            lambda v, kinds=kinds: [r.ReduceOp(k, v, [1]) for k in kinds],
            x,
        )
    suite.check()


@pytest.mark.parametrize("disable", [(), ("fold-identities",)])
def test_reductions_along_no_dimensions(tmp_path: Path, disable: tuple[str, ...]) -> None:
    """They give the input as it is, whether or not a pass drops them: 0 + -0 would be 0."""

    def body(x: Any) -> list[Any]:
        return [r.ReduceOp("sum", x, []), r.ReduceOp("prod", x, [])]

    module = module_of([typed(np.float32, 4)], body)
    path = tmp_path / "nothing.mlir"
    with path.open("w", encoding="utf-8") as text:
        Printer(text).print_op(module)
    x = np.array([-0.0, 0.0, np.inf, -1.5], np.float32)
    meant = run_module(module, {"0": x}).values()
    for found in [*meant, *lowerdeck.compile(path, disable=disable)(x)]:
        assert np.asarray(found).tobytes() == x.tobytes()


OPEN_LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 79, 200)
"""Of rows of a program that knows none: none of a vector, ends of short ones and of long ones."""


def test_rows_of_unknown_length(tmp_path: Path) -> None:
    """One program for all lengths: sums, products, extrema, exponentials, and copies."""
    n = symbol("n")

    def body(x: Any, y: Any, z: Any) -> list[Any]:
        sums = [r.ReduceOp(k, v, [1]) for k in ("sum", "prod", "max", "min") for v in (x, y, z)]
        rows = [t.ConcatOp([v, v], 1) for v in (x, y, z)]
        return [*sums, r.SoftmaxOp(x, 1), r.SoftmaxOp(x, 1, log=True), *rows]

    dtypes = (np.float32, np.float64, np.int32)
    module = module_of([typed(dtype, 19, n) for dtype in dtypes], body)
    path = tmp_path / "rows.mlir"
    with path.open("w", encoding="utf-8") as text:
        Printer(text).print_op(module)
    models = [lowerdeck.compile(path, target=target) for target in ("x86-64-v3", "native")]
    for length in OPEN_LENGTHS:
        x, y, z = (numbers(dtype, 19, length, seed=length) for dtype in dtypes)
        inputs = (special(x) if length else x, y, z)
        meant = [*run_module(module, dict(zip("012", inputs, strict=True))).values()]
        for model in models:
            for expected, found in zip(meant, model(*inputs), strict=True):
                np.testing.assert_allclose(found, np.asarray(expected), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_indices_of_extrema(tmp_path: Path, target: str) -> None:
    """The first or last of equal ones; NaN before all others."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for number, dtype in enumerate((*FLOATS, *INTEGERS)):
        for rows, length in ((19, LENGTHS[number % len(LENGTHS)]), (2, 79)):
            x = numbers(dtype, rows, length, seed=number)
            if dtype in FLOATS:
                x = special(x)

            def body(v: Any) -> list[Any]:
                forms = [("max", False), ("max", True), ("min", False), ("min", True)]
                found = [r.ArgReduceOp(kind, v, 1, False, last) for kind, last in forms]
                return [*found, r.ArgReduceOp("max", v, 0)]

            add(suite, target, [typed(dtype, *x.shape)], body, x)
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_rows(tmp_path: Path, target: str) -> None:
    """What gives a row for a row: softmax, normalization, running sums and products."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for number, dtype in enumerate(FLOATS):
        for rows, length in ((23, LENGTHS[number]), (3, 41), (1, LENGTHS[-1 - number])):
            x = numbers(dtype, rows, length, seed=number)

            def body(v: Any, length: int = length, dtype: Any = dtype) -> list[Any]:
                scale, bias = (ConstantOp.of(numbers(dtype, length, seed=k)).result for k in (1, 2))
                return [
                    r.SoftmaxOp(v, 1),
                    r.SoftmaxOp(v, 0),
                    r.SoftmaxOp(v, 1, log=True),
                    r.SoftmaxOp(v, 0, log=True),
                    LayerNormOp(v, scale, bias, 1e-3, 1),
                    r.CumulativeOp("sum", v, 1),
                    r.CumulativeOp("sum", v, 1, True, True),
                    r.CumulativeOp("prod", v, 0),
                ]

            add(suite, target, [typed(dtype, *x.shape)], body, x)
    image = numbers(np.float32, 2, 9, 5, 7)
    for axis, *shape in ((2, 9, 1, 1), (2, 5, 7), (1, 9, 5, 1), (3, 1)):
        scale = numbers(np.float32, *shape, seed=3)
        add(
            suite,
            target,
            [typed(np.float32, *image.shape)],
            lambda v, scale=scale, axis=axis: [
                LayerNormOp(v, ConstantOp.of(scale).result, None, 1e-3, axis)
            ],
            image,
        )
    x = special(numbers(np.float32, 23, 5))
    add(
        suite,
        target,
        [typed(np.float32, *x.shape)],
        lambda v: [r.SoftmaxOp(v, 1), r.SoftmaxOp(v, 1, log=True)],
        x,
    )
    for dtype in (np.int32, np.int64):
        x = numbers(dtype, 19, 33)
        add(
            suite,
            target,
            [typed(dtype, *x.shape)],
            lambda v: [r.CumulativeOp("sum", v, axis) for axis in (0, 1)],
            x,
        )
    suite.check()
