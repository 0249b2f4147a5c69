"""The meaning of constants and of elementwise `core` ops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from lowerdeck.dialects.core import constant, elementwise, quantize
from lowerdeck.dialects.core.enums import Predicate, Rounding
from lowerdeck.dialects.core.types import numpy_dtype
from lowerdeck.dialects.interpret.core_numbers import (
    FLOATS,
    NARROW,
    Array,
    Symbols,
    ints,
    meaning_of,
    numbers,
    rounded,
)
from lowerdeck.dialects.interpret.errors import InterpretError


@meaning_of(constant.ConstantOp)
def _constant(op: constant.ConstantOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return op.array


@meaning_of(constant.FromDimsOp)
def _from_dims(op: constant.FromDimsOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return np.array(numbers(op.values, symbols), np.int64).reshape(ints(op.shape))


@meaning_of(constant.IotaOp)
def _iota(op: constant.IotaOp, args: Sequence[Array], symbols: Symbols) -> Array:
    shape = numbers(op.dims, symbols)
    axis = op.axis.data
    line = np.arange(shape[axis], dtype=np.int64)
    return np.broadcast_to(line.reshape([-1] + [1] * (len(shape) - axis - 1)), shape)


# Elementwise


def _register_unary(
    cls: type[Operation], function: Callable[[Array], Any], *, exact: bool = False
) -> None:
    """`exact` functions need no wider type than float32."""

    def run(op: Operation, args: Sequence[Array], symbols: Symbols) -> Array:
        (x,) = args
        if x.dtype not in FLOATS or (exact and x.dtype not in NARROW):
            return np.asarray(function(x)).astype(x.dtype, copy=False)
        wide = np.float32 if exact else np.float64
        return rounded(function(x.astype(wide)), x.dtype)

    meaning_of(cls)(run)


def _not(x: Array) -> Array:
    return np.logical_not(x) if x.dtype == np.bool_ else np.invert(x)


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _short_erf(x: Array) -> Array:
    limit = elementwise.SHORT_ERF_LIMIT
    t = np.clip(x, -limit, limit)
    return np.clip(np.polyval(elementwise.SHORT_ERF[::-1], t * t) * t, -1.0, 1.0)


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _rectify(x: Array) -> Array:
    return x - np.where(x < 0, x, x.dtype.type(0))


for _class, _function in (
    (elementwise.NegOp, np.negative),
    (elementwise.AbsOp, np.abs),
    (elementwise.SignOp, np.sign),
    (elementwise.NotOp, _not),
    (elementwise.SqrtOp, np.sqrt),
    (elementwise.FloorOp, np.floor),
    (elementwise.CeilOp, np.ceil),
    (elementwise.RoundOp, np.rint),
    (elementwise.RectifyOp, _rectify),
):
    _register_unary(_class, _function, exact=True)

for _class, _function in (
    (elementwise.ExpOp, np.exp),
    (elementwise.LogOp, np.log),
    (elementwise.ErfOp, _erf),
    (elementwise.ShortErfOp, _short_erf),
    (elementwise.SinOp, np.sin),
    (elementwise.CosOp, np.cos),
    (elementwise.TanOp, np.tan),
    (elementwise.AsinOp, np.arcsin),
    (elementwise.AcosOp, np.arccos),
    (elementwise.AtanOp, np.arctan),
    (elementwise.SinhOp, np.sinh),
    (elementwise.CoshOp, np.cosh),
    (elementwise.TanhOp, np.tanh),
    (elementwise.AsinhOp, np.arcsinh),
    (elementwise.AcoshOp, np.arccosh),
    (elementwise.AtanhOp, np.arctanh),
    (elementwise.SigmoidOp, _sigmoid),
):
    _register_unary(_class, _function)


def _register_binary(
    cls: type[Operation],
    on_floats: Callable[[Array, Array], Any],
    on_integers: Callable[[Array, Array], Any],
    *,
    wide: bool = False,
) -> None:
    """`wide` functions are computed in float64, the others in at least float32."""

    def run(op: Operation, args: Sequence[Array], symbols: Symbols) -> Array:
        x, y = args
        if x.dtype not in FLOATS:
            # One dimension at least: numpy computes scalars by other, complaining rules.
            result = on_integers(np.atleast_1d(x), np.atleast_1d(y))
            shape = np.broadcast_shapes(x.shape, y.shape)
            return np.asarray(result).astype(x.dtype, copy=False).reshape(shape)
        if wide or x.dtype in NARROW:
            kind = np.float64 if wide else np.float32
            return rounded(on_floats(x.astype(kind), y.astype(kind)), x.dtype)
        return np.asarray(on_floats(x, y))

    meaning_of(cls)(run)


def _nonzero_divisor(y: Array) -> Array:
    return np.where(y == 0, y.dtype.type(1), y)


def integer_quotient(x: Array, y: Array) -> Array:
    """Toward zero; by zero, zero."""
    divisor = _nonzero_divisor(y)
    exact = x - np.fmod(x, divisor)
    return np.where(y == 0, x.dtype.type(0), exact // divisor)


def _integer_remainder(x: Array, y: Array) -> Array:
    return np.where(y == 0, x.dtype.type(0), np.fmod(x, _nonzero_divisor(y)))


def _integer_modulo(x: Array, y: Array) -> Array:
    return np.where(y == 0, x.dtype.type(0), np.mod(x, _nonzero_divisor(y)))


def _where(condition: Array, yes: Any, no: Any) -> Array:
    return cast(Array, np.where(condition, yes, no))


def _integer_power(x: Array, y: Array) -> Array:
    """By squaring, modulo 2^width; x to a negative power is the truncated 1 / x^-y."""
    base, exponent = np.broadcast_arrays(x, y)
    one, zero = x.dtype.type(1), x.dtype.type(0)
    odd = (exponent & one) == one
    reciprocal = _where(base == one, one, zero)
    if x.dtype.kind == "i":
        minus_one = x.dtype.type(-1)
        reciprocal = _where(base == minus_one, _where(odd, minus_one, one), reciprocal)
    negative = exponent < zero
    rest = _where(negative, zero, exponent)
    result = np.ones(base.shape, x.dtype)
    while rest.any():
        result = _where((rest & one) == one, result * base, result)
        base = base * base
        rest = rest >> one
    return _where(negative, reciprocal, result)


def _shifted(x: Array, y: Array, shift: Callable[[Array, Array], Array]) -> Array:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    width = unsigned.type(1 if x.dtype == np.bool_ else 8 * x.dtype.itemsize)
    bits, amount = x.view(unsigned), y.view(unsigned)
    fits = amount < width
    shifted = shift(bits, np.where(fits, amount, unsigned.type(0)))
    return np.where(fits, shifted, unsigned.type(0)).view(x.dtype)


def _shift_left(x: Array, y: Array) -> Array:
    return _shifted(x, y, np.left_shift)


def _shift_right(x: Array, y: Array) -> Array:
    return _shifted(x, y, np.right_shift)


for _class, _on_floats, _on_integers in (
    (elementwise.AddOp, np.add, np.add),
    (elementwise.SubOp, np.subtract, np.subtract),
    (elementwise.MulOp, np.multiply, np.multiply),
    (elementwise.DivOp, np.divide, integer_quotient),
    (elementwise.RemOp, np.fmod, _integer_remainder),
    (elementwise.ModOp, np.mod, _integer_modulo),
    (elementwise.MaxOp, np.maximum, np.maximum),
    (elementwise.MinOp, np.minimum, np.minimum),
    (elementwise.AndOp, np.bitwise_and, np.bitwise_and),
    (elementwise.OrOp, np.bitwise_or, np.bitwise_or),
    (elementwise.XorOp, np.bitwise_xor, np.bitwise_xor),
    (elementwise.ShlOp, _shift_left, _shift_left),
    (elementwise.ShrOp, _shift_right, _shift_right),
):
    _register_binary(_class, _on_floats, _on_integers)
_register_binary(elementwise.PowOp, np.power, _integer_power, wide=True)


_PREDICATES: dict[Predicate, Callable[[Array, Array], Any]] = {
    Predicate.EQ: np.equal,
    Predicate.NE: np.not_equal,
    Predicate.LT: np.less,
    Predicate.LE: np.less_equal,
    Predicate.GT: np.greater,
    Predicate.GE: np.greater_equal,
}


@meaning_of(elementwise.CompareOp)
def _compare(op: elementwise.CompareOp, args: Sequence[Array], symbols: Symbols) -> Any:
    return np.asarray(_PREDICATES[op.predicate.data](*args)).astype(np.bool_)


@meaning_of(elementwise.SelectOp)
def _select(op: elementwise.SelectOp, args: Sequence[Array], symbols: Symbols) -> Any:
    return np.where(*args)


@meaning_of(elementwise.CastOp)
def _cast(op: elementwise.CastOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return cast_array(args[0], numpy_dtype(op.to))


@meaning_of(elementwise.BitcastOp)
def _bitcast(op: elementwise.BitcastOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return np.ascontiguousarray(args[0]).view(numpy_dtype(op.to)).reshape(args[0].shape)


def cast_array(x: Array, dtype: np.dtype[Any]) -> Array:
    """`core.cast` of an array."""
    if dtype == np.bool_:
        return np.asarray(x != x.dtype.type(0))
    if x.dtype in NARROW and dtype.kind in "iu":
        x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        return rounded(x, dtype)


# Quantized integers


@meaning_of(quantize.RequantizeOp)
def _requantize(op: quantize.RequantizeOp, args: Sequence[Array], symbols: Symbols) -> Array:
    rounding, x = op.rounding.data, args[0]
    if rounding is Rounding.EVEN:
        with np.errstate(all="ignore"):
            product = np.rint(x.astype(np.float32) * args[1]).astype(np.float64)
        limits = (op.low.data - op.zero.data, op.high.data - op.zero.data)
        nearest = np.clip(product, *limits).astype(np.int64)
    elif rounding is Rounding.REAL:
        product = x.astype(np.float64) * args[1]
        size = np.abs(product)
        whole = np.floor(size)
        nearest = np.copysign(whole + (size - whole >= 0.5), product)
        limits = (op.low.data - op.zero.data, op.high.data - op.zero.data)
        nearest = np.clip(np.nan_to_num(nearest, nan=limits[0]), *limits).astype(np.int64)
    else:
        multiplier, exponent = (np.asarray(value, np.int64) for value in args[1:])
        if np.any((exponent < -31) | (exponent > 30)):
            raise InterpretError("an exponent beyond -31 to 30 (C2)")
        rule = _rounded_twice if rounding is Rounding.DOUBLE else _rounded_once
        nearest = rule(x, multiplier, exponent)
    limited = np.clip(nearest + op.zero.data, op.low.data, op.high.data)
    return np.asarray(limited).astype(numpy_dtype(op.to))


_BF16 = np.dtype(ml_dtypes.bfloat16)


@meaning_of(quantize.PairHalvesOp)
def _pair_halves(op: quantize.PairHalvesOp, args: Sequence[Array], symbols: Symbols) -> Array:
    low, high = (rounded(x, _BF16).view(np.uint16).astype(np.uint32) for x in args)
    return np.asarray(low | high << np.uint32(16)).view(np.int32)


@meaning_of(quantize.DequantizeOp)
def _dequantize(op: quantize.DequantizeOp, args: Sequence[Array], symbols: Symbols) -> Array:
    axis, size, block = op.axis.data, op.size.data, op.block.data
    inside = (slice(None),) * axis + (slice(size),)
    codes = quantize.halves_of(args[0], axis, size).astype(np.float32)
    scale, *zero = (np.repeat(value.astype(np.float32), block, axis)[inside] for value in args[1:])
    codes -= zero[0] if zero else np.float32(quantize.MIDDLE)
    return np.asarray(codes * scale)


def _rounded_once(x: Array, multiplier: Array, exponent: Array) -> Array:
    half = np.left_shift(np.int64(1), 30 - exponent)
    return np.asarray((x.astype(np.int64) * multiplier + half) >> (31 - exponent))


def _rounded_twice(x: Array, multiplier: Array, exponent: Array) -> Array:
    shifted = np.left_shift(x, np.maximum(exponent, 0).astype(np.int32)).astype(np.int64)
    product = shifted * multiplier
    nudge = np.where(product >= 0, np.int64(1 << 30), np.int64(1 - (1 << 30)))
    total = product + nudge
    high = np.sign(total) * (np.abs(total) >> 31)  # toward zero
    right = np.maximum(-exponent, 0)
    mask = np.left_shift(np.int64(1), right) - 1
    return np.asarray((high >> right) + ((high & mask) > (mask >> 1) + (high < 0)))
