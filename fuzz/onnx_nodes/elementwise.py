"""Elementwise operators, and conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fuzz.onnx_graphs import BOOL, Array, Builder, Skip, Value, is_float, recipe, type_of


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
