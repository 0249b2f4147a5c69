"""`sink-transpose`: ops are done before transposes where that leaves fewer passes over memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SplitOp, TransposeOp, ints
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, is_ranked
from lowerdeck.passes.movement.permute_rows import PermuteRows
from lowerdeck.passes.movement.reshapes import SinkReshape, drops_ones
from lowerdeck.passes.movement.transposes import (
    ComposeTransposes,
    Permutation,
    ReshapeInsteadOfTranspose,
    SinkSharedTranspose,
    SinkTranspose,
    is_map,
    users_of,
)
from lowerdeck.passes.movement.unit_dims import (
    AddOnesBeforeSplit,
    AddOnesLast,
    DropOnesFirst,
    DropOnesOfAll,
)

_TAKES_EPILOGUE = (ConvOp, ConvTransposeOp, MatmulOp, PoolOp, ReduceOp)
"""Ops whose loops do the maps behind them on the way, but not behind a transpose."""

_MOST_MAPS = 64
"""The most maps between a transpose and what computes them: no kernel has more."""


def _worth(op: Operation, transposes: Sequence[TransposeOp]) -> str | None:
    result = dims_of(op.results[0])
    if isinstance(op, ConcatOp):
        return "several transposes are one" if len(transposes) > 1 else None
    if not is_map(op):
        return None
    # What is transposed must not become more.
    whole = [found for found in transposes if dims_of(found.result) == result]
    if whole and len(transposes) > 1:
        return "several transposes are one"
    if whole and any(_is_computed_here(found) for found in whole):
        return "it is done where the operand is computed"
    return None


def _is_computed_here(transpose: TransposeOp) -> bool:
    """True if the op behind a transpose could be done by what computes an operand of its maps."""
    pending: list[SSAValue] = [transpose.input]
    passed: set[Operation] = {transpose}
    for _ in range(_MOST_MAPS):
        # A value is looked at when all that reads it was.
        ready = (value for value in pending if passed.issuperset(users_of(value)))
        if (value := next(ready, None)) is None:
            return False
        pending.remove(value)
        op = value.owner
        if isinstance(op, _TAKES_EPILOGUE):
            return True
        if isinstance(op, ReshapeOp) and is_ranked(op) and drops_ones(op):
            passed.add(op)
            pending.append(op.input)
        if is_map(op) and is_ranked(op):
            passed.add(op)
            same = [each for each in op.operands if dims_of(each) == dims_of(value)]
            pending += [each for each in dict.fromkeys(same) if each not in pending]
    return False


class TransposeBeforeSplit(Pattern[Permutation]):
    """transpose(x0, p), transpose(x1, p) of x0, x1 = split(x) -> split(transpose(x, p))"""

    name = "transpose-before-split"
    roots = (SplitOp,)
    ranked = True

    def match(self, op: SplitOp) -> Match[Permutation] | None:
        users = list(dict.fromkeys(user for part in op.parts for user in users_of(part)))
        transposes = [user for user in users if isinstance(user, TransposeOp) and is_ranked(user)]
        if len(op.parts) < 2 or len(transposes) < len(users):
            return None
        orders = {tuple(ints(user.permutation)) for user in transposes}
        if len(orders) != 1 or not all(part.uses for part in op.parts):
            return None
        return Match((op, *transposes), "several transposes are one", list(orders.pop()))

    def rewrite(self, match: Match[Permutation], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, SplitOp)
        permutation, axis = match.data, op.axis.data
        whole = rewriter.add(TransposeOp(op.input, permutation)).result
        split = rewriter.add(SplitOp(whole, permutation.index(axis), op.sizes.data))
        for before, part in zip(op.parts, split.parts, strict=True):
            for transpose in list(users_of(before)):
                rewriter.replace(transpose, part)


class SinkTransposePass(PatternPass):
    """
    Ops are done before transposes where fewer transposes or fewer passes over memory are left.

    - f(transpose(x, p), transpose(y, p), c) -> transpose(f(x, y, c'), p) [f elementwise or a lookup
      in a table, with a result of the size of x; or concat; c constant, or a view suffices for c';
      the transposes have no other use]
    - f(transpose(x, p), c) -> transpose(f(x, c'), p) [f elementwise or batch_norm, with a result
      of the size of x; a convolution, product, pool or reduction computes x, and then f, too]
    - f(transpose(x, p), g(transpose(x, p))) -> transpose(f(x, g(x)), p) [likewise; maps that are
      all that reads a transpose, and of which f alone is used elsewhere]
    - transpose(x0, p), transpose(x1, p), ... -> parts of transpose(x, p) [x0, x1, ... are all parts
      of x, used only here]
    - transpose(transpose(x, p), q) -> transpose(x, p[q]), a reshape or x, as in `simplify-movement`
    - reshape(transpose(x, p)) @ w -> reshape(x) @ w' [w a constant matrix, w' its rows in another
      order; the reshape makes rows of the dimensions that move, and only such products read it]
    - reshape(transpose(x, p)) -> transpose(reshape(x), q) [the reshape drops dimensions of one]
    - transpose(reshape(x), p) -> reshape(transpose(x, q)) [the reshape adds dimensions of one]
    - concat(reshape(x), reshape(y), ...) -> reshape(concat(x, y, ...)) [the reshapes drop the same
      dimensions of one]
    - reshape(x0), reshape(x1), ... -> parts of reshape(x) [x0, x1, ... are all parts of x, used
      only here; the reshapes add the same dimensions of one]
    - f(reshape(x), c) -> reshape(f(x, c')) [the reshape drops dimensions of one; where
      `sink-reshape` does it]

    As few elements as before are transposed, once instead of several times. So the ends of networks
    with channels last look like those with channels first: what belongs to a convolution is next to
    it, and a convolution of lines that is written as one of images has its dimension of one next
    to it.
    """

    name = "sink-transpose"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            ComposeTransposes(),
            ReshapeInsteadOfTranspose(),
            DropOnesFirst(),
            AddOnesLast(),
            DropOnesOfAll(),
            AddOnesBeforeSplit(),
            TransposeBeforeSplit(),
            SinkTranspose(_worth),
            SinkSharedTranspose(_worth),
            SinkReshape(drops_ones),
            PermuteRows(),
        ]
