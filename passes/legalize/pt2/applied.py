"""Operators of PyTorch applied to values of `core`, for frameworks that have the same ones."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.arguments import Given, plain_attribute
from lowerdeck.dialects.core.types import element_type
from lowerdeck.dialects.pt2.ops import op_class
from lowerdeck.passes.legalize.arguments import ArgumentsLegalizer
from lowerdeck.passes.legalize.common.walk import Results
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import handler_of


def aten(
    builder: Legalizer, target: str, elements: Sequence[Attribute], /, **arguments: Any
) -> list[SSAValue | None]:
    """
    What an overload gives, by its name without `aten.`, for arguments that are values, lists of
    values, or plain. `elements` are the element types of the results.
    """
    cls, handler = op_class(f"aten.{target}"), handler_of(f"aten.{target}")
    assert cls is not None
    assert handler is not None
    given = {name: _given(builder, value) for name, value in arguments.items()}
    op = cls(given, [UnrankedTensorType(element) for element in elements])
    op.location = builder.location
    Rewriter.insert_op(op, builder.point)
    try:
        inner = Pt2Legalizer(op, builder.symbols)
        inner.created = builder.created
        inner.wants = _wants(builder, len(elements))
        found = list(handler(inner))
        for value, element in zip(found, elements, strict=False):
            if value is not None and element_type(value) != element:
                builder.refuse(f"a result of {element_type(value)}", f"{element}")
    finally:
        op.detach()
        op.erase()
    return [*found, *[None] * len(elements)][: len(elements)]


def aten_of(
    builder: Legalizer, target: str, element: Attribute, *operands: SSAValue, **arguments: Any
) -> list[SSAValue]:
    """
    What an overload with one result gives for its first operands, in order. Arguments that are
    None, or that it does not have, are left out.
    """
    cls = op_class(f"aten.{target}")
    assert cls is not None
    names = cls.schema.arguments
    given = {name: v for name, v in arguments.items() if name in names and v is not None}
    (found,) = aten(builder, target, [element], **dict(zip(names, operands, strict=False)), **given)
    assert found is not None
    return [found]


def _wants(builder: Legalizer, count: int) -> Callable[[int], bool]:
    """Which results are computed: those of the op that has as many, or all of them."""
    if isinstance(builder, ArgumentsLegalizer) and len(builder.op.results) == count:
        return builder.wants
    return lambda index: index < count


def _given(builder: Legalizer, value: Any) -> Given:
    if isinstance(value, SSAValue):
        return cast("SSAValue", value)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if any(isinstance(item, SSAValue) for item in items):
            return [
                builder.dims([item], []) if isinstance(item, int) else cast("SSAValue | None", item)
                for item in items
            ]
    return plain_attribute(value)


# Tables of operators that mean what one of PyTorch means


def pairs(text: str) -> dict[str, str]:
    """Names of operators and of functions: `name=function`, separated by spaces."""
    return dict(pair.split("=") for pair in text.split())


@dataclass(frozen=True)
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
