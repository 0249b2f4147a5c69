"""Reads IR text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.utils.lexer import Input, Span

from lowerdeck.dialects.core.types import MAX_RANK
from lowerdeck.dialects.errors import is_declared
from lowerdeck.dialects.interpret.errors import describe
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.dialects.verification import problems_of
from lowerdeck.frontends.errors import FrontendError


def read_module(
    path: str,
    context: Context | None,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> ModuleOp:
    """The module in a file of IR text, verified; FrontendError if it cannot be read."""
    if outputs is not None or input_shapes:
        message = "outputs and input shapes cannot be changed in IR text; edit the text"
        raise FrontendError.of_file(path, message)
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        module = parse_module(context or default_context(), text, path)
        _verify(module, path)
        if names := [one.sym_name.data for one in module.walk() if _is_declared_only(one)]:
            raise FrontendError.of_file(path, f"functions without a body: {', '.join(names)}")
        return module
    except OSError as error:
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None
    except (ParseError, DiagnosticException, UnicodeDecodeError) as error:
        raise FrontendError.of_file(path, f"is not valid IR text:\n{_shortened(error)}") from None
    except RecursionError:
        raise FrontendError.of_file(path, "its regions are nested too deeply") from None


def _verify(module: ModuleOp, path: str) -> None:
    """FrontendError that lists the ops that are not well-formed."""
    if problems := problems_of(module):
        lines = "\n".join(f"{describe(op)}: {text}" for op, text in problems[:_LISTED])
        raise FrontendError.of_file(path, f"is not valid IR text:\n{lines}")


def _is_declared_only(op: Operation) -> TypeGuard[func.FuncOp]:
    return isinstance(op, func.FuncOp) and not op.body.blocks


_LISTED = 16
"""Ops that are not well-formed and are named."""

_LONGEST = 500
"""Characters of a line that an error shows."""


def _shortened(error: Exception) -> str:
    lines = str(error).split("\n")
    return "\n".join(line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..." for line in lines)


_STRING = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*(?P<end>"?)')
"""A comment, or a string up to its end or the end of the text."""

_DIMENSIONS = re.compile(rf"<(?:(?:[0-9]+|\?)x){{{MAX_RANK + 1}}}")
"""A type with more dimensions than are allowed."""


_UNREGISTERED = re.compile(r"Operation (?P<name>\S+) is not registered")
"""What xDSL's parser says of an op that no dialect has."""


def _names_of_ops(context: Context) -> list[str]:
    """Those of the dialects that the context has loaded or can load."""
    names = context.registered_dialect_names
    return [op.name for name in names for op in context.get_dialect(name).operations]


def parse_module(
    context: Context, text: str, name: str, *, allow_implicit: bool = True
) -> ModuleOp:
    """
    The module in a text; ParseError or VerifyException if it is not well-formed.

    An op that has no `loc` in the text is given its place there as its location.

    For some malformed text, such as numbers that are too large for their type, xDSL's parser raises
    whatever Python raises instead of its own error; such errors get the current parser position.
    """
    for match in _STRING.finditer(text):
        # The lexer of xDSL takes exponential time to find that a string is unterminated.
        if match["end"] == "":
            span = Span(match.start(), match.start() + 1, Input(text, name))
            raise ParseError(span, "the string does not end, or has an escape that is none")
    without_strings = _STRING.sub(lambda match: " " * len(match[0]), text)
    if (found := _DIMENSIONS.search(without_strings)) is not None:
        # The parser of xDSL takes quadratic time for them.
        span = Span(found.start(), found.end(), Input(text, name))
        raise ParseError(span, f"a type of more than {MAX_RANK} dimensions")
    parser = _LocatingParser(context, text, name)
    try:
        return parser.parse_module(allow_implicit)
    except ParseError as error:
        if (unknown := _UNREGISTERED.fullmatch(error.msg)) is not None:
            near = get_close_matches(unknown["name"], _names_of_ops(context))
            if near:
                message = f"{error.msg}; did you mean {' or '.join(near)}?"
                raise ParseError(error.span, message) from error
        raise
    except Exception as error:
        if is_declared(error) or isinstance(error, RecursionError | MemoryError):
            raise
        if not _comes_from_xdsl(error):
            raise
        parser.raise_error(f"{error or type(error).__name__}, in what ends here")


class _LocatingParser(Parser):
    """Ops that are read without a location are given their place in the text."""

    def __init__(self, context: Context, text: str, name: str) -> None:
        super().__init__(context, text, name)
        self._file = StringAttr(name)
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._after_location = -1
        """Where the text goes on after the last location in it."""

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        module = super().parse_module(allow_implicit_module)
        if isinstance(module.location, UnknownLoc) and self._after_location != self.pos:
            # Not in the text as such; locations of files have line 0.
            module.location = FileLineColLoc(self._file, IntAttr(0), IntAttr(0))
        return module

    def parse_operation(self) -> Operation:
        start = self.pos
        op = super().parse_operation()
        # The location is the last that an op has, so one in a region of it is not its own.
        if isinstance(op.location, UnknownLoc) and self._after_location != self.pos:
            line = bisect_right(self._line_starts, start)
            column = start - self._line_starts[line - 1] + 1
            op.location = FileLineColLoc(self._file, IntAttr(line), IntAttr(column))
        return op

    def parse_optional_location(self) -> LocationAttr | None:
        location = super().parse_optional_location()
        if location is not None:
            self._after_location = self.pos
        return location


def _comes_from_xdsl(error: Exception) -> bool:
    """True if the function that raised an error is one of xDSL, not of ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__"))
    return module.startswith("xdsl.")


def default_context() -> Context:
    """A context with all dialects."""
    context = Context()
    register_dialects(context)
    return context
