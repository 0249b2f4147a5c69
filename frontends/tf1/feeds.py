"""
Any tensor of a graph may be an input, or fixed to a value: a Placeholder or a constant replaces the
node that computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from lowerdeck.dialects.records import record
from lowerdeck.dialects.tf1.attributes import ELEMENTS
from lowerdeck.dialects.tf1.ops import PLACEHOLDERS, expected_types
from lowerdeck.dialects.tf1.signatures import signature_of
from lowerdeck.frontends.fixed import fixed_array
from lowerdeck.frontends.tf1.attributes import node_attributes
from lowerdeck.frontends.tf1.graph import WITH_DEFAULT, Graph, Port
from lowerdeck.frontends.tf1.graph_pb2 import AttrValue, NodeDef, TensorProto, TensorShapeProto
from lowerdeck.frontends.tf1.tensors import shape_dims


@record
class Feed:
    """An input: its name, and its shape if known (None: the shape that the graph gives)."""

    name: str
    shape: TensorShapeProto | None = None
    value: ArrayLike | None = None
    """What it is, if it is a constant."""


@record
class Fed:
    """A graph whose inputs are all placeholders, but for those that are constants."""

    graph: Graph
    names: Mapping[str, str]
    """The names of the inputs that differ from those of their placeholders."""
    moved: Mapping[Port, Port]
    """The placeholders that replace one output of several."""


def with_feeds(
    graph: Graph,
    feeds: Mapping[Port, Feed],
    report: Callable[[str, str, str], None],
    *,
    has_unknown_scalars: bool = False,
) -> Fed:
    """
    The graph in which each port is the output of a placeholder, or a constant if its value is
    given. With `has_unknown_scalars` placeholders without dimensions have any.

    Tensors that cannot be inputs are reported: name and operator of the node, and a message.
    """
    made: dict[str, NodeDef] = {}
    moved: dict[Port, Port] = {}
    names: dict[str, str] = {}
    taken = {proto.name for proto in graph.protos}
    for port, feed in feeds.items():
        name, node = port.node, graph.nodes.get(port.node)
        if node is None:
            report("", "", f"there is no node '{name}' for the input '{feed.name}'")
            continue
        if feed.value is not None or node.op not in PLACEHOLDERS:
            try:
                dtypes = _outputs(node.proto)
                if len(dtypes) > 1:
                    name = _unused(f"{port.node}_{port.index}", taken)
                    moved[port] = Port(name, 0)
                dtype = _dtype(dtypes, port.index)
                shape = _shape(node.proto, feed)
                if feed.value is None:
                    made[name] = _placeholder(name, dtype, shape)
                else:
                    dims = shape_dims(shape)
                    dims = None if has_unknown_scalars and not dims else dims
                    made[name] = _constant(name, dtype, feed.value, dims)
            except ValueError as error:
                what = "cannot be the input" if feed.value is None else "as the input"
                report(node.name, node.op, f"{what} '{feed.name}': {error}")
        if feed.name != f"{name}:0":
            names[name] = feed.name
    if not made:
        return Fed(graph, names, moved)
    protos = [_reading(made.pop(proto.name, proto), moved) for proto in graph.protos]
    return Fed(Graph([*protos, *made.values()]), names, moved)


def _outputs(node: NodeDef) -> list[str]:
    """The element types of a node's outputs; ValueError if they are not known."""
    signature = signature_of(node.op)
    problems: list[str] = []
    if signature is None:
        raise ValueError("its operator is not one of TensorFlow's that are known")
    attributes = node_attributes(node, signature, problems.append, lambda called: called.name)
    if attributes is None:
        raise ValueError("; ".join(problems))
    return expected_types(signature, attributes, signature.outputs)


def _shape(node: NodeDef, feed: Feed) -> TensorShapeProto:
    if node.op == WITH_DEFAULT or (node.op in PLACEHOLDERS and "shape" in node.attr):
        return node.attr["shape"].shape
    return feed.shape or TensorShapeProto(unknown_rank=True)


def _dtype(dtypes: Sequence[str], index: int) -> str:
    """The element type of an output; ValueError if it is not there, or holds no tensor."""
    if index >= len(dtypes):
        raise ValueError(f"it has {len(dtypes)} outputs")
    if (dtype := dtypes[index]) in ("resource", "variant"):
        raise ValueError(f"it gives a {dtype}, expected a tensor")
    return dtype.removesuffix("_ref")


def _placeholder(name: str, dtype: str, shape: TensorShapeProto) -> NodeDef:
    attr = {"dtype": AttrValue(type=f"DT_{dtype.upper()}"), "shape": AttrValue(shape=shape)}
    return NodeDef(name=name, op="Placeholder", attr=attr)


def _constant(name: str, dtype: str, value: ArrayLike, dims: Sequence[int] | None) -> NodeDef:
    """ValueError if the value does not fit the dimensions, of which -1 is not known."""
    known = None if dims is None else [None if dim < 0 else dim for dim in dims]
    array = fixed_array(value, ELEMENTS[dtype], known)
    sizes = [TensorShapeProto.Dim(size=size) for size in array.shape]
    tensor = TensorProto(dtype=f"DT_{dtype.upper()}", tensor_shape=TensorShapeProto(dim=sizes))
    if dtype == "string":
        texts = array.reshape(-1).tolist()
        tensor.string_val[:] = [t if isinstance(t, bytes) else str(t).encode() for t in texts]
    else:
        tensor.tensor_content = array.tobytes()
    attr = {"dtype": AttrValue(type=tensor.dtype), "value": AttrValue(tensor=tensor)}
    return NodeDef(name=name, op="Const", attr=attr)


def _unused(base: str, taken: set[str]) -> str:
    name = base
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _reading(node: NodeDef, moved: Mapping[Port, Port]) -> NodeDef:
    """The node with its fed inputs replaced."""
    texts = {str(port): new.node for port, new in moved.items()}
    texts |= {port.node: new.node for port, new in moved.items() if port.index == 0}
    if texts.keys().isdisjoint(node.input):
        return node
    copy = NodeDef()
    copy.CopyFrom(node)
    copy.input[:] = [texts.get(text, text) for text in node.input]
    return copy
