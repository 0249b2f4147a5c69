"""
The reference pages of docs/, made from the definitions: `python -m lowerdeck.tools.gen_docs`.

The docstring of an op is its specification: text, numbered constraints, an example. An op has the
constraints of its base classes, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc

from xdsl.ir import Operation

_CONSTRAINT = re.compile(r"- \(([CT]\d+)\) (.*(?:\n  .*)*)")
_EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.DOTALL)
_SECTIONS = re.compile(r"^(?:Constraints|Example):\n", re.MULTILINE)


@dataclass(frozen=True)
class Specification:
    """What the docstring of an op says."""

    text: str
    constraints: Mapping[str, str]
    """By label: `C1`."""
    examples: Sequence[str]
    """IR text, in which values are used that nothing defines."""


def specification(op: type[Operation]) -> Specification:
    """The specification of an op, with the constraints of its base classes."""
    docs = [cleandoc(cls.__doc__ or "") for cls in op.__mro__ if issubclass(cls, Operation)]
    constraints: dict[str, str] = {}
    for doc in reversed(docs):
        constraints.update((label, " ".join(text.split())) for label, text in _constraints(doc))
    text = _SECTIONS.split(docs[0])[0].strip()
    return Specification(text, constraints, _EXAMPLE.findall(docs[0]))


def _constraints(doc: str) -> list[tuple[str, str]]:
    _, found, section = doc.partition("Constraints:\n")
    return _CONSTRAINT.findall(section) if found else []
