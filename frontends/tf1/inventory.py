"""The operators of a graph, whether they are known or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from lowerdeck.dialects.tf1.ops import PLACEHOLDERS
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.frontend import Use
from lowerdeck.frontends.tf1.functions import ARGUMENT, Library
from lowerdeck.frontends.tf1.graph import Graph, parse_port
from lowerdeck.frontends.tf1.graph_pb2 import AttrValue, NodeDef
from lowerdeck.frontends.tf1.source import Interface, Source


def used_operators(
    source: Source, outputs: Sequence[str] | None, given: Sequence[str] = ()
) -> list[Use]:
    """
    The nodes that `outputs` need (without it, those that the outputs of the signature or the
    results of the graph need) beside the tensors in `given`, and all nodes of the functions that
    these call. FrontendError if there is no such output.
    """
    library = Library(source.graph.library)
    graph = Graph(source.graph.node)
    interface = source.interface or Interface({}, {}, {})
    named = interface.outputs
    if outputs is not None:
        asked = [named[n].node if n in named else _node_of(source, graph, n) for n in outputs]
    else:
        found = [*named.values()] or graph.results(library.output_count)
        asked = [port.node for port in found]
    fed = {port.node for port in interface.inputs.values()}
    replaced: set[str] = set()
    for name in given:
        with suppress(ValueError):  # which the import reports
            replaced.add(parse_port(name).node)
    needed = graph.needed(asked, fed | replaced)
    nodes = [each.proto for each in needed if each.name not in replaced or each.op in PLACEHOLDERS]
    uses = [Use(node.op, node.name) for node in nodes]
    pending = [name for node in nodes for name in _called(node, library)]
    seen: set[str] = set()
    while pending:
        name = pending.pop(0)
        if name in seen:
            continue
        seen.add(name)
        inner = library.definitions[name].node_def
        uses += [Use(node.op, f"{name}/{node.name}") for node in inner if node.op != ARGUMENT]
        pending += [callee for node in inner for callee in _called(node, library)]
    return [use for use in uses if use.op_type not in library.definitions]


def _node_of(source: Source, graph: Graph, output: str) -> str:
    """The node of an output; FrontendError if there is none."""
    try:
        name = parse_port(output).node
    except ValueError as error:
        raise FrontendError.of_file(source.file, f"output {error}") from None
    if name not in graph.nodes:
        raise FrontendError.of_file(source.file, f"there is no node '{name}' for an output")
    return name


def _called(node: NodeDef, library: Library) -> Iterator[str]:
    """The functions of the library that a node calls."""
    names = [node.op]
    for value in node.attr.values():
        names += _functions_of(value)
    return (name for name in names if name in library.definitions)


def _functions_of(value: AttrValue) -> list[str]:
    names = [function.name for function in value.list.func]
    return [*names, value.func.name] if value.HasField("func") else names
