"""Places in files of text, as the locations of ops have them."""

from __future__ import annotations

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Attribute


def place(location: Attribute) -> str | None:
    """
    `file:line:col`, from 1, for a location of that kind; None for others, and for a whole file,
    whose line is 0.
    """
    if not isinstance(location, FileLineColLoc) or location.line.data == 0:
        return None
    return f"{location.filename.data}:{location.line.data}:{location.column.data}"
