"""Where in the control flow of a graph an op comes from, for the messages of later passes."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Operation

from lowerdeck.passes.machinery.provenance import note_of


class Place(NamedTuple):
    """Where a `core.if` or `core.loop` comes from."""

    frame: str
    """The path of frames, as messages say it."""
    predicate: str
    """When the first branch is taken, or the body is run."""
    regions: tuple[str, ...]
    """For each region the predicate that holds in it."""
    names: tuple[str, ...]
    """The nodes whose values the results are."""


def place_of(op: Operation) -> Place | None:
    """The place of an op that was raised from a graph; its location holds it."""
    note = note_of(op)
    return note if isinstance(note, Place) else None
