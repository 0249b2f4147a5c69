"""PyTorch: archives of torch.export, as the register of frameworks knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def _load(request: Request) -> ModuleOp:
    from lowerdeck.frontends.pt2.import_ import import_model

    return import_model(request.path, outputs=request.outputs, input_shapes=request.input_shapes)


def _inventory(request: Request) -> Iterator[Use]:
    from lowerdeck.frontends.pt2.archive import Archive, ArchiveError
    from lowerdeck.frontends.pt2.import_ import nodes_of, target_of

    try:
        program = Archive(request.path).program
        for node in nodes_of(program["graph_module"]["graph"]):
            yield Use(target_of(node), str(node.get("name", "")))
    except (ArchiveError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FrontendError.of_file(request.path, f"the file is broken: {error}") from None


FRONTEND = Frontend(
    files="PyTorch (.pt2 of torch.export)",
    formats=(FileFormat("pt2", ".pt2"),),
    load=_load,
    inventory=_inventory,
)
