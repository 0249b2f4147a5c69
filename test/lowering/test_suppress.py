"""Suppression of boxes, in all three ways."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.dialects.core.suppress import SuppressOp
from lowerdeck.dialects.dims import minimum

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Suite,
    symbol,
    typed,
)

Array = NDArray[Any]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def boxes_of(groups: int, count: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Corners on a grid of eighths, so that many overlaps are equal to limits; some are equal."""
    rng = np.random.default_rng(seed + count)
    first = rng.integers(0, 40, (groups, count, 2)) / 8
    boxes = np.concatenate([first, first + rng.integers(0, 24, first.shape) / 8], 2)
    boxes[:, 1::7] = boxes[:, ::7][:, : boxes[:, 1::7].shape[1]]
    return boxes.astype(dtype)


def with_specials(boxes: Array) -> Array:
    """With corners that are no numbers or infinite, and in the wrong order."""
    result = boxes.copy()
    rows = result.reshape(-1, 4)
    rows[2, 0], rows[5, 2], rows[7], rows[11, :2] = np.nan, np.inf, np.nan, -np.inf
    rows[12], rows[13] = [-np.inf, -np.inf, np.inf, np.inf], [np.inf] * 4
    rows[9], rows[16] = rows[9][[2, 3, 0, 1]], rows[16][[2, 1, 0, 3]]
    return result


def alive_of(boxes: Array) -> Array:
    return np.random.default_rng(3).random(boxes.shape[:2]) < 0.9


FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strict": {"strict": True},
    "most": {"most": 5},
    "decay": {"strict": True, "decay": 0.875},
    "border": {"strict": True, "border": 1, "must_meet": True, "most": 40},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_suppress(suite: Suite, form: str, dtype: Any) -> None:
    """Limits that are met, and those that all or none meet."""
    boxes = with_specials(boxes_of(2, 20, dtype))
    for limit in (0, 0.25, 0.75, 1, -1):
        suite.on(
            lambda a, b, m: SuppressOp(a, b, m, **FORMS[form]),
            alive_of(boxes),
            boxes,
            np.array(limit, dtype),
        )
    suite.check()


@pytest.mark.parametrize("label", [np.float32, np.int64, np.int8])
def test_labels(suite: Suite, label: Any) -> None:
    boxes = boxes_of(3, 30)
    labels = np.random.default_rng(4).integers(0, 3, boxes.shape[:2]).astype(label)
    suite.on(
        lambda a, b, m, x: SuppressOp(a, b, m, labels=x, strict=True),
        alive_of(boxes),
        boxes,
        np.array(0.25, np.float32),
        labels,
    )
    suite.check()


def test_open_numbers(suite: Suite) -> None:
    """Of boxes and of those that are kept: none, parts of a tile, and more than one."""
    n, g = symbol("n"), symbol("g")
    types = [typed(np.bool_, g, n), typed(np.float32, g, n, 4), typed(np.float32)]
    for count in (0, 1, 15, 256, 270):
        boxes = boxes_of(1, count)
        suite.add(
            types,
            lambda a, b, m: SuppressOp(a, b, m, most=minimum(n, n // 16 + 1)),
            alive_of(boxes) & (np.arange(count) > 240),
            boxes,
            np.array(0.375, np.float32),
        )
    suite.check()
