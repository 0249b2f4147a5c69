"""Functions of single elements, of pairs of them, and of an element and a number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeAlias

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    f64,
    i1,
    i64,
    is_float,
    numpy_dtype,
)
from lowerdeck.dialects.mxnet.schema import schemas
from lowerdeck.passes.legalize.common.activation import softsign
from lowerdeck.passes.legalize.common.functions import PAIRS
from lowerdeck.passes.legalize.common.special import apply, cbrt, power_of_ten, rounded
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.table import pairs
from lowerdeck.passes.legalize.tensor_value import TensorValue

_UNARY = pairs("""
    arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctanh=atanh cos=cos cosh=cosh
    erf=erf erfinv=erfinv exp=exp expm1=expm1 gammaln=lgamma log=log log10=log10 log1p=log1p
    log2=log2 reciprocal=reciprocal rsqrt=rsqrt sigmoid=sigmoid sin=sin sinh=sinh sqrt=sqrt
    square=square tan=tan tanh=tanh
""")
"""Functions that round, which legacy operators compute of integers, too, and cut the result off."""

_EXACT = pairs(
    "abs=abs ceil=ceil fix=trunc floor=floor negative=neg relu=relu sign=sign trunc=trunc"
)
"""Functions that keep the type."""

_NUMPY_NAMES = {"absolute": "abs", "rint": "rint"}


def _plain(name: str) -> str:
    """The name of a function without the prefix of `mxnet.numpy`."""
    bare = name.removeprefix("_npi_").removeprefix("_npx_")
    return _NUMPY_NAMES.get(bare, bare)


@legalizes(
    *_UNARY,
    *(f"_npi_{name}" for name in _UNARY if name not in ("erf", "erfinv", "rsqrt")),
    "_npx_sigmoid",
)
def legalize_function(builder: MxnetLegalizer) -> Results:
    """In the type of the tensor; of integers the result is cut off."""
    x = builder.input()
    target = _UNARY.get(_plain(builder.name), "")
    if not target:
        builder.refuse(f"the function {builder.name}")
    if is_float(element_type(x)) or target == "square":
        return builder.torch(f"{target}.default", self=x)
    found = builder.torch(f"{target}.default", f32, self=builder.cast(x, f32))
    return builder.cast(found, x)


@legalizes(
    *_EXACT,
    *(f"_npi_{n}" for n in ("absolute", "negative", "sign", "ceil", "floor", "trunc", "fix")),
    "_npx_relu",
)
def legalize_exact_function(builder: MxnetLegalizer) -> Results:
    """In the type of the tensor."""
    x = builder.input()
    target = _EXACT[_plain(builder.name)]
    if target in ("ceil", "floor", "trunc") and not is_float(element_type(x)):
        return x
    return builder.torch(f"{target}.default", self=x)


@legalizes("rint", "_npi_rint", "round", "_npi_around")
def legalize_round(builder: MxnetLegalizer) -> Results:
    """`rint` rounds halves down, `round` away from zero, that of numpy to even."""
    x = builder.value()
    if not is_float(x.element):
        return x.value
    if builder.name == "_npi_around":
        return _rounded_at(builder, x)
    if builder.name == "round":
        return rounded(x).value
    floor, ceil = x.floor(), x.ceil()
    return (x - floor).le(ceil - x).where(floor, ceil).value


def _rounded_at(builder: MxnetLegalizer, x: TensorValue) -> TensorValue:
    """At a number of decimals."""
    decimals = builder.integer("decimals")
    if not decimals:
        return x.round()
    factor = power_of_ten(decimals)
    return (x * factor).round() / factor


def _gamma(builder: MxnetLegalizer, x: TensorValue) -> TensorValue:
    """The gamma function, by its logarithm; its sign alternates below zero."""
    size = TensorValue(builder, builder.torch("lgamma.default", x.element, self=x.value)).exp()
    is_odd = (x.floor() % 2.0).ne(0)
    found = (x.lt(0) & is_odd).where(-size, size)
    # There is no value at negative integers, and at zero the sign of zero decides.
    found = (x.lt(0) & x.eq(x.floor())).where(builder.known(math.nan, x.element), found)
    return x.eq(0).where(1.0 / x, found)


def _smooth_l1(builder: MxnetLegalizer, x: TensorValue) -> TensorValue:
    """A parabola around zero, |x| - 1 / (2 s^2) beyond 1 / s^2."""
    size, square = x.abs(), builder.number("scalar") ** 2
    return size.gt(1 / square).where(size - 0.5 / square, x * x * (0.5 * square))


def _quadratic(builder: MxnetLegalizer, x: TensorValue) -> TensorValue:
    a, b, c = (builder.number(name) for name in "abc")
    return x * x * a + x * b + c


def _by_root_of_size(builder: MxnetLegalizer, x: TensorValue) -> TensorValue:
    """x by the root of the size of its last dimension."""
    size = TensorValue.dim(builder, x.dims[-1]).cast(x.element)
    return x / apply(SqrtOp, size)


def _clipped(builder: MxnetLegalizer, x: TensorValue) -> TensorValue:
    """Between two numbers; NaN stays."""
    return x.clip(*(builder.known(builder.number(name), x.element) for name in ("a_min", "a_max")))


Formula: TypeAlias = "Callable[[MxnetLegalizer, TensorValue], TensorValue]"

_WIDE: Mapping[str, Formula] = {
    "cbrt": lambda b, x: cbrt(x),
    "rcbrt": lambda b, x: 1.0 / cbrt(x),
    "degrees": lambda b, x: x * (180 / math.pi),
    "radians": lambda b, x: x * (math.pi / 180),
    "gamma": _gamma,
}
"""Functions that are computed in single precision at least."""

_FORMULAS: Mapping[str, Formula] = {
    "softsign": lambda b, x: softsign(x),
    "hard_sigmoid": lambda b, x: (x * b.number("alpha") + b.number("beta")).clip(0.0, 1.0),
    "smooth_l1": _smooth_l1,
    "_contrib_quadratic": _quadratic,
    "_contrib_div_sqrt_dim": _by_root_of_size,
    "clip": _clipped,
    "logical_not": lambda b, x: x.eq(0).cast(x.element),
    "_npi_logical_not": lambda b, x: x.eq(0),
    "_npx_constraint_check": lambda b, x: x.ne(0).reduce("min", list(range(len(x.dims)))),
}


@legalizes(*_WIDE, "_npi_cbrt", "_npi_degrees", "_npi_radians", *_FORMULAS)
def legalize_formula(builder: MxnetLegalizer) -> Results:
    """A formula of one tensor."""
    if (formula := _FORMULAS.get(builder.name)) is not None:
        return formula(builder, builder.value())
    return builder.narrow(_WIDE[_plain(builder.name)](builder, builder.wide(builder.input())))


@legalizes(
    "BlockGrad",
    "Dropout",
    "IdentityAttachKLSparseReg",
    "LinearRegressionOutput",
    "MAERegressionOutput",
    "MakeLoss",
    "SVMOutput",
    "_CrossDeviceCopy",
    "_contrib_gradientmultiplier",
    "_copy",
    "_identity_with_attr_like_rhs",
    "_np_copy",
    "make_loss",
    "_npi_share_memory",
)
def legalize_identity(builder: MxnetLegalizer) -> Results:
    """What only training does more with."""
    if builder.name == "Dropout" and builder.text("mode") == "always":
        builder.refuse(
            "dropout at all times", "mode 'training'", "make the random numbers an input"
        )
    return builder.input()


@legalizes("Cast", "amp_cast")
def legalize_cast(builder: MxnetLegalizer) -> Results:
    """Another element type."""
    return builder.cast(builder.input(), builder.dtype())


@legalizes("amp_multicast")
def legalize_multicast(builder: MxnetLegalizer) -> Results:
    """The widest type of all, or the narrowest."""
    values = builder.inputs("data")
    by_width = sorted(values, key=lambda value: numpy_dtype(element_type(value)).itemsize)
    like = by_width[0] if builder.flag("cast_narrow") else by_width[-1]
    return [builder.cast(value, like) for value in values]


@legalizes("zeros_like", "ones_like", "_npi_full_like")
def legalize_full(builder: MxnetLegalizer) -> Results:
    """One number for all elements."""
    x = builder.input()
    fixed = {"zeros_like": 0, "ones_like": 1}
    number = fixed[builder.name] if builder.name in fixed else builder.number("fill_value")
    element = builder.dtype() if builder.has("dtype") else element_type(x)
    return builder.broadcast(builder.scalar(number, element), dims_of(x))


# Pairs

_ARITHMETIC = pairs("""
    add=add arctan2=atan2 copysign=copysign div=div hypot=hypot lcm=lcm ldexp=ldexp maximum=maximum
    minimum=minimum minus=sub mod=mod mul=mul multiply=mul plus=add power=pow sub=sub
    subtract=sub true_divide=div
""")
_COMPARISONS = pairs("""
    equal=eq greater=gt greater_equal=ge less=lt less_equal=le lesser=lt lesser_equal=le
    not_equal=ne
""")
_LOGICAL = ("logical_and", "logical_or", "logical_xor")
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")


def _bare(name: str) -> tuple[str, bool]:
    """The name of an operation, and whether its operands are exchanged."""
    for prefix in ("elemwise_", "broadcast_", "_npi_", "_scatter_", "_"):
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    name = name.removesuffix("_scalar").removeprefix("elemwise_")
    is_known = name in _ARITHMETIC or name in _COMPARISONS or name in (*_LOGICAL, *_BITWISE)
    return (name, False) if is_known else (name.removeprefix("r"), True)


def _in_floats(
    builder: MxnetLegalizer, target: str, x: TensorValue, y: TensorValue, other: str = "other"
) -> TensorValue:
    """A function of floats, of integers in f32, cut off but for those of numpy."""
    element = x.element if is_float(x.element) else f32
    given = {"self": x.cast(element).value, other: y.cast(element).value}
    found = TensorValue(builder, builder.torch(target, element, **given))
    return found if builder.is_numpy else found.cast(x.element)


def _combined(builder: MxnetLegalizer, name: str, x: TensorValue, y: TensorValue) -> TensorValue:
    """Two tensors of one type."""
    is_whole = not is_float(x.element)
    match name:
        case "mod":
            is_zero = y.eq(0)
            rest = x % is_zero.where(builder.known(1, y.element), y)
            return is_zero.where(builder.known(0, x.element), rest)
        case "div" if is_whole:
            given: dict[str, Any] = {"other": y.value, "rounding_mode": "trunc"}
            return TensorValue(
                builder, builder.torch("div.Tensor_mode", x.element, self=x.value, **given)
            )
        case "pow" if is_whole:
            return PAIRS["pow"](x.cast(f64), y.cast(f64)).cast(x.element)
        case "ldexp":
            return x * TensorValue(builder, builder.torch("exp2.default", y.element, self=y.value))
        case "copysign" if not is_whole:
            return _in_floats(builder, "copysign.Tensor", x, y)
        case "hypot" | "atan2" | "copysign":
            return _in_floats(builder, f"{name}.default", x, y)
        case "lcm" | "maximum" | "minimum":
            given = {"self": x.value, "other": y.value}
            return TensorValue(builder, builder.torch(f"{name}.default", x.element, **given))
        case _:
            return PAIRS[name](x, y)


def _result(builder: MxnetLegalizer, x: TensorValue, y: TensorValue) -> Results:
    """The result of an operation for its operands in order."""
    name, is_swapped = _bare(builder.name)
    x, y = (y, x) if is_swapped else (x, y)
    if name in _ARITHMETIC:
        return _combined(builder, _ARITHMETIC[name], x, y)
    if name in _BITWISE:
        return builder.torch(f"{name}.Tensor", x.element, self=x.value, other=y.value)
    if name in _COMPARISONS:
        found = PAIRS[_COMPARISONS[name]](x, y)
    else:
        left, right = x.ne(0), y.ne(0)
        found = {"and": left & right, "or": left | right, "xor": left.ne(right)}[name[8:]]
    return found if builder.is_numpy else found.cast(x.element)


def _named(count: int, suffix: str) -> list[str]:
    """The operators of so many tensors whose names are those of an operation and a suffix."""
    known = {*_ARITHMETIC, *_COMPARISONS, *_LOGICAL, *_BITWISE}
    return [
        name
        for name, schema in schemas().items()
        if name.endswith(suffix) and len(schema.inputs) == count and _bare(name)[0] in known
    ]


def _is_of_floats(builder: MxnetLegalizer) -> bool:
    """True for operators of numpy whose results are floats, those of integers, too."""
    return builder.is_numpy and _bare(builder.name)[0] in ("true_divide", "arctan2", "ldexp")


@legalizes(*_named(2, ""))
def legalize_pair(builder: MxnetLegalizer) -> Results:
    """Two tensors, which broadcast; those of numpy in the type that fits both."""
    names = list(builder.op.schema.arguments)
    values = [builder.input(name) for name in names[:2]]
    x, y = builder.promoted(*values)
    if _is_of_floats(builder) and not is_float(x.element):
        x, y = x.cast(f32), y.cast(f32)
    return _result(builder, x, y)


@legalizes(*_named(1, "_scalar"))
def legalize_scalar(builder: MxnetLegalizer) -> Results:
    """
    A tensor and a number, in the type of the tensor; integers and a number that is said to be none
    are f64.
    """
    x, number = builder.value(), builder.number("scalar")
    if builder.is_numpy and not is_float(x.element):
        if _is_of_floats(builder):
            x = x.cast(f32)
        elif x.element == i1:
            x = x.cast(i64)
    if not is_float(x.element) and not builder.flag("is_int"):
        x = x.cast(f64)
    if not is_float(x.element):
        number = int(number) if abs(number) < float(1 << 63) else 0
    return _result(builder, x, builder.known(number, x.element))


@legalizes("add_n")
def legalize_add_n(builder: MxnetLegalizer) -> Results:
    """The sum of all."""
    return reduce(operator.add, (TensorValue.of(builder, v) for v in builder.inputs("args")))


# Choice


@legalizes("where", "_npi_where")
def legalize_where(builder: MxnetLegalizer) -> Results:
    """By a condition of the same shape, or one number a row; that of numpy broadcasts."""
    condition = builder.value("condition").ne(0)
    x, y = builder.promoted(builder.input("x"), builder.input("y"))
    rank = len(x.dims)
    if not builder.is_numpy and len(condition.dims) == 1 and rank > 1:
        condition = condition.column(rank, 0)
    return condition.where(x, y).value


@legalizes("_npi_where_lscalar", "_npi_where_rscalar", "_npi_where_scalar2")
def legalize_where_numbers(builder: MxnetLegalizer) -> Results:
    """By a condition, with one or two numbers."""
    condition = builder.value("condition").ne(0)
    if builder.name == "_npi_where_scalar2":
        x, y = (builder.known(builder.number(name), f32) for name in ("x", "y"))
        return condition.where(x, y).value
    own = "x" if builder.has("x") else "y"
    tensor = builder.value(own)
    number = builder.known(builder.number("scalar"), tensor.element)
    pair = (tensor, number) if builder.name == "_npi_where_rscalar" else (number, tensor)
    return condition.where(*pair).value


@legalizes("_npi_boolean_mask_assign_scalar", "_npi_boolean_mask_assign_tensor")
def legalize_mask_assign(builder: MxnetLegalizer) -> Results:
    """A number, or the elements of a tensor of one element, where a mask holds."""
    data, mask = builder.value("data"), builder.value("mask").ne(0)
    rank = len(data.dims)
    if len(mask.dims) < rank:
        mask = mask.reshape([*mask.dims, *[1] * (rank - len(mask.dims))])
    if builder.name.endswith("scalar"):
        value = builder.known(builder.number("value"), data.element)
    else:
        value = builder.value("value").cast(data.element)
        if any(dim != 1 for dim in value.dims):
            builder.refuse("several values for a mask", "one", "use where")
        value = value.reshape([])
    return mask.where(value, data).value
