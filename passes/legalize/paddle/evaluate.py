"""The interpreter of the paddle dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from lowerdeck.dialects.interpret import Value
from lowerdeck.dialects.paddle.ops import PaddleOp
from lowerdeck.passes.legalize.common.evaluate import interpreter_by
from lowerdeck.passes.legalize.paddle.framework import PaddleWalk

_run_on_tensors = interpreter_by(PaddleWalk)


def run_op(
    op: Operation, arguments: Sequence[Value], run_region: Callable[..., list[Value]]
) -> list[Value]:
    """The results of an op. An array of tensors is a list."""
    assert isinstance(op, PaddleOp)
    if op.schema.target == "create_array":
        return [[]]
    if arguments and isinstance(arguments[0], list):
        return _run_on_array(op, arguments[0], [cast("Any", value) for value in arguments[1:]])
    return _run_on_tensors(op, arguments, run_region)


def _run_on_array(op: PaddleOp, array: list[Any], rest: Sequence[Any]) -> list[Value]:
    match op.schema.target:
        case "array_write":
            x, place = rest[0], int(rest[1].reshape(()))
            behind = [np.zeros_like(x)] * (place + 1 - len(array))
            written = [*array, *behind]
            written[place] = x
            return [written]
        case "array_read":
            return [array[int(rest[0].reshape(()))]]
        case "array_length":
            return [np.array([len(array)], np.int64)]
        case "array_pop":
            return [array[:-1], array[-1]]
        case "array_to_tensor":
            axis = cast("int", op.argument("axis"))
            join = np.stack if op.argument("use_stack") else np.concatenate
            lengths = [value.shape[axis] if axis < value.ndim else 1 for value in array]
            return [join(array, axis), np.array(lengths, np.int32)]
        case _:
            return [array]
