"""Small models that the tests of the onnx frontend import, break and damage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx import numpy_helper as arrays


def info(name: str, shape: Sequence[int | str | None] | None = None) -> ValueInfoProto:
    """A float tensor as input or output; without a shape, of any."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[str],
    initializers: Sequence[TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    opset: int = 18,
) -> ModelProto:
    """A model of opset 18, and version 1 of the domain `local` for its own functions."""
    graph = helper.make_graph(
        nodes, "graph", inputs, [info(name) for name in outputs], list(initializers)
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=9)


def function(
    name: str, nodes: Sequence[NodeProto], attributes: Sequence[str] = ()
) -> onnx.FunctionProto:
    """A function `y = name(x)` of the domain `local`."""
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["x"], ["y"], nodes, imports, list(attributes))


def scaled_function() -> onnx.FunctionProto:
    """`y = -LeakyRelu(x)` with the call's `alpha`."""
    leaky = helper.make_node("LeakyRelu", ["x"], ["z"], "leaky")
    leaky.attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    return function("Scaled", [leaky, helper.make_node("Neg", ["z"], ["y"])], ["alpha"])


def varied_model(weight: int = 5) -> ModelProto:
    """A bit of everything: subgraphs that capture, a function, weights, sparse and scalar ones."""
    random = np.random.default_rng(0)
    call = helper.make_node("Scaled", ["t"], ["q"], "call", domain="local", alpha=0.5)
    relu = helper.make_node("Relu", ["t"], ["r"], "relu")
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["t"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node(
            "If",
            ["cond"],
            ["u"],
            "branch",
            then_branch=helper.make_graph([relu], "then", [], [info("r")]),
            else_branch=helper.make_graph([call], "else", [], [info("q")]),
        ),
        helper.make_node("Loop", ["", "cond", "u"], ["v"], "loop", body=loop_body()),
        helper.make_node("Split", ["v"], ["", "part"], "split", num_outputs=2),
    ]
    initializers = [
        arrays.from_array(random.normal(size=(8, 3, weight, weight)).astype(np.float32), "w"),
        arrays.from_array(random.normal(size=8).astype(np.float32), "b"),
        arrays.from_array(np.array(1, np.float32), "one"),
    ]
    inputs = [
        info("x", ["N", 3, "H W", None]),
        helper.make_tensor_value_info("cond", TensorProto.BOOL, []),
    ]
    result = model(nodes, inputs, ["v", "part"], initializers, [scaled_function()])
    result.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            arrays.from_array(np.ones(2, np.float32), "sparse"),
            arrays.from_array(np.array([1, 3])),
            [2, 3],
        )
    )
    return result


def loop_body() -> GraphProto:
    """`state = state + one`, with the value `one` from around the loop."""
    return helper.make_graph(
        [
            helper.make_node("Add", ["state", "one"], ["next"]),
            helper.make_node("Identity", ["go_on"], ["again"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("trip", TensorProto.INT64, []),
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            info("state"),
        ],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []), info("next")],
    )
