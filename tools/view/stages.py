"""The stages of a compilation, as a picture shows them: which passes, and what each has done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.lowering.pipeline import Observer
from lowerdeck.passes.machinery.recorder import Recorder
from lowerdeck.tools.view.graph import Graph


@dataclass
class Stage:
    """A module at one moment."""

    title: str
    phase: str
    ops: list[int]
    """Positions of records."""
    rewrites: dict[str, int] = field(default_factory=dict[str, int])
    """Those that led here from the stage before, by pass and pattern."""

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "title": self.title,
            "phase": self.phase,
            "ops": self.ops,
            "rewrites": self.rewrites,
        }


class Recording(Observer):
    """
    Collects stages as passes run: all that differ from the one before, or those around the last run
    of each of the passes `before` and `after`.
    """

    def __init__(
        self, recorder: Recorder, graph: Graph, before: str | None, after: str | None
    ) -> None:
        self.graph = graph
        self.stages: list[Stage] = []
        self._recorder = recorder
        self._before, self._after = before, after
        self._first: Stage | None = None
        self._last: Stage | None = None
        self._counted: Counter[tuple[str, str]] = Counter()

    @property
    def _is_between(self) -> bool:
        return self._before is not None or self._after is not None

    def start(self, module: ModuleOp) -> None:
        """The module as it was read."""
        if not self._is_between:
            self.stages.append(Stage("as read", "imported", self.graph.stage(module)))

    def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        if pass_.name == self._before:
            self._first = Stage(f"before {pass_.name}", phase, self.graph.stage(module))
            self._counted = Counter(self._recorder.statistics)

    def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        if self._is_between:
            if pass_.name == self._after:
                ops = self.graph.stage(module)
                self._last = Stage(f"after {pass_.name}", phase, ops, self._new_rewrites())
            return
        ops = self.graph.stage(module)
        if ops != self.stages[-1].ops:
            self.stages.append(Stage(f"after {pass_.name}", phase, ops, self._new_rewrites()))
            self._counted = Counter(self._recorder.statistics)

    def _new_rewrites(self) -> dict[str, int]:
        new = self._recorder.statistics - self._counted
        return {f"{name}/{pattern}": count for (name, pattern), count in sorted(new.items())}

    def found(self) -> list[Stage]:
        """The stages; of two that were asked for, those that were reached."""
        if self._is_between:
            return [stage for stage in (self._first, self._last) if stage is not None]
        return self.stages
