"""`fold-control-flow`: fold constant conditions, trip counts and loop invariants."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region, SSAValue

from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp, scalar
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp, yielded
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import dims_of, element_type, i64, numpy_dtype, static_shape
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.machinery.symbols import bind_dims
from lowerdeck.passes.machinery.values import uniform_value


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


class InlineOnlyIteration(Pattern[Region]):
    """loop(one trip) -> the ops of its body"""

    name = "inline-only-iteration"
    roots = (LoopOp,)

    def match(self, op: LoopOp) -> Match[Region] | None:
        if op.trip_count is None or uniform_value(op.trip_count) != 1:
            return None
        if op.condition is not None and uniform_value(op.condition) != np.True_:
            return None
        if op.carried_symbols is not None:
            return None
        return Match((op,), "there is one iteration", op.body)

    def rewrite(self, match: Match[Region], rewriter: Rewriter) -> None:
        op, block = match.root, match.data.block
        assert isinstance(op, LoopOp)
        carried, scans = op.yielded_carried, op.yielded_scans
        for symbol, value in ((op.iteration, 0), (op.count, 1)):
            if symbol is not None:
                size = rewriter.add(FromDimsOp([value])).result
                rewriter.add(BindSymbolsOp(size, [symbol.data]))
        number = rewriter.add(scalar(0, i64)).result
        if isinstance(last := block.last_op, YieldOp):
            rewriter.erase(last)
        # What it yields may be one of its arguments, which are the initial values.
        given: dict[SSAValue, SSAValue] = dict(zip(block.args, [number, *op.inits], strict=True))
        values = [given.get(value, value) for value in (*carried, *scans)]
        rewriter.inline_block(block, op, [number, *op.inits])
        for index in range(len(carried), len(values)):
            row = ReshapeOp(values[index], dims_of(op.results[index]))
            values[index] = rewriter.add(row).result
        rewriter.replace(op, values)


class LeaveInvariants(Pattern[list[int]]):
    """loop(x = a) { yield x unchanged, or a } -> a, in the body and after the loop"""

    name = "leave-invariants"
    roots = (LoopOp,)

    def match(self, op: LoopOp) -> Match[list[int]] | None:
        carried = zip(op.inits, op.carried_args, op.yielded_carried, strict=True)
        found = [
            index
            for index, (init, arg, after) in enumerate(carried)
            if after in (arg, init) and init.type == arg.type == op.results[index].type
            if _is_used(op, index)
        ]
        return Match((op,), f"{len(found)} values stay what they are", found) if found else None

    def rewrite(self, match: Match[list[int]], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, LoopOp)
        for index in match.data:
            rewriter.replace_value(op.carried_args[index], op.inits[index])
            rewriter.replace_value(op.results[index], op.inits[index])


class MergeEqualCarried(Pattern[dict[int, int]]):
    """loop(x = a, y = a) { yield z, z } -> loop(x = a) with x in place of y"""

    name = "merge-equal-carried"
    roots = (LoopOp,)

    def match(self, op: LoopOp) -> Match[dict[int, int]] | None:
        first: dict[Hashable, int] = {}
        found: dict[int, int] = {}
        for index, (init, after) in enumerate(zip(op.inits, op.yielded_carried, strict=True)):
            if op.made_dims[index] or not _is_used(op, index):
                continue
            key = (init, after, op.results[index].type)
            if (other := first.setdefault(key, index)) != index:
                found[index] = other
        return Match((op,), f"{len(found)} values are always equal", found) if found else None

    def rewrite(self, match: Match[dict[int, int]], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, LoopOp)
        for index, other in match.data.items():
            rewriter.replace_value(op.carried_args[index], op.carried_args[other])
            rewriter.replace_value(op.results[index], op.results[other])


class ForwardEqualYields(Pattern[dict[int, SSAValue]]):
    """if(c) { a } else { a } -> a"""

    name = "forward-equal-yields"
    roots = (IfOp,)

    def match(self, op: IfOp) -> Match[dict[int, SSAValue]] | None:
        pairs = zip(*map(yielded, op.regions), strict=True)
        found = {
            index: one
            for index, (one, other) in enumerate(pairs)
            if one is other and one.type == op.results[index].type
            if op.results[index].first_use is not None
        }
        if not found:
            return None
        return Match((op,), f"{len(found)} results are the same in both branches", found)

    def rewrite(self, match: Match[dict[int, SSAValue]], rewriter: Rewriter) -> None:
        for index, value in match.data.items():
            rewriter.replace_value(match.root.results[index], value)


def _is_used(op: LoopOp, index: int) -> bool:
    values = (op.carried_args[index], op.results[index])
    return any(value.first_use is not None for value in values)


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
    - if(c) { a } else { a } -> a [defined before it; same types]
    - loop(one trip) { f } -> f [a condition is true; no carried value changes its size]
    - loop(x = a) that yields x unchanged, or a -> a, in the body and after it [same types]
    - loop(x = a, y = a) that yields z for both -> x in place of y [same types]

    A symbol that the op defined for a size is bound to the size of the replacement.
    """

    name = "fold-control-flow"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            InlineTakenBranch(),
            ForwardEqualYields(),
            SkipEmptyLoop(),
            InlineOnlyIteration(),
            LeaveInvariants(),
            MergeEqualCarried(),
        ]
