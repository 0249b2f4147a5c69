"""
Products of tiles of matrices as C: the unit of a processor that has one, and loops, which run where
the system refuses it. The tiles take four bytes a word.
"""

from __future__ import annotations

from lowerdeck.dialects.core.enums import Packing
from lowerdeck.lowering.targets.isa import Isa

TILE_SHAPE = "tile_shape"
"""The variable of a kernel that says of what shape the tiles are; 0 if nobody knows."""


def set_up_tiles(isa: Isa) -> str:
    """Asks the system for the unit, when the code is loaded."""
    return "" if isa.tiles is None else f"#if {isa.tiles.guard}\n{isa.tiles.set_up}#endif\n"


def release_tiles(isa: Isa) -> str:
    """The definition of a function that ends the use of tiles."""
    lines = ["static inline void lowerdeck_release_tiles(void) {"]
    if isa.tiles is not None:
        lines += [
            f"#if {isa.tiles.guard}",
            f"  if (lowerdeck_has_tiles) {isa.tiles.release}",
            "#endif",
        ]
    return "\n".join([*lines, "}", ""])


def dot_tiles_name(packing: Packing) -> str:
    """The C function of `buffer.dot_tiles`."""
    return f"lowerdeck_dot_tiles_{packing}"


def dot_tiles(packing: Packing, isa: Isa) -> str:
    """
    The definition of that function: `a` and `b` are the factors, `a_step` and the like the distance
    of two rows, in words, `words` how many of a row each tile has, and `a_next` the distance of two
    tiles in the rows of `a`. The words of `b` are in `count` parts of equal length, which begin at
    `parts`, and its columns are in halves `across` from each other, if that is not 0. How large
    tiles are takes long to say, so `shaped` is what was said last.
    """
    element = "float" if packing is Packing.HALVES else "int32_t"
    lines = [
        f"static __attribute__((noinline)) void {dot_tiles_name(packing)}(",
        "    const int32_t *a, int64_t a_step, int64_t a_next, const int32_t *b, int64_t b_step,",
        f"    {element} *total, int64_t step, int64_t rows, int64_t columns, int64_t depth,",
        "    int64_t words, const int64_t *parts, int64_t count, int64_t across, int adds,",
        "    int64_t *shaped) {",
        "  const int64_t width = across ? columns / 2 : columns < 16 ? columns : 16;",
        "  const int64_t next = across ? across : 16, size = depth / count;",
    ]
    if isa.tiles is not None:
        guard = isa.tiles.guard
        if packing is Packing.HALVES:
            guard += f" && {isa.tiles.guard_of_halves}"
        lines += [f"#if {guard}", "  if (lowerdeck_has_tiles) {"]
        lines += [*isa.tiles.product(packing.value), "    return;", "  }", "#endif"]
    return "\n".join([*lines, "  (void)shaped;", *_loops(packing), "}", ""])


def _loops(packing: Packing) -> list[str]:
    """The same without the instructions, modulo 2^32 or in f32."""
    if packing is Packing.HALVES:
        return _LOOPS_OF_HALVES
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
        "      const uint32_t x = (uint32_t)a[i * a_step + k / words * a_next + k % words];",
        "      const int32_t *const row = b + parts[k / size] + k % size * b_step;",
        "      for (int64_t j = 0; j < columns; ++j) {",
        "        const uint32_t y = (uint32_t)row[j / width * next + j % width];",
        "        for (int n = 0; n < 32; n += 8)",
        f"          sums[j] += {left} * {right};",
        "      }",
        "    }",
        "  }",
    ]


_LOOPS_OF_HALVES = [
    "  for (int64_t i = 0; i < rows; ++i) {",
    "    float *const sums = total + i * step;",
    "    for (int64_t j = 0; j < columns && !adds; ++j) sums[j] = 0.0f;",
    "    for (int64_t k = 0; k < depth; ++k) {",
    "      const uint32_t x = (uint32_t)a[i * a_step + k / words * a_next + k % words];",
    "      const float low = lowerdeck_from_bits(x << 16);",
    "      const float high = lowerdeck_from_bits(x & 0xffff0000u);",
    "      const int32_t *const row = b + parts[k / size] + k % size * b_step;",
    "      for (int64_t j = 0; j < columns; ++j) {",
    "        const uint32_t y = (uint32_t)row[j / width * next + j % width];",
    "        const float rest = low * lowerdeck_from_bits(y << 16);",
    "        sums[j] += high * lowerdeck_from_bits(y & 0xffff0000u) + rest;",
    "      }",
    "    }",
    "  }",
]
