"""Models with channels in blocks, as ONNX Runtime saves them, beside those that they came from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.contrib.weights import CHANNEL_BLOCK, NCHWC
from lowerdeck.frontends.onnx.import_ import import_model

from .contrib_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    Array,
    by_onnxruntime,
    normal,
    result_of,
)

conv = helper.make_node


def model_of(nodes: Sequence[NodeProto], weights: dict[str, Array], channels: int) -> ModelProto:
    """Of an image of 12 x 10 with some channels; the last node's output is that of the model."""
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, channels, 12, 10])
    result = helper.make_empty_tensor_value_info(nodes[-1].output[0])
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", [image], [result], tensors)
    opsets = [helper.make_opsetid(*one) for one in (("", 17), (NCHWC, 1), ("com.microsoft", 1))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def saved(model: ModelProto, path: Path) -> ModelProto:
    """As ONNX Runtime saves it, with all optimizations for this processor."""
    runtime = cast(Any, onnxruntime)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3  # that the file is for this processor is the point
    runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return ModelProto.FromString(path.read_bytes())


def check(found: ModelProto, origin: ModelProto) -> None:
    """Both models compute the same."""
    x = normal(0, *(dim.dim_value for dim in origin.graph.input[0].type.tensor_type.shape.dim))
    (want,) = by_onnxruntime(origin, {"x": x})
    np.testing.assert_allclose(
        result_of(found, {"x": x})[found.graph.output[0].name], want, rtol=1e-4, atol=1e-4
    )


def test_saved_models(tmp_path: Path) -> None:
    """
    All operators on blocks; 40 and 20 channels, which fill no whole number of blocks of 16 and of
    8, tell how large the blocks of the processor are.
    """
    weights = {
        "w0": normal(1, 40, 3, 3, 3),
        "b0": normal(2, 40),
        "w1": normal(3, 32, 40, 1, 1) / 6,
        "w2": normal(4, 32, 1, 3, 3),
        "w3": normal(5, 32, 16, 1, 1) / 4,
        "w4": normal(6, 32, 32, 3, 3) / 17,
        "w5": normal(7, 20, 64, 1, 1) / 8,
        "b5": normal(8, 20),
        "scales": np.array([1, 1, 2, 2], np.float32),
    }
    nodes = [
        conv("Conv", ["x", "w0", "b0"], ["y0"], pads=[1, 1, 1, 1]),
        conv("LeakyRelu", ["y0"], ["z0"], alpha=0.2),
        conv("Conv", ["z0", "w1"], ["y1"]),
        conv("MaxPool", ["y1"], ["p1"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        conv("Conv", ["p1", "w2"], ["y2"], group=32, pads=[1, 1, 1, 1]),
        conv("Clip", ["y2", "low", "high"], ["z2"]),
        conv("AveragePool", ["z2"], ["p2"], kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
        conv("Conv", ["p2", "w3"], ["y3"], group=2),
        conv("Conv", ["y3", "w4"], ["y4"], pads=[1, 1, 1, 1]),
        conv("Add", ["y4", "p2"], ["s4"]),
        conv("Relu", ["s4"], ["z4"]),
        conv("GlobalAveragePool", ["z4"], ["m4"]),
        conv("Concat", ["z4", "p2"], ["c4"], axis=1),
        conv("Conv", ["c4", "w5", "b5"], ["y5"]),
        conv("Resize", ["y5", "", "scales"], ["u5"], mode="nearest", nearest_mode="floor",
             coordinate_transformation_mode="asymmetric"),
        conv("ReduceSum", ["m4"], ["t4"]),
        conv("Mul", ["u5", "t4"], ["y"]),
    ]  # fmt: skip
    weights |= {"low": np.array(0, np.float32), "high": np.array(1.5, np.float32)}
    origin = model_of(nodes, weights, 3)
    optimized = saved(origin, tmp_path / "saved.onnx")
    kinds = {node.op_type for node in optimized.graph.node if node.domain == NCHWC}
    if not kinds:
        pytest.skip("ONNX Runtime has no blocks of channels on this processor")
    assert kinds >= {"Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "ReorderOutput"}
    check(optimized, origin)


def in_blocks(filter_: Array, size: int, *, has_inputs: bool) -> Array:
    """A filter in blocks of outputs, and of inputs, which has the shape that it had before."""
    outputs, inputs, height, width = filter_.shape
    if not has_inputs:
        blocks = filter_.reshape(outputs // size, size, inputs, height, width)
        return blocks.transpose(0, 2, 3, 4, 1).reshape(filter_.shape)
    blocks = filter_.reshape(outputs // size, size, inputs // size, size, height, width)
    return blocks.transpose(0, 2, 4, 5, 3, 1).reshape(filter_.shape)


def two_layers(size: int, channels: int, count: int) -> tuple[ModelProto, ModelProto]:
    """Two convolutions with weights in blocks, of which `count` channels count, and in order."""
    weights = {"w": normal(1, 2 * size, channels, 3, 3) / 9, "v": normal(2, size, 2 * size, 1, 1)}
    # What fills the last block
    weights["v"][count:] = 0
    first = conv("Conv", ["x", "w"], ["y"])
    plain = [first, conv("Conv", ["y", "v_part"], ["z"])]
    nodes = [
        conv("Conv", ["x", "w"], ["y"], domain=NCHWC),
        conv("Conv", ["y", "v"], ["t"], domain=NCHWC),
        conv("ReorderOutput", ["t"], ["z"], domain=NCHWC, channels=count),
    ]
    blocks = {
        "w": in_blocks(weights["w"], size, has_inputs=channels >= size),
        "v": in_blocks(weights["v"], size, has_inputs=True),
    }
    if channels >= size:
        nodes[0].input[0] = "r"
        nodes.insert(0, conv("ReorderInput", ["x"], ["r"], domain=NCHWC))
    origin = model_of(plain, {"w": weights["w"], "v_part": weights["v"][:count]}, channels)
    return model_of(nodes, blocks, channels), origin


@pytest.mark.parametrize(
    ("size", "channels", "count"),
    [(8, 3, 8), (16, 3, 4), (16, 8, 16), (8, 8, 8), (16, 12, 16), (8, 24, 8)],
)
def test_blocks_of_each_size(size: int, channels: int, count: int) -> None:
    """Channels tell: outputs, those that count, and whether a filter of few inputs has blocks."""
    check(*two_layers(size, channels, count))


@pytest.mark.parametrize("size", [8, 16])
def test_blocks_that_are_not_certain(size: int) -> None:
    """32 channels are whole blocks of either size, so the model has to say."""
    blocks, origin = two_layers(size, 32, size)
    if size == 8:  # 8 channels in the end would tell
        del blocks.graph.node[-2:], origin.graph.node[-1:]
        blocks.graph.node.append(conv("ReorderOutput", ["y"], ["z"], domain=NCHWC, channels=16))
        origin.graph.node[0].output[0] = "z"
    with pytest.raises(FrontendError, match="of 8 or of 16 channels, and nothing that says which"):
        import_model(blocks)
    blocks.metadata_props.add(key=CHANNEL_BLOCK, value=str(size))
    check(blocks, origin)
    blocks.metadata_props[0].value = "32"
    with pytest.raises(FrontendError, match="expected blocks of 8 or 16"):
        import_model(blocks)


def test_reordered_images() -> None:
    """Channels may be last before and behind."""
    nodes = [
        conv("ReorderInput", ["x"], ["r"], domain=NCHWC, channels_last=1),
        conv("Upsample", ["r"], ["u"], domain=NCHWC, scales=[1, 1, 2, 3]),
        conv("GlobalMaxPool", ["r"], ["m"], domain=NCHWC),
        conv("Add", ["u", "m"], ["t"]),
        conv("ReorderOutput", ["t"], ["y"], domain=NCHWC, channels=10, channels_last=1),
    ]
    model = model_of(nodes, {}, 7)
    model.metadata_props.add(key=CHANNEL_BLOCK, value="8")
    x = normal(0, 2, 7, 12, 10)
    want = x.repeat(2, axis=1).repeat(3, axis=2) + x.max(axis=(1, 2), keepdims=True)
    np.testing.assert_array_equal(result_of(model, {"x": x})["y"], want)


def test_filters_that_are_computed() -> None:
    blocks, _ = two_layers(8, 3, 8)
    blocks.graph.node.insert(0, conv("Identity", ["w"], ["w_same"]))
    blocks.graph.node[1].input[1] = "w_same"
    with pytest.raises(FrontendError, match="the input 'W' computed, expected a weight"):
        import_model(blocks)
