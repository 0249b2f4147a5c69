"""`cancel-transpose`: transposes are sunk toward their inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import ReshapeOp, TransposeOp, ints
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.passes.machinery.driver import (
    Match,
    Pattern,
    PatternPass,
    Rewriter,
    is_ranked,
    producer,
)
from lowerdeck.passes.movement.scatters import SinkTransposePastScatter
from lowerdeck.passes.movement.transposes import (
    RULES,
    ComposeTransposes,
    Permutation,
    ReshapeInsteadOfTranspose,
    SinkSharedTranspose,
    SinkTranspose,
    SinkTransposePastReshape,
    data_of,
    inverse,
    moves_nothing,
    regrouped,
    users_of,
)

_MOST_OPS = 64
"""The maximum number of ops searched after a transpose for its inverse."""


def _worth(op: Operation, transposes: Sequence[TransposeOp]) -> str | None:
    cancels = _cancels_later(op.results[0], ints(transposes[0].permutation))
    return "what undoes it follows" if cancels else None


def _cancels_later(value: SSAValue, permutation: Permutation) -> bool:
    """True if an inverse follows, after ops that a transpose can be sunk past."""
    seen: set[Operation] = set()
    pending = [(value, permutation)]
    while pending and len(seen) < _MOST_OPS:
        current, order = pending.pop()
        for op in users_of(current):
            if op in seen or not is_ranked(op):
                continue
            seen.add(op)
            if _undoes(op, current, order):
                return True
            if isinstance(op, ReshapeOp):
                if (found := regrouped(op, order)) is not None:
                    pending.append((op.result, found.permutation))
            elif type(op) in RULES and current in data_of(op) and _keeps_rank(op, current):
                pending.extend((result, order) for result in op.results)
    return False


def _keeps_rank(op: Operation, value: SSAValue) -> bool:
    return rank_of(op.results[0]) == rank_of(value)


def _undoes(op: Operation, value: SSAValue, permutation: Permutation) -> bool:
    """True if `op` cancels the transpose of `value` completely."""
    if isinstance(op, TransposeOp):
        both = [permutation[axis] for axis in ints(op.permutation)]
        return moves_nothing([dims_of(value)[axis] for axis in inverse(permutation)], both)
    return isinstance(op, ReduceOp) and _is_reduced_away(op, permutation)


def _is_reduced_away(op: ReduceOp, permutation: Permutation) -> bool:
    """True if the dimensions that `op` keeps are in order before the transpose."""
    axes, dims = set(ints(op.axes)), dims_of(op.input)
    kept = [axis for place, axis in enumerate(permutation) if place not in axes]
    sizes = [dim for place, dim in enumerate(dims) if place not in axes]
    moved = [axis for axis, size in zip(kept, sizes, strict=True) if size != 1]
    return moved == sorted(moved)


class ReduceOfTranspose(Pattern[tuple[ReduceOp, TransposeOp]]):
    """reduce(transpose(x, p), axes) -> reduce(x, p[axes]) [the other dimensions in order]"""

    name = "reduce-of-transpose"
    roots = (ReduceOp,)
    ranked = True

    def match(self, op: ReduceOp) -> Match[tuple[ReduceOp, TransposeOp]] | None:
        transpose = producer(op.input, TransposeOp)
        if transpose is None or not _is_reduced_away(op, ints(transpose.permutation)):
            return None
        return Match((op, transpose), "what it leaves is in order", (op, transpose))

    def rewrite(self, match: Match[tuple[ReduceOp, TransposeOp]], rewriter: Rewriter) -> None:
        op, transpose = match.data
        permutation = ints(transpose.permutation)
        axes = sorted(permutation[axis] for axis in ints(op.axes))
        keep = bool(op.keep_dims.value.data)
        new = rewriter.add(ReduceOp(op.kind.data, transpose.input, axes, keep)).result
        if new.type != op.result.type:
            new = rewriter.add(ReshapeOp(new, dims_of(op.result))).result
        rewriter.replace(op, new)


class CancelTransposePass(PatternPass):
    """
    Transposes with a later inverse are sunk toward it and cancel.

    - f(transpose(x, p), transpose(y, p), c) -> transpose(f(x, y, c'), p)
      [f elementwise, a lookup in a table, softmax, concat, pad, slice or batch_norm; c constant, or
      a view suffices for c'; the transposes have no other use; after f, and possibly more such ops,
      follows the inverse of p, or a reduction that leaves nothing to permute]
    - f(transpose(x, p), g(transpose(x, p))) -> transpose(f(x, g(x)), p) [likewise; elementwise ops
      and batch_norm that are all that reads a transpose, and of which f alone is used elsewhere]
    - reshape(transpose(x, p)) -> transpose(reshape(x), q) [likewise; dimensions that the reshape
      takes together or apart are side by side in x, too]
    - scatter_nd(transpose(x, p), i, u) -> transpose(scatter_nd(x, i', u'), p) [likewise; p brings
      the dimensions that i counts to the front; i' has the numbers of those before them, which are
      known, in front of i, and is less than what moves; u' is u in the order of x]
    - reduce(transpose(x, p), axes) -> reduce(x, p[axes]) [the other dimensions stay in order]
    - transpose(transpose(x, p), q) -> transpose(x, p[q]), a reshape or x, as in `simplify-movement`

    Each step moves a transpose down or removes one; none is added. A transpose without an inverse
    stays where it is: next to a map it is part of the map's kernel.
    """

    name = "cancel-transpose"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            ComposeTransposes(),
            ReshapeInsteadOfTranspose(),
            ReduceOfTranspose(),
            SinkTranspose(_worth),
            SinkSharedTranspose(_worth),
            SinkTransposePastReshape(_cancels_later),
            SinkTransposePastScatter(_worth),
        ]
