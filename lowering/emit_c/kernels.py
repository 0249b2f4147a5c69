"""Kernels as C: one op, one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.buffer import kernel, tiles, vector
from lowerdeck.dialects.buffer.custom import InvokeOp
from lowerdeck.dialects.buffer.operands import parameter
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import LARGEST_STRIDE, lanes_of, scalar_of
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.types import bf16, bit_width, f16, f32, f64, i1, is_float
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.emit_c import custom
from lowerdeck.lowering.emit_c.vector_types import memory_name, unsigned_name, vector_name
from lowerdeck.lowering.emit_c.vectors import function_name
from lowerdeck.lowering.emit_c.writer import (
    CWriter,
    comment,
    float_literal,
    integer_literal,
    storage_type,
)
from lowerdeck.lowering.emit_c.writer import value_c_type as scalar_c_type
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.passes.provenance import source_names


def value_c_type(type_: Attribute) -> str:
    """The C type of a value in a kernel."""
    return vector_name(type_) if lanes_of(type_) else scalar_c_type(type_)


def emit_kernel(function: kernel.FuncOp, name: str, reserved: Iterable[str] = ()) -> str:
    """
    The definition of a kernel as a static C function, which stays one; its variables are called
    otherwise than what is `reserved`.
    """
    c = CWriter({name, *reserved})
    parameters: list[str] = []
    arguments = function.body.block.args
    first_output = len(arguments) - function.outputs.data
    for number, argument in enumerate(arguments):
        stem = f"x{number}" if number < first_output else f"y{number - first_output}"
        const = "const " if number < first_output else ""
        type_ = storage_type(ref_type(argument).element)
        parameters.append(f"{const}{type_} *restrict {c.declare(argument, stem)}")
    for number, symbol in enumerate(function.symbols):
        name_of_symbol = c.symbols[str(parameter(number))] = c.fresh(symbol.data)
        parameters.append(f"int64_t {name_of_symbol}")
    if needs_status(function):
        parameters.append("int *status")
    names = {
        stride: c.declare_stride(stride)
        for argument in arguments
        for stride in ref_type(argument).strides.data
        if stride.value is None
    }
    emit_block(function.body.block, c)
    strides = [
        f"  const int64_t {stride} = {c.index(expr, ())};"
        for expr, stride in names.items()
        if stride in c.used
    ]
    head = f"LOWERDECK_KERNEL void {name}({', '.join(parameters) or 'void'}) {{"
    c.lines = [*strides, *c.lines]
    # A dimension may stand in types only.
    unused = [c.name(argument) for argument in arguments if not argument.uses]
    unused += [symbol for symbol in c.symbols.values() if symbol not in c.used]
    voids = [f"  (void){parameter};" for parameter in unused]
    return "\n".join([_comment(function), head, *voids, *c.lines, "}", ""])


def needs_status(function: kernel.FuncOp) -> bool:
    """True if the kernel can end the run."""
    return any(isinstance(op, kernel.CheckIndexOp) for op in function.walk())


def _comment(function: kernel.FuncOp) -> str:
    return comment(", ".join(source_names(function)) or "(no source node)")


def emit_block(block: Block, c: CWriter) -> None:
    """Every op of a block but what ends it."""
    checked: list[str] = []
    for op in block.ops:
        emit(op, c)
        if isinstance(op, kernel.CheckIndexOp):
            checked.append(c.name(op.result))
    for name in checked:
        # The index is checked even if it does not matter, as in a tensor without elements.
        if name not in c.used:
            c.line(f"(void){name};")


@singledispatch
def emit(op: Operation, c: CWriter) -> None:
    """Append the C form of `op`."""
    if (form := _EXPRESSIONS.get(type(op))) is None:
        raise LoweringError(op, "has no C form; lower it before emit-c")
    operands = [c.value(operand) for operand in op.operands]
    assign(op.results[0], form(op, *operands), c)


def assign(result: SSAValue, expression: str, c: CWriter) -> None:
    """`const T name = expression;`"""
    c.line(f"const {value_c_type(result.type)} {c.declare(result)} = {expression};")


@emit.register
def _(op: kernel.ForOp, c: CWriter) -> None:
    """A C `for` over the same half-open range; carried values are variables."""
    for result, init in zip(op.results, op.inits, strict=True):
        c.line(f"{value_c_type(result.type)} {c.declare(result, 'c')} = {c.value(init)};")
    index = c.declare(op.body.block.args[0], "i")
    lower, upper, step = (c.index(expr, op.indices) for expr in op.range.data)
    head = f"for (int64_t {index} = {lower}; {index} < {upper}; {index} += {step})"
    with c.block(head):
        for argument, result in zip(op.body.block.args[1:], op.results, strict=True):
            c.alias(argument, c.value(result))
        emit_block(op.body.block, c)
        last = op.body.block.last_op
        assert isinstance(last, kernel.YieldOp)
        _assign_all(list(op.results), list(last.values), c)


def _assign_all(targets: list[SSAValue], values: list[SSAValue], c: CWriter) -> None:
    """Assign in parallel: what another assignment overwrites is read into a temporary first."""
    names = [c.value(value) for value in values]
    overwritten = {c.value(target) for target in targets}
    for number, (target, name) in enumerate(zip(targets, names, strict=True)):
        if name in overwritten and name != c.value(target):
            temporary = c.fresh("t")
            c.line(f"const {value_c_type(target.type)} {temporary} = {name};")
            names[number] = temporary
    for target, name in zip(targets, names, strict=True):
        if name != c.value(target):
            c.line(f"{c.value(target)} = {name};")


@emit.register
def _(op: scf.IfOp, c: CWriter) -> None:
    """A C `if`; results are variables set in both branches."""
    for result in op.results:
        c.line(f"{value_c_type(result.type)} {c.declare(result, 'c')};")
    with c.block(f"if ({c.value(op.cond)})"):
        emit_block(op.true_region.block, c)
        _set_results(op, op.true_region.block, c)
    if op.false_region.blocks:
        with c.otherwise():
            emit_block(op.false_region.block, c)
            _set_results(op, op.false_region.block, c)


def _set_results(op: scf.IfOp, block: Block, c: CWriter) -> None:
    last = block.last_op
    assert isinstance(last, scf.YieldOp)
    for result, value in zip(op.results, last.operands, strict=True):
        c.line(f"{c.value(result)} = {c.value(value)};")


@emit.register(kernel.YieldOp)
@emit.register(kernel.ReturnOp)
@emit.register(scf.YieldOp)
def _(op: Operation, c: CWriter) -> None:
    """Written by the op that the block belongs to."""


@emit.register
def _(op: kernel.LoadOp, c: CWriter) -> None:
    """Read an element or a vector; the offset is the indices times the strides."""
    type_ = ref_type(op.ref)
    buffer = c.value(op.ref)
    if lanes_of(op.result.type):
        if (function := function_name(op)) is not None:
            distance = "" if op.distance <= LARGEST_STRIDE else f", {op.distance}"
            assign(op.result, f"{function}({buffer} + {_offset(op, c)}{distance})", c)
        else:
            assign(op.result, f"*(const {_vector_address(op.result, op, c)})", c)
        return
    if op.volatile is not None:
        buffer = f"((const volatile {storage_type(type_.element)} *){buffer})"
    element = f"{buffer}[{_offset(op, c)}]"
    if type_.element == i1:
        element = f"{element} != 0"
    elif storage_type(type_.element) != value_c_type(op.result.type):
        element = f"({value_c_type(op.result.type)}){element}"
    assign(op.result, element, c)


@emit.register
def _(op: kernel.StoreOp, c: CWriter) -> None:
    """Write an element or a vector."""
    type_ = ref_type(op.ref)
    if lanes_of(op.value.type):
        value = c.value(op.value)
        if (function := function_name(op)) is not None:
            address = f"{c.value(op.ref)} + {_offset(op, c)}"
            c.line(f"{function}({address}, {op.distance}, {value});")
        else:
            c.line(f"*({_vector_address(op.value, op, c)}) = {value};")
        return
    value = c.value(op.value)
    if storage_type(type_.element) != value_c_type(op.value.type):
        value = f"({storage_type(type_.element)}){value}"
    c.line(f"{c.value(op.ref)}[{_offset(op, c)}] = {value};")


def _vector_address(value: SSAValue, op: kernel.LoadOp | kernel.StoreOp, c: CWriter) -> str:
    return f"{memory_name(value.type)} *)({c.value(op.ref)} + {_offset(op, c)}"


def _offset(op: kernel.LoadOp | kernel.StoreOp, c: CWriter) -> str:
    """How far into its buffer an access lies."""
    return _offset_of(op.ref, op.map.data, op.indices, c)


def _offset_of(ref: SSAValue, map: Sequence[Expr], indices: Sequence[SSAValue], c: CWriter) -> str:
    """
    How far into its buffer an element lies.

    Indices are multiplied by strides that are no numbers as they are, from the outermost inward:
    accesses side by side begin alike, and compilers compute that once.
    """
    type_, inner = ref_type(ref), Expr.const(0)
    terms: list[str] = []
    for index, stride in zip(map, type_.strides.data, strict=True):
        if stride.value:
            inner = inner + index * stride
        elif index != 0:
            # Without elements some strides are 0: what they are times is there to be used, too.
            text = c.index(index, indices)
            factor = f"({text})" if len(index.terms) > 1 else text
            terms.append(f"{factor} * {c.stride(stride) if stride.value is None else 0}")
    if not terms or inner != 0:
        terms.append(c.index(inner, indices))
    return " + ".join(terms)


@emit.register
def _(op: vector.PrefetchOp, c: CWriter) -> None:
    """A hint: to read it, from the L2 cache, because it would not stay in the L1 cache."""
    address = f"{c.value(op.ref)} + {c.index(op.offset.data[0], op.indices)}"
    c.line(f"__builtin_prefetch({address}, 0, 2);")


@emit.register
def _(op: InvokeOp, c: CWriter) -> None:
    """A call of a function whose source precedes the kernels."""
    c.line(f"{custom.call(op, c)};")


@emit.register
def _(op: vector.TransposeOp, c: CWriter) -> None:
    """In registers."""
    c.line(f"{function_name(op)}({c.value(op.ref)});")


@emit.register
def _(op: tiles.DotTilesOp, c: CWriter) -> None:
    """In tiles of the processor."""
    factors = [
        f"{c.value(ref)} + {_offset_of(ref, start, op.indices, c)}, {_step(ref, c)}"
        for ref, start in zip((op.lhs, op.rhs), op.starts, strict=True)
    ]
    sizes = ", ".join(c.index(expr, op.indices) for expr in op.map.data[-3:])
    total = f"{c.value(op.total)}, {_step(op.total, c)}"
    arguments = f"{', '.join(factors)}, {total}, {sizes}, {int(op.adds is not None)}"
    c.line(f"{function_name(op)}({arguments});")


@emit.register
def _(op: tiles.ReleaseTilesOp, c: CWriter) -> None:
    """For what has tiles."""
    c.line(f"{function_name(op)}();")


def _step(ref: SSAValue, c: CWriter) -> str:
    """The distance of two rows."""
    return c.index(ref_type(ref).strides.data[-2], ())


@emit.register
def _(op: kernel.ScratchOp, c: CWriter) -> None:
    """An array; for vectors, it begins where a line of the cache does."""
    type_ = ref_type(op.ref)
    aligned = " __attribute__((aligned(64)))" if _holds_vectors(op) else ""
    name, size = c.declare(op.ref, "scratch"), type_.elements.value
    c.line(f"{storage_type(type_.element)} {name}[{max(size or 0, 1)}]{aligned};")


def _holds_vectors(op: kernel.ScratchOp) -> bool:
    return any(
        lanes_of(value.type)
        for use in op.ref.uses
        for value in (*use.operation.operands, *use.operation.results)
    )


@emit.register
def _(op: kernel.ApplyOp, c: CWriter) -> None:
    """An integer expression."""
    assign(op.result, c.index(op.map.data[0], op.indices), c)


@emit.register
def _(op: kernel.CheckIndexOp, c: CWriter) -> None:
    """An index from data."""
    bound = c.index(op.bound.data[0], op.indices)
    assign(op.result, f"lowerdeck_index({c.value(op.value)}, {bound}, status)", c)


@emit.register
def _(op: arith.ConstantOp, c: CWriter) -> None:
    """A literal."""
    value, type_ = op.value, op.result.type
    if isinstance(value, FloatAttr):
        text = float_literal(value.value.data, type_)
    else:
        assert isinstance(value, IntegerAttr)
        text = integer_literal(value.value.data, _width(type_))
        if type_ == i1:
            text = "true" if value.value.data else "false"
    c.alias(op.result, text if text[0] != "-" else f"({text})")


Form = Callable[..., str]


def _width(type_: Attribute) -> int:
    return bit_width(type_) if type_ != IndexType() else 64


def _unsigned(type_: Attribute) -> str:
    """The unsigned type that wraps as integers of this type do, free of promotion to int."""
    return "uint64_t" if _width(type_) == 64 else "uint32_t"


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
    return "bool" if type_ == i1 else f"uint{_width(type_)}_t"


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
    return f"({value_c_type(type_)})lowerdeck_to_{sign}({a}, {_width(type_)})"


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


def _dot_pairs(op: Operation, a: str, b: str, c: str) -> str:
    if lanes_of(op.results[0].type):
        return _vector_function(op, a, b, c)
    products = [
        f"(uint32_t)((int16_t){a} * (int16_t){b})",
        f"(uint32_t)((int16_t)((uint32_t){a} >> 16) * (int16_t)((uint32_t){b} >> 16))",
    ]
    return f"(int32_t)((uint32_t){c} + {' + '.join(products)})"


def _dot_quads(op: Operation, a: str, b: str, c: str) -> str:
    if lanes_of(op.results[0].type):
        return _vector_function(op, a, b, c)
    products = [
        f"(uint32_t)((uint8_t)((uint32_t){a} >> {shift}) * (int8_t)((uint32_t){b} >> {shift}))"
        for shift in range(0, 32, 8)
    ]
    return f"(int32_t)((uint32_t){c} + {' + '.join(products)})"


def _remainder(op: Operation, a: str, b: str) -> str:
    assert is_float(op.results[0].type)
    return _library("fmod")(op, a, b)


_EXPRESSIONS: dict[type[Operation], Form] = {
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
    vector.DotPairsOp: _dot_pairs,
    vector.DotQuadsOp: _dot_quads,
    vector.LaneNumbersOp: _lane_numbers,
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
