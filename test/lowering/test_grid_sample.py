"""GridSample in C beside ONNX Runtime: few and many channels, places outside of the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

import lowerdeck

IMAGES = {
    "one": (1, 1, 9, 7),
    "three": (2, 3, 9, 7),
    "many": (2, 17, 9, 7),
    "deep": (1, 1, 4, 5, 6),
}

FORMS = {
    "one": [("cubic", "border"), ("linear", "border")],
    "three": [("linear", "zeros"), ("nearest", "reflection")],
    "many": [("linear", "reflection"), ("nearest", "zeros")],
    "deep": [("linear", "zeros")],
}


def _model() -> onnx.ModelProto:
    """Modes and paddings, in one library."""
    inputs: list[ValueInfoProto] = []
    nodes: list[NodeProto] = []
    for name, dims in IMAGES.items():
        grid = [dims[0], 5, 7, *([3] if len(dims) > 4 else []), len(dims) - 2]
        for input_, shape in ((name, dims), (f"{name}_grid", grid)):
            inputs.append(helper.make_tensor_value_info(input_, TensorProto.FLOAT, shape))
        for mode, padding in FORMS[name]:
            corners = int(padding == "border")
            nodes.append(
                helper.make_node(
                    "GridSample",
                    [name, f"{name}_grid"],
                    [f"{name}_{mode}_{padding}"],
                    mode=mode,
                    padding_mode=padding,
                    align_corners=corners,
                )
            )
    outputs = [helper.make_empty_tensor_value_info(node.output[0]) for node in nodes]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def test_grids_in_c() -> None:
    """A NaN in a corner says nothing of zeros beyond it; far places are as far as near ones."""
    ort: Any = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    model = _model()
    feeds: dict[str, NDArray[np.float32]] = {}
    for value in model.graph.input:
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        feeds[value.name] = rng.uniform(-1.3, 1.3, dims).astype(np.float32)
        if value.name.endswith("_grid"):
            # One place in the middle, one far outside, each for a whole point.
            feeds[value.name][0, 0, :2] = np.array([[0], [-1e6]])[
                (..., *[None] * (value.name == "deep_grid"))
            ]
    feeds["three"][1, 2, 0, 0] = np.nan
    expected = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    found = lowerdeck.compile(model)(feeds)
    for node, want in zip(model.graph.node, expected, strict=True):
        name = node.output[0]
        np.testing.assert_allclose(found[name], want, rtol=1e-4, atol=1e-4, err_msg=name)
