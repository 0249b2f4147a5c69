"""From a file to a message without its weights: binary, or in the text form."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

from google.protobuf.message import DecodeError

from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef
from lowerdeck.frontends.tf1.text import Parsed, parse_text
from lowerdeck.frontends.wire import (
    Format,
    Holder,
    ScanError,
    bytes_field,
    detach_file,
    number_field,
)

LATEST_CONSUMER = 2474
"""The version of graphs whose operators are in the dialect."""

_CONTENT, _CONTENT_RANGE = 4, 1000


def _range(offset: int, size: int) -> bytes:
    """A `content_range` of a TensorProto."""
    return bytes_field(_CONTENT_RANGE, number_field(1, offset) + number_field(2, size))


FORMAT = Format(
    root="graph",
    nested={
        "saved_model": {2: "meta_graph"},
        "meta_graph": {2: "graph"},
        "graph": {1: "node", 2: "library"},
        "library": {1: "function"},
        "function": {3: "node"},
        "node": {5: "attribute"},
        "attribute": {2: "value"},
        "value": {8: "tensor"},
    },
    holders={"tensor": Holder({_CONTENT: _range}, unless=frozenset({_CONTENT_RANGE}))},
)
"""Where a GraphDef, and what holds one, has its large tensors."""


@runtime_checkable
class Serializable(Protocol):
    """A message, such as a GraphDef of TensorFlow's own."""

    def SerializeToString(self) -> bytes: ...


def parse_file(path: str, kind: type[Parsed], root: str, *, is_text: bool) -> Parsed:
    """
    The message at `path`, whose kind is called `root` in FORMAT; its large tensors refer to the
    file. FrontendError if not readable.
    """
    try:
        if is_text:
            return _parse_text_file(path, kind)
        return kind.FromString(detach_file(path, replace(FORMAT, root=root)))
    except OSError as error:
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None
    except (ScanError, DecodeError) as error:
        message = f"is not a valid TensorFlow graph, or is damaged: {error}; get a fresh copy"
        raise FrontendError.of_file(path, message) from None


def parse_graph(path: str, *, is_text: bool) -> GraphDef:
    """The graph at `path`; its large tensors refer to the file. FrontendError if not readable."""
    graph = parse_file(path, GraphDef, "graph", is_text=is_text)
    check_graph(path, graph)
    return graph


def parse_message(file: str, message: Serializable) -> GraphDef:
    """The graph in a message; FrontendError if it is none."""
    try:
        graph = GraphDef.FromString(message.SerializeToString())
    except DecodeError as error:
        raise FrontendError.of_file(file, f"is not a TensorFlow graph: {error}") from None
    check_graph(file, graph)
    return graph


def _parse_text_file(path: str, kind: type[Parsed]) -> Parsed:
    with open(path, "rb") as file:
        data = file.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text from byte {error.start} on; get a fresh copy"
        raise FrontendError.of_file(path, message) from None
    return parse_text(path, text, kind)


def check_graph(file: str, graph: GraphDef) -> None:
    """FrontendError unless there are nodes, of a version that is known."""
    problems: list[str] = []
    if not graph.node:
        problems.append("it holds no nodes; is it a TensorFlow graph?")
    if graph.versions.min_consumer > LATEST_CONSUMER:
        problems.append(
            f"it asks for a consumer of version {graph.versions.min_consumer}, expected up to "
            f"{LATEST_CONSUMER}; freeze it with an older TensorFlow"
        )
    if LATEST_CONSUMER in graph.versions.bad_consumers:
        problems.append(f"it rules out consumers of version {LATEST_CONSUMER}")
    if problems:
        raise FrontendError(Problem(file, "", "", problem) for problem in problems)


def producer_version(graph: GraphDef) -> int:
    """The version of what wrote the graph; old graphs keep it in another field."""
    return graph.versions.producer if graph.HasField("versions") else graph.version
