"""Tables of operators of other frameworks that mean what one of PyTorch means."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from xdsl.ir import Attribute

from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.arguments import ArgumentsLegalizer
from lowerdeck.passes.legalize.common.walk import Results
from lowerdeck.passes.legalize.pt2.applied import aten


@record
class Overload:
    """What an operator means: an overload, and what its arguments are."""

    target: str
    sources: Mapping[str, str]
    """For each argument of the overload the operator's, or a plain value after a colon."""

    def is_plain(self, name: str) -> bool:
        """True if an argument is a plain value and none of the operator's."""
        return self.sources[name].startswith(":")

    def arguments(self, builder: ArgumentsLegalizer) -> dict[str, Any]:
        """The arguments for one op; those that are left out are none."""
        found: dict[str, Any] = {}
        for name, source in self.sources.items():
            if self.is_plain(name):
                found[name] = ast.literal_eval(source[1:])
            elif (value := builder.get(source)) is not None:
                found[name] = value
        return found


@cache
def overloads(table: str) -> Mapping[str, Overload]:
    """
    By the operator, of which each has a line `name: overload argument ...`. An argument is one of
    the operator's under its own name, `name=other` under another one, and `name:value` something
    plain.
    """
    found: dict[str, Overload] = {}
    for line in filter(None, map(str.strip, table.splitlines())):
        name, _, rest = line.partition(": ")
        target, *arguments = rest.split()
        found[name] = Overload(target, dict(map(_argument, arguments)))
    return found


_LISTS = ("dims", "shifts", "size", "stride")
"""Arguments that are lists of numbers, which some operators have as tensors."""


def as_torch(table: str, *elements: Attribute) -> dict[str, Callable[[Any], Results]]:
    """The handlers of a table as `overloads` reads it, in the types of the results or in others."""
    return {name: _handler(overload, elements) for name, overload in overloads(table).items()}


def _handler(
    overload: Overload, elements: Sequence[Attribute]
) -> Callable[[ArgumentsLegalizer], Results]:
    def handler(builder: ArgumentsLegalizer) -> Results:
        given = overload.arguments(builder)
        for name in _LISTS:
            if name in given and not overload.is_plain(name):
                given[name] = builder.ints_of(overload.sources[name])
        return aten(builder, overload.target, elements or builder.elements(), **given)

    return handler


def _argument(text: str) -> tuple[str, str]:
    if ":" in text:
        name, _, value = text.partition(":")
        return name, f":{value}"
    name, _, source = text.partition("=")
    return name, source or name
