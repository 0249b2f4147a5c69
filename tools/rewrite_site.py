"""The ops of one rewrite before and after it, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from lowerdeck.passes.machinery.recorder import Recorder

_WIDTH = 300
"""Characters of a line of IR that are shown."""

_LINES = 40
"""Lines that are shown of each side."""


@dataclass(frozen=True)
class Change:
    """What differs between a module and what has become of it: ops as text, in program order."""

    before: tuple[str, ...]
    """Those that are gone, or have changed."""
    after: tuple[str, ...]
    """Those that are new, or have changed."""

    def text(self) -> str:
        """Both sides, for a person."""
        return "\n".join(["before:", *_shown(self.before), "after:", *_shown(self.after)])


def _shown(lines: Sequence[str]) -> list[str]:
    shown = [f"  {line}" for line in lines[:_LINES]]
    more = len(lines) - len(shown)
    return [*shown, f"  and {more} more"] if more else shown or ["  nothing"]


class Snapshot:
    """The ops of a module as they are now; the values get names, so that they keep them."""

    def __init__(self, module: Operation) -> None:
        self._module = module
        self._names: set[str] = set()
        _name_values(module, self._names)
        self._texts = {op: _text(op) for op in module.walk() if op is not module}

    def change(self) -> Change:
        """What has changed since then."""
        _name_values(self._module, self._names)
        now = {op: _text(op) for op in self._module.walk() if op is not self._module}
        return Change(
            tuple(text for op, text in self._texts.items() if now.get(op) != text),
            tuple(text for op, text in now.items() if self._texts.get(op) != text),
        )


class Witness(Recorder):
    """A recorder that sees the module when the last rewrite within the limit is about to begin."""

    def __init__(self, skip_nodes: str | Sequence[str] | None, limit: int) -> None:
        super().__init__(skip_nodes, limit)
        self._wanted = limit
        self.snapshot: Snapshot | None = None
        self.names: tuple[str, str] | None = None
        """Of the pass and the pattern."""

    def record(
        self, pass_name: str, pattern: str, reason: str, consumed: Sequence[Operation]
    ) -> None:
        super().record(pass_name, pattern, reason, consumed)
        if self.rewrites == self._wanted:
            self.names = (pass_name, pattern)
            if consumed:
                self.snapshot = Snapshot(_outermost(consumed[0]))


def _outermost(op: Operation) -> Operation:
    while (parent := op.parent_op()) is not None:
        op = parent
    return op


def _name_values(module: Operation, names: set[str]) -> None:
    """
    Give a name of its own to each value that has none, and, in a module that is seen first, to each
    that shares it. Passes do not read names; values that replace others take over theirs, so that
    text shows what is the same.
    """
    values: list[SSAValue] = []
    for op in module.walk():
        values += op.results
        for region in op.regions:
            for block in region.blocks:
                values += block.args
    is_first = not names
    for value in values:
        hint = value.name_hint
        if hint is None or (is_first and hint in names):
            start, number = hint or "v", len(names)
            while (hint := f"{start}_{number}") in names:
                number += 1
            value.name_hint = hint
        names.add(hint)


def _text(op: Operation) -> str:
    """An op in one line; of one with regions what comes before them."""
    line, newline, _ = str(op).partition("\n")
    line = f"{line} ..." if newline else line
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]} ..."
