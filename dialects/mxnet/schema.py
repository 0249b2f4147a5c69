"""
The table of operators, `ops.txt`, and the texts that files have as arguments.

A line is `name other-name... (input input[]; argument:type argument:type=default)`, as
`make_ops.py` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lowerdeck.dialects.arguments import Argument, Schema
from lowerdeck.dialects.records import record

_INTEGER = re.compile(r"[+-]?\d{1,19}\Z")
_ITEMS = re.compile(r"\s*,\s*")


@record
class Operator(Schema):
    """An operator."""

    inputs: tuple[str, ...]
    """The arguments that are tensors, in the order of a node's inputs."""


@cache
def schemas() -> Mapping[str, Operator]:
    """The known operators by the name that files have."""
    return {schema.target: schema for schema, _ in _table()}


@cache
def targets() -> Mapping[str, str]:
    """The name of an operator by each of its names."""
    found = {name: schema.target for schema, names in _table() for name in names}
    return {**found, **{schema.target: schema.target for schema, _ in _table()}}


@cache
def _table() -> list[tuple[Operator, list[str]]]:
    return list(map(_parse, (Path(__file__).parent / "ops.txt").read_text().splitlines()))


def _parse(line: str) -> tuple[Operator, list[str]]:
    names, _, rest = line.partition(" (")
    target, *others = names.split()
    tensors, _, plain = rest.removesuffix(")").partition(";")
    inputs = [
        Argument(text.removesuffix("[]"), "[]" if text.endswith("[]") else "", None)
        for text in tensors.split()
    ]
    arguments = [*inputs, *map(_argument, plain.split())]
    named = {argument.name: argument for argument in arguments}
    return Operator(target, named, tuple(argument.name for argument in inputs)), others


def _argument(text: str) -> Argument:
    name, _, declared = text.partition(":")
    kind, _, default = declared.partition("=")
    return Argument(name, kind, parse_argument(kind, default) if "=" in declared else None)


def parse_argument(kind: str, text: str) -> Any:
    """The value of an argument that a file has as text; ValueError if it is none of its type."""
    if text == "None":
        return None
    return _PARSERS[kind](text.strip())


def _integer(text: str) -> int:
    if _INTEGER.match(text) is None:
        raise ValueError(f"'{text}', expected an integer")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{text}', expected a number") from None


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(f"'{text}', expected a truth value")
    return text.lower() in ("true", "1")


def _items(text: str) -> list[str]:
    """The parts between brackets, or one part without."""
    inside = text
    if text[:1] in ("(", "["):
        if text[-1:] != {"(": ")", "[": "]"}[text[0]]:
            raise ValueError(f"'{text}', expected a list")
        inside = text[1:-1].strip().removesuffix(",")
    return _ITEMS.split(inside.strip()) if inside.strip() else []


def _sizes(text: str) -> list[int | None]:
    """Integers, `2L` as Python 2 wrote them, among which None may be."""
    return [None if part == "None" else _integer(part.removesuffix("L")) for part in _items(text)]


def _numbers(text: str) -> list[float]:
    return [_number(part) for part in _items(text)]


def _lists(text: str) -> list[list[int | None]]:
    """Lists of integers in a list."""
    inner = re.findall(r"[(\[][^()\[\]]*[)\]]", text[1:-1])
    return [_sizes(part) for part in inner]


_PARSERS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "int": _integer,
    "float": _number,
    "bool": _truth,
    "shape": _sizes,
    "shapes": _lists,
    "numbers": _numbers,
}
