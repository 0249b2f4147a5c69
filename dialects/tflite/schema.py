"""The tables of TensorFlow Lite's schema, read from `schema.txt` (see `make_schema.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lowerdeck.dialects.records import record

SCALARS = {
    "bool": "?",
    "byte": "b",
    "ubyte": "B",
    "short": "h",
    "ushort": "H",
    "int": "i",
    "int32": "i",
    "uint": "I",
    "long": "q",
    "ulong": "Q",
    "float": "f",
    "double": "d",
}
"""The scalars of flatbuffers, and how `struct` calls them."""


@record
class Field:
    """A field of a table."""

    name: str
    slot: int
    kind: str
    """A scalar, `string`, an enumeration, a table or a union; of a list the kind of its items."""
    is_list: bool
    default: str


@record
class Schema:
    """All that the schema declares, by name."""

    enums: Mapping[str, Mapping[int, str]]
    """The names of the members of an enumeration by number."""
    widths: Mapping[str, str]
    """The scalar that an enumeration is stored as."""
    unions: Mapping[str, tuple[str, ...]]
    """The tables of a union; the first one has number 1."""
    tables: Mapping[str, Mapping[str, Field]]


@cache
def schema() -> Schema:
    """The schema that this compiler knows."""
    enums: dict[str, dict[int, str]] = {}
    widths: dict[str, str] = {}
    unions: dict[str, tuple[str, ...]] = {}
    tables: dict[str, dict[str, Field]] = {}
    for line in (Path(__file__).parent / "schema.txt").read_text().splitlines():
        kind, name, *words = line.split()
        match kind:
            case "enum":
                width, *members = words
                pairs = (member.split("=") for member in members)
                enums[name] = {int(number): member for member, number in pairs}
                widths[name] = width
            case "union":
                unions[name] = tuple(words)
            case _:
                tables[name] = _fields(words, unions)
    return Schema(enums, widths, unions, tables)


def _fields(words: list[str], unions: Mapping[str, tuple[str, ...]]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    slot = 0
    for word in words:
        name, _, rest = word.partition(":")
        kind, _, default = rest.partition("=")
        is_list = kind.startswith("[")
        kind = kind.strip("[]")
        if kind in unions:  # the type comes first, in a slot of its own
            slot += 1
        if word != "-":
            fields[name] = Field(name, slot, kind, is_list, default)
        slot += 1
    return fields


def builtins() -> Mapping[int, str]:
    """The builtin operators by code."""
    return schema().enums["BuiltinOperator"]
