"""How operators are compiled, as `lowerdeck ops` lists it."""

from __future__ import annotations

from lowerdeck.dialects.records import record


@record
class Support:
    """What is known of one operator."""

    how: str | None
    """How it is compiled; None if it is not."""
    version: int | None = None
    """The version that introduced this form."""
    next_step: str = ""
    """What to do if it is not compiled."""
