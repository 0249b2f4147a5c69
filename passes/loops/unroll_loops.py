"""`unroll-loops`: the iterations of a loop one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter as IRRewriter

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp, yielded
from lowerdeck.dialects.core.symbols import symbols_made_within
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.machinery.symbols import substitute
from lowerdeck.passes.machinery.values import uniform_value

_MOST_OPS = 4096
"""The maximum number of ops that a loop becomes."""


class UnrollLoop(Pattern[int]):
    """loop(trip n) { f } -> f, f, ... [n constant, and small; no condition; sizes stay]"""

    name = "unroll-loop"
    roots = (LoopOp,)

    def match(self, op: LoopOp) -> Match[int] | None:
        if op.condition is not None or op.carried_symbols is not None or op.trip_count is None:
            return None
        if (trips := uniform_value(op.trip_count)) is None or int(trips) <= 0:
            return None
        count, block = int(trips), op.body.block
        if symbols_made_within(op.body) or count * len(list(block.ops)) > _MOST_OPS:
            return None
        scans = op.results[len(op.inits) :]
        if any(dims_of(scan)[0] != count for scan in scans):
            return None
        return Match((op,), f"{count} iterations", count)

    def rewrite(self, match: Match[int], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, LoopOp)
        carried: list[SSAValue] = list(op.inits)
        stacks: list[list[SSAValue]] = [[] for _ in op.results[len(carried) :]]
        for number in range(match.data):
            values = _iterate(op, number, carried, rewriter)
            carried = values[: len(carried)]
            for stack, value in zip(stacks, values[len(carried) :], strict=True):
                row = rewriter.add(ReshapeOp(value, [1, *dims_of(value)]))
                stack.append(row.result)
        scans = [rewriter.add(ConcatOp(stack, 0)).result for stack in stacks]
        rewriter.replace(op, [*carried, *scans])


def _iterate(
    op: LoopOp, number: int, carried: Sequence[SSAValue], rewriter: Rewriter
) -> list[SSAValue]:
    """The ops of one iteration; returns what they yield."""
    block = op.body.block
    index = rewriter.add(ConstantOp.of(np.array(number, np.int64))).result
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, [index, *carried], strict=True))
    symbols = {} if op.iteration is None else {op.iteration.data: Expr.const(number)}
    for inner in block.ops:
        if isinstance(inner, YieldOp):
            break
        new = inner.clone(values)
        for each in new.walk():
            _substitute(each, symbols)
        values.update(zip(inner.results, new.results, strict=True))
        rewriter.add(new)
    return [values.get(value, value) for value in yielded(op.body)]


def _substitute(op: Operation, symbols: dict[str, Expr]) -> None:
    for name, attribute in op.properties.items():
        op.properties[name] = substitute(attribute, symbols)
    for result in list(op.results):
        if (type_ := substitute(result.type, symbols)) != result.type:
            IRRewriter.replace_value_with_new_type(result, type_)


class UnrollLoopsPass(PatternPass):
    """
    Loops as their iterations, for a framework without control flow.

    - loop(trip n) { f } -> f for 0, f for 1, ...; scan outputs are concatenations of single rows
      [n is a constant; without a condition; no carried value changes its size; nothing inside of it
      makes symbols; at most 4,096 ops]
    """

    name = "unroll-loops"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [UnrollLoop()]
