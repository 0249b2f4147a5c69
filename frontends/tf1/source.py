"""
What a graph is read from: a file of its own, a SavedModel, or a checkpoint's graph.

A SavedModel holds graphs for several uses, told apart by tags, and each has signatures: names for
its inputs and outputs. Next to it are the values of its variables, as a checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lowerdeck.dialects.records import record
from lowerdeck.frontends.detect import is_text
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.frontend import graph_file
from lowerdeck.frontends.tf1.checkpoint import Checkpoint, checkpoint_prefix, saved_prefix
from lowerdeck.frontends.tf1.graph import Port, parse_port
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef, TensorShapeProto
from lowerdeck.frontends.tf1.parse import check_graph, parse_file, parse_graph
from lowerdeck.frontends.tf1.saved_model_pb2 import (
    MetaGraphDef,
    SavedModel,
    SignatureDef,
    TensorInfo,
)

SERVE = "serve"
"""The tag of graphs for inference."""

_DEFAULT_SIGNATURE = "serving_default"
_INTERNAL = "__saved_model_"
_INIT_COLLECTIONS = ("saved_model_main_op", "legacy_init_op")
_INIT_SIGNATURE = "__saved_model_init_op"


@record
class Interface:
    """The inputs and outputs of a graph by the names that a signature gives them."""

    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    shapes: Mapping[str, TensorShapeProto]
    """What is known of the shapes of the inputs."""


@record
class Source:
    """A graph, and what belongs to it."""

    file: str
    path: str | None
    """Where the file is, if it is one."""
    graph: GraphDef
    interface: Interface | None = None
    prefix: str | None = None
    """The checkpoint with the values of its variables."""
    restore: str | None = None
    """The node that restores the variables."""
    initialize: tuple[str, ...] = ()
    """The nodes that are run after that."""


def read_source(
    path: str,
    format_: str,
    *,
    tags: Sequence[str] | None = None,
    signature: str | None = None,
    requires_signature: bool = True,
    weights: str | os.PathLike[str] | None = None,
) -> Source:
    """
    The graph of a model in one of TensorFlow's formats; `weights` is another checkpoint than the
    one that belongs to it. The rest is as for `read_saved_model`.
    """
    match format_:
        case "saved-model":
            source = read_saved_model(path, tags, signature, requires_signature)
        case "meta-graph":
            source = read_meta_graph(path, signature, requires_signature)
        case _:
            source = Source(path, path, parse_graph(path, is_text=format_ == "tf1-text"))
    if weights is None:
        return source
    prefix = checkpoint_prefix(os.fspath(weights))
    Checkpoint(prefix)  # also where the graph needs no variable: it is there, and is one
    return replace(source, prefix=prefix)


def read_saved_model(
    path: str, tags: Sequence[str] | None, signature: str | None, requires_signature: bool
) -> Source:
    """
    The graph of a SavedModel, of which `path` is the folder or the file.

    `tags` choose the graph, by default the one for inference, and `signature` the names of inputs
    and outputs: by default `serving_default`, or the only one. Unless `requires_signature`, there
    may be none that is chosen. FrontendError if there is no such graph or signature, or if the file
    is not readable.
    """
    file = graph_file(path)
    saved = parse_file(file, SavedModel, "saved_model", is_text=is_text(file))
    wanted = {SERVE} if tags is None else set(tags)
    found = [graph for graph in saved.meta_graphs if set(graph.meta_info_def.tags) == wanted]
    if len(found) != 1:
        sets = [f"'{','.join(graph.meta_info_def.tags)}'" for graph in saved.meta_graphs]
        raise FrontendError.of_file(
            file,
            f"has {len(found)} graphs with the tags '{','.join(sorted(wanted))}', expected one; "
            f"choose by --tags one of {', '.join(sets) or 'none'}",
        )
    return _source(file, found[0], saved_prefix(file), signature, requires_signature)


def read_meta_graph(path: str, signature: str | None, requires_signature: bool) -> Source:
    """The graph in `model.ckpt.meta`, to which the checkpoint `model.ckpt` belongs."""
    meta_graph = parse_file(path, MetaGraphDef, "meta_graph", is_text=is_text(path))
    return _source(path, meta_graph, checkpoint_prefix(path), signature, requires_signature)


def _source(
    file: str, meta_graph: MetaGraphDef, prefix: str, signature: str | None, is_required: bool
) -> Source:
    check_graph(file, meta_graph.graph_def)
    return Source(
        file,
        file,
        meta_graph.graph_def,
        _interface(file, meta_graph, signature, is_required),
        prefix,
        meta_graph.saver_def.restore_op_name or None,
        _initialize(meta_graph),
    )


def _interface(
    file: str, meta_graph: MetaGraphDef, signature: str | None, is_required: bool
) -> Interface | None:
    """The signature that is asked for; FrontendError if it is not there."""
    known = {
        name: definition
        for name, definition in meta_graph.signature_def.items()
        if not name.startswith(_INTERNAL)
    }
    if signature is None and len(known) == 1:
        return _named(file, *next(iter(known.items())))
    name = _DEFAULT_SIGNATURE if signature is None else signature
    if name in known:
        return _named(file, name, known[name])
    if signature is None and not (known and is_required):
        return None
    names = ", ".join(f"'{known_name}'" for known_name in sorted(known)) or "none"
    raise FrontendError.of_file(
        file, f"has no signature '{name}'; choose by --signature one of {names}"
    )


def _named(file: str, name: str, definition: SignatureDef) -> Interface:
    where = f"signature '{name}'"
    return Interface(
        _ports(file, f"{where}: input", definition.inputs),
        _ports(file, f"{where}: output", definition.outputs),
        {key: info.tensor_shape for key, info in definition.inputs.items()},
    )


def _ports(file: str, where: str, tensors: Mapping[str, TensorInfo]) -> dict[str, Port]:
    """The tensors by name, in the order of names: a signature has no other."""
    found: dict[str, Port] = {}
    for name, info in sorted(tensors.items()):
        if info.WhichOneof("encoding") != "name":
            kind = "a sparse or composite tensor"
            message = f"{where} '{name}' is {kind}, expected a dense one; name others by --output"
            raise FrontendError.of_file(file, message)
        try:
            found[name] = parse_port(info.name)
        except ValueError as error:
            raise FrontendError.of_file(file, f"{where} '{name}': {error}") from None
    return found


def _initialize(meta_graph: MetaGraphDef) -> tuple[str, ...]:
    """The nodes that are run once the variables are restored."""
    names = [
        name
        for collection in _INIT_COLLECTIONS
        if collection in meta_graph.collection_def
        for name in meta_graph.collection_def[collection].node_list.value
    ]
    if _INIT_SIGNATURE in meta_graph.signature_def:
        outputs = meta_graph.signature_def[_INIT_SIGNATURE].outputs
        names += [info.name for info in outputs.values()]
    return tuple(dict.fromkeys(name.partition(":")[0] for name in names))
