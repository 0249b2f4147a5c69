"""PyTorch: archives of torch.export, as the register of frameworks knows them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def _load(request: Request) -> ModuleOp:
    if request.format == "torchscript":
        from lowerdeck.frontends.torchscript.import_ import import_script

        return import_script(
            request.path,
            outputs=request.outputs,
            input_shapes=request.input_shapes,
            input_types=request.options.get("input_type", ()),
            fixed=request.fixed,
        )
    from lowerdeck.frontends.fixed import fix_arguments
    from lowerdeck.frontends.pt2.import_ import import_model

    shapes = request.input_shapes
    module = import_model(request.path, outputs=request.outputs, input_shapes=shapes)
    if request.fixed:
        fix_arguments(module, request.path, request.fixed)
    return module


def _inventory(request: Request) -> Iterator[Use]:
    if request.format == "torchscript":
        from lowerdeck.frontends.torchscript.inventory import inventory

        yield from inventory(request.path)
        return
    from lowerdeck.frontends.pt2.archive import Archive, ArchiveError, told
    from lowerdeck.frontends.pt2.import_ import nodes_of, target_of

    try:
        program = Archive(request.path).program
        for node in nodes_of(program["graph_module"]["graph"]):
            yield Use(target_of(node), str(node.get("name", "")))
    except (ArchiveError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FrontendError.of_file(request.path, told(error)) from None


def _advice(path: str) -> str | None:
    from lowerdeck.frontends.pt2.diagnosis import diagnosis

    return diagnosis(path)


def _weight_names(path: str) -> Collection[str] | None:
    from lowerdeck.frontends.pt2.archive import Archive, ArchiveError

    try:
        return Archive(path).weight_names
    except ArchiveError:
        return None  # one of TorchScript


def _is_there(names: Collection[str], name: str) -> bool:
    """True if an archive has an entry of a name in its root folder."""
    root = next(iter(names), "").split("/")[0]
    return f"{root}/{name}" in names


FRONTEND = Frontend(
    files="PyTorch (.pt2 of torch.export, .pt of TorchScript)",
    formats=(
        FileFormat("pt2", ".pt2", archive=lambda names: _is_there(names, "archive_format")),
        FileFormat("torchscript", ".pt", archive=lambda names: _is_there(names, "constants.pkl")),
    ),
    load=_load,
    inventory=_inventory,
    advice=_advice,
    fixes_inputs=True,
    weight_names=_weight_names,
)
