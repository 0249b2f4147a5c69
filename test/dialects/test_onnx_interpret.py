"""Where the interpreter of onnx ops does not simply ask onnx.reference."""

from __future__ import annotations

from typing import cast

import numpy as np
from onnx import helper
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
