"""The Python text of each op of kernels, on scalars and on vectors."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Attribute, Operation

from lowerdeck.dialects.buffer import kernel, vector
from lowerdeck.dialects.buffer.enums import LaneReduction
from lowerdeck.dialects.buffer.vector import lanes_of, scalar_of
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.types import bf16, f16, f32, f64, i1
from lowerdeck.dialects.interpret.buffer_scalars import memory_dtype, width

_SHORT: dict[Attribute, str] = {f64: "f64", f32: "f32", f16: "f16", bf16: "bf16"}

Form = Callable[..., str]


def _wrapped(op: Operation, text: str) -> str:
    """The residue in the width of the result; as C's `bool`, i1 is true for every other number."""
    if op.results[0].type == i1:
        return f"({text}) != 0"
    half = 1 << (width(op.results[0].type) - 1)
    return f"(({text}) + {half} & {2 * half - 1}) - {half}"


def _unsigned(text: str, type_: Attribute) -> str:
    """How unsigned arithmetic reads a signless integer."""
    return f"({text} & {(1 << width(type_)) - 1})"


def _arithmetic(operator: str) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        return _wrapped(op, f"{a} {operator} {b}")

    return form


def _plain(pattern: str) -> Form:
    """Operands put into a pattern at `{0}`, `{1}`, ..."""

    def form(op: Operation, *operands: str) -> str:
        return pattern.format(*operands)

    return form


def _division(function: str, *, signed: bool) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        type_ = op.results[0].type
        left, right = (a, b) if signed else (_unsigned(a, type_), _unsigned(b, type_))
        return _wrapped(op, f"{function}({left}, {right})")

    return form


def _extremum(operator: str, *, signed: bool) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        type_ = op.results[0].type
        left, right = (a, b) if signed else (_unsigned(a, type_), _unsigned(b, type_))
        return f"{a} if {left} {operator} {right} else {b}"

    return form


def _shift_left(op: Operation, a: str, b: str) -> str:
    return _wrapped(op, f"{a} << {b}")


def _shift_right(op: Operation, a: str, b: str) -> str:
    return _wrapped(op, f"{_unsigned(a, op.results[0].type)} >> {b}")


_INTEGER_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_UNSIGNED = 6
_FLOAT_PREDICATES = {
    1: "{a} == {b}",
    2: "{a} > {b}",
    3: "{a} >= {b}",
    4: "{a} < {b}",
    5: "{a} <= {b}",
    7: "{a} == {a} and {b} == {b}",
    13: "{a} != {b}",
    14: "{a} != {a} or {b} != {b}",
}


def _compare_integers(op: arith.CmpiOp, a: str, b: str) -> str:
    predicate, type_ = op.predicate.value.data, op.lhs.type
    if predicate >= _FIRST_UNSIGNED:
        a, b = _unsigned(a, type_), _unsigned(b, type_)
    return f"{a} {_INTEGER_PREDICATES[predicate]} {b}"


def _compare_floats(op: arith.CmpfOp, a: str, b: str) -> str:
    return f"bool({_FLOAT_PREDICATES[op.predicate.value.data].format(a=a, b=b)})"


def _convert_float(op: Operation, a: str) -> str:
    source, target = op.operands[0].type, op.results[0].type
    if (source, target) == (f64, bf16):
        return f"f64_to_bf16({a})"
    return f"{_SHORT[target]}({a})"


def _float_to_integer(op: Operation, a: str) -> str:
    sign = "signed" if isinstance(op, arith.FPToSIOp) else "unsigned"
    return f"to_{sign}({a}, {width(op.results[0].type)})"


def _integer_to_float(op: Operation, a: str) -> str:
    """Through numpy's integers, which round once."""
    source, target = op.operands[0].type, _SHORT[op.results[0].type]
    if isinstance(op, arith.SIToFPOp):
        return f"i64({a}).astype({target})"
    return f"u64({_unsigned(a, source)}).astype({target})"


def _extend_unsigned(op: Operation, a: str) -> str:
    return _wrapped(op, _unsigned(a, op.operands[0].type))


def _truncate(op: Operation, a: str) -> str:
    return f"({a} & 1) != 0" if op.results[0].type == i1 else _wrapped(op, a)


def _extend(op: Operation, a: str) -> str:
    """A truth value is a number of one bit: -1 where it holds."""
    return _wrapped(op, f"-int({a})" if op.operands[0].type == i1 else a)


def _function(name: str) -> Form:
    """A function of the C library: in f64, rounded once to the precision of the result."""

    def form(op: Operation, *operands: str) -> str:
        arguments = ", ".join(f"f64({operand})" for operand in operands)
        return f"{_SHORT[op.results[0].type]}({name}({arguments}))"

    return form


def _splat(op: Operation, a: str) -> str:
    type_ = op.results[0].type
    dtype = memory_dtype(scalar_of(type_)).name
    return f"splat({lanes_of(type_)}, {a}, '{dtype}')"


def _reinterpret(op: Operation, a: str) -> str:
    source, target = op.operands[0].type, memory_dtype(scalar_of(op.results[0].type))
    if lanes_of(source):
        return f"{a}.view(np.{target.name})"
    text = f"np.{memory_dtype(source).name}({a}).view(np.{target.name})"
    return f"int({text})" if target.kind == "i" else text


_LANE_PREDICATES = {
    Predicate.EQ: "==",
    Predicate.NE: "!=",
    Predicate.LT: "<",
    Predicate.LE: "<=",
    Predicate.GT: ">",
    Predicate.GE: ">=",
}


def _compare_lanes(op: vector.CompareOp, a: str, b: str) -> str:
    if op.unsigned:
        a, b = _unsigned_lanes(a, op.lhs.type), _unsigned_lanes(b, op.lhs.type)
    mask = memory_dtype(scalar_of(op.result.type)).name
    return f"-({a} {_LANE_PREDICATES[op.predicate.data]} {b}).astype(np.{mask})"


def _unsigned_lanes(text: str, type_: Attribute) -> str:
    return f"{text}.view(np.u{memory_dtype(scalar_of(type_)).name})"


def _convert_lanes(op: vector.ConvertOp, a: str) -> str:
    source, target = scalar_of(op.input.type), scalar_of(op.result.type)
    name = memory_dtype(target).name
    if op.unsigned is None:
        return f"lanes_as({a}, np.dtype('{name}'))"
    if isinstance(source, IntegerType):
        return f"lanes_as({_unsigned_lanes(a, op.input.type)}, np.dtype('{name}'))"
    return f"lanes_as({a}, np.dtype('u{name}')).view(np.{name})"


def _dot_pairs(op: Operation, a: str, b: str, c: str) -> str:
    low = " * ".join(f"((({x} & 0xFFFF) ^ 0x8000) - 0x8000)" for x in (a, b))
    return _wrapped(op, f"{c} + {low} + ({a} >> 16) * ({b} >> 16)")


def _add_bytes(op: vector.AddBytesOp, word: str, base: str) -> str:
    halves = list[str]()
    for shift in (0, 16):
        byte = f"({word} >> {shift + 8 * (op.odd is not None)} & 0xFF)"
        byte = byte if op.unsigned is not None else f"(({byte} ^ 0x80) - 0x80)"
        halves.append(f"(({base} >> {shift}) + {byte} & 0xFFFF) << {shift}")
    return _wrapped(op, " | ".join(halves))


def _dot_pairs_of_lanes(op: Operation, a: str, b: str, c: str) -> str:
    low = " * ".join(f"{x}.astype(np.int16).astype(np.int32)" for x in (a, b))
    return f"{c} + {low} + ({a} >> 16) * ({b} >> 16)"


def _widen_pairs(op: Operation, a: str) -> str:
    return f"({a} >> 8 << 16) + (({a} & 0xFF ^ 0x80) - 0x80 & 0xFFFF)"


def _widen_pairs_of_lanes(op: Operation, a: str) -> str:
    return f"{a}.view(np.int8).astype(np.int16).view(np.int32)"


def _multiply_high(op: Operation, a: str, b: str) -> str:
    return _wrapped(op, f"({a} * {b} + (1 << 30)) >> 31")


def _multiply_high_of_lanes(op: Operation, a: str, b: str) -> str:
    product = f"{a}.astype(np.int64) * {b}.astype(np.int64)"
    return f"(({product} + (1 << 30)) >> 31).astype(np.int32)"


def _divide_by_power(op: Operation, a: str, b: str) -> str:
    rest, half = f"({a} & (1 << {b}) - 1)", f"((1 << {b}) - 1 >> 1){_sign_of(op, a)}"
    return f"({a} >> {b}) + ({rest} > {half})"


def _sign_of(op: Operation, a: str) -> str:
    """What the half below is less by where halves go away from zero."""
    return "" if isinstance(op, vector.DivideByPowerOp) and op.up else f" + ({a} < 0)"


def _divide_lanes_by_power(op: Operation, a: str, b: str) -> str:
    one = f"np.left_shift(np.int32(1), {b})"
    rest, half = f"({a} & {one} - 1)", f"(({one} - 1 & 0x7FFFFFFF) >> 1){_sign_of(op, a)}"
    return f"(({a} >> {b}) + ({rest} > {half})).astype(np.int32)"


def _dot_halves(op: Operation, a: str, b: str, c: str) -> str:
    products = " + ".join(f"half_of({a}, {shift}) * half_of({b}, {shift})" for shift in (0, 16))
    return f"np.float32({c} + ({products}))"


def _dot_halves_of_lanes(op: Operation, a: str, b: str, c: str) -> str:
    products = " + ".join(f"halves_of({a}, {shift}) * halves_of({b}, {shift})" for shift in (0, 16))
    return f"({c} + ({products})).astype(np.float32)"


def _dot_quads(op: Operation, a: str, b: str, c: str) -> str:
    terms = [
        f"(({a} >> {shift}) & 0xFF) * (((({b} >> {shift}) & 0xFF) ^ 0x80) - 0x80)"
        for shift in range(0, 32, 8)
    ]
    return _wrapped(op, " + ".join([c, *terms]))


def _dot_quads_of_lanes(op: Operation, a: str, b: str, c: str) -> str:
    terms = [
        f"(({a} >> {shift}) & 0xFF) * ({b} >> {shift}).astype(np.int8)" for shift in range(0, 32, 8)
    ]
    return " + ".join([c, *terms])


def _reduce_lanes(op: vector.ReduceOp, a: str) -> str:
    if op.kind.data in (LaneReduction.UMAX, LaneReduction.UMIN):
        a = _unsigned_lanes(a, op.input.type)
    text = f"reduce_{op.kind.data}({a})"
    type_ = op.result.type
    return f"int({text}.astype(np.{memory_dtype(type_)}))" if _is_integer(type_) else text


def _lane_numbers(op: vector.LaneNumbersOp) -> str:
    name = memory_dtype(scalar_of(op.result.type)).name
    return f"np.arange({lanes_of(op.result.type)}, dtype=np.{name})"


def _from_lanes(op: vector.FromLanesOp, *lanes: str) -> str:
    name = memory_dtype(scalar_of(op.result.type)).name
    return f"np.array([{', '.join(lanes)}], dtype=np.{name})"


def _is_integer(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType)


def _shift_lanes_right(op: Operation, a: str, b: str) -> str:
    bits = memory_dtype(scalar_of(op.results[0].type)).itemsize * 8
    return f"({a}.view(np.uint{bits}) >> {b}.view(np.uint{bits})).view(np.int{bits})"


FORMS: dict[type[Operation], Form] = {
    arith.AddiOp: _arithmetic("+"),
    arith.SubiOp: _arithmetic("-"),
    arith.MuliOp: _arithmetic("*"),
    arith.DivSIOp: _division("quotient", signed=True),
    arith.DivUIOp: _division("quotient", signed=False),
    arith.RemSIOp: _division("remainder", signed=True),
    arith.RemUIOp: _division("remainder", signed=False),
    arith.AndIOp: _plain("{0} & {1}"),
    arith.OrIOp: _plain("{0} | {1}"),
    arith.XOrIOp: _plain("{0} ^ {1}"),
    arith.ShLIOp: _shift_left,
    arith.ShRUIOp: _shift_right,
    arith.MaxSIOp: _extremum(">", signed=True),
    arith.MaxUIOp: _extremum(">", signed=False),
    arith.MinSIOp: _extremum("<", signed=True),
    arith.MinUIOp: _extremum("<", signed=False),
    arith.CmpiOp: _compare_integers,
    arith.CmpfOp: _compare_floats,
    arith.SelectOp: _plain("{1} if {0} else {2}"),
    arith.AddfOp: _plain("{0} + {1}"),
    arith.SubfOp: _plain("{0} - {1}"),
    arith.MulfOp: _plain("{0} * {1}"),
    arith.DivfOp: _plain("{0} / {1}"),
    arith.NegfOp: _plain("-{0}"),
    arith.MaximumfOp: _plain("maximum({0}, {1})"),
    arith.MinimumfOp: _plain("minimum({0}, {1})"),
    arith.IndexCastOp: _plain("{0}"),
    arith.ExtFOp: _convert_float,
    arith.TruncFOp: _convert_float,
    arith.FPToSIOp: _float_to_integer,
    arith.FPToUIOp: _float_to_integer,
    arith.SIToFPOp: _integer_to_float,
    arith.UIToFPOp: _integer_to_float,
    arith.ExtSIOp: _extend,
    arith.ExtUIOp: _extend_unsigned,
    arith.TruncIOp: _truncate,
    kernel.RemfOp: _function("np.fmod"),
    kernel.SigmoidOp: _plain("1 / (1 + np.exp(-{0}))"),
    math.AbsFOp: _plain("abs({0})"),
    math.ExpOp: _function("np.exp"),
    math.LogOp: _function("np.log"),
    math.SqrtOp: _function("np.sqrt"),
    math.FloorOp: _function("np.floor"),
    math.CeilOp: _function("np.ceil"),
    math.RoundEvenOp: _function("np.rint"),
    math.ErfOp: _function("erf"),
    math.SinOp: _function("np.sin"),
    math.CosOp: _function("np.cos"),
    math.TanOp: _function("np.tan"),
    math.AsinOp: _function("np.arcsin"),
    math.AcosOp: _function("np.arccos"),
    math.AtanOp: _function("np.arctan"),
    math.SinhOp: _function("np.sinh"),
    math.CoshOp: _function("np.cosh"),
    math.TanhOp: _function("np.tanh"),
    math.AsinhOp: _function("np.arcsinh"),
    math.AcoshOp: _function("np.arccosh"),
    math.AtanhOp: _function("np.arctanh"),
    math.PowFOp: _function("float_power"),
    math.CopySignOp: _function("np.copysign"),
    math.IPowIOp: _plain("power({0}, {1})"),
    math.FmaOp: _plain("{0} * {1} + {2}"),
    arith.BitcastOp: _reinterpret,
    vector.ReduceOp: _reduce_lanes,
    vector.AnyOp: _plain("bool({0}.any())"),
    vector.AddBytesOp: _add_bytes,
    vector.DotPairsOp: _dot_pairs,
    vector.DotQuadsOp: _dot_quads,
    vector.DotSmallQuadsOp: _dot_quads,
    vector.DotHalvesOp: _dot_halves,
    vector.PairHalvesOp: _plain("pair_of_halves({0}, {1})"),
    vector.WidenPairsOp: _widen_pairs,
    vector.MultiplyHighOp: _multiply_high,
    vector.DivideByPowerOp: _divide_by_power,
}


def _unsigned_extremum(name: str) -> Form:
    """Of vectors of integers, read as unsigned ones."""

    def form(op: Operation, a: str, b: str) -> str:
        dtype = memory_dtype(scalar_of(op.results[0].type))
        left, right = (f"{operand}.view(np.u{dtype.name})" for operand in (a, b))
        return f"np.{name}({left}, {right}).view(np.{dtype.name})"

    return form


def _float_extremum(operator: str) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        assert isinstance(op, vector.MaxfOp | vector.MinfOp)
        is_left = f"({a} {operator} {b})" + (f" | ({a} != {a})" if op.keeps_nan else "")
        return f"np.where({is_left}, {a}, {b})"

    return form


LANE_FORMS: dict[type[Operation], Form] = {
    arith.AddiOp: _plain("{0} + {1}"),
    arith.SubiOp: _plain("{0} - {1}"),
    arith.MuliOp: _plain("{0} * {1}"),
    arith.ShLIOp: _plain("{0} << {1}"),
    arith.ShRUIOp: _shift_lanes_right,
    arith.MaxSIOp: _plain("np.maximum({0}, {1})"),
    arith.MaxUIOp: _unsigned_extremum("maximum"),
    arith.MinSIOp: _plain("np.minimum({0}, {1})"),
    arith.MinUIOp: _unsigned_extremum("minimum"),
    BroadcastOp: _splat,
    vector.CompareOp: _compare_lanes,
    vector.SelectOp: _plain("np.where({0} != 0, {1}, {2})"),
    vector.MaxfOp: _float_extremum(">"),
    vector.MinfOp: _float_extremum("<"),
    vector.ConvertOp: _convert_lanes,
    vector.FromLanesOp: _from_lanes,
    vector.LaneNumbersOp: _lane_numbers,
    vector.LookUpOp: _plain("{1}[{0}.view(np.uint8)].view(np.int8)"),
    math.SqrtOp: _plain("np.sqrt({0})"),
    math.FloorOp: _plain("np.floor({0})"),
    math.CeilOp: _plain("np.ceil({0})"),
    math.RoundEvenOp: _plain("np.rint({0})"),
    vector.DotPairsOp: _dot_pairs_of_lanes,
    vector.DotQuadsOp: _dot_quads_of_lanes,
    vector.DotSmallQuadsOp: _dot_quads_of_lanes,
    vector.DotHalvesOp: _dot_halves_of_lanes,
    vector.PairHalvesOp: _plain("pairs_of_halves({0}, {1})"),
    vector.WidenPairsOp: _widen_pairs_of_lanes,
    vector.MultiplyHighOp: _multiply_high_of_lanes,
    vector.DivideByPowerOp: _divide_lanes_by_power,
}
"""What differs for vectors: they are arrays, whose integers wrap around by themselves."""
