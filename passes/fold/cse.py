"""`cse`: common subexpression elimination."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.traits import IsolatedFromAbove, IsTerminator, is_side_effect_free

from lowerdeck.dialects.core.symbols import symbols_made_by
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.machinery.structure import op_key


class ReuseEqualOp(Pattern[Operation]):
    """
    An op equal to an earlier one, in its block or an enclosing one, is replaced by that one.

    Equal ops have the same name, operands, properties and result types, and regions that are equal
    up to the names of their values. Visited in program order, an op is seen after its operands have
    been replaced.
    """

    name = "reuse-equal-op"

    def __init__(self) -> None:
        self._known: dict[Hashable, Operation] = {}

    def match(self, op: Operation) -> Match[Operation] | None:
        if not _is_mergeable(op) or (block := op.parent) is None:
            return None
        key = op_key(op, {})
        if (earlier := self._find(key, block)) is None:
            self._known[block, key] = op
            return None
        return Match((op, earlier), f"equal to an earlier {op.name}", earlier)

    def rewrite(self, match: Match[Operation], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, tuple(match.data.results))

    def _find(self, key: Hashable, block: Block | None) -> Operation | None:
        while block is not None:
            if (earlier := self._known.get((block, key))) is not None:
                return earlier
            parent = block.parent_op()
            if parent is None or parent.has_trait(IsolatedFromAbove):
                return None
            block = parent.parent
        return None


def _is_mergeable(op: Operation) -> bool:
    if not op.results or op.has_trait(IsTerminator) or not is_side_effect_free(op):
        return False
    # Two ops that define symbols define different ones, whatever their names.
    return not any(symbols_made_by(inner) for inner in all_ops(op))


class CsePass(PatternPass):
    """
    Common subexpressions: an op without effects is not computed twice.

    - y1 = f(x); y2 = f(x) -> y2 = y1 [f without effects; y1 is visible where y2 is]

    Ops with regions are compared by the contents of their regions. An op that defines dimension
    symbols (`core.bind_symbols`, a loop with a count) is never merged.
    """

    name = "cse"
    recursive = False
    region_first = True
    works_on_all_dialects = True

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [ReuseEqualOp()]
