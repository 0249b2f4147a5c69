"""Interpolation along one dimension: weights of neighbors, and their sum."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import rank_of
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.tensor_value import TensorValue


def weighted_taps(
    builder: CoreBuilder,
    x: SSAValue,
    axis: int,
    index: TensorValue,
    weights: TensorValue,
    *,
    inside: bool = False,
) -> SSAValue:
    """
    The sum of elements along `axis` at `index` times `weights`, both [places, neighbors]; the
    indices may be known to be `inside`.
    """
    total: TensorValue | None = None
    for tap in range(index.dims[1].value or 0):
        gather = GatherOp(x, index.pick(1, tap).value, axis, inside=inside)
        part = TensorValue(builder, builder.add(gather))
        term = part * weights.pick(1, tap).column(rank_of(x), axis)
        total = term if total is None else total + term
    assert total is not None
    return total.value


def cubic_weights(after: TensorValue, a: float) -> list[TensorValue]:
    """Keys' cubic convolution for the four neighbors of a place that lies `after` the second."""
    before = 1.0 - after
    return [
        outer_cubic(after + 1.0, a),
        inner_cubic(after, a),
        inner_cubic(before, a),
        outer_cubic(before + 1.0, a),
    ]


def inner_cubic(x: TensorValue, a: float) -> TensorValue:
    """The kernel up to a distance of one."""
    return (x * (a + 2) - (a + 3)) * x * x + 1.0


def outer_cubic(x: TensorValue, a: float) -> TensorValue:
    """The kernel at distances between one and two."""
    return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a
