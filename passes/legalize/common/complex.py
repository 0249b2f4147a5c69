"""Complex numbers as pairs of real tensors: their arithmetic and their functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.passes.legalize.common.special import angle_of, apply, hypot
from lowerdeck.passes.legalize.tensor_value import TensorValue

Parts: TypeAlias = "tuple[TensorValue, TensorValue]"
"""The real and the imaginary part."""


def times(x: Parts, y: Parts) -> Parts:
    """(a + b i) (c + d i) = ac - bd + (ad + bc) i"""
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


def over(x: Parts, y: Parts) -> Parts:
    """(a + b i) (c - d i) / (c^2 + d^2), with c and d by the larger of them, against overflow."""
    (a, b), (c, d) = x, y
    size = c.abs().maximum(d.abs())
    c, d = c / size, d / size
    norm = (c * c + d * d) * size
    return (a * c + b * d) / norm, (b * c - a * d) / norm


def squared(x: Parts) -> Parts:
    """(a - b) (a + b) + 2 ab i"""
    a, b = x
    return (a - b) * (a + b), a * b * 2


def reciprocal(x: Parts) -> Parts:
    """1 / x"""
    return over((x[0] * 0 + 1, x[0] * 0), x)


def root(x: Parts) -> Parts:
    """The square root whose real part is not negative."""
    a, b = x
    size = hypot(a, b)
    real, imaginary = (apply(SqrtOp, (size + side).maximum(0) * 0.5) for side in (a, -a))
    return real, b.lt(0).where(-imaginary, imaginary)


def exponential(x: Parts) -> Parts:
    """e^a (cos b + i sin b); a real number has a real power."""
    size = x[0].exp()
    return size * x[1].cos(), x[1].eq(0).where(x[1], size * x[1].sin())


def logarithm(x: Parts) -> Parts:
    """That of the length, and the angle."""
    return hypot(*x).log(), angle_of(x[1], x[0])


def sign(x: Parts) -> Parts:
    """The number of the same angle whose length is one; zero of zero."""
    size = hypot(*x)
    size = size.eq(0).where(size + 1, size)
    return x[0] / size, x[1] / size


def power(x: Parts, y: Parts) -> Parts:
    """exp(y log(x)); of zero, one for the exponent zero, else zero."""
    found = exponential(times(logarithm(x), y))
    zero = TensorValue.number(x[0].builder, 0, x[0].element)
    is_zero = x[0].eq(0) & x[1].eq(0)
    one = (y[0].eq(0) & y[1].eq(0)).where(zero + 1, zero)
    return is_zero.where(one, found[0]), is_zero.where(zero, found[1])


def _hyperbolic(x: Parts) -> tuple[Parts, Parts]:
    """The hyperbolic sine and cosine."""
    a, b = x
    up, down = a.exp() * 0.5, (-a).exp() * 0.5
    sine, cosine = up - down, up + down
    return (sine * b.cos(), cosine * b.sin()), (cosine * b.cos(), sine * b.sin())


def _turned(x: Parts) -> Parts:
    """i x"""
    return -x[1], x[0]


def _turned_back(x: Parts) -> Parts:
    """-i x"""
    return x[1], -x[0]


def _sigmoid(x: Parts) -> Parts:
    real, imaginary = exponential((-x[0], -x[1]))
    return reciprocal((real + 1, imaginary))


FUNCTIONS: Mapping[str, Callable[[Parts], Parts]] = {
    "exp": exponential,
    "log": logarithm,
    "sqrt": root,
    "rsqrt": lambda x: reciprocal(root(x)),
    "sgn": sign,
    "square": squared,
    "reciprocal": reciprocal,
    "sinh": lambda x: _hyperbolic(x)[0],
    "cosh": lambda x: _hyperbolic(x)[1],
    "tanh": lambda x: over(*_hyperbolic(x)),
    "sin": lambda x: _turned_back(_hyperbolic(_turned(x))[0]),
    "cos": lambda x: _hyperbolic(_turned(x))[1],
    "tan": lambda x: _turned_back(over(*_hyperbolic(_turned(x)))),
    "sigmoid": _sigmoid,
}
"""Functions of one number, by the names of PyTorch."""
