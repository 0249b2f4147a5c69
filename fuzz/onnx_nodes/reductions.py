"""Reductions and normalizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.onnx_graphs import F32, F64, Builder, Skip, recipe, type_of
from fuzz.onnx_nodes.conditions import has_nan


@recipe(
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
    weight=4,
)
def reduction(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), sane=op not in ("ReduceMax", "ReduceMin") and not b.chance(0.2))
    rank = x.array.ndim
    axes: list[int] | None = sorted(b.random.sample(range(rank), b.random.randint(0, rank)))
    if axes and b.opset >= 11 and b.chance(0.3):
        axes = [axis - rank if b.chance(0.5) else axis for axis in axes]
    if not axes and b.chance(0.7):
        axes = None
    attributes: dict[str, Any] = {"keepdims": b.random.choice((None, 0, 1))}
    schema = b.schema(op)
    inputs: list[Any] = [x]
    if "noop_with_empty_axes" in schema.attributes:
        attributes["noop_with_empty_axes"] = b.random.choice((None, 0, 1))
        if axes is not None:
            inputs.append(b.parameter(axes))
    elif axes:
        attributes["axes"] = axes
    b.node(op, inputs, **attributes)


@recipe("ArgMax", "ArgMin")
def arg_reduction(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1, test=b.mostly(lambda a: bool(a.size) and not has_nan(a)))
    if not x.array.size:
        raise Skip
    last = b.random.choice((None, 0, 1)) if b.opset >= 12 else None
    axis = b.axis(x.array.ndim)
    b.node(op, [x], axis=axis, keepdims=b.random.choice((None, 0, 1)), select_last_index=last)


@recipe("CumSum", "CumProd")
def cumulative(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1, sane=True)
    axis = b.parameter(b.axis(x.array.ndim), b.random.choice((np.int64, np.int32)))
    flags: dict[str, Any] = {
        name: b.random.choice((None, 0, 1)) for name in ("exclusive", "reverse")
    }
    b.node(op, [x, axis], **flags)


@recipe("Softmax", "LogSoftmax", "Hardmax")
def softmax(b: Builder, op: str) -> None:
    test = b.mostly(lambda a: not has_nan(a)) if op == "Hardmax" else None
    x = b.pick(b.dtype(op), low=1, sane=True, test=test)
    b.node(op, [x], axis=None if b.chance(0.3) else b.axis(x.array.ndim))


@recipe("LpNormalization")
def lp_normalization(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1, sane=True)
    b.node(op, [x], axis=b.axis(x.array.ndim), p=b.random.choice((None, 1, 2)))


@recipe("LayerNormalization", "RMSNormalization")
def layer_normalization(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, low=1, sane=True, test=lambda a: a.size > 1)
    rank = x.array.ndim
    axis = b.random.randrange(-rank, rank)
    shape = x.array.shape[axis:]
    inputs = [x, b.pick(dtype, shape, sane=True, closed=True)]
    epsilon = b.random.choice((None, 1e-5, 1e-3))
    outputs = 1
    if op == "LayerNormalization":
        if b.chance(0.6):
            inputs.append(b.pick(dtype, shape, sane=True, closed=True))
        outputs = b.random.choice((1, 1, 1, 2, 3))
    b.node(op, inputs, outputs, axis=axis, epsilon=epsilon, stash_type=stash(b, op, dtype))


def stash(b: Builder, op: str, dtype: np.dtype[Any]) -> int | None:
    """The type of statistics: by default f32, here never less than the input's."""
    return type_of(F64) if dtype == F64 and "stash_type" in b.schema(op).attributes else None


@recipe("InstanceNormalization", "BatchNormalization", "GroupNormalization", weight=3)
def channel_normalization(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(
        dtype, low=3 if op == "InstanceNormalization" else 2, sane=True, test=lambda a: bool(a.size)
    )
    channels = x.array.shape[1]
    epsilon = b.random.choice((None, 1e-3))
    if op == "GroupNormalization":
        groups = b.random.choice([k for k in range(1, channels + 1) if channels % k == 0])
        size = channels if b.opset >= 21 else groups
        scale, bias = (b.pick(dtype, (size,), sane=True, closed=True) for _ in range(2))
        b.node(
            op, [x, scale, bias], num_groups=groups, epsilon=epsilon, stash_type=stash(b, op, dtype)
        )
        return
    scale, bias = (b.pick(dtype, (channels,), sane=True, closed=True) for _ in range(2))
    if op == "InstanceNormalization":
        b.node(op, [x, scale, bias], epsilon=epsilon)
        return
    statistics = dtype if b.opset < 14 else F32
    mean = b.pick(statistics, (channels,), sane=True, closed=True)
    positive = lambda: np.abs(b.array(statistics, (channels,), True)) + statistics.type(0.25)  # noqa: E731
    variance = b.pick(
        statistics, (channels,), closed=True, make=positive, test=lambda a: bool((a > 0.1).all())
    )
    b.node(
        op, [x, scale, bias, mean, variance], epsilon=epsilon, momentum=b.random.choice((None, 0.5))
    )


@recipe("MeanVarianceNormalization")
def mean_variance(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=4, sane=True, test=lambda a: bool(a.size))
    axes = sorted(b.random.sample(range(x.array.ndim), b.random.randint(1, x.array.ndim)))
    b.node(op, [x], axes=None if b.chance(0.5) else axes)


@recipe("LRN")
def lrn(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=4, sane=True)
    size = b.random.choice((1, 3, 5))
    b.node(
        op, [x], size=size, alpha=b.random.choice((None, 0.5)), bias=b.random.choice((None, 2.0))
    )
