"""
Exports models as ONNX, by way of the onnx dialect.

Tensor names of inputs and outputs are kept; dimension symbols become `dim_param`s. Weights are in
the file, or from `_INLINE_LIMIT` on in a file beside it.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from lowerdeck.dialects.files import replacing

if TYPE_CHECKING:
    import onnx
    from xdsl.dialects.builtin import ModuleOp

_INLINE_LIMIT = 1 << 30
"""Weights of at least this many bytes go to a file of their own: protobuf ends at 2 GB."""


def write_model(module: ModuleOp, path: str | os.PathLike[str], *, function: str = "main") -> None:
    """
    Write a module of the onnx dialect as a model to `path`, whole or not at all.

    Weights of 1 GB and more go to `<path>.data`.
    """
    from lowerdeck.dialects.interpret import find_function
    from lowerdeck.exporters.onnx.model import ModelWriter

    target = os.fspath(path)
    writer = ModelWriter(find_function(module, function))
    with replacing(target, "wb") as file:
        if writer.weight_bytes < _INLINE_LIMIT:
            file.write(writer.model(None).SerializeToString())
            return
        folder, name = os.path.split(f"{os.path.realpath(target)}.data")
        with tempfile.TemporaryDirectory(prefix=".export-", dir=folder) as scratch:
            data = os.path.join(scratch, name)
            file.write(writer.model(data).SerializeToString())
            os.replace(data, os.path.join(folder, name))


def export_onnx(module: ModuleOp, path: str | os.PathLike[str]) -> None:
    """
    Write a module of `core`, which stays as it is, as an ONNX model to `path`.

    ExportError if an op has no ONNX form.
    """
    write_model(_converted(module), path)


def to_model(module: ModuleOp) -> onnx.ModelProto:
    """A module of `core` as an ONNX model with its weights inside; ExportError as above."""
    from lowerdeck.dialects.interpret import find_function
    from lowerdeck.exporters.onnx.model import ModelWriter

    return ModelWriter(find_function(_converted(module), "main")).model(None)


def _converted(module: ModuleOp) -> ModuleOp:
    from xdsl.context import Context

    from lowerdeck.exporters.onnx.convert import ConvertToOnnxPass
    from lowerdeck.passes.machinery.contracts import check_contract

    converted = module.clone()
    ConvertToOnnxPass().apply(Context(), converted)
    check_contract(converted, "onnx")
    return converted
