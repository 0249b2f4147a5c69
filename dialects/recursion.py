"""How deep Python may go, and what else a long run over large modules wants of it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

_RECURSION_LIMIT = 10_000
"""Nested regions are read, verified, processed and printed recursively."""


_MOST_LEFT = 300_000
"""
Objects that were made meanwhile, and are left for later; some models together make as many. Where
a process has many of its own, half of those: to look at all of them is then worth it.
"""


@contextmanager
def working_on_modules() -> Generator[None]:
    """
    For work on modules: recursion may be deep, and collecting garbage, which doubles the time per
    op of a large module, is off meanwhile.
    """
    limit, enabled = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    if enabled:
        _collect_what_is_much()
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if enabled:
            _settle()
            gc.enable()


_left = 0
"""Objects made by the work before, and not looked at since."""

_most_left = _MOST_LEFT

_others_froze = False
"""To count what is frozen, Python goes through all of it: done no more once there was any."""


def _settle() -> None:
    """
    What was made is old now: while it is in use, as it is here, to look at it for garbage is in
    vain. Who has frozen objects has chosen when to look at others.
    """
    global _left, _others_froze
    _others_froze = _others_froze or gc.get_freeze_count() > 0
    if _others_froze:
        return
    _left += gc.get_count()[0]
    gc.freeze()
    gc.unfreeze()


def _collect_what_is_much() -> None:
    """
    Of many models, some together are looked at, before the next one: a process that compiles one,
    however large, ends before there is a need.
    """
    global _left, _most_left
    if _left > _most_left and not _others_froze:
        gc.collect()
        _left, _most_left = 0, max(_MOST_LEFT, len(gc.get_objects()) // 2)
