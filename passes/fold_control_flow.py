"""`fold-control-flow`: fold constant conditions, trip counts and loop invariants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp, yielded
from lowerdeck.dialects.core.types import element_type, numpy_dtype, static_shape
from lowerdeck.passes.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.symbols import bind_dims
from lowerdeck.passes.values import uniform_value


class InlineTakenBranch(Pattern[Region]):
    """if(constant) -> the ops of the branch that is taken"""

    name = "inline-taken-branch"
    roots = (IfOp,)

    def match(self, op: IfOp) -> Match[Region] | None:
        condition = uniform_value(op.condition)
        if condition is None:
            return None
        region = op.then_region if condition else op.else_region
        return Match((op,), f"the condition is {bool(condition)}", region)

    def rewrite(self, match: Match[Region], rewriter: Rewriter) -> None:
        op, block = match.root, match.data.block
        values = yielded(match.data)
        if isinstance(last := block.last_op, YieldOp):
            rewriter.erase(last)
        rewriter.inline_block(block, op, ())
        assert isinstance(op, IfOp)
        rewriter.replace(op, _as_results(rewriter, op, values, op.made_dims))


class SkipEmptyLoop(Pattern):
    """loop(no trip) -> the initial values, and scan outputs without elements"""

    name = "skip-empty-loop"
    roots = (LoopOp,)

    def match(self, op: LoopOp) -> Match | None:
        if (reason := _never_runs(op)) is None:
            return None
        if any(_empty_shape(scan) is None for scan in op.results[len(op.inits) :]):
            return None
        return Match((op,), reason)

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, LoopOp)
        values = _as_results(rewriter, op, op.inits, op.made_result_dims)
        for scan in op.results[len(op.inits) :]:
            empty = np.zeros(_empty_shape(scan) or (0,), numpy_dtype(element_type(scan)))
            values.append(rewriter.add(ConstantOp.of(empty)).result)
        rewriter.replace(op, values)


class LeaveInvariants(Pattern[list[int]]):
    """loop(x) { yield x unchanged } -> x, in the body and after the loop"""

    name = "leave-invariants"
    roots = (LoopOp,)

    def match(self, op: LoopOp) -> Match[list[int]] | None:
        carried = zip(op.inits, op.carried_args, op.yielded_carried, strict=True)
        found = [
            index
            for index, (init, arg, after) in enumerate(carried)
            if after is arg and init.type == arg.type == op.results[index].type
        ]
        return Match((op,), f"{len(found)} values stay what they are", found) if found else None

    def rewrite(self, match: Match[list[int]], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, LoopOp)
        for index in match.data:
            rewriter.replace_value(op.carried_args[index], op.inits[index])
            rewriter.replace_value(op.results[index], op.inits[index])


def _as_results(
    rewriter: Rewriter, op: Operation, values: Sequence[SSAValue], made: Sequence[Mapping[int, str]]
) -> list[SSAValue]:
    """Replacements of the first results, with the sizes that `op` defined for them."""
    triples = zip(values, op.results, made, strict=False)
    return [bind_dims(rewriter, op, value, result, axes) for value, result, axes in triples]


def _never_runs(op: LoopOp) -> str | None:
    if op.trip_count is not None and (trips := uniform_value(op.trip_count)) is not None:
        if int(trips) <= 0:
            return f"the trip count is {int(trips)}"
    if op.condition is not None and uniform_value(op.condition) == np.False_:
        return "the condition is False"
    return None


def _empty_shape(scan: SSAValue) -> tuple[int, ...] | None:
    """The shape if the scan output is known to be empty, for its type."""
    shape = static_shape(scan)
    return shape if shape is not None and shape[0] == 0 else None


class FoldControlFlowPass(PatternPass):
    """
    Control flow that is decided at compile time.

    - if(constant) { a } else { b } -> a or b
    - loop(trip <= 0, or condition false) -> initial values [scan outputs: `fold-symbols` has found
      that they are empty]
    - loop(x) that yields a carried x unchanged -> x, in the body and after it [same types]

    A symbol that the op defined for a size is bound to the size of the replacement.
    """

    name = "fold-control-flow"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [InlineTakenBranch(), SkipEmptyLoop(), LeaveInvariants()]
