"""Reduction along axes, and where the largest elements are."""

from __future__ import annotations

from lowerdeck.dialects.caffe.caffe_pb2 import ReductionParameter
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat


@legalizes("Reduction")
def legalize_reduction(builder: CaffeLegalizer) -> Results:
    """All dimensions from `axis` on as one number, times the coefficient."""
    p, x = builder.layer.reduction_param, builder.bottom
    axes = list(range(builder.axis(p.axis, len(builder.shape)), len(builder.shape)))
    match p.operation:
        case ReductionParameter.ASUM:
            x = x.abs()
        case ReductionParameter.SUMSQ:
            x = x * x
        case _:
            pass
    total = x.reduce("sum", axes)
    factor = TensorValue.number(builder, p.coeff, f32)
    if p.operation == ReductionParameter.MEAN:
        count = product(builder.shape[axis] for axis in axes)
        factor = factor / TensorValue.dim(builder, count).cast(f32)
    return [total.value if factor.is_all(1) else (total * factor).value]


@legalizes("ArgMax")
def legalize_argmax(builder: CaffeLegalizer) -> Results:
    """
    The places of the `top_k` largest elements as floats, or the elements.

    Without an axis it is those of an item: [N, 1, top_k], with the elements behind the places
    [N, 2, top_k], and ones up to the rank of the bottom.
    """
    p = builder.layer.argmax_param
    if p.HasField("axis"):
        axis = builder.axis(p.axis, len(builder.shape))
        places, values = _largest(builder.bottom, axis, p.top_k)
        return [(values if p.out_max_val else places).value]
    items = TensorValue(builder, builder.flatten(builder.x, 1))
    found = _largest(items, 1, p.top_k)[: 1 + p.out_max_val]
    ones = [1] * (len(builder.shape) - 3)
    parts = [part.reshape([builder.shape[0], 1, p.top_k, *ones]) for part in found]
    return [(parts[0] if len(parts) == 1 else concat(parts, 1)).value]


def _largest(x: TensorValue, axis: int, count: int) -> tuple[TensorValue, TensorValue]:
    """Places (as floats) and values, best first; of equal elements the last one is the best."""
    builder = x.builder
    if count == 1:
        place = builder.add(ArgReduceOp("max", x.value, axis, True, True))
        return TensorValue(builder, place).cast(f32), x.reduce("max", [axis], keep_dims=True)
    values, places = builder.insert(TopKOp(builder.flip(x.value, [axis]), count, axis))
    last = TensorValue.dim(builder, x.dims[axis] - 1)
    return (last - TensorValue(builder, places)).cast(f32), TensorValue(builder, values)
