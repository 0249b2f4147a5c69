"""From a MindIR file to graphs of nodes, and from tensors to constants."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from google.protobuf.message import DecodeError
from xdsl.ir import Attribute

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import (
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    numpy_dtype,
    tensor,
    ui8,
    ui16,
    ui32,
    ui64,
)
from lowerdeck.dialects.records import record
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.messages import is_all_text
from lowerdeck.frontends.mindir.mind_ir_pb2 import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
)
from lowerdeck.frontends.wire import Format, Holder, ScanError, detach_file, range_field, range_of

ELEMENTS: Mapping[int, Attribute] = {
    1: f32,
    2: ui8,
    3: i8,
    4: ui16,
    5: i16,
    6: i32,
    7: i64,
    9: i1,
    10: f16,
    11: f64,
    12: ui32,
    13: ui64,
    16: bf16,
    17: f64,
}
"""Element types by the number in a TensorProto."""

_RAW_DATA, _REFERENCE, _EXTERNAL_DATA = 9, 1009, 12

_FORMAT = Format(
    root="model",
    nested={
        "model": {7: "graph", 8: "graph"},
        "graph": {1: "node", 3: "tensor"},
        "node": {5: "attribute"},
        "attribute": {6: "tensor", 12: "tensor", 17: "attribute"},
    },
    holders={
        "tensor": Holder({_RAW_DATA: range_field(_REFERENCE)}, unless=frozenset({_EXTERNAL_DATA}))
    },
)
"""The locations of large tensors in a ModelProto."""

_REFERENCE_PREFIX = "REF::"


class MindirError(ValueError):
    """A model that is broken: what is wrong with it."""


@record
class Node:
    """One application of a primitive, a graph or a closure, or a constant."""

    proto: NodeProto
    output: str
    """Its name, which others refer to."""

    @property
    def callee(self) -> str:
        """What is applied: a primitive of the table, a graph or a node that makes a closure."""
        return self.proto.op_type.removeprefix(_REFERENCE_PREFIX)

    @property
    def is_constant(self) -> bool:
        """True for a value of the file."""
        return self.proto.op_type == "Constant"

    def attribute(self, name: str) -> AttributeProto | None:
        """An attribute of the node."""
        return next((a for a in self.proto.attribute if a.name == name), None)


class Graph:
    """A function: its parameters, nodes by name, and the name of its result."""

    def __init__(self, proto: GraphProto) -> None:
        self.proto = proto
        self.name = proto.name
        self.inputs = [value.name for value in proto.input]
        self.nodes: dict[str, Node] = {}
        for node in proto.node:
            output = node.output[0] if node.output else node.name
            self.nodes[output] = Node(node, output)
        if len(proto.output) != 1:
            raise MindirError(f"graph '{self.name}' has {len(proto.output)} results, expected one")
        self.output = proto.output[0].name


class Model:
    """A model file. FrontendError if it cannot be read."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.proto = ModelProto()
            self.proto.ParseFromString(detach_file(path, _FORMAT))
            if not is_all_text(self.proto):
                raise MindirError("a name in it is not UTF-8 text")
            graphs = [self.proto.graph, *self.proto.functions]
            self.graphs = {graph.name: Graph(graph) for graph in graphs}
            self.main = self.graphs[self.proto.graph.name]
        except OSError as error:
            raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None
        except (ScanError, DecodeError, MindirError) as error:
            message = (
                f"is not a valid MindIR model, or is damaged, encrypted or obfuscated: {error}; "
                "export it again without enc_key and obf_config"
            )
            raise FrontendError.of_file(path, message) from None
        if self.proto.HasField("little_endian") and not self.proto.little_endian:
            message = "found numbers whose first byte is the highest; export on another machine"
            raise FrontendError.of_file(path, message)
        self.primitives = {entry.name: entry for entry in self.proto.primitives}
        self.constants = {
            name: node
            for graph in self.graphs.values()
            for name, node in graph.nodes.items()
            if node.is_constant
        }
        """The constants of all graphs: graphs use those of each other."""
        self.parameters = {tensor.name: tensor for graph in graphs for tensor in graph.parameter}

    def primitive_name(self, node: Node) -> str | None:
        """The primitive that a node applies; None for constants and calls."""
        if node.is_constant or node.callee in self.graphs:
            return None
        if node.callee in self.primitives:
            return self.primitives[node.callee].op_type or node.callee.partition(":")[0]
        is_reference = node.proto.op_type.startswith(_REFERENCE_PREFIX)
        return None if is_reference else node.callee

    def attributes(self, node: Node) -> dict[str, AttributeProto]:
        """What a node and its primitive say besides the inputs."""
        primitive = self.primitives.get(node.callee)
        found = {} if primitive is None else {a.name: a for a in primitive.attribute}
        return found | {a.name: a for a in node.proto.attribute}

    @cached_property
    def calls(self) -> dict[str, set[str]]:
        """For each graph those that its nodes name."""
        return {
            name: {
                used
                for node in graph.nodes.values()
                for used in (node.callee, *node.proto.input)
                if used in self.graphs
            }
            for name, graph in self.graphs.items()
        }

    def reached(self, start: str, without: frozenset[str] = frozenset()) -> set[str]:
        """The graphs that one calls, at any distance, on ways that avoid others."""
        found: set[str] = set()
        pending = [start]
        while pending:
            for name in self.calls[pending.pop()] - without:
                if name not in found:
                    found.add(name)
                    pending.append(name)
        return found

    def constant(self, proto: TensorProto) -> ConstantOp:
        """The constant that a tensor is; MindirError if it is broken."""
        kind = ELEMENTS.get(proto.data_type)
        if kind is None:
            raise MindirError(f"tensor '{proto.name}' of data type {proto.data_type}")
        if proto.compression_type:
            raise MindirError(f"tensor '{proto.name}' is compressed")
        shape = list(proto.dims)
        if any(size < 0 for size in shape):
            raise MindirError(f"tensor '{proto.name}' has shape {shape}")
        size = math.prod(shape) * numpy_dtype(kind).itemsize
        blob = self._blob(proto, size)
        if blob.size != size:
            raise MindirError(f"tensor '{proto.name}' has {blob.size} bytes, expected {size}")
        return ConstantOp(BlobAttr(blob), tensor(kind, shape))

    def _blob(self, proto: TensorProto, size: int) -> Blob:
        if proto.HasField("external_data"):
            return self._external(proto, size)
        if (found := range_of(proto, _REFERENCE)) is not None:
            return Blob.map(self.path, *found)
        for values in (proto.float_data, proto.int32_data, proto.int64_data, proto.double_data):
            if values and not proto.raw_data:
                return Blob.of(np.array(values, numpy_dtype(ELEMENTS[proto.data_type])))
        return Blob.of(np.frombuffer(proto.raw_data, np.uint8))

    def _external(self, proto: TensorProto, size: int) -> Blob:
        """Bytes of another file, which must be inside of the model's folder."""
        data = proto.external_data
        folder = os.path.realpath(os.path.dirname(os.path.abspath(self.path)))
        if not data.location or "\0" in data.location or os.path.isabs(data.location):
            raise MindirError(f"the data of '{proto.name}' are in '{data.location}'")
        file = os.path.realpath(os.path.join(folder, data.location))
        if os.path.commonpath([folder, file]) != folder or not os.path.isfile(file):
            raise MindirError(
                f"the file '{data.location}' with the data of '{proto.name}' does not exist in the "
                "folder of the model; put it there"
            )
        if data.length and data.length != size:
            raise MindirError(f"'{proto.name}' has {data.length} bytes, expected {size}")
        try:
            return Blob.map(file, data.offset, size)
        except (OSError, ValueError) as error:
            raise MindirError(f"the data of '{proto.name}' cannot be read: {error}") from None
