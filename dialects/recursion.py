"""How deep Python may go, and what else a long run over large modules wants of it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

_RECURSION_LIMIT = 10_000
"""Nested regions are read, verified, processed and printed recursively."""


@contextmanager
def working_on_modules() -> Generator[None]:
    """
    For work on modules: recursion may be deep, and collecting garbage, which doubles the time per
    op of a large module, is off meanwhile.
    """
    limit, enabled = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if enabled:
            gc.enable()
