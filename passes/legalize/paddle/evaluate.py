"""The interpreter of the paddle dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.ir import Operation

from lowerdeck.dialects.interpret import Value
from lowerdeck.dialects.paddle.ops import PaddleOp
from lowerdeck.passes.legalize.common.evaluate import interpreter_by, run_on_list
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
        return run_on_list(op, arguments[0], [cast("Any", value) for value in arguments[1:]])
    return _run_on_tensors(op, arguments, run_region)
