"""Readers of model files, one framework to a package."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

KNOWN_FORMATS = "onnx (.onnx), IR text (.mlir)"


def load_model(
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    context: Context | None = None,
) -> ModuleOp:
    """
    The module of a model file, whose format is recognized by its content.

    `outputs` and `input_shapes` are those of the frontend's own import. IR text is parsed with the
    dialects of `context`. FrontendError lists everything that prevents the import.
    """
    from lowerdeck.frontends.detect import detect_format

    file = os.fspath(path)
    match detect_format(file):
        case "onnx":
            from lowerdeck.frontends.onnx.import_ import import_model

            return import_model(file, outputs=outputs, input_shapes=input_shapes)
        case _:
            from lowerdeck.frontends.text import read_module

            return read_module(file, context, outputs=outputs, input_shapes=input_shapes)
