"""
Elementwise ops of `core` on one element: their form in `arith` and `math`.

Values are signless; half precision is computed in f32 and rounded after every op, as the reference
does.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerType, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.buffer import vector
from lowerdeck.dialects.buffer.kernel import (
    AT_MOST_ZERO,
    FITS,
    SHORT,
    RemfOp,
    SigmoidOp,
    value_type,
)
from lowerdeck.dialects.buffer.vector import DivideByPowerOp, MultiplyHighOp
from lowerdeck.dialects.core import elementwise as core
from lowerdeck.dialects.core.constant import constant_array
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.enums import Rounding
from lowerdeck.dialects.core.quantize import PairHalvesOp, RequantizeOp
from lowerdeck.dialects.core.types import (
    bf16,
    bit_width,
    element_type,
    f16,
    f32,
    f64,
    i1,
    i32,
    i64,
    is_float,
    is_unsigned,
    ui64,
)
from lowerdeck.lowering.nests.builder import KernelBuilder
from lowerdeck.lowering.nests.exact import Exact


def compute_type(element: Attribute) -> Attribute:
    """The type that elements are computed in: f32 for half precision, else their own."""
    return f32 if element in (f16, bf16) else value_type(element)


def widen(b: KernelBuilder, value: SSAValue) -> SSAValue:
    """Half precision to f32; everything else as it is."""
    return b.add(arith.ExtFOp(value, f32)) if value.type in (f16, bf16) else value


def narrow(b: KernelBuilder, value: SSAValue, element: Attribute) -> SSAValue:
    """A computed value to its element type."""
    if value.type == value_type(element):
        return value
    assert is_float(element)
    return b.add(arith.TruncFOp(value, element))


def rounded(b: KernelBuilder, value: SSAValue, element: Attribute) -> SSAValue:
    """A computed value that has been rounded to its element type, as after every op."""
    return widen(b, narrow(b, value, element))


def constant(b: KernelBuilder, value: float, element: Attribute) -> SSAValue:
    """A constant in the type that `element` is computed in."""
    type_ = compute_type(element)
    if is_float(type_):
        return b.floating(float(value), type_)
    return b.integer(int(value), type_)


def lowest(b: KernelBuilder, element: Attribute) -> SSAValue:
    """The lower bound of all elements: -infinity, or the smallest integer."""
    if is_float(element):
        return constant(b, -python_math.inf, element)
    return constant(b, 0 if is_unsigned(element) else -(1 << (bit_width(element) - 1)), element)


def highest(b: KernelBuilder, element: Attribute) -> SSAValue:
    """The upper bound of all elements: infinity, or the largest integer."""
    if is_float(element):
        return constant(b, python_math.inf, element)
    width = bit_width(element)
    return constant(b, (1 << (width if is_unsigned(element) else width - 1)) - 1, element)


def elementwise(b: KernelBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    """The result element of an elementwise op for given operand elements."""
    if isinstance(op, core.CastOp):
        result = cast(b, operands[0], element_type(op.input), op.to)
        if op.fits is not None and isinstance(result.owner, arith.FPToSIOp | arith.FPToUIOp):
            result.owner.attributes[FITS] = UnitAttr()
        return result
    if isinstance(op, core.BitcastOp):
        type_ = compute_type(op.to)
        return (
            operands[0] if operands[0].type == type_ else b.add(arith.BitcastOp(operands[0], type_))
        )
    if isinstance(op, core.SelectOp):
        return b.add(arith.SelectOp(*operands))
    if isinstance(op, RequantizeOp):
        return requantized(b, op, operands)
    if isinstance(op, PairHalvesOp):
        return b.add(vector.PairHalvesOp(*operands))
    element = element_type(op.operands[0])
    values = [widen(b, value) for value in operands]
    if isinstance(op, core.CompareOp):
        return compare(b, op.predicate.data, values[0], values[1], element)
    rules = _FLOAT if is_float(element) else _INTEGER
    return narrow(b, rules[type(op)](b, values, element), element_type(op.results[0]))


def compare(
    b: KernelBuilder, predicate: str, lhs: SSAValue, rhs: SSAValue, element: Attribute
) -> SSAValue:
    """lhs predicate rhs as i1, for computed values of an element type."""
    if is_float(element):
        return b.add(arith.CmpfOp(lhs, rhs, {"ne": "une"}.get(predicate, f"o{predicate}")))
    if predicate not in ("eq", "ne"):
        predicate = f"{'u' if is_unsigned(element) else 's'}{predicate}"
    return b.add(arith.CmpiOp(lhs, rhs, predicate))


def maximum(b: KernelBuilder, lhs: SSAValue, rhs: SSAValue, element: Attribute) -> SSAValue:
    """The larger of two computed values; NaN if one is."""
    if is_float(element):
        return b.add(arith.MaximumfOp(lhs, rhs))
    return b.add((arith.MaxUIOp if is_unsigned(element) else arith.MaxSIOp)(lhs, rhs))


def minimum(b: KernelBuilder, lhs: SSAValue, rhs: SSAValue, element: Attribute) -> SSAValue:
    """The smaller of two computed values; NaN if one is."""
    if is_float(element):
        return b.add(arith.MinimumfOp(lhs, rhs))
    return b.add((arith.MinUIOp if is_unsigned(element) else arith.MinSIOp)(lhs, rhs))


def larger(b: KernelBuilder, total: SSAValue, value: SSAValue, element: Attribute) -> SSAValue:
    """`value` if it is larger than `total`, else that: NaN never is, nor one zero than another."""
    if not is_float(element):
        return maximum(b, total, value, element)
    return b.add(arith.SelectOp(b.add(arith.CmpfOp(value, total, "ogt")), value, total))


def unless_nan(b: KernelBuilder, value: SSAValue, total: SSAValue) -> SSAValue:
    """`total` unless `value` is NaN, then that."""
    return b.add(arith.SelectOp(b.add(arith.CmpfOp(value, value, "une")), value, total))


def add(b: KernelBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """lhs + rhs of computed values."""
    op = arith.AddiOp if isinstance(lhs.type, IntegerType) else arith.AddfOp
    return b.add(op(lhs, rhs))


def sub(b: KernelBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """lhs - rhs of computed values."""
    op = arith.SubiOp if isinstance(lhs.type, IntegerType) else arith.SubfOp
    return b.add(op(lhs, rhs))


def mul(b: KernelBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """lhs * rhs of computed values."""
    op = arith.MuliOp if isinstance(lhs.type, IntegerType) else arith.MulfOp
    return b.add(op(lhs, rhs))


def exp_at_most_one(b: KernelBuilder, x: SSAValue) -> SSAValue:
    """e to the power x for x <= 0, or NaN: the difference to a maximum."""
    op = math.ExpOp(x)
    op.attributes[AT_MOST_ZERO] = UnitAttr()
    return b.add(op)


def multiply_add(b: KernelBuilder, lhs: SSAValue, rhs: SSAValue, total: SSAValue) -> SSAValue:
    """lhs * rhs + total of computed values; floats are rounded once where the machine can."""
    if isinstance(total.type, IntegerType):
        return add(b, mul(b, lhs, rhs), total)
    return b.fma(lhs, rhs, total)


def cast(b: KernelBuilder, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """An element of one type in another, as `core.cast` defines it."""
    if source == target:
        return value
    if target == i1:
        value = widen(b, value)
        return compare(b, "ne", value, _zero(b, value.type), source)
    if is_float(source):
        return _from_float(b, value, target)
    if is_float(target):
        return _integer_to_float(b, value, source, target)
    before, after = bit_width(source), bit_width(target)
    if before == after:
        return value
    signless = IntegerType(after)
    if before > after:
        return b.add(arith.TruncIOp(value, signless))
    extend = arith.ExtUIOp if is_unsigned(source) else arith.ExtSIOp
    return b.add(extend(value, signless))


_BITS: Exact[dict[Attribute, int]] = {f64: 64, f32: 32, f16: 16, bf16: 16}
"""Of floating-point types."""


def _integer_to_float(
    b: KernelBuilder, value: SSAValue, source: Attribute, target: AnyFloat
) -> SSAValue:
    """Rounded once. Every integer that f32 does not hold is infinite in f16, but not in bf16."""
    wide = f32 if target == f16 else f64 if target == bf16 else target
    if target == bf16 and value.type == i64:
        value = _to_odd_multiple(b, value, source)
    convert = arith.UIToFPOp if is_unsigned(source) else arith.SIToFPOp
    return narrow(b, b.add(convert(value, wide)), target)


_LARGEST_OF_F64: Exact[int] = 1 << 53
"""All integers up to this one are f64."""

_UNIT_OF_F64: Exact[int] = 1 << 11
"""What all i64 that f64 holds are multiples of, however large: it has 53 of 64 bits."""


def _to_odd_multiple(b: KernelBuilder, value: SSAValue, source: Attribute) -> SSAValue:
    """An i64 that f64 holds and that rounds to few digits as `value`: what is cut off sticks."""
    limit, unit = _LARGEST_OF_F64 // 2, _UNIT_OF_F64
    offset = 0 if is_unsigned(source) else limit
    shifted = b.add(arith.AddiOp(value, b.integer(offset, i64)))
    is_exact = b.add(arith.CmpiOp(shifted, b.integer(limit + offset, i64), "ult"))
    rest = b.add(arith.AndIOp(value, b.integer(unit - 1, i64)))
    zero = b.integer(0, i64)
    is_multiple = b.add(arith.CmpiOp(rest, zero, "eq"))
    sticky = b.add(arith.SelectOp(is_multiple, zero, b.integer(unit, i64)))
    multiple = b.add(arith.AndIOp(value, b.integer(-unit, i64)))
    odd = b.add(arith.OrIOp(multiple, sticky))
    return b.add(arith.SelectOp(is_exact, value, odd))


def _from_float(b: KernelBuilder, value: SSAValue, target: Attribute) -> SSAValue:
    if not is_float(target):
        convert = arith.FPToUIOp if is_unsigned(target) else arith.FPToSIOp
        value = _unlimited(widen(b, value), target)
        return b.add(convert(value, IntegerType(bit_width(target))))
    if _BITS[value.type] == _HALF:
        value = widen(b, value)
    if value.type == target:
        return value
    convert = arith.ExtFOp if _BITS[value.type] < _BITS[target] else arith.TruncFOp
    return b.add(convert(value, target))


def _unlimited(value: SSAValue, target: Attribute) -> SSAValue:
    """A float without the limits that its conversion to an integer has anyway."""
    width, is_signed = bit_width(target), not is_unsigned(target)
    lowest, highest = (-1 << width - 1, ~(-1 << width - 1)) if is_signed else (0, (1 << width) - 1)
    while isinstance(op := value.owner, arith.MaximumfOp | arith.MinimumfOp):
        limit, other = op.lhs.owner, op.rhs
        if not isinstance(limit, arith.ConstantOp) or not isinstance(limit.value, FloatAttr):
            break
        number = limit.value.value.data
        is_max = isinstance(op, arith.MaximumfOp)
        if not (number <= lowest if is_max else number >= highest):
            break
        value = other
    return value


def _zero(b: KernelBuilder, type_: Attribute) -> SSAValue:
    return b.floating(0.0, type_) if is_float(type_) else b.integer(0, type_)


_WORD: Exact[int] = 32
"""Bits of an i32."""
_HALF: Exact[int] = 16
"""Bits of the short floating-point types, and of the lower half of an i32."""

_BIAS: Exact[int] = 1 << 62
"""What makes an i64 of up to 62 bits positive, so that an unsigned shift rounds down."""


def _shifted_down(b: KernelBuilder, value: SSAValue, amount: SSAValue) -> SSAValue:
    """An i64 of up to 62 bits divided by a power of two, rounded down."""
    bias = b.integer(_BIAS, i64)
    quotient = b.add(arith.ShRUIOp(b.add(arith.AddiOp(value, bias)), amount))
    return b.add(arith.SubiOp(quotient, b.add(arith.ShRUIOp(bias, amount))))


def requantized(b: KernelBuilder, op: RequantizeOp, operands: Sequence[SSAValue]) -> SSAValue:
    """`core.requantize` of elements: in 32 bits where the input has no more."""
    match op.rounding.data:
        case Rounding.EVEN:
            return _evenly(b, op, *operands)
        case Rounding.DOUBLE:
            return _limited(b, op, _doubly(b, op, *operands))
        case Rounding.REAL:
            return _really(b, op, *operands)
        case Rounding.SINGLE:
            x, *factor = operands
            multiplier, exponent = (b.add(arith.ExtSIOp(value, i64)) for value in factor)
            return _limited(b, op, _singly(b, x, multiplier, exponent))


def _limited(b: KernelBuilder, op: RequantizeOp, value: SSAValue) -> SSAValue:
    """A rounded number plus the zero point in its limits; they come first, so that no sum wraps."""
    type_ = value.type
    lowest, highest = -1 << (bit_width(type_) - 1), ~(-1 << (bit_width(type_) - 1))
    low, high = op.low.data - op.zero.data, op.high.data - op.zero.data
    if low > lowest:
        value = b.add(arith.MaxSIOp(value, b.integer(low, type_)))
    if high < highest:
        value = b.add(arith.MinSIOp(value, b.integer(high, type_)))
    return _with_zero(b, op, value)


def _with_zero(b: KernelBuilder, op: RequantizeOp, value: SSAValue) -> SSAValue:
    """The integer that stands for one around the zero point."""
    if op.zero.data:
        value = b.add(arith.AddiOp(value, b.integer(op.zero.data, value.type)))
    type_ = IntegerType(bit_width(op.to))
    return value if value.type == type_ else b.add(arith.TruncIOp(value, type_))


_ROUNDER: Exact[float] = 12582912.0
"""1.5 * 2^23: numbers up to 2^22 that are added to it lose their fraction, halves to even, and are
the lower bits of the sum."""
_ROUNDER_BITS: Exact[int] = 0x4B400000
"""How it is stored: the lower half is zero."""


def _evenly(b: KernelBuilder, op: RequantizeOp, x: SSAValue, factor: SSAValue) -> SSAValue:
    """The product in f32, within the limits before it is rounded: they are integers."""
    product = b.add(arith.MulfOp(b.add(arith.SIToFPOp(x, f32)), factor))
    low, high = (b.floating(limit.data - op.zero.data, f32) for limit in (op.low, op.high))
    limited = b.add(arith.MinimumfOp(high, b.add(arith.MaximumfOp(low, product))))
    total = b.add(arith.AddfOp(limited, b.floating(_ROUNDER, f32)))
    whole = b.add(arith.BitcastOp(total, i32))
    if bit_width(op.to) > _HALF:
        whole = b.add(arith.SubiOp(whole, b.integer(_ROUNDER_BITS, i32)))
    return _with_zero(b, op, whole)


_SCALE_BITS: Exact[int] = 31
"""Multipliers are integers of so many bits that stand for numbers below 1."""


def _singly(b: KernelBuilder, x: SSAValue, multiplier: SSAValue, exponent: SSAValue) -> SSAValue:
    """(x * multiplier + 2^(30 - exponent)) / 2^(31 - exponent)"""
    x = x if x.type == i64 else b.add(arith.ExtSIOp(x, i64))
    amount = b.add(arith.SubiOp(b.integer(_SCALE_BITS, i64), exponent))
    half = b.add(arith.ShLIOp(b.integer(1, i64), b.add(arith.SubiOp(amount, b.integer(1, i64)))))
    total = b.add(arith.AddiOp(b.add(arith.MuliOp(x, multiplier)), half))
    return _shifted_down(b, total, amount)


def _doubly(
    b: KernelBuilder,
    op: RequantizeOp,
    x: SSAValue,
    multiplier: SSAValue,
    exponent: SSAValue,
) -> SSAValue:
    """The high half of the doubled product, halves up, by a power of two, halves away from zero."""
    zero = b.integer(0, i32)
    if op.right is not None:
        x, right = b.add(MultiplyHighOp(x, multiplier)), b.add(arith.SubiOp(zero, exponent))
        # What is negative comes to the least number in any case.
        up = op.low.data >= op.zero.data
        return b.add(DivideByPowerOp(x, right, positive=True, up=up))
    signs = _signs(op.exponent)
    if 1 in signs:
        x = b.add(arith.ShLIOp(x, b.add(arith.MaxSIOp(exponent, zero))))
    x = b.add(MultiplyHighOp(x, multiplier))
    if -1 not in signs:
        return x
    right = b.add(arith.MaxSIOp(b.add(arith.SubiOp(zero, exponent)), zero))
    return b.add(DivideByPowerOp(x, right))


def _known(value: SSAValue | None) -> NDArray[np.generic] | None:
    """The elements of a constant of the kernel, or that it reads; None of another value."""
    if value is not None and isinstance(kernel := value.owner, Block):
        parent = kernel.parent_op()
        if isinstance(parent, KernelOp):
            value = parent.inputs[kernel.args.index(value)]
    try:
        return None if value is None else constant_array(value)
    except ElidedBlobError:
        return None


def _signs(exponent: SSAValue | None) -> set[int]:
    """Of the exponents of a factor, where they are known; else all."""
    array = _known(exponent)
    return {-1, 0, 1} if array is None else set(np.sign(array).reshape(-1).tolist())


_BELOW_HALF: Exact[float] = float.fromhex("0x1.fffffffffffffp-2")
"""The number before 0.5: what is below a half does not become 1 with it, and a half does."""


def _really(b: KernelBuilder, op: RequantizeOp, x: SSAValue, factor: SSAValue) -> SSAValue:
    """
    The product in f64 to the nearest integer, halves away from zero. Its limits are integers: they
    come before it is rounded if it may be no i32 otherwise, and after that, in fewer bits, if not.
    """
    product = b.add(arith.MulfOp(b.add(arith.SIToFPOp(x, f64)), factor))
    low, high = op.low.data - op.zero.data, op.high.data - op.zero.data
    factors = _known(op.multiplier)
    is_word = (
        x.type == i32
        and factors is not None
        and bool(np.all(np.abs(factors.astype(np.float64)) < 1))
    )
    if not is_word:
        for limit, predicate in ((low, "ogt"), (high, "olt")):
            number = b.floating(limit, f64)
            is_inside = b.add(arith.CmpfOp(product, number, predicate))
            product = b.add(arith.SelectOp(is_inside, product, number))
    half = b.add(math.CopySignOp(b.floating(_BELOW_HALF, f64), product))
    fits = is_word or max(low.bit_length(), high.bit_length()) < _WORD
    whole = b.add(arith.FPToSIOp(b.add(arith.AddfOp(product, half)), i32 if fits else i64))
    if fits:
        assert isinstance(whole.owner, Operation)
        whole.owner.attributes[FITS] = UnitAttr()
    return _limited(b, op, whole) if is_word else _with_zero(b, op, whole)


Rule = Callable[[KernelBuilder, Sequence[SSAValue], Attribute], SSAValue]


def _ops(op: Callable[..., Operation]) -> Rule:
    """The rule that is just one op."""
    return lambda b, values, element: b.add(op(*values))


def _short_erf(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    """In the precision of the element type, or of f32."""
    (x,) = values
    op = math.ErfOp(cast(b, x, element, f32))
    op.attributes[SHORT] = UnitAttr()
    return cast(b, b.add(op), f32, element)


def _sign(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    """x > 0 ? 1 : x < 0 ? -1 : x + 0, so that NaN stays; the sign of zero does not."""
    (x,) = values
    zero, one = _zero(b, x.type), constant(b, 1, element)
    positive = compare(b, "gt", x, zero, element)
    if is_unsigned(element):
        return b.add(arith.SelectOp(positive, one, zero))
    negative = compare(b, "lt", x, zero, element)
    rest = b.add(arith.AddfOp(x, zero)) if is_float(element) else zero
    otherwise = b.add(arith.SelectOp(negative, constant(b, -1, element), rest))
    return b.add(arith.SelectOp(positive, one, otherwise))


def _extremum(op: Callable[..., Operation]) -> Rule:
    """
    NaN if one value is; of equal ones, such as zeros, the second. A constant comes first, as in
    vectors: then it takes one comparison, and a zero that is compared with zero keeps its sign.
    """

    def rule(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
        x, y = values
        return b.add(op(y, x) if isinstance(y.owner, arith.ConstantOp) else op(x, y))

    return rule


def _sigmoid(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    if values[0].type == f32:
        return b.add(SigmoidOp(values[0]))
    one = constant(b, 1, element)
    exponential = b.add(math.ExpOp(b.add(arith.NegfOp(values[0]))))
    return b.add(arith.DivfOp(one, b.add(arith.AddfOp(one, exponential))))


def _rectify(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    """x - (x < 0 ? x : 0): the minimum of vectors, and a difference."""
    (x,) = values
    zero = _zero(b, x.type)
    below = b.add(arith.SelectOp(b.add(arith.CmpfOp(x, zero, "olt")), x, zero))
    return b.add(arith.SubfOp(x, below))


def _float_mod(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    """fmod, moved to the sign of the divisor; an exact zero takes its sign."""
    x, y = values
    rest = b.add(RemfOp(x, y))
    zero = _zero(b, x.type)
    negative = b.add(arith.CmpfOp(rest, zero, "olt"))
    differs = b.add(arith.XOrIOp(negative, b.add(arith.CmpfOp(y, zero, "olt"))))
    nonzero = b.add(arith.CmpfOp(rest, zero, "une"))
    moved = b.add(arith.AddfOp(rest, y))
    adjust = b.add(arith.AndIOp(nonzero, differs))
    signed = b.add(arith.SelectOp(nonzero, rest, b.add(math.CopySignOp(rest, y))))
    return b.add(arith.SelectOp(adjust, moved, signed))


def _integer_mod(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    x, y = values
    if is_unsigned(element):
        return b.add(arith.RemUIOp(x, y))
    rest = b.add(arith.RemSIOp(x, y))
    zero = _zero(b, x.type)
    negative = b.add(arith.CmpiOp(rest, zero, "slt"))
    differs = b.add(arith.XOrIOp(negative, b.add(arith.CmpiOp(y, zero, "slt"))))
    nonzero = b.add(arith.CmpiOp(rest, zero, "ne"))
    adjust = b.add(arith.AndIOp(nonzero, differs))
    return b.add(arith.SelectOp(adjust, b.add(arith.AddiOp(rest, y)), rest))


def _by_sign(signed: Callable[..., Operation], unsigned: Callable[..., Operation]) -> Rule:
    def rule(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
        return b.add((unsigned if is_unsigned(element) else signed)(*values))

    return rule


def _negate(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    return b.add(arith.SubiOp(_zero(b, values[0].type), values[0]))


def _complement(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    return b.add(arith.XOrIOp(values[0], b.integer(-1, values[0].type)))


def _magnitude(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    (x,) = values
    if is_unsigned(element):
        return x
    negative = b.add(arith.CmpiOp(x, _zero(b, x.type), "slt"))
    return b.add(arith.SelectOp(negative, _negate(b, values, element), x))


def _integer_power(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    """Computed in i64, of which every integer result is a residue, so that signs are read once."""
    x, y = (cast(b, value, element, i64) for value in values)
    if element != ui64:
        return cast(b, b.add(math.IPowIOp(x, y)), i64, element)
    # The exponent may be too large for i64: x^y = (x^(y / 2))^2 * x^(y mod 2).
    one = b.integer(1, i64)
    root = b.add(math.IPowIOp(x, b.add(arith.ShRUIOp(y, one))))
    rest = b.add(math.IPowIOp(x, b.add(arith.AndIOp(y, one))))
    return b.add(arith.MuliOp(b.add(arith.MuliOp(root, root)), rest))


def _shift(op: Callable[..., Operation]) -> Rule:
    """Zero once the amount reaches the width, where the bare op is undefined."""

    def rule(b: KernelBuilder, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
        x, amount = values
        small = b.add(arith.CmpiOp(amount, b.integer(bit_width(x.type), x.type), "ult"))
        zero = _zero(b, x.type)
        safe = b.add(arith.SelectOp(small, amount, zero))
        return b.add(arith.SelectOp(small, b.add(op(x, safe)), zero))

    return rule


_FLOAT: dict[type[Operation], Rule] = {
    core.NegOp: _ops(arith.NegfOp),
    core.AbsOp: _ops(math.AbsFOp),
    core.SignOp: _sign,
    core.ExpOp: _ops(math.ExpOp),
    core.LogOp: _ops(math.LogOp),
    core.SqrtOp: _ops(math.SqrtOp),
    core.FloorOp: _ops(math.FloorOp),
    core.CeilOp: _ops(math.CeilOp),
    core.RoundOp: _ops(math.RoundEvenOp),
    core.ErfOp: _ops(math.ErfOp),
    core.ShortErfOp: _short_erf,
    core.SinOp: _ops(math.SinOp),
    core.CosOp: _ops(math.CosOp),
    core.TanOp: _ops(math.TanOp),
    core.AsinOp: _ops(math.AsinOp),
    core.AcosOp: _ops(math.AcosOp),
    core.AtanOp: _ops(math.AtanOp),
    core.SinhOp: _ops(math.SinhOp),
    core.CoshOp: _ops(math.CoshOp),
    core.TanhOp: _ops(math.TanhOp),
    core.AsinhOp: _ops(math.AsinhOp),
    core.AcoshOp: _ops(math.AcoshOp),
    core.AtanhOp: _ops(math.AtanhOp),
    core.SigmoidOp: _sigmoid,
    core.RectifyOp: _rectify,
    core.AddOp: _ops(arith.AddfOp),
    core.SubOp: _ops(arith.SubfOp),
    core.MulOp: _ops(arith.MulfOp),
    core.DivOp: _ops(arith.DivfOp),
    core.RemOp: _ops(RemfOp),
    core.ModOp: _float_mod,
    core.PowOp: _ops(math.PowFOp),
    core.MaxOp: _extremum(arith.MaximumfOp),
    core.MinOp: _extremum(arith.MinimumfOp),
}

_INTEGER: dict[type[Operation], Rule] = {
    core.NegOp: _negate,
    core.AbsOp: _magnitude,
    core.SignOp: _sign,
    core.NotOp: _complement,
    core.AddOp: _ops(arith.AddiOp),
    core.SubOp: _ops(arith.SubiOp),
    core.MulOp: _ops(arith.MuliOp),
    core.DivOp: _by_sign(arith.DivSIOp, arith.DivUIOp),
    core.RemOp: _by_sign(arith.RemSIOp, arith.RemUIOp),
    core.ModOp: _integer_mod,
    core.PowOp: _integer_power,
    core.MaxOp: _by_sign(arith.MaxSIOp, arith.MaxUIOp),
    core.MinOp: _by_sign(arith.MinSIOp, arith.MinUIOp),
    core.AndOp: _ops(arith.AndIOp),
    core.OrOp: _ops(arith.OrIOp),
    core.XorOp: _ops(arith.XOrIOp),
    core.ShlOp: _shift(arith.ShLIOp),
    core.ShrOp: _shift(arith.ShRUIOp),
}
