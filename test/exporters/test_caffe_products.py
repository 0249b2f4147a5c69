"""Products of matrices that are no weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import TransposeOp

from .caffe_programs import check, constant, floats

SHAPES = [
    ((3, 4), (4, 5)),
    ((3, 1), (1, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((1, 3, 3, 4), (2, 1, 4, 5)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_products_of_two_blobs(
    tmp_path: Path, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    """As they are, and with either factor transposed before."""
    swapped = {shape: [*range(len(shape) - 2), -1, -2] for shape in (left, right)}
    orders = {shape: [axis % len(shape) for axis in order] for shape, order in swapped.items()}
    flat = {shape: [shape[axis] for axis in order] for shape, order in orders.items()}
    x, y = floats(*left), floats(*right)
    check(tmp_path, {"x": x, "y": y}, lambda x, y: MatmulOp(x, y))
    types = check(
        tmp_path,
        {"x": x, "y": floats(*flat[right])},
        lambda x, y: MatmulOp(x, TransposeOp(y, orders[right]).result),
    )
    assert types.count("InnerProduct") == 1
    assert "Slice" not in types
    check(
        tmp_path,
        {"x": floats(*flat[left]), "y": y},
        lambda x, y: MatmulOp(TransposeOp(x, orders[left]).result, y),
    )


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_constants_on_either_side(
    tmp_path: Path, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    """With a sum behind them, which is no bias of a product without weights."""
    x, y, shift = floats(*left), floats(*right), floats(right[-1])
    for inputs in ({"x": x}, {"y": y}):
        check(
            tmp_path,
            inputs,
            lambda value, inputs=inputs: e.AddOp(
                MatmulOp(
                    value if "x" in inputs else constant(x),
                    value if "y" in inputs else constant(y),
                ).result,
                constant(shift),
            ),
        )


def test_products_of_moved_heads(tmp_path: Path) -> None:
    """Scores of attention: the heads change their place, but no matrix is transposed."""

    def program(q: SSAValue, k: SSAValue) -> Any:
        return MatmulOp(TransposeOp(q, [0, 2, 1, 3]).result, TransposeOp(k, [0, 2, 3, 1]).result)

    types = check(tmp_path, {"q": floats(1, 5, 2, 70), "k": floats(1, 66, 2, 70)}, program)
    assert types.count("Slice") == 2
