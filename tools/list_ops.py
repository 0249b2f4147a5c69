"""`lowerdeck ops`: the operators of a model, and which of them can be compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from lowerdeck.frontends.detect import detect_format

if TYPE_CHECKING:
    import os

    import onnx

    from lowerdeck.frontends.tf1.source import Source

_LISTED = 8
"""Nodes of an unsupported operator that are named before the rest is counted."""


@dataclass
class Operator:
    """One operator at one version, as a model uses it."""

    domain: str
    op_type: str
    version: int | None
    """The version that introduced this form; None for an operator that is not known."""
    support: str | None
    """How it is compiled, or None."""
    nodes: list[str] = field(default_factory=list[str])
    next_step: str = ""
    """What to do if it is not supported."""

    @property
    def name(self) -> str:
        """The operator with its domain, if that is not the default one."""
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type

    def __str__(self) -> str:
        version = "" if self.version is None else str(self.version)
        text = (
            f"{len(self.nodes):6}  {self.name:<32} {version:>3}  {self.support or 'NOT SUPPORTED'}"
        )
        if self.support is not None:
            return text
        named = ", ".join(f"'{name}'" for name in self.nodes[:_LISTED])
        more = f" and {len(self.nodes) - _LISTED} more" if len(self.nodes) > _LISTED else ""
        step = f"; {self.next_step}" if self.next_step else ""
        return f"{text}: {named}{more}{step}"


def used_operators(
    path: str,
    *,
    outputs: Sequence[str] | None = None,
    weights: str | os.PathLike[str] | None = None,
    tags: Sequence[str] | None = None,
    signature: str | None = None,
) -> list[Operator]:
    """
    Every operator of the model at `path`, sorted by name: of a TensorFlow graph those that
    `outputs` need. FrontendError if the model is unreadable.
    """
    from lowerdeck.frontends.tf1.source import read_source

    match detect_format(path):
        case "onnx":
            found = _of_onnx(path)
        case "tf1" | "tf1-text" | "saved-model" | "meta-graph" as format_:
            source = read_source(
                path,
                format_,
                tags=tags,
                signature=signature,
                requires_signature=outputs is None,
                weights=weights,
            )
            found = _of_graph(source, outputs)
        case _:
            found = _of_module(path, outputs, weights)
    return sorted(found.values(), key=lambda operator: (operator.domain, operator.op_type))


_NOT_AN_OPERATOR = ""
"""The support of ops that make up a module."""


def _tf1_support(op_type: str) -> str | None:
    from lowerdeck.dialects.tf1.signatures import signature_of
    from lowerdeck.passes.control_flow.graph import is_raised
    from lowerdeck.passes.legalize.tf1.framework import is_legalized

    signature = signature_of(op_type)
    if signature is None:
        return _NOT_AN_OPERATOR
    if is_raised(op_type):
        return "raised"
    if not signature.outputs:
        return "left out: it computes nothing"
    return "legalized" if is_legalized(op_type) else None


def _caffe_support(op_type: str) -> str | None:
    from lowerdeck.passes.legalize.caffe.handlers import handler_of

    return None if handler_of(op_type) is None else "legalized"


_SUPPORT: Mapping[str, Callable[[str], str | None]] = {
    "tf1": _tf1_support,
    "caffe": _caffe_support,
}
"""How an operator of a dialect is compiled, or None."""

_Found = dict[tuple[str, str, int | None], Operator]


def _of_onnx(path: str) -> _Found:
    from lowerdeck.frontends.onnx.parse import model_opset, parse_model

    model = parse_model(path)
    local = {(function.domain, function.name) for function in model.functions}
    found: _Found = {}
    opset = model_opset(model)
    for node in _nodes(model.graph.node):
        _count(node, opset, local, found)
    for function in model.functions:
        own = {entry.domain: entry.version for entry in function.opset_import}
        for node in _nodes(function.node):
            _count(node, own or opset, local, found)
    return found


def _of_graph(source: Source, outputs: Sequence[str] | None) -> _Found:
    """The operators of a TensorFlow graph, also those that no import knows."""
    from lowerdeck.dialects.tf1.advice import next_step
    from lowerdeck.dialects.tf1.signatures import signature_of
    from lowerdeck.frontends.tf1 import inventory

    found: _Found = {}
    for use in inventory.used_operators(source, outputs):
        if (key := ("", use.op_type, None)) not in found:
            is_known = signature_of(use.op_type) is not None
            support = _tf1_support(use.op_type) if is_known else None
            step = next_step(use.op_type, is_known=is_known)
            found[key] = Operator("", use.op_type, None, support, next_step=step)
        found[key].nodes.append(use.node)
    return found


def _of_module(
    path: str, outputs: Sequence[str] | None, weights: str | os.PathLike[str] | None
) -> _Found:
    """The operators of a net or of IR text, whose nodes are ops one by one."""
    from lowerdeck.frontends import load_model
    from lowerdeck.passes.provenance import source_names

    found: _Found = {}
    for op in load_model(path, outputs=outputs, weights=weights).walk():
        dialect, _, op_type = op.name.partition(".")
        if dialect not in _SUPPORT:
            continue
        support = _SUPPORT[dialect](op_type)
        if support != _NOT_AN_OPERATOR:
            entry = found.setdefault(("", op_type, None), Operator("", op_type, None, support))
            entry.nodes += source_names(op)
    return found


def _nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes and, after each, those of its subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g.node)
            for graph in attribute.graphs:
                yield from _nodes(graph.node)


def _count(
    node: onnx.NodeProto,
    opset: Mapping[str, int],
    local: set[tuple[str, str]],
    found: _Found,
) -> None:
    domain = "" if node.domain == "ai.onnx" else node.domain
    if (node.domain, node.op_type) in local:
        version, support = None, "function of the model"
    else:
        version, support = _support(domain, node.op_type, opset.get(domain))
    key = (domain, node.op_type, version)
    operator = found.setdefault(key, Operator(domain, node.op_type, version, support))
    operator.nodes.append(node.name or (node.output[0] if node.output else ""))


def _support(domain: str, op_type: str, opset: int | None) -> tuple[int | None, str | None]:
    """The version of the operator in an opset, and how it is compiled."""
    from lowerdeck.dialects.onnx.ops import op_class
    from lowerdeck.passes.legalize.onnx.handlers import handler_of

    cls = None if opset is None else op_class(domain, op_type, opset)
    if cls is None:
        return None, None
    schema = cast(Any, cls.schema)
    if handler_of(cast(Any, _Reference(domain, op_type, schema.since_version))) is not None:
        return schema.since_version, "legalized"
    if schema.has_function or schema.has_context_dependent_function:
        return schema.since_version, "by the function in its schema"
    return schema.since_version, None


@dataclass(frozen=True)
class _Reference:
    """What a handler is found by."""

    domain: str
    op_type: str
    since_version: int
