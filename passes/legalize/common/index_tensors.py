"""Elements at places that several index tensors name, as numpy's advanced indexing has them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherNdOp, GatherOp, ScatterNdOp
from lowerdeck.dialects.core.types import broadcast, dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack


def wrapped(builder: Legalizer, places: SSAValue, dim: Expr) -> TensorValue:
    """Places of which negative ones count from the end."""
    index = TensorValue.of(builder, places).cast(i64)
    return index.lt(0).where(index + TensorValue.dim(builder, dim), index)


class IndexTensors:
    """
    What index tensors of dimensions say, None for one that is not indexed: they broadcast, and
    their dimensions stand where the indexed ones were, or first if these are no neighbors.
    """

    def __init__(
        self, builder: Legalizer, dims: Sequence[Expr], given: Sequence[SSAValue | None]
    ) -> None:
        self.builder = builder
        self.axes = [axis for axis, value in enumerate(given) if value is not None]
        if not self.axes or len(given) > len(dims):
            text = f"{len(given)} indices of a tensor of {len(dims)} dimensions"
            builder.refuse(text, "at least one, and no more than dimensions")
        parts = [
            wrapped(builder, value, dims[axis])
            for axis, value in enumerate(given)
            if value is not None
        ]
        self.dims = broadcast([part.dims for part in parts])
        self.index = stack([part.broadcast(self.dims) for part in parts], len(self.dims))
        rest = [axis for axis in range(len(dims)) if axis not in self.axes]
        self.order = [*self.axes, *rest]
        neighbors = self.axes == list(range(self.axes[0], self.axes[0] + len(self.axes)))
        self.first = self.axes[0] if neighbors else 0
        """Where the dimensions of the index stand in the result."""

    def _result_order(self, rank: int) -> list[int]:
        """From the indexed dimensions first to their place in the result."""
        count = len(self.dims)
        rest = list(range(count, rank))
        return [*rest[: self.first], *range(count), *rest[self.first :]]

    def elements(self, x: SSAValue) -> SSAValue:
        """The elements of a tensor."""
        builder = self.builder
        moved = builder.transpose(x, self.order)
        if len(self.axes) == 1:
            index = builder.reshape(self.index.value, self.dims)
            found = builder.add(GatherOp(moved, index, 0))
        else:
            found = builder.add(GatherNdOp(moved, self.index.value))
        return builder.transpose(found, self._result_order(rank_of(found)))

    def written(self, x: SSAValue, values: SSAValue, reduction: str) -> SSAValue:
        """A tensor with other elements, which broadcast, there, or combined with them."""
        builder = self.builder
        moved = builder.transpose(x, self.order)
        inner = [*self.dims, *dims_of(moved)[len(self.axes) :]]
        order = self._result_order(len(inner))
        wide = builder.broadcast(values, [inner[k] for k in order])
        updates = builder.transpose(wide, [order.index(k) for k in range(len(inner))])
        result = builder.add(ScatterNdOp(moved, self.index.value, updates, reduction))
        return builder.transpose(result, [self.order.index(k) for k in range(rank_of(x))])
