"""
A network in ONNX that numpy trains: its outputs, and the gradients of its weights.

It has the operators that `lowerdeck prune` writes for networks of convolutions and linear layers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from onnx import helper
from onnx import numpy_helper as arrays

Array: TypeAlias = "NDArray[Any]"
Backward: TypeAlias = "Callable[[Array], list[Array | None]]"
"""The gradients of an operator's inputs, of that of its output; None for what has none."""


class Network:
    """The graph of a file with one input and one output, and its weights by name."""

    def __init__(self, path: Path) -> None:
        self._model = onnx.load(path)
        graph = self._model.graph
        constants = {each.name: arrays.to_array(each).copy() for each in graph.initializer}
        self.weights = {name: each for name, each in constants.items() if each.dtype.kind == "f"}
        """f32, those that are trained."""
        self._constants = {n: each for n, each in constants.items() if n not in self.weights}
        self._input, self._output = graph.input[0].name, graph.output[0].name
        for node in graph.node:
            if node.op_type not in _OPERATORS:
                raise ValueError(f"{path}: node '{node.name}' ({node.op_type}): no gradient")

    def run(self, x: Array) -> tuple[Array, Callable[[Array], dict[str, Array]]]:
        """The output for a batch, and what makes the gradients of the weights of its gradient."""
        values = {**self._constants, **self.weights, self._input: x}
        steps: list[tuple[list[str], str, Backward]] = []
        for node in self._model.graph.node:
            attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
            inputs = [values[name] for name in node.input]
            values[node.output[0]], backward = _OPERATORS[node.op_type](inputs, attributes)
            steps.append((list(node.input), node.output[0], backward))

        def gradients(last: Array) -> dict[str, Array]:
            found: dict[str, Array] = {self._output: last}
            for names, output, backward in reversed(steps):
                if output not in found:
                    continue
                for name, part in zip(names, backward(found[output]), strict=True):
                    if part is not None:
                        found[name] = found[name] + part if name in found else part
            return {name: found[name] for name in self.weights if name in found}

        return values[self._output], gradients

    def write(self, path: Path) -> None:
        """The file with the weights as they are now."""
        for each in self._model.graph.initializer:
            if each.name in self.weights:
                each.CopyFrom(arrays.from_array(self.weights[each.name], each.name))
        onnx.save(self._model, path)


Operator: TypeAlias = "Callable[[list[Array], dict[str, Any]], tuple[Array, Backward]]"


def _conv(inputs: list[Array], attributes: dict[str, Any]) -> tuple[Array, Backward]:
    """Stride 1, one group, as many pads on each side."""
    x, w, b = inputs
    top, left, bottom, right = attributes.get("pads", [0] * 4)
    is_plain = (top, left) == (bottom, right) and attributes.get("group", 1) == 1
    if not is_plain or {*attributes.get("strides", [1]), *attributes.get("dilations", [1])} != {1}:
        raise ValueError(f"Conv with {attributes}: expected stride 1, one group and equal pads")
    kernel = w.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = sliding_window_view(padded, kernel, (2, 3)).transpose(0, 2, 3, 1, 4, 5)
    rows = windows.reshape(-1, prod(w.shape[1:]))
    n, _, height, width = padded.shape
    height, width = height - kernel[0] + 1, width - kernel[1] + 1
    y = (rows @ w.reshape(len(w), -1).T + b).reshape(n, height, width, -1).transpose(0, 3, 1, 2)

    def backward(grad: Array) -> list[Array | None]:
        flat = grad.transpose(0, 2, 3, 1).reshape(-1, len(w))
        parts = (flat @ w.reshape(len(w), -1)).reshape(n, height, width, -1, *kernel)
        whole = np.zeros_like(padded)
        for i in range(kernel[0]):
            for j in range(kernel[1]):
                part = parts[..., i, j].transpose(0, 3, 1, 2)
                whole[:, :, i : i + height, j : j + width] += part
        inner = whole[:, :, top : whole.shape[2] - bottom, left : whole.shape[3] - right]
        return [inner, (flat.T @ rows).reshape(w.shape), flat.sum(0)]

    return y, backward


def _gemm(inputs: list[Array], attributes: dict[str, Any]) -> tuple[Array, Backward]:
    if any(attributes.get(name, plain) != plain for name, plain in _PLAIN_GEMM.items()):
        raise ValueError(f"Gemm with {attributes}: expected none")
    x, w, b = inputs
    return x @ w + b, lambda grad: [grad @ w.T, x.T @ grad, grad.sum(0)]


_PLAIN_GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}


def _relu(inputs: list[Array], attributes: dict[str, Any]) -> tuple[Array, Backward]:
    del attributes
    (x,) = inputs
    return np.maximum(x, 0), lambda grad: [grad * (x > 0)]


def _max_pool(inputs: list[Array], attributes: dict[str, Any]) -> tuple[Array, Backward]:
    """Windows side by side, which fill the image."""
    (x,) = inputs
    kernel = attributes["kernel_shape"]
    is_plain = attributes.get("strides") == kernel and not any(attributes.get("pads", []))
    if not is_plain or any(size % k for size, k in zip(x.shape[2:], kernel, strict=True)):
        raise ValueError(f"MaxPool with {attributes}: expected windows side by side")
    n, c, height, width = x.shape
    shape = (n, c, height // kernel[0], kernel[0], width // kernel[1], kernel[1])
    windows = x.reshape(shape)
    y = windows.max((3, 5), keepdims=True)

    def backward(grad: Array) -> list[Array | None]:
        is_largest = windows == y
        # Equal elements share what comes back.
        count = is_largest.sum((3, 5), keepdims=True, dtype=x.dtype)
        return [(is_largest * (grad.reshape(y.shape) / count)).reshape(x.shape)]

    return y.reshape(n, c, shape[2], shape[4]), backward


def _reduce_sum(inputs: list[Array], attributes: dict[str, Any]) -> tuple[Array, Backward]:
    x, axes = inputs
    y = x.sum(tuple(axes.tolist()), keepdims=True)
    shape = y.shape
    if not attributes.get("keepdims", 1):
        y = y.squeeze(tuple(axes.tolist()))
    return y, lambda grad: [np.broadcast_to(grad.reshape(shape), x.shape), None]


def _reshape(inputs: list[Array], attributes: dict[str, Any]) -> tuple[Array, Backward]:
    del attributes
    x, shape = inputs
    return x.reshape(shape.tolist()), lambda grad: [grad.reshape(x.shape), None]


def _shape(inputs: list[Array], attributes: dict[str, Any]) -> tuple[Array, Backward]:
    (x,) = inputs
    part = x.shape[attributes.get("start", 0) : attributes.get("end", x.ndim)]
    return np.array(part, np.int64), lambda grad: [None]


def _concat(inputs: list[Array], attributes: dict[str, Any]) -> tuple[Array, Backward]:
    """Of sizes."""
    return np.concatenate(inputs, attributes["axis"]), lambda grad: [None] * len(inputs)


_OPERATORS: dict[str, Operator] = {
    "Concat": _concat,
    "Conv": _conv,
    "Gemm": _gemm,
    "MaxPool": _max_pool,
    "ReduceSum": _reduce_sum,
    "Relu": _relu,
    "Reshape": _reshape,
    "Shape": _shape,
}
