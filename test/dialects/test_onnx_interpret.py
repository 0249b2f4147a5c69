"""Where the interpreter of onnx ops does not simply ask onnx.reference."""

from __future__ import annotations

from typing import cast

import numpy as np
from onnx import helper
from xdsl.dialects.builtin import i8
from xdsl.ir import Block

from lowerdeck.dialects.core.types import f32, tensor
from lowerdeck.dialects.interpret.onnx import run_op
from lowerdeck.dialects.onnx.convert import node_to_op


def test_old_batch_normalization_with_one_output_uses_the_given_statistics() -> None:
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    statistics = [np.array(values, np.float32) for values in ([2, 1], [0, 1], [1, 2], [4, 9])]
    names = ["x", "scale", "bias", "mean", "variance"]
    node = helper.make_node("BatchNormalization", names, ["y"], epsilon=0.0, momentum=0.5)
    block = Block(arg_types=[tensor(f32, array.shape) for array in (x, *statistics)])
    operands = dict(zip(names, block.args, strict=True))
    expected = np.array([[[-1, 0, 1, 2], [5 / 3, 2, 7 / 3, 8 / 3]]], np.float32)
    for opset in (7, 9, 13, 15):
        op = node_to_op(node, operands, {"": opset})
        (found,) = run_op(op, [x, *statistics])
        np.testing.assert_allclose(cast(np.ndarray, found), expected, rtol=1e-6)


def test_dequantization_of_every_version() -> None:
    x, scale = np.array([[1, 2], [3, 4]], np.int8), np.array([0.5, 2], np.float32)
    block = Block(arg_types=[tensor(i8, x.shape), tensor(f32, scale.shape), tensor(f32, [])])
    columns = helper.make_node("DequantizeLinear", ["x", "scale"], ["y"])
    rows = helper.make_node("DequantizeLinear", ["x", "scale"], ["y"], axis=0)
    whole = helper.make_node("DequantizeLinear", ["x", "one"], ["y"])
    operands = dict(zip(["x", "scale", "one"], block.args, strict=True))
    for opset in (10, 13, 19, 21):
        op = node_to_op(whole, operands, {"": opset})
        (found,) = run_op(op, [x, scale[0]])
        np.testing.assert_array_equal(cast(np.ndarray, found), x * np.float32(0.5))
    for opset in (13, 19):
        for node, factors in ((columns, scale), (rows, scale[:, np.newaxis])):
            (found,) = run_op(node_to_op(node, operands, {"": opset}), [x, scale])
            np.testing.assert_array_equal(cast(np.ndarray, found), x * factors)
