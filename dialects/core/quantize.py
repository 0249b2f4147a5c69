"""Integers of one scale in another: the exact arithmetic of quantized models."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from lowerdeck.dialects.core.base import TYPES, CoreOp, require, require_broadcast
from lowerdeck.dialects.core.enums import Rounding, RoundingAttr
from lowerdeck.dialects.core.index_maps import Broadcasts
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    f32,
    f64,
    i32,
    i64,
    is_integer,
    is_unsigned,
    tensor,
)


@irdl_op_definition
class RequantizeOp(CoreOp, Broadcasts):
    """
    An integer times a real factor, rounded to an integer, plus `zero`, at least `low` and at most
    `high`, in the element type `to`. Operands broadcast as in numpy, so that factors may differ
    from channel to channel. `rounding` says how the factor is given and what is rounded:

    - `double`: the factor is multiplier * 2^(exponent - 31). x, in 32 bits, is shifted left by a
      positive exponent (what does not fit is lost); its product with the multiplier, divided by
      2^31, is rounded to the nearest integer, halves up; that, divided by 2^-exponent where the
      exponent is negative, is rounded again, halves away from zero.
    - `single`: the same factor; (x * multiplier + 2^(30 - exponent)) / 2^(31 - exponent), rounded
      down.
    - `real`: the factor is the multiplier, an f64; the product in f64 is rounded to the nearest
      integer, halves away from zero.
    - `even`: the factor is the multiplier, an f32; x is rounded to f32, and the product in f32 to
      the nearest integer, halves to even.

    Nothing is reassociated across this op: each of the four gives other integers.

    Constraints:

    - (C1) the input is i32, or i64 where `rounding` is `single` or `real`.
    - (C2) multiplier and exponent are i32, exponents from -31 to 30; or the multiplier is f64, or
      f32 for `even`, and there is no exponent.
    - (C3) `to` is an integer type of at most 32 bits that holds `low` and `high`, `low` at most
      `high`; for `even`, both and `zero` have at most 16 bits.
    - (C4) all operands broadcast.

    Example:

    ```mlir
    %y = core.requantize double %x, %m, %e zero 3 low -128 high 127 to i8
        : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xi8>
    ```
    """

    name = "core.requantize"
    input = operand_def()
    multiplier = operand_def()
    exponent = opt_operand_def()
    rounding = prop_def(RoundingAttr)
    zero = prop_def(IntAttr)
    low = prop_def(IntAttr)
    high = prop_def(IntAttr)
    to = prop_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$rounding operands `zero` custom<Number>($zero) `low` custom<Number>($low) "
        f"`high` custom<Number>($high) `to` $to {TYPES}"
    )

    def __init__(
        self,
        rounding: Rounding | str,
        input: SSAValue,
        multiplier: SSAValue,
        exponent: SSAValue | None,
        *,
        zero: int,
        low: int,
        high: int,
        to: Attribute,
    ):
        super().__init__(
            [input, multiplier, exponent],
            {
                "rounding": RoundingAttr(Rounding(rounding)),
                "zero": IntAttr(zero),
                "low": IntAttr(low),
                "high": IntAttr(high),
                "to": to,
            },
        )

    def infer(self) -> Sequence[Attribute]:
        float_ = {Rounding.REAL: f64, Rounding.EVEN: f32}.get(self.rounding.data)
        source, factor = element_type(self.input), element_type(self.multiplier)
        wide = self.rounding.data in (Rounding.SINGLE, Rounding.REAL)
        require(
            source == i32 or (wide and source == i64),
            lambda: f"{self.rounding.data.value} rounding of {source}",
            "C1",
        )
        require(
            (factor == float_ and self.exponent is None)
            if float_ is not None
            else (
                factor == i32 and self.exponent is not None and element_type(self.exponent) == i32
            ),
            lambda: f"a multiplier of type {factor} for {self.rounding.data.value} rounding",
            "C2",
        )
        require(is_integer(self.to), lambda: f"integers of type {self.to}", "C3")
        width, shift = bit_width(self.to), 0 if is_unsigned(self.to) else 1
        least, most = -shift << (width - 1), (1 << (width - shift)) - 1
        require(
            width <= 32 and least <= self.low.data <= self.high.data <= most,
            lambda: f"{self.low.data} to {self.high.data} in {self.to}",
            "C3",
        )
        numbers = (self.low.data, self.high.data, self.zero.data)
        require(
            self.rounding.data is not Rounding.EVEN or max(map(abs, numbers)) < 1 << 16,
            lambda: f"{numbers} for even rounding",
            "C3",
        )
        return [tensor(self.to, require_broadcast([dims_of(v) for v in self.operands], "C4"))]
