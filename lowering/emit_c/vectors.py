"""
Vectors as C: GNU vector extensions, which gcc and clang have for every machine.

The types and the few functions that no operator stands for are defined once at the top of the file,
as far as its kernels use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, f32, f64
from xdsl.ir import Attribute, Operation

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.vector import (
    LARGEST_STRIDE,
    ConvertOp,
    MaxfOp,
    MinfOp,
    ReduceOp,
    SelectOp,
    TransposeOp,
    lanes_of,
    scalar_of,
    vector_type,
)
from lowerdeck.lowering.targets.base import Builtin, Target

_STEMS: dict[Attribute, tuple[str, str, int]] = {
    f32: ("f32", "float", 4),
    f64: ("f64", "double", 8),
    IntegerType(8): ("i8", "int8_t", 1),
    IntegerType(16): ("i16", "int16_t", 2),
    IntegerType(32): ("i32", "int32_t", 4),
    IntegerType(64): ("i64", "int64_t", 8),
}

_NARROW = (IntegerType(8), IntegerType(16))
"""What becomes i32."""

_IntegerExtremum = arith.MaxSIOp | arith.MaxUIOp | arith.MinSIOp | arith.MinUIOp

_EXTREMA: dict[type[_IntegerExtremum], str] = {
    arith.MaxSIOp: "maxsi",
    arith.MaxUIOp: "maxui",
    arith.MinSIOp: "minsi",
    arith.MinUIOp: "minui",
}

VECTORIZABLE = frozenset(_STEMS)
"""The scalar types that vectors have a C form for."""


def vector_name(type_: Attribute) -> str:
    """The C type of a vector."""
    return f"lowerdeck_{_STEMS[scalar_of(type_)][0]}x{lanes_of(type_)}"


def memory_name(type_: Attribute) -> str:
    """The C type of a vector in memory, where it has the alignment of its elements."""
    return f"{vector_name(type_)}_at"


def unsigned_name(type_: Attribute) -> str:
    """The C type of a vector of integers, read as unsigned ones."""
    return f"lowerdeck_u{_STEMS[scalar_of(type_)][0][1:]}x{lanes_of(type_)}"


@singledispatch
def function_name(op: Operation) -> str | None:
    """The C function that does what an op does; None if it needs none of those defined here."""
    return None


@function_name.register
def _(op: SelectOp) -> str:
    return f"{vector_name(op.result.type)}_select"


@function_name.register
def _(op: MaxfOp) -> str:
    return f"{vector_name(op.result.type)}_max"


@function_name.register
def _(op: MinfOp) -> str:
    return f"{vector_name(op.result.type)}_min"


@function_name.register
def _(op: ConvertOp) -> str | None:
    """For integers that become wider ones."""
    if scalar_of(op.input.type) not in _NARROW:
        return None
    sign = "i" if op.unsigned is None else "u"
    return f"{vector_name(op.result.type)}_of_{sign}{_STEMS[scalar_of(op.input.type)][0][1:]}"


@function_name.register
def _(op: ReduceOp) -> str:
    return f"{vector_name(op.input.type)}_reduce_{op.kind.data}"


@function_name.register(arith.MaxSIOp)
@function_name.register(arith.MaxUIOp)
@function_name.register(arith.MinSIOp)
@function_name.register(arith.MinUIOp)
def _(op: _IntegerExtremum) -> str | None:
    type_ = op.result.type
    return f"{vector_name(type_)}_{_EXTREMA[type(op)]}" if lanes_of(type_) else None


@function_name.register
def _(op: kernel.LoadOp) -> str | None:
    return None if op.stride is None else f"{vector_name(op.result.type)}_load{op.stride.data}"


@function_name.register
def _(op: TransposeOp) -> str:
    return _transpose_name(op.lanes)


def _transpose_name(lanes: int) -> str:
    """The C function that transposes as many vectors as they have lanes."""
    return f"{vector_name(vector_type(f32, lanes))}_transpose"


def prelude(kernels: Iterable[kernel.FuncOp], target: Target) -> str:
    """Definitions for the vectors in kernels, and of the functions of them that those call."""
    # What a loop carries has the type of one of its results. Most types are one object, and to
    # compare them as such is faster than as types.
    types: dict[int, Attribute] = {}
    called: set[str] = set()
    for function in kernels:
        for op in function.walk():
            for type_ in op.result_types:
                types[id(type_)] = type_
            if isinstance(op, TransposeOp):
                type_ = vector_type(f32, op.lanes)
                types[id(type_)] = type_
            if (name := function_name(op)) is not None:
                called.add(name)
    found = sorted({type_ for type_ in types.values() if lanes_of(type_)}, key=vector_name)
    return _definitions(found, called, target)


def _definitions(types: Sequence[Attribute], called: set[str], target: Target) -> str:
    """The types, with the integers that their bits are, and functions, those they call first."""
    wanted = dict.fromkeys((scalar_of(type_), lanes_of(type_)) for type_ in types)
    for scalar, lanes in list(wanted):
        # Selecting goes through the integers of the same bits.
        wanted[(IntegerType(8 * _STEMS[scalar][2]), lanes)] = None
    functions: dict[str, _Function] = {}
    for scalar, lanes in wanted:
        functions |= _functions(scalar, lanes, target)
    needed: list[str] = []
    for name, function in reversed(functions.items()):
        if name in called:
            needed.insert(0, name)
            called |= function.calls
    parts = [
        _once(f"{_STEMS[scalar][0].upper()}X{lanes}", _definition(scalar, lanes))
        for scalar, lanes in wanted
    ]
    parts += [
        _once(name.removeprefix("lowerdeck_").upper(), functions[name].text) for name in needed
    ]
    return "\n".join(parts)


@dataclass(frozen=True)
class _Function:
    """The definition of a function in C, and the names of those that it calls."""

    text: str
    calls: frozenset[str] = frozenset()


def _once(name: str, text: str) -> str:
    """Several models may be compiled as one file."""
    return f"#ifndef LOWERDECK_{name}\n#define LOWERDECK_{name}\n{text}#endif\n"


def _definition(scalar: Attribute, lanes: int) -> str:
    stem, c_type, size = _STEMS[scalar]
    name, width = f"lowerdeck_{stem}x{lanes}", size * lanes
    width_of = f"__attribute__((vector_size({width})))"
    unsigned = f"typedef u{c_type} lowerdeck_u{stem[1:]}x{lanes} {width_of};\n"
    if scalar in (f32, f64):
        unsigned = ""
    return unsigned + (
        f"typedef {c_type} {name} __attribute__((vector_size({width})));\n"
        f"typedef {c_type} {name}_at\n"
        f"    __attribute__((vector_size({width}), aligned({size}), may_alias));\n"
    )


def _selection(scalar: Attribute, lanes: int) -> str:
    """One of two values in each lane, by a mask."""
    name, bits = f"lowerdeck_{_STEMS[scalar][0]}x{lanes}", f"lowerdeck_i32x{lanes}"
    return f"""static inline {name} {name}_select({bits} mask, {name} a, {name} b) {{
  return ({name})((mask & ({bits})a) | (~mask & ({bits})b));
}}
"""


def _functions(scalar: Attribute, lanes: int, target: Target) -> dict[str, _Function]:
    """
    What no operator stands for, by name: loads with strides, selection, extrema, combinations of
    all lanes.
    """
    name = f"lowerdeck_{_STEMS[scalar][0]}x{lanes}"
    found = {
        f"{name}_load{stride}": _Function(_load(scalar, lanes, stride))
        for stride in range(2, LARGEST_STRIDE + 1)
    }
    if scalar not in (f32, f64):
        found |= _integer_extrema(scalar, lanes)
    selection = f"{name}_select"
    if scalar in (f32, IntegerType(32)):
        found[selection] = _Function(_selection(scalar, lanes))
    if scalar in (f32, f64):
        for kind, operator in (("max", ">"), ("min", "<")):
            text = (
                f"static inline {name} {name}_{kind}({name} a, {name} b) {{\n"
                f"{_with_builtin(scalar, lanes, kind, operator, target)}}}\n"
            )
            calls = frozenset({selection} if scalar == f32 else ())
            found[f"{name}_{kind}"] = _Function(text, calls)
    if scalar != f32:
        return found | _widenings(lanes, target) if scalar == IntegerType(32) else found
    for kind, form in {"add": "{0} + {1}", "mul": "{0} * {1}"}.items():
        found[f"{name}_reduce_{kind}"] = _Function(_combination(name, lanes, kind, form))
    for kind in ("max", "min"):
        function = f"{name}_{kind}"
        text = _combination(name, lanes, kind, f"{function}({{0}}, {{1}})")
        found[f"{name}_reduce_{kind}"] = _Function(text, frozenset({function}))
    return found | {_transpose_name(lanes): _Function(_transpose(lanes))}


def _transpose(lanes: int) -> str:
    """
    Of a square in memory: parts of rows that lie beside the diagonal change places, first halves,
    then quarters in each half, and so on.
    """
    type_ = vector_type(f32, lanes)
    name, memory = vector_name(type_), memory_name(type_)
    lines = [f"static inline void {_transpose_name(lanes)}(float *square) {{"]
    lines += [
        f"  const {name} r0_{row} = *(const {memory} *)(square + {row * lanes});"
        for row in range(lanes)
    ]
    step, distance = 0, lanes // 2
    while distance:
        for row in range(lanes):
            first, second = row & ~distance, row | distance
            # A lane of the second row has a number behind those of the first one.
            chosen = [
                lane & ~distance | row & distance | (lanes if lane & distance else 0)
                for lane in range(lanes)
            ]
            moved = ", ".join(map(str, chosen))
            lines.append(
                f"  const {name} r{step + 1}_{row} =\n"
                f"      __builtin_shufflevector(r{step}_{first}, r{step}_{second}, {moved});"
            )
        step, distance = step + 1, distance // 2
    lines += [f"  *({memory} *)(square + {row * lanes}) = r{step}_{row};" for row in range(lanes)]
    return "\n".join([*lines, "}", ""])


def _with_builtin(scalar: Attribute, lanes: int, kind: str, operator: str, target: Target) -> str:
    """clang finds the instruction by itself."""
    stem, _, size = _STEMS[scalar]
    name, bits = f"lowerdeck_{stem}x{lanes}", f"lowerdeck_i{8 * size}x{lanes}"
    if scalar == f32:
        plain = f"  return {name}_select(a {operator} b, a, b);\n"
    else:
        plain = (
            f"  const {bits} mask = a {operator} b;\n"
            f"  return ({name})((mask & ({bits})a) | (~mask & ({bits})b));\n"
        )
    builtin = target.extrema.get(size * lanes // 4)
    if builtin is None:
        return plain
    return (
        f"#if defined({builtin.macro}) && !defined(__clang__)\n"
        f"  return {builtin.call.format(kind, 'ps' if scalar == f32 else 'pd')};\n"
        f"#else\n{plain}#endif\n"
    )


def _widenings(lanes: int, target: Target) -> dict[str, _Function]:
    """Narrow integers of so many lanes as i32, by name."""
    found: dict[str, _Function] = {}
    builtin = target.widening.get(lanes)
    for narrow in _NARROW:
        for sign in "iu":
            name = f"{vector_name(vector_type(IntegerType(32), lanes))}_of_{sign}{narrow.bitwidth}"
            found[name] = _Function(_widening(name, narrow, lanes, sign, builtin))
    return found


def _widening(
    name: str, narrow: IntegerType, lanes: int, sign: str, builtin: Builtin | None
) -> str:
    """gcc takes such vectors apart into elements; clang has an instruction for them."""
    source, target = vector_type(narrow, lanes), vector_type(IntegerType(32), lanes)
    old, new = vector_name(source), vector_name(target)
    lines = [f"static inline {new} {name}({old} x) {{"]
    if builtin is not None:
        of_bytes = narrow.bitwidth == 8
        c_type, count = ("char", 16) if of_bytes else ("short", max(8, lanes))
        moved = [*range(lanes), *[-1] * (count - lanes)]
        whole = (
            "x"
            if count == lanes
            else (f"__builtin_shufflevector(x, x, {', '.join(map(str, moved))})")
        )
        kind = f"{'s' if sign == 'i' else 'z'}x{'b' if of_bytes else 'w'}d"
        call = builtin.call.format(kind, f"(whole){whole}", new)
        lines += [
            f"#if defined({builtin.macro}) && !defined(__clang__)",
            f"  typedef {c_type} whole"
            f" __attribute__((vector_size({count * narrow.bitwidth // 8})));",
            f"  return ({new}){call};",
        ]
        if lanes == 4:
            lines += _interleaved(narrow, "" if sign == "i" else "u")
        lines.append("#else")
    given = "x" if sign == "i" else f"({unsigned_name(source)})x"
    lines.append(f"  return __builtin_convertvector({given}, {new});")
    if builtin is not None:
        lines.append("#endif")
    return "\n".join([*lines, "}", ""])


def _interleaved(narrow: IntegerType, prefix: str) -> list[str]:
    """
    Four narrow integers, each next to itself until it fills a lane of i32, then shifted down: what
    registers of 16 bytes do in a few instructions.
    """
    bits = narrow.bitwidth
    lines = [
        "#elif (defined(__SSE2__) || defined(__AARCH64EL__)) && !defined(__clang__)",
        "  typedef int8_t bytes __attribute__((vector_size(16)));",
        "  typedef int16_t pairs __attribute__((vector_size(16)));",
        f"  typedef int{4 * bits}_t all __attribute__((vector_size(16)));",
        f"  const union {{ lowerdeck_i{bits}x4 lanes; int{4 * bits}_t bits; }} given = {{x}};",
        "  const bytes y = (bytes)(all){given.bits};",
    ]
    last = "y"
    if bits == 8:
        twice = ", ".join(str(k // 2) for k in range(16))
        lines.append(f"  const bytes z = __builtin_shufflevector(y, y, {twice});")
        last = "z"
    twice = ", ".join(str(k // 2) for k in range(8))
    filled = f"__builtin_shufflevector((pairs){last}, (pairs){last}, {twice})"
    type_ = f"lowerdeck_{prefix or 'i'}32x4"
    return [*lines, f"  return (lowerdeck_i32x4)(({type_}){filled} >> {32 - bits});"]


def _integer_extrema(scalar: Attribute, lanes: int) -> dict[str, _Function]:
    """Signed and unsigned ones."""
    stem = _STEMS[scalar][0]
    name, unsigned = f"lowerdeck_{stem}x{lanes}", f"lowerdeck_u{stem[1:]}x{lanes}"
    found: dict[str, _Function] = {}
    for kind, operator in (("max", ">"), ("min", "<")):
        for sign, type_ in (("s", name), ("u", unsigned)):
            text = (
                f"static inline {name} {name}_{kind}{sign}i({name} a, {name} b) {{\n"
                f"  const {name} mask = ({type_})a {operator} ({type_})b;\n"
                f"  return (mask & a) | (~mask & b);\n}}\n"
            )
            found[f"{name}_{kind}{sign}i"] = _Function(text)
    return found


def _load(scalar: Attribute, lanes: int, stride: int) -> str:
    """
    Of elements some way apart: vectors side by side, the last of which ends with the last element,
    are merged one after the other.
    """
    stem, c_type, _ = _STEMS[scalar]
    name = f"lowerdeck_{stem}x{lanes}"
    starts = [min(part * lanes, (lanes - 1) * (stride - 1)) for part in range(stride)]
    lines = [
        f"static inline {name} {name}_load{stride}(const void *memory) {{",
        f"  const {c_type} *const x = memory;",
    ]
    lines += [
        f"  const {name} v{part} = *(const {name}_at *)(x + {start});"
        for part, start in enumerate(starts)
    ]
    done, merged = 0, "v0"
    for part, start in enumerate(starts[1:], 1):
        places: list[str] = []
        for lane in range(lanes):
            place = lane * stride
            if part == 1 and place < lanes:
                places.append(str(place))
            elif part > 1 and lane < done:
                places.append(str(lane))
            else:
                is_here = place < start + lanes
                places.append(str(lanes + place - start) if is_here else "-1")
        merged_too = f"__builtin_shufflevector({merged}, v{part}, {', '.join(places)})"
        lines.append(f"  const {name} r{part} =\n      {merged_too};")
        done, merged = (start + lanes - 1) // stride + 1, f"r{part}"
    return "\n".join([*lines, f"  return {merged};", "}", ""])


def _combination(name: str, lanes: int, kind: str, form: str) -> str:
    """Halves upon each other, until the first lane holds all."""
    lines = [f"static inline float {name}_reduce_{kind}({name} x) {{"]
    half = lanes // 2
    while half:
        moved = ", ".join(str((lane + half) % lanes) for lane in range(lanes))
        lines.append(f"  x = {form.format('x', f'__builtin_shufflevector(x, x, {moved})')};")
        half //= 2
    return "\n".join([*lines, "  return x[0];", "}", ""])
