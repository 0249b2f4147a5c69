"""A pass with a right pattern and a wrong one, which `check` and `--check-each` have to find."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowerdeck.dialects.core.elementwise import MaxOp, NegOp, SigmoidOp
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter


class CommuteMaximum(Pattern):
    """max(x, y) -> max(y, x)"""

    name = "commute-maximum"
    roots = (MaxOp,)

    def match(self, op: MaxOp) -> Match:
        return Match((op,), "maxima commute")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, MaxOp)
        rewriter.replace(op, MaxOp(op.rhs, op.lhs))


class MirrorSigmoid(Pattern):
    """sigmoid(x) -> sigmoid(-x), which is wrong."""

    name = "mirror-sigmoid"
    roots = (SigmoidOp,)

    def match(self, op: Operation) -> Match:
        return Match((op,), "the curve is symmetric")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        op = match.root
        negated = rewriter.add(NegOp(op.operands[0]))
        rewriter.replace(op, SigmoidOp(negated.result))


class MirroringPass(PatternPass):
    """Both patterns, once for each op."""

    name = "mirroring"
    recursive = False

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [CommuteMaximum(), MirrorSigmoid()]
