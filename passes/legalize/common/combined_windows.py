"""The elements of each window, and along dimensions, combined by an operator of two elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr
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
