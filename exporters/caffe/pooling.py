"""Pools: their windows as Caffe places them, and what averages are divided by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.caffe.caffe_pb2 import PoolingParameter
from lowerdeck.dialects.caffe.shapes import ShapeError, pool_windows
from lowerdeck.dialects.core.enums import PoolKind
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.exporters.caffe.elementwise import scaled_by
from lowerdeck.exporters.caffe.linear import numbers
from lowerdeck.exporters.caffe.net import Blob, Net, converts
from lowerdeck.passes.legalize.legalizer import refuse


@converts(PoolOp)
def _pool(net: Net, op: PoolOp) -> Blob:
    """
    A plane is pooled at once, and each dimension before it by itself, in columns: the maximum of a
    window is that of its rows' maxima, and it has as many elements as the product of its sides.
    """
    x, shape = net.blob(op.input), net.shape(op.result)
    kernel = numbers(op.kernel, "a kernel")
    for size, dilation in zip(kernel, ints(op.dilations), strict=True):
        if size > 1 and dilation > 1:
            refuse(f"a pool with the dilation {dilation}", "1")
    if op.keeps_first.value.data:
        refuse("a pool that keeps a NaN at the beginning of a window", "one that passes over NaN")
    windows = _windows(net, op)
    items, channels = x.shape[:2]
    last = max(len(windows) - 2, 0)
    for axis in range(last, -1, -1):
        lanes = prod(each.count for each in windows[axis + 1 :])
        is_plane = axis == last and len(windows) > 1
        second = windows[axis + 1] if is_plane else _Windows(lanes, lanes)
        planes = _Planes(op, windows[axis], second)
        if len(windows) > 2 and planes.is_same:
            continue
        maps = channels * prod(each.size for each in windows[:axis])
        x = net.reshaped(x, [items, maps, *planes.sizes])
        x = planes.pooled(net, x, suffix="" if axis == last else "columns")
    return net.reshaped(x, shape)


@dataclass(frozen=True)
class _Windows:
    """The windows of a pool along one dimension; without more than sizes, each is an element."""

    size: int
    count: int
    kernel: int = 1
    stride: int = 1
    begin: int = 0
    end: int = 0
    overhang: int = 0


def _windows(net: Net, op: PoolOp) -> list[_Windows]:
    """Those of each spatial dimension."""
    begin = numbers(op.pads_begin, "padding")
    if min(begin) < 0:
        refuse(f"padding of {min(begin)}", "at least 0")
    lists = (
        net.shape(op.input)[2:],
        net.shape(op.result)[2:],
        numbers(op.kernel, "a kernel"),
        ints(op.strides),
        begin,
        numbers(op.pads_end, "padding"),
        numbers(op.overhang, "an overhang"),
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
        if is_max:
            return result
        factors = self._divisors(parameters, starts) / self._wanted_divisors()
        if (factors == 1).all():
            return result
        for axis in (0, 1):
            first = factors[:1] if axis == 0 else factors[:, :1]
            factors = first if (factors == first).all() else factors
        return scaled_by(net, result, factors.astype(np.float32))

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
