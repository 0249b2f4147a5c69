"""Recognizes the format of a model file by what is in it; the suffix only settles doubts."""

from __future__ import annotations

import os
import re
from typing import Literal, TypeAlias

from lowerdeck.frontends import KNOWN_FORMATS
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.wire import LENGTH, VARINT, Outline, outline

Format: TypeAlias = Literal["onnx", "tf1", "tf1-text", "caffe", "caffe-text", "mlir"]

_HEAD_BYTES = 4096

_SUFFIXES: dict[str, Format] = {
    ".onnx": "onnx",
    ".pb": "tf1",
    ".pbtxt": "tf1-text",
    ".caffemodel": "caffe",
    ".prototxt": "caffe-text",
    ".mlir": "mlir",
}

_FIRST_FIELDS: dict[Format, frozenset[str]] = {
    "tf1-text": frozenset({"node", "library", "versions", "version"}),
    "caffe-text": frozenset(
        {"name", "layer", "layers", "input", "input_dim", "input_shape", "state", "force_backward"}
    ),
}
"""The fields with which the text form of a message may begin."""

_SAVED_MODEL = (
    "is a SavedModel, expected a frozen graph; freeze it first, with "
    "tf.compat.v1.graph_util.convert_variables_to_constants"
)


def detect_format(path: str) -> Format:
    """The format of a file; FrontendError if it is none that is known."""
    if os.path.exists(os.path.join(path, "saved_model.pb")):
        raise FrontendError.of_file(path, _SAVED_MODEL)
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
        if not head:
            raise FrontendError.of_file(path, f"the file is empty, expected {KNOWN_FORMATS}")
        found = _text_format(head.decode("utf-8", "replace")) if _is_text(head) else None
        found = found or _binary_format(path)
    except OSError as error:
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None
    found = found or _SUFFIXES.get(os.path.splitext(path)[1].lower())
    if found is None:
        raise FrontendError.of_file(path, f"its format is not known, expected {KNOWN_FORMATS}")
    return found


def _is_text(head: bytes) -> bool:
    return not any(byte < 0x20 and byte not in b"\t\n\r\f" for byte in head)


def _text_format(text: str) -> Format | None:
    """By the first line that is not a comment."""
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("//"):
            continue
        if line.startswith(("builtin.module", "module", "func.func", "tf1.", '"builtin', "!")):
            return "mlir"
        if line.startswith("#"):  # a name for an attribute in IR, else a comment
            if re.match(r"#[\w$.-]+ *= *\S", line):
                return "mlir"
            continue
        field = re.match(r"([a-z_]+)\s*(:|\{|<|$)", line)
        for format_, fields in _FIRST_FIELDS.items():
            if field is not None and field[1] in fields:
                return format_
        return None
    return None


def _binary_format(path: str) -> Format | None:
    """By the fields of the message, as far as they can be read."""
    fields = outline(path)
    first = fields.first(1)
    if first == VARINT and fields.first(2) == LENGTH and _holds_graph(fields):
        raise FrontendError.of_file(path, _SAVED_MODEL)
    if fields.first(7) == LENGTH and (first == VARINT or fields.first(8) == LENGTH):
        return "onnx"
    if fields.first(100) == LENGTH:
        return "caffe"
    if first == LENGTH:
        node = fields.inside(1)
        if node.is_whole and node.first(1) == node.first(2) == LENGTH:
            return "tf1"
        if fields.first(2) == LENGTH:
            return "caffe"
    return None


def _holds_graph(fields: Outline) -> bool:
    """True for what SavedModel has in its field 2: a MetaGraphDef with a GraphDef."""
    graph = fields.inside(2)
    return graph.is_whole and graph.first(1) == graph.first(2) == LENGTH
