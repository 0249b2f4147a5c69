"""
Where an op comes from: source nodes are leaves, and a rewrite adds one node over what it consumed.

An op's location is either a source location (`NameLoc` and the like, as importers and the parser
make them) or a `DerivedLoc`, which holds the locations that a rewrite consumed. The locations of a
module form a DAG; a rewrite costs O(1), and flattening happens only to print or to match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, BuiltinAttribute, Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from lowerdeck.dialects.frameworks import FrameworkOp
from lowerdeck.passes.options import CompileOptions, regexes_of
from lowerdeck.passes.order import post_order

NAME_LIMIT = 16
"""The number of names that are printed; the rest are only counted."""

_VISIT_LIMIT = 1024
"""Locations visited for printing: deriving from everything must not make printing quadratic."""


@dataclass(frozen=True, eq=False)
class Origins:
    """The distinct locations that one rewrite consumed; equal only to itself."""

    parents: tuple[Attribute, ...]
    note: object = None
    """A note about the op for the messages of later passes."""


@irdl_attr_definition
class DerivedLoc(Data[Origins], BuiltinAttribute):
    """The location of an op that a rewrite made; prints as `fused["a", "b"]`."""

    name = "lowerdeck.derived_loc"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Origins:
        parser.raise_error("a derived location is read as a fused location")

    def print_parameter(self, printer: Printer) -> None:
        self.print_builtin(printer)

    def print_builtin(self, printer: Printer) -> None:
        names, more = _names_and_rest(self, NAME_LIMIT)
        if more:
            names = [*names, more]
        with printer.in_location():
            printer.print_string("fused")
            with printer.in_square_brackets():
                printer.print_list(names, printer.print_string_literal)


def source_location(name: str, file: str | None = None) -> LocationAttr:
    """The leaf for a source node: `loc("conv1"("model.onnx":0:0))`, or `loc("conv1")`."""
    if file is None:
        return NameLoc(StringAttr(name), NoneAttr())
    return NameLoc(StringAttr(name), FileLineColLoc(StringAttr(file), IntAttr(0), IntAttr(0)))


def derive(locations: Iterable[Attribute], note: object = None) -> LocationAttr:
    """The location of ops rewritten from ops with these locations; `note_of` returns the note."""
    parents = tuple(dict.fromkeys(loc for loc in locations if not isinstance(loc, UnknownLoc)))
    if note is None and not parents:
        return UnknownLoc()
    if note is None and len(parents) == 1:
        return cast(LocationAttr, parents[0])
    return cast(LocationAttr, DerivedLoc(Origins(parents, note)))


def note_of(op: Operation) -> object:
    """The note that was passed to `derive`; None if there is none."""
    location: Attribute = op.location
    return location.data.note if isinstance(location, DerivedLoc) else None


def source_names(op: Operation, limit: int = NAME_LIMIT) -> list[str]:
    """The names of the first `limit` source nodes that an op originates from, without repeats."""
    return _names_and_rest(op.location, limit)[0]


def source_file(op: Operation) -> str | None:
    """The file of the first source node that names one."""
    for count, location in enumerate(_visit(op.location)):
        if isinstance(location, FileLineColLoc):
            return location.filename.data
        if count == _VISIT_LIMIT:
            break
    return None


def describe(op: Operation) -> str:
    """The form in which an error names an op: `model.onnx: node 'a', 'b' (core.conv)`."""
    names, more = _names_and_rest(op.location, 3)
    file = source_file(op)
    prefix = "" if file is None else f"{file}: "
    if not names:
        return f"{prefix}op '{op.name}'"
    listed = ", ".join([*(f"'{name}'" for name in names), *([more] if more else [])])
    kind = op.op_type if isinstance(op, FrameworkOp) else op.name
    return f"{prefix}node {listed} ({kind})"


def unmatched(module: Operation, patterns: Sequence[str]) -> list[str]:
    """The regular expressions that are found in the name of no source node of a module."""
    left = {pattern: re.compile(pattern) for pattern in patterns}
    seen: set[str] = set()
    for op in module.walk():
        for location in _visit(op.location) if left else ():
            name = _own_name(location)
            if name is not None and name not in seen:
                seen.add(name)
                left = {text: regex for text, regex in left.items() if not regex.search(name)}
    return list(left)


def warn_of_names(module: Operation, options: CompileOptions) -> None:
    """Tell of what is asked for nodes that an imported module does not have."""
    for pattern in unmatched(module, regexes_of(options.skip_nodes)):
        options.warn(f"skip_nodes: no node of the model has '{pattern}' in its name")


class NodeMatcher:
    """Tests whether an op originates from a source node whose name matches. Memoized."""

    def __init__(self, patterns: str | Sequence[str]) -> None:
        self._regexes = [re.compile(pattern) for pattern in regexes_of(patterns)]
        self._known: dict[Attribute, bool] = {}

    def matches(self, op: Operation) -> bool:
        """True if one of the op's source nodes matches."""
        return self._matches(op.location)

    def _matches(self, root: Attribute) -> bool:
        for location in post_order([root], _parents, self._known):
            name = _own_name(location)
            found = name is not None and any(regex.search(name) for regex in self._regexes)
            self._known[location] = found or any(map(self._known.get, _parents(location)))
        return self._known[root]


def _parents(location: Attribute) -> Sequence[Attribute]:
    match location:
        case DerivedLoc():
            return location.data.parents
        case FusedLoc():
            return tuple(cast(Iterable[Attribute], location.locations))
        case NameLoc():
            return (location.location,)
        case CallSiteLoc():
            return (location.callee, location.caller)
        case _:
            return ()


def _own_name(location: Attribute) -> str | None:
    return location.desc.data if isinstance(location, NameLoc) else None


def _visit(root: Attribute) -> Iterator[Attribute]:
    """Every location below `root` once, parents in order."""
    seen: set[Attribute] = set()
    stack = [root]
    while stack:
        location = stack.pop()
        if location in seen:
            continue
        seen.add(location)
        yield location
        stack.extend(reversed(_parents(location)))


def _names_and_rest(root: Attribute, limit: int) -> tuple[list[str], str]:
    """The first `limit` names, and a phrase that counts the others."""
    names: dict[str, None] = {}
    cut = False
    for count, location in enumerate(_visit(root)):
        if (name := _own_name(location)) is not None:
            names[name] = None
        if count == _VISIT_LIMIT:
            cut = True
            break
    listed = list(names)
    rest = len(listed) - limit
    if rest <= 0:
        return listed, "and more" if cut else ""
    return listed[:limit], f"and {'over ' if cut else ''}{rest} more"
