"""Patterns that two passes share: consecutive transposes, and transposes that move nothing."""

from __future__ import annotations

from lowerdeck.dialects.core.tensor import ReshapeOp, TransposeOp, ints
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.passes.driver import producer
from lowerdeck.passes.equation import Equation, Rule


class ComposeTransposes(Equation):
    """transpose(transpose(x, p), q) -> transpose(x, p[q]), or x if that is the identity"""

    name = "compose-transposes"
    roots = (TransposeOp,)

    def rule(self, op: TransposeOp) -> Rule | None:
        if (inner := producer(op.input, TransposeOp)) is None:
            return None
        x, first = inner.input, ints(inner.permutation)
        permutation = [first[axis] for axis in ints(op.permutation)]
        if permutation == sorted(permutation):
            return "two permutations cancel", x, (inner,)
        return "one permutation after the other", lambda: TransposeOp(x, permutation), (inner,)


class ReshapeInsteadOfTranspose(Equation):
    """transpose(x, p) -> reshape(x) [p keeps the order of all dimensions but those of one]"""

    name = "reshape-instead-of-transpose"
    roots = (TransposeOp,)

    def rule(self, op: TransposeOp) -> Rule | None:
        x, permutation = op.input, ints(op.permutation)
        dims = dims_of(x)
        moved = [axis for axis in permutation if dims[axis] != 1]
        if moved != sorted(moved) or permutation == sorted(permutation):
            return None
        return "only dimensions of one move", lambda: ReshapeOp(x, dims_of(op.result)), ()
