"""The exception of all frontends, which lists everything that is wrong with a model at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lowerdeck.dialects.errors import ModelError


@dataclass(frozen=True)
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


class FrontendError(ModelError):
    """
    A model that cannot be imported; `problems` lists all reasons; the message has one per line: the
    first 50 and the total number.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        lines = [str(problem) for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            file = self.problems[0].file
            lines.append(f"{file}: {len(self.problems)} problems, of which these are {_SHOWN}")
        super().__init__("\n".join(lines))

    @staticmethod
    def of_file(file: str, message: str) -> FrontendError:
        """The error for one problem with a whole file."""
        return FrontendError([Problem(file, "", "", message)])
