"""Nets for the tests of the caffe frontend, written to files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.caffe.caffe_pb2 import NetParameter
from lowerdeck.dialects.caffe.ops import CaffeOp
from lowerdeck.dialects.core.names import value_names
from lowerdeck.frontends.caffe.import_ import import_net
from lowerdeck.frontends.errors import FrontendError

INPUT = 'layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }\n'
"""A net begins with it: the input `x` of the shape 2 x 3."""


def write_net(folder: Path, text: str, weights: NetParameter | None = None) -> Path:
    """A prototxt, with a caffemodel beside it."""
    path = folder / "net.prototxt"
    path.write_text(text)
    if weights is not None:
        (folder / "net.caffemodel").write_bytes(weights.SerializeToString())
    return path


def weights_of(blobs: Mapping[str, Sequence[NDArray[Any]]]) -> NetParameter:
    """A caffemodel with these blobs by layer name."""
    net = NetParameter()
    for name, arrays in blobs.items():
        layer = net.layer.add(name=name)
        for array in arrays:
            blob = layer.blobs.add(data=array.astype(np.float32).ravel().tolist())
            blob.shape.dim.extend(array.shape)
    return net


def main_of(module: ModuleOp) -> func.FuncOp:
    """The function @main."""
    main = module.body.block.first_op
    assert isinstance(main, func.FuncOp)
    return main


def names_of(module: ModuleOp) -> tuple[list[str], list[str]]:
    """The names of the inputs and of the outputs."""
    main = main_of(module)
    inputs = value_names(main.arg_attrs, len(main.body.block.args))
    return inputs, value_names(main.res_attrs, len(main.function_type.outputs))


def layers_of(module: ModuleOp) -> list[CaffeOp]:
    """The caffe ops in order."""
    return [op for op in main_of(module).body.block.ops if isinstance(op, CaffeOp)]


def types_of(module: ModuleOp) -> list[str]:
    """The layer types in order."""
    return [op.layer_type.name for op in layers_of(module)]


def problems_of(path: Path, **options: Any) -> list[str]:
    """What the import says is wrong, without the name of the file."""
    with pytest.raises(FrontendError) as error:
        import_net(path, **options)
    for problem in error.value.problems:
        assert str(problem).startswith(problem.file)
    return [str(problem).removeprefix(f"{problem.file}: ") for problem in error.value.problems]
