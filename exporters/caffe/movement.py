"""Moving elements: shapes, parts, padding and order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod

import numpy as np

from lowerdeck.dialects.core import tensor
from lowerdeck.dialects.core.enums import PadMode
from lowerdeck.dialects.dims import Expr
from lowerdeck.exporters.caffe.net import Blob, Fields, Net, Weight, converts, recognizes
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.machinery.driver import producer
from lowerdeck.passes.machinery.values import number

MOST_PARTS = 64
"""Into how many parts a blob is sliced to bring them into another order."""


@converts(tensor.ReshapeOp)
def _reshape(net: Net, op: tensor.ReshapeOp) -> Blob:
    return net.reshaped(net.blob(op.input), net.shape(op.result), suffix="")


@converts(tensor.BroadcastOp)
def _broadcast(net: Net, op: tensor.BroadcastOp) -> Blob:
    return net.tiled(net.blob(op.input), net.shape(op.result))


@converts(tensor.ConcatOp)
def _concat(net: Net, op: tensor.ConcatOp) -> Blob:
    return _joined(net, [net.blob(value) for value in op.inputs], op.axis.data, "")


def _joined(net: Net, parts: Sequence[Blob], axis: int, suffix: str = "concat") -> Blob:
    return net.layer("Concat", parts, suffix=suffix, axis=None if axis == 1 else axis)


@converts(tensor.SplitOp)
def _split(net: Net, op: tensor.SplitOp) -> Sequence[Blob]:
    axis = op.axis.data
    sizes = [net.shape(result)[axis] for result in op.results]
    if 0 in sizes:
        refuse(f"parts of {sizes} elements", "at least one in each")
    points = list(accumulate(sizes))[:-1]
    return net.layers(
        "Slice",
        [net.blob(op.input)],
        tops=len(sizes),
        axis=None if axis == 1 else axis,
        slice_point=points,
    )


@converts(tensor.SliceOp)
def _slice(net: Net, op: tensor.SliceOp) -> Blob:
    x, shape = net.blob(op.input), net.shape(op.result)
    for axis, (start, size, step) in enumerate(
        zip(op.starts.data, shape, op.steps.data, strict=True)
    ):
        if start.value is None or step.value is None:
            refuse(f"a slice from {start} by {step}", "numbers", "give the shapes")
        if step.value == 1 or size == 1:
            x = net.cut(x, axis, start.value, size)
        else:
            x = strided(net, x, axis, start.value, size, step.value)
    return x


def strided(net: Net, x: Blob, axis: int, start: int, size: int, step: int) -> Blob:
    """Every so-many-th element: pools of windows of one element, or the parts in another order."""
    if step > 1:
        x = net.cut(x, axis, start, min((size - 1) * step + 1, x.shape[axis] - start))
        before, after = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
        rows = net.reshaped(x, [before, 1, x.shape[axis], after])
        fields: Fields = {"kernel_size": 1, "stride_h": step, "stride_w": 1}
        pooled = net.layer("Pooling", [rows], suffix="stride", pool=1, **fields)
        return net.reshaped(pooled, [*x.shape[:axis], size, *x.shape[axis + 1 :]])
    order = [start + step * k for k in range(size)]
    return picked(net, x, axis, order)


def picked(net: Net, x: Blob, axis: int, order: Sequence[int], suffix: str = "concat") -> Blob:
    """
    Elements along an axis in another order, each any number of times: the runs of neighbors among
    them, each of a few parts of a Slice, joined by a Concat; refused if there are many parts.
    """
    if not order:
        refuse("a part of no elements", "at least one")
    whole, runs = range(x.shape[axis]), _runs(order)
    joined: list[int | None] = []
    points: list[int] = []
    if (count := len(runs)) <= MOST_PARTS:
        ends = {end for run in runs for end in (run.start, run.stop) if run != whole}
        points = sorted(ends.difference((whole.start, whole.stop)))
        for run in runs:
            inside = [k for k, start in enumerate((0, *points)) if start in run]
            joined += [None] if run == whole else inside
        count = len(joined)
    if count > MOST_PARTS:
        refuse(
            f"a new order of {count} parts",
            f"at most {MOST_PARTS}, which a Slice and a Concat bring into it",
        )
    slices = _sliced(net, x, axis, points) if points else [x]
    parts = [x if k is None else slices[k] for k in joined]
    return parts[0] if len(parts) == 1 else _joined(net, parts, axis, suffix)


def _runs(order: Sequence[int]) -> list[range]:
    """An order as ranges of places that follow each other."""
    places = np.array(order)
    ends = np.flatnonzero(np.diff(places) != 1) + 1
    return [range(int(run[0]), int(run[-1]) + 1) for run in np.split(places, ends)]


def _sliced(net: Net, x: Blob, axis: int, points: Sequence[int]) -> list[Blob]:
    """The parts of a blob between places along an axis."""
    return net.layers(
        "Slice", [x], tops=len(points) + 1, suffix="slice", axis=axis, slice_point=list(points)
    )


# Order of dimensions


@converts(tensor.TransposeOp)
def _transpose(net: Net, op: tensor.TransposeOp) -> Blob:
    return transposed(net, net.blob(op.input), tensor.ints(op.permutation))


def transposed(net: Net, x: Blob, order: Sequence[int]) -> Blob:
    """
    The dimensions in another order: by a Permute; without it by slices along one dimension, or a
    run of them, that moves to another place.
    """
    shape = [x.shape[axis] for axis in order]
    moved = [axis for axis in order if x.shape[axis] != 1]
    if moved == sorted(moved):
        return net.reshaped(x, shape)
    runs = _swapped(moved)
    if net.has("Permute") or runs is None:
        return net.layer("Permute", [x], order=list(order))
    run = min(runs, key=lambda axes: prod(x.shape[axis] for axis in axes))
    count = prod(x.shape[axis] for axis in run)
    if count > MOST_PARTS:
        return net.layer("Permute", [x], order=list(order))
    # The run as one dimension, before and after.
    first, place = min(run), min(order.index(axis) for axis in run)
    behind = x.shape[max(run) + 1 :]
    whole = net.reshaped(x, [*x.shape[:first], count, *behind])
    parts = _sliced(net, whole, first, range(1, count))
    last = max(order.index(axis) for axis in run)
    part = [*shape[:place], 1, *shape[last + 1 :]]
    columns = [net.reshaped(each, part) for each in parts]
    return net.reshaped(_joined(net, columns, place), shape)


def _swapped(order: Sequence[int]) -> list[list[int]] | None:
    """
    The two runs of neighboring axes that an order swaps, if that is all it does: each of the other
    axes stays where it is.
    """
    axes = sorted(order)
    kept = 0
    while axes[kept] == order[kept]:
        kept += 1
    end = len(axes)
    while axes[end - 1] == order[end - 1]:
        end -= 1
    inner = list(order[kept:end])
    cut = inner.index(axes[kept])
    if [*inner[cut:], *inner[:cut]] != axes[kept:end]:
        return None
    return [inner[:cut], inner[cut:]]


@converts(tensor.ChannelShuffleOp)
def _channel_shuffle(net: Net, op: tensor.ChannelShuffleOp) -> Blob:
    x, groups = net.blob(op.input), op.groups.data
    apart = net.reshaped(x, [x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]])
    dealt = transposed(net, apart, [0, 2, 1, *range(3, apart.rank)])
    return net.reshaped(dealt, x.shape)


# Padding


@converts(tensor.PadOp)
def _pad(net: Net, op: tensor.PadOp) -> Blob:
    if op.mode.data != PadMode.CONSTANT:
        return _with_own_around(net, op)
    value = 0.0 if op.value is None else number(op.value)
    begin, end = ([dim.value for dim in dims.data] for dims in (op.begin, op.end))
    if value is None or None in begin or None in end:
        refuse("padding that depends on data or symbols", "finite numbers")
    return padded(net, net.blob(op.input), [b or 0 for b in begin], [e or 0 for e in end], value)


def padded(net: Net, x: Blob, begin: Sequence[int], end: Sequence[int], value: float) -> Blob:
    """
    A blob with a number around it; a negative padding cuts it.

    Zeros around planes come from a convolution with one weight a channel, which is 1, and whatever
    is left from blobs of the number.
    """
    for axis, (low, high) in enumerate(zip(begin, end, strict=True)):
        if low < 0 or high < 0:
            size = x.shape[axis] + min(low, 0) + min(high, 0)
            x = net.cut(x, axis, max(-low, 0), size)
    if x.rank == 4 and value == 0 and not any((*begin[:2], *end[:2])):
        return _with_zeros_around(net, x, begin[2:], end[2:])
    for axis, (low, high) in enumerate(zip(begin, end, strict=True)):
        sides = [max(low, 0), max(high, 0)]
        parts = [
            net.filled([*x.shape[:axis], size, *x.shape[axis + 1 :]], value) if size else None
            for size in sides
        ]
        joined = [part for part in (parts[0], x, parts[1]) if part is not None]
        if len(joined) > 1:
            x = _joined(net, joined, axis, "pad")
    return x


def _with_own_around(net: Net, op: tensor.PadOp) -> Blob:
    """A blob with elements of its own around it, as a mode other than constant chooses them."""
    x = net.blob(op.input)
    for axis, size in enumerate(net.shape(op.result)):
        if size == x.shape[axis]:
            continue
        if x.shape[axis] == 0:
            refuse(f"padding of no elements by mode {op.mode.data.value}", "at least one element")
        at = [Expr.const(0)] * x.rank
        order: list[int] = []
        for place in range(size):
            at[axis] = Expr.const(place)
            found = op.operand_index(0, at)[axis].value
            if found is None:
                refuse("padding that depends on symbols", "numbers")
            order.append(found)
        x = picked(net, x, axis, order, "pad")
    return x


def _with_zeros_around(net: Net, x: Blob, begin: Sequence[int], end: Sequence[int]) -> Blob:
    pads = [max(low, high, 0) for low, high in zip(begin, end, strict=True)]
    if not any(pads):
        return x
    channels = x.shape[1]
    fields: Fields = (
        {"pad": [pads[0]]} if pads[0] == pads[1] else {"pad_h": pads[0], "pad_w": pads[1]}
    )
    wide = net.layer(
        "Convolution",
        [x],
        [Weight.of(np.ones((channels, 1, 1, 1), np.float32))],
        suffix="pad",
        num_output=channels,
        bias_term=False,
        group=None if channels == 1 else channels,
        kernel_size=[1],
        **fields,
    )
    for axis, (low, high, pad) in enumerate(zip(begin, end, pads, strict=True), 2):
        size = x.shape[axis] + max(low, 0) + max(high, 0)
        wide = net.cut(wide, axis, pad - max(low, 0), size)
    return wide


# Elements at constant places


@recognizes(tensor.GatherOp)
def _enlarged(net: Net, op: tensor.GatherOp) -> Blob | None:
    """Planes whose elements are repeated in both dimensions: nearest neighbors"""
    inner = producer(op.input, tensor.GatherOp)
    if inner is None or not inner.result.has_one_use():
        return None
    shape = net.shape(inner.input)
    times: list[int] = []
    for each in (inner, op):
        places = net.array(each.indices)
        size = shape[each.axis.data]
        if places is None or places.ndim != 1 or places.size % size:
            return None
        times.append(places.size // size)
        if not np.array_equal(places, np.arange(size).repeat(times[-1])):
            return None
    if len(shape) != 4 or (inner.axis.data, op.axis.data) != (2, 3):
        return None
    return enlarged(net, net.blob(inner.input), times)


@recognizes(tensor.GatherOp)
def _gather(net: Net, op: tensor.GatherOp) -> Blob | None:
    """Elements at constant places along an axis: each several times, or in any order"""
    places = net.array(op.indices)
    if places is None or net.array(op.input) is not None or places.size == 0:
        return None
    x, axis, shape = net.blob(op.input), op.axis.data, net.shape(op.result)
    size = x.shape[axis]
    if places.min() < -size or places.max() >= size:
        refuse(f"an index outside of {size} elements", "indices inside, for this one is an error")
    order = [int(place) % size for place in places.reshape(-1)]
    times = len(order) // size
    if times > 0 and order == [k // times for k in range(size * times)]:
        return net.reshaped(repeated(net, x, axis, times), shape)
    return net.reshaped(picked(net, x, axis, order), shape)


def repeated(net: Net, x: Blob, axis: int, times: int) -> Blob:
    """Each element along an axis several times in a row."""
    if x.rank == 4 and axis in (2, 3):
        return enlarged(net, x, [times if axis == each else 1 for each in (2, 3)])
    column = net.reshaped(x, [*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]])
    wide = [*x.shape[: axis + 1], times, *x.shape[axis + 1 :]]
    result = [*x.shape[:axis], x.shape[axis] * times, *x.shape[axis + 1 :]]
    return net.reshaped(net.tiled(column, wide), result)


def enlarged(net: Net, x: Blob, times: Sequence[int]) -> Blob:
    """Planes whose elements are repeated: each is spread by a kernel of ones."""
    channels = x.shape[1]
    fields: Fields = {"kernel_h": times[0], "kernel_w": times[1]}
    fields |= {"stride_h": times[0], "stride_w": times[1]}
    if times[0] == times[1]:
        fields = {"kernel_size": times[:1], "stride": times[:1]}
    return net.layer(
        "Deconvolution",
        [x],
        [Weight.of(np.ones((channels, 1, *times), np.float32))],
        suffix="repeat",
        num_output=channels,
        bias_term=False,
        group=None if channels == 1 else channels,
        **fields,
    )
