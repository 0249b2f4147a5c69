"""A module of the onnx dialect as a model file."""

from __future__ import annotations

import os
from collections.abc import Sequence

import onnx
from onnx import GraphProto, NodeProto, helper
from onnx.external_data_helper import set_external_data
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.defaults import defaults_of
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.core.states import states_of
from lowerdeck.dialects.core.types import COMPUTABLE
from lowerdeck.dialects.onnx.nodes import Names, named_node
from lowerdeck.dialects.onnx.ops import InitializerOp, NoneOp, OnnxOp
from lowerdeck.dialects.onnx.tensors import TensorAttr, tensor_to_proto
from lowerdeck.dialects.onnx.types import element_to_proto, is_tensor_of_unknown, type_to_proto
from lowerdeck.exporters.errors import ExportError
from lowerdeck.exporters.onnx.opset import chosen_opset, opsets_of
from lowerdeck.passes.machinery.provenance import describe, source_names

_OLDEST_IR_VERSION = 4
"""Before it, initializers had to be inputs, too."""
_ALIGNMENT = 4096


class ModelWriter:
    """The model of a function whose ops are those of the dialect; its weights come last."""

    def __init__(self, function: FuncOp) -> None:
        self._weights: list[tuple[str, TensorAttr]] = []
        ranges = opsets_of([function])
        versions = {"": chosen_opset(function, ranges.pop("", None))}
        versions |= {domain: found[0] for domain, found in ranges.items()}
        self._opsets = [helper.make_opsetid(*one) for one in versions.items()]
        self._graph = self._main_graph(function)

    @property
    def weight_bytes(self) -> int:
        """The size of all initializers."""
        blobs = (tensor.value for _, tensor in self._weights)
        return sum(value.data.size for value in blobs if isinstance(value, BlobAttr))

    def model(self, data_path: str | None) -> onnx.ModelProto:
        """The model; with `data_path` its weights are written there."""
        graph = GraphProto()
        graph.CopyFrom(self._graph)
        if data_path is None:
            graph.initializer.extend(_tensor(name, tensor) for name, tensor in self._weights)
        else:
            self._store_externally(graph, data_path)
        return onnx.ModelProto(
            ir_version=self._ir_version(),
            producer_name="lowerdeck",
            graph=graph,
            opset_import=self._opsets,
        )

    def _ir_version(self) -> int:
        return max(_OLDEST_IR_VERSION, helper.find_min_ir_version_for(self._opsets, True))

    def _main_graph(self, function: FuncOp) -> GraphProto:
        block = function.body.block
        last = block.last_op
        results = tuple(last.operands) if isinstance(last, ReturnOp) else ()
        input_names = value_names(function.arg_attrs, len(block.args))
        result_names = value_names(function.res_attrs, len(results))
        known: dict[SSAValue, str] = dict(zip(block.args, input_names, strict=True))
        for name, value in zip(result_names, results, strict=True):
            if isinstance(value.owner, OnnxOp):
                known.setdefault(value, name)
        names = Names(known, (*input_names, *result_names))
        graph = GraphProto(name=function.sym_name.data)
        defaults = defaults_of(function)
        # A state that the first call leaves out is what it is before it.
        states = {state.before: state.initial for state in states_of(function)}
        for name, argument, default in zip(input_names, block.args, defaults, strict=True):
            graph.input.add(name=name, type=type_to_proto(argument.type))
            if default is not None:
                self._weights.append((name, TensorAttr(default.type, default.value)))
            elif name in states:
                self._weights.append((name, TensorAttr.of(states[name])))
        for op in block.ops:
            match op:
                case InitializerOp():
                    self._weights.append((names[op.output], op.tensor))
                case OnnxOp():
                    graph.node.append(named_node(op, names))
                    # One in place of several is called as the first of them was.
                    graph.node[-1].name = next(iter(source_names(op, 1)), "")
                case NoneOp() | ReturnOp():
                    pass
                case _:
                    raise ExportError(f"{describe(op)}: is no op of onnx; run convert-to-onnx")
        untyped = [n for n, v in zip(result_names, results, strict=True) if is_tensor_of_unknown(v)]
        if untyped:
            raise ExportError("\n".join(f"output '{n}': its type is not known" for n in untyped))
        for name, value in zip(result_names, results, strict=True):
            if names[value] != name:  # an input, a constant, or an output already
                graph.node.add(op_type="Identity", input=[names[value]], output=[name])
            graph.output.add(name=name, type=type_to_proto(value.type))
        _name_nodes(graph, Names({}, ()))
        return graph

    def _store_externally(self, graph: GraphProto, data_path: str) -> None:
        with open(data_path, "wb") as file:
            for name, tensor in self._weights:
                if not _is_raw(tensor):
                    graph.initializer.append(_tensor(name, tensor))
                    continue
                assert isinstance(tensor.value, BlobAttr)
                file.write(bytes(-file.tell() % _ALIGNMENT))
                proto = _header(name, tensor)
                proto.raw_data = b""
                size = tensor.value.data.size
                set_external_data(proto, os.path.basename(data_path), file.tell(), size)
                proto.ClearField("raw_data")
                proto.data_location = onnx.TensorProto.EXTERNAL
                file.write(tensor.value.data.data)
                graph.initializer.append(proto)


def _name_nodes(graph: GraphProto, names: Names) -> None:
    """Give every node a name of its own: that of the node that it comes from, if it has one."""
    for node in graph.node:
        node.name = names.fresh(node.name or f"{node.op_type}_node")
        for inner in _subgraphs(node):
            _name_nodes(inner, names)


def _subgraphs(node: NodeProto) -> Sequence[GraphProto]:
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def _is_raw(tensor: TensorAttr) -> bool:
    """True if ONNX stores these elements as we do; those below a byte are packed there."""
    return isinstance(tensor.value, BlobAttr) and tensor.type.element_type in COMPUTABLE


def _header(name: str, tensor: TensorAttr) -> onnx.TensorProto:
    kind = element_to_proto(tensor.type.element_type)
    return onnx.TensorProto(name=name, data_type=kind, dims=tensor.type.get_shape())


def _tensor(name: str, tensor: TensorAttr) -> onnx.TensorProto:
    if not _is_raw(tensor) or not isinstance(tensor.value, BlobAttr):
        return tensor_to_proto(tensor, name)
    proto = _header(name, tensor)
    proto.raw_data = tensor.value.data.data.tobytes()
    return proto
