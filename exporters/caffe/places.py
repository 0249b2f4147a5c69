"""
Where the largest elements are, and the elements at places that are found at run time.

Places are whole numbers, which the blobs of Caffe hold as floats.
"""

from __future__ import annotations

from math import inf, prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import PoolingParameter
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.enums import ExtremumKind
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import GatherOp, SliceOp, TopKOp
from lowerdeck.dialects.core.types import element_type, f32, i64, static_shape
from lowerdeck.exporters.caffe.elements import MOST_PLACES
from lowerdeck.exporters.caffe.movement import MOST_PARTS, picked, transposed
from lowerdeck.exporters.caffe.net import Blob, Net, converts, recognizes
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.machinery.driver import producer
from lowerdeck.passes.machinery.values import number, uniform_value


@recognizes(e.CastOp)
def _same_numbers(net: Net, op: e.CastOp) -> Blob | None:
    """What a blob holds as floats, as floats or as other integers"""
    is_held = op.input in net.floats and (op.to == f32 or op.result in net.floats)
    return net.blob(op.input) if is_held else None


# The largest one


@recognizes(ArgReduceOp)
def _arg_reduce(net: Net, op: ArgReduceOp) -> Blob:
    """The place of the largest or smallest element"""
    kind, axis = op.kind.data, op.axis.data
    _require_told_apart(net, op.input, axis)
    x = net.blob(_without_nan(op))
    if kind == ExtremumKind.MIN:
        x = net.scaled(x, -1, suffix="negative")
    if op.last_index.value.data:
        place = net.layer("ArgMax", [x], axis=axis)
    else:
        place = _first_place(net, x, axis)
    return net.reshaped(place, net.shape(op.result))


def _first_place(net: Net, x: Blob, axis: int) -> Blob:
    """
    Of equal elements ArgMax takes the last one, but Pooling the first.

    That is the second top of a Pooling, if nothing but ones is behind the axis: its places are
    those in a plane. A window without anything above the lowest float has the place -1 there, but 0
    here. Otherwise it is the last place of the elements in reverse.
    """
    size, behind = x.shape[axis], prod(x.shape[axis + 1 :])
    if behind != 1 and size <= MOST_PARTS:
        x = picked(net, x, axis, range(size)[::-1])
        place = net.layer("ArgMax", [x], axis=axis)
        return net.scaled(place, -1, size - 1, suffix="place")
    if behind != 1:
        x = transposed(net, x, [*range(axis), *range(axis + 1, x.rank), axis])
    columns = net.reshaped(x, [prod(x.shape) // size, 1, size, 1])
    places = net.layers(
        "Pooling",
        [columns],
        tops=2,
        suffix="max",
        global_pooling=True,
        pool=PoolingParameter.MAX,
    )[1]
    return net.layer("ReLU", [places])


def _without_nan(op: ArgReduceOp) -> SSAValue:
    """What is looked through: x, if NaN in it is replaced by what never wins."""
    never = -inf if op.kind.data == ExtremumKind.MAX else inf
    select = producer(op.input, e.SelectOp)
    compare = None if select is None else producer(select.condition, e.CompareOp)
    if select is None or compare is None or uniform_value(select.on_false) != never:
        return op.input
    x = select.on_true
    is_number = compare.lhs is x and compare.rhs is x and compare.predicate.data == "eq"
    return x if is_number and x.type == op.input.type else op.input


def _require_told_apart(net: Net, value: SSAValue, axis: int) -> None:
    """Refuse an axis with more places than f32 tells apart, or none."""
    size = net.shape(value)[axis]
    if not 0 < size <= MOST_PLACES:
        refuse(f"places among {size} elements", f"1 to {MOST_PLACES}, which floats tell apart")


# The largest ones


@recognizes(TopKOp)
def _largest(net: Net, op: TopKOp) -> list[Blob] | None:
    """The largest elements along an axis; equal ones are equal in any order"""
    if not op.largest.value.data:
        return None
    axis, backward = op.axis.data, _reversed(op.input, op.axis.data)
    found: list[Blob] = []
    if op.values in net.needed:
        x = net.blob(op.input if backward is None else backward)
        found.append(net.layer("ArgMax", [x], axis=axis, out_max_val=True, top_k=_count(op)))
    if op.indices in net.needed:
        _require_told_apart(net, op.input, axis)
        x = net.blob(op.input)
        size = x.shape[axis]
        # Of equal elements Caffe takes the last one first.
        x = picked(net, x, axis, range(size)[::-1])
        places = net.layer("ArgMax", [x], axis=axis, top_k=_count(op), suffix="places")
        found.append(net.scaled(places, -1, size - 1, suffix="place"))
    return [found[0], found[-1]]


def _count(op: TopKOp) -> int | None:
    """The number of elements, unless it is that of ArgMax without one."""
    count = op.k.data[0].value
    if count is None:
        refuse(f"the {op.k.data[0]} largest elements", "a number of them")
    return None if count == 1 else count


def _reversed(value: SSAValue, axis: int) -> SSAValue | None:
    """What a value is, read from the end of an axis; None if it is not."""
    part = producer(value, SliceOp)
    if part is None:
        return None
    shape, whole = static_shape(part.result), static_shape(part.input)
    starts, steps = ([expr.value for expr in dims.data] for dims in (part.starts, part.steps))
    if shape is None or shape != whole:
        return None
    backward = [-1 if each == axis else 1 for each in range(len(shape))]
    last = [shape[axis] - 1 if each == axis else 0 for each in range(len(shape))]
    return part.input if (starts, steps) == (last, backward) else None


@recognizes(e.CastOp)
def _places_from_the_end(net: Net, op: e.CastOp) -> Blob | None:
    """How far from the end the largest elements are that are looked for from there"""
    difference = producer(op.input, e.SubOp)
    found = None if difference is None else producer(difference.rhs, TopKOp)
    if op.to != f32 or difference is None or found is None or not found.largest.value.data:
        return None
    axis = found.axis.data
    backward = _reversed(found.input, axis)
    last = net.shape(found.input)[axis] - 1
    is_distance = difference.rhs is found.indices and number(difference.lhs) == last
    if backward is None or not is_distance:
        return None
    return net.layer("ArgMax", [net.blob(backward)], axis=axis, top_k=_count(found))


# Elements at places


@recognizes(GatherOp)
def _rows(net: Net, op: GatherOp) -> Blob | None:
    """Rows at places that are floats."""
    index = _index(net, op)
    if index is None or op.axis.data:
        return None
    shape = net.shape(op.result)
    if net.array(op.input) is None:
        x = net.blob(op.input)
        return net.layer("BatchReindex", [x, index]) if index.rank == 1 else None
    table = net.weight(op.input, "a table")
    rows, width = table.shape[0], prod(table.shape[1:])
    found = net.layer(
        "Embed",
        [index],
        [table.reshaped([rows, width])],
        input_dim=rows,
        num_output=width,
        bias_term=False,
    )
    return net.reshaped(found, shape)


@converts(GatherOp)
def _elsewhere(net: Net, op: GatherOp) -> Blob:
    refuse(
        f"places along dimension {op.axis.data} that depend on data",
        "places of rows along dimension 0, in one dimension if the rows depend on data, too",
    )


def _index(net: Net, op: GatherOp) -> Blob | None:
    """The places as floats, counted from the front; None if no blob holds them."""
    cast = producer(op.indices, e.CastOp)
    if cast is not None and cast.to == i64 and element_type(cast.input) == f32:
        return net.blob(cast.input)
    if op.indices not in net.floats or net.array(op.indices) is not None:
        return None
    index, count = net.blob(op.indices), net.shape(op.input)[op.axis.data]
    if op.inside is not None or net.floats[op.indices].low >= 0:
        return index
    # From the end if it is negative: index + count - count * (1 if it is not).
    is_there = net.layer("Threshold", [index], suffix="front", threshold=-0.5)
    moved = net.layer("Eltwise", [index, is_there], suffix="index", coeff=[1, -count])
    return net.scaled(moved, 1, count, suffix="count")
