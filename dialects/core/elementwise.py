"""
Elementwise ops. Operands broadcast as in numpy; integers wrap around.

All ops here are maps: element i of the result depends on element i of the (broadcast) operands.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from lowerdeck.dialects.core.base import (
    FORMAT,
    TYPES,
    CoreOp,
    SameTypeOp,
    require,
    require_broadcast,
    require_same_element,
)
from lowerdeck.dialects.core.enums import Predicate, PredicateAttr
from lowerdeck.dialects.core.index_maps import Broadcasts
from lowerdeck.dialects.core.quantize import PairHalvesOp, RequantizeOp
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    f32,
    f64,
    i1,
    is_float,
    is_integer,
    numpy_dtype,
    tensor,
)


class UnaryOp(SameTypeOp, Broadcasts, ABC):
    """A function of one element."""

    input = operand_def()
    result = result_def()

    def __init__(self, input: SSAValue):
        super().__init__([input])


class FloatUnaryOp(UnaryOp, ABC):
    """
    A function of one floating-point element.

    Constraints:

    - (C1) the element type is a float.
    """

    def infer(self) -> Sequence[Attribute]:
        element = element_type(self.input)
        require(is_float(element), lambda: f"expected a floating-point tensor, got {element}", "C1")
        return super().infer()


class BinaryOp(CoreOp, Broadcasts, ABC):
    """
    A function of two elements of one type.

    Constraints:

    - (C1) both operands have the same element type.
    - (C2) their dimensions broadcast.
    """

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__([lhs, rhs])

    def infer(self) -> Sequence[Attribute]:
        element = require_same_element(self.operands, "C1")
        return [tensor(element, require_broadcast([dims_of(self.lhs), dims_of(self.rhs)], "C2"))]


@irdl_op_definition
class NegOp(UnaryOp):
    """
    -x.

    Example:

    ```mlir
    %r = core.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.neg"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class AbsOp(UnaryOp):
    """
    |x|; the smallest integer maps to itself.

    Example:

    ```mlir
    %r = core.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.abs"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class SignOp(UnaryOp):
    """
    -1, 0 or 1; NaN gives NaN.

    Example:

    ```mlir
    %r = core.sign %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.sign"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class NotOp(UnaryOp):
    """
    The complement of i1, or of every bit of an integer.

    Example:

    ```mlir
    %r = core.not %x : (tensor<2x3xi32>) -> tensor<2x3xi32>
    ```
    """

    name = "core.not"
    traits = traits_def(Pure())
    assembly_format = FORMAT


SHORT_ERF = (
    *(1.12827969, -0.375318617, 0.111080445, -0.0251031127, 0.00423546974),
    *(-0.000511041959, 4.10609318e-05, -1.94484187e-06, 4.07425063e-08),
)
"""
The coefficients of erf(x) / x as a polynomial of x^2, up to the limit, where the product with x is
a little above 1.
"""

SHORT_ERF_LIMIT = 3.0
SHORT_ERF_ERROR = 3.3e-5
"""Of erf(x), in f32, too."""


def _float_unary(name: str, doc: str) -> type[FloatUnaryOp]:
    """One class per function that the C library and numpy know under one name."""
    fields = {
        "__doc__": f"""
    {doc}

    Example:

    ```mlir
    %r = core.{name} %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """,
        "__module__": __name__,
        "name": f"core.{name}",
        "traits": traits_def(Pure()),
        "assembly_format": FORMAT,
    }
    class_name = "".join(word.capitalize() for word in name.split("_"))
    return irdl_op_definition(type(f"{class_name}Op", (FloatUnaryOp,), fields))


ExpOp = _float_unary("exp", "e to the power x.")
LogOp = _float_unary("log", "Natural logarithm; NaN below zero.")
SqrtOp = _float_unary("sqrt", "Square root; NaN below zero.")
FloorOp = _float_unary("floor", "Largest integer not above x.")
CeilOp = _float_unary("ceil", "Smallest integer not below x.")
RoundOp = _float_unary("round", "Nearest integer, halves to even.")
ErfOp = _float_unary("erf", "Error function.")
ShortErfOp = _float_unary(
    "short_erf",
    "p(t * t) * t, but at least -1 and at most 1, of t = x, but at least -3 and at most 3, with\n"
    "    the polynomial p of `SHORT_ERF`: the error function, but for 3.3e-5. Computed in f32.",
)
SinOp = _float_unary("sin", "Sine.")
CosOp = _float_unary("cos", "Cosine.")
TanOp = _float_unary("tan", "Tangent.")
AsinOp = _float_unary("asin", "Inverse sine.")
AcosOp = _float_unary("acos", "Inverse cosine.")
AtanOp = _float_unary("atan", "Inverse tangent.")
SinhOp = _float_unary("sinh", "Hyperbolic sine.")
CoshOp = _float_unary("cosh", "Hyperbolic cosine.")
TanhOp = _float_unary("tanh", "Hyperbolic tangent.")
AsinhOp = _float_unary("asinh", "Inverse hyperbolic sine.")
AcoshOp = _float_unary("acosh", "Inverse hyperbolic cosine.")
AtanhOp = _float_unary("atanh", "Inverse hyperbolic tangent.")
SigmoidOp = _float_unary("sigmoid", "1 / (1 + exp(-x)).")
RectifyOp = _float_unary(
    "rectify", "x - y with y = x below zero, else 0: the larger of x and 0, but NaN for -infinity."
)

FLOAT_UNARY: tuple[type[FloatUnaryOp], ...] = (
    ExpOp,
    LogOp,
    SqrtOp,
    FloorOp,
    CeilOp,
    RoundOp,
    ErfOp,
    SinOp,
    CosOp,
    TanOp,
    AsinOp,
    AcosOp,
    AtanOp,
    SinhOp,
    CoshOp,
    TanhOp,
    AsinhOp,
    AcoshOp,
    AtanhOp,
    SigmoidOp,
    RectifyOp,
)


@irdl_op_definition
class AddOp(BinaryOp):
    """
    x + y.

    Example:

    ```mlir
    %r = core.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.add"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class SubOp(BinaryOp):
    """
    x - y.

    Example:

    ```mlir
    %r = core.sub %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.sub"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class MulOp(BinaryOp):
    """
    x * y.

    Example:

    ```mlir
    %r = core.mul %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.mul"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class DivOp(BinaryOp):
    """
    x / y; integers are rounded toward zero, and division by zero gives zero.

    Example:

    ```mlir
    %r = core.div %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.div"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class RemOp(BinaryOp):
    """
    The remainder with the sign of x, as C's fmod; integer division by zero gives zero.

    Example:

    ```mlir
    %r = core.rem %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.rem"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class ModOp(BinaryOp):
    """
    The remainder with the sign of y, as Python's %; integer division by zero gives zero.

    Example:

    ```mlir
    %r = core.mod %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.mod"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class PowOp(BinaryOp):
    """
    x to the power y; integer powers wrap, negative integer exponents round toward zero.

    Example:

    ```mlir
    %r = core.pow %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.pow"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class MaxOp(BinaryOp):
    """
    The larger of x and y; NaN if one of them is.

    Example:

    ```mlir
    %r = core.max %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.max"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class MinOp(BinaryOp):
    """
    The smaller of x and y; NaN if one of them is.

    Example:

    ```mlir
    %r = core.min %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.min"
    traits = traits_def(Pure())
    assembly_format = FORMAT


class BitwiseOp(BinaryOp, ABC):
    """
    A function of the bits of i1 or integers.

    Constraints:

    - (C3) the element type is i1 or an integer.
    """

    def infer(self) -> Sequence[Attribute]:
        element = element_type(self.lhs)
        require(
            element == i1 or is_integer(element),
            lambda: f"expected integers or i1, got {element}",
            "C3",
        )
        return super().infer()


@irdl_op_definition
class AndOp(BitwiseOp):
    """
    x and y, bit by bit.

    Example:

    ```mlir
    %r = core.and %x, %y : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
    ```
    """

    name = "core.and"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class OrOp(BitwiseOp):
    """
    x or y, bit by bit.

    Example:

    ```mlir
    %r = core.or %x, %y : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
    ```
    """

    name = "core.or"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class XorOp(BitwiseOp):
    """
    x xor y, bit by bit.

    Example:

    ```mlir
    %r = core.xor %x, %y : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
    ```
    """

    name = "core.xor"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class ShlOp(BitwiseOp):
    """
    x shifted left by y bits; zero if y is at least the width.

    Example:

    ```mlir
    %r = core.shl %x, %y : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
    ```
    """

    name = "core.shl"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class ShrOp(BitwiseOp):
    """
    Unsigned x shifted right by y bits; zero if y is at least the width.

    Example:

    ```mlir
    %r = core.shr %x, %y : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
    ```
    """

    name = "core.shr"
    traits = traits_def(Pure())
    assembly_format = FORMAT


@irdl_op_definition
class CompareOp(CoreOp, Broadcasts):
    """
    `x predicate y` as i1; every comparison with NaN but `ne` is false.

    Constraints:

    - (C1) both operands have the same element type.
    - (C2) their dimensions broadcast.

    Example:

    ```mlir
    %r = core.compare lt %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    ```
    """

    name = "core.compare"
    lhs = operand_def()
    rhs = operand_def()
    predicate = prop_def(PredicateAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$predicate operands {TYPES}"

    def __init__(self, predicate: Predicate | str, lhs: SSAValue, rhs: SSAValue):
        super().__init__([lhs, rhs], {"predicate": PredicateAttr(Predicate(predicate))})

    def infer(self) -> Sequence[Attribute]:
        require_same_element(self.operands, "C1")
        return [tensor(i1, require_broadcast([dims_of(self.lhs), dims_of(self.rhs)], "C2"))]


@irdl_op_definition
class SelectOp(CoreOp, Broadcasts):
    """
    x where the condition holds, else y.

    Constraints:

    - (C1) the condition is i1.
    - (C2) x and y have the same element type.
    - (C3) all dimensions broadcast.

    Example:

    ```mlir
    %r = core.select %c, %x, %y
        : (tensor<2x1xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.select"
    condition = operand_def()
    on_true = operand_def()
    on_false = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, condition: SSAValue, on_true: SSAValue, on_false: SSAValue):
        super().__init__([condition, on_true, on_false])

    def infer(self) -> Sequence[Attribute]:
        require(element_type(self.condition) == i1, "the condition is not i1", "C1")
        element = require_same_element([self.on_true, self.on_false], "C2")
        shapes = [dims_of(value) for value in self.operands]
        return [tensor(element, require_broadcast(shapes, "C3"))]


@irdl_op_definition
class CastOp(CoreOp, Broadcasts):
    """
    The value in another element type `to`.

    To a float: nearest, halves to even. Float to integer: toward zero, and what does not fit (or
    is NaN) is unspecified but harmless. Integer to integer: modulo 2^width. To i1: x != 0. Floats
    of a cast that `fits` are within the limits of the integers.

    Example:

    ```mlir
    %r = core.cast %x to i32 : (tensor<2x3xf32>) -> tensor<2x3xi32>
    ```
    """

    name = "core.cast"
    input = operand_def()
    to = prop_def()
    fits = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$input `to` $to {TYPES}"

    def __init__(self, input: SSAValue, to: Attribute, *, fits: bool = False):
        super().__init__([input], {"to": to, "fits": UnitAttr() if fits else None})

    def infer(self) -> Sequence[Attribute]:
        return [tensor(self.to, dims_of(self.input))]


@irdl_op_definition
class BitcastOp(CoreOp, Broadcasts):
    """
    The bits of the value as another element type `to`.

    Constraints:

    - (C1) both element types have the same 8, 16, 32 or 64 bits; floats have 32 or 64.

    Example:

    ```mlir
    %r = core.bitcast %x to i32 : (tensor<2x3xf32>) -> tensor<2x3xi32>
    ```
    """

    name = "core.bitcast"
    input = operand_def()
    to = prop_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$input `to` $to {TYPES}"

    def __init__(self, input: SSAValue, to: Attribute):
        super().__init__([input], {"to": to})

    def infer(self) -> Sequence[Attribute]:
        elements = element_type(self.input), self.to
        message = f"the bits of {elements[0]} as {elements[1]}"
        require(all(has_bits(element) for element in elements), message, "C1")
        source, target = (numpy_dtype(element).itemsize for element in elements)
        require(source == target, message, "C1")
        return [tensor(self.to, dims_of(self.input))]


def has_bits(element: Attribute) -> bool:
    """True for the element types whose bits `core.bitcast` reads."""
    return element in (f32, f64) or (is_integer(element) and bit_width(element) >= 8)


UNARY: tuple[type[UnaryOp], ...] = (NegOp, AbsOp, SignOp, NotOp, ShortErfOp, *FLOAT_UNARY)
BINARY: tuple[type[BinaryOp], ...] = (
    AddOp,
    SubOp,
    MulOp,
    DivOp,
    RemOp,
    ModOp,
    PowOp,
    MaxOp,
    MinOp,
    AndOp,
    OrOp,
    XorOp,
    ShlOp,
    ShrOp,
)
ELEMENTWISE: tuple[type[CoreOp], ...] = (
    *UNARY,
    *BINARY,
    CompareOp,
    SelectOp,
    CastOp,
    BitcastOp,
    RequantizeOp,
    PairHalvesOp,
)
"""All maps."""
