"""
Text of nets as protobuf reads it in C++, which Caffe is built with: Python's reader takes numbers
and strings that this does not, and the other way around.
"""

from __future__ import annotations

import re

_STRING_OR_COMMENT = r"""(?P<kept>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*)"""
_MINUS_APART = re.compile(_STRING_OR_COMMENT + r"|-(?P<gap>(?:\s|\#[^\n]*\n)+)(?=[\w.])")

_NUMBER = r"(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?)"
_WRONG = re.compile(
    _STRING_OR_COMMENT
    + r"|(?P<letter>[^\x00-\x7f]+)"
    + rf"|(?<![\w.+-])(?P<number>(?!-?{_NUMBER}(?![\w.+-]))[+-]?\.?[0-9][\w.+-]*"
    + r"|-?(?i:inf|infinity|nan)[fF](?![\w+-]))"
)

_ESCAPE = re.compile(r"\\(?:(?P<known>[abfnrtv\\'\"0-7xXuU])|(?P<mark>\?)|(?P<unknown>.))")


class TextError(ValueError):
    """What is wrong with a text, and the line."""

    def __init__(self, text: str, offset: int, message: str):
        super().__init__(message)
        self.line = text.count("\n", 0, offset) + 1


def as_python_reads(text: str) -> str:
    """
    The text as `google.protobuf.text_format` reads it the way C++ does; TextError where C++ refuses
    what Python takes: `+2`, `1_000`, `0b11`, `3ff`, `inff`, digits of other scripts, `\\q`.

    A minus is right before its number, on the line of this, where the text has `- 2`.
    """
    text = _MINUS_APART.sub(lambda m: m["kept"] or f"{m['gap']}-", text)
    parts: list[str] = []
    start = 0
    for match in _WRONG.finditer(text):
        kept = match["kept"]
        if kept is None:
            if match["letter"] is not None:
                problem = f"found '{match[0]}' outside of strings and comments"
            else:
                problem = f"found '{match[0]}', expected a number"
            raise TextError(text, match.start(), problem)
        if kept[0] != "#" and "\\" in kept:
            parts += [text[start : match.start()], _with_known_escapes(text, match)]
            start = match.end()
    return "".join([*parts, text[start:]])


def _with_known_escapes(text: str, string: re.Match[str]) -> str:
    def replace(escape: re.Match[str]) -> str:
        if escape["unknown"] is not None:
            offset = string.start() + escape.start()
            raise TextError(text, offset, f"found {escape[0]} in a string, which is no escape")
        return escape[0] if escape["mark"] is None else "?"

    return _ESCAPE.sub(replace, string[0])


_TOKEN = re.compile(
    r"""\#[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[{}<>\[\]]"""
    r"""|[^\s{}<>\[\]\#"',;]+"""
)
_OPENING, _CLOSING = "{<[", "}>]"


def without_field(text: str, line: int, column: int) -> str | None:
    """
    The text with spaces for the field whose name is at a place, both counted from 1, and its value;
    None where that does not end.
    """
    lines = text.split("\n")
    start = sum(map(len, lines[: line - 1])) + line - 1 + column - 1
    name = _TOKEN.match(text, start)
    if name is None:
        return None
    end, depth = name.end(), 0
    is_value = False
    for token in _TOKEN.finditer(text, end):
        what = token[0]
        if what[0] == "#":
            continue
        if is_value and depth == 0 and what[0] not in "\"'":
            break
        depth += (what in _OPENING) - (what in _CLOSING)
        end = token.end()
        is_value = what != ":" and depth == 0
        if depth < 0 or (is_value and what in _CLOSING):
            break
    if depth != 0:
        return None
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
