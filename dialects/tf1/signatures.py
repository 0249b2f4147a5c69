"""The signatures of TensorFlow's operators, read from `ops.txt` when they are asked for."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from lowerdeck.dialects.records import record


@record
class Argument:
    """One formal input or output of an operator; it stands for one value or for several."""

    name: str
    dtype: str | None
    """The element type, if every use of the operator has the same."""
    type_attr: str | None
    """The attribute with the element type."""
    number_attr: str | None
    """The attribute with the number of values, all of one type."""
    list_attr: str | None
    """The attribute with the list of element types, one a value."""
    is_ref: bool


@record
class AttributeDef:
    """One formal attribute: its kind (`int`, `list(float)`, ...), and its default if it has one."""

    kind: str
    has_default: bool
    default: Any


@record
class Signature:
    """An operator as TensorFlow registers it."""

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    attrs: dict[str, AttributeDef]
    is_stateful: bool


def signature_of(op_type: str) -> Signature | None:
    """The signature of an operator, or None if it is not known."""
    text = _lines().get(op_type)
    return None if text is None else _parsed(op_type, text)


def known_operators() -> tuple[str, ...]:
    """The names of all operators."""
    return tuple(_lines())


@cache
def _lines() -> dict[str, str]:
    text = files(__package__ or "").joinpath("ops.txt").read_text(encoding="utf-8")
    lines = (line.partition(" ") for line in text.splitlines())
    return {op_type: signature for op_type, _, signature in lines}


@cache
def _parsed(op_type: str, text: str) -> Signature:
    fields = json.loads(text)
    return Signature(
        op_type,
        tuple(map(_argument, fields["inputs"])),
        tuple(map(_argument, fields["outputs"])),
        {name: _attribute(*parts) for name, parts in fields["attrs"].items()},
        fields.get("stateful", False),
    )


def _argument(text: str) -> Argument:
    name, _, kind = text.partition(":")
    is_ref, kind = kind.endswith("&"), kind.removesuffix("&")
    if kind.startswith("@"):
        return Argument(name, None, None, None, kind[1:], is_ref)
    number, star, kind = kind.rpartition("*")
    number_attr = number if star else None
    if kind.startswith("="):
        return Argument(name, kind[1:], None, number_attr, None, is_ref)
    return Argument(name, None, kind, number_attr, None, is_ref)


def _attribute(kind: str, *default: Any) -> AttributeDef:
    return AttributeDef(kind, bool(default), default[0] if default else None)
