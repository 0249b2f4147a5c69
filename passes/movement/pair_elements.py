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
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer

_MOST_OPS = 32
"""The maximum number of maps in front of one concatenation."""

_ONE = Expr.const(1)


@dataclass(frozen=True)
class Turns:
    """The maps before a concatenation along a new last dimension, first to last."""

    sources: tuple[SSAValue, ...]
    maps: tuple[CoreOp, ...]


class PairElements(Pattern[Turns]):
    """concat(reshape(f(x[0::2], x[1::2], c)), ...) -> concat(f(x'[..., 0:1], x'[..., 1:2], c'))"""

    name = "pair-elements"
    roots = (ConcatOp,)
    ranked = True

    def match(self, op: ConcatOp) -> Match[Turns] | None:
        dims = dims_of(op.result)[:-1]
        if op.axis.data != len(dims) or len(op.inputs) < 2:
            return None
        reshapes = [producer(value, ReshapeOp) for value in op.inputs]
        sources: list[SSAValue] = []
        for reshape in reshapes:
            if reshape is None or dims_of(reshape.input) != dims:
                return None
            if dims_of(reshape.result) != (*dims, _ONE):
                return None
            sources.append(reshape.input)
        maps = _maps(sources, op)
        if maps is None:
            return None
        inside: set[Operation | None] = {*maps, *reshapes}
        if any(use.operation not in inside for each in maps for use in each.results[0].uses):
            return None
        leaves = {value for each in maps for value in each.operands} | {*sources}
        if not any(_is_paired(value) for value in leaves if value.owner not in inside):
            return None
        consumed = (op, *filter(None, dict.fromkeys(reshapes)), *maps)
        data = Turns(tuple(sources), tuple(maps))
        return Match(consumed, "parts of pairs are computed beside each other", data)

    def rewrite(self, match: Match[Turns], rewriter: Rewriter) -> None:
        op, found = match.root, match.data
        assert isinstance(op, ConcatOp)
        known: dict[SSAValue, SSAValue] = {}

        def column(value: SSAValue) -> SSAValue:
            if value not in known:
                known[value] = _column(value, rewriter)
            return known[value]

        for each in found.maps:
            new = each.with_operands([column(value) for value in each.operands])
            known[each.results[0]] = rewriter.add(new).results[0]
        rewriter.replace(op, ConcatOp([column(value) for value in found.sources], op.axis.data))


def _maps(sources: Sequence[SSAValue], root: ConcatOp) -> list[CoreOp] | None:
    """The maps of this size beside the root that compute values, each after what it reads."""
    dims = dims_of(root.result)[:-1]
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


def _is_paired(value: SSAValue) -> bool:
    """True for one of the elements of each pair, triple and so on along the last dimension."""
    if (reshape := producer(value, ReshapeOp)) is not None:
        is_part = isinstance(reshape.input.owner, SliceOp | SplitOp)
        return is_part and dims_of(reshape.input) == (*dims_of(value), _ONE)
    return _stride(value) is not None


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


def _column(value: SSAValue, rewriter: Rewriter) -> SSAValue:
    """A value with a last dimension of one more; a part of groups is one in their dimension."""
    if not rank_of(value):
        return value
    step = _stride(value)
    if step is None:
        return rewriter.add(ReshapeOp(value, [*dims_of(value), _ONE])).result
    part = producer(value, SliceOp)
    assert part is not None
    *before, size = dims_of(part.input)
    groups = rewriter.add(ReshapeOp(part.input, [*before, size // step, Expr.const(step)])).result
    *starts, start = part.starts.data
    steps = [*part.steps.data[:-1], _ONE, _ONE]
    sizes = [*dims_of(value), _ONE]
    return rewriter.add(
        SliceOp(groups, [*starts, start // step, start % step], sizes, steps)
    ).result


class PairElementsPass(PatternPass):
    """
    Elements that alternate with others are computed in their places.

    - concat(reshape(f(x[..., 0::2], x[..., 1::2], c)), ...)
      -> concat(f(x'[..., 0:1], x'[..., 1:2], c'), ...), x' = x in pairs
      [the concatenation is along a last dimension that the reshapes add; f elementwise, of the size
      of what is reshaped, and used only here; of some operand every second element, or every third
      and so on, is taken, by a slice or from a dimension of its own; c' has one dimension more]

    So rotary embeddings of interleaved pairs are one kernel, as those of halves are: a kernel holds
    a concatenation with its slices and maps, but no reshape.
    """

    name = "pair-elements"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [PairElements()]
