"""The registration of the TensorFlow frontend: graphs, SavedModels and checkpoints."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from lowerdeck.dialects.frameworks import OptionValue
from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use, graph_file
from lowerdeck.frontends.wire import LENGTH, VARINT, Outline

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.frontends.tf1.source import Source

_CHECKPOINT = re.compile(r"(?P<prefix>.+)\.(index|data-\d{5}-of-\d{5})")


def _is_saved_model(fields: Outline) -> bool:
    """A version, and in field 2 a MetaGraphDef with a GraphDef."""
    graph = fields.inside(2)
    holds_graph = graph.is_whole and graph.first(1) == graph.first(2) == LENGTH
    return fields.first(1) == VARINT and fields.first(2) == LENGTH and holds_graph


def _is_meta_graph(fields: Outline) -> bool:
    is_one = fields.first(1) == LENGTH and fields.count(2) == 1
    return is_one and _is_node(fields.inside(2).inside(1))


def _is_graph(fields: Outline) -> bool:
    return fields.first(1) == LENGTH and _is_node(fields.inside(1))


def _is_node(fields: Outline) -> bool:
    """True for field 1 of a GraphDef: a NodeDef with a name and an operator."""
    return fields.is_whole and fields.first(1) == fields.first(2) == LENGTH


def _source(request: Request) -> Source:
    from lowerdeck.frontends.tf1.source import read_source

    return read_source(
        request.path,
        request.format,
        requires_signature=request.outputs is None,
        **{name: value for name, value in request.options.items() if name != "optional"},
    )


def _load(request: Request) -> ModuleOp:
    from lowerdeck.frontends.tf1.import_ import import_source

    source = _source(request)
    return import_source(
        source,
        outputs=request.outputs,
        input_shapes=request.input_shapes,
        fixed=request.fixed,
        optional=request.options.get("optional"),
    )


def _inventory(request: Request) -> Iterable[Use]:
    from lowerdeck.frontends.tf1.inventory import used_operators

    given = [*(request.input_shapes or ()), *request.fixed]
    return used_operators(_source(request), request.outputs, given)


def _checkpoint_files(path: str, options: Mapping[str, OptionValue]) -> list[str]:
    from lowerdeck.frontends.tf1.checkpoint import checkpoint_files

    weights = options.get("weights")
    return checkpoint_files(path, None if weights is None else os.fspath(cast(str, weights)))


def _advice(path: str) -> str | None:
    """For the files of a checkpoint, and its name, which is none of a file."""
    if not os.path.isfile(path):
        return f"its graph is in {path}.meta" if os.path.isfile(f"{path}.meta") else None
    if (part := _CHECKPOINT.fullmatch(path)) is None:
        return None
    model = os.path.dirname(os.path.dirname(path)) or os.curdir
    model = model if graph_file(model) != model else f"{part['prefix']}.meta"
    if not os.path.exists(model):
        return None
    return f"is part of a checkpoint, expected the graph that it belongs to; give {model}"


FRONTEND = Frontend(
    files="TensorFlow (folder of a SavedModel, .meta of a checkpoint, GraphDef in .pb or .pbtxt)",
    formats=(
        FileFormat(
            "saved-model",
            first_fields=frozenset({"saved_model_schema_version", "meta_graphs"}),
            holds=_is_saved_model,
            folder_files=("saved_model.pb", "saved_model.pbtxt"),
        ),
        FileFormat(
            "meta-graph",
            ".meta",
            first_fields=frozenset({"meta_info_def", "graph_def", "saver_def", "collection_def"}),
            holds=_is_meta_graph,
        ),
        FileFormat("tf1", ".pb", holds=_is_graph),
        FileFormat(
            "tf1-text",
            ".pbtxt",
            first_fields=frozenset({"node", "library", "versions", "version"}),
        ),
    ),
    load=_load,
    inventory=_inventory,
    fixes_inputs=True,
    other_files=_checkpoint_files,
    advice=_advice,
    messages={"GraphDef": ".pb"},
)
