"""
`--verify-diagnostics`: the errors of a run against those that comments in the IR text expect.

The comments are those of mlir-opt: `// expected-error@+1 {{part of the message}}`, of a line (its
own; `@+N`, `@-N`; `@above`, `@below` without comments of this kind in between) or of any (`@*`).
With `expected-error-re`, what is within further braces is a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

from xdsl.utils.exceptions import ParseError

_COMMENT = re.compile(
    r"//.*?\b(?P<all>expected-error(?P<re>-re)? *(?:@(?P<where>[+-]\d+|above|below|\*))? *"
    r"\{\{(?P<text>.+)\}\})\s*$"
)
_LIKE_A_COMMENT = re.compile(r"//\s*(?P<all>expected-\w+.*)")
_BRACES = re.compile(r"\{\{(.*?)\}\}")


@dataclass(frozen=True)
class _Expectation:
    line: int | None
    """The line of the error; None for any, and for an error without a line."""
    message: re.Pattern[str]
    comment: str
    """`file:line: ` and the comment."""


@dataclass(frozen=True)
class _Error:
    line: int | None
    text: str

    def is_as(self, expected: _Expectation) -> bool:
        in_place = expected.line is None or expected.line == self.line
        return in_place and expected.message.search(self.text) is not None


def has_expectations(text: str) -> bool:
    """True if a text has comments that expect errors, or that seem to."""
    return _LIKE_A_COMMENT.search(text) is not None or any(map(_COMMENT.search, text.splitlines()))


def mismatches(text: str, file: str, error: Exception | None) -> list[str]:
    """
    What the comments of a text expect and `error` does not say, what it says and no comment
    expects, and comments that cannot be understood.

    `error` is about the file as a whole, and has one or more lines for each single error.
    """
    problems: list[str] = []
    expected = list(_expectations(text, file, problems))
    for each in () if error is None else _errors_in(error, file):
        meant = next((one for one in expected if each.is_as(one)), None)
        if meant is not None:
            expected.remove(meant)
        else:
            where = file if each.line is None else f"{file}:{each.line}"
            problems.append(f"{where}: unexpected error: {each.text}")
    return [*problems, *(f"{each.comment} did not come" for each in expected)]


def _expectations(text: str, file: str, problems: list[str]) -> Iterator[_Expectation]:
    lines = text.splitlines()
    comments = {n: found for n, line in enumerate(lines, 1) if (found := _COMMENT.search(line))}
    for number, line in enumerate(lines, 1):
        where = f"{file}:{number}"
        if (found := comments.get(number)) is not None:
            meant = _line_meant(found["where"], number, comments, len(lines))
            try:
                yield _Expectation(meant, _pattern(found), f"{where}: {found['all']}")
            except re.error as error:
                problems.append(f"{where}: no regular expression: {error}: {found['all']}")
        elif (found := _LIKE_A_COMMENT.search(line)) is not None:
            problems.append(
                f"{where}: not understood: {found['all'].strip()}; comments that expect something "
                "are expected-error {{text}}, with @+N, @-N, @above, @below or @*"
            )


def _line_meant(where: str | None, number: int, others: Container[int], count: int) -> int | None:
    match where:
        case None:
            return number
        case "*":
            return None
        case "above":
            return next((n for n in range(number, 0, -1) if n not in others), 0)
        case "below":
            return next(n for n in range(number, count + 2) if n not in others)
        case _:
            return number + int(where)


def _pattern(comment: re.Match[str]) -> re.Pattern[str]:
    if not comment["re"]:
        return re.compile(re.escape(comment["text"]))
    parts = _BRACES.split(comment["text"])
    return re.compile("".join(p if k % 2 else re.escape(p) for k, p in enumerate(parts)))


def _errors_in(error: Exception, file: str) -> Iterator[_Error]:
    lines = str(error).splitlines()
    if isinstance(error.__cause__, ParseError):
        lines = lines[:1]  # without those of the file that it shows
    own = re.escape(file)
    start = re.compile(rf"{own}:(?P<line>\d+):\d+: |{own}: |\S+: (?=op '|node ')|(?=op '|node ')")
    line, texts = None, list[str]()
    for each in lines:
        found = start.match(each)
        rest = each[found.end() :] if found else each
        begins = found is not None and not rest.startswith("note: ")
        if begins and texts:
            yield _Error(line, "\n".join(texts))
            texts = []
        if found is not None and not texts:
            line = int(found["line"]) if found["line"] else None
        texts.append(rest)
    yield _Error(line, "\n".join(texts))
