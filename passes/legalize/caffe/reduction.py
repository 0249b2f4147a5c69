"""Reduction along axes, and where the largest elements are."""

from __future__ import annotations

from lowerdeck.dialects.caffe.caffe_pb2 import ReductionParameter
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.quantity import Quantity, concat


@legalizes("Reduction")
def legalize_reduction(lower: CaffeLegalizer) -> Results:
    """All dimensions from `axis` on as one number, times the coefficient."""
    p, x = lower.layer.reduction_param, lower.quantity
    axes = list(range(lower.axis(p.axis, len(lower.shape)), len(lower.shape)))
    match p.operation:
        case ReductionParameter.ASUM:
            x = x.abs()
        case ReductionParameter.SUMSQ:
            x = x * x
        case _:
            pass
    total = x.reduce("sum", axes)
    factor = Quantity.number(lower, p.coeff, f32)
    if p.operation == ReductionParameter.MEAN:
        count = product(lower.shape[axis] for axis in axes)
        factor = factor / Quantity.dim(lower, count).cast(f32)
    return [total.value if factor.is_all(1) else (total * factor).value]


@legalizes("ArgMax")
def legalize_argmax(lower: CaffeLegalizer) -> Results:
    """
    The places of the `top_k` largest elements as floats, or the elements.

    Without an axis it is those of an item: [N, 1, top_k], with the elements behind the places
    [N, 2, top_k], and ones up to the rank of the bottom.
    """
    p = lower.layer.argmax_param
    if p.HasField("axis"):
        axis = lower.axis(p.axis, len(lower.shape))
        places, values = _largest(lower.quantity, axis, p.top_k)
        return [(values if p.out_max_val else places).value]
    items = Quantity(lower, lower.flatten(lower.x, 1))
    found = _largest(items, 1, p.top_k)[: 1 + p.out_max_val]
    ones = [1] * (len(lower.shape) - 3)
    parts = [part.reshape([lower.shape[0], 1, p.top_k, *ones]) for part in found]
    return [(parts[0] if len(parts) == 1 else concat(parts, 1)).value]


def _largest(x: Quantity, axis: int, count: int) -> tuple[Quantity, Quantity]:
    """Places (as floats) and values, best first; of equal elements the last one is the best."""
    lower = x.lower
    if count == 1:
        place = lower.add(ArgReduceOp("max", x.value, axis, True, True))
        return Quantity(lower, place).cast(f32), x.reduce("max", [axis], keep_dims=True)
    dims = x.dims
    starts = [dims[axis] - 1 if k == axis else 0 for k in range(len(dims))]
    steps = [-1 if k == axis else 1 for k in range(len(dims))]
    backward = lower.slice(x.value, starts, dims, steps)
    values, places = lower.insert(TopKOp(backward, count, axis))
    last = Quantity.dim(lower, dims[axis] - 1)
    return (last - Quantity(lower, places)).cast(f32), Quantity(lower, values)
