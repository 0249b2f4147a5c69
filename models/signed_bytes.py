"""Signed bytes that ONNX Runtime multiplies exactly on any processor."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray
from onnx import TensorProto, helper

Array = NDArray[Any]


@cache
def saturates() -> bool:
    """
    Whether two products of unsigned by signed bytes are added up in 16 bits, as on processors
    without VNNI: then the sum of two large ones is not what the operators say.
    """
    ports = [("a", TensorProto.UINT8, [1, 4]), ("b", TensorProto.INT8, [4, 1])]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])],
        "g",
        [helper.make_tensor_value_info(*port) for port in ports],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    largest = {"a": np.full((1, 4), 255, np.uint8), "b": np.full((4, 1), 127, np.int8)}
    return bool(session.run(None, largest)[0][0, 0] != 4 * 255 * 127)


def random_bytes(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    """All numbers of a type of bytes; half of the signed ones if sums of all would saturate."""
    info, part = np.iinfo(dtype), 2 if dtype is np.int8 and saturates() else 1
    return rng.integers(info.min // part, info.max // part, shape, dtype, endpoint=True)
