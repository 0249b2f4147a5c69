"""The record of one run's rewrites: which were made, and whether another one may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import IO

from xdsl.ir import Operation

from lowerdeck.passes.provenance import NodeMatcher, source_names


class Recorder:
    """
    Counts rewrites, writes them down, and keeps to what the user asks of them.

    `skip_nodes` (a regular expression) binds optional passes only; `rewrite_limit` binds every
    rewrite of the run.
    """

    def __init__(
        self,
        skip_nodes: str | None = None,
        rewrite_limit: int | None = None,
        log: IO[str] | None = None,
    ) -> None:
        self._matcher = None if skip_nodes is None else NodeMatcher(skip_nodes)
        self._limit = rewrite_limit
        self._log = log
        self.statistics: Counter[tuple[str, str]] = Counter()
        """Rewrites made, by pass and pattern."""
        self.skipped: Counter[tuple[str, str]] = Counter()
        """Rewrites that `skip_nodes` prevented, by pass and pattern."""
        self.rewrites = 0
        """Rewrites made so far."""
        self.last = ""
        """The last rewrite made, as it is logged; empty if it is not asked for."""

    @property
    def exhausted(self) -> bool:
        """True once the rewrite limit is reached."""
        return self._limit is not None and self.rewrites >= self._limit

    def skips(self, op: Operation) -> bool:
        """True if `op` comes from a node that optional passes leave alone."""
        return self._matcher is not None and self._matcher.matches(op)

    def decide(
        self, pass_name: str, pattern: str, consumed: Sequence[Operation], reason: str = ""
    ) -> bool:
        """
        True if an optional rewrite may be made, which then counts as made.

        For passes whose decisions depend on one another, so that no pattern makes them.
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
        """Count one rewrite, about to be made, and write it down."""
        self.rewrites += 1
        self.statistics[pass_name, pattern] += 1
        if self._log is None and self.rewrites != self._limit:
            return
        names: dict[str, None] = {}
        for op in consumed:
            names.update(dict.fromkeys(source_names(op)))
        nodes = ", ".join(f"'{name}'" for name in names) or "no source node"
        text = f": {reason}" if reason else ""
        root = consumed[0].name if consumed else "nothing"
        self.last = f"{self.rewrites} {pass_name}/{pattern} on {root}{text}; from {nodes}"
        if self._log is not None:
            print(self.last, file=self._log)

    def summary(self) -> str:
        """The counts, one line a pattern, for `--pass-statistics`."""
        keys = sorted(self.statistics.keys() | self.skipped.keys())
        lines = [
            f"{self.statistics[key]:8} rewrites {self.skipped[key]:6} skipped  {key[0]}/{key[1]}"
            for key in keys
        ]
        return "\n".join([*lines, f"{self.rewrites:8} rewrites in total"])
