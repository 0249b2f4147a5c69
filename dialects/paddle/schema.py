"""
The table of operators, `ops.txt`.

A line `name(operand, list[], optional=default; attribute=default) -> result` for each operator as
PIR names it, and one for each operator of a ProgramDesc:
`@old name(Slot=operand) -> Slot=result : attribute:argument=default`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lowerdeck.dialects.arguments import Argument, Schema
from lowerdeck.dialects.records import record

_COMMA = re.compile(r",\s*(?![^\[]*\])")


@record
class Operator(Schema):
    """An operator as PIR has it."""

    operands: tuple[str, ...]
    """The arguments that are values there, in order."""
    results: tuple[str, ...]


@record
class OldForm:
    """An operator as a ProgramDesc has it."""

    name: str
    """That of its schema."""
    operands: Mapping[str, str]
    """Which argument a slot is."""
    results: Mapping[str, str]
    """Which result a slot is."""
    attributes: Mapping[str, str]
    """Which argument an attribute is that has another name."""
    defaults: Mapping[str, Any]
    """The values of arguments that are left out, if others than those of the schema."""


@cache
def schemas() -> Mapping[str, Operator]:
    """The known operators by name."""
    found = [_schema(line) for line in _lines() if not line.startswith("@")]
    return {schema.target: schema for schema in found}


@cache
def old_forms() -> Mapping[str, OldForm]:
    """The operators of a ProgramDesc by name."""
    return dict(_old_form(line) for line in _lines() if line.startswith("@"))


@cache
def _lines() -> list[str]:
    return (Path(__file__).parent / "ops.txt").read_text().splitlines()


def _schema(line: str) -> Operator:
    name, _, rest = line.partition("(")
    formals, _, results = rest.rpartition(") -> ")
    operands, _, attributes = formals.partition(";")
    values, plain = ([_argument(text) for text in _parts(part)] for part in (operands, attributes))
    arguments = {argument.name: argument for argument in (*values, *plain)}
    return Operator(name, arguments, tuple(v.name for v in values), tuple(_parts(results)))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in _COMMA.split(text) if part.strip()]


def _argument(text: str) -> Argument:
    name, _, default = text.partition("=")
    plain = ast.literal_eval(default) if default else None
    return Argument(name.removesuffix("[]"), "[]" if name.endswith("[]") else "", plain)


def _old_form(line: str) -> tuple[str, OldForm]:
    old, _, rest = line[1:].partition(" ")
    call, _, attributes = rest.partition(" : ")
    name, _, slots = call.partition("(")
    operands, _, results = slots.partition(") -> ")
    renamed: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    for text in _parts(attributes):
        names, _, default = text.partition("=")
        attribute, _, argument = names.partition(":")
        renamed |= {attribute: argument} if argument else {}
        defaults |= {argument or attribute: ast.literal_eval(default)} if default else {}
    return old, OldForm(name, _pairs(operands), _pairs(results), renamed, defaults)


def _pairs(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in _parts(text))
    return {slot: name or slot for slot, _, name in pairs}
