"""`merge-saturate`: two saturations in a row are one."""

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck_saturate.operator import SATURATE


def limit_of(op: CustomOp) -> float:
    """The attribute of a saturation."""
    return float(op.values["limit"])


class MergeSaturate(Pattern):
    """saturate(saturate(x, a), b) -> saturate(x, a b / (a + b))"""

    name = "merge-saturate"
    roots = (CustomOp,)

    def match(self, op: CustomOp) -> Match | None:
        inner = op.operands[0].owner if op.definition is SATURATE else None
        if not isinstance(inner, CustomOp) or inner.definition is not SATURATE:
            return None
        if not inner.results[0].has_one_use():
            return None
        return Match((op, inner), "of a value that is saturated already")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        outer, inner = match.consumed
        assert isinstance(outer, CustomOp)
        assert isinstance(inner, CustomOp)
        a, b = limit_of(inner), limit_of(outer)
        new = CustomOp(SATURATE, inner.operands, {"limit": a * b / (a + b)})
        rewriter.replace(outer, rewriter.add(new))


class MergeSaturatePass(PatternPass):
    """
    saturate(saturate(x, a), b) -> saturate(x, a b / (a + b)) [the inner one has no other use]

    It is exact up to rounding: 1 / limit of the result is the sum of those of the two.
    """

    name = "merge-saturate"

    def patterns(self, module: ModuleOp) -> list[Pattern]:
        """The one there is."""
        return [MergeSaturate()]
