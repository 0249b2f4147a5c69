"""MindSpore: MindIR files, as the register of frameworks knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use
from lowerdeck.frontends.wire import LENGTH, Outline

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def _is_model(fields: Outline) -> bool:
    """A ModelProto: the version of the IR and the producer are texts, and field 7 is a graph."""
    return all(fields.first(number) == LENGTH for number in (1, 2, 7))


def _load(request: Request) -> ModuleOp:
    from lowerdeck.frontends.mindir.import_ import import_model

    return import_model(request.path, outputs=request.outputs, input_shapes=request.input_shapes)


def _inventory(request: Request) -> Iterator[Use]:
    from lowerdeck.frontends.mindir.model import Model

    model = Model(request.path)
    for graph in model.graphs.values():
        for node in graph.nodes.values():
            if (op_type := model.primitive_name(node)) is not None:
                yield Use(op_type, node.output)


def _facts(path: str) -> dict[str, str]:
    from lowerdeck.frontends.mindir.model import Model

    proto = Model(path).proto
    facts = {
        "graph": proto.graph.name,
        "producer": f"{proto.producer_name} {proto.producer_version}".strip(),
        "IR version": proto.ir_version,
        "model version": proto.model_version,
    }
    return {name: value for name, value in facts.items() if value}


FRONTEND = Frontend(
    files="MindSpore (.mindir)",
    formats=(FileFormat("mindir", ".mindir", holds=_is_model),),
    load=_load,
    inventory=_inventory,
    facts=_facts,
)
