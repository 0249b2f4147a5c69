"""Recognizes the format of a model file by what is in it; the suffix only settles doubts."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

from lowerdeck.frontends import KNOWN_FORMATS
from lowerdeck.frontends.errors import FrontendError

Format: TypeAlias = Literal["onnx", "mlir"]

_HEAD_BYTES = 4096
_IR_VERSION_TAG = 0x08
_FIRST_TAGS = frozenset({0x08, 0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72})
"""The tags with which a ModelProto can begin: its fields 1 to 8 and 14."""


def detect_format(path: str) -> Format:
    """The format of a file; FrontendError if it is none that is known."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None
    suffix = os.path.splitext(path)[1].lower()
    if not head:
        raise FrontendError.of_file(path, f"the file is empty, expected {KNOWN_FORMATS}")
    if _is_text(head):
        if suffix == ".mlir" or _looks_like_ir(head.decode("utf-8", "replace")):
            return "mlir"
    elif suffix == ".onnx" or (head[0] == _IR_VERSION_TAG and _looks_like_model(head)):
        return "onnx"
    raise FrontendError.of_file(path, f"its format is not known, expected {KNOWN_FORMATS}")


def _is_text(head: bytes) -> bool:
    return not any(byte < 0x20 and byte not in b"\t\n\r\f" for byte in head)


def _looks_like_ir(text: str) -> bool:
    """True if the first line that is not a comment begins as a module does."""
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("//"):
            return line.startswith(("builtin.module", "module", "func.func", '"builtin', "#", "!"))
    return False


def _looks_like_model(head: bytes) -> bool:
    """A small number in field 1 (the IR version), then another field of a ModelProto."""
    return len(head) > 2 and head[1] < 0x40 and head[2] in _FIRST_TAGS
