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
from itertools import islice
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
from lowerdeck.dialects.locations import place
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.options import CompileOptions, OptionError, regexes_of
from lowerdeck.passes.machinery.order import post_order

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
    """
    The location of an op that a rewrite made; prints as `fused["a", "b"]`, with the names of source
    nodes or, if there are none, with places in a text: `fused["in.mlir":3:5, "in.mlir":4:5]`.
    """

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
                if names:
                    printer.print_list(names, printer.print_string_literal)
                else:
                    printer.print_list(_places(self, NAME_LIMIT), printer.print_attribute)


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


def sources(op: Operation) -> list[str]:
    """What messages name as the origins of an op: `'conv1'` for nodes, else places in a text."""
    names = [f"'{name}'" for name in source_names(op)]
    return names or [str(place(location)) for location in _places(op.location, NAME_LIMIT)]


def source_file(op: Operation) -> str | None:
    """The file of the first source node that names one."""
    for count, location in enumerate(_visit(op.location)):
        if isinstance(location, FileLineColLoc):
            return location.filename.data
        if count == _VISIT_LIMIT:
            break
    return None


def describe(op: Operation) -> str:
    """
    The form in which an error names an op: `model.onnx: node 'a', 'b' (core.conv)`, or for one of
    IR text `in.mlir:3:5: op 'core.conv'`.
    """
    names, more = _names_and_rest(op.location, 3)
    places = _places(op.location, 1)
    where = place(places[0]) if places else source_file(op)
    prefix = "" if where is None else f"{where}: "
    if not names:
        return f"{prefix}op '{op.name}'"
    listed = ", ".join([*(f"'{name}'" for name in names), *([more] if more else [])])
    kind = op.op_type if isinstance(op, FrameworkOp) else op.name
    return f"{prefix}node {listed} ({kind})"


def unmatched(module: Operation, patterns: Sequence[str]) -> list[str]:
    """The regular expressions that mean no source node and no place in the text of a module."""
    left = {pattern: re.compile(pattern) for pattern in patterns}
    seen: set[Attribute] = set()
    for op in all_ops(module):
        for location in _visit(op.location) if left else ():
            if location not in seen:
                seen.add(location)
                left = {text: regex for text, regex in left.items() if not _means(regex, location)}
    return list(left)


def check_names(module: Operation, options: CompileOptions, *, must_match: bool = False) -> None:
    """
    Tell of what is asked for nodes that an imported module does not have. Where numbers are rounded
    (or with `must_match`), what was to stay as it is would be rounded: OptionError.
    """
    missing = unmatched(module, regexes_of(options.skip_nodes))
    texts = [f"no node of the model has '{pattern}' in its name" for pattern in missing]
    rounds = options.weight_format is not None or options.precision not in (None, "f32")
    if texts and (must_match or rounds):
        raise OptionError([("skip_nodes", text) for text in texts])
    for text in texts:
        options.warn(f"skip_nodes: {text}")


class NodeMatcher:
    """
    Tests whether an op originates from a source node in whose name a pattern is found, or from a
    `file:line:col` that is all of a pattern: file names are no names of nodes. Memoized.
    """

    def __init__(self, patterns: str | Sequence[str]) -> None:
        self._regexes = [re.compile(pattern) for pattern in regexes_of(patterns)]
        self._known: dict[Attribute, bool] = {}

    def matches(self, op: Operation) -> bool:
        """True if one of the op's source nodes or places matches."""
        return self._matches(op.location)

    def _matches(self, root: Attribute) -> bool:
        for location in post_order([root], _parents, self._known):
            found = any(_means(regex, location) for regex in self._regexes)
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


def _means(regex: re.Pattern[str], location: Attribute) -> bool:
    if (name := _own_name(location)) is not None:
        return regex.search(name) is not None
    where = place(location)
    return where is not None and regex.fullmatch(where) is not None


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


def _places(root: Attribute, limit: int) -> list[Attribute]:
    """The first `limit` places in a text."""
    visited = islice(_visit(root), _VISIT_LIMIT)
    return list(islice((each for each in visited if place(each) is not None), limit))
