"""DarkNet: nets and their weights, as the register of frameworks knows them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from lowerdeck.dialects.frameworks import OptionValue
from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def _load(request: Request) -> ModuleOp:
    import numpy as np

    from lowerdeck.frontends.darknet.import_ import import_net

    shapes = {name: np.shape(value) for name, value in request.fixed.items() if np.ndim(value)}
    return import_net(
        request.path,
        request.options.get("weights"),
        outputs=request.outputs,
        input_shapes={**shapes, **(request.input_shapes or {})},
        raw_heads=bool(request.options.get("raw_heads")),
    )


def _inventory(request: Request) -> Iterator[Use]:
    from lowerdeck.frontends.darknet.parse import CfgParser

    for block in CfgParser(request.path).blocks()[1:]:
        yield Use(block.section, block.name)


def _other_files(path: str, options: Mapping[str, OptionValue]) -> list[str]:
    from lowerdeck.frontends.darknet.parse import CfgParser
    from lowerdeck.frontends.darknet.tree import find_tree
    from lowerdeck.frontends.darknet.weights import find_weights

    if not path.endswith(".cfg"):
        return []
    given = options.get("weights")
    found = find_weights(path) if given is None else os.fspath(cast(str, given))
    names = [block.given["tree"] for block in CfgParser(path).blocks() if "tree" in block.given]
    return [
        file
        for file in (found, *(find_tree(path, name) for name in names))
        if file is not None and os.path.isfile(file)
    ]


def _facts(path: str) -> dict[str, str]:
    from lowerdeck.frontends.darknet.parse import unknown_keys
    from lowerdeck.frontends.darknet.weights import find_weights, read_header

    facts: dict[str, str] = {}
    if (found := find_weights(path)) is not None:
        version = ".".join(map(str, read_header(found).version))
        facts = {"weights": os.path.basename(found), "version of the weights": version}
    if unknown := unknown_keys(path):
        facts["unknown keys"] = ", ".join(unknown)
    return facts


FRONTEND = Frontend(
    files="DarkNet (.cfg)",
    formats=(FileFormat("darknet", ".cfg", first_fields=frozenset(["[net]", "[network]"])),),
    load=_load,
    inventory=_inventory,
    other_files=_other_files,
    facts=_facts,
)
