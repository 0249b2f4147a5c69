"""
Quantized models node by node: every number that is rounded to an integer is given.

Where a float lies near the middle between two integers, a last bit decides which one it becomes,
and a deep network makes much of that. So the outputs of a quantized model say little. Here the
outputs of all nodes that round become outputs of the model, and what reads them reads inputs, which
have the values that onnxruntime computed: what one node makes of its inputs does not reach the
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

MADE = "/made"
"""What the outputs of nodes that round are called, beside the inputs of the same name."""


def rounded_names(model: onnx.ModelProto) -> list[str]:
    """The outputs of the nodes that round, outside of subgraphs."""
    return [
        name
        for node in model.graph.node
        if node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear")
        or node.op_type.startswith("QLinear")
        for name in node.output
        if name
    ]


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """The model with further outputs."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    known = {value.name for value in model.graph.output}
    changed.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
    return changed


def cut(model: onnx.ModelProto, values: dict[str, NDArray[Any]]) -> onnx.ModelProto:
    """The model with the `values` of nodes that round as inputs, and what they make as outputs."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    del graph.value_info[:]
    for node in graph.node:
        for index, name in enumerate(node.output):
            if name in values:
                node.output[index] = name + MADE
    for value in graph.output:
        if value.name in values:
            value.name += MADE
    known = {value.name for value in graph.output}
    for name, array in values.items():
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        given = helper.make_tensor_value_info(name, element, array.shape)
        graph.input.append(given)
        if name + MADE not in known:
            made = graph.output.add()
            made.CopyFrom(given)
            made.name += MADE
    return changed


def steps_apart(found: NDArray[Any], want: NDArray[Any]) -> tuple[int, int]:
    """How far integers are apart at most, and how many differ."""
    difference = np.abs(found.astype(np.int64) - want.astype(np.int64))
    return int(difference.max(initial=0)), int(np.count_nonzero(difference))
