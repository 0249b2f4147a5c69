"""Operators that read elements at places that a tensor names."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherNdOp, GatherOp
from lowerdeck.dialects.core.types import dims_of, f32, f64, i64, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.quantity import Quantity, stack
from lowerdeck.passes.legalize.selection import nonzero, reverse_sequence
from lowerdeck.passes.legalize.tf1.layout import axis_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("Gather")
def legalize_gather(lower: Tf1Legalizer) -> Results:
    """Along the first axis."""
    return [lower.add(GatherOp(lower.operand("params"), lower.operand("indices"), 0))]


@legalizes("GatherV2")
def legalize_gather_axis(lower: Tf1Legalizer) -> Results:
    """The first `batch_dims` dimensions are common to the operand and the indices."""
    x, indices = lower.operand("params"), lower.operand("indices")
    axis = axis_of(lower, "axis", rank_of(x))
    batch = lower.attrs.int("batch_dims")
    batch = batch + rank_of(indices) if batch < 0 else batch
    if not 0 <= batch <= min(axis, rank_of(indices)):
        lower.refuse(f"{batch} batch dimensions", f"0 to {min(axis, rank_of(indices))}")
    if batch == 0:
        return [lower.add(GatherOp(x, indices, axis))]
    return [_batched(lower, x, indices, axis, batch)]


def _batched(
    lower: Tf1Legalizer, x: SSAValue, indices: SSAValue, axis: int, batch: int
) -> SSAValue:
    """`axis` goes behind the batch; of the result, what was between them goes back there."""
    rank, count = rank_of(x), rank_of(indices) - batch
    between = [k for k in range(batch, rank) if k != axis]
    front = lower.transpose(x, [*range(batch), axis, *between])
    found = lower.add(GatherNdOp(front, lower.unsqueeze(indices, [rank_of(indices)]), batch))
    moved = axis - batch
    start = batch + count
    order = [
        *range(batch),
        *range(start, start + moved),
        *range(batch, start),
        *range(start + moved, rank_of(found)),
    ]
    return lower.transpose(found, order)


@legalizes("GatherNd")
def legalize_gather_nd(lower: Tf1Legalizer) -> Results:
    return [lower.add(GatherNdOp(lower.operand("params"), lower.operand("indices")))]


@legalizes("Where")
def legalize_where(lower: Tf1Legalizer) -> Results:
    """The coordinates of the elements that are not zero, one row each."""
    x = lower.operand("input")
    if rank_of(x) == 0:
        lower.refuse("a scalar", "a tensor with dimensions")
    return [lower.transpose(nonzero(lower, x), [1, 0])]


@legalizes("ListDiff")
def legalize_list_diff(lower: Tf1Legalizer) -> Results:
    """The elements of `x` that are not in `y`, and their places."""
    x = Quantity.of(lower, lower.operand("x"))
    y = Quantity.of(lower, lower.operand("y"))
    same = x.reshape([x.dims[0], 1]).eq(y.reshape([1, y.dims[0]]))
    is_new = same.cast(i64).reduce("sum", [1]).eq(0)
    places = lower.squeeze(nonzero(lower, is_new.value), [0])
    found = lower.add(GatherOp(x.value, places, 0))
    return [found, lower.cast(places, lower.result_element(1))]


_MOST_DIMENSIONS = 254
"""Of a tensor of TensorFlow."""


@legalizes("UnravelIndex")
def legalize_unravel_index(lower: Tf1Legalizer) -> Results:
    """The coordinates of places in C order: a vector, or a column for each place."""
    places = Quantity.of(lower, lower.operand("indices")).cast(i64)
    dims = Quantity.of(lower, lower.operand("dims")).cast(i64)
    rank = dims.dims[0].value
    if rank is None or not 0 < rank <= _MOST_DIMENSIONS:
        lower.refuse(f"{dims.dims[0]} dimensions", f"a known number, 1 to {_MOST_DIMENSIONS}")
    parts: list[Quantity] = []
    for k in reversed(range(rank)):
        dim = dims.pick(0, k)
        parts.insert(0, places % dim)
        places = places // dim
    return [stack(parts, 0).cast(lower.result_element()).value]


@legalizes("DynamicPartition")
def legalize_dynamic_partition(lower: Tf1Legalizer) -> Results:
    """Result k has the parts of `data` whose number is k, in their order."""
    data, numbers = lower.operand("data"), lower.operand("partitions")
    dims, shared = dims_of(data), rank_of(numbers)
    count = product(dims[:shared])
    rows = lower.reshape(data, [count, *dims[shared:]])
    flat = Quantity(lower, lower.reshape(numbers, [count]))
    parts: list[SSAValue] = []
    for k in range(lower.attrs.int("num_partitions")):
        places = lower.squeeze(nonzero(lower, flat.eq(k).value), [0])
        parts.append(lower.add(GatherOp(rows, places, 0)))
    return parts


@legalizes("ReverseSequence")
def legalize_reverse_sequence(lower: Tf1Legalizer) -> Results:
    """The first `seq_lengths[batch]` elements along the time axis in reverse."""
    x = lower.operand("input")
    lengths = Quantity.of(lower, lower.operand("seq_lengths")).cast(i64)
    batch = lower.axis(lower.attrs.int("batch_dim"), rank_of(x))
    time = lower.axis(lower.attrs.int("seq_dim"), rank_of(x))
    if {batch, time} == {0, 1}:
        return [reverse_sequence(lower, x, lengths, batch, time)]
    order = [batch, time, *(k for k in range(rank_of(x)) if k not in (batch, time))]
    found = reverse_sequence(lower, lower.transpose(x, order), lengths, 0, 1)
    return [lower.transpose(found, [order.index(k) for k in range(rank_of(x))])]


@legalizes("LowerBound", "UpperBound")
def legalize_bound(lower: Tf1Legalizer) -> Results:
    """In each row, how many of the sorted elements are less than (or equal to) each value."""
    table = Quantity.of(lower, lower.unsqueeze(lower.operand("sorted_inputs"), [1]))
    values = Quantity.of(lower, lower.unsqueeze(lower.operand("values"), [2]))
    below = table.lt(values) if lower.op_type == "LowerBound" else table.le(values)
    return [below.cast(lower.result_element()).reduce("sum", [2]).value]


@legalizes("Bucketize")
def legalize_bucketize(lower: Tf1Legalizer) -> Results:
    """How many boundaries, which are float, are not above each element."""
    x = Quantity.of(lower, lower.operand("input"))
    wide = x if x.element == f64 else x.cast(f32)
    total = Quantity.number(lower, 0, lower.result_element()).broadcast(x.dims)
    for boundary in lower.attrs.floats("boundaries"):
        limit = Quantity.number(lower, boundary, f32).cast(wide.element)
        total = total + wide.ge(limit).cast(lower.result_element())
    return [total.value]
