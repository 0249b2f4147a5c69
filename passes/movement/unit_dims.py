"""
Dimensions of one that are added before ops and dropped behind them, as around convolutions of
lines, which TensorFlow computes as those of images.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SplitOp, TransposeOp, ints
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, only_user, producer
from lowerdeck.passes.movement.reshapes import drops_ones, kept_axes
from lowerdeck.passes.movement.transposes import Permutation


class DropOnesFirst(Pattern[Permutation]):
    """reshape(transpose(x, p)) -> transpose(reshape(x), q) [the reshape drops ones]"""

    name = "drop-ones-first"
    roots = (ReshapeOp,)
    ranked = True

    def match(self, op: ReshapeOp) -> Match[Permutation] | None:
        transpose = producer(op.input, TransposeOp)
        if transpose is None or not op.input.has_one_use() or not drops_ones(op):
            return None
        axes = kept_axes(dims_of(op.input), dims_of(op.result)) or []
        order = [ints(transpose.permutation)[axis] for axis in axes]
        permutation = [sorted(order).index(axis) for axis in order]
        return Match((op, transpose), "fewer dimensions are transposed", permutation)

    def rewrite(self, match: Match[Permutation], rewriter: Rewriter) -> None:
        op, transpose = match.consumed
        assert isinstance(transpose, TransposeOp)
        after = dims_of(op.results[0])
        dims = [after[match.data.index(axis)] for axis in range(len(after))]
        value = rewriter.add(ReshapeOp(transpose.input, dims)).result
        rewriter.replace(op, TransposeOp(value, match.data))


class AddOnesLast(Pattern[Permutation]):
    """transpose(reshape(x), p) -> reshape(transpose(x, q)) [the reshape adds ones]"""

    name = "add-ones-last"
    roots = (TransposeOp,)
    ranked = True

    def match(self, op: TransposeOp) -> Match[Permutation] | None:
        reshape = producer(op.input, ReshapeOp)
        if reshape is None or not op.input.has_one_use():
            return None
        before, after = dims_of(reshape.input), dims_of(reshape.result)
        axes = kept_axes(after, before)
        if axes is None or len(axes) == len(after):
            return None
        permutation = [axes.index(axis) for axis in ints(op.permutation) if axis in axes]
        return Match((op, reshape), "fewer dimensions are transposed", permutation)

    def rewrite(self, match: Match[Permutation], rewriter: Rewriter) -> None:
        op, reshape = match.consumed
        assert isinstance(reshape, ReshapeOp)
        value = rewriter.add(TransposeOp(reshape.input, match.data)).result
        rewriter.replace(op, ReshapeOp(value, dims_of(op.results[0])))


class DropOnesOfAll(Pattern[int]):
    """concat(reshape(x), reshape(y)) -> reshape(concat(x, y)) [the reshapes drop the same ones]"""

    name = "drop-ones-of-all"
    roots = (ConcatOp,)
    ranked = True

    def match(self, op: ConcatOp) -> Match[int] | None:
        reshapes = [producer(value, ReshapeOp) for value in op.inputs]
        found = [each for each in reshapes if each is not None and drops_ones(each)]
        if not len(found) == len(reshapes) == len({*found}) > 1:
            return None
        if not all(each.result.has_one_use() for each in found):
            return None
        places = {
            (*(kept_axes(dims_of(each.input), dims_of(each.result)) or ()),) for each in found
        }
        ranks = {len(dims_of(each.input)) for each in found}
        if len(places) > 1 or len(ranks) > 1:
            return None
        return Match((op, *found), "several reshapes are one", places.pop()[op.axis.data])

    def rewrite(self, match: Match[int], rewriter: Rewriter) -> None:
        op, *reshapes = match.consumed
        inputs = [each.operands[0] for each in reshapes]
        value = rewriter.add(ConcatOp(inputs, match.data)).result
        rewriter.replace(op, ReshapeOp(value, dims_of(op.results[0])))


@record
class Parts:
    """The reshapes of all parts of a value, and the axis of the split behind one of the whole."""

    reshapes: tuple[ReshapeOp, ...]
    axis: int


class AddOnesBeforeSplit(Pattern[Parts]):
    """reshape(x0), reshape(x1) of x0, x1 = split(x) -> split(reshape(x)) [the same ones]"""

    name = "add-ones-before-split"
    roots = (SplitOp,)
    ranked = True

    def match(self, op: SplitOp) -> Match[Parts] | None:
        reshapes = [user for part in op.parts if isinstance(user := only_user(part), ReshapeOp)]
        if len(reshapes) < len(op.parts) or len(op.parts) < 2:
            return None
        axes = [kept_axes(dims_of(each.result), dims_of(each.input)) for each in reshapes]
        first = axes[0]
        if first is None or any(each != first for each in axes):
            return None
        ranks = {len(dims_of(each.result)) for each in reshapes}
        if ranks == {len(first)} or len(ranks) > 1:
            return None
        parts = Parts(tuple(reshapes), first[op.axis.data])
        return Match((op, *reshapes), "several reshapes are one", parts)

    def rewrite(self, match: Match[Parts], rewriter: Rewriter) -> None:
        op, parts = match.root, match.data
        assert isinstance(op, SplitOp)
        dims = list(dims_of(parts.reshapes[0].result))
        dims[parts.axis] = dims_of(op.input)[op.axis.data]
        whole: SSAValue = rewriter.add(ReshapeOp(op.input, dims)).result
        split = rewriter.add(SplitOp(whole, parts.axis, op.sizes.data))
        for reshape, part in zip(parts.reshapes, split.parts, strict=True):
            rewriter.replace(reshape, part)
