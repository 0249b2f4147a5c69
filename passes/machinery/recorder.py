"""The record of a run's rewrites, and the switches that limit them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import IO

from xdsl.ir import Operation

from lowerdeck.passes.machinery.options import regexes_of
from lowerdeck.passes.machinery.provenance import NodeMatcher, describe, sources


class Recorder:
    """
    Counts and logs rewrites, and applies the user's limits.

    `skip_nodes` (a regular expression, or several) applies to optional passes only; `rewrite_limit`
    applies to every rewrite of the run. Each rewrite is a line of `log`, and `tell` is told of it.
    `why_not` names passes and patterns (`pass`, `pattern` or `pass/pattern`): where they are tried
    and do not match is a line of `log`, too.
    """

    def __init__(
        self,
        skip_nodes: str | Sequence[str] | None = None,
        rewrite_limit: int | None = None,
        log: IO[str] | None = None,
        tell: Callable[[str], None] | None = None,
        why_not: Collection[str] = (),
    ) -> None:
        patterns = regexes_of(skip_nodes)
        self._matcher = NodeMatcher(patterns) if patterns else None
        self._limit = rewrite_limit
        self._log = log
        self._tell = tell
        self._why_not = frozenset(why_not)
        self.tried: set[str] = set()
        """The names of `why_not` that were tried anywhere."""
        self.statistics: Counter[tuple[str, str]] = Counter()
        """Rewrites made, by pass and pattern."""
        self.skipped: Counter[tuple[str, str]] = Counter()
        """Rewrites that `skip_nodes` prevented, by pass and pattern."""
        self.rewrites = 0
        """Rewrites made so far."""
        self.last = ""
        """The log line of the last rewrite; empty if logging is off."""

    @property
    def asks(self) -> bool:
        """True if there is a pattern of which it is to be said where it does not match."""
        return bool(self._why_not)

    def asks_why_not(self, pass_name: str, pattern: str) -> bool:
        """True if it is to be said where a pattern does not match."""
        if not self._why_not:
            return False
        named = self._why_not & {pass_name, pattern, f"{pass_name}/{pattern}"}
        self.tried |= named
        return bool(named)

    def miss(self, pass_name: str, pattern: str, op: Operation, where: str) -> None:
        """Log that a pattern does not match an op, and the line that says so."""
        print(f"{pass_name}/{pattern} does not match {describe(op)}: {where}", file=self._log)

    @property
    def exhausted(self) -> bool:
        """True once the rewrite limit is reached."""
        return self._limit is not None and self.rewrites >= self._limit

    def skips(self, op: Operation) -> bool:
        """True if `op` originates from a node that optional passes must not rewrite."""
        return self._matcher is not None and self._matcher.matches(op)

    def decide(
        self, pass_name: str, pattern: str, consumed: Sequence[Operation], reason: str = ""
    ) -> bool:
        """
        True if an optional rewrite may be made; it is then counted.

        For passes whose decisions depend on one another, so that patterns cannot make them.
        """
        if self.exhausted:
            return False
        if any(map(self.skips, consumed)):
            self.skipped[pass_name, pattern] += 1
            return False
        self.record(pass_name, pattern, reason, consumed)
        return True

    def record(
        self, pass_name: str, pattern: str, reason: str, consumed: Sequence[Operation]
    ) -> None:
        """Count and log one rewrite that is about to be made."""
        self.rewrites += 1
        self.statistics[pass_name, pattern] += 1
        is_told = self._log is not None or self._tell is not None
        if not is_told and self.rewrites != self._limit:
            return
        origins = dict.fromkeys(origin for op in consumed for origin in sources(op))
        nodes = ", ".join(origins) or "no source node"
        text = f": {reason}" if reason else ""
        root = consumed[0].name if consumed else "nothing"
        self.last = f"{self.rewrites} {pass_name}/{pattern} on {root}{text}; from {nodes}"
        if self._log is not None:
            print(self.last, file=self._log)
        if self._tell is not None:
            self._tell(self.last)

    def summary(self) -> str:
        """The counts, one line per pattern, for `--pass-statistics`."""
        keys = sorted(self.statistics.keys() | self.skipped.keys())
        lines = [
            f"{self.statistics[key]:8} rewrites {self.skipped[key]:6} skipped  {key[0]}/{key[1]}"
            for key in keys
        ]
        return "\n".join([*lines, f"{self.rewrites:8} rewrites in total"])
