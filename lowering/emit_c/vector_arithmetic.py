"""Functions of vectors: tests, roots, roundings, extrema, sums of products, and reductions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from lowerdeck.dialects.core.types import f32
from lowerdeck.lowering.emit_c.vector_types import STEMS, VectorFunction, guarded, type_name
from lowerdeck.lowering.targets.isa import Isa


def any_lane(scalar: Attribute, lanes: int, isa: Isa) -> VectorFunction:
    """A mask is not zero: as few numbers of 64 bits as its bits make."""
    name = type_name(scalar, lanes)
    count = max(STEMS[scalar][2] * lanes // 8, 1)
    plain = [
        f"  uint64_t bits[{count}] = {{0}};",
        "  memcpy(bits, &mask, sizeof mask);",
        f"  return ({' | '.join(f'bits[{k}]' for k in range(count))}) != 0;",
    ]
    builtin = isa.functions.get(("any", STEMS[scalar][0], lanes))
    own = [] if builtin is None else [f"  return {builtin.call} != 0;"]
    return VectorFunction("bool", ((name, "mask"),), guarded(builtin, own, plain))


def rounding_or_root(function: str, scalar: Attribute, lanes: int, isa: Isa) -> VectorFunction:
    """
    By the instruction, where there is one. Adding what has no place for a fraction rounds, too;
    what is below or above is the next integer then.
    """
    name = type_name(scalar, lanes)
    size = STEMS[scalar][2]
    bits = type_name(IntegerType(8 * size), lanes)
    calls: frozenset[str] = frozenset()
    if function == "sqrt":
        suffix = "f" if scalar == f32 else ""
        plain = [
            f"  {name} r = x;",
            f"  for (int k = 0; k < {lanes}; k++) r[k] = sqrt{suffix}(x[k]);",
            "  return r;",
        ]
    elif function == "rint":
        limit = "0x1p23f" if scalar == f32 else "0x1p52"
        sign = "INT32_MIN" if scalar == f32 else "INT64_MIN"
        plain = [
            f"  const {bits} sign = ({bits})x & ({sign} - ({bits}){{0}});",
            f"  const {name} magnitude = ({name})(({bits})x ^ sign);",
            f"  const {name} limit = {limit} - ({name}){{0}};",
            f"  const {bits} rounded = ({bits})((magnitude + limit) - limit) | sign;",
            f"  return {name}_select(magnitude < limit, ({name})rounded, x);",
        ]
        calls = frozenset({f"{name}_select"})
    else:
        one = "1.0f" if scalar == f32 else "1.0"
        operator, correction = (">", "-") if function == "floor" else ("<", "+")
        sign = "INT32_MIN" if scalar == f32 else "INT64_MIN"
        # A zero keeps the sign of what it was made of.
        plain = [
            f"  const {bits} sign = ({bits})x & ({sign} - ({bits}){{0}});",
            f"  const {name} nearest = {name}_rint(x);",
            f"  const {name} other = nearest {correction} {one};",
            f"  const {name} r = {name}_select(nearest {operator} x, other, nearest);",
            f"  return ({name})(({bits})r | sign);",
        ]
        calls = frozenset({f"{name}_select", f"{name}_rint"})
    body = _by_function(function, scalar, lanes, isa, plain)
    return VectorFunction(name, ((name, "x"),), body, calls)


def _by_function(
    function: str, scalar: Attribute, lanes: int, isa: Isa, plain: Sequence[str]
) -> list[str]:
    """The body of a function that there may be an instruction for."""
    builtin = isa.functions.get((function, STEMS[scalar][0], lanes))
    own = [] if builtin is None else [f"  return {builtin.call};"]
    return guarded(builtin, own, plain)


def float_extremum(
    scalar: Attribute, lanes: int, kind: str, operator: str, isa: Isa
) -> VectorFunction:
    """A maximum or minimum."""
    name = type_name(scalar, lanes)
    select = f"{name}_select"
    body = _by_function(kind, scalar, lanes, isa, [f"  return {select}(a {operator} b, a, b);"])
    return VectorFunction(name, ((name, "a"), (name, "b")), body, frozenset({select}))


def extremum_or_nan(scalar: Attribute, lanes: int, kind: str, isa: Isa) -> VectorFunction:
    """A maximum or minimum that is NaN where `a` or `b` is: of `a` by bits that are all ones."""
    name, plain = type_name(scalar, lanes), f"{type_name(scalar, lanes)}_{kind}"
    bits = type_name(IntegerType(8 * STEMS[scalar][2]), lanes)
    line = f"  return ({name})(({bits}){plain}(a, b) | ({bits})(a != a));"
    body = _by_function(f"{kind}_or_nan", scalar, lanes, isa, [line])
    return VectorFunction(name, ((name, "a"), (name, "b")), body, frozenset({plain}))


def dot_pairs(name: str, lanes: int, isa: Isa) -> VectorFunction:
    """Products of the two halves of each lane, and a total."""
    low = " * ".join(f"(({name})((lowerdeck_u32x{lanes}){x} << 16) >> 16)" for x in "ab")
    lines = [f"  return c + {low} + (a >> 16) * (b >> 16);"]
    builtins = isa.pairs.get(lanes, ())
    for builtin in reversed(builtins):
        call = builtin.call.format("(pairs)a", "(pairs)b", name)
        own = [f"  return {call};"]
        if "pairs" in call:
            own.insert(0, f"  typedef short pairs __attribute__((vector_size({4 * lanes})));")
        lines = guarded(builtin, own, lines)
    return VectorFunction(name, ((name, "a"), (name, "b"), (name, "c")), lines)


def dot_quads(name: str, lanes: int, isa: Isa) -> VectorFunction:
    """Products of the four bytes of each lane, those of `a` without signs, and a total."""
    lines = _sum_of_bytes(name, lanes)
    if (instruction := isa.quads_without_function.get(lanes)) is not None:
        own = [f"  {name} r = c;", f"  {instruction.call};", "  return r;"]
        lines = [f"#if {instruction.condition}", *own, "#else", *lines, "#endif"]
    builtin = isa.quads.get(lanes)
    own = [] if builtin is None else [f"  return {builtin.call.format('a', 'b', name)};"]
    lines = guarded(builtin, own, lines)
    return VectorFunction(name, ((name, "a"), (name, "b"), (name, "c")), lines)


def dot_small_quads(name: str, lanes: int, isa: Isa) -> VectorFunction:
    """The same of bytes such that 16 bits hold sums of two products."""
    if lanes in isa.quads:
        return dot_quads(name, lanes, isa)
    lines, builtin = _sum_of_bytes(name, lanes), isa.small_quads.get(lanes)
    if builtin is not None:
        own = [f"  const {name} ones = ({name}){{0}} + 0x00010001;", f"  {name} r;"]
        own += [f"  {builtin.call};", "  return c + r;"]
        lines = [f"#if {builtin.condition}", *own, "#else", *lines, "#endif"]
    return VectorFunction(name, ((name, "a"), (name, "b"), (name, "c")), lines)


def _sum_of_bytes(name: str, lanes: int) -> list[str]:
    unsigned = f"lowerdeck_u32x{lanes}"
    terms = [
        f"({name})(({unsigned})a << {left} >> 24) * (({name})(({unsigned})b << {left}) >> 24)"
        for left in (24, 16, 8, 0)
    ]
    lines = [f"  {name} r = c + {terms[0]};", *(f"  r += {term};" for term in terms[1:])]
    return [*lines, "  return r;"]


def dot_halves(name: str, lanes: int, isa: Isa) -> VectorFunction:
    """Products of the two numbers of bf16 in each lane, and a total in f32."""
    words, unsigned = f"lowerdeck_i32x{lanes}", f"lowerdeck_u32x{lanes}"
    low = " * ".join(f"({name})(({unsigned}){x} << 16)" for x in "ab")
    high = " * ".join(f"({name})(({unsigned}){x} & 0xffff0000u)" for x in "ab")
    builtin = isa.halves.get(lanes)
    own = [] if builtin is None else [f"  {builtin.call};", "  return c;"]
    plain = [f"  return {high} + ({low} + c);"]
    return VectorFunction(
        name, ((words, "a"), (words, "b"), (name, "c")), guarded(builtin, own, plain)
    )


def pair_halves(name: str, lanes: int, isa: Isa) -> VectorFunction:
    """Two f32 in each lane, rounded to bf16; what is no number stays none."""
    floats, unsigned = f"lowerdeck_f32x{lanes}", f"lowerdeck_u32x{lanes}"
    own: list[str] = []
    if (builtin := isa.pairs_of_halves.get(lanes)) is not None:
        own = [f"  {name} r;", f"  {builtin.call};", "  return r;"]
    plain = [f"  {unsigned} r[2];"]
    for number, value in enumerate(("low", "high")):
        plain += [
            f"  const {unsigned} {value}_bits = ({unsigned}){value};",
            f"  const {unsigned} {value}_nan = ({unsigned})({value} != {value});",
            f"  r[{number}] = ({value}_bits + 0x7fffu + ((({value}_bits) >> 16) & 1u)) >> 16;",
            f"  r[{number}] = ({value}_nan & ({value}_bits >> 16 | 0x40u))"
            f" | (~{value}_nan & r[{number}]);",
        ]
    plain.append(f"  return ({name})(r[0] | r[1] << 16);")
    return VectorFunction(name, ((floats, "low"), (floats, "high")), guarded(builtin, own, plain))


def widen_pairs(name: str, lanes: int, isa: Isa) -> VectorFunction:
    """Twice as many bytes as lanes, with their signs, as halves of lanes."""
    words = f"typedef int16_t words __attribute__((vector_size({4 * lanes})));"
    own: list[str] = []
    if (builtin := isa.conversions.get(("i8", "i16", False, 2 * lanes))) is not None:
        own = [f"  {words}", "  words r;", f"  {builtin.call};", f"  return ({name})r;"]
    plain = [
        f"  const {name} low = ({name})((lowerdeck_u32x{lanes})wide << 24) >> 24 & 0xffff;",
        f"  return ({name})((lowerdeck_u32x{lanes})(wide >> 8) << 16) | low;",
    ]
    plain.insert(0, f"  const {name} wide = __builtin_convertvector(x, {name});")
    return VectorFunction(name, ((f"lowerdeck_i16x{lanes}", "x"),), guarded(builtin, own, plain))


def multiply_high(name: str, lanes: int, isa: Isa) -> VectorFunction:
    """Products in 64 bits, of which bits from 31 on are kept: even lanes, then odd ones."""
    plain = [
        f"  {name} r;",
        f"  for (int k = 0; k < {lanes}; k++)",
        "    r[k] = (int32_t)(uint32_t)((uint64_t)((int64_t)a[k] * b[k] + 1073741824) >> 31);",
        "  return r;",
    ]
    own: list[str] = []
    if (builtin := isa.wide_products.get(lanes)) is not None:
        odd = [f"({name})((words){x} >> 32)" for x in "ab"]
        own = [
            f"  typedef unsigned long long words __attribute__((vector_size({4 * lanes})));",
            "  const words half = 1073741824 - (words){0}, low = 0xffffffff - (words){0};",
            f"  const words even = ((words){builtin.call.format('a', 'b')} + half) >> 31;",
            f"  const words odd = ((words){builtin.call.format(*odd)} + half) << 1;",
            f"  return ({name})((even & low) | (odd & ~low));",
        ]
    return VectorFunction(name, ((name, "a"), (name, "b")), guarded(builtin, own, plain))


def divide_by_power(name: str, lanes: int) -> VectorFunction:
    """Rounded down, then up where more than half is cut off, or half of what is not negative."""
    unsigned = f"lowerdeck_u32x{lanes}"
    lines = [
        f"  const {name} mask = ({name})((1u << ({unsigned})n) - 1u);",
        "  return (a >> n) - ((a & mask) > (mask >> 1) - (a >> 31));",
    ]
    return VectorFunction(name, ((name, "a"), (name, "n")), lines)


def integer_extrema(scalar: Attribute, lanes: int, isa: Isa) -> dict[str, VectorFunction]:
    """Signed and unsigned ones."""
    stem = STEMS[scalar][0]
    name, unsigned = f"lowerdeck_{stem}x{lanes}", f"lowerdeck_u{stem[1:]}x{lanes}"
    found: dict[str, VectorFunction] = {}
    for kind, operator in (("max", ">"), ("min", "<")):
        for sign, type_ in (("s", name), ("u", unsigned)):
            plain = [
                f"  const {name} mask = ({type_})a {operator} ({type_})b;",
                "  return (mask & a) | (~mask & b);",
            ]
            builtin = isa.functions.get((f"{kind}{sign}", stem, lanes))
            own = [] if builtin is None else [f"  return ({name}){builtin.call};"]
            body = guarded(builtin, own, plain)
            found[f"{name}_{kind}{sign}i"] = VectorFunction(name, ((name, "a"), (name, "b")), body)
    return found


def combination(
    scalar: Attribute, lanes: int, form: str, calls: frozenset[str] = frozenset()
) -> VectorFunction:
    """Halves upon each other, until the first lane holds all."""
    name, lines = type_name(scalar, lanes), list[str]()
    half = lanes // 2
    while half:
        moved = ", ".join(str((lane + half) % lanes) for lane in range(lanes))
        lines.append(f"  x = {form.format('x', f'__builtin_shufflevector(x, x, {moved})')};")
        half //= 2
    return VectorFunction(STEMS[scalar][1], ((name, "x"),), [*lines, "  return x[0];"], calls)
