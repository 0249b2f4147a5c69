"""
Products of tiles of matrices as C: the instructions of a processor that has them, and loops.

A processor's tiles take four bytes a word. Linux keeps their registers only for processes that have
asked for it, so they do when the code is loaded; where the system refuses, the loops run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from lowerdeck.dialects.buffer.tiles import TILE
from lowerdeck.dialects.core.enums import Packing

GUARD = "defined(__AMX_INT8__) && defined(__linux__)"
"""What has to hold for the instructions to be there."""

SET_UP = f"""#if {GUARD}
#include <immintrin.h>
static int lowerdeck_has_tiles;
static __attribute__((constructor)) void lowerdeck_ask_for_tiles(void) {{
  /* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) */
  long result = 158;
  __asm__ volatile("syscall" : "+a"(result) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
  lowerdeck_has_tiles = result == 0;
}}
/* How large tiles are takes far longer to say than to ask. */
static inline void lowerdeck_shape_tiles(const unsigned char *shape) {{
  unsigned char now[64];
  _tile_storeconfig(now);
  if (__builtin_memcmp(now, shape, 64) != 0) _tile_loadconfig(shape);
}}
#endif
"""
"""Asks the system for the registers, when the code is loaded; gives them their shapes."""

RELEASE = f"""static inline void lowerdeck_release_tiles(void) {{
#if {GUARD}
  if (lowerdeck_has_tiles) _tile_release();
#endif
}}
"""

_INSTRUCTIONS = {Packing.UNSIGNED_LEFT: "_tile_dpbusd", Packing.UNSIGNED_RIGHT: "_tile_dpbsud"}

_TOTALS, _LEFT, _RIGHT = (0, 1, 2, 3), (4, 5), (6, 7)
"""The registers: of two by two products, two tiles of rows and two of columns."""


def dot_tiles_name(packing: Packing) -> str:
    """The C function of `buffer.dot_tiles`."""
    return f"lowerdeck_dot_tiles_{packing}"


def dot_tiles(packing: Packing) -> str:
    """
    The definition of that function: `a` and `b` are the factors, `a_step` and the like the distance
    of two rows, in words.
    """
    lines = [
        f"static __attribute__((noinline)) void {dot_tiles_name(packing)}(",
        "    const int32_t *a, int64_t a_step, const int32_t *b, int64_t b_step, int32_t *total,",
        "    int64_t step, int64_t rows, int64_t columns, int64_t depth, int adds) {",
        f"#if {GUARD}",
        "  if (lowerdeck_has_tiles) {",
        f"    const int64_t words = depth < {TILE} ? depth : {TILE};",
        *(f"    const int64_t {end} = {size} < {TILE} ? {size} : {TILE};" for end, size in _FIRST),
        *_shapes(),
        "    lowerdeck_shape_tiles(shape);",
    ]
    word = "if"
    for height, width in product((2, 1), (2, 1)):
        tests = (f"rows {'>' if height > 1 else '<='} {TILE}", f"columns > {TILE}")
        own = tests if width > 1 else tests[:1]
        lines.append(f"    {word} ({' && '.join(own)}) {{")
        lines += _tiles(packing, height, width)
        lines.append("    }")
        word = "else if"
    lines += ["    return;", "  }", "#endif", *_loops(packing)]
    return "\n".join([*lines, "}", ""])


_FIRST = (("height", "rows"), ("width", "columns"))


def _shapes() -> Iterator[str]:
    """How many rows each register has, and bytes in each of them; both are zero for none."""
    yield "    unsigned char shape[64] = {1};"
    heights, widths = ("height", "rows - height"), ("width", "columns - width")
    sizes = {register: (heights[register // 2], widths[register % 2]) for register in _TOTALS}
    sizes |= {register: (heights[k], "words") for k, register in enumerate(_LEFT)}
    sizes |= {register: ("words", widths[k]) for k, register in enumerate(_RIGHT)}
    for register, (rows, words) in sizes.items():
        rest = [f"{size} > 0" for size in (rows, words) if "-" in size]
        if rest:
            yield f"    if ({' && '.join(rest)}) {{"
        yield f"    shape[{48 + register}] = (unsigned char)({rows});"
        yield f"    shape[{16 + 2 * register}] = (unsigned char)(4 * ({words}));"
        if rest:
            yield "    }"


def _tiles(packing: Packing, height: int, width: int) -> Iterator[str]:
    """The products of so many tiles of rows and of columns."""
    totals = {
        (i, j): (_TOTALS[2 * i + j], f"total + {TILE * i} * step + {TILE * j}, (size_t)(4 * step)")
        for i, j in product(range(height), range(width))
    }
    yield "      if (adds) {"
    yield from (f"        _tile_loadd({number}, {place});" for number, place in totals.values())
    yield "      } else {"
    yield from (f"        _tile_zero({number});" for number, _ in totals.values())
    yield "      }"
    yield "      for (int64_t k = 0; k < depth; k += words) {"
    for j in range(width):
        place = f"b + k * b_step + {TILE * j}, (size_t)(4 * b_step)"
        yield f"        _tile_loadd({_RIGHT[j]}, {place});"
    for i in range(height):
        place = f"a + {TILE * i} * a_step + k, (size_t)(4 * a_step)"
        yield f"        _tile_loadd({_LEFT[i]}, {place});"
        for j in range(width):
            factors = f"{_LEFT[i]}, {_RIGHT[j]}"
            yield f"        {_INSTRUCTIONS[packing]}({totals[i, j][0]}, {factors});"
    yield "      }"
    yield from (f"      _tile_stored({number}, {place});" for number, place in totals.values())


def _loops(packing: Packing) -> list[str]:
    """The same without the instructions, modulo 2^32."""
    left, right = (
        f"(uint32_t)(int32_t)({sign}int8_t)({word} >> n)"
        for sign, word in zip(
            ("u", "") if packing == Packing.UNSIGNED_LEFT else ("", "u"), ("x", "y"), strict=True
        )
    )
    return [
        "  for (int64_t i = 0; i < rows; ++i) {",
        "    uint32_t *const sums = (uint32_t *)total + i * step;",
        "    for (int64_t j = 0; j < columns && !adds; ++j) sums[j] = 0;",
        "    for (int64_t k = 0; k < depth; ++k) {",
        "      const uint32_t x = (uint32_t)a[i * a_step + k];",
        "      for (int64_t j = 0; j < columns; ++j) {",
        "        const uint32_t y = (uint32_t)b[k * b_step + j];",
        "        for (int n = 0; n < 32; n += 8)",
        f"          sums[j] += {left} * {right};",
        "      }",
        "    }",
        "  }",
    ]
