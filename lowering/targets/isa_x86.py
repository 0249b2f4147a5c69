"""The instructions of x86-64, by the names that gcc has for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from lowerdeck.lowering.targets.isa import Builtin, Isa, TileUnit

_BITS = {"f32": 32, "f64": 64}
_SUFFIXES = {"f32": "ps", "f64": "pd"}
_WIDTHS = (512, 256, 128)


def _functions() -> Iterator[tuple[tuple[str, str, int], Builtin]]:
    for element, width in product(_BITS, _WIDTHS):
        lanes, suffix = width // _BITS[element], _SUFFIXES[element]
        # A mask of all lanes: those of f32 are a signed number, and those of f64 an unsigned one.
        mask = {"f32": "-1", "f64": "255"}[element]
        for kind in ("max", "min"):
            yield (
                (kind, element, lanes),
                {
                    512: Builtin(
                        "__AVX512F__", f"__builtin_ia32_{kind}{suffix}512_mask(a, b, a, {mask}, 4)"
                    ),
                    256: Builtin("__AVX__", f"__builtin_ia32_{kind}{suffix}256(a, b)"),
                    128: Builtin("__SSE2__", f"__builtin_ia32_{kind}{suffix}(a, b)"),
                }[width],
            )
            if width == 512:
                # Where `a` is a number the extremum, which is `b` if that is NaN; else `a`.
                # A comparison takes and gives masks without signs.
                every, signed = {"f32": ("65535", "(short)"), "f64": (mask, "")}[element]
                is_number = f"{signed}__builtin_ia32_cmp{suffix}512_mask(a, a, 7, {every}, 4)"
                call = f"__builtin_ia32_{kind}{suffix}512_mask(a, b, a, {is_number}, 4)"
                yield (f"{kind}_or_nan", element, lanes), Builtin("__AVX512F__", call)
        yield (
            ("sqrt", element, lanes),
            {
                512: Builtin("__AVX512F__", f"__builtin_ia32_sqrt{suffix}512_mask(x, x, -1, 4)"),
                256: Builtin("__AVX__", f"__builtin_ia32_sqrt{suffix}256(x)"),
                128: Builtin("__SSE2__", f"__builtin_ia32_sqrt{suffix}(x)"),
            }[width],
        )
        for function, kind in _ROUNDINGS.items():
            yield (
                (function, element, lanes),
                {
                    512: Builtin(
                        "__AVX512F__",
                        f"__builtin_ia32_rndscale{suffix}_mask(x, {kind}, x, -1, 4)",
                    ),
                    256: Builtin("__AVX__", f"__builtin_ia32_round{suffix}256(x, {kind})"),
                    128: Builtin("__SSE4_1__", f"__builtin_ia32_round{suffix}(x, {kind})"),
                }[width],
            )


_ROUNDINGS = {"rint": 4, "floor": 9, "ceil": 10}
"""The immediate operand of each."""

_QUADS = "(long long __attribute__((vector_size(64))))mask"
_BYTES = "__builtin_ia32_pmovmskb{0}((char __attribute__((vector_size({1}))))mask)"
_TESTS: Mapping[tuple[str, str, int], Builtin] = {
    ("any", "i32", 16): Builtin("__AVX512F__", "__builtin_ia32_ptestmd512(mask, mask, 0xffff)"),
    ("any", "i64", 8): Builtin(
        "__AVX512F__", f"__builtin_ia32_ptestmq512({_QUADS}, {_QUADS}, 0xff)"
    ),
    ("any", "i32", 8): Builtin("__AVX2__", _BYTES.format(256, 32)),
    ("any", "i64", 4): Builtin("__AVX2__", _BYTES.format(256, 32)),
    ("any", "i32", 4): Builtin("__SSE2__", _BYTES.format(128, 16)),
    ("any", "i64", 2): Builtin("__SSE2__", _BYTES.format(128, 16)),
}


def _integer_extrema() -> Iterator[tuple[tuple[str, str, int], Builtin]]:
    for (size, letter), width in product({1: "b", 2: "w", 4: "d"}.items(), _WIDTHS):
        lanes = width // 8 // size
        octets = "" if size > 1 else f"(char __attribute__((vector_size({width // 8}))))"
        a, b = f"{octets}a", f"{octets}b"
        ones = {1: "~0ull", 2: "~0u", 4: "65535"}[size]  # a mask of all lanes
        for kind, sign in product(("max", "min"), "su"):
            name = f"__builtin_ia32_p{kind}{sign}{letter}{width}"
            is_old = (size, sign) in ((1, "u"), (2, "s"))
            macros = {512: "__AVX512BW__" if size < 4 else "__AVX512F__", 256: "__AVX2__"}
            macro = macros.get(width, "__SSE2__" if is_old else "__SSE4_1__")
            call = f"{name}_mask({a}, {b}, {a}, {ones})" if width == 512 else f"{name}({a}, {b})"
            yield (f"{kind}{sign}", f"i{8 * size}", lanes), Builtin(macro, call)


# Conversions


def _conversions() -> Iterator[tuple[tuple[str, str, bool, int], Builtin]]:
    for before, after, is_unsigned in product(_LETTERS, _LETTERS, (False, True)):
        if before == after:
            continue
        sign = ("zx" if is_unsigned else "sx") if before < after else ""
        name = f"vpmov{sign}{_LETTERS[before]}{_LETTERS[after]}"
        macros = {64: "__AVX512BW__", 32: "__AVX512VL__", 16: "__AVX512VL__"}
        if before < after:
            macros |= {32: "__AVX2__", 16: "__AVX__"}
        elif before == 2:
            macros |= dict.fromkeys((32, 16), "__AVX512BW__ __AVX512VL__")
        types = (f"i{8 * before}", f"i{8 * after}")
        for width, macro in macros.items():
            lanes = width // max(before, after)
            yield (*types, is_unsigned, lanes), _assembly(name, macro)
    for (source, target, is_unsigned), (name, macros) in _WIDENING.items():
        for width, macro in macros.items():
            yield (source, target, is_unsigned, width // 8), _assembly(name, macro)


def _assembly(name: str, macro: str) -> Builtin:
    registers = "v" if "512" in macro else "x"
    return Builtin(macro, f'__asm__("{name} %1, %0" : "={registers}"(r) : "{registers}"(x))')


_LETTERS = {1: "b", 2: "w", 4: "d", 8: "q"}
_WIDENING: Mapping[tuple[str, str, bool], tuple[str, Mapping[int, str]]] = {
    ("f32", "f64", False): ("vcvtps2pd", {64: "__AVX512F__", 32: "__AVX__"}),
    ("i32", "f64", False): ("vcvtdq2pd", {64: "__AVX512F__", 32: "__AVX__"}),
    ("i32", "f64", True): ("vcvtudq2pd", {64: "__AVX512F__", 32: "__AVX512VL__"}),
    ("f32", "i64", False): ("vcvttps2qq", {64: "__AVX512DQ__"}),
    ("f32", "i64", True): ("vcvttps2uqq", {64: "__AVX512DQ__"}),
}
"""Instructions, and the macros that say that there are vectors of so many bytes for them."""

_BY_WORDS = """#if defined(__AVX2__) && !defined(__AVX512DQ__)
  typedef int32_t words __attribute__((vector_size(16)));
  typedef int64_t halves __attribute__((vector_size(16)));
  const words whole = __builtin_convertvector(x, words);
  const halves large = (halves)(whole == INT32_MIN);
  if ((large[0] | large[1]) == 0) return __builtin_convertvector(whole, {target});
#endif"""
"""Each lane that is too large for a word becomes the lowest one."""

_REGISTER = "__attribute__((vector_size(16)))"

_WIDENING_OF_F16 = {
    16: Builtin("__AVX512F__", "__builtin_ia32_vcvtph2ps512_mask({0}, ({1}){{0}}, -1, 4)"),
    8: Builtin("__F16C__", "__builtin_ia32_vcvtph2ps256({0})"),
    4: Builtin(
        "__F16C__",
        f"__builtin_ia32_vcvtph2ps((short {_REGISTER})"
        f"(long long {_REGISTER}){{{{(long long){{0}}, 0}}}})",
    ),
}
# Masks of all lanes are signed numbers for some of these functions, and for others they are not.
_NARROWING_TO_F16 = {
    16: Builtin("__AVX512F__", "__builtin_ia32_vcvtps2ph512_mask({0}, 0, ({2}){{0}}, 65535)"),
    8: Builtin("__F16C__", "__builtin_ia32_vcvtps2ph256({0}, 0)"),
    4: Builtin("__F16C__", f"((long long {_REGISTER})__builtin_ia32_vcvtps2ph({{0}}, 0))[0]"),
}


# Sums of products of integers

_PAIRS = {
    16: (
        Builtin("__AVX512VNNI__", "({2})__builtin_ia32_vpdpwssd_v16si(c, a, b)"),
        Builtin(
            "__AVX512BW__", "c + ({2})__builtin_ia32_pmaddwd512_mask({0}, {1}, ({2}){{0}}, 65535)"
        ),
    ),
    8: (Builtin("__AVX2__", "c + ({2})__builtin_ia32_pmaddwd256({0}, {1})"),),
    4: (Builtin("__SSE2__", "c + ({2})__builtin_ia32_pmaddwd128({0}, {1})"),),
}
_WIDE_PRODUCTS = {
    16: Builtin(
        "__AVX512F__",
        "__builtin_ia32_pmuldq512_mask("
        "{0}, {1}, (long long __attribute__((vector_size(64)))){{0}}, 255)",
    ),
    8: Builtin("__AVX2__", "__builtin_ia32_pmuldq256({0}, {1})"),
    4: Builtin("__SSE4_1__", "__builtin_ia32_pmuldq128({0}, {1})"),
}


def _small_quad_sums() -> Iterator[tuple[int, Builtin]]:
    """Instructions, which clang does not find, either."""
    for lanes, macro in ((16, "__AVX512BW__"), (8, "__AVX2__"), (4, "__AVX__")):
        kind = "v" if lanes == 16 else "x"
        yield (
            lanes,
            Builtin(
                macro,
                f'__asm__("vpmaddubsw %2, %1, %0" : "={kind}"(r) : "{kind}"(a), "{kind}m"(b)); '
                f'__asm__("vpmaddwd %2, %1, %0" : "={kind}"(r) : "{kind}"(r), "{kind}m"(ones))',
            ),
        )


_QUAD_SUMS = {
    16: Builtin("__AVX512VNNI__", "({2})__builtin_ia32_vpdpbusd_v16si(c, a, b)"),
    8: Builtin("__AVX512VNNI__", "({2})__builtin_ia32_vpdpbusd_v8si(c, a, b)"),
    4: Builtin("__AVX512VNNI__", "({2})__builtin_ia32_vpdpbusd_v4si(c, a, b)"),
}
_QUAD_INSTRUCTIONS = {
    lanes: Builtin(builtin.macro, '__asm__("vpdpbusd %2, %1, %0" : "+v"(r) : "v"(a), "v"(b))')
    for lanes, builtin in _QUAD_SUMS.items()
}
"""Clang has other functions, and does not find the instruction in plain C."""


def _overlapping_words() -> Iterator[tuple[tuple[int, int], Builtin]]:
    """The bytes from the first one to the last, and nothing beyond, then each where it belongs."""
    for (register, lanes), distance in product(_REGISTERS.items(), (1, 2)):
        size = (lanes - 1) * distance + 4
        loaded = next(name for name, lanes in _REGISTERS.items() if size <= 4 * lanes)
        places = [lane * distance + byte for lane in range(lanes) for byte in range(4)]
        vector = f"char __attribute__((vector_size({4 * lanes})))"
        mask = f"0x{(1 << size) - 1:x}ull"
        yield (
            (lanes, distance),
            Builtin(
                "__AVX512VBMI__ __AVX512VL__",
                f"const {vector} places = {{{', '.join(map(str, places))}}};\n"
                f'  __asm__("vmovdqu8 %1, %{loaded}0%{{%2%}}%{{z%}}"\n'
                f'          : "=v"(r) : "m"(*(const char (*)[{size}])x), "Yk"({mask}));\n'
                f'  __asm__("vpermb %1, %2, %{register}0" : "=v"(r) : "v"(r), "v"(places))',
            ),
        )


_REGISTERS = {"x": 4, "t": 8, "g": 16}
"""Registers, by what an operand of an instruction says for them, and their lanes."""

# An instruction, for the types of its builtin differ from compiler to compiler.
_HALF_SUMS = {
    lanes: Builtin("__AVX512BF16__", '__asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b))')
    for lanes in (16, 8, 4)
}


def _pairs_of_halves() -> Iterator[tuple[int, Builtin]]:
    """The numbers of one vector, then those of the other; then each beside its own."""
    for lanes in _REGISTERS.values():
        places = ", ".join(f"{k}, {lanes + k}" for k in range(lanes))
        size = 2 * 2 * lanes
        yield (
            lanes,
            Builtin(
                "__AVX512BF16__ __AVX512VL__",
                f"const uint16_t places __attribute__((vector_size({size}))) = {{{places}}};\n"
                '  __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(r) : "v"(low), "v"(high));\n'
                '  __asm__("vpermw %1, %2, %0" : "=v"(r) : "v"(r), "v"(places))',
            ),
        )


def _lookups() -> Iterator[tuple[int, Builtin]]:
    """Each instruction chooses of 128 bytes; short vectors are the first lanes of whole ones."""
    for lanes in (64, 32, 16):
        halves = (("low", "t0", "t1"), ("high", "t2", "t3"))
        calls = [
            f'__asm__("vpermi2b %g2, %g1, %g0" : "+v"({half}) : "v"({first}), "v"({last}))'
            for half, first, last in halves
        ]
        yield lanes, Builtin("__AVX512VBMI__", ";\n  ".join(calls))


# Tiles: AMX. Linux keeps the registers only for processes that have asked for them, so they do when
# the code is loaded.

_GUARD = "defined(__AMX_INT8__) && defined(__linux__)"

_GUARD_OF_HALVES = "defined(__AMX_BF16__)"

_SET_UP = """#include <immintrin.h>
static int lowerdeck_has_tiles;
static __attribute__((constructor)) void lowerdeck_ask_for_tiles(void) {
  /* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) */
  long result = 158;
  __asm__ volatile("syscall" : "+a"(result) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
  lowerdeck_has_tiles = result == 0;
}
"""

_DOTS = {
    "unsigned_left": "_tile_dpbusd",
    "unsigned_right": "_tile_dpbsud",
    "halves": "_tile_dpbf16ps",
}

_ROWS = 16
"""Of a tile, and words of one of its rows."""

_TOTALS, _LEFT, _RIGHT = (0, 1, 2, 3), (4, 5), (6, 7)
"""The registers: of two by two products, two tiles of rows and two of columns."""


def _tile_product(packing: str) -> Sequence[str]:
    lines = [
        f"    const int64_t height = rows < {_ROWS} ? rows : {_ROWS};",
        "    const int64_t shape = ((rows * 64 + columns) * 64 + words) * 64 + width;",
        "    if (*shaped != shape) {",
        *(f"  {line}" for line in _shapes()),
        "      _tile_loadconfig(tiles);",
        "      *shaped = shape;",
        "    }",
    ]
    word = "if"
    for height, width in product((2, 1), (2, 1)):
        tests = (f"rows {'>' if height > 1 else '<='} {_ROWS}", "columns > width")
        own = tests if width > 1 else tests[:1]
        lines.append(f"    {word} ({' && '.join(own)}) {{")
        lines += _tiles(packing, height, width)
        lines.append("    }")
        word = "else if"
    return lines


def _shapes() -> Iterator[str]:
    """How many rows each register has, and bytes in each of them; both are zero for none."""
    yield "    unsigned char tiles[64] = {1};"
    heights, widths = ("height", "rows - height"), ("width", "columns - width")
    sizes = {register: (heights[register // 2], widths[register % 2]) for register in _TOTALS}
    sizes |= {register: (heights[k], "words") for k, register in enumerate(_LEFT)}
    sizes |= {register: ("words", widths[k]) for k, register in enumerate(_RIGHT)}
    for register, (rows, words) in sizes.items():
        rest = [f"{size} > 0" for size in (rows, words) if "-" in size]
        if rest:
            yield f"    if ({' && '.join(rest)}) {{"
        yield f"    tiles[{48 + register}] = (unsigned char)({rows});"
        yield f"    tiles[{16 + 2 * register}] = (unsigned char)(4 * ({words}));"
        if rest:
            yield "    }"


def _tiles(packing: str, height: int, width: int) -> Iterator[str]:
    """The products of so many tiles of rows and of columns."""
    totals = {
        (i, j): (
            _TOTALS[2 * i + j],
            f"total + {_ROWS * i} * step + {j} * width, (size_t)(4 * step)",
        )
        for i, j in product(range(height), range(width))
    }
    yield "      if (adds) {"
    yield from (f"        _tile_loadd({number}, {place});" for number, place in totals.values())
    yield "      } else {"
    yield from (f"        _tile_zero({number});" for number, _ in totals.values())
    yield "      }"
    yield "      for (int64_t part = 0; part < count; ++part)"
    yield "      for (int64_t k = 0; k < size; k += words, a += a_next) {"
    yield "        const int32_t *const right = b + parts[part] + k * b_step;"
    for j in range(width):
        place = f"right + {j} * next, (size_t)(4 * b_step)"
        yield f"        _tile_loadd({_RIGHT[j]}, {place});"
    for i in range(height):
        place = f"a + {_ROWS * i} * a_step, (size_t)(4 * a_step)"
        yield f"        _tile_loadd({_LEFT[i]}, {place});"
        for j in range(width):
            factors = f"{_LEFT[i]}, {_RIGHT[j]}"
            yield f"        {_DOTS[packing]}({totals[i, j][0]}, {factors});"
    yield "      }"
    yield from (f"      _tile_stored({number}, {place});" for number, place in totals.values())


X86 = Isa(
    functions={**dict(_functions()), **dict(_integer_extrema()), **_TESTS},
    conversions=dict(_conversions()),
    long_integers={4: _BY_WORDS},
    widening_of_f16=_WIDENING_OF_F16,
    narrowing_to_f16=_NARROWING_TO_F16,
    pairs=_PAIRS,
    wide_products=_WIDE_PRODUCTS,
)
"""Those of all levels: macros tell which of them a compiler may use."""

X86_AVX2 = replace(X86, small_quads=dict(_small_quad_sums()))
"""With sums of small products of bytes."""

X86_VNNI = replace(X86, quads=_QUAD_SUMS, quads_without_function=_QUAD_INSTRUCTIONS)
"""With sums of products of bytes."""

X86_ZEN4 = replace(
    X86_VNNI,
    halves=_HALF_SUMS,
    pairs_of_halves=dict(_pairs_of_halves()),
    overlapping_words=dict(_overlapping_words()),
    lookups=dict(_lookups()),
)
"""With sums of products of bf16, and bytes in any order, too."""

X86_AMX = replace(
    X86_VNNI,
    overlapping_words=dict(_overlapping_words()),
    lookups=dict(_lookups()),
    pairs_of_halves=dict(_pairs_of_halves()),
    tiles=TileUnit(_GUARD, _GUARD_OF_HALVES, _SET_UP, "_tile_release();", _tile_product),
)
"""
With products of tiles, bytes in any order, and tables of them. Sums of bf16 in vectors take four
times as long as those of f32 there.
"""
