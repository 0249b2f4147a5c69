"""Operators that read elements at places that a tensor names."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherNdOp, GatherOp
from lowerdeck.dialects.core.types import dims_of, f32, f64, i64, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.selection import nonzero, reverse_sequence
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.layout import axis_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("Gather")
def legalize_gather(builder: Tf1Legalizer) -> Results:
    """Along the first axis."""
    return [builder.add(GatherOp(builder.operand("params"), builder.operand("indices"), 0))]


@legalizes("GatherV2")
def legalize_gather_axis(builder: Tf1Legalizer) -> Results:
    """The first `batch_dims` dimensions are common to the operand and the indices."""
    x, indices = builder.operand("params"), builder.operand("indices")
    axis = axis_of(builder, "axis", rank_of(x))
    batch = builder.attrs.int("batch_dims")
    batch = batch + rank_of(indices) if batch < 0 else batch
    if not 0 <= batch <= min(axis, rank_of(indices)):
        builder.refuse(f"{batch} batch dimensions", f"0 to {min(axis, rank_of(indices))}")
    if batch == 0:
        return [builder.add(GatherOp(x, indices, axis))]
    return [_batched(builder, x, indices, axis, batch)]


def _batched(
    builder: Tf1Legalizer, x: SSAValue, indices: SSAValue, axis: int, batch: int
) -> SSAValue:
    """`axis` goes behind the batch; of the result, what was between them goes back there."""
    rank, count = rank_of(x), rank_of(indices) - batch
    between = [k for k in range(batch, rank) if k != axis]
    front = builder.transpose(x, [*range(batch), axis, *between])
    found = builder.add(GatherNdOp(front, builder.unsqueeze(indices, [rank_of(indices)]), batch))
    moved = axis - batch
    start = batch + count
    order = [
        *range(batch),
        *range(start, start + moved),
        *range(batch, start),
        *range(start + moved, rank_of(found)),
    ]
    return builder.transpose(found, order)


@legalizes("GatherNd")
def legalize_gather_nd(builder: Tf1Legalizer) -> Results:
    return [builder.add(GatherNdOp(builder.operand("params"), builder.operand("indices")))]


@legalizes("Where")
def legalize_where(builder: Tf1Legalizer) -> Results:
    """The coordinates of the elements that are not zero, one row each."""
    x = builder.operand("input")
    if rank_of(x) == 0:
        builder.refuse("a scalar", "a tensor with dimensions")
    return [builder.transpose(nonzero(builder, x), [1, 0])]


@legalizes("ListDiff")
def legalize_list_diff(builder: Tf1Legalizer) -> Results:
    """The elements of `x` that are not in `y`, and their places."""
    x = TensorValue.of(builder, builder.operand("x"))
    y = TensorValue.of(builder, builder.operand("y"))
    same = x.reshape([x.dims[0], 1]).eq(y.reshape([1, y.dims[0]]))
    is_new = same.cast(i64).reduce("sum", [1]).eq(0)
    places = builder.squeeze(nonzero(builder, is_new.value), [0])
    found = builder.add(GatherOp(x.value, places, 0))
    return [found, builder.cast(places, builder.result_element(1))]


_MOST_DIMENSIONS = 254
"""Of a tensor of TensorFlow."""


@legalizes("UnravelIndex")
def legalize_unravel_index(builder: Tf1Legalizer) -> Results:
    """The coordinates of places in C order: a vector, or a column for each place."""
    places = TensorValue.of(builder, builder.operand("indices")).cast(i64)
    dims = TensorValue.of(builder, builder.operand("dims")).cast(i64)
    rank = dims.dims[0].value
    if rank is None or not 0 < rank <= _MOST_DIMENSIONS:
        builder.refuse(f"{dims.dims[0]} dimensions", f"a known number, 1 to {_MOST_DIMENSIONS}")
    parts: list[TensorValue] = []
    for k in reversed(range(rank)):
        dim = dims.pick(0, k)
        parts.insert(0, places % dim)
        places = places // dim
    return [stack(parts, 0).cast(builder.result_element()).value]


@legalizes("DynamicPartition")
def legalize_dynamic_partition(builder: Tf1Legalizer) -> Results:
    """Result k has the parts of `data` whose number is k, in their order."""
    data, numbers = builder.operand("data"), builder.operand("partitions")
    dims, shared = dims_of(data), rank_of(numbers)
    count = product(dims[:shared])
    rows = builder.reshape(data, [count, *dims[shared:]])
    flat = TensorValue(builder, builder.reshape(numbers, [count]))
    parts: list[SSAValue] = []
    for k in range(builder.attrs.int("num_partitions")):
        places = builder.squeeze(nonzero(builder, flat.eq(k).value), [0])
        parts.append(builder.add(GatherOp(rows, places, 0)))
    return parts


@legalizes("ReverseSequence")
def legalize_reverse_sequence(builder: Tf1Legalizer) -> Results:
    """The first `seq_lengths[batch]` elements along the time axis in reverse."""
    x = builder.operand("input")
    lengths = TensorValue.of(builder, builder.operand("seq_lengths")).cast(i64)
    batch = builder.axis(builder.attrs.int("batch_dim"), rank_of(x))
    time = builder.axis(builder.attrs.int("seq_dim"), rank_of(x))
    if {batch, time} == {0, 1}:
        return [reverse_sequence(builder, x, lengths, batch, time)]
    order = [batch, time, *(k for k in range(rank_of(x)) if k not in (batch, time))]
    found = reverse_sequence(builder, builder.transpose(x, order), lengths, 0, 1)
    return [builder.transpose(found, [order.index(k) for k in range(rank_of(x))])]


@legalizes("LowerBound", "UpperBound")
def legalize_bound(builder: Tf1Legalizer) -> Results:
    """In each row, how many of the sorted elements are less than (or equal to) each value."""
    table = TensorValue.of(builder, builder.unsqueeze(builder.operand("sorted_inputs"), [1]))
    values = TensorValue.of(builder, builder.unsqueeze(builder.operand("values"), [2]))
    below = table.lt(values) if builder.op_type == "LowerBound" else table.le(values)
    return [below.cast(builder.result_element()).reduce("sum", [2]).value]


@legalizes("Bucketize")
def legalize_bucketize(builder: Tf1Legalizer) -> Results:
    """How many boundaries, which are float, are not above each element."""
    x = TensorValue.of(builder, builder.operand("input"))
    wide = x if x.element == f64 else x.cast(f32)
    total = TensorValue.number(builder, 0, builder.result_element()).broadcast(x.dims)
    for boundary in builder.attrs.floats("boundaries"):
        limit = TensorValue.number(builder, boundary, f32).cast(wide.element)
        total = total + wide.ge(limit).cast(builder.result_element())
    return [total.value]
