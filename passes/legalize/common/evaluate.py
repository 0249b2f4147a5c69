"""
Interpreters of dialects by legalization: an op gives what the ops of core give that it becomes.

All operands are constants, so that whatever decides shapes is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.ir import Block, Operation, Region

from lowerdeck.dialects.arguments import ArgumentsOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.interpret import Value, run_function
from lowerdeck.dialects.interpret.errors import InterpretError
from lowerdeck.passes.legalize.walk import FunctionWalk

RunOp: TypeAlias = "Callable[[Operation, Sequence[Value], Callable[..., list[Value]]], list[Value]]"


_UNUSED = np.zeros(0)


def interpreter_by(walk: Callable[[func.FuncOp], FunctionWalk]) -> RunOp:
    """The results of an op for the values of its operands, by the legalization of a dialect."""

    def run_op(
        op: Operation, arguments: Sequence[Value], run_region: Callable[..., list[Value]]
    ) -> list[Value]:
        del run_region
        block = Block()
        constants = [ConstantOp.of(np.asarray(cast("NDArray[Any]", value))) for value in arguments]
        block.add_ops(constants)
        values = [constant.result for constant in constants]
        copy = op.clone(dict(zip(op.operands, values, strict=True)))
        # An operand that is used twice has one constant.
        copy.operands = values
        block.add_op(copy)
        # What nothing uses may be nothing that can be computed.
        used = [k for k, result in enumerate(op.results) if result.first_use is not None]
        block.add_op(func.ReturnOp(*(copy.results[k] for k in used)))
        types = [copy.results[k].type for k in used]
        function = func.FuncOp("op", ([], types), Region(block))
        walked = walk(function)
        for value, operand in zip(values, op.operands, strict=True):
            walked.adopt(value, operand.type)
        try:
            walked.run()
        except CompileError as error:
            raise InterpretError(str(error)) from None
        found = dict(zip(used, run_function(function, []), strict=True))
        return [found.get(k, _UNUSED) for k in range(len(op.results))]

    return run_op


def run_on_list(op: ArgumentsOp, array: list[Any], rest: Sequence[Any]) -> list[Value]:
    """The results of an operator on arrays of tensors, which are lists."""
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
