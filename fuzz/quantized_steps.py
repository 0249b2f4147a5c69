"""
Quantized graphs by their definition: what lies between bytes is computed in float64, from the bytes
that were found. So each step is judged alone, and a tie that is decided the other way has no
consequences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = NDArray[Any]
Arrays = Mapping[str, Array]

NEAR = 1e-4
"""So near to the middle between two integers, either may be the result."""


def with_all_bytes(model: ModelProto) -> ModelProto:
    """The model with all bytes that it computes among its outputs."""
    found = ModelProto()
    found.CopyFrom(model)
    types = {port.name: port.type.tensor_type.elem_type for port in found.graph.input}
    constants = {item.name: item.data_type for item in found.graph.initializer}
    have = {port.name for port in found.graph.output}
    for node in found.graph.node:
        name = node.output[0]
        if node.op_type == "QuantizeLinear":
            types[name] = constants[node.input[2]]
        elif node.op_type != "DequantizeLinear" and node.input[0] in types:
            types[name] = types[node.input[0]]
        if name in types and name not in have:
            found.graph.output.append(helper.make_tensor_value_info(name, types[name], None))
    return found


def steps_apart(model: ModelProto, known: Arrays) -> dict[str, float]:
    """
    How many steps each quantized value is from what it is to be, at most a half; `known` are all
    bytes. Scales that are computed from the data are computed in float32, as they are defined.
    """
    constants = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    there, floats = {**constants, **known}, dict[str, Array]()
    nodes: list[NodeProto] = []
    quantized: list[NodeProto] = []
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear":
            floats[node.output[0]] = _dequantized(node, there)
        elif node.op_type == "DynamicQuantizeLinear":
            floats |= zip(node.output, _quantized(floats[node.input[0]]), strict=True)
        elif node.op_type == "QuantizeLinear":
            quantized.append(node)
        elif node.output[0] not in known:
            nodes.append(_in_double(node))
    read = {name for node in nodes for name in node.input}
    feed = {name: value for name, value in floats.items() if name in read}
    wide = {name: _widened(value) for name, value in constants.items() if name in read}
    asked = list(dict.fromkeys(node.input[0] for node in quantized))
    code = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        nodes,
        "steps",
        [helper.make_tensor_value_info(k, code(v.dtype), v.shape) for k, v in feed.items()],
        [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in asked],
        [numpy_helper.from_array(value, name) for name, value in wide.items()],
    )
    double = helper.make_model(graph, opset_imports=model.opset_import, ir_version=8)
    evaluator = cast("Any", ReferenceEvaluator(double))
    with np.errstate(all="ignore"):
        found = dict(zip(asked, evaluator.run(None, feed), strict=True))
    apart: dict[str, float] = {}
    for node in quantized:
        scale, zero = (constants[name] for name in node.input[1:])
        info, have = np.iinfo(zero.dtype), known[node.output[0]].astype(np.float64)
        numbers = np.asarray(found[node.input[0]]) / np.float64(scale) + zero
        distance = np.abs(have - np.clip(numbers, info.min, info.max))
        apart[node.output[0]] = float(distance.max(initial=0))
    return apart


def _widened(value: Array) -> Array:
    return value.astype(np.float64) if value.dtype == np.float32 else value


def _dequantized(node: NodeProto, there: Arrays) -> Array:
    """What bytes stand for, in float64."""
    x, scale, zero = (there[name] for name in node.input)
    if scale.ndim:
        (axis,) = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
        shape = [size if k == axis else 1 for k, size in enumerate(x.shape)]
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return (x.astype(np.float64) - zero) * scale.astype(np.float64)


def _quantized(numbers: Array) -> tuple[Array, Array, Array]:
    """Bytes, scale and zero point of numbers, in float32."""
    x = numbers.astype(np.float32)
    least, most = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (most - least) / np.float32(255)
    zero = np.clip(np.rint(-least / scale), 0, 255) if scale else np.float32(0)
    bytes_ = np.clip(np.rint(x / scale) + zero, 0, 255) if scale else np.zeros_like(x)
    return bytes_.astype(np.uint8), np.asarray(scale), np.asarray(zero, np.uint8)


def _in_double(node: NodeProto) -> NodeProto:
    found = NodeProto()
    found.CopyFrom(node)
    for attribute in found.attribute:
        if node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
    return found
