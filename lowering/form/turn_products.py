"""`turn-products`: a few rows times a transposed matrix, which is read as it lies."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import ReshapeOp, TransposeOp, ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.strategies.facts import assumed_size, is_of
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import (
    Match,
    Pattern,
    Rewriter,
    apply_patterns,
    is_ranked,
    producer,
)


class TurnProduct(Pattern):
    """x @ transpose(y) -> transpose(y @ transpose(x))"""

    name = "turn-product"
    roots = (MatmulOp,)
    ranked = True

    def __init__(self, target: Target) -> None:
        self._target = target

    def match(self, op: MatmulOp) -> Match | None:
        lanes = self._target.lanes_of(element_type(op.result))
        transpose = producer(op.rhs, TransposeOp)
        if lanes == 1 or transpose is None or not is_ranked(transpose):
            return None
        if not is_of(op, f32, f64) or not op.rhs.has_one_use():
            return None
        rank, matrix = len(dims_of(op.rhs)), transpose.input
        if ints(transpose.permutation) != _swapped(rank) or isinstance(matrix.owner, ConstantOp):
            return None
        # A matrix that several others meet would be read for each of them.
        ones = (Expr.const(1),) * (len(dims_of(op.result)) - rank)
        if (*ones, *dims_of(matrix)[:-2]) != dims_of(op.result)[:-2]:
            return None
        rows, depth = dims_of(op.lhs)[-2].value, op.depth.value
        if not rows or depth is None or depth < lanes:
            return None
        columns = assumed_size(dims_of(op.result)[-1])
        if rows > 1 and 2 * rows * (depth + columns) > depth * columns:
            return None
        return Match((op, transpose), f"{rows} rows are fewer than the matrix has")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        op, transpose = match.consumed
        assert isinstance(op, MatmulOp)
        assert isinstance(transpose, TransposeOp)
        turned = _transposed(op.lhs, rewriter)
        product = rewriter.add(MatmulOp(transpose.input, turned)).result
        rewriter.replace(op, _transposed(product, rewriter))


def _swapped(rank: int) -> Sequence[int]:
    return [*range(rank - 2), rank - 1, rank - 2]


def _transposed(value: SSAValue, rewriter: Rewriter) -> SSAValue:
    """Matrices with rows and columns swapped: a view of a single row or column."""
    order = _swapped(len(dims_of(value)))
    dims = [dims_of(value)[axis] for axis in order]
    is_view = any(dim == 1 for dim in dims[-2:])
    new = ReshapeOp(value, dims) if is_view else TransposeOp(value, order)
    return rewriter.add(new).results[0]


class TurnProductsPass(ModulePass):
    """
    x @ transpose(y) -> transpose(y @ transpose(x))
        [f32 or f64; y not constant; no other x meets the same matrix; x has one row, or so few that
        x and the result have half of the elements of y; sums fill vectors]

    The keys of a cache, which one query meets, are read where they lie.
    """

    name = "turn-products"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pattern = TurnProduct(target_named(options_of(ctx).target))
        apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
