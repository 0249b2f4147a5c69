"""The exception of all frontends, which lists everything that is wrong with a model at once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lowerdeck.dialects.errors import ModelError
from lowerdeck.dialects.records import record


@record
class Problem:
    """What was found, what was expected and the next step; `node` and `op` are empty for a file."""

    file: str
    node: str
    op: str
    message: str

    def __str__(self) -> str:
        if not self.node and not self.op:
            return f"{self.file}: {self.message}"
        return f"{self.file}: node '{self.node}' ({self.op}): {self.message}"


_SHOWN = 50
"""The maximum number of problems in a message."""

_NAMED = 8
"""Tensors of a file that a line names; others with the same fault are counted."""

_OF_TENSOR = re.compile(r"(?P<kind>\w+) '(?P<name>[^']*)': (?P<text>.*)", re.DOTALL)
"""What is said of a part of a file that is no node, such as `initializer 'w': ...`."""


class FrontendError(ModelError):
    """
    A model that cannot be imported; `problems` lists all reasons; the message has one per line: the
    first 50 and the total number. Tensors of which the same is to be said share a line.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        lines = _lines(self.problems)
        if (count := len(lines)) > _SHOWN:
            file = self.problems[0].file
            lines = [*lines[:_SHOWN], f"{file}: {count} problems, of which these are {_SHOWN}"]
        super().__init__("\n".join(lines))

    @staticmethod
    def of_file(file: str, message: str) -> FrontendError:
        """The error for one problem with a whole file."""
        return FrontendError([Problem(file, "", "", message)])


def _lines(problems: Iterable[Problem]) -> list[str]:
    """A line for each problem, or for all tensors of a file that have the same one."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for problem in problems:
        match = None if problem.node or problem.op else _OF_TENSOR.fullmatch(problem.message)
        if match is None:
            groups.setdefault((str(problem),), [])
        else:
            key = (problem.file, match["kind"], match["text"])
            groups.setdefault(key, []).append(match["name"])
    return [_line(key, names) for key, names in groups.items()]


def _line(key: tuple[str, ...], names: list[str]) -> str:
    if len(key) == 1:
        return key[0]
    file, kind, text = key
    named = ", ".join(f"'{name}'" for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{file}: {kind}{'s' if len(names) > 1 else ''} {named}{more}: {text}"
