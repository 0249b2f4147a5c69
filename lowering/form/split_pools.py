"""`split-pools`: maxima and sums of deep windows as those of planes, then of what these gave."""

from __future__ import annotations

from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.enums import PoolKind
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.tensor import ReshapeOp, ints
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import constants, product
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

LEAST_WINDOW = 32
"""Elements: smaller windows take less time at once, above all where channels are the lanes."""


class SplitPools(Pattern[tuple[int, ...]]):
    """pool(x) over [depth, rows, columns] -> pool(pool(x) over [rows, columns]) over [depth]"""

    name = "split-pools"
    roots = (PoolOp,)

    def match(self, op: PoolOp) -> Match[tuple[int, ...]] | None:
        kernel = constants(op.kernel.data)
        if kernel is None or len(kernel) != 3 or prod(kernel) < LEAST_WINDOW:
            return None
        depth, *plane = kernel
        # Two windows of a plane, or fewer, save less than it takes to store and read what it gave.
        if depth == 1 or prod(plane) == 1 or 2 * ints(op.strides)[0] >= depth:
            return None
        # The first element of a window is not that of all planes, and averages have one divisor.
        if op.kind.data == PoolKind.AVERAGE or op.keeps_first.value.data:
            return None
        return Match((op,), f"windows of {depth} planes of {prod(plane)} elements", kernel)

    def rewrite(self, match: Match[tuple[int, ...]], rewriter: Rewriter) -> None:
        op, (kernel_depth, *plane) = match.root, match.data
        assert isinstance(op, PoolOp)
        batch, channels, depth, *image = dims_of(op.input)
        _, _, new_depth, *new_image = dims_of(op.result)
        strides, dilations = ints(op.strides), ints(op.dilations)
        begin, end = op.pads_begin.data, op.pads_end.data
        planes = rewriter.add(ReshapeOp(op.input, [batch, channels * depth, *image])).result
        planes = rewriter.add(
            PoolOp(
                op.kind.data,
                planes,
                kernel=plane,
                strides=strides[1:],
                dilations=dilations[1:],
                pads_begin=begin[1:],
                pads_end=end[1:],
                overhang=op.overhang.data[1:],
                from_lowest=op.from_lowest.value.data != 0,
                keeps_nan=op.keeps_nan.value.data != 0,
            )
        ).result
        lines = [batch, channels, depth, product(new_image)]
        value = rewriter.add(ReshapeOp(planes, lines)).result
        value = rewriter.add(
            PoolOp(
                op.kind.data,
                value,
                kernel=[kernel_depth, 1],
                strides=[strides[0], 1],
                dilations=[dilations[0], 1],
                pads_begin=[begin[0], 0],
                pads_end=[end[0], 0],
                overhang=[op.overhang.data[0], 0],
                from_lowest=op.from_lowest.value.data != 0,
                keeps_nan=op.keeps_nan.value.data != 0,
            )
        ).result
        dims = [batch, channels, new_depth, *new_image]
        rewriter.replace(op, rewriter.add(ReshapeOp(value, dims)).result)


class SplitPoolsPass(ModulePass):
    """
    pool(x) -> reshape(pool(reshape(pool(reshape(x))) over depth))
        [max or sum of at least 32 elements; more than two windows have a plane in common]

    The planes are combined once, not in every window that they are part of. Where of equal elements
    the first one counts, it still does: planes are in order, and elements within.
    """

    name = "split-pools"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [SplitPools()], recorder_of(ctx), pass_name=self.name, recursive=False)
