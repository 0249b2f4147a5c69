"""What vectors are called in C, and the functions of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from lowerdeck.dialects.buffer.vector import lanes_of, scalar_of
from lowerdeck.dialects.core.types import bf16, f16, f32, f64
from lowerdeck.dialects.records import record
from lowerdeck.lowering.targets.isa import Builtin

STEMS: dict[Attribute, tuple[str, str, int]] = {
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


@lru_cache(maxsize=1 << 10)
def vector_name(type_: Attribute) -> str:
    """The C type of a vector."""
    return type_name(scalar_of(type_), lanes_of(type_))


def type_name(scalar: Attribute, lanes: int) -> str:
    """The C type of a vector of so many lanes."""
    return f"lowerdeck_{STEMS[scalar][0]}x{lanes}"


def memory_name(type_: Attribute) -> str:
    """The C type of a vector in memory, where it has the alignment of its elements."""
    return f"{vector_name(type_)}_at"


def unsigned_name(type_: Attribute) -> str:
    """The C type of a vector of integers, read as unsigned ones."""
    return unsigned_type(8 * STEMS[scalar_of(type_)][2], lanes_of(type_))


def unsigned_type(bits: int, lanes: int) -> str:
    """The C type of a vector of unsigned integers."""
    return f"lowerdeck_u{bits}x{lanes}"


@record
class Function:
    """A definition in C, and the names of the functions that it calls."""

    text: str
    calls: frozenset[str] = frozenset()

    def definition(self, name: str, wide: Collection[str]) -> str:
        """The C of it."""
        del name, wide
        return self.text


@record
class VectorFunction:
    """
    A function of vectors: the type of its result, types and words of its parameters, the lines
    between its braces, and the names of the functions that it calls.
    """

    result: str
    parameters: tuple[tuple[str, str], ...]
    body: Sequence[str]
    calls: frozenset[str] = frozenset()

    def definition(self, name: str, wide: Collection[str]) -> str:
        """
        The C of it, under a name. Vectors of types that are wide come by address, behind a macro
        that passes values: how a vector of several registers is passed differs between versions of
        gcc, which says so for each such function, also where all its calls are inlined.
        """
        values = {word: type_ for type_, word in self.parameters if type_ in wide}
        takes = ", ".join(
            f"const {type_} *{word}_at" if word in values else _declared(type_, word)
            for type_, word in self.parameters
        )
        lines = [f"static inline {self.result} {name}({takes}) {{", *self.body, "}", ""]
        if values:
            words = ", ".join(word for _, word in self.parameters)
            passed = ", ".join(
                f"(const {type_}[]){{{word}}}" if word in values else word
                for type_, word in self.parameters
            )
            lines[:1] = [
                f"#define {name}({words}) {name}_by_address({passed})",
                f"static inline {self.result} {name}_by_address({takes}) {{",
                *(f"  {type_} {word} = *{word}_at;" for word, type_ in values.items()),
            ]
        return "\n".join(lines)


def _declared(type_: str, word: str) -> str:
    return f"{type_}{word}" if type_.endswith("*") else f"{type_} {word}"


def guarded(builtin: Builtin | None, own: Sequence[str], plain: Sequence[str]) -> list[str]:
    """
    Lines for compilers that have a builtin, and those for all others: clang finds instructions by
    itself. Plain ones that begin with a condition of their own continue this one.
    """
    if builtin is None:
        return list(plain)
    head = f"#if {builtin.condition} && !defined(__clang__)"
    if plain and plain[0].startswith("#if"):
        return [head, *own, plain[0].replace("#if", "#elif", 1), *plain[1:]]
    return [head, *own, "#else", *plain, "#endif"]
