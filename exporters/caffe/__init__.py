"""
Exports models as nets of Caffe, by way of the caffe dialect: a prototxt and a caffemodel.

Names of inputs, outputs and nodes are kept. Shapes are numbers, and all values f32.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lowerdeck.dialects.files import replacing

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

SUFFIX = ".prototxt"
WEIGHTS_SUFFIX = ".caffemodel"


def write_model(module: ModuleOp, path: str | os.PathLike[str], *, function: str = "main") -> None:
    """
    Write a module of the caffe dialect as a net to `path`, and its weights to the file beside it
    that ends with `.caffemodel`; both whole or not at all.
    """
    from lowerdeck.dialects.interpret import find_function
    from lowerdeck.exporters.caffe.model import NetWriter

    target = os.fspath(path)
    stem = os.path.splitext(target)[0]
    writer = NetWriter(find_function(module, function), os.path.basename(stem))
    with replacing(target) as text, replacing(stem + WEIGHTS_SUFFIX, "wb") as weights:
        writer.write_text(text)
        writer.write_weights(weights)


def export_caffe(module: ModuleOp, path: str | os.PathLike[str], *, dialect: str = "bvlc") -> None:
    """
    Write a module of `core`, which stays as it is, as a net with layers of `dialect` (bvlc or ssd).

    ExportError if an op has no form in Caffe.
    """
    from xdsl.context import Context

    from lowerdeck.exporters.caffe.convert import ConvertToCaffePass
    from lowerdeck.passes.machinery.contracts import check_contract

    converted = module.clone()
    ConvertToCaffePass(dialect).apply(Context(), converted)
    check_contract(converted, "caffe")
    write_model(converted, path)
