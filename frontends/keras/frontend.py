"""Keras: model files, as the register of frameworks knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_HDF5 = b"\x89HDF\r\n\x1a\n"


def _load(request: Request) -> ModuleOp:
    from lowerdeck.frontends.keras.import_ import import_model

    return import_model(request.path, outputs=request.outputs, input_shapes=request.input_shapes)


def _inventory(request: Request) -> Iterator[Use]:
    from lowerdeck.frontends.keras.import_ import read_model
    from lowerdeck.frontends.keras.layers import leaves

    for layer in leaves(read_model(request.path)[1]):
        if layer.class_name != "InputLayer":
            yield Use(layer.op_type, layer.name)


FRONTEND = Frontend(
    files="keras (.keras, .h5)",
    formats=(
        FileFormat("keras", ".keras"),
        FileFormat("keras-h5", ".h5", begins=((0, _HDF5),)),
    ),
    load=_load,
    inventory=_inventory,
)
