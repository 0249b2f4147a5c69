"""What vectors are called in C, and the functions of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from lowerdeck.dialects.buffer.vector import lanes_of, scalar_of
from lowerdeck.dialects.core.types import bf16, f16, f32, f64
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


@dataclass(frozen=True)
class Function:
    """The definition of a function in C, and the names of those that it calls."""

    text: str
    calls: frozenset[str] = frozenset()


_HEAD = re.compile(r"(?P<before>static .*?)(?P<name>\w+)\((?P<parameters>[^()]*)\) \{\n")


def by_address(text: str, types: Collection[str]) -> str:
    """
    The definition of a function whose parameters of types come by address, behind a macro that
    passes values: how a vector of several registers is passed differs between versions of gcc,
    which says so for each such function, also where all its calls are inlined.
    """
    head = _HEAD.match(text)
    if head is None:
        return text
    split = [parameter.rpartition(" ") for parameter in head["parameters"].split(", ")]
    if types.isdisjoint(type_ for type_, _, _ in split):
        return text
    name, wide = head["name"], {word: type_ for type_, _, word in split if type_ in types}
    parameters = ", ".join(
        f"const {type_} *{word}_at" if word in wide else f"{type_} {word}"
        for type_, _, word in split
    )
    arguments = ", ".join(
        f"(const {type_}[]){{{word}}}" if word in wide else word for type_, _, word in split
    )
    words = ", ".join(word for _, _, word in split)
    values = "".join(f"  {type_} {word} = *{word}_at;\n" for word, type_ in wide.items())
    return (
        f"#define {name}({words}) {name}_by_address({arguments})\n"
        f"{head['before']}{name}_by_address({parameters}) {{\n{values}{text[head.end() :]}"
    )


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
