"""Which ops apply to vectors as they are, and what stands for others in vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerType, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.buffer import vector
from lowerdeck.dialects.buffer.kernel import FITS, ApplyOp
from lowerdeck.dialects.buffer.vector import lane_bits, mask_type, scalar_of, vector_type
from lowerdeck.dialects.core.types import bf16, f16, f32, f64, i1
from lowerdeck.lowering.loops.indices import Cloner
from lowerdeck.lowering.loops.lane_values import I32, LaneValues, NotVectorizableError, append

PLAIN: frozenset[type[Operation]] = frozenset(
    {
        arith.AddfOp,
        arith.SubfOp,
        arith.MulfOp,
        arith.DivfOp,
        arith.NegfOp,
        math.FmaOp,
        arith.AddiOp,
        arith.SubiOp,
        arith.MuliOp,
        arith.MaxSIOp,
        arith.MaxUIOp,
        arith.MinSIOp,
        arith.MinUIOp,
        arith.AndIOp,
        arith.OrIOp,
        arith.XOrIOp,
        arith.ShLIOp,
        arith.ShRUIOp,
        math.SqrtOp,
        math.FloorOp,
        math.CeilOp,
        math.RoundEvenOp,
        vector.DotPairsOp,
        vector.DotQuadsOp,
        vector.DotSmallQuadsOp,
        vector.DotHalvesOp,
        vector.MultiplyHighOp,
        vector.DivideByPowerOp,
    }
)
"""Ops that apply to vectors unchanged, lane by lane."""


DIVISIONS: tuple[type[Operation], ...] = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
)
"""Of integers; those of 32 bits are done in f64."""
_WIDEST_DIVISION = 32

_EXACT: Mapping[Attribute, int] = {f32: 24, f64: 53}
"""Integers of so many bits are floats."""


def _extremum(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """NaN if one operand is, at the least cost: a constant cannot be NaN."""
    kind = vector.MaxfOp if isinstance(op, arith.MaximumfOp) else vector.MinfOp
    left, right = op.operands
    if _is_number(left):
        left, right = right, left
    a, b = v.vector(left, cloner, block), v.vector(right, cloner, block)
    return kind(b, a) if _is_number(right) else kind(a, b, keeps_nan=True)


def _truth_extremum(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """The larger of two truth values is one or the other, the smaller one and the other."""
    a, b = v.masks(op.operands, cloner, block)
    return (arith.OrIOp if isinstance(op, arith.MaxUIOp) else arith.AndIOp)(a, b)


def _bitwise(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """On masks."""
    masks = v.masks(op.operands, cloner, block)
    return type(op).create(operands=masks, result_types=[masks[0].type], properties=op.properties)


def _compare(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """A mask."""
    assert isinstance(op, arith.CmpfOp | arith.CmpiOp)
    number, unsigned = op.predicate.value.data, False
    if isinstance(op, arith.CmpfOp):
        predicate = _FLOAT_PREDICATES.get(number)
        if predicate is None:
            raise NotVectorizableError
    else:
        predicate, unsigned = _INTEGER_PREDICATES[number]
    if op.lhs.type == i1:
        a, b = v.masks(op.operands, cloner, block)
    else:
        a, b = v.vectors(op, cloner, block)
    if predicate in ("ord", "uno"):
        masks = [vector.CompareOp("eq" if predicate == "ord" else "ne", x, x) for x in (a, b)]
        for mask in masks:
            block.add_op(mask)
        join = arith.AndIOp if predicate == "ord" else arith.OrIOp
        return join(masks[0].result, masks[1].result)
    return vector.CompareOp(predicate, a, b, unsigned=unsigned)


def _select(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """By mask, or by one condition for all lanes."""
    assert isinstance(op, arith.SelectOp)
    if op.result.type == i1:
        condition = [op.cond] if op.cond in v.varying else []
        *found, a, b = v.masks([*condition, op.lhs, op.rhs], cloner, block)
        if not found:
            return arith.SelectOp(cloner.value(op.cond), a, b)
        return vector.SelectOp(found[0], a, b)
    v.type_for(op.result.type)
    a, b = (v.vector(value, cloner, block) for value in (op.lhs, op.rhs))
    if op.cond not in v.varying:
        return arith.SelectOp(cloner.value(op.cond), a, b)
    if (extremum := _extremum_of(op)) is not None:
        return extremum(a, b)
    return vector.SelectOp(v.mask(op.cond, lane_bits(a.type), cloner, block), a, b)


def _absolute(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """Without the sign bit."""
    (a,) = v.vectors(op, cloner, block)
    return arith.BitcastOp(_bits_of(v, a, block, sign=False), a.type)


def _bits_of(v: LaneValues, a: SSAValue, block: Block, *, sign: bool) -> SSAValue:
    """The bits of floats: that of the sign, or those of the magnitude."""
    lowest = -1 << (lane_bits(a.type) - 1)
    number = v.constant(lowest if sign else ~lowest, mask_type(a.type), block)
    bits = arith.BitcastOp(a, mask_type(a.type))
    part = arith.AndIOp(bits.result, number)
    block.add_ops([bits, part])
    return part.result


def _copy_sign(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """The magnitude of one with the sign of the other."""
    a, b = v.vectors(op, cloner, block)
    sign = _bits_of(v, b, block, sign=True)
    magnitude = _bits_of(v, a, block, sign=False)
    both = arith.OrIOp(sign, magnitude)
    block.add_op(both)
    return arith.BitcastOp(both.result, a.type)


def _number(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """An expression of the index as an integer: that of the first lane, and steps."""
    assert isinstance(op, arith.IndexCastOp)
    source = op.input.owner
    if not isinstance(source, ApplyOp) or not isinstance(op.result.type, IntegerType):
        raise NotVectorizableError
    expr = v.expr(source)
    type_, step = v.type_for(op.result.type), v.step(expr)
    (first,), operands = v.indices.write([expr.substitute(cloner.moved)])
    numbers = vector.LaneNumbersOp(type_)
    if step == 1 and first == 0:
        return numbers
    steps = append(block, numbers)
    if step != 1:
        steps = append(block, arith.MuliOp(steps, v.constant(step, type_, block)))
    start = append(block, ApplyOp(first, operands))
    integer = append(block, arith.IndexCastOp(start, op.result.type))
    return arith.AddiOp(steps, v.splat(integer, lane_bits(type_), block))


def _bitcast(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """The bits of each lane."""
    (a,) = v.vectors(op, cloner, block)
    return arith.BitcastOp(a, v.type_for(op.results[0].type))


def _resize(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """Integers to wider ones, or cut off."""
    (value,) = op.operands
    type_ = v.type_for(op.results[0].type)
    unsigned = isinstance(op, arith.ExtUIOp)
    if value.type == i1:
        mask = v.mask(value, lane_bits(type_), cloner, block)
        if not unsigned:
            return arith.BitcastOp(mask, type_)
        return arith.AndIOp(mask, v.constant(1, mask.type, block))
    return vector.ConvertOp(v.vector(value, cloner, block), type_, unsigned=unsigned)


def _widen_pairs(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    (a,) = v.vectors(op, cloner, block)
    return vector.WidenPairsOp(a)


def _pair_halves(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    return vector.PairHalvesOp(*v.vectors(op, cloner, block))


def _last_bit(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """Integers to truth values."""
    (a,) = v.vectors(op, cloner, block)
    bit = arith.AndIOp(a, v.constant(1, a.type, block))
    block.add_op(bit)
    return vector.CompareOp("ne", bit.result, v.constant(0, a.type, block))


def _from_integer(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """Rounded once: narrow integers by way of i32, which has instructions."""
    (value,) = op.operands
    type_ = v.type_for(op.results[0].type)
    unsigned = isinstance(op, arith.UIToFPOp)
    if value.type == i1:
        mask = v.mask(value, lane_bits(type_), cloner, block)
        one = v.constant(1.0 if unsigned else -1.0, type_, block)
        bits = arith.BitcastOp(one, mask.type)
        chosen = arith.AndIOp(mask, bits.result)
        block.add_ops([bits, chosen])
        return arith.BitcastOp(chosen.result, type_)
    return _real(v, v.vector(value, cloner, block), type_, block, unsigned=unsigned)


def _real(
    v: LaneValues, value: SSAValue, type_: VectorType[Attribute], block: Block, *, unsigned: bool
) -> Operation:
    """Integers as floats: narrow ones by way of i32."""
    if lane_bits(value.type) < 32:
        word = vector_type(I32, v.lanes)
        value = append(block, vector.ConvertOp(value, word, unsigned=unsigned))
        unsigned = False
    return vector.ConvertOp(value, type_, unsigned=unsigned)


def _to_integer(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """Toward zero; what does not fit becomes the nearest number that does, NaN zero."""
    (a,) = v.vectors(op, cloner, block)
    type_ = v.type_for(op.results[0].type)
    bits, unsigned = lane_bits(type_), isinstance(op, arith.FPToUIOp)
    if FITS in op.attributes and (bits == lane_bits(a.type) or bits == 32):
        return vector.ConvertOp(a, type_, unsigned=unsigned)
    lowest, highest = (0, (1 << bits) - 1) if unsigned else (-1 << (bits - 1), ~(-1 << bits - 1))

    # Of NaN and another number, the maximum is the second one.
    number, is_limited = a, bits <= _EXACT[scalar_of(a.type)]
    if lowest != 0 or not is_limited:
        zero = v.constant(0.0, a.type, block)
        number = append(
            block, vector.SelectOp(append(block, vector.CompareOp("eq", a, a)), a, zero)
        )
    if is_limited:
        number = append(block, vector.MaxfOp(number, v.constant(float(lowest), a.type, block)))
        number = append(block, vector.MinfOp(number, v.constant(float(highest), a.type, block)))
        if bits >= 32:
            return vector.ConvertOp(number, type_, unsigned=unsigned)
        whole = append(block, vector.ConvertOp(number, vector_type(I32, v.lanes)))
        return vector.ConvertOp(whole, type_)
    # The highest integer may be no float: what is beyond is chosen afterwards.
    floor, limit = (v.constant(float(x), a.type, block) for x in (lowest, highest + 1))
    whole = append(block, vector.ConvertOp(number, type_, unsigned=unsigned))
    for predicate, bound, instead in (("lt", floor, lowest), ("ge", limit, highest)):
        outside = append(block, vector.CompareOp(predicate, number, bound))
        if lane_bits(outside.type) != bits:
            mask = vector_type(IntegerType(bits), v.lanes)
            outside = append(block, vector.ConvertOp(outside, mask))
        signless = instead - (1 << bits) if instead >> (bits - 1) == 1 else instead
        chosen = v.constant(signless, type_, block)
        whole = append(block, vector.SelectOp(outside, chosen, whole))
    return arith.BitcastOp(whole, type_)


def _division(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """
    Of integers, by way of floats with room for more digits, whose quotient lies on the right
    side of every integer: zero if the divisor is, and the one overflow wraps.
    """
    type_ = v.type_for(op.results[0].type)
    bits = lane_bits(type_)
    # By a constant, C compilers multiply with integers.
    if bits > _WIDEST_DIVISION or isinstance(op.operands[1].owner, arith.ConstantOp):
        raise NotVectorizableError
    a, b = v.vectors(op, cloner, block)
    real = vector_type(f64 if bits == 32 else f32, v.lanes)
    unsigned = isinstance(op, arith.DivUIOp | arith.RemUIOp)
    x, y = (append(block, _real(v, value, real, block, unsigned=unsigned)) for value in (a, b))
    quotient, zero = append(block, arith.DivfOp(x, y)), v.constant(0, type_, block)
    is_zero = append(block, vector.CompareOp("eq", b, zero))
    wide = is_zero
    if lane_bits(real) != bits:
        mask = vector_type(IntegerType(lane_bits(real)), v.lanes)
        wide = append(block, vector.ConvertOp(is_zero, mask))
    quotient = append(block, vector.SelectOp(wide, v.constant(0.0, real, block), quotient))
    if bits == 32 and not unsigned:
        limit, lowest = (v.constant(sign * 2.0**31, real, block) for sign in (1, -1))
        overflows = append(block, vector.CompareOp("eq", quotient, limit))
        quotient = append(block, vector.SelectOp(overflows, lowest, quotient))
    word = vector_type(I32, v.lanes)
    whole = vector.ConvertOp(quotient, word, unsigned=unsigned and bits == 32)
    if bits != 32:
        block.add_op(whole)
        whole = vector.ConvertOp(whole.result, type_)
    if isinstance(op, arith.DivSIOp | arith.DivUIOp):
        return whole
    block.add_op(whole)
    product = append(block, arith.MuliOp(whole.result, b))
    rest = append(block, arith.SubiOp(a, product))
    return vector.SelectOp(is_zero, zero, rest)


def _convert_float(v: LaneValues, op: Operation, cloner: Cloner, block: Block) -> Operation:
    """Rounded once: half precision is made of f32 only, and only that of it."""
    source, target = op.operands[0].type, op.results[0].type
    if {source, target} & {f16, bf16} and f32 not in (source, target):
        raise NotVectorizableError
    (a,) = v.vectors(op, cloner, block)
    return vector.ConvertOp(a, v.type_for(target))


def _is_number(value: SSAValue) -> bool:
    """True for a constant that is not NaN."""
    if not isinstance(value.owner, arith.ConstantOp):
        return False
    number = value.owner.value
    return not isinstance(number, FloatAttr) or number.value.data == number.value.data


_EXTREMA: Mapping[int, type[vector.MaxfOp | vector.MinfOp]] = {
    2: vector.MaxfOp,
    4: vector.MinfOp,
}
"""By predicate: a > b ? a : b is an instruction."""


def _extremum_of(op: arith.SelectOp) -> type[vector.MaxfOp | vector.MinfOp] | None:
    """The op that selecting one of two floats by comparing them is."""
    test = op.cond.owner
    if not isinstance(test, arith.CmpfOp) or (test.lhs, test.rhs) != (op.lhs, op.rhs):
        return None
    if op.result.type not in (f32, f64) or not op.cond.has_one_use():
        return None
    return _EXTREMA.get(test.predicate.value.data)


def is_of_extrema(op: arith.CmpfOp) -> bool:
    """True if a comparison is part of an extremum, and of nothing else."""
    users = [use.operation for use in op.result.uses]
    return bool(users) and all(
        isinstance(user, arith.SelectOp) and _extremum_of(user) is not None for user in users
    )


_FLOAT_PREDICATES: Mapping[int, str] = {
    1: "eq",
    2: "gt",
    3: "ge",
    4: "lt",
    5: "le",
    7: "ord",
    13: "ne",
    14: "uno",
}
_INTEGER_PREDICATES: Mapping[int, tuple[str, bool]] = {
    0: ("eq", False),
    1: ("ne", False),
    2: ("lt", False),
    3: ("le", False),
    4: ("gt", False),
    5: ("ge", False),
    6: ("lt", True),
    7: ("le", True),
    8: ("gt", True),
    9: ("ge", True),
}
"""What they are called, and whether the integers are unsigned."""

Form: TypeAlias = Callable[[LaneValues, Operation, Cloner, Block], Operation]

FORMS: Mapping[type[Operation], Form] = {
    arith.MaximumfOp: _extremum,
    arith.MinimumfOp: _extremum,
    arith.CmpfOp: _compare,
    arith.CmpiOp: _compare,
    arith.SelectOp: _select,
    math.AbsFOp: _absolute,
    math.CopySignOp: _copy_sign,
    arith.IndexCastOp: _number,
    arith.BitcastOp: _bitcast,
    arith.ExtSIOp: _resize,
    arith.ExtUIOp: _resize,
    arith.TruncIOp: _resize,
    arith.SIToFPOp: _from_integer,
    arith.UIToFPOp: _from_integer,
    arith.FPToSIOp: _to_integer,
    arith.FPToUIOp: _to_integer,
    **dict.fromkeys(DIVISIONS, _division),
    vector.WidenPairsOp: _widen_pairs,
    vector.PairHalvesOp: _pair_halves,
    arith.ExtFOp: _convert_float,
    arith.TruncFOp: _convert_float,
}
"""Those of ops without a direct counterpart."""

TRUTHS: Mapping[type[Operation], Form] = {
    arith.AndIOp: _bitwise,
    arith.OrIOp: _bitwise,
    arith.XOrIOp: _bitwise,
    arith.MaxUIOp: _truth_extremum,
    arith.MinUIOp: _truth_extremum,
    arith.TruncIOp: _last_bit,
}
"""Those of ops that give truth values."""
