"""A pattern of `sink-transpose`: rows of constant weights move instead of what they multiply."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import ReshapeOp, TransposeOp, ints
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, is_ranked, producer
from lowerdeck.passes.movement.transposes import Permutation, inverse, users_of


class PermuteRows(Pattern[Permutation]):
    """reshape(transpose(x, p)) @ w -> reshape(x) @ rows of w in another order"""

    name = "permute-rows"
    roots = (MatmulOp,)
    ranked = True

    def match(self, op: MatmulOp) -> Match[Permutation] | None:
        reshape = producer(op.lhs, ReshapeOp)
        transpose = reshape and producer(reshape.input, TransposeOp)
        if (
            reshape is None
            or transpose is None
            or not (is_ranked(reshape) and is_ranked(transpose))
        ):
            return None
        if any(user is not reshape for user in users_of(transpose.result)):
            return None
        # Were another op to read it, it would be transposed nevertheless.
        if not all(_multiplies(user, op.lhs) for user in users_of(op.lhs)):
            return None
        order = _order_of_rows(transpose, reshape)
        if order is None:
            return None
        return Match((op, reshape, transpose), "rows of weights move instead", order)

    def rewrite(self, match: Match[Permutation], rewriter: Rewriter) -> None:
        op, reshape, transpose = match.consumed
        assert isinstance(op, MatmulOp)
        assert isinstance(reshape, ReshapeOp)
        assert isinstance(transpose, TransposeOp)
        order = match.data
        sizes, columns = dims_of(transpose.result)[-len(order) :], dims_of(op.rhs)[-1]
        by_place = rewriter.add(ReshapeOp(op.rhs, [*sizes, columns])).result
        moved = rewriter.add(TransposeOp(by_place, [*inverse(order), len(order)])).result
        rows = rewriter.add(ReshapeOp(moved, dims_of(op.rhs))).result
        flat = rewriter.add(ReshapeOp(transpose.input, dims_of(reshape.result))).result
        product = MatmulOp(flat, rows, op.zero_points, accumulator=op.accumulator)
        rewriter.replace(op, rewriter.add(product).results)


def _multiplies(user: object, lhs: SSAValue) -> bool:
    """True for a product of rows with a constant matrix, whatever the order of their terms."""
    if not isinstance(user, MatmulOp) or user.lhs is not lhs or user.packing is not None:
        return False
    if not isinstance(user.rhs.owner, ConstantOp) or rank_of(user.rhs) != 2:
        return False
    places = [(-1, zero) for zero in user.zero_points[:1]]
    places += [(-2, zero) for zero in user.zero_points[1:]]
    return all(rank_of(zero) < -axis or dims_of(zero)[axis] == 1 for axis, zero in places)


def _order_of_rows(transpose: TransposeOp, reshape: ReshapeOp) -> Permutation | None:
    """How the last dimensions, which the reshape makes rows of, move; None if others move, too."""
    permutation = ints(transpose.permutation)
    sizes = [dim.value for dim in dims_of(transpose.result)]
    length = dims_of(reshape.result)[-1].value
    for first in reversed(range(len(sizes))):
        last = [size for size in sizes[first:] if size is not None]
        if len(last) < len(sizes) - first:
            return None
        if prod(last) == length and sorted(permutation[first:]) == list(range(first, len(sizes))):
            order = [axis - first for axis in permutation[first:]]
            is_first = permutation[:first] == list(range(first))
            return order if is_first and order != sorted(order) else None
    return None
