"""TensorFlow Lite: model files, as the register of frameworks knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_IDENTIFIER = b"TFL3"
"""What stands at byte 4 of a file."""


def _load(request: Request) -> ModuleOp:
    from lowerdeck.frontends.tflite.import_ import import_model

    return import_model(
        request.path,
        signature=request.options.get("signature"),
        outputs=request.outputs,
        input_shapes=request.input_shapes,
    )


def _inventory(request: Request) -> Iterator[Use]:
    from lowerdeck.frontends.tflite.flatbuffer import FlatbufferError
    from lowerdeck.frontends.tflite.import_ import node_name
    from lowerdeck.frontends.tflite.model import Model

    try:
        for graph in Model(request.path).subgraphs:
            for node in graph.nodes:
                yield Use(node.op_type, node_name(graph, node))
    except FlatbufferError as error:
        raise FrontendError.of_file(request.path, f"the file is broken: {error}") from None


FRONTEND = Frontend(
    files="tflite (.tflite)",
    formats=(FileFormat("tflite", ".tflite", begins=((4, _IDENTIFIER),)),),
    load=_load,
    inventory=_inventory,
)
