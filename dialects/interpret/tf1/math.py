"""Elementwise operators: arithmetic, comparisons, activations, casts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowerdeck.dialects.interpret.tf1.registry import (
    KERNELS,
    Array,
    dtype_of,
    fail,
    kernel,
    require,
    where,
)
from lowerdeck.dialects.tf1.ops import Tf1Op

SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def _special(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of one number, computed in double precision for every element."""

    def apply(x: Array) -> Array:
        values = [function(float(item)) for item in x.reshape(-1)]
        return np.array(values, np.float64).reshape(x.shape).astype(x.dtype)

    return apply


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


def _softplus(x: Array) -> Array:
    return (np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))).astype(x.dtype)


def _round(x: Array) -> Array:
    """Half to even; integers stay."""
    return x if x.dtype.kind in "iu" else np.rint(x)


def _elu(x: Array) -> Array:
    return where(x < 0, np.expm1(np.minimum(x, 0)), x).astype(x.dtype)


def _selu(x: Array) -> Array:
    scale, alpha = x.dtype.type(SELU_SCALE), x.dtype.type(SELU_SCALE * SELU_ALPHA)
    return where(x < 0, alpha * np.expm1(np.minimum(x, 0)), scale * x).astype(x.dtype)


def _relu6(x: Array) -> Array:
    return np.minimum(np.maximum(x, x.dtype.type(0)), x.dtype.type(6))


_UNARY: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Neg": np.negative,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Sqrt": np.sqrt,
    "Rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
    "Square": lambda x: x * x,
    "Reciprocal": lambda x: x.dtype.type(1) / x,
    "Inv": lambda x: x.dtype.type(1) / x,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Tanh": np.tanh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Sigmoid": sigmoid,
    "Softplus": _softplus,
    "Softsign": lambda x: x / (x.dtype.type(1) + np.abs(x)),
    "Erf": _special(math.erf),
    "Erfc": _special(math.erfc),
    "Lgamma": _special(_lgamma),
    "Ceil": np.ceil,
    "Floor": np.floor,
    "Round": _round,
    "Rint": np.rint,
    "Sign": np.sign,
    "Elu": _elu,
    "Selu": _selu,
    "Relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "Relu6": _relu6,
    "IsNan": np.isnan,
    "IsInf": np.isinf,
    "IsFinite": np.isfinite,
    "LogicalNot": np.logical_not,
    "Invert": np.invert,
    "Conj": np.conj,
    "Real": np.real,
    "Imag": np.imag,
}


def _trunc_divide(x: Array, y: Array) -> Array:
    """Towards zero, as in C."""
    quotient = np.floor_divide(x, y)
    return quotient + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(quotient.dtype)


def _divide(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return x / y
    _refuse_zero(y)
    return _trunc_divide(x, y)


def _floor_divide(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return np.floor(x / y)
    _refuse_zero(y)
    return np.floor_divide(x, y)


def _truncate_mod(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        _refuse_zero(y)
    return np.fmod(x, y)


def _floor_mod(x: Array, y: Array) -> Array:
    rest = _truncate_mod(x, y)
    return where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest).astype(rest.dtype)


def _refuse_zero(divisor: Array) -> None:
    require(np.all(divisor != 0), "an integer is divided by zero")


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu" and np.any(y < 0):
        fail("an integer is raised to a negative power")
    return np.power(x, y)


def _unless_zero(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Zero where the first operand is, whatever the function gives there."""

    def apply(x: Array, y: Array) -> Array:
        return where(x == 0, x.dtype.type(0), function(x, y)).astype(x.dtype)

    return apply


def _shift_amount(x: Array, y: Array) -> Array:
    """Within the width of the type; TensorFlow leaves other amounts open and clamps them."""
    return np.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(x.dtype)


def _safe_divide(x: Array, y: Array) -> Array:
    """Zero where the divisor is zero."""
    zero = y == 0
    return where(zero, x.dtype.type(0), x / where(zero, y.dtype.type(1), y)).astype(x.dtype)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "MulNoNan": lambda x, y: where(y == 0, y.dtype.type(0), x * y).astype(x.dtype),
    "Div": _divide,
    "RealDiv": np.divide,
    "DivNoNan": _safe_divide,
    "FloorDiv": _floor_divide,
    "FloorMod": _floor_mod,
    "Mod": _truncate_mod,
    "TruncateDiv": _divide,
    "TruncateMod": _truncate_mod,
    "Pow": _power,
    "SquaredDifference": lambda x, y: (x - y) * (x - y),
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Atan2": np.arctan2,
    "NextAfter": np.nextafter,
    "Xlogy": _unless_zero(lambda x, y: x * np.log(y)),
    "Xlog1py": _unless_zero(lambda x, y: x * np.log1p(y)),
    "Xdivy": _unless_zero(np.divide),
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "LeftShift": lambda x, y: np.left_shift(x, _shift_amount(x, y)),
    "RightShift": lambda x, y: np.right_shift(x, _shift_amount(x, y)),
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
}


def _register_tables() -> None:
    for name, unary in _UNARY.items():
        KERNELS[name] = lambda _, args, unary=unary: unary(args[0])
    for name, binary in _BINARY.items():
        KERNELS[name] = lambda _, args, binary=binary: binary(args[0], args[1])


_register_tables()


@kernel("Equal", "NotEqual")
def run_equal(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Shapes that do not broadcast are an error, or unequal as a whole."""
    x, y = args
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        if op.attr("incompatible_shape_error"):
            raise
        return np.array(op.op_type == "NotEqual")
    return np.equal(x, y) if op.op_type == "Equal" else np.not_equal(x, y)


@kernel("ApproximateEqual")
def run_approximate_equal(op: Tf1Op, args: Sequence[Any]) -> Array:
    """|x - y| < tolerance"""
    return np.abs(args[0] - args[1]) < op.attr("tolerance")


@kernel("LeakyRelu")
def run_leaky_relu(op: Tf1Op, args: Sequence[Any]) -> Array:
    """x where positive, else alpha * x"""
    x = args[0]
    return where(x > 0, x, x * x.dtype.type(op.attr("alpha"))).astype(x.dtype)


@kernel("Cast")
def run_cast(op: Tf1Op, args: Sequence[Any]) -> Array:
    """As C casts: floats lose their fraction, and everything but zero is true."""
    require(not op.attr("Truncate"), "casts that cut off digits are not supported")
    x, dtype = args[0], dtype_of(op, "DstT")
    if dtype.kind == "b":
        return x != 0
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return _float_to_integer(x, dtype)
    return x.real.astype(dtype) if x.dtype.kind == "c" and dtype.kind != "c" else x.astype(dtype)


def _float_to_integer(x: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers outside of 64 bits become the least one, as on x86; others lose their upper bits."""
    wide = np.trunc(x.astype(np.float64))
    if dtype == np.uint64:
        return wide.astype(np.uint64)
    limit = 2.0**31 if dtype.itemsize <= 4 and dtype != np.uint32 else 2.0**63
    inside = (wide >= -limit) & (wide < limit)
    return where(inside, wide, -limit).astype(np.int64).astype(dtype)


@kernel("Select")
def run_select(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Element by element, or row by row for a vector of conditions."""
    condition, x, y = args
    require(x.shape == y.shape, f"found the shapes {x.shape} and {y.shape}, expected one")
    if condition.ndim == 1 and x.ndim > 1:
        condition = condition.reshape(-1, *[1] * (x.ndim - 1))
        require(len(condition) == len(x), f"{len(condition)} conditions for {len(x)} rows")
    elif condition.ndim:
        require(condition.shape == x.shape, "the condition has another shape")
    return where(condition, x, y)


@kernel("SelectV2")
def run_select_v2(_: Tf1Op, args: Sequence[Any]) -> Array:
    """With broadcasting."""
    return where(*args)


@kernel("ClipByValue")
def run_clip(_: Tf1Op, args: Sequence[Any]) -> Array:
    """min(max(t, low), high)"""
    return np.minimum(np.maximum(args[0], args[1]), args[2])


@kernel("AddN", "AccumulateNV2")
def run_add_n(_: Tf1Op, args: Sequence[Any]) -> Array:
    """In order, without broadcasting."""
    require(all(x.shape == args[0].shape for x in args), "the shapes are not equal")
    total = args[0]
    for x in args[1:]:
        total = total + x
    return total


@kernel("Complex")
def run_complex(op: Tf1Op, args: Sequence[Any]) -> Array:
    """A complex number from its parts."""
    return (args[0] + 1j * args[1]).astype(dtype_of(op, "Tout"))


@kernel("ComplexAbs")
def run_complex_abs(_: Tf1Op, args: Sequence[Any]) -> Array:
    """The length of a complex number."""
    return np.abs(args[0])


@kernel("Bitcast")
def run_bitcast(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The same bytes; a last dimension appears or vanishes where the sizes differ."""
    x, dtype = np.ascontiguousarray(args[0]).reshape(args[0].shape), dtype_of(op, "type")
    if dtype.itemsize == x.dtype.itemsize:
        return x.view(dtype)
    if dtype.itemsize < x.dtype.itemsize:
        return x[..., None].view(dtype)
    require(
        x.shape[-1:] == (dtype.itemsize // x.dtype.itemsize,), "the last dimension does not fit"
    )
    return x.view(dtype)[..., 0]
