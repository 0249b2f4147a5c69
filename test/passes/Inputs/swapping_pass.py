"""A pass with one right pattern and one wrong one, for the test of `--check-each`."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core.elementwise import MaxOp, SubOp
from lowerdeck.passes.driver import Match, Pattern, PatternPass, Rewriter


class SwapMaximum(Pattern):
    """max(x, y) -> max(y, x)"""

    name = "swap-maximum"
    roots = (MaxOp,)

    def match(self, op: MaxOp) -> Match:
        return Match((op,), "maxima commute")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, MaxOp)
        rewriter.replace(op, MaxOp(op.rhs, op.lhs))


class SwapSubtraction(Pattern):
    """x - y -> y - x, which is wrong."""

    name = "swap-subtraction"
    roots = (SubOp,)

    def match(self, op: SubOp) -> Match:
        return Match((op,), "differences do not commute")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, SubOp)
        rewriter.replace(op, SubOp(op.rhs, op.lhs))


class SwappingPass(PatternPass):
    """Both patterns, once for each op."""

    name = "swapping"
    recursive = False

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [SwapMaximum(), SwapSubtraction()]
