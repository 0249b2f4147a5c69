"""`slice-strides`: convolutions of one tap with a stride as convolutions of what they read."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import SliceOp, ints
from lowerdeck.dialects.core.types import dims_of, f32, f64
from lowerdeck.dialects.dims import constants
from lowerdeck.lowering.strategies.facts import is_of
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

MOST_COLUMNS = 20
"""Of results in a row: longer ones are divided into tiles with little left over anyway."""

FEWEST_FILTERS = 128
"""Of a group: a copied element takes part in so many products at least."""


class SliceStrides(Pattern[None]):
    """conv(x, w, b) of one tap with strides -> conv(slice(x), w, b)"""

    name = "slice-strides"
    roots = (ConvOp,)

    def match(self, op: ConvOp) -> Match[None] | None:
        filters, _, *taps = dims_of(op.weight)
        pads = constants((*op.pads_begin.data, *op.pads_end.data))
        if any(tap != 1 for tap in taps) or pads is None or any(pads) or not is_of(op, f32, f64):
            return None
        sizes = constants(dims_of(op.result)[2:])
        if sizes is None or set(ints(op.strides)) == {1} or sizes[-1] > MOST_COLUMNS:
            return None
        if filters.value is None or filters.value // op.groups.data < FEWEST_FILTERS:
            return None
        return Match((op,), f"{filters} filters of rows of {sizes[-1]} results")

    def rewrite(self, match: Match[None], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, ConvOp)
        channels, space = dims_of(op.input)[:2], dims_of(op.result)[2:]
        strides, ones = ints(op.strides), [1] * len(space)
        starts = [0] * (len(space) + 2)
        x = rewriter.add(SliceOp(op.input, starts, [*channels, *space], [1, 1, *strides])).result
        pads = [0] * len(space)
        new = ConvOp(
            x,
            op.weight,
            op.bias,
            groups=op.groups.data,
            strides=ones,
            dilations=ones,
            pads_begin=pads,
            pads_end=pads,
        )
        rewriter.replace(op, rewriter.add(new).result)


class SliceStridesPass(ModulePass):
    """
    conv(x, w, b) with strides -> conv(slice(x), w, b)
        [one tap, no padding, at least 128 filters a group, rows of at most 20 results; f32 or f64]

    The positions that are read then lie in line, so that tiles of them need not end with a row, and
    no other positions share their cache lines.
    """

    name = "slice-strides"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [SliceStrides()], recorder_of(ctx), pass_name=self.name, recursive=False)
