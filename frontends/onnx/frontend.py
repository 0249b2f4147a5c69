"""The registration of the ONNX frontend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use
from lowerdeck.frontends.wire import LENGTH, VARINT, Outline

if TYPE_CHECKING:
    from onnx import FunctionProto, NodeProto
    from xdsl.dialects.builtin import ModuleOp


def _is_model(fields: Outline) -> bool:
    """A ModelProto: a graph in field 7, and the version of the IR or the opsets."""
    version = fields.first(1)
    has_version = version == VARINT or (version is None and fields.first(8) == LENGTH)
    return fields.first(7) == LENGTH and has_version


def _load(request: Request) -> ModuleOp:
    from lowerdeck.frontends.onnx.import_ import import_model

    return import_model(
        request.path,
        outputs=request.outputs,
        input_shapes=request.input_shapes,
        fixed=request.fixed,
        optional=request.options.get("optional"),
    )


def _inventory(request: Request) -> Iterator[Use]:
    """The nodes that the outputs asked for need, and those of the functions that these call."""
    from lowerdeck.frontends.onnx.import_ import needed_names
    from lowerdeck.frontends.onnx.parse import model_opset, parse_model

    model = parse_model(request.path)
    local = {(function.domain, function.name): function for function in model.functions}
    opset = model_opset(model)
    nodes, called = list(model.graph.node), set(local)
    if request.outputs is not None:
        needed = needed_names(model.graph, request.outputs)
        nodes = [node for node in nodes if not needed.isdisjoint(node.output)]
        called = _called(nodes, local)
    yield from _uses(nodes, opset, called)
    for function in model.functions:
        if (function.domain, function.name) in called:
            own = {entry.domain: entry.version for entry in function.opset_import}
            yield from _uses(function.node, own or opset, called)


def _called(
    nodes: Sequence[NodeProto], local: Mapping[tuple[str, str], FunctionProto]
) -> set[tuple[str, str]]:
    """The functions of the model that nodes call, also from others."""
    called, pending = set[tuple[str, str]](), list(nodes)
    while pending:
        node = pending.pop()
        for attribute in node.attribute:
            pending += [inner for graph in (attribute.g, *attribute.graphs) for inner in graph.node]
        key = node.domain, node.op_type
        if key in local and key not in called:
            called.add(key)
            pending += local[key].node
    return called


def _facts(path: str) -> dict[str, str]:
    from lowerdeck.frontends.onnx.parse import model_opset, parse_model

    model = parse_model(path)
    opsets = model_opset(model).items()
    facts = {
        "graph": model.graph.name,
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "opsets": ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in opsets),
        "IR version": str(model.ir_version),
        "domain": model.domain,
        "model version": str(model.model_version or ""),
        "description": model.doc_string,
        **{entry.key: entry.value for entry in model.metadata_props},
    }
    return {name: value for name, value in facts.items() if value}


def _uses(
    nodes: Sequence[NodeProto], opset: Mapping[str, int], local: set[tuple[str, str]]
) -> Iterator[Use]:
    """The nodes and, after each, those of its subgraphs."""
    from lowerdeck.frontends.onnx.contrib import is_defined

    for node in nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        name = node.name or (node.output[0] if node.output else "")
        function = "the model" if (node.domain, node.op_type) in local else ""
        if not function and is_defined(domain, node.op_type):
            function = "the importer"
        yield Use(node.op_type, name, domain, opset.get(domain), function)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _uses(attribute.g.node, opset, local)
            for graph in attribute.graphs:
                yield from _uses(graph.node, opset, local)


FRONTEND = Frontend(
    files="onnx (.onnx)",
    formats=(FileFormat("onnx", ".onnx", holds=_is_model),),
    load=_load,
    inventory=_inventory,
    facts=_facts,
    fixes_inputs=True,
    messages={"ModelProto": ".onnx"},
)
