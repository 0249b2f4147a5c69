"""Kernels as C: one op, one statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer import kernel, tiles, vector
from lowerdeck.dialects.buffer.custom import InvokeOp
from lowerdeck.dialects.buffer.operands import parameter
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import LARGEST_STRIDE, lanes_of
from lowerdeck.dialects.core.types import i1
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.emit_c import custom
from lowerdeck.lowering.emit_c.expressions import EXPRESSIONS, value_c_type, width_of
from lowerdeck.lowering.emit_c.index_widths import fits_in_32_bits
from lowerdeck.lowering.emit_c.tiles import TILE_SHAPE
from lowerdeck.lowering.emit_c.vector_types import memory_name
from lowerdeck.lowering.emit_c.vectors import function_name
from lowerdeck.lowering.emit_c.writer import (
    CWriter,
    comment,
    float_literal,
    integer_literal,
    storage_type,
)
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.passes.machinery.provenance import source_names


def emit_kernel(
    function: kernel.FuncOp, name: str, reserved: Iterable[str] = (), index_bits: int = 64
) -> str:
    """
    The definition of a kernel as a static C function, which stays one; its variables are called
    otherwise than what is `reserved`. Indices have so many bits where all buffers are that small.
    """
    c = CWriter(
        {name, TILE_SHAPE, *reserved},
        index_bits if index_bits == 64 or fits_in_32_bits(function) else 64,
    )
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
    if TILE_SHAPE in c.used:
        strides.append(f"  int64_t {TILE_SHAPE} = 0;")
    c.lines = [*_known_of_parts(function, c), *strides, *c.lines]
    # A dimension may stand in types only.
    unused = [c.name(argument) for argument in arguments if not argument.uses]
    unused += [symbol for symbol in c.symbols.values() if symbol not in c.used]
    voids = [f"  (void){parameter};" for parameter in unused]
    return "\n".join([_comment(function), head, *voids, *c.lines, "}", ""])


def _known_of_parts(function: kernel.FuncOp, c: CWriter) -> list[str]:
    """What makes divisions of the indices of a part as simple as those of a whole loop."""
    if function.parallel is None:
        return []
    names = [symbol.data for symbol in function.symbols]
    part, parts = (
        c.symbols[str(parameter(names.index(name)))] for name in (kernel.PART, kernel.PARTS)
    )
    return [f"  LOWERDECK_KNOWN({part} >= 0 && {parts} > 0);"]


def needs_status(function: kernel.FuncOp) -> bool:
    """True if the kernel can end the run."""
    return any(type(op) is kernel.CheckIndexOp for op in all_ops(function))


def _comment(function: kernel.FuncOp) -> str:
    return comment(", ".join(source_names(function)) or "(no source node)")


def emit_block(block: Block, c: CWriter) -> None:
    """Every op of a block but what ends it."""
    checked: list[str] = []
    for op in block.ops:
        emit(op, c)
        if type(op) is kernel.CheckIndexOp:
            checked.append(c.name(op.result))
    for name in checked:
        # The index is checked even if it does not matter, as in a tensor without elements.
        if name not in c.used:
            c.line(f"(void){name};")


@singledispatch
def emit(op: Operation, c: CWriter) -> None:
    """Append the C form of `op`."""
    if (form := EXPRESSIONS.get(type(op))) is None:
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
    head = f"for ({c.index_type} {index} = {lower}; {index} < {upper}; {index} += {step})"
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
    if op.word is not None and op.distance <= LARGEST_STRIDE:
        assign(op.result, f"{function_name(op)}({buffer} + {_offset(op, c)})", c)
        return
    if lanes_of(op.result.type):
        if (function := function_name(op)) is not None:
            distance = "" if op.distance <= LARGEST_STRIDE else f", {op.distance}"
            assign(op.result, f"{function}({buffer} + {_offset(op, c)}{distance})", c)
        else:
            kind = "const" if op.volatile is None else "const volatile"
            assign(op.result, f"*({kind} {_vector_address(op.result, op, c)})", c)
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
    accesses side by side begin alike, and compilers compute that once. But where the places of two
    dimensions make up one place in line, so that nothing is left of a division, that is written.
    """
    type_, inner = ref_type(ref), Expr.const(0)
    terms: list[str] = []
    for index, stride in reversed(list(zip(map, type_.strides.data, strict=True))):
        if stride.value:
            inner = inner + index * stride
        elif index != 0:
            if _divisions(joined := inner + index * stride) < _divisions(inner):
                inner = joined
                continue
            # Without elements some strides are 0: what they are times is there to be used, too.
            text = c.index(index, indices)
            factor = f"({text})" if len(index.terms) > 1 else text
            terms.append(f"{factor} * {c.stride(stride) if stride.value is None else 0}")
    terms.reverse()
    if not terms or inner != 0:
        terms.append(c.index(inner, indices))
    return " + ".join(terms)


def _divisions(expr: Expr) -> int:
    """The quotients in an expression."""
    atoms = [atom for monomial, _ in expr.terms for atom in monomial]
    inside = sum(_divisions(arg) for atom in atoms for arg in atom.args)
    return sum(atom.kind == "floordiv" for atom in atoms) + inside


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
    windows = op.windows
    axes = (-2, -2 if windows is None else windows.axis)
    factors = [
        f"{c.value(ref)} + {_offset_of(ref, start, op.indices, c)}, {_step(ref, c, axis)}"
        for ref, start, axis in zip((op.lhs, op.rhs), op.starts, axes, strict=True)
    ]
    sizes = ", ".join(c.index(expr, op.indices) for expr in op.map.data[-3:])
    total = f"{c.value(op.total)}, {_step(op.total, c)}"
    sizes += f", {op.words}"
    factors.insert(1, c.index(op.next_words, ()))
    parts, across = ["0"], "0"
    if windows is not None:
        parts = [_distance(op.rhs, tap, c) for tap in windows.taps]
        across = _distance(op.rhs, windows.across, c) if windows.across else "0"
    places = f"(const int64_t[]){{{', '.join(parts)}}}, {len(parts)}, {across}"
    flags = f"{int(op.adds is not None)}, &{TILE_SHAPE}"
    c.used.add(TILE_SHAPE)
    c.line(f"{function_name(op)}({', '.join(factors)}, {total}, {sizes}, {places}, {flags});")


def _distance(ref: SSAValue, offsets: Sequence[int], c: CWriter) -> str:
    """Of two elements that are so many indices apart along the last dimensions."""
    strides = ref_type(ref).strides.data[-len(offsets) :]
    products = (stride * offset for stride, offset in zip(strides, offsets, strict=True))
    return c.index(sum(products, Expr.const(0)), ())


@emit.register
def _(op: tiles.ReleaseTilesOp, c: CWriter) -> None:
    """For what has tiles."""
    c.line(f"{function_name(op)}();")


def _step(ref: SSAValue, c: CWriter, axis: int = -2) -> str:
    """The distance of two rows."""
    return c.index(ref_type(ref).strides.data[axis], ())


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
    text = c.index(op.map.data[0], op.indices)
    c.line(f"const {c.index_type} {c.declare(op.result)} = {text};")


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
        text = integer_literal(value.value.data, width_of(type_))
        if type_ == i1:
            text = "true" if value.value.data else "false"
    c.alias(op.result, text if text[0] != "-" else f"({text})")
