"""Patterns that are one equation: an op is replaced by an operand, or by new ops."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter

Replacement: TypeAlias = SSAValue[Attribute] | Callable[[], Operation]
"""An existing value, or a function that builds an op."""
Rule: TypeAlias = tuple[str, Replacement, tuple[Operation, ...]]
"""The equation, the replacement of the op, and the other ops that matched."""


Build: TypeAlias = Callable[[Rewriter], SSAValue]
"""Adds new ops, and returns the value that replaces the root."""
Construction: TypeAlias = tuple[str, Build, tuple[Operation, ...]]
"""The reason, the replacement, and the other ops that matched."""


class Equation(Pattern[Replacement]):
    """A pattern that replaces an op by an operand or by one new op of the same type."""

    ranked = True

    @abstractmethod
    def rule(self, op: Any) -> Rule | None:
        """The equation that applies to `op`."""

    def match(self, op: Operation) -> Match[Replacement] | None:
        if (rule := self.rule(op)) is None:
            return None
        equation, new, others = rule
        if not callable(new) and new.type != op.results[0].type:
            return None  # it was broadcast
        return Match((op, *others), equation, new)

    def rewrite(self, match: Match[Replacement], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, match.data() if callable(match.data) else match.data)


class BuiltEquation(Pattern[Build]):
    """A pattern that replaces an op by a value of the same type, for which it adds any ops."""

    ranked = True

    @abstractmethod
    def rule(self, op: Any) -> Construction | None:
        """The equation that applies to `op`."""

    def match(self, op: Operation) -> Match[Build] | None:
        if (rule := self.rule(op)) is None:
            return None
        reason, build, others = rule
        return Match((op, *others), reason, build)

    def rewrite(self, match: Match[Build], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, match.data(rewriter))
