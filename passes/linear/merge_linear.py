"""`merge-linear`: linear ops by constants, one after the other, are a product and a sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowerdeck.dialects.core.elementwise import AddOp, MulOp
from lowerdeck.dialects.core.types import element_type
from lowerdeck.passes.linear.affine import LINEAR_OPS, Chain, chain_of, is_representable
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.machinery.values import broadcast_constant


class MergeLinear(Pattern[Chain]):
    """((x * s1 + t1) * s2) + t2 -> x * (s1 * s2) + (t1 * s2 + t2)"""

    name = "merge-linear"
    roots = LINEAR_OPS
    ranked = True

    def match(self, op: Operation) -> Match[Chain] | None:
        chain = chain_of(op)
        if chain is None or len(chain.ops) < 2 or chain.affine.size >= chain.size:
            return None
        element = element_type(op.results[0])
        if not all(part is None or is_representable(part, element) for part in chain.affine.parts):
            return None
        return Match(chain.ops, f"{len(chain.ops)} linear ops in a row", chain)

    def rewrite(self, match: Match[Chain], rewriter: Rewriter) -> None:
        value, (scale, shift) = match.data.input, match.data.affine.parts
        if scale is not None:
            factor = rewriter.add(broadcast_constant(scale, value)).result
            value = rewriter.add(MulOp(value, factor)).result
        if shift is not None:
            term = rewriter.add(broadcast_constant(shift, value)).result
            value = rewriter.add(AddOp(value, term)).result
        rewriter.replace(match.root, value)


class MergeLinearPass(PatternPass):
    """
    Products and sums with constants, quotients by them, and batch normalizations in a row.

    - f1(f2(...(x))) -> x * s + t [fi is x * c, x / c, x + c, x - c, c - x, -x, or a batch
      normalization, and the only user of the one before; all constants finite]

    The constants are computed in float64 and rounded once. A chain ends where it would mean
    something else as one function:

    - where scales, or their product, are so large or small that usual values leave the range of the
      type
    - where shifts cancel to their last digits anywhere, or to less than half of their digits
      everywhere: x * c + 12582912 - 12582912 rounds
    - where x + t is followed by more, and t is so large that x, which may be exact, loses digits
    - where the constants would be larger than they are

    Runs after `fuse-linear`, so that it merges only what is left.
    """

    name = "merge-linear"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [MergeLinear()]
