"""The elements of each window, and along dimensions, combined by an operator of two elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.movement import pad
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue

Combine: TypeAlias = "Callable[[TensorValue, TensorValue], TensorValue]"

COMBINE: Mapping[str, Combine] = {
    "sum": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    # As the kernels have it: what is compared with NaN takes its place.
    "max": lambda a, b: a.ge(b).where(a, b),
    "min": lambda a, b: a.le(b).where(a, b),
    "all": lambda a, b: a & b,
    "any": lambda a, b: a | b,
}

_MOST_TAPS = 64
"""Elements of a window that are taken one by one; those of larger ones become a dimension."""


def reduced(x: TensorValue, kind: str, axes: Sequence[int]) -> TensorValue:
    """All elements along axes combined."""
    name = {"any": "max", "all": "min"}.get(kind, kind)
    return x.reduce(name, list(axes)) if axes else x


def combined_windows(
    builder: Legalizer,
    x: SSAValue,
    first: SSAValue,
    kind: str,
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> SSAValue:
    """The elements of each window of `x` combined with a first one."""
    lists = (sizes, strides, dilations)
    if any(len(found) != rank_of(x) or min(found, default=1) < 1 for found in lists):
        builder.refuse(f"windows {[*map(list, lists)]}", f"{rank_of(x)} positive numbers each")
    counts: list[Expr] = []
    for dim, size, stride, dilation in zip(dims_of(x), sizes, strides, dilations, strict=True):
        count = (dim - ((size - 1) * dilation + 1)) // stride + 1
        counts.append(Expr.const(max(count.value, 0)) if count.value is not None else count)
    total = TensorValue(builder, builder.broadcast(first, counts))
    if math.prod(sizes) > _MOST_TAPS:
        whole = _unfolded(builder, x, counts, sizes, strides, dilations, kind)
        return COMBINE[kind](total, whole).value
    for place in itertools.product(*map(range, sizes)):
        starts = [k * dilation for k, dilation in zip(place, dilations, strict=True)]
        if any(count.value == 0 for count in counts):
            break
        tap = TensorValue(builder, builder.slice(x, starts, counts, strides))
        total = COMBINE[kind](total, tap)
    return total.value


def _unfolded(
    builder: Legalizer,
    x: SSAValue,
    counts: Sequence[Expr],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    kind: str,
) -> TensorValue:
    """Windows as dimensions of their own, one dimension after the other."""
    y = TensorValue(builder, x)
    for axis, (count, size) in enumerate(zip(counts, sizes, strict=True)):
        begins = TensorValue.iota(builder, count).column(2, 0) * strides[axis]
        places = begins + TensorValue.iota(builder, size).column(2, 1) * dilations[axis]
        gathered = builder.add(GatherOp(y.value, places.value, axis, inside=True))
        y = reduced(TensorValue(builder, gathered), kind, [axis + 1])
    return y


def windows_as_columns(
    builder: Legalizer,
    x: SSAValue,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[int],
) -> SSAValue:
    """Windows of [N, C, H, W], with zeros around, as [N, C * their elements, their number]."""
    pads = [Expr.const(0), Expr.const(0), *map(Expr.const, padding)]
    wide = pad(builder, x, pads, pads, builder.scalar(0, x))
    batch, channels, *space = dims_of(wide)
    counts = [
        (dim - d * (k - 1) - 1) // s + 1
        for dim, d, k, s in zip(space, dilations, kernel, strides, strict=True)
    ]
    rows, columns = (
        (TensorValue(builder, np.arange(k, dtype=np.int64) * d)).reshape([k, 1])
        + TensorValue.iota(builder, count).reshape([1, count]) * s
        for k, d, count, s in zip(kernel, dilations, counts, strides, strict=True)
    )
    place = rows.reshape([kernel[0], 1, counts[0], 1]) * TensorValue.dim(builder, space[1])
    place = place + columns.reshape([1, kernel[1], 1, counts[1]])
    flat = builder.reshape(wide, [batch, channels, product(space)])
    found = builder.add(GatherOp(flat, place.reshape([product(place.dims)]).value, 2))
    return builder.reshape(found, [batch, channels * kernel[0] * kernel[1], product(counts)])
