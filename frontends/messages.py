"""What holds for protobuf messages of any framework."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from google.protobuf.message import Message


def is_all_text(message: Message, but: Collection[str] = ()) -> bool:
    """
    True if all strings in `message` are text, those in fields named in `but` apart.

    Protobuf does not see to it.
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
