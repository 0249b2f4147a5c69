"""Fused operators, as optimized graphs hold them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from make_expected import Recorder

tf: Any = import_module("tensorflow")

ACTIVATIONS = ("none", "Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid")


def build(record: Recorder) -> None:
    random = np.random.default_rng(3)

    def reals(*shape: int) -> Any:
        # Quarters: their sums of products are exact, in any order.
        return record.input((random.integers(-8, 9, shape) / 4).astype(np.float32))

    a, b, bias = reals(3, 4), reals(4, 5), reals(5)
    x, weights = reals(2, 5, 6, 4), reals(3, 3, 4, 5)
    for name in ACTIVATIONS:
        record.case(f"MatMul_{name}", _matmul([a, b, bias], ["BiasAdd", name]))
        if name not in ("Tanh", "Sigmoid"):
            record.case(f"Conv2D_{name}", _conv([x, weights, bias], ["BiasAdd", name]))
    value = _matmul([b, a, reals(3)], ["BiasAdd"], transpose_a=True, transpose_b=True)
    record.case("MatMul_transposed", value)
    statistics = [reals(5), reals(5), reals(5), record.input(random.random(5).astype(np.float32))]
    for name in ("none", "Relu", "LeakyRelu"):
        value = _conv([x, weights, *statistics], ["FusedBatchNorm", name])
        record.case(f"Conv2D_norm_{name}", value)


def _matmul(inputs: Sequence[Any], ops: Sequence[str], **attributes: Any) -> Any:
    attributes = {"transpose_a": False, "transpose_b": False, **attributes}
    return _internal("_FusedMatMul", inputs, ops, num_args=len(inputs) - 2, **attributes)


def _conv(inputs: Sequence[Any], ops: Sequence[str]) -> Any:
    count = len(inputs) - 2
    types = [tf.float32] * count
    window = {"strides": [1, 2, 1, 1], "padding": "SAME"}
    return _internal(
        "_FusedConv2D", inputs, ops, num_args=count, num_host_args=0, TArgs=types, **window
    )


def _internal(op: str, inputs: Sequence[Any], ops: Sequence[str], **attributes: Any) -> Any:
    """An operator that Python has no function for."""
    attributes |= {
        "T": tf.float32,
        "fused_ops": [name for name in ops if name != "none"],
        "epsilon": 0.01,
        "leakyrelu_alpha": 0.3,
    }
    protos = {name: _attribute(value) for name, value in attributes.items()}
    graph = tf.compat.v1.get_default_graph()
    return graph.create_op(op, inputs, [tf.float32], name=op[1:], attrs=protos).outputs[0]


def _attribute(value: Any) -> Any:
    proto = tf.compat.v1.AttrValue()
    match value:
        case bool():
            proto.b = value
        case int():
            proto.i = value
        case float():
            proto.f = value
        case str():
            proto.s = value.encode()
        case tf.DType():
            proto.type = value.as_datatype_enum
        case [str(), *_]:
            proto.list.s.extend(text.encode() for text in value)
        case [int(), *_]:
            proto.list.i.extend(value)
        case _:
            proto.list.type.extend(dtype.as_datatype_enum for dtype in value)
    return proto
