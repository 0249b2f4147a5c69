"""Convolutions and products whose weights are computed, or of half precision: the same numbers."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import TransposeOp
from lowerdeck.lowering.strategies.tiled_matmul import PANELS, WIDE, WIDTH
from lowerdeck.lowering.targets import target_named

from ..choosing import with_numbers  # noqa: TID251  (these are tests, not the folder of sources)
from ..forms import some  # noqa: TID251  (these are tests, not the folder of sources)
from ..programs import symbol, typed  # noqa: TID251  (as above)
from ..targets import OTHER_TARGETS, SOME_TARGETS, suite_for, suite_in_turn  # noqa: TID251  (as above)
from ..test_layouts import add, values  # noqa: TID251  (as above)

Shape = tuple[int, ...]

CONVOLUTIONS: list[tuple[Shape, Shape, int, int, int, int]] = [
    # input, weight, groups, stride, dilation, padding
    ((1, 16, 5, 6), (16, 16, 3, 3), 1, 1, 1, 1),
    ((2, 9, 5, 5), (21, 9, 1, 1), 1, 1, 1, 0),
    ((1, 3, 7, 20), (4, 3, 3, 3), 1, 1, 1, 1),
    ((1, 20, 9, 9), (20, 1, 3, 3), 20, 2, 1, 1),
    ((1, 7, 6, 9), (21, 1, 3, 3), 7, 1, 1, 1),
    ((1, 18, 5, 5), (18, 6, 3, 3), 3, 1, 1, 1),
    ((1, 40, 4, 4), (40, 20, 1, 1), 2, 1, 1, 0),
    ((1, 8, 6, 6), (8, 2, 2, 3), 4, 1, 1, 0),
    ((1, 16, 8, 8), (8, 16, 3, 3), 1, 1, 4, 4),
    ((1, 5, 30), (17, 5, 4), 1, 1, 2, 3),
    ((1, 6, 4, 5, 6), (10, 6, 2, 3, 3), 1, 1, 1, 1),
]

TRANSPOSED: list[tuple[Shape, Shape, int, int]] = [
    # input, weight, groups, stride
    ((1, 20, 5, 5), (20, 18, 3, 3), 1, 2),
    ((2, 24, 4, 5), (24, 1, 4, 4), 24, 2),
    ((1, 20, 3, 3), (20, 1, 2, 3), 20, 3),
    ((1, 16, 3, 4), (16, 8, 3, 3), 2, 2),
    ((1, 6, 3, 3), (6, 3, 2, 2), 2, 2),
    ((1, 64, 3), (64, 32, 4), 2, 2),
]


def _of(op: type[ConvOp | ConvTransposeOp], rank: int, **options: Any) -> Callable[..., Any]:
    pad = options.pop("pad", 0)
    numbers = {name: [options.pop(name, 1)] * rank for name in ("strides", "dilations")}

    def body(x: Any, weight: Any, bias: Any) -> Any:
        pads: Any = {"pads_begin": [pad] * rank, "pads_end": [pad] * rank}
        # Weights that a kernel makes.
        return op(x, e.NegOp(weight).result, bias, **numbers, **pads, **options)

    return body


def _convolution(case: tuple[Shape, Shape, int, int, int, int]) -> tuple[Callable[..., Any], Any]:
    x, w, groups, stride, dilation, pad = case
    body = _of(ConvOp, len(x) - 2, groups=groups, strides=stride, dilations=dilation, pad=pad)
    return body, (values(*x), values(*w, seed=1), values(w[0], seed=2))


def _transposed(case: tuple[Shape, Shape, int, int]) -> tuple[Callable[..., Any], Any]:
    x, w, groups, stride = case
    rank = len(x) - 2
    body = _of(
        ConvTransposeOp, rank, groups=groups, strides=stride, pad=1, output_padding=[0] * rank
    )
    return body, (values(*x), values(*w, seed=1), values(w[1] * groups, seed=2))


def _types(arrays: Any) -> list[Any]:
    return [typed(array.dtype, *array.shape) for array in arrays]


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_convolutions(tmp_path: Path, target: str) -> None:
    """Packed at run time: blocks that end early, groups of every width, all ranks."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for case in CONVOLUTIONS:
        body, arrays = _convolution(case)
        add(suite, target, _types(arrays), body, *arrays)
    for case in TRANSPOSED:
        body, arrays = _transposed(case)
        add(suite, target, _types(arrays), body, *arrays)
    suite.check()


def test_open_sizes(tmp_path: Path) -> None:
    """Of images, and of how many there are."""
    suite = suite_for("x86-64-v4", tmp_path)
    cases = [_convolution(case) for case in CONVOLUTIONS if len(case[0]) == 4]
    cases += [_transposed(case) for case in TRANSPOSED if len(case[0]) == 4]
    for body, arrays in some(cases, 4):
        types = _types(arrays)
        channels = arrays[0].shape[1]
        types[0] = typed(np.float32, symbol("n"), channels, symbol("h"), symbol("w"))
        add(suite, "x86-64-v4", types, body, *arrays)
    suite.check()


def _halves(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    return array.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves(tmp_path: Path, dtype: Any) -> None:
    """What is not widened before is added up in f32, too, element by element."""
    suite = suite_for("x86-64-v4", tmp_path)
    for case in CONVOLUTIONS[:4]:
        body, arrays = _convolution(case)
        arrays = [_halves(array, dtype) for array in arrays]
        add(suite, "x86-64-v4", _types(arrays), body, *arrays)
    x, w = _halves(values(5, 40), dtype), _halves(values(40, 21, seed=1), dtype)
    add(suite, "x86-64-v4", _types([x, w]), lambda x, w: e.NegOp(MatmulOp(x, w).result), x, w)
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_streamed_products(tmp_path: Path, target: str) -> None:
    """Rows and columns that are no multiples of anything, batches, and what follows."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for left, right in (
        ((1, 600), (600, 1100)),
        ((1, 13), (13, 37)),
        ((3, 1, 9), (3, 9, 50)),
        ((2, 1, 20), (20, 16)),
    ):
        x, w = values(*left), values(*right, seed=1)
        add(suite, target, _types([x, w]), MatmulOp, x, w, change=_in_chunks)
        add(suite, target, _types([x, w]), lambda x, w: e.NegOp(MatmulOp(x, w).result), x, w)
    suite.check()


def _in_chunks(schedule: Schedule) -> Schedule:
    """The same with few columns in one part."""
    return schedule if schedule.get("chunk") is None else with_numbers(schedule, chunk=32)


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_panels_of_transposed(tmp_path: Path, target: str) -> None:
    """The panels are made of the matrix before it is transposed, and of what a map makes of it."""
    suite = suite_for(target, tmp_path)

    def product(x: Any, w: Any) -> Any:
        order = [*range(len(w.type.get_shape()) - 2), -1, -2]
        order = [axis % len(order) for axis in order]
        return MatmulOp(x, TransposeOp(e.AbsOp(w).result, order).result)

    shapes = (
        ((9, 33), (50, 33)),
        ((9, 33), (64, 33)),
        ((20, 40), (96, 40)),
        ((2, 9, 17), (2, 65, 17)),
        ((2, 9, 17), (2, 80, 17)),
    )
    for (left, right), dtype in some(list(itertools.product(shapes, (np.float32, np.float64)))):
        x, w = values(*left).astype(dtype), values(*right, seed=1).astype(dtype)
        add(suite, target, _types([x, w]), product, x, w, change=_in_panels)
    suite.check()
    if target_named(target).lanes > 1:
        text = "".join(artifact.files[f"{artifact.name}.c"] for artifact in suite.artifacts)
        # Where few columns do not fill vectors, these overlap, and nothing is packed.
        assert text.count("_pack_1(") > text.count("_transpose_0(")


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_panel_by_panel(tmp_path: Path, target: str) -> None:
    """A panel is copied before rows are multiplied by it: of one matrix, and of one for each."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    shapes = (
        ((9, 33), (33, 50)),
        ((20, 400), (400, 96)),
        ((2, 7, 17), (2, 17, 65)),
        ((3, 2, 7, 17), (1, 2, 17, 40)),
        ((2, 5, 7), (7, 33)),
        ((1, 6, 9), (3, 9, 20)),
    )
    for (left, right), dtype in some(list(itertools.product(shapes, (np.float32, np.float64)))):
        x, w = values(*left).astype(dtype), values(*right, seed=1).astype(dtype)
        add(suite, target, _types([x, w]), MatmulOp, x, w, change=_in_copied_panels)
    x, w = values(5, 40), values(40, 96, seed=1)
    types = [typed(np.float32, symbol("n"), 40), typed(np.float32, 40, 96)]
    add(
        suite,
        target,
        types,
        lambda x, w: e.NegOp(MatmulOp(x, w).result),
        x,
        w,
        change=_in_copied_panels,
    )
    suite.check()


def _in_copied_panels(schedule: Schedule) -> Schedule:
    """The same with panels that are copied one after the other."""
    if schedule.strategy != "tiled_matmul" or schedule.get(WIDTH) is not None:
        return schedule
    rest = [(name, value) for name, value in schedule.parameters if name != PANELS]
    rows_first = tuple(sorted(schedule.order))
    return replace(schedule, order=rows_first, parameters=((WIDE, 1), *rest))


def _in_panels(schedule: Schedule) -> Schedule:
    """The same with a right matrix in panels, where it may be."""
    if schedule.strategy != "tiled_matmul" or schedule.get(WIDTH) is not None:
        return schedule
    return replace(schedule, parameters=((PANELS, 1),))
