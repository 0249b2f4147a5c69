"""Detects the format of a model file from its content; the suffix only resolves ambiguities."""

from __future__ import annotations

import codecs
import os
import re
import struct
import zipfile

from lowerdeck.dialects.frameworks import FRAMEWORKS
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.foreign import BY_NAME, CONTROL, describe, describe_folder
from lowerdeck.frontends.frontend import IR_TEXT, FileFormat, frontends, graph_file, known_formats
from lowerdeck.frontends.wire import outline

HEAD_BYTES = 4096
"""The bytes of a file that are inspected to tell whether it is text."""

_IR_BEGINNINGS = ("builtin.module", "module", "func.func", '"builtin', "!")


def detect_format(path: str) -> str:
    """The format of a model, a file or folder; FrontendError if it is unknown."""
    try:
        if os.path.isdir(path):
            return _folder_format(path)
        with open(path, "rb") as file:
            # Editors of Windows begin a text with this mark.
            head = file.read(HEAD_BYTES).removeprefix(codecs.BOM_UTF8)
        if not head:
            raise FrontendError.of_file(path, f"the file is empty, expected {known_formats()}")
        if (marked := _marked_format(head) or _archive_format(path, head)) is not None:
            return marked
        if (foreign := describe(path, head)) is not None:
            raise FrontendError.of_file(path, next(iter(_advice(path)), foreign))
        found = _text_format(head.decode("utf-8", "replace")) if is_text_head(head) else None
        found = found or _binary_format(path)
    except OSError as error:
        hint = "".join(f"; {text}" for text in _advice(path))
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}{hint}") from None
    if found := found or _suffixes().get(os.path.splitext(path)[1].lower()):
        return found
    message = f"its format is not known, expected {known_formats()}"
    advice = [*_advice(path), describe(path, head, BY_NAME) or message]
    raise FrontendError.of_file(path, advice[0])


def is_text(path: str) -> bool:
    """True if a file is text; OSError if it cannot be read."""
    with open(path, "rb") as file:
        return is_text_head(file.read(HEAD_BYTES))


def is_text_head(head: bytes) -> bool:
    """True if the beginning of a file is text."""
    return CONTROL.search(head) is None


def _formats() -> list[FileFormat]:
    return [format_ for frontend in frontends() for format_ in frontend.formats]


def _suffixes() -> dict[str, str]:
    return {known.suffix: known.name for known in (*_formats(), IR_TEXT) if known.suffix}


def _advice(path: str) -> list[str]:
    return [text for frontend in frontends() if (text := frontend.advice(path)) is not None]


def _folder_format(path: str) -> str:
    """OSError or FrontendError if the folder is not a model."""
    with_folders = [known for known in _formats() if known.folder_files]
    for known in with_folders:
        if any(os.path.isfile(os.path.join(path, name)) for name in known.folder_files):
            return known.name
    if (foreign := describe_folder(path)) is not None:
        raise FrontendError.of_file(path, foreign)
    models = [
        entry.name
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name)
        if graph_file(entry.path) != entry.path
    ]
    names = " or ".join(name for known in with_folders for name in known.folder_files)
    hint = f"; give one of the folders in it: {', '.join(models)}" if models else ""
    raise FrontendError.of_file(
        path, f"is a folder, expected a file, or a folder with {names}{hint}"
    )


def _text_format(text: str) -> str | None:
    """By the first line that is not a comment."""
    beginnings = (*_IR_BEGINNINGS, *(f"{name}." for name in FRAMEWORKS))
    alias: str | None = None
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith(("//", ";")):
            continue
        if line.startswith(beginnings):
            return IR_TEXT.name
        if line.startswith("#"):  # a name for an attribute in IR, else a comment
            if re.match(r"#[\w$.-]+ *= *\S", line):
                alias = IR_TEXT.name
            continue
        if line.startswith("{"):
            key = re.match(r'\{\s*"(\w+)"', text.lstrip())
            return next((f.name for f in _formats() if key and key[1] in f.first_keys), None)
        field = re.match(r"([a-z_]+)\s*(:|\{|<|$)|\[\s*[a-z]+\s*\]$", line)
        word = "" if field is None else field[1] or re.sub(r"\s", "", line)
        known = (f.name for f in _formats() if word in f.first_fields)
        return next(known, alias)
    return alias


def _marked_format(head: bytes) -> str | None:
    """By bytes at fixed places."""
    for known in _formats():
        if known.begins and all(head[k : k + len(mark)] == mark for k, mark in known.begins):
            return known.name
    return None


def _archive_format(path: str, head: bytes) -> str | None:
    """By the entries of a ZIP archive."""
    if not head.startswith(b"PK"):
        return None
    try:
        with zipfile.ZipFile(path) as file:
            names = dict.fromkeys(file.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
        return None
    known = (f for f in _formats() if f.archive is not None and f.archive(names))
    return next((format_.name for format_ in known), None)


def _binary_format(path: str) -> str | None:
    """By the fields of the message, as far as they can be read."""
    fields = outline(path)
    return next((known.name for known in _formats() if known.holds(fields)), None)
