"""The text form of a GraphDef and of what holds one, also of newer producers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from google.protobuf import text_format
from google.protobuf.message import Message
from typing_extensions import TypeVar

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.tf1.graph_pb2 import AttrValue, NodeDef
from lowerdeck.frontends.wire import bytes_field

Parsed = TypeVar("Parsed", bound=Message)

_Path: TypeAlias = "tuple[tuple[str, int | None], ...]"
"""Fields that lead to a message, each with a number if it is repeated."""

_OPENING, _CLOSING = frozenset("{[<"), frozenset("}]>")

_UNKNOWN_FIELD = bytes_field(1001, b"")
"""A serialized field that AttrValue does not have."""


def parse_text(file: str, text: str, kind: type[Parsed]) -> Parsed:
    """
    The message in a text; FrontendError if it is not one of this kind.

    Fields that are not known are left out, as newer producers add some. An attribute whose value
    has one gets an unknown field here, too: the import of its node will refuse it.
    """
    try:
        return _parse(text, kind)
    except (text_format.ParseError, ValueError, OverflowError) as error:
        line = " ".join(str(error).split())
        message = f"is not a valid TensorFlow graph, or is damaged: {line}; get a fresh copy"
        raise FrontendError.of_file(file, message) from None
    except RecursionError:
        raise FrontendError.of_file(file, "its messages are nested too deeply") from None


def _parse(text: str, kind: type[Parsed]) -> Parsed:
    try:
        return text_format.Parse(text, kind())
    except text_format.ParseError:
        message = text_format.Parse(text, kind(), allow_unknown_field=True)
        for path, attribute in _Scanner(text).attributes_with_unknown_fields(message.DESCRIPTOR):
            node: Any = message
            for field, number in path:
                node = getattr(node, field)
                node = node if number is None else node[number]
            node.attr[attribute].MergeFromString(_UNKNOWN_FIELD)
        return message


class _Scanner:
    """Goes through a text that is known to be well formed, beside the descriptors of its fields."""

    def __init__(self, text: str) -> None:
        self._tokens: Any = cast(Any, text_format).Tokenizer(text.split("\n"))
        self._counts: Counter[tuple[_Path, str]] = Counter()

    def attributes_with_unknown_fields(
        self, descriptor: Any, path: _Path = (), closing: str = ""
    ) -> Iterator[tuple[_Path, str]]:
        """The way to each node and the name of each attribute whose value has some."""
        for name in self._fields(closing):
            field = descriptor.fields_by_name.get(name)
            if field is None or field.message_type is None:
                self._skip_value()
            elif descriptor is NodeDef.DESCRIPTOR and name == "attr":
                yield from ((path, attribute) for attribute in self._attributes())
            elif field.message_type.GetOptions().map_entry:
                self._skip_value()
            else:
                for _ in self._messages():
                    number = self._counts[path, name] if field.is_repeated else None
                    self._counts[path, name] += 1
                    inner = (*path, (name, number))
                    yield from self.attributes_with_unknown_fields(field.message_type, inner, "}>")

    def _attributes(self) -> Iterator[str]:
        for _ in self._messages():
            key, has_unknown = self._entry()
            if has_unknown:
                yield key

    def _entry(self) -> tuple[str, bool]:
        """The key of an attribute, and whether its value has unknown fields."""
        key, has_unknown = "", False
        for name in self._fields("}>"):
            if name == "key":
                self._tokens.TryConsume(":")
                key = cast(str, self._tokens.ConsumeString())
            elif name == "value":
                for _ in self._messages():
                    has_unknown |= self._has_unknown(AttrValue.DESCRIPTOR)
            else:
                has_unknown = True
                self._skip_value()
        return key, has_unknown

    def _has_unknown(self, descriptor: Any) -> bool:
        found = False
        for name in self._fields("}>"):
            field = descriptor.fields_by_name.get(name)
            if field is None or field.message_type is None:
                found |= field is None
                self._skip_value()
                continue
            for _ in self._messages():
                found |= self._has_unknown(field.message_type)
        return found

    def _fields(self, closing: str) -> Iterator[str]:
        """The name of each field up to the end of the message; the caller consumes the value."""
        while not self._tokens.AtEnd():
            token = cast(str, self._tokens.token)
            self._tokens.NextToken()
            if closing and token in closing:
                return
            if token not in ",;":
                yield token

    def _messages(self) -> Iterator[None]:
        """One step inside each message of a field's value: one, or several in a list."""
        self._tokens.TryConsume(":")
        is_list = self._tokens.TryConsume("[")
        while not (is_list and self._tokens.TryConsume("]")):
            self._tokens.NextToken()  # the opening bracket
            yield
            if not is_list:
                return
            self._tokens.TryConsume(",")

    def _skip_value(self) -> None:
        """One number or word, adjacent strings, or all up to the matching bracket."""
        self._tokens.TryConsume(":")
        depth = 0
        while not self._tokens.AtEnd():
            token = cast(str, self._tokens.token)
            self._tokens.NextToken()
            depth += (token in _OPENING) - (token in _CLOSING)
            is_joined = token[0] in "\"'" and cast(str, self._tokens.token)[:1] in ("'", '"')
            if depth == 0 and not is_joined:
                return
