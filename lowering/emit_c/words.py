"""Functions of words of four bytes, for processors without vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from lowerdeck.lowering.emit_c.vector_types import VectorFunction
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


def _load() -> VectorFunction:
    """The first byte is the lowest, whatever the machine has in memory."""
    bytes_ = " | ".join(f"(uint32_t)bytes[{k}] << {8 * k}" for k in range(4))
    lines = [
        "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__",
        "  int32_t r;",
        "  memcpy(&r, x, sizeof r);",
        "  return r;",
        "#else",
        "  const uint8_t *const bytes = (const uint8_t *)x;",
        f"  return (int32_t)({bytes_});",
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


def _guarded(builtin: Builtin | None, plain: Sequence[str]) -> list[str]:
    """Instructions that no compiler finds, where there are any."""
    if builtin is None:
        return list(plain)
    own = ["  int32_t r;", f"  {builtin.call};", "  return r;"]
    return [f"#if {builtin.condition}", *own, "#else", *plain, "#endif"]
