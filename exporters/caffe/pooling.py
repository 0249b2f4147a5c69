"""Pools: their windows as Caffe places them, and what averages are divided by."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.caffe.caffe_pb2 import EltwiseParameter, PoolingParameter
from lowerdeck.dialects.caffe.shapes import ShapeError, pool_windows
from lowerdeck.dialects.core.enums import PoolKind
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.records import record
from lowerdeck.exporters.caffe.elementwise import scaled_by
from lowerdeck.exporters.caffe.linear import numbers
from lowerdeck.exporters.caffe.movement import MOST_PARTS, padded, picked, strided
from lowerdeck.exporters.caffe.net import Blob, Net, converts
from lowerdeck.passes.legalize.legalizer import refuse


@converts(PoolOp)
def _pool(net: Net, op: PoolOp) -> Blob:
    """
    A plane is pooled at once, and each dimension before it by itself, in columns, as is one with a
    dilation: the maximum of a window is that of its rows' maxima, and it has as many elements as
    the product of its sides.
    """
    x, shape = net.blob(op.input), net.shape(op.result)
    windows = _windows(net, op)
    if op.keeps_first.value.data:
        return _largest_of_taps(net, x, windows)
    items, channels = x.shape[:2]
    is_dilated = any(each.dilation > 1 for each in windows)
    for axis, each in enumerate(windows):
        if each.dilation > 1:
            maps = channels * prod(each.size for each in windows[:axis])
            lanes = prod(each.size for each in windows[axis + 1 :])
            x = net.reshaped(x, [items, maps, each.size, lanes])
            x = _pooled_by_phases(net, op, x, each)
            windows[axis] = _Windows(each.count, each.count)
    last = max(len(windows) - 2, 0)
    for axis in range(last, -1, -1):
        lanes = prod(each.count for each in windows[axis + 1 :])
        is_plane = axis == last and len(windows) > 1
        second = windows[axis + 1] if is_plane else _Windows(lanes, lanes)
        planes = _Planes(op, windows[axis], second)
        if planes.is_same and (len(windows) > 2 or is_dilated):
            continue
        maps = channels * prod(each.size for each in windows[:axis])
        x = net.reshaped(x, [items, maps, *planes.sizes])
        x = planes.pooled(net, x, suffix="" if axis == last else "columns")
    return net.reshaped(x, shape)


@record
class _Windows:
    """The windows of a pool along one dimension; without more than sizes, each is an element."""

    size: int
    count: int
    kernel: int = 1
    stride: int = 1
    begin: int = 0
    end: int = 0
    overhang: int = 0
    dilation: int = 1
    """1 if a window has one element."""

    def require_elements(self) -> None:
        """Refuse a window without any."""
        if not all(self.lengths(0, 0)):
            refuse("a window that holds nothing but padding", "an element in each window")

    def lengths(self, before: int, behind: int) -> list[int]:
        """How many elements of each window are in the dimension and so much padding."""
        return [
            sum(-before <= place < self.size + behind for place in self._places(k))
            for k in range(self.count)
        ]

    def _places(self, k: int) -> range:
        start = k * self.stride - self.begin
        return range(start, start + self.kernel * self.dilation, self.dilation)


def _windows(net: Net, op: PoolOp) -> list[_Windows]:
    """Those of each spatial dimension."""
    begin = numbers(op.pads_begin, "padding")
    if min(begin) < 0:
        refuse(f"padding of {min(begin)}", "at least 0")
    kernel = numbers(op.kernel, "a kernel")
    dilations = [
        dilation if size > 1 else 1
        for size, dilation in zip(kernel, ints(op.dilations), strict=True)
    ]
    lists = (
        net.shape(op.input)[2:],
        net.shape(op.result)[2:],
        kernel,
        ints(op.strides),
        begin,
        numbers(op.pads_end, "padding"),
        numbers(op.overhang, "an overhang"),
        dilations,
    )
    return [_Windows(*each) for each in zip(*lists, strict=True)]


class _Planes:
    """The windows of a pool over planes."""

    def __init__(self, op: PoolOp, *windows: _Windows) -> None:
        self.kind = op.kind.data
        self.is_same = all(each == _Windows(each.size, each.size) for each in windows)
        """Each window is an element."""
        self.sizes = [each.size for each in windows]
        self.counts = [each.count for each in windows]
        self.kernel = [each.kernel for each in windows]
        self.strides = [each.stride for each in windows]
        self.begin = [each.begin for each in windows]
        self.end = [each.end for each in windows]
        self.counted = [0, 0]
        """How much padding on either side an average counts in."""
        self.counted_end = [0, 0]
        if op.count_pads.value.data:
            self.counted = self.begin
            self.counted_end = [each.end - each.overhang for each in windows]

    def pooled(self, net: Net, x: Blob, suffix: str) -> Blob:
        """The pools of planes."""
        result, divisors = self.undivided(net, x, suffix)
        if self.kind == PoolKind.MAX:
            return result
        return _times(net, result, divisors / self._wanted_divisors())

    def undivided(self, net: Net, x: Blob, suffix: str) -> tuple[Blob, NDArray[np.float64]]:
        """The pools of planes, as Caffe divides averages, and by what."""
        is_max = self.kind == PoolKind.MAX
        parameters, starts = self._parameters()
        result = net.layer(
            "Pooling",
            [x],
            suffix=suffix,
            **{field.name: value for field, value in parameters.ListFields()},
            pool=PoolingParameter.MAX if is_max else PoolingParameter.AVE,
        )
        for axis, (start, count) in enumerate(zip(starts, self.counts, strict=True), 2):
            result = net.cut(result, axis, start, count)
        return result, self._divisors(parameters, starts)

    def _parameters(self) -> tuple[PoolingParameter, list[int]]:
        """The fields of the windows, and how many windows each dimension has before the wanted."""
        is_whole = self.kernel == self.sizes and not any((*self.begin, *self.end))
        if is_whole and self.counts == [1, 1]:
            return PoolingParameter(global_pooling=True), [0, 0]
        for axis in (0, 1):
            for start in self._starts(axis):
                first, last = max(start, 0), min(start + self.kernel[axis], self.sizes[axis])
                if first >= last:
                    refuse("a window that holds nothing but padding", "an element in each window")
        fronts = [0, 0]
        while True:
            pads = [
                begin + front * stride
                for begin, front, stride in zip(self.begin, fronts, self.strides, strict=True)
            ]
            if any(pad >= size for pad, size in zip(pads, self.kernel, strict=True)):
                refuse(
                    f"windows {self.kernel} by {self.strides} with the padding {self.begin} "
                    f"and {self.end}",
                    "windows that Caffe has, whose padding is the same on both sides and smaller "
                    "than they are",
                )
            parameters = self._fields(pads)
            room = [
                size + 2 * pad - kernel
                for size, pad, kernel in zip(self.sizes, pads, self.kernel, strict=True)
            ]
            short = [axis for axis in (0, 1) if room[axis] < 0]
            if not short:
                counts = self._counts(parameters)
                wanted = [front + n for front, n in zip(fronts, self.counts, strict=True)]
                short = [axis for axis in (0, 1) if counts[axis] < wanted[axis]]
            if not short:
                return parameters, fronts
            for axis in short:
                fronts[axis] += 1

    def _counts(self, parameters: PoolingParameter) -> tuple[int, int]:
        """How many windows Caffe has."""
        try:
            return pool_windows(parameters, self.sizes[0], self.sizes[1]).counts
        except ShapeError as error:
            refuse(f"what Pooling does not take: {error}")

    def _fields(self, pads: Sequence[int]) -> PoolingParameter:
        p = PoolingParameter()
        for name, plain, default, values in (
            ("kernel", "kernel_size", None, self.kernel),
            ("stride", "stride", 1, self.strides),
            ("pad", "pad", 0, pads),
        ):
            if values[0] != values[1]:
                setattr(p, f"{name}_h", values[0])
                setattr(p, f"{name}_w", values[1])
            elif values[0] != default:
                setattr(p, plain, values[0])
        return p

    def _starts(self, axis: int) -> list[int]:
        """Where the wanted windows begin."""
        return [k * self.strides[axis] - self.begin[axis] for k in range(self.counts[axis])]

    def _wanted_divisors(self) -> NDArray[np.float64]:
        if self.kind == PoolKind.SUM:
            return np.ones(self.counts)
        return _areas(
            [self._lengths(axis, self.counted[axis], self.counted_end[axis]) for axis in (0, 1)]
        )

    def _divisors(self, parameters: PoolingParameter, fronts: Sequence[int]) -> NDArray[np.float64]:
        """What Caffe divides by: the parts of windows in the blob and the padding at both ends."""
        if parameters.global_pooling:
            return np.full((1, 1), float(np.prod(self.sizes)))
        pads = [
            begin + front * stride
            for begin, front, stride in zip(self.begin, fronts, self.strides, strict=True)
        ]
        return _areas([self._lengths(axis, pads[axis], pads[axis]) for axis in (0, 1)])

    def _lengths(self, axis: int, before: int, behind: int) -> list[int]:
        """How much of each window is in a dimension and so much padding."""
        size, kernel = self.sizes[axis], self.kernel[axis]
        return [
            min(start + kernel, size + behind) - max(start, -before) for start in self._starts(axis)
        ]


def _areas(lengths: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    return np.outer(np.array(lengths[0], np.float64), np.array(lengths[1], np.float64))


def _times(net: Net, x: Blob, factors: NDArray[np.float64]) -> Blob:
    """What is left of planes, each element times its factor."""
    if (factors == 1).all():
        return x
    for axis in (0, 1):
        first = factors[:1] if axis == 0 else factors[:, :1]
        factors = first if (factors == first).all() else factors
    return scaled_by(net, x, factors.astype(np.float32))


# Dilations


def _pooled_by_phases(net: Net, op: PoolOp, x: Blob, w: _Windows) -> Blob:
    """
    A pool of columns whose windows have a dilation.

    Every dilation-th element of a column is a row of a blob of shape [column / dilation, dilation],
    where the windows have none. What makes its sides whole, and the padding that is no multiple of
    the dilation, is filled with what changes no window; of windows with a stride, each is
    computed, and every so-many-th one kept.
    """
    w.require_elements()
    is_max, dilation = op.kind.data == PoolKind.MAX, w.dilation
    front = w.begin % dilation
    tail = -(w.size + front) % dilation
    fill = float(np.finfo(np.float32).min) if is_max else 0.0
    x = padded(net, x, [0, 0, front, 0], [0, 0, tail, 0], fill)
    items, maps, height, lanes = x.shape
    span = (w.count - 1) * w.stride + 1
    count, size, pad = -(-span // dilation), height // dilation, w.begin // dilation
    end = max(count - 1 + w.kernel - pad - size, 0)
    rows = _Windows(size, count, w.kernel, 1, pad, end)
    wide = dilation * lanes
    x = net.reshaped(x, [items, maps, size, wide])
    planes = _Planes(op, rows, _Windows(wide, wide))
    x, divisors = planes.undivided(net, x, "")
    x = net.cut(net.reshaped(x, [items, maps, count * dilation, lanes]), 2, 0, span)
    if w.stride > 1:
        x = strided(net, x, 2, 0, w.count, w.stride)
    if is_max:
        return x
    found = divisors[:, 0].repeat(dilation)[: span : w.stride]
    wanted = np.ones(w.count)
    if op.kind.data != PoolKind.SUM:
        is_counted = op.count_pads.value.data
        lengths = w.lengths(w.begin, w.end - w.overhang) if is_counted else w.lengths(0, 0)
        wanted = np.array(lengths, np.float64)
    return _times(net, x, (found / wanted)[:, None])


# A NaN at the beginning of a window


def _largest_of_taps(net: Net, x: Blob, windows: Sequence[_Windows]) -> Blob:
    """
    The maximum of windows, which is NaN if the first element is: an Eltwise of the first elements
    of all windows, the second ones, and so on.

    Eltwise has the first bottom where it is larger than the second one, and else this one, which
    is why they are swapped; of the others, each that is larger than what it has. The padding is
    filled with the first or last element of the windows there, which changes no maximum.
    """
    if (count := prod(each.kernel for each in windows)) > MOST_PARTS:
        refuse(f"a pool that keeps a NaN first of {count} elements", f"at most {MOST_PARTS}")
    taps = [x]
    for axis, w in enumerate(windows, 2):
        w.require_elements()
        taps = [part for tap in taps for part in _taps(net, tap, axis, w)]
    if len(taps) == 1:
        return taps[0]
    taps[:2] = taps[1], taps[0]
    return net.layer("Eltwise", taps, operation=EltwiseParameter.MAX)


def _taps(net: Net, x: Blob, axis: int, w: _Windows) -> list[Blob]:
    """The first elements of all windows along an axis, the second ones, and so on."""
    last = w.size - 1
    reach = (w.count - 1) * w.stride + (w.kernel - 1) * w.dilation + 1
    order = [
        place % w.dilation
        if place < 0
        else last - (last - place) % w.dilation
        if place > last
        else place
        for place in range(-w.begin, reach - w.begin)
    ]
    x = picked(net, x, axis, order, "pad")
    starts = [tap * w.dilation for tap in range(w.kernel)]
    if w.stride == 1:
        return [net.cut(x, axis, start, w.count) for start in starts]
    return [strided(net, x, axis, start, w.count, w.stride) for start in starts]
