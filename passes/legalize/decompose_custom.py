"""`decompose-custom`: operators from outside that are defined by ops of core become these."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.dialects.core.operators import CustomOperator
from lowerdeck.dialects.errors import CompileError
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.legalize.walk import symbols_of_arguments
from lowerdeck.passes.machinery.provenance import describe


class DecomposeCustomPass(ModulePass):
    """
    core.custom "op"(x) -> decompose(x) [the plugin gives `op` a decomposition]

    Each value has to have the type of the result that it replaces. All decompositions that fail
    are listed in one CompileError.
    """

    name = "decompose-custom"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        problems: list[str] = []
        for function in op.body.block.ops:
            if not isinstance(function, FuncOp):
                continue
            known: SymbolicValues | None = None
            for inner in list(function.walk()):
                if not isinstance(inner, CustomOp) or inner.definition is None:
                    continue
                if inner.definition.decompose is not None:
                    known = known or SymbolicValues(symbols_of_arguments(function))
                    problems += _decompose(inner, inner.definition, known)
        if problems:
            raise CompileError("\n".join(problems))


def _decompose(op: CustomOp, operator: CustomOperator, symbols: SymbolicValues) -> list[str]:
    """Put the ops in place of one; what is wrong with them."""
    assert operator.decompose is not None
    builder = CoreBuilder(InsertPoint.before(op), symbols, op.location)
    try:
        values = list(operator.decompose(builder, op.operands, op.values))
    except Exception as error:  # whatever the code of a plugin raises
        text = f"the decomposition of {operator.name} fails: {type(error).__name__}: {error}"
        return [f"{describe(op)}: {text}"]
    if (problem := _mismatch(op, values)) is not None:
        return [f"{describe(op)}: the decomposition of {operator.name} gives {problem}"]
    for result, value in zip(op.results, values, strict=True):
        value.name_hint = value.name_hint or result.name_hint
    Rewriter.replace_op(op, [], values)
    return []


def _mismatch(op: CustomOp, values: Sequence[SSAValue]) -> str | None:
    """How values are others than the results of an op."""
    if len(values) != len(op.results):
        return f"{len(values)} values for {len(op.results)} results"
    for result, value in zip(op.results, values, strict=True):
        if value.type != result.type:
            return f"{value.type}, but the operator infers {result.type}"
    return None
