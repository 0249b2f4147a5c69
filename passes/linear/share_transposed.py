"""`share-transposed`: a matrix and its transpose are one constant where rows are gathered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.tensor import GatherOp, TransposeOp
from lowerdeck.dialects.core.types import dims_of, element_type, rank_of
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, is_ranked

_LEAST_BYTES = 1024
"""Of a constant that is worth it."""

_ROWS = 64
"""That are compared at a time."""


@record
class _Gathers:
    """What reads a constant that its transpose can replace."""

    transpose: ConstantOp
    users: Sequence[GatherOp]


class GatherFromTranspose(Pattern[_Gathers]):
    """gather(m, i) -> transpose(gather(t, i)) where t is the transpose of m"""

    name = "gather-from-transpose"
    roots = (ConstantOp,)
    ranked = True

    def __init__(self, module: ModuleOp) -> None:
        self._by_type: dict[Any, list[ConstantOp]] = defaultdict(list)
        for op in all_ops(module):
            if isinstance(op, ConstantOp) and _is_large_matrix(op):
                self._by_type[_kind(op)].append(op)

    def match(self, op: ConstantOp) -> Match[_Gathers] | None:
        if not _is_large_matrix(op) or (users := _gathers_of(op)) is None:
            return None
        for other in self._by_type.get(_kind(op, turned=True), ()):
            # One that has lost its users is gone.
            is_used = other is not op and other.result.first_use is not None
            if is_used and _are_transposed(op, other):
                reason = f"it is stored as {other.result.name_hint or 'another constant'}, too"
                return Match((op, *users), reason, _Gathers(other, users))
        return None

    def rewrite(self, match: Match[_Gathers], rewriter: Rewriter) -> None:
        own, stored = match.root, match.data.transpose
        if own.is_before_in_block(stored):
            # All that reads either of them stands behind this place.
            alike = self._by_type[_kind(stored)]
            before = rewriter.insert_before(own, stored.clone())
            alike[alike.index(stored)] = before
            rewriter.replace(stored, before.result)
            stored = before
        for op in match.data.users:
            axis, rank = 1 - op.axis.data, rank_of(op.result)
            inside = op.inside is not None
            found = rewriter.insert_before(
                op, GatherOp(stored.result, op.indices, axis, inside=inside)
            )
            # The dimension that is read as a whole goes from one end to the other.
            order = [*range(1, rank), 0] if axis else [rank - 1, *range(rank - 1)]
            rewriter.replace(op, TransposeOp(found.result, order))


def _kind(op: ConstantOp, *, turned: bool = False) -> Any:
    """What is equal for matrices of one block and shape, or of the transposed shape."""
    dims = dims_of(op.result)
    return op.parent, element_type(op.result), tuple(dims[::-1] if turned else dims)


def _is_large_matrix(op: ConstantOp) -> bool:
    if not is_ranked(op) or rank_of(op.result) != 2:
        return False
    try:
        return op.array.nbytes >= _LEAST_BYTES
    except ElidedBlobError:
        return False


def _gathers_of(op: ConstantOp) -> list[GatherOp] | None:
    """Its users, if all of them gather from it."""
    users = [use.operation for use in op.result.uses if use.index == 0]
    gathers = [user for user in users if isinstance(user, GatherOp) and is_ranked(user)]
    is_all = len(gathers) == len(list(op.result.uses)) > 0
    return gathers if is_all else None


def _are_transposed(one: ConstantOp, other: ConstantOp) -> bool:
    """True if each bit of the one is where it is in the transpose of the other."""
    bits = np.dtype(f"u{one.array.itemsize}")
    a, b = one.array.view(bits), other.array.view(bits).T
    # Most matrices that are not equal differ at once.
    return all(np.array_equal(a[k : k + _ROWS], b[k : k + _ROWS]) for k in range(0, len(a), _ROWS))


class ShareTransposedPass(PatternPass):
    """
    A matrix and its transpose are stored once.

    - gather(m, i) -> transpose(gather(t, i)) along the other axis
      [m and t constants of one block, each the transpose of the other, and nothing else reads m]

    A model whose table of embeddings is also the matrix of its last product has such a pair, once
    `fold-constants` has transposed it. Rows of the table are columns of the other then, which takes
    longer to gather, and the product reads its matrix as it lies. Part of no pipeline but that of
    `--small-weights`.
    """

    name = "share-transposed"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [GatherFromTranspose(module)]
