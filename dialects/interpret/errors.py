"""Errors of the interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import InterpretationError

from lowerdeck.dialects.locations import place


class InterpretError(InterpretationError):
    """A module or its inputs cannot be run; the message says what was found and expected."""


class StepLimitError(InterpretError):
    """More operations were run than the caller allows."""


def no_values_for(missing: Sequence[str], given: Iterable[str]) -> str:
    """What is said of inputs that the caller gave nothing for."""
    names = sorted(map(str, given))
    return f"no value for the inputs {list(missing)}" + (f"; given are {names}" if names else "")


def describe(op: Operation) -> str:
    """`node 'name' (op)`, or where no source node is known, the op and its place in a text."""
    name = _source_name(op.location)
    if name is not None:
        return f"node '{name}' ({op.name})"
    where = place(op.location)
    return f"'{op.name}'" if where is None else f"{where}: '{op.name}'"


def _source_name(location: Attribute) -> str | None:
    if isinstance(location, NameLoc):
        return location.desc.data
    if isinstance(location, FusedLoc):
        parts = cast(ArrayAttr[Attribute], location.locations)
        names = (_source_name(part) for part in parts)
        return next((name for name in names if name is not None), None)
    return None
