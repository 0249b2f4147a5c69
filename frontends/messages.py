"""Checks of protobuf messages for all frameworks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from google.protobuf.message import Message


def is_all_text(message: Message, but: Collection[str] = ()) -> bool:
    """
    True if all strings in `message` are text, except those in fields named in `but`.

    Protobuf does not check this.
    """
    for field, value in message.ListFields():
        if field.name in but:
            continue
        values = value if cast(Any, field).is_repeated else [value]
        if field.type == field.TYPE_STRING:
            if any(not isinstance(text, str) for text in values):
                return False
        elif field.type == field.TYPE_MESSAGE:
            if not all(is_all_text(inner, but) for inner in values):
                return False
    return True
