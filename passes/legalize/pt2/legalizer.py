"""What a handler works with: the arguments of one op, and a builder before it."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import rank_of
from lowerdeck.dialects.pt2.ops import Pt2Op
from lowerdeck.passes.legalize.arguments import ArgumentsLegalizer
from lowerdeck.passes.legalize.common.promotion import Number, promoted
from lowerdeck.passes.legalize.pt2.registry import plain_name
from lowerdeck.passes.legalize.symbolic import SymbolicValues


class Pt2Legalizer(ArgumentsLegalizer):
    """What a handler works with."""

    def __init__(
        self, op: Pt2Op, symbols: SymbolicValues, pairs: set[SSAValue] | None = None
    ) -> None:
        super().__init__(op, symbols)
        self.pairs: set[SSAValue] = set() if pairs is None else pairs
        """Values that are complex numbers, as a last dimension of two."""

    @property
    def name(self) -> str:
        """The operator without namespace and overload."""
        return plain_name(self.op.op_type.split(".")[1])

    @property
    def overload(self) -> str:
        """The overload."""
        return self.op.op_type.split(".")[2]

    # Images

    def batched(self, x: SSAValue, rank: int) -> tuple[SSAValue, Callable[..., list[SSAValue]]]:
        """
        A tensor with the batch as first of `rank` dimensions, and what takes it away from results
        if there was none.
        """
        if rank_of(x) == rank:
            return x, lambda *results: list(results)
        return self.unsqueeze(x, [0]), lambda *results: [self.squeeze(r, [0]) for r in results]

    # Promotion

    def promoted(self, *names: str) -> Attribute:
        """The type in which arguments are combined."""
        operands: list[Number] = [self.get(name) for name in names]
        symbolic = [not self.op.schema.arguments[name].type.startswith("Tensor") for name in names]
        return promoted(operands, symbolic)
