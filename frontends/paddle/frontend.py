"""PaddlePaddle: programs of `paddle.jit.save`, as the register of frameworks knows them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lowerdeck.dialects.frameworks import OptionValue
from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use, graph_file

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.frontends.wire import Outline

_PIR = "paddle-pir"


def _is_program(outline: Outline) -> bool:
    """Blocks that begin with their numbers."""
    from lowerdeck.frontends.wire import LENGTH, VARINT

    block = outline.inside(1)
    return (
        outline.is_whole
        and outline.first(1) == LENGTH
        and block.is_whole
        and block.first(1) == VARINT
        and block.first(2) == VARINT
        and (block.first(3) == LENGTH or block.first(4) == LENGTH)
    )


def _load(request: Request) -> ModuleOp:
    from lowerdeck.frontends.paddle.import_ import import_model

    return import_model(
        graph_file(request.path),
        is_pir=request.format == _PIR,
        weights=request.options.get("weights"),
        outputs=request.outputs,
        input_shapes=request.input_shapes,
    )


def _inventory(request: Request) -> Iterator[Use]:
    from lowerdeck.frontends.paddle.import_ import operators

    path = graph_file(request.path)
    for op_type, name in operators(path, is_pir=request.format == _PIR):
        yield Use(op_type, name)


def _weights(path: str, options: Mapping[str, OptionValue]) -> list[str]:
    from lowerdeck.frontends.paddle.import_program import weights_beside

    given = options.get("weights")
    if isinstance(given, str | os.PathLike):
        return [os.fspath(given)]
    found = weights_beside(graph_file(path))
    return [] if found is None else [found]


def _advice(path: str) -> str | None:
    """The program that belongs to weights."""
    stem, suffix = os.path.splitext(path)
    if suffix not in (".pdiparams", ".pdparams"):
        return None
    for other in (".pdmodel", ".json"):
        if os.path.isfile(stem + other):
            return f"is a file with weights; give the program: {stem}{other}"
    if suffix == ".pdparams":
        return None
    return "is a file with weights; give the program, a .pdmodel or .json, beside it"


FRONTEND = Frontend(
    files="PaddlePaddle (.pdmodel, .json of PIR, or a folder with either)",
    formats=(
        FileFormat(
            "paddle",
            ".pdmodel",
            holds=_is_program,
            folder_files=("__model__", "inference.pdmodel"),
        ),
        FileFormat(_PIR, begins=((0, b'{"base_code"'),), folder_files=("inference.json",)),
    ),
    load=_load,
    inventory=_inventory,
    other_files=_weights,
    advice=_advice,
)
