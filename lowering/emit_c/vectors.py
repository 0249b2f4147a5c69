"""
Vectors as C: GNU vector extensions, which gcc and clang have for every machine.

The types and the few functions that no operator stands for are defined once at the top of the file,
as far as its kernels use them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import product

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.tiles import DotTilesOp, ReleaseTilesOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import (
    LARGEST_STRIDE,
    AnyOp,
    ConvertOp,
    DotPairsOp,
    DotQuadsOp,
    MaxfOp,
    MinfOp,
    ReduceOp,
    SelectOp,
    TransposeOp,
    factors_of,
    lanes_of,
    scalar_of,
    vector_type,
)
from lowerdeck.dialects.core.enums import Packing
from lowerdeck.dialects.core.types import bf16, f16, f32, f64
from lowerdeck.lowering.emit_c.tiles import RELEASE, SET_UP, dot_tiles, dot_tiles_name
from lowerdeck.lowering.targets.base import Target

_STEMS: dict[Attribute, tuple[str, str, int]] = {
    f32: ("f32", "float", 4),
    f64: ("f64", "double", 8),
    f16: ("f16", "uint16_t", 2),
    bf16: ("bf16", "uint16_t", 2),
    IntegerType(8): ("i8", "int8_t", 1),
    IntegerType(16): ("i16", "int16_t", 2),
    IntegerType(32): ("i32", "int32_t", 4),
    IntegerType(64): ("i64", "int64_t", 8),
}
"""What vectors are called by the scalars in them, these in C, and their bytes."""


_IntegerExtremum = arith.MaxSIOp | arith.MaxUIOp | arith.MinSIOp | arith.MinUIOp

_EXTREMA: dict[type[_IntegerExtremum], str] = {
    arith.MaxSIOp: "maxsi",
    arith.MaxUIOp: "maxui",
    arith.MinSIOp: "minsi",
    arith.MinUIOp: "minui",
}


def vector_name(type_: Attribute) -> str:
    """The C type of a vector."""
    return _name(scalar_of(type_), lanes_of(type_))


def _name(scalar: Attribute, lanes: int) -> str:
    return f"lowerdeck_{_STEMS[scalar][0]}x{lanes}"


def memory_name(type_: Attribute) -> str:
    """The C type of a vector in memory, where it has the alignment of its elements."""
    return f"{vector_name(type_)}_at"


def unsigned_name(type_: Attribute) -> str:
    """The C type of a vector of integers, read as unsigned ones."""
    return _unsigned(8 * _STEMS[scalar_of(type_)][2], lanes_of(type_))


def _unsigned(bits: int, lanes: int) -> str:
    return f"lowerdeck_u{bits}x{lanes}"


@singledispatch
def function_name(op: Operation) -> str | None:
    """The C function that does what an op does; None if it needs none of those defined here."""
    if type(op) in _FUNCTIONS and lanes_of(op.results[0].type):
        return f"{vector_name(op.results[0].type)}_{_FUNCTIONS[type(op)]}"
    return None


_FUNCTIONS: Mapping[type[Operation], str] = {
    SelectOp: "select",
    MaxfOp: "max",
    MinfOp: "min",
    DotPairsOp: "dot_pairs",
    DotQuadsOp: "dot_quads",
    math.SqrtOp: "sqrt",
    math.FloorOp: "floor",
    math.CeilOp: "ceil",
    math.RoundEvenOp: "rint",
}


@function_name.register
def _(op: AnyOp) -> str:
    return f"{vector_name(op.mask.type)}_any"


@function_name.register
def _(op: ConvertOp) -> str | None:
    source, target = scalar_of(op.input.type), scalar_of(op.result.type)
    way = _Conversion(source, target, lanes_of(op.result.type), op.unsigned is not None)
    return way.name if way.is_function else None


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
    if op.repeat is not None:
        return f"{vector_name(op.result.type)}_repeat{op.repeat.data}"
    if not lanes_of(op.result.type) or op.distance == 1:
        return None
    name = vector_name(op.result.type)
    return f"{name}_load{op.distance}" if op.distance <= LARGEST_STRIDE else f"{name}_gather"


@function_name.register
def _(op: kernel.StoreOp) -> str | None:
    if not lanes_of(op.value.type) or op.distance == 1:
        return None
    return f"{vector_name(op.value.type)}_scatter"


@function_name.register
def _(op: DotTilesOp) -> str:
    return dot_tiles_name(op.packing.data)


@function_name.register
def _(op: ReleaseTilesOp) -> str:
    return "lowerdeck_release_tiles"


@function_name.register
def _(op: TransposeOp) -> str:
    return _transpose_name(*_rows(op))


def _rows(op: TransposeOp) -> tuple[Attribute, int, int]:
    """The scalars, the lanes and the number of rows that are put in the order of columns."""
    return kernel.lane_type(ref_type(op.ref).element), op.lanes, op.rows


def _transpose_name(scalar: Attribute, lanes: int, rows: int) -> str:
    """The C function that transposes as many vectors as they have lanes, or interleaves others."""
    name = _name(scalar, lanes)
    return f"{name}_transpose" if rows == lanes else f"{name}_interleave{rows}"


def prelude(kernels: Iterable[kernel.FuncOp], target: Target) -> str:
    """Definitions for the vectors in kernels, and of the functions of them that those call."""
    # What a loop carries has the type of one of its results. Most types are one object, and to
    # compare them as such is faster than as types.
    types: dict[int, Attribute] = {}
    called: set[str] = set()
    rows: set[tuple[Attribute, int, int]] = set()
    for function in kernels:
        for op in function.walk():
            for type_ in op.result_types:
                types[id(type_)] = type_
            if isinstance(op, TransposeOp):
                scalar, lanes, _ = _rows(op)
                rows.add(_rows(op))
                type_ = vector_type(scalar, lanes)
                types[id(type_)] = type_
            if (name := function_name(op)) is not None:
                called.add(name)
    found = sorted({type_ for type_ in types.values() if lanes_of(type_)}, key=vector_name)
    return _definitions(found, called, target, rows)


def _definitions(
    types: Sequence[Attribute],
    called: set[str],
    target: Target,
    rows: Collection[tuple[Attribute, int, int]],
) -> str:
    """The types, with the integers that their bits are, and functions, those they call first."""
    wanted = dict.fromkeys((scalar_of(type_), lanes_of(type_)) for type_ in types)
    for scalar, lanes in list(wanted):
        # Selecting goes through the integers of the same bits, and half precision through those
        # of f32.
        wanted[(IntegerType(8 * _STEMS[scalar][2]), lanes)] = None
        if scalar in (f16, bf16):
            wanted |= {(f32, lanes): None, (IntegerType(32), lanes): None}
    functions: dict[str, _Function] = {"lowerdeck_set_up_tiles": _Function(SET_UP)}
    uses_tiles = frozenset(functions)
    functions["lowerdeck_release_tiles"] = _Function(RELEASE, uses_tiles)
    for packing in (Packing.UNSIGNED_LEFT, Packing.UNSIGNED_RIGHT):
        functions[dot_tiles_name(packing)] = _Function(dot_tiles(packing), uses_tiles)
    for scalar, lanes in wanted:
        functions |= _functions(scalar, lanes, target)
    for scalar, lanes, count in sorted(rows, key=lambda each: _transpose_name(*each)):
        # Processors merge short vectors in one step, and exchange any of their lanes in several.
        is_short = lanes >= 8 and lanes * _STEMS[scalar][2] <= 16
        text = (_interleave if is_short or lanes != count else _transpose)(scalar, lanes, count)
        functions[_transpose_name(scalar, lanes, count)] = _Function(text)
    for (before, lanes), (after, others) in product(wanted, wanted):
        for unsigned in (False, True) if lanes == others else ():
            way = _Conversion(before, after, lanes, unsigned)
            if way.is_function and way.name in called and way.name not in functions:
                functions[way.name] = _Function(way.text())
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
    _, c_type, size = _STEMS[scalar]
    name, width = _name(scalar, lanes), size * lanes
    unsigned = ""
    if isinstance(scalar, IntegerType):
        unsigned = (
            f"typedef u{c_type} {_unsigned(8 * size, lanes)} "
            f"__attribute__((vector_size({width})));\n"
        )
    return unsigned + (
        f"typedef {c_type} {name} __attribute__((vector_size({width})));\n"
        f"typedef {c_type} {name}_at\n"
        f"    __attribute__((vector_size({width}), aligned({size}), may_alias));\n"
    )


def _functions(scalar: Attribute, lanes: int, target: Target) -> dict[str, _Function]:
    """What no operator stands for, by name; those that others call come first."""
    name = _name(scalar, lanes)
    found = {f"{name}_select": _Function(_selection(scalar, lanes))}
    for stride in range(2, LARGEST_STRIDE + 1):
        found[f"{name}_load{stride}"] = _Function(_load(scalar, lanes, stride))
    times = 2
    while 2 * times <= lanes:
        found[f"{name}_repeat{times}"] = _Function(_repetition(scalar, lanes, times))
        times *= 2
    found[f"{name}_gather"] = _Function(_gather(scalar, lanes))
    found[f"{name}_scatter"] = _Function(_scatter(scalar, lanes))
    if scalar not in (f16, bf16, f32, f64):
        found[f"{name}_any"] = _Function(_any(scalar, lanes))
        found |= _integer_extrema(scalar, lanes)
        unsigned = _unsigned(8 * _STEMS[scalar][2], lanes)
        for kind, operator in (("add", "+"), ("mul", "*")):
            form = f"({name})(({unsigned}){{0}} {operator} ({unsigned}){{1}})"
            found[f"{name}_reduce_{kind}"] = _Function(_combination(scalar, lanes, kind, form))
        for kind, sign in (("max", "s"), ("min", "s"), ("umax", "u"), ("umin", "u")):
            function = f"{name}_{kind.removeprefix('u')}{sign}i"
            text = _combination(scalar, lanes, kind, f"{function}({{0}}, {{1}})")
            found[f"{name}_reduce_{kind}"] = _Function(text, frozenset({function}))
    if scalar == IntegerType(32):
        found[f"{name}_dot_pairs"] = _Function(_dot_pairs(name, lanes, target))
        found[f"{name}_dot_quads"] = _Function(_dot_quads(name, lanes, target))
    if scalar in (f16, bf16):
        found |= _conversions(scalar, lanes, target)
    if scalar not in (f32, f64):
        return found
    for kind, operator in (("max", ">"), ("min", "<")):
        selection = f"{name}_select"
        plain = f"return {selection}(a {operator} b, a, b);"
        text = (
            f"static inline {name} {name}_{kind}({name} a, {name} b) {{\n"
            f"{_with_builtin(scalar, lanes, kind, plain, target)}}}\n"
        )
        found[f"{name}_{kind}"] = _Function(text, frozenset({selection}))
    for function in ("sqrt", "rint", "floor", "ceil"):
        found[f"{name}_{function}"] = _rounding_or_root(function, scalar, lanes)
    for kind, form in {"add": "{0} + {1}", "mul": "{0} * {1}"}.items():
        found[f"{name}_reduce_{kind}"] = _Function(_combination(scalar, lanes, kind, form))
    for kind in ("max", "min"):
        function = f"{name}_{kind}"
        text = _combination(scalar, lanes, kind, f"{function}({{0}}, {{1}})")
        found[f"{name}_reduce_{kind}"] = _Function(text, frozenset({function}))
    return found


def _selection(scalar: Attribute, lanes: int) -> str:
    """One of two values in each lane, by a mask."""
    name, bits = _name(scalar, lanes), _name(IntegerType(8 * _STEMS[scalar][2]), lanes)
    return f"""static inline {name} {name}_select({bits} mask, {name} a, {name} b) {{
  return ({name})((mask & ({bits})a) | (~mask & ({bits})b));
}}
"""


def _any(scalar: Attribute, lanes: int) -> str:
    """A mask is not zero: as few numbers of 64 bits as its bits make."""
    name = _name(scalar, lanes)
    count = max(_STEMS[scalar][2] * lanes // 8, 1)
    lines = [f"static inline bool {name}_any({name} mask) {{"]
    if (_STEMS[scalar][2], lanes) in _TESTS:
        macro, form = _TESTS[(_STEMS[scalar][2], lanes)]
        lines += [
            f"#if defined({macro}) && !defined(__clang__)",
            f"  return {form} != 0;",
            "#else",
        ]
    lines += [
        f"  uint64_t bits[{count}] = {{0}};",
        "  memcpy(bits, &mask, sizeof mask);",
        f"  return ({' | '.join(f'bits[{k}]' for k in range(count))}) != 0;",
    ]
    if (_STEMS[scalar][2], lanes) in _TESTS:
        lines.append("#endif")
    return "\n".join([*lines, "}", ""])


_QUADS = "(long long __attribute__((vector_size(64))))mask"
_BYTES = "__builtin_ia32_pmovmskb{0}((char __attribute__((vector_size({1}))))mask)"
_TESTS: Mapping[tuple[int, int], tuple[str, str]] = {
    (4, 16): ("__AVX512F__", "__builtin_ia32_ptestmd512(mask, mask, -1)"),
    (8, 8): ("__AVX512F__", f"__builtin_ia32_ptestmq512({_QUADS}, {_QUADS}, -1)"),
    (4, 8): ("__AVX2__", _BYTES.format(256, 32)),
    (8, 4): ("__AVX2__", _BYTES.format(256, 32)),
    (4, 4): ("__SSE2__", _BYTES.format(128, 16)),
    (8, 2): ("__SSE2__", _BYTES.format(128, 16)),
}
"""How gcc tests a mask, by the bytes of a lane and the lanes."""


def _rounding_or_root(function: str, scalar: Attribute, lanes: int) -> _Function:
    """
    By the instruction, where there is one. Adding what has no place for a fraction rounds, too;
    what is below or above is the next integer then.
    """
    name = _name(scalar, lanes)
    size = _STEMS[scalar][2]
    bits = _name(IntegerType(8 * size), lanes)
    calls: frozenset[str] = frozenset()
    if function == "sqrt":
        suffix = "f" if scalar == f32 else ""
        plain = (
            f"  {name} r = x;\n"
            f"  for (int k = 0; k < {lanes}; k++) r[k] = sqrt{suffix}(x[k]);\n"
            "  return r;\n"
        )
    elif function == "rint":
        limit = "0x1p23f" if scalar == f32 else "0x1p52"
        sign = "INT32_MIN" if scalar == f32 else "INT64_MIN"
        plain = (
            f"  const {bits} sign = ({bits})x & ({sign} - ({bits}){{0}});\n"
            f"  const {name} magnitude = ({name})(({bits})x ^ sign);\n"
            f"  const {name} limit = {limit} - ({name}){{0}};\n"
            f"  const {bits} rounded = ({bits})((magnitude + limit) - limit) | sign;\n"
            f"  return {name}_select(magnitude < limit, ({name})rounded, x);\n"
        )
        calls = frozenset({f"{name}_select"})
    else:
        one = "1.0f" if scalar == f32 else "1.0"
        operator, correction = (">", "-") if function == "floor" else ("<", "+")
        sign = "INT32_MIN" if scalar == f32 else "INT64_MIN"
        # A zero keeps the sign of what it was made of.
        plain = (
            f"  const {bits} sign = ({bits})x & ({sign} - ({bits}){{0}});\n"
            f"  const {name} nearest = {name}_rint(x);\n"
            f"  const {name} other = nearest {correction} {one};\n"
            f"  const {name} r = {name}_select(nearest {operator} x, other, nearest);\n"
            f"  return ({name})(({bits})r | sign);\n"
        )
        calls = frozenset({f"{name}_select", f"{name}_rint"})
    instructions = _instruction(function, scalar, lanes)
    text = f"static inline {name} {name}_{function}({name} x) {{\n"
    if instructions is not None:
        macro, form = instructions
        text += f"#if defined({macro}) && !defined(__clang__)\n  return {form};\n#else\n"
        text += f"{plain}#endif\n"
    else:
        text += plain
    return _Function(text + "}\n", calls)


_ROUNDINGS: Mapping[str, int] = {"rint": 4, "floor": 9, "ceil": 10}


def _instruction(function: str, scalar: Attribute, lanes: int) -> tuple[str, str] | None:
    """The macro that says that there is an instruction, and gcc's name of it."""
    suffix = "ps" if scalar == f32 else "pd"
    width = 8 * _STEMS[scalar][2] * lanes
    if width not in (128, 256, 512):
        return None
    if function == "sqrt":
        forms = {
            512: ("__AVX512F__", f"__builtin_ia32_sqrt{suffix}512_mask(x, x, -1, 4)"),
            256: ("__AVX__", f"__builtin_ia32_sqrt{suffix}256(x)"),
            128: ("__SSE2__", f"__builtin_ia32_sqrt{suffix}(x)"),
        }
        return forms[width]
    kind = _ROUNDINGS[function]
    forms = {
        512: ("__AVX512F__", f"__builtin_ia32_rndscale{suffix}_mask(x, {kind}, x, -1, 4)"),
        256: ("__AVX__", f"__builtin_ia32_round{suffix}256(x, {kind})"),
        128: ("__SSE4_1__", f"__builtin_ia32_round{suffix}(x, {kind})"),
    }
    return forms[width]


@dataclass(frozen=True)
class _Conversion:
    """Lanes of another type, as a function where compilers do not find the instruction."""

    source: Attribute
    target: Attribute
    lanes: int
    unsigned: bool = False

    @property
    def name(self) -> str:
        """What the function is called: by the type that is unsigned, if one is."""
        source, target = (
            f"{'u' if self.unsigned and isinstance(type_, IntegerType) else stem[0]}{stem[1:]}"
            for type_ in (self.source, self.target)
            for stem in (_STEMS[type_][0],)
        )
        return f"lowerdeck_{source}x{self.lanes}_to_{target}"

    @property
    def is_function(self) -> bool:
        """False if an expression is enough."""
        return (
            bool({self.source, self.target} & {f16, bf16})
            or self._is_resizing
            or self._instruction is not None
        )

    @property
    def _sizes(self) -> tuple[int, int]:
        return _STEMS[self.source][2], _STEMS[self.target][2]

    @property
    def _is_resizing(self) -> bool:
        before, after = self._sizes
        return not {self.source, self.target} & {f16, bf16, f32, f64} and before != after

    @property
    def _instruction(self) -> tuple[str, str] | None:
        """The macro that says that there is an instruction, and its name."""
        before, after = self._sizes
        width, sign = max(before, after) * self.lanes, "zx" if self.unsigned else "sx"
        if self._is_resizing and before < after:
            macros = {64: "__AVX512BW__", 32: "__AVX2__", 16: "__AVX__"}
            name = f"vpmov{sign}{_LETTERS[before]}{_LETTERS[after]}"
        elif self._is_resizing:
            macros = {64: "__AVX512BW__", 32: "__AVX512VL__", 16: "__AVX512VL__"}
            name = f"vpmov{_LETTERS[before]}{_LETTERS[after]}"
            if before == 2:
                macros |= dict.fromkeys((32, 16), "__AVX512BW__) && defined(__AVX512VL__")
        elif (self.source, self.target, self.unsigned) in _WIDENING:
            name, macros = _WIDENING[(self.source, self.target, self.unsigned)]
        else:
            return None
        return (macros[width], name) if width in macros else None

    def text(self) -> str:
        """The definition; clang finds the instruction by itself."""
        source, target = _name(self.source, self.lanes), _name(self.target, self.lanes)
        lines = [f"static inline {target} {self.name}({source} x) {{"]
        if self._instruction is not None:
            macro, name = self._instruction
            registers = "v" if "512" in macro else "x"
            lines += [
                f"#if defined({macro}) && !defined(__clang__)",
                f"  {target} r;",
                f'  __asm__("{name} %1, %0" : "={registers}"(r) : "{registers}"(x));',
                "  return r;",
                "#else",
            ]
        lines += self._plain(target)
        if self._instruction is not None:
            lines.append("#endif")
        return "\n".join([*lines, "}", ""])

    def _plain(self, target: str) -> list[str]:
        before, after = self._sizes
        if not self._is_resizing or max(before, after) * self.lanes != 16:
            return self._by_steps(target)
        # Bytes that are moved: into the upper part of their new lanes, which is shifted down.
        small = min(before, after) * self.lanes
        word = f"uint{8 * small}_t" if small > 1 else "uint8_t"
        words, count = "__attribute__((vector_size(16)))", 16 // small
        octets = f"typedef int8_t octets {words}; typedef {word} words {words};"
        if before < after:
            places = [16] * 16
            for lane in range(self.lanes):
                first = lane * after if self.unsigned else (lane + 1) * after - before
                places[first : first + before] = range(lane * before, (lane + 1) * before)
            shift = "" if self.unsigned else f" >> {8 * (after - before)}"
            return [
                f"  {octets}",
                f"  {word} bits;",
                "  memcpy(&bits, &x, sizeof bits);",
                f"  const octets all = (octets)(words){{bits{', 0' * (count - 1)}}};",
                "  const octets spread = __builtin_shufflevector(",
                f"      all, (octets){{0}}, {', '.join(map(str, places))});",
                f"  return ({target})spread{shift};",
            ]
        places = [lane * before + byte for lane in range(self.lanes) for byte in range(after)]
        places += [16] * (16 - len(places))
        return [
            f"  {octets}",
            "  const octets packed = __builtin_shufflevector(",
            f"      (octets)x, (octets){{0}}, {', '.join(map(str, places))});",
            f"  const {word} bits = ((words)packed)[0];",
            f"  {target} r;",
            "  memcpy(&r, &bits, sizeof r);",
            "  return r;",
        ]

    def _by_steps(self, target: str) -> list[str]:
        """Twice or half as wide each: more at once has no form but one lane after another."""
        before, after = self._sizes
        if not self._is_resizing:
            letter = "u" if self.unsigned else ""
            value = "x"
            if letter and isinstance(self.source, IntegerType):
                value = f"({_unsigned(8 * before, self.lanes)})x"
            if letter and isinstance(self.target, IntegerType):
                unsigned = _unsigned(8 * after, self.lanes)
                return [f"  return ({target})__builtin_convertvector({value}, {unsigned});"]
            return [f"  return __builtin_convertvector({value}, {target});"]
        stem = "uint" if self.unsigned else "int"
        lines, size = [f"  typedef {stem}{8 * before}_t s{before} {self._vector(before)};"], before
        value = f"(s{before})x"
        while size != after:
            size = size * 2 if size < after else size // 2
            lines.append(f"  typedef {stem}{8 * size}_t s{size} {self._vector(size)};")
            value = f"__builtin_convertvector({value}, s{size})"
        return [*lines, f"  return ({target}){value};"]

    def _vector(self, size: int) -> str:
        return f"__attribute__((vector_size({size * self.lanes})))"


_LETTERS = {1: "b", 2: "w", 4: "d", 8: "q"}
_WIDENING: Mapping[tuple[Attribute, Attribute, bool], tuple[str, Mapping[int, str]]] = {
    (f32, f64, False): ("vcvtps2pd", {64: "__AVX512F__", 32: "__AVX__"}),
    (IntegerType(32), f64, False): ("vcvtdq2pd", {64: "__AVX512F__", 32: "__AVX__"}),
    (IntegerType(32), f64, True): ("vcvtudq2pd", {64: "__AVX512F__", 32: "__AVX512VL__"}),
    (f32, IntegerType(64), False): ("vcvttps2qq", {64: "__AVX512DQ__"}),
    (f32, IntegerType(64), True): ("vcvttps2uqq", {64: "__AVX512DQ__"}),
}
"""Instructions, and the macros that say that there are vectors of so many bytes for them."""


def _conversions(half: Attribute, lanes: int, target: Target) -> dict[str, _Function]:
    """From vectors of f32 and to them, as the functions of the runtime convert one value."""
    stem = _STEMS[half][0]
    narrow, wide = f"lowerdeck_{stem}x{lanes}", f"lowerdeck_f32x{lanes}"
    pairs = f"lowerdeck_i16x{lanes}"
    found: dict[str, _Function] = {}
    for old, new, suffix in ((narrow, wide, "f32"), (wide, narrow, stem)):
        plain = _CONVERSIONS[stem, suffix].format(
            narrow=narrow, wide=wide, u32=f"lowerdeck_u32x{lanes}"
        )
        builtin = (target.widening_of_f16 if new == wide else target.narrowing_to_f16).get(lanes)
        if stem == "f16" and builtin is not None:
            call = builtin.call.format(f"({pairs})x" if new == wide else "x", wide, pairs)
            plain = (
                f"#if defined({builtin.macro}) && !defined(__clang__)\n"
                f"  return ({new}){call};\n#else\n{plain}#endif\n"
            )
        name = f"{old}_to_{suffix}"
        found[name] = _Function(f"static inline {new} {name}({old} x) {{\n{plain}}}\n")
    return found


_CONVERSIONS = {
    ("bf16", "f32"): "  return ({wide})(__builtin_convertvector(x, {u32}) << 16);\n",
    # To nearest, halves to even. What is no number stays none.
    ("bf16", "bf16"): """  const {u32} bits = ({u32})x, nan = ({u32})(x != x);
  const {u32} nearest = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const {u32} half = (nan & (bits >> 16 | 0x40u)) | (~nan & nearest);
  return __builtin_convertvector(half, {narrow});
""",
    # The exponent is moved by the difference of biases. Subnormal ones are what is left of a float
    # between 1/2 and 1 that ends with their bits.
    (
        "f16",
        "f32",
    ): """  const {u32} bits = __builtin_convertvector(x, {u32}) << 16;
  const {u32} twice = bits + bits;
  const {wide} normal = ({wide})((twice >> 4) + 0x70000000u) * 0x1p-112f;
  const {wide} small = ({wide})((twice >> 17) | 0x3f000000u) - 0.5f;
  const {u32} is_small = ({u32})(twice < 0x08000000u);
  const {u32} size = (is_small & ({u32})small) | (~is_small & ({u32})normal);
  return ({wide})((bits & 0x80000000u) | size);
""",
    # Adding a power of two rounds to as many bits as are left; what is too large becomes infinite
    # before that.
    ("f16", "f16"): """  const {u32} bits = ({u32})x, twice = bits + bits;
  const {wide} size = ({wide})(twice >> 1) * 0x1p+112f * 0x1p-110f;
  const {u32} own = twice & 0xff000000u, is_small = ({u32})(own < 0x71000000u);
  const {u32} exponent = (is_small & 0x71000000u) | (~is_small & own);
  const {u32} rounded = ({u32})(({wide})((exponent >> 1) + 0x07800000u) + size);
  const {u32} number = ((rounded >> 13) & 0x7c00u) + (rounded & 0xfffu);
  const {u32} nan = ({u32})(twice > 0xff000000u);
  const {u32} half = (bits >> 16 & 0x8000u) | (nan & 0x7e00u) | (~nan & number);
  return __builtin_convertvector(half, {narrow});
""",
}
"""By half precision and what is made."""


def _transpose(scalar: Attribute, lanes: int, rows: int) -> str:
    """
    Of a square in memory: parts of rows that lie beside the diagonal change places, first halves,
    then quarters in each half, and so on.
    """
    name, lines = _name(scalar, lanes), _begin_of_rows(scalar, lanes, rows)
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
    return "\n".join([*lines, *_end_of_rows(scalar, lanes, [f"r{step}_{k}" for k in range(rows)])])


def _interleave(scalar: Attribute, lanes: int, rows: int) -> str:
    """
    The first elements of all rows in memory, then the second ones, and so on: by each prime factor
    of the number of rows, so many of them, as far apart as they can be, become one long one.
    """
    name, lines = _name(scalar, lanes), _begin_of_rows(scalar, lanes, rows)
    long = [[f"r0_{row}"] for row in range(rows)]
    for step, factor in enumerate(factors_of(rows), 1):
        apart = len(long) // factor
        joined: list[list[str]] = []
        for first in range(apart):
            parts = long[first::apart]
            joined.append([])
            for number in range(len(parts[0]) * factor):
                result = f"r{step}_{first}_{number}"
                lines += _merged(name, lanes, parts, number, result)
                joined[-1].append(result)
        long = joined
    return "\n".join([*lines, *_end_of_rows(scalar, lanes, long[0])])


def _merged(
    name: str, lanes: int, parts: Sequence[Sequence[str]], number: int, result: str
) -> list[str]:
    """A vector of elements that are taken from some rows of vectors in turn."""
    count, lines = len(parts), list[str]()
    # Each row gives neighbors, of one of its vectors.
    places = [divmod(number * lanes + lane, count) for lane in range(lanes)]
    merged = ""
    for part, vectors in enumerate(parts):
        own = [place for place, source in places if source == part]
        vector = vectors[own[0] // lanes] if own else vectors[0]
        if not part:
            merged = vector
            continue
        chosen: list[int] = []
        for lane, (place, source) in enumerate(places):
            if source == part:
                chosen.append(lanes + place % lanes)
            elif source > part:
                chosen.append(-1)
            else:
                chosen.append(place % lanes if part == 1 else lane)
        after = result if part == count - 1 else f"{result}_{part}"
        moved = ", ".join(map(str, chosen))
        shuffled = f"__builtin_shufflevector({merged}, {vector}, {moved})"
        lines.append(f"  const {name} {after} =\n      {shuffled};")
        merged = after
    return lines


def _begin_of_rows(scalar: Attribute, lanes: int, rows: int) -> list[str]:
    """
    A function that loads vectors side by side in memory, `r0_0` and so on. Where it is part of its
    caller the memory is registers; compilers take it for too large if it has several callers.
    """
    name, memory = _name(scalar, lanes), memory_name(vector_type(scalar, lanes))
    return [
        "static inline __attribute__((always_inline))",
        f"void {_transpose_name(scalar, lanes, rows)}(void *memory) {{",
        f"  {_STEMS[scalar][1]} *const all = memory;",
        *(
            f"  const {name} r0_{row} = *(const {memory} *)(all + {row * lanes});"
            for row in range(rows)
        ),
    ]


def _end_of_rows(scalar: Attribute, lanes: int, values: Sequence[str]) -> list[str]:
    """Vectors are stored to where others have been loaded."""
    memory = memory_name(vector_type(scalar, lanes))
    stores = (
        f"  *({memory} *)(all + {row * lanes}) = {value};" for row, value in enumerate(values)
    )
    return [*stores, "}", ""]


def _with_builtin(scalar: Attribute, lanes: int, kind: str, plain: str, target: Target) -> str:
    """clang finds the instruction by itself."""
    builtin = target.extrema.get(_STEMS[scalar][2] * lanes // 4)
    if builtin is None:
        return f"  {plain}\n"
    return (
        f"#if defined({builtin.macro}) && !defined(__clang__)\n"
        f"  return {builtin.call.format(kind, 'ps' if scalar == f32 else 'pd')};\n"
        f"#else\n  {plain}\n#endif\n"
    )


def _dot_pairs(name: str, lanes: int, target: Target) -> str:
    """Products of the two halves of each lane, and a total."""
    lines = [f"static inline {name} {name}_dot_pairs({name} a, {name} b, {name} c) {{"]
    builtins = target.pairs.get(lanes, ())
    for builtin in builtins:
        word = "if" if builtin is builtins[0] else "elif"
        call = builtin.call.format("(pairs)a", "(pairs)b", name)
        lines.append(f"#{word} defined({builtin.macro}) && !defined(__clang__)")
        if "pairs" in call:
            lines.append(f"  typedef short pairs __attribute__((vector_size({4 * lanes})));")
        lines.append(f"  return {call};")
    if builtins:
        lines.append("#else")
    low = " * ".join(f"(({name})((lowerdeck_u32x{lanes}){x} << 16) >> 16)" for x in "ab")
    lines.append(f"  return c + {low} + (a >> 16) * (b >> 16);")
    if builtins:
        lines.append("#endif")
    return "\n".join([*lines, "}", ""])


def _dot_quads(name: str, lanes: int, target: Target) -> str:
    """Products of the four bytes of each lane, those of `a` without signs, and a total."""
    unsigned = f"lowerdeck_u32x{lanes}"
    terms = [
        f"({name})(({unsigned})a << {left} >> 24) * (({name})(({unsigned})b << {left}) >> 24)"
        for left in (24, 16, 8, 0)
    ]
    plain = [f"  {name} r = c + {terms[0]};", *(f"  r += {term};" for term in terms[1:])]
    lines = [f"static inline {name} {name}_dot_quads({name} a, {name} b, {name} c) {{"]
    if (builtin := target.quads.get(lanes)) is not None:
        call = builtin.call.format("a", "b", name)
        lines += [f"#if defined({builtin.macro}) && !defined(__clang__)", f"  return {call};"]
        return "\n".join([*lines, "#else", *plain, "  return r;", "#endif", "}", ""])
    return "\n".join([*lines, *plain, "  return r;", "}", ""])


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


def _gather(scalar: Attribute, lanes: int) -> str:
    """Of elements far apart: one by one."""
    name, c_type = _name(scalar, lanes), _STEMS[scalar][1]
    elements = [f"x[{lane} * distance]" for lane in range(lanes)]
    rows = [", ".join(elements[first : first + 4]) for first in range(0, lanes, 4)]
    return (
        f"static inline {name} {name}_gather(const void *memory, int64_t distance) {{\n"
        f"  const {c_type} *const x = memory;\n"
        f"  return ({name}){{{(',' + chr(10) + '      ').join(rows)}}};\n}}\n"
    )


def _scatter(scalar: Attribute, lanes: int) -> str:
    """To elements some way apart: one by one."""
    name, c_type = _name(scalar, lanes), _STEMS[scalar][1]
    lines = [f"  x[{lane} * distance] = v[{lane}];" for lane in range(lanes)]
    return "\n".join(
        [
            f"static inline void {name}_scatter(void *memory, int64_t distance, {name} v) {{",
            f"  {c_type} *const x = memory;",
            *lines,
            "}",
            "",
        ]
    )


def _repetition(scalar: Attribute, lanes: int, times: int) -> str:
    """Of fewer elements, each some times."""
    name, (_, c_type, size) = _name(scalar, lanes), _STEMS[scalar]
    places = ", ".join(str(lane // times) for lane in range(lanes))
    return f"""static inline {name} {name}_repeat{times}(const void *memory) {{
  typedef {c_type} part
      __attribute__((vector_size({lanes // times * size}), aligned({size}), may_alias));
  const part x = *(const part *)memory;
  return __builtin_shufflevector(x, x, {places});
}}
"""


def _combination(scalar: Attribute, lanes: int, kind: str, form: str) -> str:
    """Halves upon each other, until the first lane holds all."""
    name = _name(scalar, lanes)
    lines = [f"static inline {_STEMS[scalar][1]} {name}_reduce_{kind}({name} x) {{"]
    half = lanes // 2
    while half:
        moved = ", ".join(str((lane + half) % lanes) for lane in range(lanes))
        lines.append(f"  x = {form.format('x', f'__builtin_shufflevector(x, x, {moved})')};")
        half //= 2
    return "\n".join([*lines, "  return x[0];", "}", ""])
