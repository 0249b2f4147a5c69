"""Recognizes the format of a model file by what is in it; the suffix only settles doubts."""

from __future__ import annotations

import os
import re
from typing import Literal, TypeAlias

from lowerdeck.frontends import KNOWN_FORMATS
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.wire import LENGTH, VARINT, Outline, outline

Format: TypeAlias = Literal[
    "onnx", "tf1", "tf1-text", "saved-model", "meta-graph", "caffe", "caffe-text", "mlir"
]

_HEAD_BYTES = 4096

_SUFFIXES: dict[str, Format] = {
    ".onnx": "onnx",
    ".pb": "tf1",
    ".pbtxt": "tf1-text",
    ".meta": "meta-graph",
    ".caffemodel": "caffe",
    ".prototxt": "caffe-text",
    ".mlir": "mlir",
}

_FIRST_FIELDS: dict[Format, frozenset[str]] = {
    "tf1-text": frozenset({"node", "library", "versions", "version"}),
    "saved-model": frozenset({"saved_model_schema_version", "meta_graphs"}),
    "meta-graph": frozenset({"meta_info_def", "graph_def", "saver_def", "collection_def"}),
    "caffe-text": frozenset(
        {"name", "layer", "layers", "input", "input_dim", "input_shape", "state", "force_backward"}
    ),
}
"""The fields with which the text form of a message may begin."""

_SAVED_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")
_CHECKPOINT = re.compile(r"(?P<prefix>.+)\.(index|data-\d{5}-of-\d{5})")


def detect_format(path: str) -> Format:
    """The format of a model, a file or folder; FrontendError if it is none that is known."""
    try:
        if os.path.isdir(path):
            return _folder_format(path)
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
        if not head:
            raise FrontendError.of_file(path, f"the file is empty, expected {KNOWN_FORMATS}")
        found = _text_format(head.decode("utf-8", "replace")) if _is_text(head) else None
        found = found or _binary_format(path)
    except OSError as error:
        hint = f"; its graph is in {path}.meta" if os.path.isfile(f"{path}.meta") else ""
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}{hint}") from None
    found = found or _SUFFIXES.get(os.path.splitext(path)[1].lower())
    if found is None and (part := _CHECKPOINT.fullmatch(path)) is not None:
        model = os.path.dirname(os.path.dirname(path)) or os.curdir
        model = model if graph_file(model) != model else f"{part['prefix']}.meta"
        message = "is part of a checkpoint, expected the graph that it belongs to"
        raise FrontendError.of_file(path, f"{message}; give {model}")
    if found is None:
        raise FrontendError.of_file(path, f"its format is not known, expected {KNOWN_FORMATS}")
    return found


def graph_file(path: str) -> str:
    """The file with the graph of a model: the one in its folder, if the model is a folder."""
    files = (os.path.join(path, name) for name in _SAVED_MODEL_FILES)
    return next(filter(os.path.isfile, files), path) if os.path.isdir(path) else path


def is_text(path: str) -> bool:
    """True if a file is text; OSError if it cannot be read."""
    with open(path, "rb") as file:
        return _is_text(file.read(_HEAD_BYTES))


def _folder_format(path: str) -> Format:
    """OSError or FrontendError if the folder is no model."""
    if graph_file(path) != path:
        return "saved-model"
    models = [
        entry.name
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name)
        if graph_file(entry.path) != entry.path
    ]
    expected = f"a file, or a SavedModel with {' or '.join(_SAVED_MODEL_FILES)}"
    hint = f"; give one of the folders in it: {', '.join(models)}" if models else ""
    raise FrontendError.of_file(path, f"is a folder, expected {expected}{hint}")


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
        return "saved-model"
    if fields.first(7) == LENGTH and (first == VARINT or fields.first(8) == LENGTH):
        return "onnx"
    if fields.first(100) == LENGTH:
        return "caffe"
    if first == LENGTH and fields.count(2) == 1 and _is_node(fields.inside(2).inside(1)):
        return "meta-graph"
    if first == LENGTH:
        node = fields.inside(1)
        if _is_node(node):
            return "tf1"
        if fields.first(2) == LENGTH:
            return "caffe"
    return None


def _is_node(fields: Outline) -> bool:
    """True for what a GraphDef has in its field 1: a NodeDef with a name and an operator."""
    return fields.is_whole and fields.first(1) == fields.first(2) == LENGTH


def _holds_graph(fields: Outline) -> bool:
    """True for what SavedModel has in its field 2: a MetaGraphDef with a GraphDef."""
    graph = fields.inside(2)
    return graph.is_whole and graph.first(1) == graph.first(2) == LENGTH
