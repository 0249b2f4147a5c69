"""`simplify-movement`: fewer ops that only move elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    GatherOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
)
from lowerdeck.dialects.core.types import broadcast, dims_of, element_type, is_float, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.equation import Equation, Rule
from lowerdeck.passes.machinery.values import small_constant
from lowerdeck.passes.movement.transposes import ComposeTransposes, ReshapeInsteadOfTranspose


class ComposeReshapes(Equation):
    """reshape(reshape(x, a), b) -> reshape(x, b)"""

    name = "compose-reshapes"
    roots = (ReshapeOp,)

    def rule(self, op: ReshapeOp) -> Rule | None:
        if (inner := producer(op.input, ReshapeOp)) is None:
            return None
        x, dims = inner.input, op.dims.data
        if dims_of(x) == dims:
            return "two reshapes cancel", x, (inner,)
        return "the last reshape decides", lambda: ReshapeOp(x, dims), (inner,)


class SliceBetweenReshapes(Pattern[list[list[Expr]]]):
    """reshape(slice(reshape(x))) -> reshape(slice(x)) [the inner one adds or drops ones]"""

    name = "slice-between-reshapes"
    roots = (ReshapeOp,)
    ranked = True

    def match(self, op: ReshapeOp) -> Match[list[list[Expr]]] | None:
        part = producer(op.input, SliceOp)
        inner = producer(part.input, ReshapeOp) if part is not None else None
        if part is None or inner is None or not op.input.has_one_use():
            return None
        lists = (inner.dims.data, part.starts.data, part.sizes.data, part.steps.data)
        rows = list(zip(*lists, strict=True))
        if any(dim == 1 and (start != 0 or size != 1) for dim, start, size, _ in rows):
            return None
        dims, moved = dims_of(inner.input), [row for row in rows if row[0] != 1]
        if [dim for dim in dims if dim != 1] != [row[0] for row in moved]:
            return None
        zero, one, following = Expr.const(0), Expr.const(1), iter(moved)
        rule = [(one, zero, one, one) if dim == 1 else next(following) for dim in dims]
        bounds = [[row[k] for row in rule] for k in (1, 2, 3)]
        return Match((op, part, inner), "dimensions of one come and go", bounds)

    def rewrite(self, match: Match[list[list[Expr]]], rewriter: Rewriter) -> None:
        op, _, inner = match.consumed
        assert isinstance(inner, ReshapeOp)
        part = rewriter.add(SliceOp(inner.input, *match.data)).result
        same = part.type == op.results[0].type
        rewriter.replace(op, part if same else ReshapeOp(part, dims_of(op.results[0])))


class ComposeBroadcasts(Equation):
    """broadcast(broadcast(x, a), b) -> broadcast(x, b)"""

    name = "compose-broadcasts"
    roots = (BroadcastOp,)

    def rule(self, op: BroadcastOp) -> Rule | None:
        if (inner := producer(op.input, BroadcastOp)) is None:
            return None
        x, dims = inner.input, op.dims.data
        return "the last broadcast decides", lambda: BroadcastOp(x, dims), (inner,)


class ComposeSlices(Equation):
    """slice(slice(x, s1, t1), s2, t2) -> slice(x, s1 + s2 * t1, t1 * t2)"""

    name = "compose-slices"
    roots = (SliceOp,)

    def rule(self, op: SliceOp) -> Rule | None:
        if (inner := producer(op.input, SliceOp)) is None:
            return None
        x = inner.input
        lists = (inner.starts.data, inner.steps.data, op.starts.data, op.steps.data)
        rows = list(zip(*lists, strict=True))
        starts = [s1 + s2 * t1 for s1, t1, s2, _ in rows]
        steps = [t1 * t2 for _, t1, _, t2 in rows]
        sizes = op.sizes.data
        return "a part of a part", lambda: SliceOp(x, starts, sizes, steps), (inner,)


_PARTS_LIMIT = 256
"""Maximum operands of a flattened concat: flattening a chain copies the operands at each step."""


class SliceInsteadOfGather(Pattern[tuple[int, int, int]]):
    """gather(x, [a, a + s, ...]) -> slice(x), gather(x, a) -> reshape(slice(x)) [in range]"""

    name = "slice-instead-of-gather"
    roots = (GatherOp,)
    ranked = True

    def match(self, op: GatherOp) -> Match[tuple[int, int, int]] | None:
        dim = dims_of(op.input)[op.axis.data].value
        if dim is None or not is_float(element_type(op.input)) or rank_of(op.indices) > 1:
            return None
        array = small_constant(op.indices)
        indices = [] if array is None else [int(index) for index in array.reshape(-1)]
        if not indices or not all(-dim <= index < dim for index in indices):
            return None
        places = [index % dim for index in indices]
        step = places[1] - places[0] if len(places) > 1 else 1
        if step == 0 or places != [places[0] + k * step for k in range(len(places))]:
            return None
        return Match((op,), "the indices are evenly spaced", (places[0], len(places), step))

    def rewrite(self, match: Match[tuple[int, int, int]], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, GatherOp)
        sizes = list(dims_of(op.input))
        starts, steps = [Expr.const(0)] * len(sizes), [Expr.const(1)] * len(sizes)
        axis = op.axis.data
        starts[axis], sizes[axis], steps[axis] = map(Expr.const, match.data)
        part = rewriter.add(SliceOp(op.input, starts, sizes, steps)).result
        same = part.type == op.result.type
        rewriter.replace(op, part if same else ReshapeOp(part, dims_of(op.result)))


class FlattenConcat(Equation):
    """concat(concat(x, y), z) -> concat(x, y, z) [along the same axis; used once]"""

    name = "flatten-concat"
    roots = (ConcatOp,)

    def rule(self, op: ConcatOp) -> Rule | None:
        inner: list[ConcatOp] = []
        parts: list[SSAValue] = []
        for value in op.inputs:
            part = producer(value, ConcatOp)
            if part is not None and part.axis == op.axis and value.has_one_use():
                inner.append(part)
                parts.extend(part.inputs)
            else:
                parts.append(value)
        axis = op.axis.data
        if not inner or len(parts) > _PARTS_LIMIT or not _keeps_dims(op, parts):
            return None
        return "joined in one step", lambda: ConcatOp(parts, axis), tuple(inner)


def _keeps_dims(op: ConcatOp, parts: Sequence[SSAValue]) -> bool:
    """The dimensions other than the axis are those of the first operand."""
    axis, before, after = op.axis.data, dims_of(op.result), dims_of(parts[0])
    return (*before[:axis], *before[axis + 1 :]) == (*after[:axis], *after[axis + 1 :])


@record
class _Whole:
    """Operands side by side that together are one value."""

    value: SSAValue
    makers: tuple[Operation, ...]
    count: int


def _with_wholes(op: ConcatOp, reason: str, find: Callable[[int], _Whole | None]) -> Rule | None:
    """The concatenation of fewer operands; `find` gives what those from an index on are."""
    parts: list[SSAValue] = []
    makers: dict[Operation, None] = {}
    axis, start, count = op.axis.data, 0, len(op.operands)
    while start < count:
        whole = find(start)
        if whole is not None and start == 0 and whole.count < count:
            whole = whole if _keeps_dims(op, [whole.value]) else None
        parts.append(op.operands[start] if whole is None else whole.value)
        start += 1 if whole is None else whole.count
        makers.update(dict.fromkeys(() if whole is None else whole.makers))
    if not makers:
        return None
    result = parts[0] if len(parts) == 1 else lambda: ConcatOp(parts, axis)
    return reason, result, tuple(makers)


class JoinParts(Equation):
    """concat(y, split(x), z) -> concat(y, x, z) [all parts, in order, along the same axis]"""

    name = "join-parts"
    roots = (ConcatOp,)

    def rule(self, op: ConcatOp) -> Rule | None:
        values = op.operands

        def find(start: int) -> _Whole | None:
            split = producer(values[start], SplitOp)
            if split is None or split.axis != op.axis or values[start] is not split.results[0]:
                return None
            end = start + len(split.results)
            if tuple(values[start:end]) != tuple(split.results):
                return None
            return _Whole(split.input, (split,), len(split.results))

        return _with_wholes(op, "the parts in their order", find)


class JoinSlices(Equation):
    """concat(y, x[:a], x[a:], z) -> concat(y, x, z) [along the axis, all of x]"""

    name = "join-slices"
    roots = (ConcatOp,)

    def rule(self, op: ConcatOp) -> Rule | None:
        values, axis = op.operands, op.axis.data

        def find(start: int) -> _Whole | None:
            slices = _slices_of_whole((values[k] for k in range(start, len(values))), axis)
            return _Whole(slices[0].input, tuple(slices), len(slices)) if slices else None

        return _with_wholes(op, "slices side by side", find)


def _slices_of_whole(values: Iterable[SSAValue], axis: int) -> list[SliceOp]:
    """The leading values, if they are slices of one tensor that together cover it along an axis."""
    slices: list[SliceOp] = []
    end = Expr.const(0)
    for value in values:
        part = producer(value, SliceOp)
        if part is None or (slices and part.input is not slices[0].input):
            return []
        dims = dims_of(part.input)
        lists = enumerate(zip(part.sizes.data, dims, strict=True))
        is_whole = all(size == dim for k, (size, dim) in lists if k != axis)
        if part.starts.data[axis] != end or not is_whole:
            return []
        if any(step != 1 for step in part.steps.data):
            return []
        slices.append(part)
        end = end + part.sizes.data[axis]
        if end == dims[axis]:
            return slices
    return []


class SplitOperands(Pattern[dict[SSAValue, SSAValue]]):
    """split(concat(x, y)) -> x, y [along the same axis; parts that are operands]"""

    name = "split-operands"
    roots = (SplitOp,)
    ranked = True

    def match(self, op: SplitOp) -> Match[dict[SSAValue, SSAValue]] | None:
        concat = producer(op.input, ConcatOp)
        if concat is None or concat.axis != op.axis:
            return None
        lists = zip(concat.starts, concat.inputs, strict=True)
        operands = {(start, value.type): value for start, value in lists}
        found: dict[SSAValue, SSAValue] = {}
        for part, start in zip(op.parts, op.starts, strict=True):
            if part.uses and (operand := operands.get((start, part.type))) is not None:
                found[part] = operand
        return Match((op, concat), "a part is an operand", found) if found else None

    def rewrite(self, match: Match[dict[SSAValue, SSAValue]], rewriter: Rewriter) -> None:
        for part, operand in match.data.items():
            rewriter.replace_value(part, operand)
        if not any(part.uses for part in match.root.results):
            rewriter.erase(match.root)


class SliceOfOperand(Equation):
    """slice(concat(x, y)) -> slice(y) [within y along the axis]"""

    name = "slice-of-operand"
    roots = (SliceOp,)

    def rule(self, op: SliceOp) -> Rule | None:
        if (concat := producer(op.input, ConcatOp)) is None:
            return None
        axis, dims = concat.axis.data, dims_of(concat.result)
        lists = (op.starts.data, op.sizes.data, op.steps.data)
        start, size, step = (values[axis] for values in lists)
        for value, first in zip(concat.inputs, concat.starts, strict=True):
            own = dims_of(value)
            offset = start - first
            left = own[axis] - offset - (size - 1) * step - 1
            limits = (offset.value, left.value, (step - 1).value)
            if not all(number is not None and number >= 0 for number in limits):
                continue
            if (*own[:axis], *own[axis + 1 :]) != (*dims[:axis], *dims[axis + 1 :]):
                return None
            if own == op.sizes.data and all(number == 1 for number in op.steps.data):
                return "it is the operand", value, (concat,)
            starts = [offset if k == axis else each for k, each in enumerate(op.starts.data)]
            new = partial(SliceOp, value, starts, op.sizes.data, op.steps.data)
            return "within one operand", new, (concat,)
        return None


class SliceInsteadOfSplit(Pattern[int]):
    """split(x) -> slice(x) [only one part is used]"""

    name = "slice-instead-of-split"
    roots = (SplitOp,)
    ranked = True

    def match(self, op: SplitOp) -> Match[int] | None:
        used = [k for k, part in enumerate(op.parts) if part.uses]
        if len(used) != 1 or len(op.parts) == 1:
            return None
        return Match((op,), "the other parts are not used", used[0])

    def rewrite(self, match: Match[int], rewriter: Rewriter) -> None:
        op, place = match.root, match.data
        assert isinstance(op, SplitOp)
        sizes = list(dims_of(op.parts[place]))
        starts = [Expr.const(0)] * len(sizes)
        starts[op.axis.data] = op.starts[place]
        part = rewriter.add(SliceOp(op.input, starts, sizes, [Expr.const(1)] * len(sizes)))
        rewriter.replace_value(op.parts[place], part.result)
        rewriter.erase(op)


class BroadcastInElementwise(Equation):
    """f(x, broadcast(y)) -> f(x, y) [f elementwise, of the same result type]"""

    name = "broadcast-in-elementwise"
    roots = (e.BinaryOp, e.CompareOp, e.SelectOp)

    def rule(self, op: CoreOp) -> Rule | None:
        sources = [producer(value, BroadcastOp) for value in op.operands]
        operands = list(op.operands)
        used: list[Operation] = []
        for index, source in enumerate(sources):
            if source is None:
                continue
            trial = [*operands[:index], source.input, *operands[index + 1 :]]
            if broadcast([dims_of(value) for value in trial]) == dims_of(op.results[0]):
                operands = trial
                used.append(source)
        if not used:
            return None
        return "broadcasts by itself", lambda: op.with_operands(operands), tuple(used)


class SimplifyMovementPass(PatternPass):
    """
    Compositions of ops that only move elements; every element of a result stays the same.

    - reshapes, transposes, broadcasts and slices of the same kind of op: composed
    - reshape(slice(reshape(x))) -> reshape(slice(x)) [the inner one adds or drops ones]
    - a transpose that moves only dimensions of one -> reshape
    - gather(x, [a, a + s, ...]) -> slice(x), reshaped for a scalar a [floats; in range]
    - concat(concat(x, y), z) -> concat(x, y, z) [same axis; the inner one used once]
    - concat(split(x)) -> x; concat(y, split(x), z) -> concat(y, x, z)
      [all parts, in order, same axis; likewise slices that cover x]
    - split(concat(x, y)) -> x, y [same axis; a part that is an operand]
    - slice(concat(x, y)) -> slice(y) [within y; y itself, if it is all of it]
    - split(x) -> slice(x) [only one part is used]
    - f(x, broadcast(y)) -> f(x, y) [f elementwise, of the same result type]
    """

    name = "simplify-movement"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            ComposeReshapes(),
            SliceBetweenReshapes(),
            ComposeTransposes(),
            ReshapeInsteadOfTranspose(),
            ComposeBroadcasts(),
            ComposeSlices(),
            SliceInsteadOfGather(),
            FlattenConcat(),
            JoinParts(),
            JoinSlices(),
            SplitOperands(),
            SliceOfOperand(),
            SliceInsteadOfSplit(),
            BroadcastInElementwise(),
        ]
