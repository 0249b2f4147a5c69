"""Arithmetic in kernels as expressions in C."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Attribute, Operation

from lowerdeck.dialects.buffer import kernel, vector
from lowerdeck.dialects.buffer.vector import lanes_of, scalar_of
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.types import bf16, bit_width, f16, f32, f64, i1, is_float
from lowerdeck.lowering.emit_c.vector_types import unsigned_name, vector_name
from lowerdeck.lowering.emit_c.vectors import function_name
from lowerdeck.lowering.emit_c.writer import value_c_type as scalar_c_type

Form = Callable[..., str]
"""The C of an op, by the op and the C of its operands."""


def value_c_type(type_: Attribute) -> str:
    """The C type of a value in a kernel."""
    return vector_name(type_) if lanes_of(type_) else scalar_c_type(type_)


def width_of(type_: Attribute) -> int:
    """The bits of a scalar; an index has those of int64_t."""
    return bit_width(type_) if type_ != IndexType() else 64


def _unsigned(type_: Attribute) -> str:
    """The unsigned type that wraps as integers of this type do, free of promotion to int."""
    return "uint64_t" if width_of(type_) == 64 else "uint32_t"


def _wrapping(operator: str) -> Form:
    """Signed overflow is undefined in C, so the arithmetic is unsigned."""

    def form(op: Operation, a: str, b: str) -> str:
        if lanes_of(op.results[0].type):
            return _in_unsigned_lanes(op, f"{{0}}{a} {operator} {{0}}{b}")
        type_, wide = value_c_type(op.results[0].type), _unsigned(op.results[0].type)
        return f"({type_})(({wide}){a} {operator} ({wide}){b})"

    return form


def _in_unsigned_lanes(op: Operation, form: str) -> str:
    """Arithmetic on vectors of integers; `{0}` stands for the conversion to unsigned lanes."""
    name = value_c_type(op.results[0].type)
    return f"({name})({form.format(f'({unsigned_name(op.results[0].type)})')})"


def _bitwise(operator: str) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        return f"({value_c_type(op.results[0].type)})({a} {operator} {b})"

    return form


def _exact_unsigned(type_: Attribute) -> str:
    return "bool" if type_ == i1 else f"uint{width_of(type_)}_t"


def _division(function: str, *, signed: bool) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        type_ = op.results[0].type
        if signed:
            return f"({value_c_type(type_)})lowerdeck_{function}_s64({a}, {b})"
        exact = _exact_unsigned(type_)
        return f"({value_c_type(type_)})lowerdeck_{function}_u64(({exact}){a}, ({exact}){b})"

    return form


def _compared(op: Operation, operands: tuple[str, str], *, signed: bool) -> list[str]:
    """
    The two operands as a comparison reads them.

    Comparing with the least or greatest number of a type, or a number with itself, is right, but
    compilers warn of it.
    """
    texts: list[str] = []
    is_same = op.operands[0] is op.operands[1]
    for value, text in zip(op.operands, operands, strict=True):
        if is_same or (isinstance(value.owner, arith.ConstantOp) and value.type != i1):
            text = f"lowerdeck_number({text})"
        texts.append(text if signed else f"({_exact_unsigned(value.type)}){text}")
    return texts


def _extremum(operator: str, *, signed: bool) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        if lanes_of(op.results[0].type):
            return _vector_function(op, a, b)
        if op.operands[0].type == i1 and not signed:
            return f"{a} {'||' if operator == '>' else '&&'} {b}"
        left, right = _compared(op, (a, b), signed=signed)
        return f"{left} {operator} {right} ? {a} : {b}"

    return form


def _shift_left(op: Operation, a: str, b: str) -> str:
    type_ = op.results[0].type
    if lanes_of(type_):
        return _in_unsigned_lanes(op, f"{{0}}{a} << {{0}}{b}")
    return f"({value_c_type(type_)})(({_unsigned(type_)}){a} << {b})"


def _shift_right(op: Operation, a: str, b: str) -> str:
    type_ = op.results[0].type
    if lanes_of(type_):
        return _in_unsigned_lanes(op, f"{{0}}{a} >> {{0}}{b}")
    return f"({value_c_type(type_)})(({_exact_unsigned(type_)}){a} >> {b})"


_INTEGER_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_UNSIGNED = 6
_FLOAT_PREDICATES = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
_ORDERED, _UNORDERED = 7, 14


def _compare_integers(op: arith.CmpiOp, a: str, b: str) -> str:
    predicate = op.predicate.value.data
    left, right = _compared(op, (a, b), signed=predicate < _FIRST_UNSIGNED)
    return f"{left} {_INTEGER_PREDICATES[predicate]} {right}"


def _compare_floats(op: arith.CmpfOp, a: str, b: str) -> str:
    predicate = op.predicate.value.data
    if predicate in (_ORDERED, _UNORDERED):
        return f"{'!' if predicate == _ORDERED else ''}isunordered({a}, {b})"
    return f"{a} {_FLOAT_PREDICATES[predicate]} {b}"


def _binary(operator: str) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        return f"{a} {operator} {b}"

    return form


def _library(name: str) -> Form:
    """A function of the C library, in the precision of the result; for vectors, our own."""

    def form(op: Operation, *operands: str) -> str:
        if lanes_of(op.results[0].type):
            return _vector_function(op, *operands)
        suffix = "" if op.results[0].type == f64 else "f"
        return f"{name}{suffix}({', '.join(operands)})"

    return form


def _float_extremum(name: str) -> Form:
    def form(op: Operation, a: str, b: str) -> str:
        return f"lowerdeck_{name}_{'f64' if op.results[0].type == f64 else 'f32'}({a}, {b})"

    return form


_SHORT: dict[Attribute, str] = {f64: "f64", f32: "f32", f16: "f16", bf16: "bf16"}


def _convert_float(op: Operation, a: str) -> str:
    source, target = op.operands[0].type, op.results[0].type
    if {source, target} <= {f32, f64}:
        return f"({value_c_type(target)}){a}"
    return f"lowerdeck_{_SHORT[source]}_to_{_SHORT[target]}({a})"


def _float_to_integer(op: Operation, a: str) -> str:
    sign = "signed" if isinstance(op, arith.FPToSIOp) else "unsigned"
    type_ = op.results[0].type
    # Compilers can be asked to warn of a float that becomes a double by itself.
    wide = "" if op.operands[0].type == f64 else "(double)"
    return f"({value_c_type(type_)})lowerdeck_to_{sign}({wide}{a}, {width_of(type_)})"


def _integer_to_float(op: Operation, a: str) -> str:
    target = value_c_type(op.results[0].type)
    if isinstance(op, arith.SIToFPOp):
        return f"({target}){a}"
    return f"({target})({_exact_unsigned(op.operands[0].type)}){a}"


def _resize(op: Operation, a: str) -> str:
    return f"({value_c_type(op.results[0].type)}){a}"


def _extend(op: Operation, a: str) -> str:
    """A truth value is a number of one bit: -1 where it holds."""
    sign = "-" if op.operands[0].type == i1 else ""
    return f"{sign}{_resize(op, a)}"


def _extend_unsigned(op: Operation, a: str) -> str:
    return f"({value_c_type(op.results[0].type)})({_exact_unsigned(op.operands[0].type)}){a}"


def _truncate(op: Operation, a: str) -> str:
    if op.results[0].type == i1:
        return f"({a} & 1) != 0"
    return _resize(op, a)


def _power(op: Operation, a: str, b: str) -> str:
    return f"({value_c_type(op.results[0].type)})lowerdeck_ipow({a}, {b})"


def _negate(op: Operation, a: str) -> str:
    return f"-{a}"


def _select(op: Operation, condition: str, a: str, b: str) -> str:
    return f"{condition} ? {a} : {b}"


def _splat(op: Operation, a: str) -> str:
    # Minus zero, not plus: then a negative zero stays one.
    return f"{a} - ({value_c_type(op.results[0].type)}){{0}}"


def _fma(op: Operation, a: str, b: str, c: str) -> str:
    type_ = op.results[0].type
    if lanes_of(type_):
        return f"{a} * {b} + {c}"
    return f"lowerdeck_fma_{type_}({a}, {b}, {c})"


def _reinterpret(op: Operation, a: str) -> str:
    source, target = op.operands[0].type, op.results[0].type
    if lanes_of(target):
        return f"({value_c_type(target)}){a}"
    if source == f32:
        return f"(int32_t)lowerdeck_bits({a})"
    if source == f64:
        return f"(int64_t)lowerdeck_f64_bits({a})"
    if target == f64:
        return f"lowerdeck_f64_from_bits((uint64_t){a})"
    return f"lowerdeck_from_bits((uint32_t){a})"


def _compare_lanes(op: vector.CompareOp, a: str, b: str) -> str:
    operator = _LANE_PREDICATES[op.predicate.data]
    if op.unsigned:
        name = unsigned_name(op.lhs.type)
        a, b = f"({name}){a}", f"({name}){b}"
    return f"({value_c_type(op.result.type)})({a} {operator} {b})"


_LANE_PREDICATES = {
    Predicate.EQ: "==",
    Predicate.NE: "!=",
    Predicate.LT: "<",
    Predicate.LE: "<=",
    Predicate.GT: ">",
    Predicate.GE: ">=",
}


def _lane_numbers(op: vector.LaneNumbersOp) -> str:
    type_ = op.result.type
    return f"({value_c_type(type_)}){{{', '.join(map(str, range(lanes_of(type_))))}}}"


def _from_lanes(op: vector.FromLanesOp, *lanes: str) -> str:
    return f"({value_c_type(op.result.type)}){{{', '.join(lanes)}}}"


def _vector_function(op: Operation, *operands: str) -> str:
    """A function that is defined with the type."""
    return f"{function_name(op)}({', '.join(operands)})"


def _convert_lanes(op: vector.ConvertOp, a: str) -> str:
    if (name := function_name(op)) is not None:
        return f"{name}({a})"
    target = value_c_type(op.result.type)
    if op.unsigned is None:
        return f"__builtin_convertvector({a}, {target})"
    if not is_float(scalar_of(op.input.type)):
        return f"__builtin_convertvector(({unsigned_name(op.input.type)}){a}, {target})"
    return f"({target})__builtin_convertvector({a}, {unsigned_name(op.result.type)})"


def _dot_quads(op: Operation, a: str, b: str, c: str) -> str:
    if lanes_of(op.results[0].type):
        return _vector_function(op, a, b, c)
    products = [
        f"(uint32_t)((uint8_t)((uint32_t){a} >> {shift}) * (int8_t)((uint32_t){b} >> {shift}))"
        for shift in range(0, 32, 8)
    ]
    return f"(int32_t)((uint32_t){c} + {' + '.join(products)})"


def _dot_halves(op: Operation, a: str, b: str, c: str) -> str:
    if lanes_of(op.results[0].type):
        return _vector_function(op, a, b, c)
    low, high = (
        [f"lowerdeck_from_bits({form.format(f'(uint32_t){x}')})" for x in (a, b)]
        for form in ("{} << 16", "{} & 0xffff0000u")
    )
    inner = f"lowerdeck_fma_f32({low[0]}, {low[1]}, {c})"
    return f"lowerdeck_fma_f32({high[0]}, {high[1]}, {inner})"


def _pair_halves(op: Operation, a: str, b: str) -> str:
    if lanes_of(op.results[0].type):
        return _vector_function(op, a, b)
    low, high = (f"(uint32_t)lowerdeck_f32_to_bf16({x})" for x in (a, b))
    return f"(int32_t)({low} | {high} << 16)"


def _widen_pairs(op: Operation, a: str) -> str:
    """The lower byte with its sign in the lower half, the upper one above."""
    if lanes_of(op.results[0].type):
        return _vector_function(op, a)
    low = f"(uint16_t)(int16_t)(int8_t){a}"
    return f"(int32_t)((uint32_t)({a} >> 8) << 16 | {low})"


def _multiply_high(op: Operation, a: str, b: str) -> str:
    """Of the 64 bits, those from 31 on, whose shift has no sign to keep."""
    if lanes_of(op.results[0].type):
        return _vector_function(op, a, b)
    return f"(int32_t)(uint32_t)((uint64_t)((int64_t){a} * {b} + 1073741824) >> 31)"


def _divide_by_power(op: vector.DivideByPowerOp, a: str, b: str) -> str:
    """
    In 32 bits: where something is left to round, one less below zero, twice the quotient rounded
    down, and half of one more; else the magnitude, halves up.
    """
    if op.up is not None:
        return f"(({a} >> ({b} - 1)) + 1) >> 1"
    if op.positive is not None:
        return f"((({a} + ({a} >> 31)) >> ({b} - 1)) + 1) >> 1"
    if lanes_of(op.result.type):
        return _vector_function(op, a, b)
    sign = f"(uint32_t)-({a} < 0)"
    quotient = f"((((uint32_t){a} ^ {sign}) - {sign}) + (((uint32_t)1 << {b}) >> 1)) >> {b}"
    return f"(int32_t)((({quotient}) ^ {sign}) - {sign})"


def _remainder(op: Operation, a: str, b: str) -> str:
    assert is_float(op.results[0].type)
    return _library("fmod")(op, a, b)


def _sigmoid(op: Operation, x: str) -> str:
    return f"1.0f / (1.0f + {_library('exp')(op, f'-{x}')})"


EXPRESSIONS: dict[type[Operation], Form] = {
    arith.AddiOp: _wrapping("+"),
    arith.SubiOp: _wrapping("-"),
    arith.MuliOp: _wrapping("*"),
    arith.DivSIOp: _division("div", signed=True),
    arith.DivUIOp: _division("div", signed=False),
    arith.RemSIOp: _division("rem", signed=True),
    arith.RemUIOp: _division("rem", signed=False),
    arith.AndIOp: _bitwise("&"),
    arith.OrIOp: _bitwise("|"),
    arith.XOrIOp: _bitwise("^"),
    arith.ShLIOp: _shift_left,
    arith.ShRUIOp: _shift_right,
    arith.MaxSIOp: _extremum(">", signed=True),
    arith.MaxUIOp: _extremum(">", signed=False),
    arith.MinSIOp: _extremum("<", signed=True),
    arith.MinUIOp: _extremum("<", signed=False),
    arith.CmpiOp: _compare_integers,
    arith.CmpfOp: _compare_floats,
    arith.SelectOp: _select,
    arith.AddfOp: _binary("+"),
    arith.SubfOp: _binary("-"),
    arith.MulfOp: _binary("*"),
    arith.DivfOp: _binary("/"),
    arith.NegfOp: _negate,
    arith.MaximumfOp: _float_extremum("max"),
    arith.MinimumfOp: _float_extremum("min"),
    arith.IndexCastOp: _resize,
    arith.ExtFOp: _convert_float,
    arith.TruncFOp: _convert_float,
    arith.FPToSIOp: _float_to_integer,
    arith.FPToUIOp: _float_to_integer,
    arith.SIToFPOp: _integer_to_float,
    arith.UIToFPOp: _integer_to_float,
    arith.ExtSIOp: _extend,
    arith.ExtUIOp: _extend_unsigned,
    arith.TruncIOp: _truncate,
    kernel.RemfOp: _remainder,
    kernel.SigmoidOp: _sigmoid,
    arith.BitcastOp: _reinterpret,
    math.FmaOp: _fma,
    BroadcastOp: _splat,
    vector.CompareOp: _compare_lanes,
    vector.SelectOp: _vector_function,
    vector.MaxfOp: _vector_function,
    vector.MinfOp: _vector_function,
    vector.ConvertOp: _convert_lanes,
    vector.AnyOp: _vector_function,
    vector.ReduceOp: _vector_function,
    vector.AddBytesOp: _vector_function,
    vector.DotPairsOp: _vector_function,
    vector.DotQuadsOp: _dot_quads,
    vector.DotSmallQuadsOp: _dot_quads,
    vector.DotHalvesOp: _dot_halves,
    vector.PairHalvesOp: _pair_halves,
    vector.WidenPairsOp: _widen_pairs,
    vector.MultiplyHighOp: _multiply_high,
    vector.DivideByPowerOp: _divide_by_power,
    vector.FromLanesOp: _from_lanes,
    vector.LaneNumbersOp: _lane_numbers,
    vector.LookUpOp: _vector_function,
    math.AbsFOp: _library("fabs"),
    math.ExpOp: _library("exp"),
    math.LogOp: _library("log"),
    math.SqrtOp: _library("sqrt"),
    math.FloorOp: _library("floor"),
    math.CeilOp: _library("ceil"),
    math.RoundEvenOp: _library("rint"),
    math.ErfOp: _library("erf"),
    math.SinOp: _library("sin"),
    math.CosOp: _library("cos"),
    math.TanOp: _library("tan"),
    math.AsinOp: _library("asin"),
    math.AcosOp: _library("acos"),
    math.AtanOp: _library("atan"),
    math.SinhOp: _library("sinh"),
    math.CoshOp: _library("cosh"),
    math.TanhOp: _library("tanh"),
    math.AsinhOp: _library("asinh"),
    math.AcoshOp: _library("acosh"),
    math.AtanhOp: _library("atanh"),
    math.PowFOp: _library("pow"),
    math.CopySignOp: _library("copysign"),
    math.IPowIOp: _power,
}
"""By op."""
