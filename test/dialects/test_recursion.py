"""Garbage of work on modules is left, but not for ever."""

from __future__ import annotations

import gc
import weakref

from lowerdeck.dialects.recursion import working_on_modules


class _Node:
    def __init__(self, other: _Node | None) -> None:
        self.itself = self
        self.other = other


def _work(objects: int) -> weakref.ref[_Node]:
    """Work that leaves this many objects, which only a collection of garbage frees."""
    with working_on_modules():
        node = None
        for _ in range(objects):
            node = _Node(node)
        assert node is not None
        return weakref.ref(node)


def test_garbage_of_little_work_is_left_and_of_much_collected() -> None:
    gc.collect()
    assert gc.isenabled()
    first = _work(1000)
    assert first() is not None
    for _ in range(4):
        _work(200_000)
    assert first() is None
    assert gc.isenabled()


def test_what_another_has_frozen_stays_so() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    try:
        _work(10)
        assert gc.get_freeze_count() >= frozen > 0
    finally:
        gc.unfreeze()


def test_collecting_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        _work(10)
        assert not gc.isenabled()
    finally:
        gc.enable()
