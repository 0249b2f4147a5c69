"""Functions of vectors: tests, roots, roundings, extrema, sums of products, and reductions."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from lowerdeck.dialects.core.types import f32
from lowerdeck.lowering.emit_c.vector_types import STEMS, Function, type_name
from lowerdeck.lowering.targets.base import Target


def any_lane(scalar: Attribute, lanes: int) -> str:
    """A mask is not zero: as few numbers of 64 bits as its bits make."""
    name = type_name(scalar, lanes)
    count = max(STEMS[scalar][2] * lanes // 8, 1)
    lines = [f"static inline bool {name}_any({name} mask) {{"]
    if (STEMS[scalar][2], lanes) in _TESTS:
        macro, form = _TESTS[(STEMS[scalar][2], lanes)]
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
    if (STEMS[scalar][2], lanes) in _TESTS:
        lines.append("#endif")
    return "\n".join([*lines, "}", ""])


_QUADS = "(long long __attribute__((vector_size(64))))mask"
_BYTES = "__builtin_ia32_pmovmskb{0}((char __attribute__((vector_size({1}))))mask)"
_TESTS: Mapping[tuple[int, int], tuple[str, str]] = {
    (4, 16): ("__AVX512F__", "__builtin_ia32_ptestmd512(mask, mask, 0xffff)"),
    (8, 8): ("__AVX512F__", f"__builtin_ia32_ptestmq512({_QUADS}, {_QUADS}, 0xff)"),
    (4, 8): ("__AVX2__", _BYTES.format(256, 32)),
    (8, 4): ("__AVX2__", _BYTES.format(256, 32)),
    (4, 4): ("__SSE2__", _BYTES.format(128, 16)),
    (8, 2): ("__SSE2__", _BYTES.format(128, 16)),
}
"""How gcc tests a mask, by the bytes of a lane and the lanes."""


def rounding_or_root(function: str, scalar: Attribute, lanes: int) -> Function:
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
    return Function(text + "}\n", calls)


_ROUNDINGS: Mapping[str, int] = {"rint": 4, "floor": 9, "ceil": 10}


def _instruction(function: str, scalar: Attribute, lanes: int) -> tuple[str, str] | None:
    """The macro that says that there is an instruction, and gcc's name of it."""
    suffix = "ps" if scalar == f32 else "pd"
    width = 8 * STEMS[scalar][2] * lanes
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


def float_extremum(
    scalar: Attribute, lanes: int, kind: str, operator: str, target: Target
) -> Function:
    """A maximum or minimum; clang finds the instruction by itself."""
    name = type_name(scalar, lanes)
    text = f"  return {name}_select(a {operator} b, a, b);\n"
    if (builtin := target.extrema.get(STEMS[scalar][2] * lanes // 4)) is not None:
        call = builtin.call.format(kind, *(("ps", "-1") if scalar == f32 else ("pd", "255")))
        text = (
            f"#if defined({builtin.macro}) && !defined(__clang__)\n"
            f"  return {call};\n#else\n{text}#endif\n"
        )
    return Function(
        f"static inline {name} {name}_{kind}({name} a, {name} b) {{\n{text}}}\n",
        frozenset({f"{name}_select"}),
    )


def dot_pairs(name: str, lanes: int, target: Target) -> str:
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


def dot_quads(name: str, lanes: int, target: Target) -> str:
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


def integer_extrema(scalar: Attribute, lanes: int) -> dict[str, Function]:
    """Signed and unsigned ones."""
    stem = STEMS[scalar][0]
    name, unsigned = f"lowerdeck_{stem}x{lanes}", f"lowerdeck_u{stem[1:]}x{lanes}"
    found: dict[str, Function] = {}
    for kind, operator in (("max", ">"), ("min", "<")):
        for sign, type_ in (("s", name), ("u", unsigned)):
            text = (
                f"static inline {name} {name}_{kind}{sign}i({name} a, {name} b) {{\n"
                f"  const {name} mask = ({type_})a {operator} ({type_})b;\n"
                f"  return (mask & a) | (~mask & b);\n}}\n"
            )
            found[f"{name}_{kind}{sign}i"] = Function(text)
    return found


def combination(scalar: Attribute, lanes: int, kind: str, form: str) -> str:
    """Halves upon each other, until the first lane holds all."""
    name = type_name(scalar, lanes)
    lines = [f"static inline {STEMS[scalar][1]} {name}_reduce_{kind}({name} x) {{"]
    half = lanes // 2
    while half:
        moved = ", ".join(str((lane + half) % lanes) for lane in range(lanes))
        lines.append(f"  x = {form.format('x', f'__builtin_shufflevector(x, x, {moved})')};")
        half //= 2
    return "\n".join([*lines, "  return x[0];", "}", ""])
