"""Integers that stand for real numbers: their exact arithmetic, and numbers of four bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
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
    require,
    require_axis,
    require_broadcast,
)
from lowerdeck.dialects.core.enums import Rounding, RoundingAttr
from lowerdeck.dialects.core.index_maps import Broadcasts
from lowerdeck.dialects.core.types import (
    bf16,
    bit_width,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    i32,
    i64,
    is_integer,
    is_unsigned,
    tensor,
    ui8,
)
from lowerdeck.dialects.dims import Expr


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

    Nothing is reassociated across this op: each of the four gives other integers. Of a `right` one
    all exponents are known to be less than 0, and no multiplier is.

    Constraints:

    - (C1) the input is i32, or i64 where `rounding` is `single` or `real`.
    - (C2) multiplier and exponent are i32, exponents from -31 to 30; or the multiplier is f64, or
      f32 for `even`, and there is no exponent.
    - (C3) `to` is an integer type of at most 32 bits that holds `low` and `high`, `low` at most
      `high`; for `even`, both and `zero` have at most 16 bits.
    - (C4) all operands broadcast.
    - (C5) only `double` rounding is `right`.

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
    right = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$rounding (`right` $right^)? operands `zero` custom<Number>($zero) "
        "`low` custom<Number>($low) "
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
        is_double = self.rounding.data is Rounding.DOUBLE
        text = f"{self.rounding.data.value} rounding is not right"
        require(self.right is None or is_double, text, "C5")
        return [tensor(self.to, require_broadcast([dims_of(v) for v in self.operands], "C4"))]


@irdl_op_definition
class PairHalvesOp(CoreOp, Broadcasts):
    """
    Two f32 as one i32: each is rounded to bf16, the first is in the lower half of the bits.

    Constraints:

    - (C1) both operands are f32.
    - (C2) they broadcast.

    Example:

    ```mlir
    %w = core.pair_halves %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi32>
    ```
    """

    name = "core.pair_halves"
    low = operand_def()
    high = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(self, low: SSAValue, high: SSAValue):
        super().__init__([low, high])

    def infer(self) -> Sequence[Attribute]:
        elements = [element_type(value) for value in self.operands]
        require(elements == [f32, f32], lambda: f"halves of {elements[0]} and {elements[1]}", "C1")
        return [tensor(i32, require_broadcast([dims_of(v) for v in self.operands], "C2"))]


MIDDLE = 8
"""The zero point of numbers of four bits that have none of their own."""


def pairs_of(codes: NDArray[Any], axis: int) -> NDArray[Any]:
    """Integers from 0 to 15, two in a byte, as `core.dequantize` reads them."""
    rest = codes.shape[axis] % 2
    pads = [(0, rest if number == axis else 0) for number in range(codes.ndim)]
    each = np.moveaxis(np.pad(codes, pads), axis, 0)
    return np.ascontiguousarray(np.moveaxis(each[0::2] | (each[1::2] << 4), 0, axis))


def halves_of(pairs: NDArray[Any], axis: int, size: int) -> NDArray[Any]:
    """The inverse: so many integers from 0 to 15 along an axis."""
    halves = np.stack([pairs & np.uint8(15), pairs >> np.uint8(4)], axis + 1)
    shape = [*pairs.shape[:axis], 2 * pairs.shape[axis], *pairs.shape[axis + 1 :]]
    return halves.reshape(shape)[(slice(None),) * axis + (slice(size),)]


@irdl_op_definition
class DequantizeOp(CoreOp):
    """
    Numbers of four bits, two in a byte, times a scale for each block of them along an axis.

    Of the `size` numbers along the axis, byte i of `codes` holds number 2 i in its lower half and
    number 2 i + 1 in its upper half; each is an integer from 0 to 15. Number k has scale and zero
    point k / block, rounded down: the result is (code - zero) * scale in f32, rounded once. Without
    zero points all are 8. The upper half of the last byte of an odd size is not read.

    Constraints:

    - (C1) codes are ui8, the scale f32, bf16 or f16, the zero points ui8.
    - (C2) the axis is one of codes; `size` and `block` are positive.
    - (C3) along the axis there are ceil(size / 2) bytes and ceil(size / block) scales; otherwise
      all operands have the same dimensions.

    Example:

    ```mlir
    %w = core.dequantize %codes, %scale axis 0 size 64 block 32
        : (tensor<32x48xui8>, tensor<2x48xbf16>) -> tensor<64x48xf32>
    ```
    """

    name = "core.dequantize"
    codes = operand_def()
    scale = operand_def()
    zero = opt_operand_def()
    axis = prop_def(IntAttr)
    size = prop_def(IntAttr)
    block = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "operands `axis` custom<Number>($axis) `size` custom<Number>($size) "
        f"`block` custom<Number>($block) {TYPES}"
    )

    def __init__(
        self,
        codes: SSAValue,
        scale: SSAValue,
        zero: SSAValue | None = None,
        *,
        axis: int,
        size: int,
        block: int,
    ):
        numbers = {"axis": axis, "size": size, "block": block}
        properties = {name: IntAttr(number) for name, number in numbers.items()}
        super().__init__([codes, scale, zero], properties)

    def infer(self) -> Sequence[Attribute]:
        codes, scale = element_type(self.codes), element_type(self.scale)
        zero = None if self.zero is None else element_type(self.zero)
        require(
            codes == ui8 and scale in (f32, bf16, f16) and zero in (None, ui8),
            lambda: f"codes of type {codes}, scales of {scale}, zero points of {zero}",
            "C1",
        )
        dims, size, block = list(dims_of(self.codes)), self.size.data, self.block.data
        axis = require_axis(self.axis.data, len(dims), "C2")
        require(size > 0 and block > 0, f"size {size}, block {block}", "C2")
        parameters = self.operands[1:]
        for operand, count in ((self.codes, 2), *((value, block) for value in parameters)):
            expected = [*dims[:axis], Expr.const(-(-size // count)), *dims[axis + 1 :]]
            found = dims_of(operand)
            require(
                list(found) == expected,
                lambda found=found, expected=expected: (
                    f"an operand of {list(map(str, found))}, expected {list(map(str, expected))}"
                ),
                "C3",
            )
        return [tensor(f32, [*dims[:axis], Expr.const(size), *dims[axis + 1 :]])]
