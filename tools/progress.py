"""Progress messages for steps that take long, shown on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

_PATIENCE = 2.0
"""Seconds before anything is shown."""


class Progress:
    """A line on the terminal that names the step; nothing if stderr is no terminal."""

    def __init__(self) -> None:
        self._text = ""
        self._status: Status | None = None
        self._timer: Timer | None = None

    def __call__(self, text: str) -> None:
        """A new step begins."""
        self._text = text
        if self._status is not None:
            self._status.update(text)

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

        self._status = Status(self._text, console=Console(stderr=True))
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
