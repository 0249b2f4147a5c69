"""`pad-columns`: right matrices whose columns do not fill vectors get columns of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import PadOp, SliceOp
from lowerdeck.dialects.core.types import dims_of, f32, static_shape
from lowerdeck.lowering.strategies.facts import is_of
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import FEWEST_LANES, Target
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

FEWEST_ROWS, FEWEST_TERMS = 6, 128
"""Of a product, for which what it saves is more than what the copy of its result takes."""
FEWEST_ROWS_OF_COMPUTED = 32
"""The same with the copy of a right matrix that is not known before a run."""

FEWEST_VECTORS, MOST_VECTORS = 4, 64
"""Vectors of columns: of fewer the last one overlaps the one before, of more it does not matter."""


def tiles_left(columns: int, lanes: int) -> int:
    """What is computed behind the last whole vector of columns: shorter vectors, single columns."""
    count, rest = 0, columns % lanes
    while (lanes := lanes // 2) >= FEWEST_LANES:
        count, rest = count + rest // lanes, rest % lanes
    return count + rest


class PadColumns(Pattern[NDArray[Any] | None]):
    """x @ w -> (x @ pad(w))[:, :n]"""

    name = "pad-columns"
    roots = (MatmulOp,)

    def __init__(self, target: Target) -> None:
        self._target = target

    def match(self, op: MatmulOp) -> Match[NDArray[Any] | None] | None:
        left, right, lanes = static_shape(op.lhs), static_shape(op.rhs), self._target.lanes
        if lanes == 1 or left is None or right is None or not is_of(op, f32):
            return None
        is_known = isinstance(op.rhs.owner, ConstantOp)
        if len(left) < 2 or len(right) < 2 or (is_known and len(right) > 2):
            return None
        depth, columns = right[-2:]
        rows = FEWEST_ROWS if is_known else FEWEST_ROWS_OF_COMPUTED
        if left[-2] < rows or depth < FEWEST_TERMS or (is_known and not op.rhs.has_one_use()):
            return None
        if not FEWEST_VECTORS * lanes <= columns <= MOST_VECTORS * lanes:
            return None
        if (count := tiles_left(columns, lanes)) < 2:
            return None
        try:
            matrix = constant_array(op.rhs) if is_known else None
        except ElidedBlobError:
            # The weights are elided: nothing is compiled, and the text stays short.
            return None
        return Match((op,), f"{columns} columns leave {count} narrow tiles", matrix)

    def rewrite(self, match: Match[NDArray[Any] | None], rewriter: Rewriter) -> None:
        op, matrix = match.root, match.data
        assert isinstance(op, MatmulOp)
        dims, right = dims_of(op.result), dims_of(op.rhs)
        assert right[-1].value is not None
        zeros = -right[-1].value % self._target.lanes
        if matrix is not None:
            padded = rewriter.add(ConstantOp.of(np.pad(matrix, ((0, 0), (0, zeros))))).result
        else:
            none = [0] * (len(right) - 1)
            pad = PadOp(op.rhs, [*none, 0], [*none, zeros], None, "constant")
            padded = rewriter.add(pad).result
        product = rewriter.add(MatmulOp(op.lhs, padded)).result
        rewriter.replace(op, rewriter.add(SliceOp(product, [0] * len(dims), dims)).result)


class PadColumnsPass(ModulePass):
    """
    x @ w -> (x @ pad(w))[:, :n]
        [f32; a last vector of columns that would take several narrow tiles; w known before a run,
        or at least 32 rows of x]

    A narrow tile takes as long as a whole vector of columns: its sums wait for each other. What
    follows the product reads the slice where it lies.
    """

    name = "pad-columns"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of(ctx)
        if options.small_weights:
            return
        pattern = PadColumns(target_named(options.target))
        apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
