"""`pair-elements`: what puts elements of several values by turns computes them where they go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SliceOp, SplitOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import (
    Match,
    Pattern,
    PatternPass,
    Rewriter,
    only_user,
    producer,
)
from lowerdeck.passes.movement.reshapes import ROOTS, moved_dims

_MOST_OPS = 32
"""The maximum number of maps in front of one concatenation."""

_MOST_HALVES = 4
"""The maximum number of parts that are rows, rather than elements, by turns."""

_MOST_STEPS = 4
"""The maximum number of maps between pairs and where they meet what they are parts of."""

_ONE = Expr.const(1)


@record
class Turns:
    """The maps before a concatenation along a new dimension, first to last."""

    sources: tuple[SSAValue, ...]
    maps: tuple[CoreOp, ...]


class PairElements(Pattern[Turns]):
    """concat(reshape(f(x[0::2], x[1::2], c)), ...) -> concat(f(x'[..., 0:1], x'[..., 1:2], c'))"""

    name = "pair-elements"
    roots = (ConcatOp,)
    ranked = True

    def match(self, op: ConcatOp) -> Match[Turns] | None:
        axis = op.axis.data
        dims = _without(dims_of(op.result), axis)
        if len(op.inputs) < 2 or axis < len(dims) - 1:
            return None
        if axis < len(dims) and len(op.inputs) > _MOST_HALVES:
            return None
        reshapes: list[ReshapeOp] = []
        sources: list[SSAValue] = []
        for value in op.inputs:
            reshape = producer(value, ReshapeOp)
            if dims_of(value)[axis] != 1:
                return None
            if reshape is None or dims_of(reshape.input) != dims:
                # It is a part in a dimension of its own already.
                if not isinstance(value.owner, SliceOp | SplitOp):
                    return None
                sources.append(value)
                continue
            reshapes.append(reshape)
            sources.append(reshape.input)
        maps = _maps(sources, dims, op)
        if maps is None:
            return None
        inside: set[Operation | None] = {*maps, *reshapes}
        if any(use.operation not in inside for each in maps for use in each.results[0].uses):
            return None
        leaves = {value for each in maps for value in each.operands} | {*sources}
        outside = [value for value in leaves if value.owner not in inside]
        if not reshapes or not any(_is_paired(value, axis, dims) for value in outside):
            return None
        # Without maps, only a slice in steps becomes another one.
        is_last = axis == len(dims)
        if not maps and not any(is_last and _stride(each.input) for each in reshapes):
            return None
        consumed = (op, *dict.fromkeys(reshapes), *maps)
        data = Turns(tuple(sources), tuple(maps))
        return Match(consumed, "parts of pairs are computed beside each other", data)

    def rewrite(self, match: Match[Turns], rewriter: Rewriter) -> None:
        op, found = match.root, match.data
        assert isinstance(op, ConcatOp)
        axis, rank = op.axis.data, rank_of(op.result) - 1
        known: dict[SSAValue, SSAValue] = {}

        def column(value: SSAValue) -> SSAValue:
            if value not in known:
                known[value] = _column(value, axis - rank, rewriter)
            return known[value]

        for each in found.maps:
            new = each.with_operands([column(value) for value in each.operands])
            known[each.results[0]] = rewriter.add(new).results[0]
        parts = [value if rank_of(value) > rank else column(value) for value in found.sources]
        rewriter.replace(op, ConcatOp(parts, axis))


def _without(dims: Sequence[Expr], axis: int) -> tuple[Expr, ...]:
    return (*dims[:axis], *dims[axis + 1 :])


def _maps(sources: Sequence[SSAValue], dims: Sequence[Expr], root: CoreOp) -> list[CoreOp] | None:
    """The maps of this size beside the root that compute values, each after what it reads."""
    seen: set[Operation] = set()
    found: list[CoreOp] = []

    def visit(value: SSAValue) -> None:
        op = value.owner
        if not isinstance(op, ELEMENTWISE) or op in seen or len(seen) > _MOST_OPS:
            return
        if dims_of(op.results[0]) != dims or op.parent is not root.parent:
            return
        seen.add(op)
        for operand in op.operands:
            visit(operand)
        found.append(op)

    for source in sources:
        visit(source)
    return None if len(found) > _MOST_OPS else found


def _is_paired(value: SSAValue, axis: int, dims: Sequence[Expr]) -> bool:
    """True for one of the elements of each pair, triple and so on along a dimension."""
    if rank_of(value) > len(dims):
        return True
    return _is_column(value, axis) or (axis == len(dims) and _stride(value) is not None)


def _is_column(value: SSAValue, axis: int) -> bool:
    """True for a part of one element along a dimension, without it."""
    reshape = producer(value, ReshapeOp)
    if reshape is None or not isinstance(reshape.input.owner, SliceOp | SplitOp):
        return False
    dims = dims_of(reshape.input)
    return len(dims) > axis and dims[axis] == 1 and _without(dims, axis) == dims_of(value)


def _stride(value: SSAValue) -> int | None:
    """The step of a slice along its last dimension, which holds whole groups of so many."""
    part = producer(value, SliceOp)
    if part is None or not rank_of(value):
        return None
    step, start = part.steps.data[-1].value, part.starts.data[-1].value
    size = dims_of(part.input)[-1].value
    if step is None or start is None or size is None or step < 2 or size % step:
        return None
    return step


def _column(value: SSAValue, place: int, rewriter: Rewriter) -> SSAValue:
    """
    A value with one dimension more, before the last -`place`; a slice is one of what has it, and a
    part of groups is one in their dimension.
    """
    dims = list(dims_of(value))
    if len(dims) + place < 0 or not dims:
        return value
    part, at = producer(value, SliceOp), len(dims) + place
    if part is None:
        return rewriter.add(ReshapeOp(value, [*dims[:at], _ONE, *dims[at:]])).result
    whole, step = list(dims_of(part.input)), None if place else _stride(value)
    starts, steps = list(part.starts.data), list(part.steps.data)
    if step is None:
        whole.insert(at, _ONE)
        starts.insert(at, Expr.const(0))
        steps.insert(at, _ONE)
    else:
        whole[-1:] = [whole[-1] // step, Expr.const(step)]
        starts[-1:] = [starts[-1] // step, starts[-1] % step]
        steps[-1:] = [_ONE, _ONE]
    groups = rewriter.add(ReshapeOp(part.input, whole)).result
    sizes = [*dims[:at], _ONE, *dims[at:]]
    return rewriter.add(SliceOp(groups, starts, sizes, steps)).result


@record
class Pairs:
    """Maps of reshaped pairs and of what these are parts of, each after what it reads."""

    maps: tuple[CoreOp, ...]
    leaves: dict[SSAValue, tuple[Expr, ...]]
    """What the maps read from elsewhere, with its dimensions before the reshape."""


class SinkPairs(Pattern[Pairs]):
    """f(reshape(concat(g(x'[..., 0:1]), ...)), x, c) -> reshape(f(concat(...), x', c'))"""

    name = "sink-pairs"
    roots = (ReshapeOp,)
    ranked = True

    def match(self, op: ReshapeOp) -> Match[Pairs] | None:
        concat = producer(op.input, ConcatOp)
        if concat is None or not op.input.has_one_use():
            return None
        if any(dims_of(value)[concat.axis.data] != 1 for value in concat.inputs):
            return None
        if (whole := _whole(concat)) is None or dims_of(whole) != dims_of(op.result):
            return None
        value = op.result
        for _ in range(_MOST_STEPS):
            user = only_user(value)
            if not isinstance(user, ELEMENTWISE):
                return None
            value = user.results[0]
            if dims_of(value) != dims_of(whole):
                return None
            if (found := _pairs(user, op)) is not None and whole in found.leaves:
                reason = "pairs are computed with what they are parts of"
                return Match((op, *found.maps), reason, found)
        return None

    def rewrite(self, match: Match[Pairs], rewriter: Rewriter) -> None:
        found, last = match.data, match.data.maps[-1]
        known: dict[SSAValue, SSAValue] = {}
        for value, dims in found.leaves.items():
            if dims != dims_of(value):
                known[value] = rewriter.insert_before(last, ReshapeOp(value, dims)).result
        for each in found.maps:
            new = each.with_operands([known.get(value, value) for value in each.operands])
            known[each.results[0]] = rewriter.insert_before(last, new).results[0]
        result = last.results[0]
        reshape = rewriter.insert_before(last, ReshapeOp(known[result], dims_of(result)))
        rewriter.replace(last, reshape.result)


def _pairs(last: CoreOp, reshape: ReshapeOp) -> Pairs | None:
    """The maps from a reshape to the last one, if what they read can be as it is before it."""
    before, dims = dims_of(reshape.input), dims_of(reshape.result)
    maps = _maps([last.results[0]], dims, last)
    if maps is None:
        return None
    inside: set[Operation] = {last}
    for op in reversed(maps):
        if all(use.operation in inside for use in op.results[0].uses):
            inside.add(op)
    maps = [op for op in maps if op in inside]
    leaves: dict[SSAValue, tuple[Expr, ...]] = {}
    for value in dict.fromkeys(value for each in maps for value in each.operands):
        if value.owner in inside:
            continue
        moved = moved_dims(value, before, dims)
        if moved is None or (isinstance(value.owner, ROOTS) and value.has_one_use()):
            return None
        leaves[value] = moved
    return Pairs(tuple(maps), leaves)


def _whole(concat: ConcatOp) -> SSAValue | None:
    """What maps of parts of which are joined, if it was reshaped to the size of the result."""
    maps = _maps(concat.inputs, dims_of(concat.inputs[0]), concat)
    if maps is None:
        return None
    for value in (*concat.inputs, *(value for each in maps for value in each.operands)):
        if isinstance(value.owner, SliceOp | SplitOp):
            reshape = producer(value.owner.input, ReshapeOp)
            if reshape is not None and dims_of(reshape.result) == dims_of(concat.result):
                return reshape.input
    return None


@dataclass(frozen=True)
class PairElementsPass(PatternPass):
    """
    Elements that alternate with others are computed in their places.

    - concat(reshape(f(x[..., 0::2], x[..., 1::2], c)), ...)
      -> concat(f(x'[..., 0:1], x'[..., 1:2], c'), ...), x' = x in pairs
      [the concatenation is along a dimension that the reshapes add; f elementwise, of the size
      of what is reshaped, and used only here; of some operand every second element, or every third
      and so on, is taken, by a slice along the last dimension or from a dimension of its own; c'
      has one dimension more; likewise for at most four rows, along the last dimension but one]
    - f(reshape(concat(g(x'[..., 0:1]), ...)), x, c) -> reshape(f(concat(...), x', c'))
      [x' = x in pairs; f elementwise ops, used only here; c broadcasts to x in whole groups of the
      dimensions that the reshape takes together, and is no product of its own]

    So rotary embeddings of interleaved pairs are one kernel, as those of halves are: a kernel holds
    a concatenation with its slices and maps, but no reshape.
    """

    name = "pair-elements"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [PairElements(), SinkPairs()]
