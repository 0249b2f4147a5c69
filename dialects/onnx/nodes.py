"""Ops as nodes, and regions as graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from onnx import AttributeProto, GraphProto, NodeProto
from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.builtin import NameLoc as BuiltinNameLoc
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.onnx.attributes import attribute_to_proto
from lowerdeck.dialects.onnx.ops import NONE, InitializerOp, NoneOp, OnnxOp, YieldOp
from lowerdeck.dialects.onnx.tensors import tensor_to_proto
from lowerdeck.dialects.onnx.types import is_tensor_of_unknown, type_to_proto


def op_to_node(
    op: OnnxOp,
    input_names: Sequence[str],
    output_names: Sequence[str],
    captured: Mapping[SSAValue, str] | None = None,
) -> NodeProto:
    """
    The node for `op` with the given names (empty: absent); `captured` names the values from around
    the op that its subgraphs use.
    """
    names = Names(captured or {}, (*input_names, *output_names))
    return _node(op, input_names, output_names, names)


def named_node(op: OnnxOp, names: Names) -> NodeProto:
    """The node for `op`, whose values are called as `names` has it, in its subgraphs too."""
    inputs = [names[operand] for operand in op.operands]
    return _node(op, inputs, [names[result] for result in op.results], names)


def _node(
    op: OnnxOp, input_names: Sequence[str], output_names: Sequence[str], names: Names
) -> NodeProto:
    node = NodeProto(
        op_type=op.op_type,
        domain=op.domain,
        input=input_names,
        output=output_names,
        name=location_name(op.location) or "",
    )
    for name, value in op.properties.items():
        node.attribute.append(attribute_to_proto(name, value))
    for name, region in zip(op.graph_names, op.regions, strict=True):
        if not region.blocks:
            continue
        graph = region_to_graph(region, name, names)
        node.attribute.append(AttributeProto(name=name, type=AttributeProto.GRAPH, g=graph))
    return node


def captured_values(op: Operation) -> list[SSAValue]:
    """The values from around `op` that its regions use, in the order of their first use."""
    inside: set[Block] = set()
    values: dict[SSAValue, None] = {}

    def visit(region: Region) -> None:
        for block in region.blocks:
            inside.add(block)
            for nested in block.ops:
                values.update(dict.fromkeys(nested.operands))
                for inner in nested.regions:
                    visit(inner)

    for region in op.regions:
        visit(region)
    return [value for value in values if _block_of(value) not in inside]


def _block_of(value: SSAValue) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


def location_name(location: LocationAttr) -> str | None:
    """The name in a location, if there is one."""
    return location.desc.data if isinstance(location, BuiltinNameLoc) else None


class Names:
    """Distinct names for values."""

    def __init__(self, given: Mapping[SSAValue, str], taken: Sequence[str]) -> None:
        self._names = dict(given)
        self._taken = {*taken, *given.values(), ""}
        self._counts: Counter[str] = Counter()

    def __getitem__(self, value: SSAValue) -> str:
        if isinstance(value.owner, NoneOp) or value.type == NONE:
            return ""
        if value not in self._names:
            self._names[value] = self.fresh(value.name_hint or "value")
        return self._names[value]

    def fresh(self, base: str) -> str:
        """A name that nothing else has: this one, or with a number behind it."""
        name = base
        while name in self._taken:
            name = f"{base}_{self._counts[base]}"
            self._counts[base] += 1
        self._taken.add(name)
        return name


def region_to_graph(region: Region, name: str, names: Names) -> GraphProto:
    """The subgraph of a region."""
    block = region.block
    graph = GraphProto(name=name)
    for arg in block.args:
        graph.input.add(name=names[arg], type=type_to_proto(arg.type))
    for op in block.ops:
        if isinstance(op, InitializerOp):
            graph.initializer.append(tensor_to_proto(op.tensor, names[op.output]))
        elif isinstance(op, YieldOp):
            _add_outputs(graph, op, names)
        elif isinstance(op, OnnxOp):
            graph.node.append(named_node(op, names))
        elif not isinstance(op, NoneOp):
            raise ValueError(f"'{op.name}' has no form in onnx")
    return graph


def _add_outputs(graph: GraphProto, op: YieldOp, names: Names) -> None:
    """Outputs need distinct names that the graph itself defines: others pass an Identity."""
    own = {value.name for value in graph.input} | {n for x in graph.node for n in x.output}
    own |= {tensor.name for tensor in graph.initializer}
    for value in op.values:
        name = names[value]
        if name not in own:
            inner = names[cast(SSAValue, Block(arg_types=[value.type]).args[0])]
            graph.node.add(op_type="Identity", input=[name], output=[inner])
            name = inner
        own.discard(name)
        known = None if is_tensor_of_unknown(value) else type_to_proto(value.type)
        graph.output.add(name=name, type=known)
