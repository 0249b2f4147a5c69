"""`merge-narrow`: convolutions and products of one input that fill vectors together are one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import constant_array
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.types import f32, static_shape
from lowerdeck.lowering.strategies.facts import is_of
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.fold.fold_constants import FoldConstantsPass
from lowerdeck.passes.linear.merge_duplicates import MergeSiblings, sibling_groups
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import apply_patterns

COPY = 64
"""The multiply-adds in vectors that take at least as long as to write and read an element more."""

LEAST = 3
"""One in so many vectors has to be saved."""


def _sizes(op: ConvOp | MatmulOp) -> tuple[int, int] | None:
    """The channels or columns of a result, and the products of each."""
    try:
        weight = None if constant_array(op.operands[1]) is None else static_shape(op.operands[1])
    except ElidedBlobError:
        # The weights are elided: nothing is compiled, and the text stays short.
        return None
    if weight is None or not is_of(op, f32):
        return None
    if isinstance(op, ConvOp):
        return weight[0], prod(weight[1:])
    return weight[1], weight[0]


def pays(columns: Sequence[int], depth: int, lanes: int) -> bool:
    """
    True if it takes less time to compute so many columns, of `depth` products each, in vectors of
    all of them than in vectors of each, with the copies of the parts.
    """
    total, apart = sum(columns), sum(-(-each // lanes) for each in columns)
    saved, rest = apart - -(-total // lanes), total % lanes
    # A few columns behind whole vectors take as long as a vector, and more of them than one tile.
    if total > lanes and 0 < rest < lanes // 2:
        return False
    return saved * LEAST >= apart and saved * lanes * depth > COPY * total


def narrow_of(group: Sequence[ConvOp | MatmulOp], lanes: int) -> list[ConvOp | MatmulOp]:
    """Those of siblings that are to be one."""
    sizes = {op: found for op in group if (found := _sizes(op)) is not None}
    # With whole vectors nothing is gained, and next to nothing with many.
    partial = [op for op, (columns, _) in sizes.items() if columns < 2 * lanes and columns % lanes]
    widest = sorted(partial, key=lambda op: -sizes[op][0])
    for count in range(len(widest), 1, -1):
        if pays([sizes[op][0] for op in widest[:count]], sizes[widest[0]][1], lanes):
            chosen = set(widest[:count])
            return [op for op in group if op in chosen]
    return []


class MergeNarrowPass(ModulePass):
    """
    Convolutions and products of the same input as one, where they do not fill vectors alone.

    - conv(x, v, b), conv(x, w, c) -> the parts of conv(x, [v, w], [b, c]) along channels
    - x @ v, x @ w -> the parts of x @ [v, w] along columns

    [f32; weights constant, as `merge-duplicates` merges them, with the sums and maps behind all of
    them; one vector in three is saved, and this takes longer than to copy the parts, which other
    kernels read]. Where the results are joined, `merge-duplicates` has merged them before.
    """

    name = "merge-narrow"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lanes = target_named(options_of(ctx).target).lanes
        siblings = sibling_groups(op, everywhere=True).values() if lanes > 1 else ()
        chosen = [narrow for group in siblings if (narrow := narrow_of(group, lanes))]
        if not chosen:
            return
        pattern = MergeSiblings({narrow[0]: narrow for narrow in chosen})
        apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
        # The weights, which are joined, are constants again.
        FoldConstantsPass().apply(ctx, op)
