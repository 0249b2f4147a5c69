"""The operators of random ONNX graphs: what makes a node of each, with inputs that fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx_graphs import (
    BF16,
    BOOL,
    F32,
    F64,
    I32,
    I64,
    Builder,
    Skip,
    Value,
    is_float,
    recipe,
    type_of,
)

Array = NDArray[Any]
U8, I8 = np.dtype(np.uint8), np.dtype(np.int8)

# Elementwise


@recipe(
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf"),
    *("Exp", "Floor", "HardSwish", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid"),
    *("Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "BitwiseNot", "Not"),
    "Identity",
    weight=2,
)
def unary(b: Builder, op: str) -> None:
    parameter = "V" if op == "Identity" and b.opset >= 14 else "T"
    if op == "Not":
        b.node(op, [b.pick(BOOL)])
        return
    b.node(op, [b.pick(b.dtype(op, parameter))])


@recipe("IsInf", "IsNaN")
def classify(b: Builder, op: str) -> None:
    attributes: dict[str, Any] = {}
    if op == "IsInf" and b.chance(0.5):
        attributes = {"detect_negative": b.random.randint(0, 1), "detect_positive": 1}
    b.node(op, [b.pick(b.dtype(op, "T1"))], **attributes)


@recipe(
    *("Celu", "Elu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Selu", "Shrink", "Gelu"),
    "Swish",
    weight=2,
)
def activation(b: Builder, op: str) -> None:
    attributes: dict[str, Any] = {}
    for name in b.schema(op).attributes:
        if b.chance(0.5):
            attributes[name] = b.random.choice((0.5, 1.0, 0.01, 1.5, 2.0))
    if op == "Gelu":
        attributes = {"approximate": b.random.choice(("none", "tanh"))}
    b.node(op, [b.pick(b.dtype(op), sane=op == "Shrink")], **attributes)


@recipe(
    "Add",
    "Sub",
    "Mul",
    "Max",
    "Min",
    "Equal",
    "Greater",
    "Less",
    "GreaterOrEqual",
    "LessOrEqual",
    "And",
    "Or",
    "Xor",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    weight=5,
)
def binary(b: Builder, op: str) -> None:
    x, y = operands(b, b.dtype(op))
    b.node(op, [x, y])


def operands(b: Builder, dtype: np.dtype[Any], **options: Any) -> list[Value]:
    """Two values that broadcast, in any order."""
    x = b.pick(dtype)
    if b.chance(0.05):
        y = x
    elif b.chance(0.2) and x.array.ndim and 1 in x.array.shape:
        size = b.dim()
        y = b.pick(dtype, tuple(size if s == 1 else s for s in x.array.shape), **options)
    else:
        y = b.pick(dtype, b.broadcast(x.array.shape), **options)
    found = [x, y]
    if not options:
        b.random.shuffle(found)
    return found


@recipe("Sum", "Mean", "Max", "Min", weight=2)
def variadic(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype)
    if b.opset < 8:
        raise Skip
    rest = [b.pick(dtype, b.broadcast(x.array.shape)) for _ in range(b.random.choice((0, 1, 2, 3)))]
    b.node(op, [x, *rest])


@recipe("Div", "Mod", weight=4)
def division(b: Builder, op: str) -> None:
    dtype = b.dtype(op)

    def able(a: Array) -> bool:
        # In bodies not even -1: the elements of other turns are not known.
        return is_float(dtype) or bool((a != 0).all() and (a.astype(object) != -1).all())

    def make_of(shape: Sequence[int]) -> Callable[[], Array]:
        def make() -> Array:
            a = b.array(dtype, shape)
            return a if is_float(dtype) else np.where(a + 1 < 2, a.dtype.type(3), a).astype(dtype)

        return make

    x = b.pick(dtype)
    shape = b.broadcast(x.array.shape)
    test = b.mostly(able)
    y = b.pick(dtype, shape, test=test, make=make_of(shape) if test else None)
    if op == "Mod":
        fmod = 1 if is_float(dtype) else b.random.randint(0, 1)
        b.node(op, [x, y], fmod=fmod or None)
        return
    b.node(op, [x, y])


@recipe("Pow")
def power(b: Builder, op: str) -> None:
    if b.opset < 12:
        dtype = other = b.dtype(op)
    else:
        dtype, other = b.dtype(op), b.dtype(op, "T1")
    x = b.pick(dtype, sane=True)
    choices = (0, 1, 2, 3) if other.kind != "u" and not is_float(dtype) else (0, 1, 2, 3, 2)
    if is_float(other) and is_float(dtype):
        choices = (-1, 0, 0.5, 1, 2, 3, -2, 1.5)

    def make() -> Array:
        shape = b.broadcast(x.array.shape)
        if b.chance(0.5):
            return np.full(b.random.choice(((), shape)), b.random.choice(choices)).astype(other)
        flat = [b.random.choice(choices) for _ in range(int(np.prod(shape)))]
        return np.array(flat).reshape(shape).astype(other)

    b.node(op, [x, b.leaf(make())])


@recipe("BitShift")
def shift(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype)
    shape = b.broadcast(x.array.shape)
    bits = dtype.itemsize * 8
    make = lambda: np.array(  # noqa: E731
        [b.random.randrange(bits) for _ in range(int(np.prod(shape)))], dtype
    ).reshape(shape)
    y = b.pick(dtype, shape, test=lambda a: bool((a < bits).all()), make=make)
    b.node(op, [x, y], direction=b.random.choice(("LEFT", "RIGHT")))


@recipe("PRelu")
def prelu(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, low=1)
    b.node(op, [x, b.pick(dtype, b.broadcast(x.array.shape))])


@recipe("Where")
def where(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype)
    shapes = [b.broadcast(x.array.shape) for _ in range(2)]
    b.node(op, [b.pick(BOOL, shapes[0]), *shuffled(b, [x, b.pick(dtype, shapes[1])])])


def shuffled(b: Builder, values: list[Any]) -> list[Any]:
    b.random.shuffle(values)
    return values


@recipe("Clip")
def clip(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype)
    low = b.random.choice((-2, -1, 0, 1)) if dtype.kind != "u" else b.random.choice((0, 1, 2))
    high = low + b.random.choice((0, 1, 3))
    with_low, with_high = b.random.choice(((True, True), (True, False), (False, True)))
    if b.opset < 11:
        b.node(
            op, [x], min=float(low) if with_low else None, max=float(high) if with_high else None
        )
        return
    bounds = [b.leaf(np.array(k, dtype), 0.3) for k in (low, high)]
    b.node(op, [x, bounds[0] if with_low else None, bounds[1] if with_high else None])


@recipe("Cast", "CastLike")
def cast(b: Builder, op: str) -> None:
    source, target = b.dtype(op, "T1"), b.dtype(op, "T2")
    x = b.pick(source, test=lambda a: castable(a, target))
    if op == "CastLike":
        b.node(op, [x, b.pick(target)])
        return
    b.node(op, [x], to=type_of(target))


def castable(a: Array, target: np.dtype[Any]) -> bool:
    """True if the conversion is defined."""
    if not is_float(a.dtype) or is_float(target) or target.kind == "b":
        return True
    limits = np.iinfo(target)
    wide = a.astype(np.float64)
    return bool(np.isfinite(wide).all() and (wide > limits.min).all() and (wide < limits.max).all())


def is_finite(a: Array) -> bool:
    """True if nothing is infinite or NaN: where that gets to depends on the algorithm."""
    return bool(np.isfinite(a.astype(np.float64)).all())


def within(a: Array, limit: float) -> bool:
    """True if all finite elements are at most so large."""
    wide = np.abs(a.astype(np.float64))
    return bool((wide[np.isfinite(wide)] <= limit).all())


# Reductions and normalizations


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


def has_nan(a: Array) -> bool:
    return is_float(a.dtype) and bool(np.isnan(a.astype(np.float64)).any())


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


# Shapes and movement


@recipe("Reshape", weight=8)
def reshape(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op))
    shape = list(factors(b, x.array.size))
    if shape and x.array.size and b.chance(0.4):
        shape[b.random.randrange(len(shape))] = -1
    elif x.array.size and x.array.ndim and shape and shape[0] == x.array.shape[0] and b.chance(0.5):
        shape[0] = 0
    allow = 1 if not x.array.size and b.opset >= 14 else None
    if not x.array.size and allow is None:
        shape = list(x.array.shape)
    b.node(op, [x, b.parameter(shape)], allowzero=allow)


def factors(b: Builder, size: int) -> list[int]:
    """A shape of so many elements."""
    if size == 0:
        return [b.random.choice((0, 1, 3)), 0]
    found: list[int] = []
    while size > 1 and len(found) < 3:
        able = [k for k in range(2, min(size, 40) + 1) if size % k == 0]
        if not able or b.chance(0.2):
            break
        found.append(b.random.choice(able))
        size //= found[-1]
    if size > 1 or (not found and b.chance(0.7)):
        found.append(size)
    if b.chance(0.2):
        found.insert(b.random.randint(0, len(found)), 1)
    b.random.shuffle(found)
    return found


@recipe("Flatten")
def flatten(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    rank = x.array.ndim
    low = -rank if b.opset >= 11 else 0
    b.node(op, [x], axis=None if b.chance(0.3) else b.random.randint(low, rank))


@recipe("Squeeze", "Unsqueeze", weight=5)
def squeeze(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), test=lambda a: op == "Unsqueeze" or 1 in a.shape or b.chance(0.1))
    shape, rank = x.array.shape, x.array.ndim
    if op == "Squeeze":
        able = [k for k in range(rank) if shape[k] == 1]
        axes = b.random.sample(able, b.random.randint(min(1, len(able)), len(able)))
    else:
        axes = b.random.sample(range(rank + 1), 1)
        if b.chance(0.3):
            axes = b.random.sample(range(rank + 2), 2)
        rank += len(axes)
    if b.opset >= 11 and b.chance(0.3):
        axes = [axis - rank for axis in axes]
    # Of what size is one of unknown dimensions is not known.
    if op == "Squeeze" and (not axes or b.chance(0.02 if b.style.open else 0.2)):
        b.node(op, [x])
    elif b.opset >= 13:
        b.node(op, [x, b.parameter(axes)])
    else:
        b.node(op, [x], axes=sorted(axes))


@recipe("Transpose", weight=8)
def transpose(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op))
    order = list(range(x.array.ndim))
    b.random.shuffle(order)
    b.node(op, [x], perm=None if b.chance(0.2) or not order else order)


@recipe("Concat", weight=6)
def concat(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    axis = b.axis(x.array.ndim)
    parts = [x]
    for _ in range(b.random.choice((0, 1, 1, 2, 3))):
        shape = list(x.array.shape)
        if b.chance(0.5):
            shape[axis] = b.dim()
        parts.append(x if b.chance(0.15) else b.pick(x.array.dtype, shape))
    b.node(op, shuffled(b, parts), axis=axis)


@recipe("Split", weight=5)
def split(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    axis = b.axis(x.array.ndim)
    size = x.array.shape[axis]
    count = b.random.choice([k for k in (1, 2, 3) if k <= max(size, 1)])
    cuts = sorted(b.random.randint(0, size) for _ in range(count - 1))
    parts = [high - low for low, high in zip([0, *cuts], [*cuts, size], strict=True)]
    given = None if b.chance(0.3) and size % count == 0 else parts
    if b.opset < 13:
        b.node(op, [x], count, axis=axis, split=given)
    else:
        number = count if b.opset >= 18 and given is None else None
        b.node(
            op,
            [x, None if given is None else b.parameter(given)],
            count,
            axis=axis,
            num_outputs=number,
        )


@recipe("Slice", weight=10)
def slice_(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    shape = x.array.shape
    axes = b.random.sample(range(len(shape)), b.random.randint(1, len(shape)))
    starts, ends, steps = list[int](), list[int](), list[int]()
    for axis in axes:
        size = shape[axis]
        step = b.random.choice((1, 1, 1, 2, 3, -1, -2)) if b.opset >= 10 else 1
        starts.append(b.random.choice((0, b.random.randint(-size - 1, size + 1), size)))
        ends.append(b.random.choice((size, b.random.randint(-size - 1, size + 1), 2**31 - 1, -1)))
        if step < 0:
            starts[-1] = b.random.choice((size - 1, -1, 2**31 - 1, size // 2))
            ends[-1] = b.random.choice((0, -(2**31), -size - 1, -2))
        steps.append(step)
    if b.opset >= 11 and b.chance(0.3):
        axes = [axis - len(shape) for axis in axes]
    if b.opset < 10:
        b.node(op, [x], axes=axes, starts=starts, ends=ends)
        return
    dtype = b.random.choice((np.int64, np.int64, np.int32))
    inputs: list[Any] = [x, *(b.parameter(p, dtype) for p in (starts, ends))]
    is_leading = [a % len(shape) for a in axes] == list(range(len(axes)))
    has_steps = any(step != 1 for step in steps) or b.chance(0.3)
    inputs.append(None if is_leading and b.chance(0.4) else b.parameter(axes, dtype))
    inputs.append(b.parameter(steps, dtype) if has_steps else None)
    b.node(op, inputs)


@recipe("Pad", weight=5)
def pad(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    shape = x.array.shape
    modes = ["constant", "reflect", "edge"] + (["wrap"] if b.opset >= 19 else [])
    mode = b.random.choice((None, "constant", *modes))
    pads = [b.random.choice((0, 0, 1, 2)) for _ in range(2 * len(shape))]
    if mode in ("reflect", "edge", "wrap"):
        limit = 1 if mode == "reflect" else 0
        pads = [min(p, max(shape[k % len(shape)] - limit, 0)) for k, p in enumerate(pads)]
    elif b.chance(0.2):
        at = b.random.randrange(len(pads))
        pads[at] = -min(1, shape[at % len(shape)])
    number = b.random.choice((0, 1, 2))
    if b.opset < 11:
        b.node(op, [x], pads=pads, mode=mode, value=float(number) if number else None)
        return
    inputs: list[Any] = [x]
    axes = None
    if b.opset >= 18 and b.chance(0.3):
        axes = b.random.sample(range(len(shape)), b.random.randint(1, len(shape)))
        pads = [pads[a] for a in axes] + [pads[a + len(shape)] for a in axes]
    inputs.append(b.parameter(pads))
    inputs.append(b.leaf(np.array(number, x.array.dtype), 0.2) if b.chance(0.5) else None)
    inputs.append(None if axes is None else b.parameter(axes))
    b.node(op, inputs, mode=mode)


@recipe("Tile", "Expand", weight=4)
def repeat(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op))
    shape = x.array.shape
    if op == "Tile":
        b.node(op, [x, b.parameter([b.random.choice((1, 1, 2, 3, 0)) for _ in shape])])
        return
    target = [b.random.choice((1, b.dim())) if s == 1 else b.random.choice((1, s)) for s in shape]
    target = target[b.random.choice((0, 0, 1)) :]
    if b.chance(0.3) and len(target) == len(shape):
        target.insert(0, b.dim())
    b.node(op, [x, b.parameter(target)])


@recipe("Shape", "Size", weight=4)
def sizes(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op))
    attributes: dict[str, Any] = {}
    if op == "Shape" and b.opset >= 15 and b.chance(0.4):
        rank = x.array.ndim
        attributes = {"start": b.random.randint(-rank, rank), "end": b.random.randint(-rank, rank)}
    b.node(op, [x], **attributes)


def indices(b: Builder, dtype: Any, shape: Sequence[int], bound: int, negative: bool) -> Array:
    """Indices below a bound."""
    if not bound and np.prod(tuple(shape)):
        raise Skip
    low = -bound if negative and b.chance(0.4) else 0
    flat = [b.random.randrange(low, bound) for _ in range(int(np.prod(tuple(shape))))]
    return np.array(flat, dtype).reshape(tuple(shape))


@recipe("Gather", weight=8)
def gather(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    axis = b.axis(x.array.ndim)
    bound = x.array.shape[axis]
    dtype = b.random.choice((I64, I64, I32))
    negative = b.opset >= 11

    def able(a: Array) -> bool:
        return bool(((a < bound) & (a >= (-bound if negative else 0))).all())

    shape = b.shape(None, 0, 2)
    make = lambda: indices(b, dtype, shape, bound, negative)  # noqa: E731
    at = b.pick(dtype, low=0, high=2, test=able, make=make)
    b.node(op, [x, at], axis=None if axis == 0 and b.chance(0.5) else axis)


@recipe("GatherElements", "ScatterElements", "Scatter", weight=3)
def gather_elements(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, low=1)
    axis = b.axis(x.array.ndim)
    shape = [
        s if b.chance(0.6) else b.random.randint(0 if s == 0 else 1, max(s, 1))
        for s in x.array.shape
    ]
    negative = b.opset >= 11
    kind = b.random.choice((I64, I32))
    if op == "GatherElements":
        shape[axis] = b.dim()
        at = indices(b, kind, shape, x.array.shape[axis], negative)
        b.node(op, [x, b.leaf(at)], axis=axis)
        return
    attributes: dict[str, Any] = {"axis": axis}
    at = indices(b, kind, shape, x.array.shape[axis], negative)
    reduction = None
    if op == "ScatterElements" and b.opset >= 16:
        names = ["none", "add", "mul"] + (["max", "min"] if b.opset >= 18 else [])
        reduction = b.random.choice((None, *names)) if dtype.kind != "b" else None
        attributes["reduction"] = reduction
    if reduction in (None, "none"):
        # Which of two writes is the last nobody says.
        for k in np.ndindex(*(s for d, s in enumerate(shape) if d != axis % len(shape))):
            line = [*k[: axis % len(shape)], slice(None), *k[axis % len(shape) :]]
            if shape[axis] > x.array.shape[axis]:
                raise Skip
            chosen = b.random.sample(range(x.array.shape[axis]), shape[axis])
            at[tuple(line)] = chosen
    if reduction in ("add", "mul") and is_float(dtype) and not within(x.array, 1e3):
        raise Skip
    b.node(op, [x, b.leaf(at), b.pick(dtype, shape, sane=True)], **attributes)


@recipe("GatherND", "ScatterND", weight=3)
def gather_nd(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, low=1)
    shape = x.array.shape
    if op == "GatherND":
        batch = b.random.choice((0, 0, 1)) if b.opset >= 12 and len(shape) > 1 else 0
        depth = b.random.randint(1, len(shape) - batch)
        outer = [*shape[:batch], *(b.random.randint(1, 3) for _ in range(b.random.randint(0, 2)))]
        columns = [indices(b, I64, outer, shape[batch + k], True) for k in range(depth)]
        at = np.stack(columns, -1)
        b.node(op, [x, b.parameter(at)], batch_dims=batch or None)
        return
    depth = b.random.randint(1, len(shape))
    places = list(np.ndindex(*shape[:depth]))
    if not places:
        raise Skip
    chosen = b.random.sample(places, b.random.randint(1, min(len(places), 5)))
    at = np.array(chosen, np.int64)
    reduction = None
    if b.opset >= 16:
        names = ["none", "add", "mul"] + (["max", "min"] if b.opset >= 18 else [])
        reduction = b.random.choice((None, *names)) if dtype.kind != "b" else None
    updates = b.pick(dtype, (len(chosen), *shape[depth:]), sane=True)
    if reduction in ("add", "mul") and is_float(dtype) and not within(x.array, 1e3):
        raise Skip
    b.node(op, [x, b.parameter(at), updates], reduction=reduction)


@recipe("OneHot")
def one_hot(b: Builder, op: str) -> None:
    able = [t for t in b.types(op, "T1") if t in (I64, I32, F32)]
    x = b.pick(
        b.random.choice(able),
        low=1,
        high=3,
        test=lambda a: (
            within(a, 20)
            and not has_nan(a)
            and bool((a == np.floor(a)).all())
            and (b.opset >= 11 or bool((a >= 0).all()))
        ),
        make=lambda: indices(b, b.random.choice(able), b.shape(None, 1, 3), 6, False),
    )
    if x.array.dtype not in able:
        raise Skip
    depth = b.parameter(b.random.choice((1, 3, 5)), b.random.choice((np.int64, np.int32)))
    values = b.pick(b.dtype(op, "T3"), (2,))
    axis = b.random.randint(-x.array.ndim - 1, x.array.ndim) if b.opset >= 11 else -1
    b.node(op, [x, depth, values], axis=None if b.chance(0.3) else axis)


@recipe("EyeLike")
def eye_like(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op, "T1"), low=2, high=2)
    target = b.dtype(op, "T2")
    b.node(op, [x], k=b.random.choice((None, -1, 1)), dtype=type_of(target))


@recipe("Range")
def range_(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    start, delta = b.random.randint(-3, 3), b.random.choice((1, 2, 3, -1))
    limit = start + delta * b.random.randint(-1, 7)
    if is_float(dtype) and b.chance(0.5):
        delta *= 0.5
    b.node(op, [b.parameter(number, dtype) for number in (start, limit, delta)])


@recipe("ConstantOfShape")
def constant_of_shape(b: Builder, op: str) -> None:
    from onnx_graphs import tensor

    dtype = b.dtype(op, "T2")
    if dtype == BF16:
        raise Skip
    value = tensor("", b.array(dtype, (1,)))
    b.node(op, [b.parameter(b.shape())], value=None if b.chance(0.2) else value)


@recipe("Trilu")
def trilu(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=2)
    k = b.parameter(b.random.randint(-3, 3)) if b.chance(0.6) else None
    b.node(op, [x, k], upper=b.random.choice((None, 0, 1)))


@recipe("DepthToSpace", "SpaceToDepth", weight=3)
def blocks(b: Builder, op: str) -> None:
    n, c, h, w = (
        b.random.choice((1, 2)),
        b.random.choice((1, 2, 3)),
        *(b.random.choice((1, 2, 3)) for _ in "hw"),
    )
    size = b.random.choice((1, 2, 2, 3))
    shape = (n, c * size**2, h, w) if op == "DepthToSpace" else (n, c, h * size, w * size)
    mode = b.random.choice((None, "DCR", "CRD")) if op == "DepthToSpace" and b.opset >= 11 else None
    b.node(op, [b.pick(b.dtype(op), shape)], blocksize=size, mode=mode)


@recipe("ReverseSequence")
def reverse_sequence(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=2)
    batch = b.random.randint(0, 1)
    shape = x.array.shape
    if 0 in shape:
        raise Skip
    lengths = [b.random.randint(1, shape[1 - batch]) for _ in range(shape[batch])]
    b.node(op, [x, b.parameter(lengths)], batch_axis=batch, time_axis=1 - batch)


@recipe("Compress", weight=3)
def compress(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    axis = None if b.chance(0.4) else b.axis(x.array.ndim)
    size = x.array.size if axis is None else x.array.shape[axis]
    b.node(op, [x, b.pick(BOOL, (b.random.randint(min(size, 1), size),))], axis=axis)


@recipe("NonZero", weight=3)
def non_zero(b: Builder, op: str) -> None:
    b.node(op, [b.pick(b.dtype(op), low=1)])


@recipe("TopK", weight=4)
def top_k(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1, test=b.mostly(lambda a: not has_nan(a)))
    axis = b.axis(x.array.ndim)
    k = b.random.randint(min(1, x.array.shape[axis]), x.array.shape[axis])
    if b.opset < 10:
        b.node(op, [x], 2, axis=axis, k=k)
        return
    largest = b.random.choice((None, 0, 1)) if b.opset >= 11 else None
    b.node(op, [x, b.parameter([k])], 2, axis=axis, largest=largest)


@recipe("Unique", weight=3)
def unique(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1, test=b.mostly(lambda a: not has_nan(a) and a.size > 0))
    count = b.random.randint(1, 4)
    absent = [k for k in range(1, count) if b.chance(0.2)]
    axis = None if b.chance(0.5) else b.axis(x.array.ndim)
    b.node(op, [x], count, absent, axis=axis, sorted=b.random.choice((None, 0, 1)))


@recipe("CenterCropPad")
def center_crop_pad(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1)
    rank = x.array.ndim
    axes = None if b.chance(0.5) else b.random.sample(range(rank), b.random.randint(1, rank))
    shape = [b.random.randint(1, 6) for _ in (range(rank) if axes is None else axes)]
    b.node(op, [x, b.parameter(shape)], axes=axes)


# Products


@recipe("MatMul", weight=8)
def mat_mul(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, low=1, sane=True)
    shape = x.array.shape
    other: tuple[int, ...] = (shape[-1],)
    if b.chance(0.85):
        other = (*b.broadcast(shape[:-2]), shape[-1], b.dim())
    b.node(op, [x, b.pick(dtype, other, sane=True)])


@recipe("Gemm", weight=5)
def gemm(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    m, k, n = b.dim(), b.dim(), b.dim()
    ta, tb = b.random.choice((None, 0, 1)), b.random.choice((None, 0, 1))
    x = b.pick(dtype, (k, m) if ta else (m, k), sane=True)
    y = b.pick(dtype, (n, k) if tb else (k, n), sane=True)
    inputs: list[Any] = [x, y]
    if b.opset < 11 or b.chance(0.7):
        inputs.append(b.pick(dtype, b.broadcast((m, n)), sane=True))
    numbers = (None, 1.0, 0.5, 0.0, 2.0) if is_float(dtype) else (None, 1.0, 2.0)
    b.node(
        op,
        inputs,
        transA=ta,
        transB=tb,
        alpha=b.random.choice(numbers),
        beta=b.random.choice(numbers),
    )


@recipe("Einsum", weight=4)
def einsum(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    text = b.random.choice(
        (
            "ij,jk->ik",
            "ij,ij->i",
            "ij->ji",
            "bij,bjk->bik",
            "i,j->ij",
            "ii->i",
            "bij,bkj->bik",
            "...ij,jk->...ik",
            "ij->",
            "ab,bc,cd->ad",
            "abc->ca",
            "ij,kj",
            "i,i->",
            "bhqd,bhkd->bhqk",
        )
    )
    dims: dict[str, int] = {}
    inputs: list[Value] = []
    for term in text.split("->")[0].split(","):
        shape = [
            dims.setdefault(c, b.dim()) for c in term.replace("...", "xy" if b.chance(1) else "")
        ]
        inputs.append(b.pick(dtype, shape, sane=True))
    b.node(op, inputs, equation=text)


@recipe("MatMulInteger")
def mat_mul_integer(b: Builder, op: str) -> None:
    m, k, n = b.dim(), b.dim(), b.dim()
    left, right = b.dtype(op, "T1"), b.dtype(op, "T2")
    batch = b.shape(1) if b.chance(0.3) else ()
    inputs: list[Any] = [b.pick(left, (*batch, m, k)), b.pick(right, (k, n))]
    inputs.append(b.pick(left, b.random.choice(((), (1,)))) if b.chance(0.5) else None)
    inputs.append(b.pick(right, b.random.choice(((), (1,), (n,)))) if b.chance(0.5) else None)
    b.node(op, inputs)


def window(
    b: Builder, rank: int, size: Sequence[int], kernel: Sequence[int], op: str
) -> dict[str, Any]:
    """Attributes of a window that fits."""
    attributes: dict[str, Any] = {}
    dilations = [b.random.choice((1, 1, 2)) for _ in range(rank)]
    if b.chance(0.7) or op in ("AveragePool", "LpPool", "MaxPool"):
        dilations = [1] * rank
    if op == "MaxPool" and b.opset >= 10 and b.chance(0.2):
        dilations = [2] * rank
    if op == "AveragePool" and b.opset >= 19 and b.chance(0.2):
        dilations = [2] * rank
    if any(d != 1 for d in dilations):
        attributes["dilations"] = dilations
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if b.chance(0.6):
        attributes["strides"] = [b.random.choice((1, 1, 2, 3)) for _ in range(rank)]
    pads = [0] * (2 * rank)
    match b.random.choice(("none", "pads", "auto")):
        case "pads":
            pads = [b.random.randint(0, max(extents[k % rank] - 1, 0)) for k in range(2 * rank)]
            if op in ("MaxPool", "AveragePool", "LpPool"):
                pads = [min(p, (kernel[k % rank] - 1)) for k, p in enumerate(pads)]
            attributes["pads"] = pads
        case "auto":
            modes = ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]
            attributes["auto_pad"] = b.random.choice(modes)
            if "dilations" in attributes and attributes["auto_pad"].startswith("SAME"):
                del attributes["dilations"]
        case _:
            pass
    if not attributes.get("auto_pad", "").startswith("SAME"):
        for k in range(rank):
            if size[k] + pads[k] + pads[k + rank] < extents[k]:
                raise Skip
    return attributes


def spatial(b: Builder, rank: int) -> list[int]:
    return [
        b.random.choice((1, 3, 4, 5, 6, 7) if rank > 1 else (3, 5, 9, 17, 33)) for _ in range(rank)
    ]


@recipe("Conv", weight=12)
def conv(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    rank = b.random.choice((1, 2, 2, 2, 2, 3))
    groups = b.random.choice((1, 1, 1, 2, 3))
    inner, outer = b.random.choice((1, 1, 2, 3, 4, 8)), b.random.choice((1, 1, 2, 3, 8))
    if b.chance(0.15):
        groups, inner = b.random.choice((2, 4, 8)), 1  # depthwise
    size = spatial(b, rank)
    shape = (b.random.choice((1, 1, 2)), groups * inner, *size)
    kernel = [b.random.choice((1, 2, 3, 3)) for _ in range(rank)]
    attributes = window(b, rank, size, kernel, op)
    weights = b.pick(dtype, (groups * outer, inner, *kernel), sane=True, computed=0.15, closed=True)
    inputs = [b.pick(dtype, shape, sane=True), weights]
    if b.chance(0.5):
        inputs.append(b.pick(dtype, (groups * outer,), sane=True, computed=0.15, closed=True))
    if b.chance(0.5):
        attributes["kernel_shape"] = kernel
    b.node(op, inputs, group=groups if groups > 1 or b.chance(0.3) else None, **attributes)


@recipe("ConvInteger", weight=2)
def conv_integer(b: Builder, op: str) -> None:
    size, kernel = spatial(b, 2), [b.random.choice((1, 2, 3)) for _ in range(2)]
    left, right = b.dtype(op, "T1"), b.dtype(op, "T2")
    attributes = window(b, 2, size, kernel, op)
    inputs: list[Any] = [b.pick(left, (1, 2, *size)), b.pick(right, (3, 2, *kernel))]
    inputs.append(b.pick(left, ()) if b.chance(0.5) else None)
    b.node(op, inputs, **attributes)


@recipe("ConvTranspose", weight=5)
def conv_transpose(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    rank = b.random.choice((1, 2, 2, 3))
    groups = b.random.choice((1, 1, 2))
    inner, outer = b.random.choice((1, 2, 3)), b.random.choice((1, 2, 3))
    size = [b.random.choice((1, 2, 3, 5)) for _ in range(rank)]
    kernel = [b.random.choice((1, 2, 3)) for _ in range(rank)]
    attributes: dict[str, Any] = {}
    strides = [b.random.choice((1, 1, 2, 3)) for _ in range(rank)]
    if b.chance(0.7):
        attributes["strides"] = strides
    else:
        strides = [1] * rank
    if b.chance(0.2):
        attributes["dilations"] = [b.random.choice((1, 2)) for _ in range(rank)]
    match b.random.choice(("none", "pads", "auto")):
        case "pads":
            attributes["pads"] = [
                b.random.randint(0, (kernel[k % rank] - 1) // 2) for k in range(2 * rank)
            ]
        case "auto" if "dilations" not in attributes and all(
            k >= s for k, s in zip(kernel, strides, strict=True)
        ):
            attributes["auto_pad"] = b.random.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        case _:
            pass
    if b.chance(0.3) and "auto_pad" not in attributes:
        attributes["output_padding"] = [b.random.randrange(s) for s in strides]
    inputs = [
        b.pick(dtype, (b.random.choice((1, 2)), groups * inner, *size), sane=True),
        b.pick(dtype, (groups * inner, outer, *kernel), sane=True, computed=0.15, closed=True),
    ]
    if b.chance(0.5):
        inputs.append(b.pick(dtype, (groups * outer,), sane=True, computed=0.15, closed=True))
    b.node(op, inputs, group=groups if groups > 1 else None, **attributes)


@recipe("MaxPool", "AveragePool", "LpPool", weight=6)
def pool(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    rank = b.random.choice((1, 2, 2, 3))
    size = spatial(b, rank)
    kernel = [min(b.random.choice((1, 2, 3)), s) for s in size]
    attributes = window(b, rank, size, kernel, op)
    schema = b.schema(op)
    if "ceil_mode" in schema.attributes and "auto_pad" not in attributes:
        attributes["ceil_mode"] = b.random.choice((None, 0, 1))
    if op == "AveragePool":
        attributes["count_include_pad"] = b.random.choice((None, 0, 1))
    if op == "LpPool":
        attributes["p"] = b.random.choice((None, 1, 2, 3))
    outputs = 1
    if op == "MaxPool" and b.opset >= 8 and b.chance(0.3):
        outputs = 2
        attributes["storage_order"] = b.random.choice((None, 0, 1))
    x = b.pick(
        dtype,
        (b.random.choice((1, 2)), b.random.choice((1, 2, 3, 8, 17)), *size),
        sane=op != "MaxPool",
        test=b.mostly(lambda a: not has_nan(a)) if op == "MaxPool" else None,
    )
    b.node(op, [x], outputs, kernel_shape=kernel, **attributes)


@recipe("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", weight=3)
def global_pool(b: Builder, op: str) -> None:
    test = b.mostly(lambda a: not has_nan(a)) if op == "GlobalMaxPool" else None
    x = b.pick(b.dtype(op), low=3, sane=op != "GlobalMaxPool", test=test)
    if not x.array.size:
        raise Skip
    p = b.random.choice((None, 1, 2, 3)) if op == "GlobalLpPool" else None
    b.node(op, [x], p=p)


@recipe("MaxRoiPool", weight=1)
def max_roi_pool(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), (1, 2, 6, 6))
    rois = np.array(
        [
            [
                0,
                *sorted((b.random.randint(0, 2), b.random.randint(0, 2))),
                *sorted((b.random.randint(3, 5), b.random.randint(3, 5))),
            ]
            for _ in "ab"
        ]
    )
    b.node(op, [x, b.leaf(rois.astype(x.array.dtype))], pooled_shape=[2, 2])


@recipe("RoiAlign", weight=2)
def roi_align(b: Builder, op: str) -> None:
    dtype = b.dtype(op, "T1")
    x = b.pick(dtype, (2, 2, 6, 5), sane=True)
    rois = np.array([[0.5, 0.75, 3.25, 4.5], [1, 0, 4, 3.5]]).astype(dtype)
    at = b.leaf(np.array([b.random.randint(0, 1) for _ in "ab"], np.int64))
    attributes: dict[str, Any] = {"output_height": 2, "output_width": 3}
    attributes["mode"] = b.random.choice((None, "avg", "max"))
    attributes["sampling_ratio"] = b.random.choice((None, 1, 2))
    if b.opset >= 16:
        attributes["coordinate_transformation_mode"] = b.random.choice(
            (None, "half_pixel", "output_half_pixel")
        )
    b.node(op, [x, b.leaf(rois), at], **attributes)


@recipe("MaxUnpool", weight=2)
def max_unpool(b: Builder, op: str) -> None:
    dtype = b.dtype(op, "T1")
    shape = (1, 2, 2, 3)
    places = b.random.sample(range(4 * 6), 6) + b.random.sample(range(24, 48), 6)
    at = np.array(places, np.int64).reshape(shape)
    b.node(op, [b.pick(dtype, shape), b.leaf(at)], kernel_shape=[2, 2], strides=[2, 2])


@recipe("Resize", "Upsample", weight=5)
def resize(b: Builder, op: str) -> None:
    rank = b.random.choice((1, 2, 3, 4, 4))
    if op == "Upsample":
        if b.opset not in (7, 8, 9):
            raise Skip
        x = b.pick(
            b.dtype(op),
            low=rank,
            high=rank,
            sane=True,
            test=b.mostly(lambda a: bool(a.size) and is_finite(a)),
        )
        if not x.array.size:
            raise Skip
        scales = [b.random.choice((1.0, 2.0, 1.5, 3.0)) for _ in range(rank)]
        mode = "nearest"
        if rank == 4 and b.chance(0.5):
            mode, scales[:2] = "linear", [1.0, 1.0]
        if b.opset < 9:
            b.node(op, [x], scales=scales, mode=mode)
        else:
            b.node(op, [x, b.parameter(scales, np.float32)], mode=mode)
        return
    dtype = b.dtype(op, "T" if b.opset < 11 else "T1")
    modes = ("nearest", "linear", "cubic") if b.opset >= 11 else ("nearest", "linear")
    mode = b.random.choice(modes)
    test = None if mode == "nearest" else b.mostly(is_finite)
    x = b.pick(dtype, low=rank, high=rank, sane=True, test=test)
    if not x.array.size:
        raise Skip
    shape = x.array.shape
    changed = b.random.sample(
        range(rank), 1 if mode == "nearest" and b.chance(0.5) else min(rank, 2)
    )
    if mode != "nearest":
        changed = list(range(rank))[-2:]
    sizes = [
        b.random.choice((s, s * 2, s + 1, max(s - 1, 1), 2 * s + 1)) if k in changed else s
        for k, s in enumerate(shape)
    ]
    scales = [
        b.random.choice((2.0, 0.5, 1.5, 3.0, 0.75)) if k in changed else 1.0 for k in range(rank)
    ]
    if any(int(s * f) == 0 for s, f in zip(shape, scales, strict=True)):
        scales = [max(f, 1.0) for f in scales]
    if b.opset < 11:
        b.node(op, [x, b.parameter(scales, np.float32)], mode=mode)
        return
    attributes: dict[str, Any] = {"mode": mode}
    modes = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]
    if b.opset < 13:
        modes.append("tf_half_pixel_for_nn")
    if b.opset >= 19:
        modes.append("half_pixel_symmetric")
    attributes["coordinate_transformation_mode"] = b.random.choice((None, *modes))
    if mode == "nearest":
        rounding = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
        attributes["nearest_mode"] = b.random.choice((None, *rounding))
    if mode == "cubic":
        attributes["exclude_outside"] = b.random.choice((None, 0, 1))
        attributes["cubic_coeff_a"] = b.random.choice((None, -0.5))
    if b.opset >= 18 and mode != "nearest" and b.chance(0.3):
        attributes["antialias"] = 1
    if b.opset >= 18 and b.chance(0.2):
        axes = sorted(changed)
        attributes["axes"] = axes
        sizes, scales = [sizes[a] for a in axes], [scales[a] for a in axes]
    roi: Any = None if b.opset >= 13 else b.leaf(np.zeros(0, np.float32), 0)
    if b.chance(0.5):
        if b.opset < 13:
            b.node(
                op, [x, roi, b.leaf(np.zeros(0, np.float32), 0), b.parameter(sizes)], **attributes
            )
        else:
            b.node(op, [x, roi, None, b.parameter(sizes)], **attributes)
    else:
        b.node(op, [x, roi, b.parameter(scales, np.float32)], **attributes)


@recipe("GridSample", weight=3)
def grid_sample(b: Builder, op: str) -> None:
    dtype = b.dtype(op, "T1", "fiu")
    other = b.dtype(op, "T2")
    rank = 2 if b.opset < 20 else b.random.choice((2, 2, 3))
    x = b.pick(
        dtype,
        (b.random.choice((1, 2)), 2, *([4, 5, 3][:rank])),
        sane=True,
        test=b.mostly(is_finite),
    )
    grid = b.array(other, (x.array.shape[0], *([3, 2, 2][:rank]), rank), True)
    modes = ("bilinear", "nearest", "bicubic") if b.opset < 20 else ("linear", "nearest", "cubic")
    if rank == 3:
        modes = modes[:2]
    b.node(
        op,
        [x, b.leaf(np.clip(np.nan_to_num(grid), -1.5, 1.5).astype(other))],
        mode=b.random.choice(modes),
        padding_mode=b.random.choice((None, "zeros", "border", "reflection")),
        align_corners=b.random.choice((None, 0, 1)),
    )


@recipe("AffineGrid", weight=2)
def affine_grid(b: Builder, op: str) -> None:
    dtype = b.dtype(op, "T1")
    rank = b.random.choice((2, 3))
    n = b.random.choice((1, 2))
    theta = b.pick(dtype, (n, rank, rank + 1), sane=True)
    b.node(
        op,
        [theta, b.parameter([n, 2, *([3, 4, 2][:rank])])],
        align_corners=b.random.choice((None, 0, 1)),
    )


@recipe("Col2Im", weight=2)
def col2im(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    image, block = [5, 4], [2, b.random.choice((1, 2))]
    columns = (5 - 2 + 1) * (4 - block[1] + 1)
    x = b.pick(dtype, (1, 2 * 2 * block[1], columns), sane=True)
    b.node(op, [x, b.parameter(image), b.parameter(block)])


# Recurrent


@recipe("RNN", "GRU", "LSTM", weight=3)
def recurrent(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    steps, batch, size, hidden = (b.random.choice((1, 2, 3)) for _ in range(4))
    direction = b.random.choice((None, "forward", "reverse", "bidirectional"))
    count = 2 if direction == "bidirectional" else 1
    inputs: list[Any] = [
        b.pick(dtype, (steps, batch, size), sane=True),
        b.pick(dtype, (count, gates * hidden, size), sane=True, computed=0.1, closed=True),
        b.pick(dtype, (count, gates * hidden, hidden), sane=True, computed=0.1, closed=True),
    ]
    inputs.append(
        b.pick(dtype, (count, 2 * gates * hidden), sane=True, closed=True)
        if b.chance(0.5)
        else None
    )
    inputs.append(None)
    if b.chance(0.2):
        inputs[-1] = b.parameter([b.random.randint(1, steps) for _ in range(batch)], np.int32)
    state = (count, batch, hidden)
    inputs.append(b.pick(dtype, state, sane=True, closed=True) if b.chance(0.4) else None)
    if op == "LSTM":
        inputs.append(b.pick(dtype, state, sane=True, closed=True) if b.chance(0.4) else None)
        if b.chance(0.3):
            inputs.append(b.pick(dtype, (count, 3 * hidden), sane=True))
    attributes: dict[str, Any] = {}
    if op == "GRU":
        attributes["linear_before_reset"] = b.random.choice((None, 0, 1))
    outputs = 3 if op == "LSTM" else 2
    absent = [k for k in range(outputs) if b.chance(0.3)]
    if len(absent) == outputs:
        absent = []
    b.node(op, inputs, outputs, absent, hidden_size=hidden, direction=direction, **attributes)


# Quantization


@recipe("QuantizeLinear", "DequantizeLinear", weight=4)
def quantize(b: Builder, op: str) -> None:
    wide = (
        [t for t in b.types(op, "T1" if op == "QuantizeLinear" and b.opset >= 19 else "T")]
        if False
        else [F32]
    )
    dtype = b.random.choice((U8, I8))
    if b.opset >= 21 and b.chance(0.2):
        dtype = np.dtype(b.random.choice((np.int16, np.uint16)))
    source = wide[0] if op == "QuantizeLinear" else dtype
    if op == "DequantizeLinear" and b.chance(0.1):
        source = dtype = I32
    x = b.pick(source, sane=True)
    shape: tuple[int, ...] = ()
    axis = None
    if b.opset >= 13 and x.array.ndim and b.chance(0.4):
        axis = b.axis(x.array.ndim)
        shape = (x.array.shape[axis],)
    scale = b.leaf(
        (np.abs(b.array(F32, shape, True)) + np.float32(0.25)).clip(0.1, 4).astype(np.float32), 0.2
    )
    if np.isnan(scale.array).any():
        raise Skip
    point: Any = b.leaf(b.array(dtype, shape), 0.2) if b.chance(0.7) else None
    if dtype == I32 and point is not None:
        point = b.leaf(np.zeros(shape, np.int32), 0.2)
    if op == "QuantizeLinear" and point is None and dtype != U8:
        point = b.leaf(np.zeros(shape, dtype), 0)
    if op == "QuantizeLinear" and has_nan(x.array):
        raise Skip
    b.node(op, [x, scale, point], axis=axis)


@recipe("DynamicQuantizeLinear", weight=2)
def dynamic_quantize(b: Builder, op: str) -> None:
    x = b.pick(F32, sane=True, test=b.mostly(lambda a: bool(a.any() and np.isfinite(a).all())))
    b.node(op, [x], 3)


@recipe("QLinearMatMul", "QLinearConv", weight=2)
def quantized_product(b: Builder, op: str) -> None:
    kinds = [b.random.choice((U8, I8)), b.random.choice((U8, I8))]
    output = b.random.choice((U8, I8))
    if op == "QLinearConv":
        output = kinds[0]
    attributes: dict[str, Any] = {}
    if op == "QLinearMatMul":
        m, k, n = b.dim(), b.dim(), b.dim()
        shapes = [(m, k), (k, n)]
    else:
        size, kernel = spatial(b, 2), [b.random.choice((1, 2, 3)) for _ in range(2)]
        attributes = window(b, 2, size, kernel, op)
        shapes = [(1, 2, *size), (3, 2, *kernel)]
    inputs: list[Any] = []
    for kind, shape in zip(kinds, shapes, strict=True):
        scale = b.leaf(np.array(b.random.choice((0.5, 0.1, 0.03)), np.float32), 0.1)
        inputs += [b.pick(kind, shape), scale, b.leaf(b.array(kind, ()), 0.1)]
    inputs += [
        b.leaf(np.array(b.random.choice((0.5, 0.1)), np.float32), 0.1),
        b.leaf(b.array(output, ()), 0.1),
    ]
    b.node(op, inputs, **attributes)


# Signals, losses and the rest


@recipe("HannWindow", "HammingWindow", "BlackmanWindow", weight=1)
def signal_window(b: Builder, op: str) -> None:
    size = b.parameter(b.random.randint(3, 9), b.random.choice((np.int64, np.int32)))
    b.node(op, [size], periodic=b.random.choice((None, 0, 1)))


@recipe("DFT", weight=2)
def dft(b: Builder, op: str) -> None:
    dtype = b.random.choice((F32, F32, F64))
    rank = b.random.choice((1, 2))
    parts = b.random.choice((1, 2))
    x = b.pick(
        dtype,
        (b.random.choice((1, 2)), *(b.random.randint(2, 6) for _ in range(rank)), parts),
        sane=True,
        test=b.mostly(is_finite),
        closed=True,
    )
    inverse = b.random.choice((None, 0, 1)) if parts == 2 else None
    onesided = b.random.choice((None, 0, 1)) if parts == 1 else None
    length = b.parameter(b.random.randint(2, 7)) if b.chance(0.3) else None
    axis = b.random.randint(1, rank)
    if b.opset < 20:
        b.node(op, [x, length], axis=axis, inverse=inverse, onesided=onesided)
    else:
        b.node(op, [x, length, b.parameter(axis)], inverse=inverse, onesided=onesided)


@recipe("STFT", weight=1)
def stft(b: Builder, op: str) -> None:
    x = b.pick(F32, (1, b.random.choice((12, 16)), 1), sane=True, test=b.mostly(is_finite))
    size = b.random.choice((4, 5))
    window_ = b.pick(F32, (size,), sane=True, test=is_finite) if b.chance(0.6) else None
    length = None if window_ is not None and b.chance(0.5) else b.leaf(np.array(size, np.int64), 0)
    b.node(
        op,
        [x, b.parameter(b.random.randint(2, 4)), window_, length],
        onesided=b.random.choice((None, 0, 1)),
    )


@recipe("MelWeightMatrix", weight=1)
def mel(b: Builder, op: str) -> None:
    numbers = [b.parameter(n) for n in (b.random.randint(3, 6), b.random.choice((16, 32)), 8000)]
    edges = [b.parameter(n, np.float32) for n in (b.random.choice((0.0, 100.0)), 3000.0)]
    b.node(op, [*numbers, *edges])


@recipe("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", weight=2)
def loss(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    classes, rest = b.random.randint(2, 5), b.shape(b.random.choice((0, 1, 2)))
    batch = b.random.randint(1, 3)
    x = b.pick(dtype, (batch, classes, *rest), sane=True)
    target = b.leaf(indices(b, b.random.choice((I64, I32)), (batch, *rest), classes, False))
    weights = b.pick(dtype, (classes,), sane=True) if b.chance(0.4) else None
    outputs = 2 if op == "SoftmaxCrossEntropyLoss" and b.chance(0.3) else 1
    b.node(
        op,
        [x, target, weights],
        outputs,
        reduction=b.random.choice((None, "none", "mean", "sum")),
        ignore_index=b.random.choice((None, None, 0, 1)),
    )


@recipe("NonMaxSuppression", weight=2)
def non_max_suppression(b: Builder, op: str) -> None:
    n = b.random.randint(1, 6)
    corners = np.array([[b.random.random() * 3 for _ in range(4)] for _ in range(n)])
    boxes = np.concatenate([corners[:, :2], corners[:, :2] + corners[:, 2:] + 0.1], 1)
    inputs: list[Any] = [
        b.leaf(boxes[None].astype(np.float32)),
        b.leaf(np.array([[[b.random.random() for _ in range(n)]]], np.float32)),
    ]
    inputs.append(b.parameter([b.random.randint(1, 4)]) if b.chance(0.9) else None)
    inputs.append(
        b.parameter([b.random.choice((0.3, 0.5, 0.0))], np.float32) if b.chance(0.7) else None
    )
    inputs.append(b.parameter([b.random.choice((0.3, 0.5))], np.float32) if b.chance(0.5) else None)
    b.node(op, inputs, center_point_box=b.random.choice((None, 0, 1)))


@recipe("Dropout", weight=2)
def dropout(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op))
    if b.opset < 12:
        b.node(op, [x], ratio=b.random.choice((None, 0.5)))
        return
    ratio = b.leaf(np.array(0.5, np.float32), 0.2) if b.chance(0.5) else None
    training = b.leaf(np.array(False), 0) if b.chance(0.2) else None
    b.node(op, [x, ratio, training], b.random.choice((1, 1, 2)))


@recipe("Attention", weight=3)
def attention(b: Builder, op: str) -> None:
    dtype = b.dtype(op, "T1")
    batch, heads, size, wide = (b.random.randint(1, 3) for _ in range(4))
    queries, keys = b.random.randint(1, 5), b.random.randint(1, 5)
    group = b.random.choice((1, 1, 2))
    kinds = [(heads * group, queries, wide), (heads, keys, wide), (heads, keys, size)]
    inputs: list[Any] = [b.pick(dtype, (batch, *kind), sane=True) for kind in kinds]
    if b.chance(0.4):
        mask = b.random.choice((BOOL, dtype))
        inputs.append(
            b.pick(mask, b.random.choice(((queries, keys), (batch, 1, queries, keys))), sane=True)
        )
    b.node(
        op,
        inputs,
        is_causal=b.random.choice((None, 0, 1)),
        scale=b.random.choice((None, 0.5)),
        softcap=b.random.choice((None, None, 2.0)),
    )


@recipe("RotaryEmbedding", weight=2)
def rotary(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    batch, heads, length, size = (
        1,
        b.random.randint(1, 2),
        b.random.randint(1, 4),
        b.random.choice((2, 4, 8)),
    )
    x = b.pick(dtype, (batch, heads, length, size), sane=True)
    tables = [b.pick(dtype, (5, size // 2), sane=True) for _ in range(2)]
    at = b.leaf(indices(b, I64, (batch, length), 5, False))
    b.node(op, [x, *tables, at], interleaved=b.random.choice((None, 0, 1)))


@recipe("TensorScatter", weight=1)
def tensor_scatter(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, (2, 1, 4, 3))
    y = b.pick(dtype, (2, 1, 2, 3))
    at = (
        b.leaf(np.array([b.random.randint(0, 2) for _ in "ab"], np.int64))
        if b.chance(0.8)
        else None
    )
    b.node(op, [x, y, at], mode=b.random.choice((None, "linear", "circular")))


# Sequences


@recipe("SequenceConstruct", weight=2)
def sequence(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, low=1)
    items = [x, *(b.pick(dtype, x.array.shape) for _ in range(b.random.randint(0, 2)))]
    (made,) = b.node(op, items)
    if b.chance(0.3):
        (made,) = b.node("SequenceInsert", [made, x, b.leaf(np.array(0, np.int64), 0)])
        items.insert(0, x)
    match b.random.choice(("at", "length", "concat", "stack")):
        case "at":
            at = b.random.randrange(-len(items), len(items))
            b.node("SequenceAt", [made, b.parameter(at)])
        case "length":
            b.node("SequenceLength", [made])
        case "concat":
            b.node("ConcatFromSequence", [made], axis=b.random.randrange(x.array.ndim))
        case _:
            b.node("ConcatFromSequence", [made], axis=0, new_axis=1)


@recipe("SplitToSequence", weight=2)
def split_to_sequence(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1, test=lambda a: bool(a.size), closed=True)
    axis = b.axis(x.array.ndim)
    size = b.random.randint(1, x.array.shape[axis])
    parts = b.leaf(np.array(size, np.int64), 0) if b.chance(0.5) else None
    keep = b.random.choice((None, 0, 1)) if parts is None else None
    (made,) = b.node(op, [x, parts], axis=axis, keepdims=keep)
    b.node("SequenceAt", [made, b.leaf(np.array(0, np.int64), 0)])


# Control flow


def body(b: Builder, count: int) -> Builder:
    """A graph inside, with some nodes."""
    if b.depth >= 2:
        raise Skip
    inner = Builder(b.random, b.opset, b)
    return inner


def like(inner: Builder, value: Value, same_shape: bool = True) -> Value:
    """A value of the body of the type of another one, that a node of the body makes."""
    made = {name for node in inner.nodes for name in node.output}
    able = [
        v
        for v in inner.values
        if v.name in made
        and not isinstance(v.array, list)
        and v.array.dtype == value.array.dtype
        and (not same_shape or v.array.shape == value.array.shape)
        # Results of two ranks are refused unless what follows can go into the branches.
        and (v.array.ndim == value.array.ndim or inner.chance(0.05))
    ]
    if able and inner.chance(0.8):
        return inner.random.choice(able[-3:])
    dtype = value.array.dtype
    if same_shape:
        source = inner.pick(dtype, value.array.shape)
    else:
        source = inner.pick(dtype, low=value.array.ndim, high=value.array.ndim)
    return inner.node("Identity", [source])[0]


@recipe("If", weight=6)
def if_(b: Builder, op: str) -> None:
    condition = b.pick(BOOL, ())
    branches = [body(b, 0) for _ in range(2)]
    first = branches[0]
    first.grow(b.random.randint(1, 3))
    made = {name for node in first.nodes for name in node.output}
    able = [v for v in first.values if v.name in made and not isinstance(v.array, list)]
    if not able:
        raise Skip
    chosen = b.random.sample(able, b.random.randint(1, min(2, len(able))))
    branches[1].grow(b.random.randint(0, 2))
    same = not b.chance(0.2)
    others = distinct(branches[1], [like(branches[1], v, same) for v in chosen])
    pairs = [chosen, others]
    if b.chance(0.5):
        pairs.reverse()
        branches.reverse()
    graphs = [g.graph(b.name("g"), p) for g, p in zip(branches, pairs, strict=True)]
    b.node(op, [condition], len(chosen), then_branch=graphs[0], else_branch=graphs[1])


@recipe("Loop", weight=6)
def loop(b: Builder, op: str) -> None:
    trips = b.random.choice((0, 1, 2, 2, 3, 3, 4))
    trip_count = b.leaf(np.array(trips, np.int64), 0.2) if b.chance(0.85) else None
    condition = (
        b.leaf(np.array(not b.chance(0.1)), 0.2) if b.chance(0.5) or trip_count is None else None
    )
    state = [
        b.pick(b.random.choice((F32, F32, F32, I64, F64, BOOL, I32)))
        for _ in range(b.random.randint(0, 2))
    ]
    inner = body(b, 0)
    step = bind(inner, "i", np.array(0, np.int64))
    going = bind(inner, "k", np.array(True))
    carried = [bind(inner, "s", v.array) for v in state]
    inner.grow(b.random.randint(1, 4))
    following = [like(inner, v) for v in carried]
    # Without a condition the body's own is ignored, says the text, and no witness does so.
    if trip_count is None or (condition is not None and b.chance(0.4)):
        limit = inner.leaf(np.array(b.random.randint(0, 3), np.int64), 0)
        keep = inner.node("Less", [step, limit])[0]
    else:
        keep = (
            inner.node("Identity", [going])[0] if condition is not None or b.chance(0.5) else None
        )
        if keep is None:
            keep = inner.node("Identity", [inner.leaf(np.array(True), 0)])[0]
    made = {name for node in inner.nodes for name in node.output}
    able = [v for v in inner.values if v.name in made and not isinstance(v.array, list)]
    count = b.random.choice((0, 1, 1, 2) if state else (1, 2))
    if trip_count is None and not b.chance(0.05):
        count = 0  # how many elements there may be is not known then, which is refused
    scans = [b.random.choice(able) for _ in range(count)]
    following = distinct(inner, following)
    scans = distinct(inner, scans)
    if not following and not scans:
        raise Skip
    graph = inner.graph(b.name("g"), distinct(inner, [keep, *following, *scans]))
    inputs = [trip_count, condition, *state]
    made_here = b.node(op, inputs, len(following) + len(scans), body=graph)
    # What shape the elements would have that there are none of nobody says.
    if any(not v.array.shape[0] for v in made_here[len(following) :]):
        raise Skip


def distinct(inner: Builder, values: list[Value]) -> list[Value]:
    """The values, of which none is there twice."""
    found: list[Value] = []
    for value in values:
        if value.name in [v.name for v in found] or value.name in inner.inputs:
            value = inner.node("Identity", [value])[0]
        found.append(value)
    return found


def bind(inner: Builder, prefix: str, array: Any) -> Value:
    """An argument of a body."""
    value = Value(inner.name(prefix), np.asarray(array))
    inner.inputs[value.name] = value.array
    inner.values.append(value)
    return value


@recipe("Scan", weight=4)
def scan(b: Builder, op: str) -> None:
    if b.opset < 9:
        raise Skip
    length = b.random.choice((1, 2, 3))
    state = [b.pick(F32) for _ in range(b.random.randint(0, 2))]
    count = b.random.randint(1, 2)
    rest = [b.shape(None, 0, 2) for _ in range(count)]
    axes = [b.random.randint(0, len(shape)) for shape in rest] if b.chance(0.3) else [0] * count
    types = [b.random.choice((F32, F32, I64, F64)) for _ in rest]
    scanned = [
        b.pick(t, (*s[:a], length, *s[a:])) for t, s, a in zip(types, rest, axes, strict=True)
    ]
    inner = body(b, 0)
    carried = [bind(inner, "s", v.array) for v in state]
    for value, axis in zip(scanned, axes, strict=True):
        bind(inner, "e", np.take(value.array, 0, axis))
    inner.grow(b.random.randint(1, 3))
    following = [like(inner, v) for v in carried]
    made = {name for node in inner.nodes for name in node.output}
    able = [v for v in inner.values if v.name in made and not isinstance(v.array, list)]
    if not able:
        raise Skip
    outs = [b.random.choice(able) for _ in range(b.random.randint(0 if state else 1, 2))]
    graph = inner.graph(b.name("g"), distinct(inner, [*following, *outs]))
    directions = [b.random.randint(0, 1) for _ in scanned] if b.chance(0.3) else None
    out_directions = [b.random.randint(0, 1) for _ in outs] if outs and b.chance(0.3) else None
    out_axes = [b.random.randint(0, v.array.ndim) for v in outs] if outs and b.chance(0.3) else None
    b.node(
        op,
        [*state, *scanned],
        len(following) + len(outs),
        body=graph,
        num_scan_inputs=count,
        scan_input_axes=axes if any(axes) else None,
        scan_input_directions=directions,
        scan_output_directions=out_directions,
        scan_output_axes=out_axes,
    )
