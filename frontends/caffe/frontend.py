"""Caffe: nets and their weights, as the register of frameworks knows them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from lowerdeck.dialects.frameworks import FrameworkOp, OptionValue
from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use
from lowerdeck.frontends.wire import LENGTH, Outline

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def _is_net(fields: Outline) -> bool:
    """A NetParameter: layers in field 100, or a name and layers of the first form in field 2."""
    return fields.first(100) == LENGTH or fields.first(1) == fields.first(2) == LENGTH


def _load(request: Request) -> ModuleOp:
    import numpy as np

    from lowerdeck.frontends.caffe.import_ import import_net

    shapes = {name: np.shape(value) for name, value in request.fixed.items() if np.ndim(value)}
    return import_net(
        request.path,
        request.options.get("weights"),
        outputs=request.outputs,
        input_shapes={**shapes, **(request.input_shapes or {})},
        stages=request.options.get("stages", ()),
        transform=request.options.get("transform", ()),
    )


def _inventory(request: Request) -> Iterator[Use]:
    from xdsl.dialects.builtin import NameLoc

    for op in _load(request).walk():
        if isinstance(op, FrameworkOp) and isinstance(op.location, NameLoc):
            yield Use(op.op_type, op.location.desc.data)


def _weights(path: str, options: Mapping[str, OptionValue]) -> list[str]:
    from lowerdeck.frontends.caffe.transform import mean_files
    from lowerdeck.frontends.caffe.weights import find_weights

    means = mean_files(path) if options.get("transform") else []
    if (given := options.get("weights")) is not None:
        return [
            *means,
            *([os.fspath(cast(str, given))] if os.path.isfile(cast(str, given)) else []),
        ]
    found = find_weights(path) if path.endswith(".prototxt") else None
    return means if found is None else [*means, found]


FRONTEND = Frontend(
    files="caffe (.prototxt)",
    formats=(
        FileFormat("caffe", ".caffemodel", holds=_is_net),
        FileFormat(
            "caffe-text",
            ".prototxt",
            first_fields=frozenset(
                "name layer layers input input_dim input_shape state force_backward".split()
            ),
        ),
    ),
    load=_load,
    inventory=_inventory,
    other_files=_weights,
)
