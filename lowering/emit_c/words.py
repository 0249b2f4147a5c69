"""Functions of words of four bytes, most of them for processors without vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from xdsl.dialects.builtin import i32

from lowerdeck.dialects.buffer.kernel import WORD_BYTES
from lowerdeck.dialects.buffer.vector import LARGEST_STRIDE
from lowerdeck.lowering.emit_c.vector_types import VectorFunction, type_name
from lowerdeck.lowering.targets.isa import Builtin, Isa

LOAD, DOT_PAIRS = "lowerdeck_load_word", "lowerdeck_dot_pairs"

_WORD = "int32_t"


def add_bytes_name(*, odd: bool, unsigned: bool) -> str:
    """The function that adds two of four bytes to halves."""
    return f"lowerdeck_add_{'odd' if odd else 'even'}_{'unsigned_' if unsigned else ''}bytes"


def functions(isa: Isa) -> dict[str, VectorFunction]:
    """All of them, by name."""
    found = {LOAD: _load(), DOT_PAIRS: _dot_pairs(isa)}
    for odd, unsigned in product((False, True), repeat=2):
        name = add_bytes_name(odd=odd, unsigned=unsigned)
        found[name] = _add_bytes(isa.byte_additions.get((odd, unsigned)), odd, unsigned)
    return found


def load_name(lanes: int, distance: int) -> str:
    """The function that loads words whose first bytes lie so far apart."""
    return f"{type_name(i32, lanes)}_words{distance}"


def loads(lanes: int, isa: Isa) -> dict[str, VectorFunction]:
    """Those of vectors of words, by name."""
    distances = range(1, LARGEST_STRIDE + 1)
    return {load_name(lanes, distance): _loads(lanes, distance, isa) for distance in distances}


def _loads(lanes: int, distance: int, isa: Isa) -> VectorFunction:
    """Words of all lanes: those of a vector in memory, if they lie side by side."""
    name, calls = type_name(i32, lanes), frozenset({LOAD})
    word = f"{LOAD}((const uint8_t *)x + {distance} * k)"
    if distance == WORD_BYTES:
        # No call that only machines need that have the highest byte first.
        word, calls = (
            f"(int32_t)({_of_bytes('((const uint8_t *)x)[4 * k + {0}]')})",
            frozenset[str](),
        )
    plain = [f"  {name} r;", f"  for (int k = 0; k < {lanes}; k++)", f"    r[k] = {word};"]
    plain.append("  return r;")
    if distance == WORD_BYTES:
        plain = [_LITTLE, f"  return *(const {name}_at *)x;", "#else", *plain, "#endif"]
    builtin = isa.overlapping_words.get((lanes, distance))
    body = _guarded(builtin, plain, name)
    return VectorFunction(name, (("const void *", "x"),), body, calls)


def _of_bytes(byte: str) -> str:
    """A word, of a byte by its number."""
    return " | ".join(f"(uint32_t){byte.format(k)} << {8 * k}" for k in range(WORD_BYTES))


_LITTLE = "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__"


def _load() -> VectorFunction:
    """The first byte is the lowest, whatever the machine has in memory."""
    lines = [
        _LITTLE,
        "  int32_t r;",
        "  memcpy(&r, x, sizeof r);",
        "  return r;",
        "#else",
        "  const uint8_t *const bytes = (const uint8_t *)x;",
        f"  return (int32_t)({_of_bytes('bytes[{0}]')});",
        "#endif",
    ]
    return VectorFunction(_WORD, (("const void *", "x"),), lines)


def _dot_pairs(isa: Isa) -> VectorFunction:
    halves = "(uint32_t)((int16_t)(uint32_t){0} * (int16_t)(uint32_t){1})"
    low = halves.format("a", "b")
    high = halves.format("((uint32_t)a >> 16)", "((uint32_t)b >> 16)")
    plain = [f"  return (int32_t)((uint32_t)c + {low} + {high});"]
    parameters = ((_WORD, "a"), (_WORD, "b"), (_WORD, "c"))
    return VectorFunction(_WORD, parameters, _guarded(isa.scalar_pairs, plain))


def _add_bytes(builtin: Builtin | None, odd: bool, unsigned: bool) -> VectorFunction:
    byte = "(uint8_t)" if unsigned else "(int8_t)"
    shifts = (8, 24) if odd else (0, 16)
    low, high = (f"(uint32_t){byte}((uint32_t)word >> {shift})" for shift in shifts)
    plain = [
        f"  const uint32_t low = ((uint32_t)base + {low}) & 0xffffu;",
        f"  return (int32_t)((((uint32_t)base >> 16) + {high}) << 16 | low);",
    ]
    return VectorFunction(_WORD, ((_WORD, "word"), (_WORD, "base")), _guarded(builtin, plain))


def _guarded(builtin: Builtin | None, plain: Sequence[str], result: str = _WORD) -> list[str]:
    """Instructions that no compiler finds, where there are any."""
    if builtin is None:
        return list(plain)
    lines = [f"#if {builtin.condition}", f"  {result} r;", f"  {builtin.call};", "  return r;"]
    if plain[0].startswith("#if"):
        return [*lines, plain[0].replace("#if", "#elif", 1), *plain[1:]]
    return [*lines, "#else", *plain, "#endif"]
