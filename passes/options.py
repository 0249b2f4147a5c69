"""What a user asks of rewrites: which nodes to leave alone, when to stop, what to write down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from xdsl.context import Context
from xdsl.ir import Operation

from lowerdeck.passes.provenance import NodeMatcher, source_names


@dataclass
class RewriteOptions:
    """
    The switches of one run of a pipeline, and what was counted in it.

    `skip_nodes` binds optional passes only; `rewrite_limit` binds every pass of the driver.
    """

    skip_nodes: str | None = None
    """No optional rewrite consumes an op of a source node in whose name this regex is found."""
    disable: frozenset[str] = frozenset()
    """Names of passes that do nothing, members of groups included."""
    target: str = "c99"
    """What is compiled for: lowering chooses layouts and schedules by it."""
    threads: int = 1
    """How many threads share the work."""
    strict_accuracy: bool = False
    """Leave out what is faster but adds to rounding errors, such as Winograd's larger tiles."""
    rank: int = 0
    """Which schedule to take instead of the best by rule; see `lowering.targets.Machine`."""
    ranks: Mapping[str, int] = field(default_factory=dict[str, int])
    """The same for single kernels, by name."""
    rewrite_limit: int | None = None
    """Make the first this many rewrites of the whole run, and no other."""
    log: IO[str] | None = None
    """Where each rewrite is written to, one a line."""
    statistics: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Rewrites made, by pass and pattern."""
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Rewrites that `skip_nodes` prevented, by pass and pattern."""
    rewrites: int = 0
    """Rewrites made so far."""
    last: str = ""
    """The last rewrite made, as it is logged."""
    _matcher: NodeMatcher | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.skip_nodes is not None:
            self._matcher = NodeMatcher(self.skip_nodes)

    @property
    def is_tuned(self) -> bool:
        """True if not every schedule is the best by rule."""
        return self.rank != 0 or bool(self.ranks)

    @property
    def exhausted(self) -> bool:
        """True once the rewrite limit is reached."""
        return self.rewrite_limit is not None and self.rewrites >= self.rewrite_limit

    def skips(self, op: Operation) -> bool:
        """True if `op` comes from a node that optional passes leave alone."""
        return self._matcher is not None and self._matcher.matches(op)

    def record(
        self, pass_name: str, pattern: str, reason: str, consumed: Sequence[Operation]
    ) -> None:
        """Count one rewrite, about to be made, and write it down."""
        self.rewrites += 1
        self.statistics[pass_name, pattern] += 1
        if self.log is None and self.rewrites != self.rewrite_limit:
            return
        names: dict[str, None] = {}
        for op in consumed:
            names.update(dict.fromkeys(source_names(op)))
        nodes = ", ".join(f"'{name}'" for name in names) or "no source node"
        text = f": {reason}" if reason else ""
        root = consumed[0].name if consumed else "nothing"
        self.last = f"{self.rewrites} {pass_name}/{pattern} on {root}{text}; from {nodes}"
        if self.log is not None:
            print(self.last, file=self.log)

    def summary(self) -> str:
        """The counts, one line a pattern, for `--pass-statistics`."""
        keys = sorted(self.statistics.keys() | self.skipped.keys())
        lines = [
            f"{self.statistics[key]:8} rewrites {self.skipped[key]:6} skipped  {key[0]}/{key[1]}"
            for key in keys
        ]
        return "\n".join([*lines, f"{self.rewrites:8} rewrites in total"])


@dataclass
class LowerdeckContext(Context):
    """A context that carries the options of the run."""

    options: RewriteOptions = field(default_factory=RewriteOptions)

    def clone(self) -> LowerdeckContext:
        """A copy that shares the options."""
        return LowerdeckContext(
            self.allow_unregistered,
            self._loaded_dialects.copy(),
            self._loaded_ops.copy(),
            self._loaded_attrs.copy(),
            self._loaded_types.copy(),
            self._registered_dialects.copy(),
            self.options,
        )


def options_of(context: Context) -> RewriteOptions:
    """The options that a context carries; the defaults for a context of xDSL."""
    return context.options if isinstance(context, LowerdeckContext) else RewriteOptions()
