"""Progress messages for steps that take long, shown on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

_PATIENCE = 2.0
"""Seconds before anything is shown."""


class Progress:
    """
    A line on the terminal with the step, how long it all takes so far, and which of the passes it
    is; nothing if stderr is no terminal.
    """

    def __init__(self) -> None:
        self._step = ""
        self._begin = time.perf_counter()
        self._expected: Collection[str] = ()
        self._passes = 0
        self._status: Status | None = None
        self._timer: Timer | None = None

    def __call__(self, text: str) -> None:
        """A new step begins."""
        self._step = text
        self._passes += text in self._expected

    def expect(self, passes: Collection[str]) -> None:
        """Which of the steps are passes, each as often as it will be."""
        self._expected, self._passes = passes, 0

    def text(self) -> str:
        """What is shown now."""
        seconds = time.perf_counter() - self._begin
        total = len(self._expected)
        share = f", pass {self._passes} of {total}" if 0 < self._passes <= total else ""
        return f"{self._step} ({seconds:.0f} s{share})"

    def __rich__(self) -> str:
        """The same, whenever the line is drawn anew."""
        from rich.markup import escape

        return escape(self.text())

    def start(self) -> None:
        """Begin to wait."""
        if sys.stderr.isatty():
            self._timer = Timer(_PATIENCE, self._show)
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """Clear the line."""
        if self._timer is not None:
            self._timer.cancel()
        if self._status is not None:
            self._status.stop()

    def _show(self) -> None:
        from rich.console import Console
        from rich.status import Status

        self._status = Status(self, console=Console(stderr=True))
        self._status.start()


@contextmanager
def progress() -> Generator[Progress]:
    """A progress line for the length of the block."""
    shown = Progress()
    shown.start()
    try:
        yield shown
    finally:
        shown.stop()
