"""Puts the bytes of constants into a file, so that printed IR can refer to them."""

from __future__ import annotations

from typing import IO

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, ParametrizedAttribute

from lowerdeck.dialects.blob import Blob, BlobAttr

_ALIGNMENT = 64


class WeightsFile:
    """
    The blobs written to one file, equal ones once.

    Blobs that lie in a file already, or are short enough to be printed, stay as they are.
    """

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._written: dict[Blob, BlobAttr] = {}

    def store(self, module: ModuleOp) -> None:
        """Write the constants of `module` that would print elided; they refer to the file then."""
        for op in module.walk():
            for entries in (op.properties, op.attributes):
                for name, attribute in entries.items():
                    if (stored := self._stored(attribute)) is not attribute:
                        entries[name] = stored

    def _stored(self, attribute: Attribute) -> Attribute:
        match attribute:
            case BlobAttr():
                return self._stored_blob(attribute)
            case ArrayAttr():
                items = attribute.data
                stored = [self._stored(item) for item in items]
                same = all(new is old for new, old in zip(stored, items, strict=True))
                return attribute if same else ArrayAttr(stored)
            case DictionaryAttr():
                entries = {name: self._stored(each) for name, each in attribute.data.items()}
                same = all(entries[name] is each for name, each in attribute.data.items())
                return attribute if same else DictionaryAttr(entries)
            case ParametrizedAttribute():
                stored = [self._stored(item) for item in attribute.parameters]
                if all(new is old for new, old in zip(stored, attribute.parameters, strict=True)):
                    return attribute
                return type(attribute).new(stored)
            case _:
                return attribute

    def _stored_blob(self, attribute: BlobAttr) -> BlobAttr:
        blob = attribute.data
        if blob.is_elided or not blob.is_anonymous:
            return attribute
        if blob not in self._written:
            self._file.write(bytes(-self._file.tell() % _ALIGNMENT))
            offset = self._file.tell()
            self._file.write(blob.data)
            stored = Blob(blob.data, blob.size, self._path, offset)
            self._written[blob] = BlobAttr(stored)
        return self._written[blob]


def has_anonymous_weights(module: ModuleOp) -> bool:
    """True if a constant of `module` would print elided."""
    return any(
        _is_anonymous(attribute)
        for op in module.walk()
        for attribute in (*op.properties.values(), *op.attributes.values())
    )


def _is_anonymous(attribute: Attribute) -> bool:
    match attribute:
        case BlobAttr():
            return attribute.data.is_anonymous
        case ArrayAttr():
            return any(map(_is_anonymous, attribute.data))
        case DictionaryAttr():
            return any(map(_is_anonymous, attribute.data.values()))
        case ParametrizedAttribute():
            return any(map(_is_anonymous, attribute.parameters))
        case _:
            return False
