"""Garbage of work on modules is left, but not for ever."""

from __future__ import annotations

import gc
import subprocess
import sys

from lowerdeck.dialects.recursion import working_on_modules

LEFT = """
import gc, weakref
from lowerdeck.dialects.recursion import working_on_modules

class Node:
    def __init__(self, other):
        self.itself, self.other = self, other

def work(objects):
    with working_on_modules():
        node = None
        for _ in range(objects):
            node = Node(node)
        return weakref.ref(node)

first = work(1000)
assert first() is not None
work(100_000)
assert first() is not None  # although Python itself would have looked long since
work(250_000)
assert first() is not None  # this process may end now
work(1)
assert first() is None
assert gc.isenabled()

own = [[] for _ in range(700_000)]
work(310_000)
work(1)  # finds that there are many others
second = work(1000)
work(310_000)
work(1)
assert second() is not None
work(310_000)
work(1)
assert second() is None
"""


def test_garbage_of_little_work_is_left_and_of_much_collected() -> None:
    """In a process of its own: others have frozen something in this one."""
    subprocess.run([sys.executable, "-c", LEFT], check=True)


def test_what_another_has_frozen_stays_so() -> None:
    was_frozen = gc.get_freeze_count()
    gc.freeze()
    frozen, count = gc.get_freeze_count(), gc.get_count()[0]
    try:
        with working_on_modules():
            made = [list[int]() for _ in range(100)]
        assert gc.get_freeze_count() >= frozen > 0
        assert gc.get_count()[0] > count + 50  # Python's own collector finds them
        assert len(made) == 100
    finally:
        if not was_frozen:
            gc.unfreeze()


FROZEN = """
import gc
from lowerdeck.dialects.recursion import working_on_modules

gc.freeze()
gc.disable()
counted, count = [], gc.get_freeze_count
gc.get_freeze_count = lambda: counted.append(count()) or counted[-1]
for _ in range(10):
    gc.enable()
    with working_on_modules():
        pass
assert len(counted) == 1 and count() >= counted[0] > 0
"""


def test_what_is_frozen_is_counted_once() -> None:
    subprocess.run([sys.executable, "-c", FROZEN], check=True)


def test_collecting_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with working_on_modules():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
