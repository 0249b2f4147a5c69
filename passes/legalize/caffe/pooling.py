"""Pools: how many windows there are, and what their parts outside of the blob count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import PoolingParameter
from lowerdeck.dialects.caffe.shapes import PoolWindows, pool_windows, pyramid_level
from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.types import dims_of, f32, rank_of
from lowerdeck.dialects.dims import exprs, product
from lowerdeck.passes.legalize.caffe.legalizer import LOWEST, CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.pooling import max_places, padded, pool
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("Pooling")
def legalize_pooling(builder: CaffeLegalizer) -> Results:
    """
    The maximum of each window with its place in the plane, or the average.

    The number of windows is rounded up (as a rule); the last one may end behind the padding, and
    is left out if it begins there. The search for a maximum begins with the lowest float, which is
    at no place. An average divides by what the window has of blob and padding, which an end behind
    the padding does not count in.
    """
    p = builder.layer.pooling_param
    if p.pool == PoolingParameter.STOCHASTIC:
        builder.refuse("stochastic pooling", "MAX or AVE, which are defined for tests")
    plane = _plane(builder)
    windows = pool_windows(p, *plane)
    result = _pooled(builder, p, windows, plane)
    if not builder.wants(1):
        return [result]
    window = _window(windows, plane)
    places = max_places(builder, builder.x, _places(builder), window, dims_of(result))
    is_found = TensorValue(builder, result).gt(LOWEST)
    return [result, is_found.where(TensorValue(builder, places).cast(f32), -1).value]


@legalizes("SPP")
def legalize_spp(builder: CaffeLegalizer) -> Results:
    """Pools of 1, 2, 4, ... windows a dimension, all of them in one row."""
    p, plane = builder.layer.spp_param, _plane(builder)
    levels: list[SSAValue] = []
    for level in range(p.pyramid_height):
        pooling = pyramid_level(p, level, *plane)
        levels.append(_pooled(builder, pooling, pool_windows(pooling, *plane), plane))
    if len(levels) == 1:
        return levels
    return [concat(builder, [builder.flatten(value, 1) for value in levels], 1)]


def _plane(builder: CaffeLegalizer) -> tuple[int, int]:
    """Height and width of the bottom."""
    if rank_of(builder.x) != 4:
        builder.refuse(f"a bottom of {rank_of(builder.x)} dimensions", "4")
    height, width = builder.shape[2:]
    if height.value is None or width.value is None:
        builder.refuse(f"a plane of {height} by {width}", "numbers", "give the shape of the input")
    return height.value, width.value


def _places(builder: CaffeLegalizer) -> SSAValue:
    """The position of each element in its plane."""
    dims = builder.shape
    line = builder.add(IotaOp([product(dims[2:])]))
    return builder.broadcast(builder.reshape(line, [1, 1, *dims[2:]]), dims)


def _pooled(
    builder: CaffeLegalizer,
    parameters: PoolingParameter,
    windows: PoolWindows,
    plane: tuple[int, int],
) -> SSAValue:
    window = _window(windows, plane)
    is_max = parameters.pool == PoolingParameter.MAX
    if not _has_window_outside(windows, plane):
        if is_max:
            return pool(builder, "max", builder.x, window, from_lowest=True)
        return pool(builder, "average", builder.x, window, count_pads=True)
    # The windows without elements need values of their own: they are padded by hand.
    zeros = list(exprs([0, 0]))
    dense = Window(window.kernel, window.strides, window.dilations, zeros, zeros, zeros)
    filled = padded(builder, builder.x, window, builder.scalar(LOWEST if is_max else 0, builder.x))
    if is_max:
        return pool(builder, "max", filled, dense, from_lowest=True)
    total = TensorValue(builder, pool(builder, "sum", filled, dense))
    return (total / TensorValue(builder, _areas(windows, plane))).value


def _window(windows: PoolWindows, plane: Sequence[int]) -> Window:
    """The windows with as much padding at the end as exactly they need."""
    ends: list[int] = []
    overhangs: list[int] = []
    lists = (plane, windows.kernel, windows.stride, windows.pad, windows.counts)
    for size, kernel, stride, pad, count in zip(*lists, strict=True):
        needed = (count - 1) * stride + kernel - size - pad
        # More than needed is fine, as long as no other window fits.
        ends.append(pad if needed <= pad < needed + stride else max(needed, 0))
        overhangs.append(max(needed - pad, 0))
    return Window(
        exprs(windows.kernel),
        list(windows.stride),
        [1, 1],
        list(exprs(windows.pad)),
        list(exprs(ends)),
        list(exprs(overhangs)),
    )


def _starts(windows: PoolWindows, axis: int) -> list[int]:
    stride, pad = windows.stride[axis], windows.pad[axis]
    return [index * stride - pad for index in range(windows.counts[axis])]


def _has_window_outside(windows: PoolWindows, plane: Sequence[int]) -> bool:
    """True if a window begins behind the blob: strides beyond the kernel, without padding."""
    return any(_starts(windows, axis)[-1] >= size for axis, size in enumerate(plane))


def _areas(windows: PoolWindows, plane: Sequence[int]) -> NDArray[np.float32]:
    """What Caffe divides a sum by: behind the blob it is zero or negative."""
    lengths: list[NDArray[np.float32]] = []
    for axis, size in enumerate(plane):
        end, kernel = size + windows.pad[axis], windows.kernel[axis]
        inside = [min(start + kernel, end) - start for start in _starts(windows, axis)]
        lengths.append(np.array(inside, np.float32))
    return lengths[0][:, None] * lengths[1]
