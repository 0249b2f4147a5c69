"""Index maps of core ops, against what the interpreter moves where."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.test import TestOp as Opaque
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.index_maps import HasIndexMaps, MovesElements, any_index
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import dims_of, f32, i64, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret.core import evaluate


def value(shape: Sequence[int], element: Any = f32) -> SSAValue:
    """A value of some tensor type."""
    return Opaque(result_types=[tensor(element, shape)]).results[0]


def numbers(shape: Sequence[int]) -> NDArray[Any]:
    """Elements that all differ; none is zero, which is what pads add."""
    return np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


MOVES: list[CoreOp] = [
    t.ReshapeOp(value([2, 3, 4]), [4, 6]),
    t.ReshapeOp(value([1, 6]), [2, 1, 3]),
    t.TransposeOp(value([2, 3, 4]), [1, 2, 0]),
    t.ChannelShuffleOp(value([2, 6, 3]), 2),
    t.BroadcastOp(value([3, 1]), [2, 3, 4]),
    t.SliceOp(value([5, 6]), [4, 1], [3, 2], [-2, 3]),
    t.SplitOp(value([2, 7]), 1, [3, 0, 4]),
]


def index_of(exprs: Sequence[Expr | None]) -> tuple[int, ...]:
    """An index of numbers."""
    found = [None if expr is None else expr.value for expr in exprs]
    assert None not in found
    return cast(tuple[int, ...], tuple(found))


@pytest.mark.parametrize("op", MOVES, ids=lambda op: op.name)
def test_moved_elements_come_from_where_the_map_says(op: CoreOp) -> None:
    assert isinstance(op, MovesElements)
    array = numbers([dim.value or 0 for dim in dims_of(op.operands[0])])
    for number, result in enumerate(evaluate(op, [array], {})):
        for at in product(*map(range, result.shape)):
            place = index_of(op.operand_index(0, list(map(Expr.const, at)), number))
            assert result[at] == array[place]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pads_repeat_or_add(mode: str) -> None:
    op, array = t.PadOp(value([3, 4]), [2, 0], [1, 3], mode=mode), numbers([3, 4])
    (result,) = evaluate(op, [array], {})
    for at in product(*map(range, result.shape)):
        place = index_of(op.operand_index(0, list(map(Expr.const, at))))
        inside = all(0 <= k < size for k, size in zip(place, array.shape, strict=True))
        assert inside or mode == "constant"
        assert result[at] == (array[place] if inside else 0)


def test_one_operand_of_a_concatenation_has_the_element() -> None:
    op = t.ConcatOp([value([2, 1]), value([2, 3]), value([2, 2])], 1)
    arrays = [numbers([2, width]) + 10 * width for width in (1, 3, 2)]
    (result,) = evaluate(op, arrays, {})
    for at in product(*map(range, result.shape)):
        places = [index_of(op.operand_index(k, list(map(Expr.const, at)))) for k in range(3)]
        found = [
            array[place]
            for array, place in zip(arrays, places, strict=True)
            if 0 <= place[1] < array.shape[1]
        ]
        assert found == [result[at]]


GATHERS: list[tuple[CoreOp, NDArray[Any]]] = [
    (t.GatherOp(value([2, 5, 3]), value([2, 2], i64), 1), np.array([[4, 0], [2, 2]])),
    (t.GatherElementsOp(value([2, 5]), value([2, 3], i64), 1), np.array([[4, 0, 1], [2, 3, 3]])),
    (t.GatherNdOp(value([2, 4, 5, 3]), value([2, 2, 2], i64), 1), np.array([[[3, 4], [0, 1]]] * 2)),
]


@pytest.mark.parametrize(("op", "indices"), GATHERS, ids=lambda part: getattr(part, "name", ""))
def test_data_fills_what_the_map_leaves_open(op: CoreOp, indices: NDArray[Any]) -> None:
    assert isinstance(op, HasIndexMaps)
    array = numbers([dim.value or 0 for dim in dims_of(op.operands[0])])
    (result,) = evaluate(op, [array, indices], {})
    for at in product(*map(range, result.shape)):
        exprs = list(map(Expr.const, at))
        where = tuple(
            slice(None) if part is None else part.value for part in op.operand_index(1, exprs)
        )
        data = iter(np.atleast_1d(indices[where]).tolist())
        place = [
            Expr.const(next(data)) if part is None else part for part in op.operand_index(0, exprs)
        ]
        assert result[at] == array[index_of(place)]


def test_operands_of_elementwise_ops_broadcast() -> None:
    op = e.AddOp(value([2, 1, 4]), value([3, 4]))
    left, right = numbers([2, 1, 4]), 100 * numbers([3, 4])
    (result,) = evaluate(op, [left, right], {})
    for at in product(*map(range, result.shape)):
        exprs = list(map(Expr.const, at))
        places = [index_of(op.operand_index(k, exprs)) for k in (0, 1)]
        assert result[at] == left[places[0]] + right[places[1]]


def test_what_may_be_one_is_clamped() -> None:
    """Of a size that may turn out to be one, all indices read the only element then."""
    n = Expr.symbol("n")
    op = e.AddOp(
        Opaque(result_types=[tensor(f32, [n])]).results[0],
        Opaque(result_types=[tensor(f32, [n * 2])]).results[0],
    )
    at = Expr.symbol("at")
    (index,) = op.operand_index(0, [at])
    assert index is not None
    assert [index.evaluate({"at": 3, "n": size}) for size in (1, 5)] == [0, 3]


def test_whole_rows_and_parameters() -> None:
    at = any_index([Expr.const(dim) for dim in (2, 3, 1)])
    assert at[2] == 0
    assert SoftmaxOp(value([2, 3, 1]), 1).operand_index(0, at) == [at[0], None, at[2]]
    scale, bias, mean, variance = (value([3]) for _ in range(4))
    norm = BatchNormOp(value([2, 3, 1]), scale, bias, mean, variance, 0.1, 1)
    assert norm.operand_index(0, at) == at
    assert norm.operand_index(3, at) == [at[1]]


def test_every_elementwise_op_has_index_maps() -> None:
    assert [op.name for op in e.ELEMENTWISE if not issubclass(op, HasIndexMaps)] == []
