"""What ops take for granted about dimensions is what the interpreter would refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.passes.machinery.assumptions import assumptions

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    symbol,
    typed,
)

N, M = symbol("n"), symbol("m")


def fits(op: Operation, n: int, m: int) -> bool:
    """True if everything that an op assumes holds for two dimensions."""
    holds: dict[str, Callable[[int, int], bool]] = {
        "eq": lambda left, right: left == right,
        "le": lambda left, right: left <= right,
        "index": lambda left, right: left <= right,
        "broadcast": lambda left, right: left in (1, right),
    }
    values = {"n": n, "m": m}
    return all(
        holds[predicate](left.evaluate(values), right.evaluate(values))
        for left, predicate, right in assumptions(op)
    )


def indices(*dims: ExprLike) -> SSAValue:
    """Numbers from data."""
    return Block(arg_types=[typed(np.int64, *dims)]).args[0]


Pairs = list[tuple[int, int]]
CASES: list[tuple[Callable[[SSAValue, SSAValue], Operation], Pairs, Pairs]] = [
    (lambda x, y: t.SliceOp(x, [1, 0], [2, M], [2, 1]), [(4, 2), (5, 1)], [(3, 2), (0, 1)]),
    (lambda x, y: t.SliceOp(x, [3, 0], [N, M], [-1, 1]), [(4, 2), (0, 1)], [(5, 2), (3, 1)]),
    (lambda x, y: t.SliceOp(x, [0, 0], [N - 2, M], [1, 1]), [(2, 2), (3, 1)], [(1, 2)]),
    (lambda x, y: t.ConcatOp([x, y], 1), [(4, 2), (4, 0)], [(1, 2), (3, 2), (5, 2)]),
    (lambda x, y: t.ConcatOp([y, x], 1), [(4, 2), (4, 0)], [(1, 2), (3, 2), (5, 2)]),
    (lambda x, y: MatmulOp(x, y), [(4, 4), (1, 4)], [(4, 3), (4, 5), (4, 1)]),
    (lambda x, y: t.TopKOp(x, 3, 0), [(3, 1), (4, 1)], [(2, 1)]),
    (lambda x, y: t.ReshapeOp(x, [N, 2]), [(3, 2), (0, 5)], [(3, 3), (3, 1)]),
    (lambda x, y: t.BroadcastOp(x, [N, 3]), [(3, 3), (3, 1)], [(3, 2), (3, 0)]),
    (lambda x, y: t.GatherOp(x, indices(4), 0), [(1, 1), (9, 3), (0, 0)], [(0, 1)]),
    (lambda x, y: t.GatherOp(x, indices(M), 0), [(1, 1), (0, 0)], [(0, 1)]),
    (lambda x, y: t.GatherOp(x, indices(N), 1), [(1, 1), (0, 0)], [(1, 0)]),
    (lambda x, y: t.GatherElementsOp(x, indices(N, 2), 1), [(2, 1), (0, 0)], [(2, 0)]),
    (lambda x, y: t.GatherNdOp(x, indices(3, 2)), [(2, 1)], [(0, 1), (1, 0), (0, 0)]),
    (lambda x, y: t.GatherNdOp(x, indices(N, 1), 1), [(2, 1), (0, 0)], [(2, 0)]),
    (lambda x, y: t.ScatterElementsOp(x, indices(4, 4), y, 0), [(1, 4), (1, 5)], [(0, 4)]),
    (lambda x, y: t.ScatterNdOp(x, indices(4, 1), y), [(2, 4)], [(0, 4)]),
]
"""An op of x: [n, m] and y: [4, 4]; pairs (n, m) that fit, and pairs that do not."""


@pytest.mark.parametrize(("build", "good", "bad"), CASES)
def test_what_fits(
    build: Callable[[SSAValue, SSAValue], Operation], good: Pairs, bad: Pairs
) -> None:
    x, y = Block(arg_types=[typed(np.float32, N, M), typed(np.float32, 4, 4)]).args
    op = build(x, y)
    assert [pair for pair in good if not fits(op, *pair)] == []
    assert [pair for pair in bad if fits(op, *pair)] == []
