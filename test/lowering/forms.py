"""
Of many forms of one thing, `make test` lowers some, and `make test-slow` all.

`some(forms)` are those that are lowered now. Of each two neighbors one is, in no rhythm: forms are
listed by loops in loops, and each value of each loop is among those that stay.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

EVERY_FORM = "LOWERDECK_EVERY_FORM" in os.environ
"""Whether all are."""


def some(forms: Sequence[T], share: int = 2) -> list[T]:
    """One of each `share` forms, or all."""
    return [form for number, form in enumerate(forms) if is_lowered(number, share)]


def is_lowered(number: int, share: int = 2) -> bool:
    """Whether a form is, of its number: its digits add up to a multiple of their base."""
    if EVERY_FORM:
        return True
    total = 0
    while number:
        number, digit = divmod(number, share)
        total += digit
    return total % share == 0
