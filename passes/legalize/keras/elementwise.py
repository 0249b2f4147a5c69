"""Functions of `keras.ops` that act on each element, of one tensor or of two."""

from __future__ import annotations

from xdsl.dialects.builtin import i1

from lowerdeck.dialects.core.types import is_float
from lowerdeck.passes.legalize.common.special import cbrt
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import as_float, both, named_element, pair, truth
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.pt2.applied import aten_of
from lowerdeck.passes.legalize.table import pairs
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied

# Those of PyTorch, under other names

_OF_FLOATS = pairs("""
    Arccos=acos.default Arccosh=acosh.default Arcsin=asin.default Arcsinh=asinh.default
    Arctan=atan.default Arctanh=atanh.default Cos=cos.default Cosh=cosh.default
    Deg2rad=deg2rad.default Erf=erf.default Erfc=erfc.default Erfinv=erfinv.default
    Exp2=exp2.default Exp=exp.default Expm1=expm1.default Fabs=abs.default I0=i0.default
    Log10=log10.default Log1p=log1p.default Log2=log2.default Log=log.default
    Rad2deg=rad2deg.default Reciprocal=reciprocal.default Rsqrt=rsqrt.default Sin=sin.default
    Sinc=sinc.default Sinh=sinh.default Sqrt=sqrt.default Tan=tan.default Trunc=trunc.default
""")
"""Of floats, which integers become."""

_OF_ANY = pairs("""
    Absolute=abs.default BitwiseInvert=bitwise_not.default BitwiseNot=bitwise_not.default
    NanToNum=nan_to_num.default Negative=neg.default Square=square.default
""")
"""Of any numbers."""

_TESTS = pairs("""
    Isfinite=isfinite.default Isinf=isinf.default Isnan=isnan.default Isneginf=isneginf.default
    Isposinf=isposinf.default Signbit=signbit.default
""")
"""Truth values."""

_COMPARISONS = pairs("""
    Equal=eq.Tensor Greater=gt.Tensor GreaterEqual=ge.Tensor Less=lt.Tensor LessEqual=le.Tensor
    NotEqual=ne.Tensor
""")
"""Truth values, of two tensors or numbers in one type."""

_LOGIC = pairs("""
    LogicalAnd=bitwise_and.Tensor LogicalNot=bitwise_not.default LogicalOr=bitwise_or.Tensor
    LogicalXor=bitwise_xor.Tensor
""")
"""Of truth values; numbers are true unless they are zero."""

_PAIRS_OF_FLOATS = pairs("""
    Arctan2=atan2.default Divide=div.Tensor Fmax=fmax.default Fmin=fmin.default Fmod=fmod.Tensor
    Hypot=hypot.default Ldexp=ldexp.Tensor Logaddexp2=logaddexp2.default
    Logaddexp=logaddexp.default Nextafter=nextafter.default TrueDivide=div.Tensor
""")
"""Of two floats, which integers become."""

_PAIRS = pairs("""
    BitwiseAnd=bitwise_and.Tensor BitwiseLeftShift=bitwise_left_shift.Tensor
    BitwiseOr=bitwise_or.Tensor BitwiseRightShift=bitwise_right_shift.Tensor
    BitwiseXor=bitwise_xor.Tensor FloorDivide=floor_divide.default Gcd=gcd.default Lcm=lcm.default
    LeftShift=bitwise_left_shift.Tensor Mod=remainder.Tensor Power=pow.Tensor_Tensor
    RightShift=bitwise_right_shift.Tensor
""")
"""Of two numbers."""


@legalizes(*_OF_FLOATS, *_OF_ANY, *_TESTS)
def legalize_function(builder: KerasLegalizer) -> Results:
    """Of one tensor."""
    name, x = builder.op_type, builder.x()
    if name in _TESTS:
        return aten_of(builder, _TESTS[name], i1, x.value)
    if name in _OF_ANY:
        given = {key: builder.config(key) for key in ("nan", "posinf", "neginf")}
        return aten_of(builder, _OF_ANY[name], x.element, x.value, **given)
    x = as_float(x)
    return aten_of(builder, _OF_FLOATS[name], x.element, x.value)


@legalizes(*_COMPARISONS, *_PAIRS_OF_FLOATS, *_PAIRS)
def legalize_pair(builder: KerasLegalizer) -> Results:
    """Of two tensors, or of a tensor and a number."""
    name, (x, y) = builder.op_type, pair(builder)
    if name in _COMPARISONS:
        return aten_of(builder, _COMPARISONS[name], i1, x.value, y.value)
    if name in _PAIRS:
        if is_float(x.element) and ("Bitwise" in name or "Shift" in name):
            builder.refuse("floats", "integers")
        if x.element == i1 and "Bitwise" not in name:
            builder.refuse("truth values", "numbers")
        return aten_of(builder, _PAIRS[name], x.element, x.value, y.value)
    x, y = as_float(x), as_float(y)
    return aten_of(builder, _PAIRS_OF_FLOATS[name], x.element, x.value, y.value)


@legalizes(*_LOGIC)
def legalize_logic(builder: KerasLegalizer) -> Results:
    """Of one truth value or two."""
    operands = [builder.x()] if builder.op_type == "LogicalNot" else pair(builder)
    return aten_of(builder, _LOGIC[builder.op_type], i1, *(truth(x).value for x in operands))


# Others


def _heaviside(x: TensorValue, y: TensorValue) -> TensorValue:
    """0, y or 1, as x is below, at or above zero."""
    return x.eq(0).where(y, x.lt(0).where(x * 0, x.ne(x).where(x, x * 0 + 1)))


@legalizes("Cbrt")
def legalize_cubic_root(builder: KerasLegalizer) -> Results:
    """The real root, of floats."""
    return [cbrt(as_float(builder.x())).value]


@legalizes("Heaviside")
def legalize_step(builder: KerasLegalizer) -> Results:
    """The unit step, and another number where it is."""
    return [_heaviside(*map(as_float, pair(builder))).value]


@legalizes("DivideNoNan")
def legalize_safe_quotient(builder: KerasLegalizer) -> Results:
    """The quotient of floats, or zero where the divisor is."""
    x, y = map(as_float, pair(builder))
    return [y.eq(0).where(y * 0, x / y).value]


@legalizes("Sign")
def legalize_sign(builder: KerasLegalizer) -> Results:
    """-1, 0 or 1 as a float; NaN stays."""
    return applied(builder, "Sign", as_float(builder.x()).value)


@legalizes("Floor", "Ceil", "Round")
def legalize_rounding(builder: KerasLegalizer) -> Results:
    """To whole numbers, or as many decimals, halves to even ones."""
    x, factor = as_float(builder.x()), 10.0 ** int(builder.config("decimals", 0))
    x = x if factor == 1 else x * factor
    y = {"Floor": x.floor, "Ceil": x.ceil, "Round": x.round}[builder.op_type]()
    return [(y if factor == 1 else y / factor).value]


@legalizes("Copy", "StopGradient", "ConvertToTensor")
def legalize_copy(builder: KerasLegalizer) -> Results:
    """The same."""
    return [builder.input()]


@legalizes("ZerosLike", "OnesLike")
def legalize_filled(builder: KerasLegalizer) -> Results:
    """A tensor of the shape of another."""
    x = builder.x()
    dtype = builder.config("dtype", builder.keyword("dtype"))
    element = x.element if dtype is None else named_element(builder, dtype)
    number = builder.scalar(float(builder.op_type == "OnesLike"), element)
    return [builder.broadcast(number, x.dims)]


@legalizes("FullLike")
def legalize_full(builder: KerasLegalizer) -> Results:
    """A number in the shape of a tensor."""
    x = builder.x()
    dtype = builder.config("dtype")
    element = x.element if dtype is None else named_element(builder, dtype)
    number = builder.number_like(builder.argument(1, "fill_value"), None)
    return [TensorValue.of(builder, number).cast(element).broadcast(x.dims).value]


@legalizes("Where")
def legalize_where(builder: KerasLegalizer) -> Results:
    """One value where a condition holds, else the other."""
    if not builder.has(1, "x1") or not builder.has(2, "x2"):
        builder.refuse("a condition alone", "two values")
    first, second = both(builder, builder.argument(1, "x1"), builder.argument(2, "x2"))
    return [truth(builder.x()).where(first, second).value]


@legalizes("Clip")
def legalize_clip(builder: KerasLegalizer) -> Results:
    """At least one number, at most another."""
    low = builder.config("x_min", builder.argument(1, "x_min"))
    high = builder.config("x_max", builder.argument(2, "x_max"))
    return [builder.limited(builder.x(), low, high).value]


@legalizes("Cast")
def legalize_cast(builder: KerasLegalizer) -> Results:
    """Another type."""
    element = named_element(builder, builder.config("dtype", builder.argument(1, "dtype")))
    x = builder.x()
    if is_float(x.element) and element != i1 and not is_float(element):
        return applied(builder, "Cast", x.value, DstT=element, Truncate=False)
    return [x.cast(element).value]
