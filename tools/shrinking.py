"""Smaller and smaller variants of something, as long as they stay interesting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic

from typing_extensions import TypeVar

T = TypeVar("T")

MAX_TRIALS = 2000
"""Variants that are tried before the smallest one so far is taken."""


@dataclass(frozen=True)
class Shrunk(Generic[T]):
    """The smallest variant that was found."""

    subject: T
    trials: int
    """How many variants were tried."""
    is_minimal: bool
    """False if there were more trials than allowed; else no single step makes it smaller."""


def shrink(
    subject: T,
    variants: Callable[[T], Iterator[T]],
    is_interesting: Callable[[T], bool],
    *,
    key: Callable[[T], object],
    max_trials: int = MAX_TRIALS,
) -> Shrunk[T]:
    """
    Take the first interesting variant, then the first of that one, to the end.

    `variants` gives smaller ones, those first that are smaller by much, so that the number of
    trials is small where most of the subject does not matter. Those of one `key` are tried once.
    """
    tried, trials = {key(subject)}, 0
    while True:
        for variant in variants(subject):
            if (own := key(variant)) in tried:
                continue
            if trials == max_trials:
                return Shrunk(subject, trials, False)
            tried.add(own)
            trials += 1
            if is_interesting(variant):
                subject = variant
                break
        else:
            return Shrunk(subject, trials, True)


def chunks(count: int) -> Iterator[tuple[int, int]]:
    """Ranges of 0 .. count - 1: halves first, then quarters, down to single numbers."""
    size = -(-count // 2)
    while size:
        # From the end, where the results are: what only these need goes along.
        yield from [(k, min(k + size, count)) for k in range(0, count, size)][::-1]
        size = 0 if size == 1 else -(-size // 2)
