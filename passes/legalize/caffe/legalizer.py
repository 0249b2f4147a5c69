"""What a handler works with: the blobs and parameters of one layer, and a builder before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.caffe.ops import CaffeOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.machinery.provenance import derive

LOWEST = float(np.finfo(np.float32).min)
"""The lowest float, which is the maximum of nothing."""


class CaffeLegalizer(Legalizer):
    """What a handler works with: the layer's blobs and parameters, and a builder before it."""

    def __init__(self, op: CaffeOp, symbols: SymbolicValues) -> None:
        super().__init__(op, symbols)
        self.op = op
        self.layer = op.layer()
        """Caffe's message with the parameters; fields that are not set have their defaults."""
        self.bottoms: Sequence[SSAValue] = tuple(op.bottoms)
        self.blobs: Sequence[SSAValue] = tuple(op.blobs)
        self.absorbed: list[Operation] = []
        """Ops that a handler has merged into its own, and that have no other user."""

    @property
    def x(self) -> SSAValue:
        """The first bottom."""
        return self.bottoms[0]

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The dimensions of the first bottom."""
        return dims_of(self.x)

    @property
    def bottom(self) -> TensorValue:
        """The first bottom, for arithmetic."""
        return TensorValue(self, self.x)

    def wants(self, index: int) -> bool:
        """True if top `index` is used."""
        results = self.op.results
        return index < len(results) and results[index].first_use is not None

    def absorb(self, op: Operation) -> None:
        """Take over what `op` does, whose only user is this layer."""
        self.absorbed.append(op)
        self.location = derive([op.location, self.location])

    def along(self, value: SSAValue, axis: int) -> TensorValue:
        """`value` so that it broadcasts from dimension `axis` of the first bottom on."""
        behind = rank_of(self.x) - axis - rank_of(value)
        dims: list[ExprLike] = [*dims_of(value), *[1] * behind]
        return TensorValue(self, self.reshape(value, dims))
