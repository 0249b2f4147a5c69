"""
Which placeholders with a default (`tf.placeholder_with_default`) are inputs that may be left out.

Those of integers and Booleans say how large something is, or which branch is taken: as inputs they
would make sizes depend on data, and keep what is only there for training. So they are constants
unless they are named, and so are those of floats where a value decides as much.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from lowerdeck.frontends.tf1.graph import WITH_DEFAULT, Graph, Node
from lowerdeck.frontends.tf1.graph_pb2 import NodeDef
from lowerdeck.frontends.tf1.tensors import dtype_name

_FLOATS = ("half", "bfloat16", "float", "double")

_WEIGHTS: Mapping[str, Collection[int]] = {
    "BiasAdd": (1,),
    "Conv2D": (1,),
    "Conv2DBackpropInput": (1,),
    "Conv3D": (1,),
    "DepthwiseConv2dNative": (1,),
    "FusedBatchNorm": (1, 2, 3, 4),
    "FusedBatchNormV2": (1, 2, 3, 4),
    "FusedBatchNormV3": (1, 2, 3, 4),
    "Gather": (0,),
    "GatherV2": (0,),
    "MatMul": (0, 1),
    "BatchMatMul": (0, 1),
    "BatchMatMulV2": (0, 1),
}
"""The operands that are weights wherever they are computed from constants alone."""

_PREDICATES: Mapping[str, int] = {
    **dict.fromkeys(("Switch", "RefSwitch", "_SwitchN"), 1),
    **dict.fromkeys(("LoopCond", "If", "StatelessIf", "Case", "StatelessCase"), 0),
}
"""The operand that decides which branch is taken, or whether a loop goes on."""


def default_of(graph: Graph, name: str) -> NodeDef | None:
    """The Const that a placeholder has as its default; None if it is computed."""
    node = graph.nodes.get(name)
    while node is not None and node.op in (WITH_DEFAULT, "Identity") and node.inputs:
        node = graph.nodes.get(node.inputs[0].node)
    return node.proto if node is not None and node.op == "Const" else None


def optional_placeholders(graph: Graph, fetches: Sequence[str]) -> list[str]:
    """
    The placeholders of floats with a constant default that the fetched nodes need, by name.

    Not those that a predicate of control flow depends on, nor those that are weights. If a random
    operator is needed, there are none: it can only be left out where constants are known.
    """
    needed = graph.needed(fetches)
    if any("Random" in node.op or "Multinomial" in node.op for node in needed):
        return []
    found = [node.name for node in needed if _is_float(node) and default_of(graph, node.name)]
    decisive = {*_behind(graph, _predicates(needed)), *_behind(graph, _weights(needed))}
    return [name for name in found if name not in decisive]


def _is_float(node: Node) -> bool:
    if node.op != WITH_DEFAULT:
        return False
    try:
        return dtype_name(node.proto.attr["dtype"].type) in _FLOATS
    except ValueError:
        return False  # which the import tells


def _predicates(needed: Sequence[Node]) -> Iterator[str]:
    for node in needed:
        place = _PREDICATES.get(node.op, len(node.inputs))
        if place < len(node.inputs):
            yield node.inputs[place].node


def _weights(needed: Sequence[Node]) -> Iterator[str]:
    """What operands are that are weights; nodes come after those that they read."""
    constant = set[str]()
    for node in needed:
        reads = [port.node for port in node.inputs]
        if node.op == "Const" or (reads and constant.issuperset(reads)):
            constant.add(node.name)
        for place in _WEIGHTS.get(node.op, ()):
            if place < len(reads) and reads[place] in constant:
                yield reads[place]


def _behind(graph: Graph, names: Iterator[str]) -> set[str]:
    """The nodes that others are computed from, themselves included."""
    seen, pending = set[str](), [*names]
    while pending:
        if (name := pending.pop()) not in seen:
            seen.add(name)
            node = graph.nodes.get(name)
            pending += [port.node for port in node.inputs] if node is not None else ()
    return seen
