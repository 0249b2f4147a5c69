"""
Vectors in kernels: what `arith` and `math` do not say of them.

A vector is `vector<N x T>` of one dimension, N lanes, never more than the target has. `arith` and
`math` apply to it lane by lane. A mask is a vector of integers, each lane 0 or -1, as wide as what
it is a comparison of.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    AnyFloatConstr,
    FixedBitwidthType,
    IndexType,
    IntegerType,
    UnitAttr,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.buffer.enums import LaneReduction, LaneReductionAttr
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.base import require
from lowerdeck.dialects.core.enums import Predicate, PredicateAttr
from lowerdeck.dialects.core.types import DimsAttr, f32, is_float
from lowerdeck.dialects.dims import ExprLike, constants

LARGEST_STRIDE = 8
"""Between the elements of two lanes that are loaded as vectors: of more, one by one."""


def factors_of(rows: int) -> list[int]:
    """The prime factors of a number of vectors: they are interleaved by one after the other."""
    found: list[int] = []
    factor = 2
    while rows > 1:
        if rows % factor:
            factor += 1
        else:
            found.append(factor)
            rows //= factor
    return found


@cache
def vector_type(element: Attribute, lanes: int) -> VectorType[Attribute]:
    """`lanes` elements of a scalar type."""
    return VectorType(element, [lanes])


def lanes_of(type_: Attribute) -> int:
    """The lanes of a vector; 0 for a scalar."""
    # Asked for every op of a kernel, so without xDSL's slower and more thorough question.
    if not isinstance(type_, VectorType):
        return 0
    return cast("VectorType[Attribute]", type_).shape.data[0].data


def scalar_of(type_: Attribute) -> Attribute:
    """The type of one lane; a scalar's own."""
    if not isinstance(type_, VectorType):
        return type_
    return cast("VectorType[Attribute]", type_).element_type


def lane_bits(type_: Attribute) -> int:
    """The width of a lane, or of a scalar; 0 if that is not fixed."""
    scalar = scalar_of(type_)
    return scalar.bitwidth if isinstance(scalar, FixedBitwidthType) else 0


def mask_type(compared: Attribute) -> VectorType[Attribute]:
    """The mask that comparing vectors of a type gives."""
    return vector_type(IntegerType(lane_bits(compared)), lanes_of(compared))


@irdl_op_definition
class CompareOp(IRDLOperation):
    """
    A mask: -1 in each lane where `lhs predicate rhs` holds (never for NaN, but for `ne`). Integers
    have signs unless they are `unsigned`.

    Constraints:

    - (C1) the result is a vector of integers with the lanes of the operands, and as wide.
    - (C2) only integers are `unsigned`.

    Examples:

    ```mlir
    %m = buffer.compare lt %x, %y : vector<8xf32> -> vector<8xi32>
    %n = buffer.compare unsigned gt %a, %b : vector<8xi8> -> vector<8xi8>
    ```
    """

    name = "buffer.compare"
    T: ClassVar = VarConstraint("T", AnyAttr())
    predicate = prop_def(PredicateAttr)
    unsigned = opt_prop_def(UnitAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(VectorType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = (
        "(`unsigned` $unsigned^)? $predicate $lhs `,` $rhs attr-dict "
        "`:` type($lhs) `->` type($result)"
    )

    def __init__(
        self, predicate: Predicate | str, lhs: SSAValue, rhs: SSAValue, *, unsigned: bool = False
    ):
        super().__init__(
            operands=[lhs, rhs],
            properties={
                "predicate": PredicateAttr(Predicate(predicate)),
                "unsigned": UnitAttr() if unsigned else None,
            },
            result_types=[mask_type(lhs.type)],
        )

    def verify_(self) -> None:
        fits = self.result.type == mask_type(self.lhs.type)
        require(fits, lambda: f"a comparison of {self.lhs.type} does not give a mask", "C1")
        is_integer = not is_float(scalar_of(self.lhs.type))
        require(self.unsigned is None or is_integer, "unsigned lanes of floats", "C2")


@irdl_op_definition
class AnyOp(IRDLOperation):
    """
    True if a lane of a mask is -1.

    Example:

    ```mlir
    %b = buffer.any %m : vector<8xi32>
    ```
    """

    name = "buffer.any"
    mask = operand_def(VectorType)
    result = result_def(i1)
    traits = traits_def(Pure())
    assembly_format = "$mask attr-dict `:` type($mask)"

    def __init__(self, mask: SSAValue):
        super().__init__(operands=[mask], result_types=[i1])


@irdl_op_definition
class SelectOp(IRDLOperation):
    """
    `lhs` in the lanes where the mask is -1, else `rhs`.

    Example:

    ```mlir
    %r = buffer.select %m, %x, %y : vector<8xi32>, vector<8xf32>
    ```
    """

    name = "buffer.select"
    T: ClassVar = VarConstraint("T", AnyAttr())
    mask = operand_def(VectorType)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$mask `,` $lhs `,` $rhs attr-dict `:` type($mask) `,` type($result)"

    def __init__(self, mask: SSAValue, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[mask, lhs, rhs], result_types=[lhs.type])


class _ExtremumOp(IRDLOperation):
    T: ClassVar = VarConstraint("T", VectorType.constr(AnyFloatConstr))
    keeps_nan = opt_prop_def(UnitAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "(`keeps_nan` $keeps_nan^)? $lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue, *, keeps_nan: bool = False):
        super().__init__(
            operands=[lhs, rhs],
            properties={"keeps_nan": UnitAttr() if keeps_nan else None},
            result_types=[lhs.type],
        )


@irdl_op_definition
class MaxfOp(_ExtremumOp):
    """
    lhs > rhs ? lhs : rhs, as vector units have it: the right operand if one is NaN; with
    `keeps_nan` NaN if one of them is.

    Examples:

    ```mlir
    %r = buffer.maxf %x, %y : vector<8xf32>
    %s = buffer.maxf keeps_nan %x, %y : vector<8xf32>
    ```
    """

    name = "buffer.maxf"


@irdl_op_definition
class MinfOp(_ExtremumOp):
    """
    lhs < rhs ? lhs : rhs, as vector units have it: the right operand if one is NaN; with
    `keeps_nan` NaN if one of them is.

    Example:

    ```mlir
    %r = buffer.minf %x, %y : vector<8xf32>
    ```
    """

    name = "buffer.minf"


class _DotOp(IRDLOperation):
    """A total with products of the parts of i32."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    total = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs `,` $total attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue, total: SSAValue):
        super().__init__(operands=[lhs, rhs, total], result_types=[total.type])

    def verify_(self) -> None:
        own = scalar_of(self.result.type)
        require(own == IntegerType(32), lambda: f"parts of {own}", "C1")


@irdl_op_definition
class DotPairsOp(_DotOp):
    """
    total + low(lhs) * low(rhs) + high(lhs) * high(rhs), modulo 2^32: each i32 holds two signed
    numbers of 16 bits. Of scalars, too.

    Constraints:

    - (C1) elements are i32.

    Example:

    ```mlir
    %r = buffer.dot_pairs %x, %y, %total : vector<8xi32>
    ```
    """

    name = "buffer.dot_pairs"


@irdl_op_definition
class AddBytesOp(IRDLOperation):
    """
    Bytes 0 and 2 of an i32, or 1 and 3 where `odd`, each added to a half of `base`, modulo 2^16.
    Bytes have signs unless they are `unsigned`.

    Examples:

    ```mlir
    %even = buffer.add_bytes %word, %base : i32
    %odd = buffer.add_bytes odd unsigned %word, %base : i32
    ```
    """

    name = "buffer.add_bytes"
    odd = opt_prop_def(UnitAttr)
    unsigned = opt_prop_def(UnitAttr)
    word = operand_def(IntegerType(32))
    base = operand_def(IntegerType(32))
    result = result_def(IntegerType(32))
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = (
        "(`odd` $odd^)? (`unsigned` $unsigned^)? $word `,` $base attr-dict `:` type($result)"
    )

    def __init__(
        self, word: SSAValue, base: SSAValue, *, odd: bool = False, unsigned: bool = False
    ):
        super().__init__(
            operands=[word, base],
            properties={
                "odd": UnitAttr() if odd else None,
                "unsigned": UnitAttr() if unsigned else None,
            },
            result_types=[IntegerType(32)],
        )


@irdl_op_definition
class DotQuadsOp(_DotOp):
    """
    total + the sum of the products of the four bytes of lhs, which have no signs, and those of rhs,
    which have, modulo 2^32. Of scalars, too.

    Constraints:

    - (C1) elements are i32.

    Example:

    ```mlir
    %r = buffer.dot_quads %x, %y, %total : vector<8xi32>
    ```
    """

    name = "buffer.dot_quads"


@irdl_op_definition
class DotSmallQuadsOp(_DotOp):
    """
    `buffer.dot_quads` where 16 bits with a sign hold the sum of the first two products, and that of
    the last two. What others give is up to the machine.

    Constraints:

    - (C1) elements are i32.

    Example:

    ```mlir
    %r = buffer.dot_small_quads %x, %y, %total : vector<8xi32>
    ```
    """

    name = "buffer.dot_small_quads"


@irdl_op_definition
class DotHalvesOp(IRDLOperation):
    """
    total + low(lhs) * low(rhs) + high(lhs) * high(rhs) in f32: each i32 holds two numbers of bf16.
    In which order, and how often, the sum is rounded, and what becomes of subnormal numbers, is up
    to the machine. Of scalars, too.

    Constraints:

    - (C1) factors are of i32, total and result of as many f32.

    Example:

    ```mlir
    %r = buffer.dot_halves %x, %y, %total : vector<8xi32>, vector<8xf32>
    ```
    """

    name = "buffer.dot_halves"
    T: ClassVar = VarConstraint("T", AnyAttr())
    S: ClassVar = VarConstraint("S", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    total = operand_def(S)
    result = result_def(S)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs `,` $total attr-dict `:` type($lhs) `,` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue, total: SSAValue):
        super().__init__(operands=[lhs, rhs, total], result_types=[total.type])

    def verify_(self) -> None:
        words, sums = self.lhs.type, self.result.type
        fits = scalar_of(words) == IntegerType(32) and scalar_of(sums) == f32
        fits = fits and lanes_of(words) == lanes_of(sums)
        require(fits, lambda: f"halves of {words} in {sums}", "C1")


@irdl_op_definition
class PairHalvesOp(IRDLOperation):
    """
    Two f32 as one i32: each is rounded to bf16, to nearest, halves to even; the first is in the
    lower half of the bits. What becomes of subnormal numbers is up to the machine, as in
    `buffer.dot_halves`. Of scalars, too.

    Constraints:

    - (C1) operands are of f32, the result of as many i32.

    Example:

    ```mlir
    %r = buffer.pair_halves %low, %high : vector<8xf32> -> vector<8xi32>
    ```
    """

    name = "buffer.pair_halves"
    T: ClassVar = VarConstraint("T", AnyAttr())
    low = operand_def(T)
    high = operand_def(T)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$low `,` $high attr-dict `:` type($low) `->` type($result)"

    def __init__(self, low: SSAValue, high: SSAValue):
        lanes = lanes_of(low.type)
        type_ = vector_type(IntegerType(32), lanes) if lanes else IntegerType(32)
        super().__init__(operands=[low, high], result_types=[type_])

    def verify_(self) -> None:
        before, after = self.low.type, self.result.type
        fits = scalar_of(before) == f32 and scalar_of(after) == IntegerType(32)
        require(
            fits and lanes_of(before) == lanes_of(after),
            lambda: f"halves of {before} as {after}",
            "C1",
        )


@irdl_op_definition
class WidenPairsOp(IRDLOperation):
    """
    The two signed bytes of each i16 as the two signed halves of an i32. Of scalars, too.

    Constraints:

    - (C1) the input is of i16, the result of as many i32.

    Example:

    ```mlir
    %r = buffer.widen_pairs %x : vector<8xi16> -> vector<8xi32>
    ```
    """

    name = "buffer.widen_pairs"
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue):
        lanes = lanes_of(input.type)
        type_ = vector_type(IntegerType(32), lanes) if lanes else IntegerType(32)
        super().__init__(operands=[input], result_types=[type_])

    def verify_(self) -> None:
        before, after = self.input.type, self.result.type
        fits = scalar_of(before) == IntegerType(16) and scalar_of(after) == IntegerType(32)
        require(
            fits and lanes_of(before) == lanes_of(after),
            lambda: f"pairs of bytes of {before} as {after}",
            "C1",
        )


class _RoundedOp(IRDLOperation):
    """Two i32 of which a quotient is rounded."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        own = scalar_of(self.result.type)
        require(own == IntegerType(32), lambda: f"a quotient of {own}", "C1")


@irdl_op_definition
class MultiplyHighOp(_RoundedOp):
    """
    lhs * rhs / 2^31, rounded to the nearest integer, halves up, modulo 2^32. Of scalars, too.

    Constraints:

    - (C1) elements are i32.

    Example:

    ```mlir
    %r = buffer.multiply_high %x, %m : vector<8xi32>
    ```
    """

    name = "buffer.multiply_high"


@irdl_op_definition
class DivideByPowerOp(_RoundedOp):
    """
    lhs / 2^rhs, rounded to the nearest integer, halves away from zero; rhs from 0 to 31. Of
    scalars, too. Where it is `positive`, rhs is known to be 1 or more, and lhs not to be an end of
    the range; then halves may go `up`.

    Constraints:

    - (C1) elements are i32.
    - (C2) halves go `up` only where the op is `positive`.

    Examples:

    ```mlir
    %r = buffer.divide_by_power %x, %n : vector<8xi32>
    %s = buffer.divide_by_power positive up %x, %n : vector<8xi32>
    ```
    """

    name = "buffer.divide_by_power"
    positive = opt_prop_def(UnitAttr)
    up = opt_prop_def(UnitAttr)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "(`positive` $positive^)? (`up` $up^)? $lhs `,` $rhs attr-dict `:` type($result)"
    )

    def __init__(self, lhs: SSAValue, rhs: SSAValue, *, positive: bool = False, up: bool = False):
        super().__init__(lhs, rhs)
        if positive:
            self.positive = UnitAttr()
        if up:
            self.up = UnitAttr()

    def verify_(self) -> None:
        super().verify_()
        require(self.up is None or self.positive is not None, "halves go up", "C2")


@irdl_op_definition
class ConvertOp(IRDLOperation):
    """
    Lanes of another type: integers to wider ones, or cut off; integers to floats, rounded once;
    floats to integers, toward zero, where what does not fit is any value; floats to other floats,
    rounded once. The integers have signs unless they are `unsigned`.

    Constraints:

    - (C1) the result has as many lanes as the input.
    - (C2) where there are no integers, nothing is `unsigned`.

    Examples:

    ```mlir
    %r = buffer.convert %x : vector<8xi32> -> vector<8xf32>
    %s = buffer.convert unsigned %y : vector<8xi8> -> vector<8xi32>
    ```
    """

    name = "buffer.convert"
    unsigned = opt_prop_def(UnitAttr)
    input = operand_def(VectorType)
    result = result_def(VectorType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = (
        "(`unsigned` $unsigned^)? $input attr-dict `:` type($input) `->` type($result)"
    )

    def __init__(self, input: SSAValue, type: Attribute, *, unsigned: bool = False):
        super().__init__(
            operands=[input],
            properties={"unsigned": UnitAttr() if unsigned else None},
            result_types=[type],
        )

    def verify_(self) -> None:
        fits = lanes_of(self.input.type) == lanes_of(self.result.type)
        require(fits, "a conversion keeps the lanes", "C1")
        types = [scalar_of(value.type) for value in (self.input, self.result)]
        require(
            self.unsigned is None or not all(map(is_float, types)),
            lambda: f"unsigned lanes of {types[0]} as {types[1]}",
            "C2",
        )


TABLE_ENTRIES = 256
"""One for each byte."""


@irdl_op_definition
class LookUpOp(IRDLOperation):
    """
    The entries of a table that the lanes, bytes without signs, are the numbers of.

    Constraints:

    - (C1) the table is 256 bytes side by side, which the kernel does not change.
    - (C2) the lanes are bytes, as the results are.

    Example:

    ```mlir
    %r = buffer.look_up %x, %table : vector<64xi8>, !buffer.ref<[256] x i8>
    ```
    """

    T: ClassVar = VarConstraint("T", AnyAttr())
    name = "buffer.look_up"
    numbers = operand_def(T)
    table = operand_def(RefType)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$numbers `,` $table attr-dict `:` type($numbers) `,` type($table)"

    def __init__(self, numbers: SSAValue, table: SSAValue):
        super().__init__(operands=[numbers, table], result_types=[numbers.type])

    def verify_(self) -> None:
        type_, own = ref_type(self.table), self.result.type
        is_table = constants(type_.dims.data) == (TABLE_ENTRIES,) and type_.is_dense
        is_of_bytes = type_.element != i1 and type_.item_size == 1
        require(is_table and is_of_bytes, lambda: f"{type_} is no table of all bytes", "C1")
        is_vector = lanes_of(own) > 0 and lane_bits(own) == 8
        require(is_vector, lambda: f"{own} is no vector of bytes", "C2")


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """
    All lanes combined into one value by `kind`: max and min of floats as maxf and minf do, of
    integers as signed ones; umax and umin are those of unsigned integers.

    Constraints:

    - (C1) the result has the type of a lane.
    - (C2) umax and umin are those of integers.

    Example:

    ```mlir
    %r = buffer.reduce add %x : vector<8xf32> -> f32
    ```
    """

    name = "buffer.reduce"
    kind = prop_def(LaneReductionAttr)
    input = operand_def(VectorType)
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "$kind $input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, kind: LaneReduction | str, input: SSAValue):
        super().__init__(
            operands=[input],
            properties={"kind": LaneReductionAttr(LaneReduction(kind))},
            result_types=[scalar_of(input.type)],
        )

    def verify_(self) -> None:
        fits = self.result.type == scalar_of(self.input.type)
        require(fits, "the result does not have the type of a lane", "C1")
        is_unsigned = self.kind.data in (LaneReduction.UMAX, LaneReduction.UMIN)
        require(not (is_unsigned and is_float(self.result.type)), "floats have signs", "C2")


@irdl_op_definition
class FromLanesOp(IRDLOperation):
    """
    A vector of scalars, one for each lane.

    Constraints:

    - (C1) there are as many scalars as lanes, of their type.

    Example:

    ```mlir
    %v = buffer.from_lanes %a, %b : (f32, f32) -> vector<2xf32>
    ```
    """

    name = "buffer.from_lanes"
    lanes = var_operand_def()
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$lanes attr-dict `:` `(` type($lanes) `)` `->` type($result)"

    def __init__(self, lanes: Sequence[SSAValue]):
        super().__init__(operands=[lanes], result_types=[vector_type(lanes[0].type, len(lanes))])

    def verify_(self) -> None:
        type_ = self.result.type
        fits = [lane.type for lane in self.lanes] == [scalar_of(type_)] * lanes_of(type_)
        require(fits, lambda: f"the lanes of {type_} are others", "C1")


@irdl_op_definition
class LaneNumbersOp(IRDLOperation):
    """
    The number of each lane: 0, 1, 2, ...

    Constraints:

    - (C1) the lanes are integers that can hold the numbers.

    Example:

    ```mlir
    %n = buffer.lane_numbers : vector<8xi32>
    ```
    """

    name = "buffer.lane_numbers"
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type: Attribute):
        super().__init__(result_types=[type])

    def verify_(self) -> None:
        bits = lane_bits(self.result.type)
        is_integer = isinstance(scalar_of(self.result.type), IntegerType)
        fits = is_integer and lanes_of(self.result.type) <= 1 << (bits - 1)
        require(fits, lambda: f"{self.result.type} cannot hold numbers of lanes", "C1")


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """
    Put the elements of a buffer, rows as long as a vector, in the order of its columns: first those
    of the first column, then those of the second. A square is transposed; other rows are
    interleaved.

    Constraints:

    - (C1) the buffer is dense, with two dimensions, the first one at least 2.
    - (C2) the size of the second one is a power of two, at least 2.

    Example:

    ```mlir
    buffer.transpose %t : !buffer.ref<[8, 8] x f32>
    buffer.transpose %u : !buffer.ref<[3, 8] x f32>
    ```
    """

    name = "buffer.transpose"
    ref = operand_def(RefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$ref attr-dict `:` type($ref)"

    def __init__(self, ref: SSAValue):
        super().__init__(operands=[ref])

    @property
    def rows(self) -> int:
        """The vectors."""
        return ref_type(self.ref).dims.data[0].value or 0

    @property
    def lanes(self) -> int:
        """The elements of each."""
        return ref_type(self.ref).dims.data[1].value or 0

    def verify_(self) -> None:
        type_ = ref_type(self.ref)
        sizes = constants(type_.dims.data)
        if sizes is None or len(sizes) != 2 or sizes[0] < 2 or not type_.is_dense:
            raise VerifyException(f"{type_} is not dense, or has no rows (C1)")
        is_power = sizes[1] >= 2 and sizes[1] & (sizes[1] - 1) == 0
        require(is_power, f"no vector has {sizes[1]} lanes", "C2")


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """
    Ask for the cache line at `offset[0]` elements from the start of a buffer, which may lie outside
    of it: nothing is read.

    Example:

    ```mlir
    buffer.prefetch %x(%i) <[d0 * 64 + 512]> : !buffer.ref<[4, 64] x f32>
    ```
    """

    name = "buffer.prefetch"
    ref = operand_def(RefType)
    indices = var_operand_def(IndexType())
    offset = prop_def(DimsAttr)
    irdl_options = (ParsePropInAttrDict(),)
    # Both effects, so that no pass moves or drops it.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$ref (`(` $indices^ `)`)? $offset attr-dict `:` type($ref)"

    def __init__(self, ref: SSAValue, offset: ExprLike, indices: Sequence[SSAValue]):
        super().__init__(operands=[ref, indices], properties={"offset": DimsAttr.of([offset])})
