"""
Vectors as C: GNU vector extensions, which gcc and clang have for every machine.

The types and the few functions that no operator stands for are defined once at the top of the file,
as far as its kernels use them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
    AddBytesOp,
    AnyOp,
    ConvertOp,
    DivideByPowerOp,
    DotHalvesOp,
    DotPairsOp,
    DotQuadsOp,
    DotSmallQuadsOp,
    LookUpOp,
    MaxfOp,
    MinfOp,
    MultiplyHighOp,
    PairHalvesOp,
    ReduceOp,
    SelectOp,
    TransposeOp,
    WidenPairsOp,
    lanes_of,
    scalar_of,
    vector_type,
)
from lowerdeck.dialects.core.enums import Packing
from lowerdeck.dialects.core.types import bf16, f16, f32, f64
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.emit_c import words
from lowerdeck.lowering.emit_c.tiles import dot_tiles, dot_tiles_name, release_tiles, set_up_tiles
from lowerdeck.lowering.emit_c.vector_arithmetic import (
    any_lane,
    combination,
    divide_by_power,
    dot_halves,
    dot_pairs,
    dot_quads,
    dot_small_quads,
    extremum_or_nan,
    float_extremum,
    integer_extrema,
    multiply_high,
    pair_halves,
    rounding_or_root,
    widen_pairs,
)
from lowerdeck.lowering.emit_c.vector_conversions import Conversion, half_conversions
from lowerdeck.lowering.emit_c.vector_movement import (
    gather,
    interleave,
    look_up,
    repetition,
    scatter,
    selection,
    strided_load,
    transpose,
    transpose_name,
)
from lowerdeck.lowering.emit_c.vector_types import (
    STEMS,
    Function,
    VectorFunction,
    type_name,
    unsigned_type,
    vector_name,
)
from lowerdeck.lowering.targets.base import Target
from lowerdeck.lowering.targets.isa import Isa

_Function = Function | VectorFunction
_IntegerExtremum = arith.MaxSIOp | arith.MaxUIOp | arith.MinSIOp | arith.MinUIOp

_EXTREMA: dict[type[_IntegerExtremum], str] = {
    arith.MaxSIOp: "maxsi",
    arith.MaxUIOp: "maxui",
    arith.MinSIOp: "minsi",
    arith.MinUIOp: "minui",
}


@singledispatch
def function_name(op: Operation) -> str | None:
    """The C function that does what an op does; None if it needs none of those defined here."""
    if type(op) in _FUNCTIONS and lanes_of(op.results[0].type):
        return f"{vector_name(op.results[0].type)}_{_FUNCTIONS[type(op)]}"
    return None


_FUNCTIONS: Mapping[type[Operation], str] = {
    SelectOp: "select",
    DotQuadsOp: "dot_quads",
    DotSmallQuadsOp: "dot_small_quads",
    DotHalvesOp: "dot_halves",
    PairHalvesOp: "pair_halves",
    WidenPairsOp: "widen_pairs",
    MultiplyHighOp: "multiply_high",
    DivideByPowerOp: "divide_by_power",
    LookUpOp: "look_up",
    math.SqrtOp: "sqrt",
    math.FloorOp: "floor",
    math.CeilOp: "ceil",
    math.RoundEvenOp: "rint",
}


@function_name.register
def _(op: AnyOp) -> str:
    return f"{vector_name(op.mask.type)}_any"


@function_name.register(MaxfOp)
@function_name.register(MinfOp)
def _(op: MaxfOp | MinfOp) -> str:
    kind = "max" if isinstance(op, MaxfOp) else "min"
    return f"{vector_name(op.result.type)}_{kind}{'_or_nan' if op.keeps_nan else ''}"


@function_name.register
def _(op: ConvertOp) -> str | None:
    source, target = scalar_of(op.input.type), scalar_of(op.result.type)
    way = Conversion(source, target, lanes_of(op.result.type), op.unsigned is not None)
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
def _(op: DotPairsOp) -> str:
    type_ = op.result.type
    return f"{vector_name(type_)}_dot_pairs" if lanes_of(type_) else words.DOT_PAIRS


@function_name.register
def _(op: AddBytesOp) -> str:
    return words.add_bytes_name(odd=op.odd is not None, unsigned=op.unsigned is not None)


@function_name.register
def _(op: kernel.LoadOp) -> str | None:
    if op.word is not None:
        lanes = lanes_of(op.result.type)
        return words.load_name(lanes, op.distance) if lanes else words.LOAD
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
    return transpose_name(*_rows(op))


def _rows(op: TransposeOp) -> tuple[Attribute, int, int]:
    """The scalars, the lanes and the number of rows that are put in the order of columns."""
    return kernel.lane_type(ref_type(op.ref).element), op.lanes, op.rows


def prelude(kernels: Iterable[kernel.FuncOp], target: Target) -> str:
    """Definitions for the vectors in kernels, and of the functions of them that those call."""
    # What a loop carries has the type of one of its results. Most types are one object, and to
    # compare them as such is faster than as types.
    types: dict[int, Attribute] = {}
    called: set[str] = set()
    rows: set[tuple[Attribute, int, int]] = set()
    for function in kernels:
        for op in all_ops(function):
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


_ABI = """\
/* Vectors of several registers go between functions of this file alone. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
"""


def _is_wide(scalar: Attribute, lanes: int, target: Target) -> bool:
    """True if a vector takes more than one register."""
    return STEMS[scalar][2] * lanes > 4 * target.lanes


def _definitions(
    types: Sequence[Attribute],
    called: set[str],
    target: Target,
    rows: Collection[tuple[Attribute, int, int]],
) -> str:
    """The types, with the integers that their bits are, and functions, those they call first."""
    isa = target.isa
    wanted = dict.fromkeys((scalar_of(type_), lanes_of(type_)) for type_ in types)
    for scalar, lanes in list(wanted):
        # Selecting goes through the integers of the same bits, and half precision through those
        # of f32.
        wanted[(IntegerType(8 * STEMS[scalar][2]), lanes)] = None
        if scalar in (f16, bf16):
            wanted |= {(f32, lanes): None, (IntegerType(32), lanes): None}
    functions: dict[str, _Function] = {"lowerdeck_set_up_tiles": Function(set_up_tiles(isa))}
    uses_tiles = frozenset(functions)
    functions["lowerdeck_release_tiles"] = Function(release_tiles(isa), uses_tiles)
    for packing in (Packing.UNSIGNED_LEFT, Packing.UNSIGNED_RIGHT, Packing.HALVES):
        functions[dot_tiles_name(packing)] = Function(dot_tiles(packing, isa), uses_tiles)
    functions |= words.functions(isa)
    for scalar, lanes in wanted:
        if scalar == IntegerType(32):
            functions |= words.loads(lanes, isa)
    for scalar, lanes in wanted:
        functions |= _functions(scalar, lanes, isa)
    for scalar, lanes, count in sorted(rows, key=lambda each: transpose_name(*each)):
        # Short vectors are merged in one step; to exchange any of their lanes takes several.
        is_short = lanes >= 8 and lanes * STEMS[scalar][2] <= isa.merged_bytes
        text = (interleave if is_short or lanes != count else transpose)(scalar, lanes, count)
        functions[transpose_name(scalar, lanes, count)] = Function(text)
    for (before, lanes), (after, others) in product(wanted, wanted):
        for unsigned in (False, True) if lanes == others else ():
            way = Conversion(before, after, lanes, unsigned)
            if way.is_function and way.name in called and way.name not in functions:
                functions[way.name] = way.function(isa)
    needed: list[str] = []
    for name, function in reversed(functions.items()):
        if name in called:
            needed.insert(0, name)
            called |= function.calls
    wide = {type_name(*each) for each in wanted if _is_wide(*each, target)}
    parts = [_ABI] if wide else []
    parts += [
        _once(f"{STEMS[scalar][0].upper()}X{lanes}", _definition(scalar, lanes))
        for scalar, lanes in wanted
    ]
    parts += [
        _once(name.removeprefix("lowerdeck_").upper(), functions[name].definition(name, wide))
        for name in needed
    ]
    return "\n".join(parts)


def _once(name: str, text: str) -> str:
    """Several models may be compiled as one file."""
    return f"#ifndef LOWERDECK_{name}\n#define LOWERDECK_{name}\n{text}#endif\n"


def _definition(scalar: Attribute, lanes: int) -> str:
    _, c_type, size = STEMS[scalar]
    name, width = type_name(scalar, lanes), size * lanes
    unsigned = ""
    if isinstance(scalar, IntegerType):
        unsigned = (
            f"typedef u{c_type} {unsigned_type(8 * size, lanes)} "
            f"__attribute__((vector_size({width})));\n"
        )
    return unsigned + (
        f"typedef {c_type} {name} __attribute__((vector_size({width})));\n"
        f"typedef {c_type} {name}_at\n"
        f"    __attribute__((vector_size({width}), aligned({size}), may_alias));\n"
    )


def _functions(scalar: Attribute, lanes: int, isa: Isa) -> dict[str, _Function]:
    """What no operator stands for, by name; those that others call come first."""
    name = type_name(scalar, lanes)
    found: dict[str, _Function] = {f"{name}_select": selection(scalar, lanes)}
    for stride in range(2, LARGEST_STRIDE + 1):
        found[f"{name}_load{stride}"] = Function(strided_load(scalar, lanes, stride))
    times = 2
    while 2 * times <= lanes:
        found[f"{name}_repeat{times}"] = Function(repetition(scalar, lanes, times))
        times *= 2
    found[f"{name}_gather"] = Function(gather(scalar, lanes))
    found[f"{name}_scatter"] = scatter(scalar, lanes)
    if scalar in (f16, bf16):
        return found | half_conversions(scalar, lanes, isa)
    if scalar in (f32, f64):
        return found | _float_functions(scalar, lanes, isa)
    return found | _integer_functions(scalar, lanes, isa)


def _integer_functions(scalar: Attribute, lanes: int, isa: Isa) -> dict[str, _Function]:
    """Those of integers alone, masks among them."""
    name, unsigned = type_name(scalar, lanes), unsigned_type(8 * STEMS[scalar][2], lanes)
    found: dict[str, _Function] = {f"{name}_any": any_lane(scalar, lanes, isa)}
    found |= integer_extrema(scalar, lanes, isa)
    for kind, operator in (("add", "+"), ("mul", "*")):
        form = f"({name})(({unsigned}){{0}} {operator} ({unsigned}){{1}})"
        found[f"{name}_reduce_{kind}"] = combination(scalar, lanes, form)
    for kind, sign in (("max", "s"), ("min", "s"), ("umax", "u"), ("umin", "u")):
        function = f"{name}_{kind.removeprefix('u')}{sign}i"
        form = f"{function}({{0}}, {{1}})"
        found[f"{name}_reduce_{kind}"] = combination(scalar, lanes, form, frozenset({function}))
    if scalar == IntegerType(8):
        found[f"{name}_look_up"] = look_up(lanes, isa)
    if scalar == IntegerType(32):
        found[f"{name}_dot_pairs"] = dot_pairs(name, lanes, isa)
        found[f"{name}_dot_quads"] = dot_quads(name, lanes, isa)
        found[f"{name}_dot_small_quads"] = dot_small_quads(name, lanes, isa)
        found[f"{name}_pair_halves"] = pair_halves(name, lanes, isa)
        found[f"{name}_widen_pairs"] = widen_pairs(name, lanes, isa)
        found[f"{name}_multiply_high"] = multiply_high(name, lanes, isa)
        found[f"{name}_divide_by_power"] = divide_by_power(name, lanes)
    return found


def _float_functions(scalar: Attribute, lanes: int, isa: Isa) -> dict[str, _Function]:
    """Those of f32 and f64 alone."""
    name = type_name(scalar, lanes)
    found: dict[str, _Function] = {}
    for kind, operator in (("max", ">"), ("min", "<")):
        found[f"{name}_{kind}"] = float_extremum(scalar, lanes, kind, operator, isa)
        found[f"{name}_{kind}_or_nan"] = extremum_or_nan(scalar, lanes, kind, isa)
    if scalar == f32:
        found[f"{name}_dot_halves"] = dot_halves(name, lanes, isa)
    for function in ("sqrt", "rint", "floor", "ceil"):
        found[f"{name}_{function}"] = rounding_or_root(function, scalar, lanes, isa)
    for kind, form in (("add", "{0} + {1}"), ("mul", "{0} * {1}")):
        found[f"{name}_reduce_{kind}"] = combination(scalar, lanes, form)
    for kind in ("max", "min"):
        function = f"{name}_{kind}"
        form = f"{function}({{0}}, {{1}})"
        found[f"{name}_reduce_{kind}"] = combination(scalar, lanes, form, frozenset({function}))
    return found
