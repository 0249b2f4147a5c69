"""Pools, over windows and over everything."""

from __future__ import annotations

from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.passes.legalize.common.pooling import adaptive_pool, pool
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.keras.convolution import window_of
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue

_WINDOWS = [f"{kind}Pooling{count}D" for kind in ("Max", "Average") for count in (1, 2, 3)]
_GLOBAL = [f"Global{name}" for name in _WINDOWS]


@legalizes(*_WINDOWS)
def legalize_pool(builder: KerasLegalizer) -> Results:
    """The largest element or the mean of each window; padding does not count."""
    count = int(builder.op_type[-2])
    x, is_first = builder.image(count)
    sizes = builder.numbers("pool_size", count, 2)
    strides = builder.numbers("strides", count) if builder.config("strides") else sizes
    padding = str(builder.config("padding", "valid")).lower()
    window = window_of(builder, dims_of(x)[2:], sizes, strides, [1] * count, padding)
    kind = "max" if builder.op_type.startswith("Max") else "average"
    return [builder.from_first(pool(builder, kind, x, window), is_first)]


_ADAPTIVE = [f"Adaptive{name}" for name in _WINDOWS]


@legalizes(*_ADAPTIVE)
def legalize_adaptive_pool(builder: KerasLegalizer) -> Results:
    """The largest element or the mean of so many windows that fill each dimension."""
    count = int(builder.op_type[-2])
    x, is_first = builder.image(count)
    kind = "max" if "Max" in builder.op_type else "mean"
    x = adaptive_pool(builder, x, builder.numbers("output_size", count), kind)
    return [builder.from_first(x, is_first)]


@legalizes(*_GLOBAL)
def legalize_global_pool(builder: KerasLegalizer) -> Results:
    """Over all spatial dimensions; a mask says which steps count."""
    x = builder.input()
    rank = rank_of(x)
    axes = list(range(2, rank)) if builder.is_first() else list(range(1, rank - 1))
    keep = bool(builder.config("keepdims", False))
    mask = builder.argument(1, "mask")
    if mask is not None:
        value = TensorValue(builder, x)
        weights = TensorValue(builder, mask).cast(value.element)
        axis = axes[0]
        dims = list(weights.dims)
        dims.insert(3 - axis, value.dims[0] * 0 + 1)
        weights = weights.reshape(dims)
        total = (value * weights).reduce("sum", [axis], keep)
        return [(total / weights.reduce("sum", [axis], keep)).value]
    if "Max" in builder.op_type:
        return [builder.reduce("max", x, axes, keep)]
    return [mean(builder, x, axes, keep)]
