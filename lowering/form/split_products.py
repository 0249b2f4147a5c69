"""`split-products`: products with long sums are split along K, so that operands stay cached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import SliceOp
from lowerdeck.dialects.core.types import dims_of, f32, static_shape
from lowerdeck.lowering.strategies.facts import is_of
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

FEWEST_COLUMNS = 96
"""With fewer, copies of the parts of the left matrix take longer than what they save."""


def is_long(op: MatmulOp, target: Target) -> bool:
    """
    True if a panel of a constant right matrix takes more than a quarter of the L2 cache: then the
    prefetched next panel and rows of the left matrix do not fit in the cache with it.
    """
    shape, weight = static_shape(op.lhs), static_shape(op.rhs)
    if target.lanes == 1 or shape is None or weight is None or not is_of(op, f32):
        return False
    rows, depth = shape[-2:]
    if not isinstance(op.rhs.owner, ConstantOp) or len(weight) != 2:
        return False
    if rows < target.limits.split_rows or weight[1] < FEWEST_COLUMNS:
        return False
    panel_bytes = depth * target.limits.split_vectors * target.vector_bytes
    return panel_bytes > target.machine.l2_bytes // 4


def parts_of(depth: int, target: Target) -> Iterator[tuple[int, int]]:
    """The starts and lengths of parts of nearly equal length."""
    count = -(-depth // target.limits.split_terms)
    size = -(-depth // count // target.lanes) * target.lanes
    for start in range(0, depth, size):
        yield start, min(size, depth - start)


class SplitProduct(Pattern[NDArray[Any]]):
    """x @ w -> x[:, :k] @ w[:k] + x[:, k:] @ w[k:] + ..."""

    name = "split-product"
    roots = (MatmulOp,)

    def __init__(self, target: Target) -> None:
        self._target = target

    def match(self, op: MatmulOp) -> Match[NDArray[Any]] | None:
        if not is_long(op, self._target):
            return None
        try:
            weight = constant_array(op.rhs)
        except ElidedBlobError:
            # The weights are elided: nothing is compiled, and the text stays short.
            return None
        assert weight is not None
        depth = weight.shape[0]
        parts = len(list(parts_of(depth, self._target)))
        return Match((op,), f"{depth} products in {parts} parts", weight)

    def rewrite(self, match: Match[NDArray[Any]], rewriter: Rewriter) -> None:
        op, weight = match.root, match.data
        assert isinstance(op, MatmulOp)
        rows = dims_of(op.lhs)[:-1]
        total = None
        for start, size in parts_of(weight.shape[0], self._target):
            starts = [*(0 for _ in rows), start]
            left = rewriter.add(SliceOp(op.lhs, starts, [*rows, size])).result
            right = rewriter.add(ConstantOp.of(weight[start : start + size])).result
            product = rewriter.add(MatmulOp(left, right)).result
            total = product if total is None else rewriter.add(AddOp(product, total)).result
        assert total is not None
        rewriter.replace(op, total)


class SplitProductsPass(ModulePass):
    """
    x @ w -> x[:, :k] @ w[:k] + x[:, k:] @ w[k:] + ...
        [f32; w constant, so long that a panel of its columns does not stay in the cache, and wide]

    The parts of x are copied: their rows are then adjacent and do not conflict in the cache.
    """

    name = "split-products"

    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pattern = SplitProduct(target_named(options_of(ctx).target))
        apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
