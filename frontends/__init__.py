"""Readers of model files, one framework to a package."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

KNOWN_FORMATS = (
    "onnx (.onnx), TensorFlow (folder of a SavedModel, .meta of a checkpoint, GraphDef in .pb or "
    ".pbtxt), caffe (.prototxt), IR text (.mlir)"
)
MODEL_FORMATS = ("onnx", "tf1", "tf1-text", "saved-model", "meta-graph", "caffe", "caffe-text")
"""The formats that are no IR text."""


def load_model(
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    weights: str | os.PathLike[str] | None = None,
    tags: Sequence[str] | None = None,
    signature: str | None = None,
    context: Context | None = None,
) -> ModuleOp:
    """
    The module of a model file or folder, whose format is recognized by its content.

    `outputs` and `input_shapes` are those of the frontend's own import; `weights` is the file with
    the weights of a caffe net, without it the one beside the net, or the checkpoint of a TensorFlow
    graph. `tags` choose a graph of a SavedModel, and `signature` its inputs and outputs. IR text is
    parsed with the dialects of `context`. FrontendError lists everything that prevents the import;
    InternalError for a fault of the importer.
    """
    from lowerdeck.dialects.errors import working_on

    file = os.fspath(path)
    with working_on(lambda: file):
        return _load(file, outputs, input_shapes, weights, tags, signature, context)


def _load(
    file: str,
    outputs: Sequence[str] | None,
    input_shapes: Mapping[str, Sequence[int]] | None,
    weights: str | os.PathLike[str] | None,
    tags: Sequence[str] | None,
    signature: str | None,
    context: Context | None,
) -> ModuleOp:
    from lowerdeck.frontends.detect import detect_format
    from lowerdeck.frontends.errors import FrontendError

    format_ = detect_format(file)
    if tags is not None and format_ != "saved-model":
        raise FrontendError.of_file(file, "tags choose among the graphs of a SavedModel only")
    if signature is not None and format_ not in ("saved-model", "meta-graph"):
        raise FrontendError.of_file(file, "it has no signatures, which a SavedModel has")
    if weights is not None and format_ in ("onnx", "mlir"):
        raise FrontendError.of_file(
            file, f"weights are given apart for caffe and TensorFlow only, not {format_}"
        )
    match format_:
        case "caffe" | "caffe-text":
            from lowerdeck.frontends.caffe.import_ import import_net

            return import_net(file, weights, outputs=outputs, input_shapes=input_shapes)
        case "tf1" | "tf1-text" | "saved-model" | "meta-graph":
            from lowerdeck.frontends.tf1.import_ import import_source
            from lowerdeck.frontends.tf1.source import read_source

            source = read_source(
                file,
                format_,
                tags=tags,
                signature=signature,
                requires_signature=outputs is None,
                weights=weights,
            )
            return import_source(source, outputs=outputs, input_shapes=input_shapes)
        case "onnx":
            from lowerdeck.frontends.onnx.import_ import import_model

            return import_model(file, outputs=outputs, input_shapes=input_shapes)
        case _:
            from lowerdeck.frontends.text import read_module

            return read_module(file, context, outputs=outputs, input_shapes=input_shapes)


def model_files(
    path: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None
) -> list[str]:
    """
    The files that a model is read from: first the one with its graph, then others that it may need,
    as far as their names follow from those of the model and the weights.

    FrontendError if it is a folder that is no model.
    """
    from lowerdeck.frontends.caffe.weights import find_weights
    from lowerdeck.frontends.detect import detect_format, graph_file
    from lowerdeck.frontends.tf1.checkpoint import checkpoint_files

    file = os.fspath(path)
    if os.path.isdir(file):
        detect_format(file)
    graph = graph_file(file)
    found = checkpoint_files(graph, None if weights is None else os.fspath(weights))
    if weights is not None and os.path.isfile(weights):
        found.append(os.fspath(weights))
    elif graph.endswith(".prototxt") and (net := find_weights(graph)) is not None:
        found.append(net)
    return [graph, *found]
