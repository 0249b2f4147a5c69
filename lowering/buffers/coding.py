"""
Ops as bytes, and back: what a process keeps of kernels, and leaves to others.

The bytes are the same in every process for ops that are the same but for the names of values, so
that they also tell whether ops are. Locations are numbers, whose meaning is the caller's. This is
several times as quick as text, which has to be parsed.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from io import BytesIO
from operator import itemgetter
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Data, Operation, Region, SSAValue

from lowerdeck.dialects.blob import INLINE_BYTES, Blob
from lowerdeck.dialects.walking import operands_of

_FORMAT = 2
"""The version of `marshal` whose bytes do not depend on which parts are one object."""

_OURS = ("lowerdeck.dialects.", "xdsl.dialects.")
"""Where ops are defined that mean the same everywhere."""

Row: TypeAlias = tuple[Any, ...]
"""An op, a block or a region as plain values."""

_Entries: TypeAlias = Sequence[tuple[str, int]]
_Parts: TypeAlias = tuple[Sequence[int], Sequence[int], _Entries, _Entries, Sequence[Row]]
"""Of an op: operands, types of results, properties, attributes and regions."""


class UncodableError(Exception):
    """Ops that cannot be told by bytes: of plugins, or from places that the caller did not list."""


def encode(op: Operation, places: Mapping[Attribute, int], without: Collection[str] = ()) -> bytes:
    """
    An op with its regions, without some properties of its own; `places` numbers locations.

    UncodableError for ops from outside, with operands or successors from outside, or elsewhere.
    """
    coder = _Encoder(places)
    return coder.finish(coder.row(op, without))


def encode_region(region: Region) -> bytes:
    """
    What a region computes: without locations, and whatever order its properties have.
    UncodableError as for `encode`.
    """
    coder = _Encoder(None)
    return coder.finish(coder.blocks(region))


def decode(data: bytes, locations: Sequence[LocationAttr]) -> Operation:
    """The op that `encode` was given, with other locations in place of those that it numbered."""
    attributes, row = marshal.loads(data)
    return _Decoder([_attribute(each) for each in attributes], locations).op(row)


class _Encoder:
    def __init__(self, places: Mapping[Attribute, int] | None) -> None:
        self._places = places
        self._numbers: dict[SSAValue, int] = {}
        self._attributes: dict[Attribute, int] = {}

    def finish(self, content: Row) -> bytes:
        """The bytes of what was encoded, and of the attributes that it has."""
        return marshal.dumps((tuple(map(_bytes, self._attributes)), content), _FORMAT)

    def row(self, op: Operation, without: Collection[str] = ()) -> Row:
        cls, numbers, attribute = type(op), self._numbers, self._attribute
        if op.successors:
            raise UncodableError(f"{op.name} goes to other blocks")
        try:
            operands = tuple([numbers[value] for value in operands_of(op)])
        except KeyError:
            raise UncodableError(f"{op.name} has an operand from outside") from None
        properties, attributes = op.properties.items(), op.attributes.items()
        if self._places is None:  # nobody reads them
            properties, attributes = sorted(properties, key=_key), sorted(attributes, key=_key)
        row = (
            _name(cls),
            self._place(op),
            operands,
            tuple([attribute(type_) for type_ in op.result_types]),
            tuple([(k, attribute(v)) for k, v in properties if k not in without]),
            tuple([(k, attribute(v)) for k, v in attributes]),
            tuple([self.blocks(region) for region in op.regions]),
        )
        for result in op.results:
            numbers[result] = len(numbers)
        return row

    def blocks(self, region: Region) -> Row:
        rows: list[Row] = []
        for block in region.blocks:
            types = tuple([self._attribute(type_) for type_ in block.arg_types])
            for argument in block.args:
                self._numbers[argument] = len(self._numbers)
            rows.append((types, tuple([self.row(op) for op in block.ops])))
        return tuple(rows)

    def _attribute(self, attribute: Attribute) -> int:
        return self._attributes.setdefault(attribute, len(self._attributes))

    def _place(self, op: Operation) -> int:
        """The number of a location; -1 if there is none."""
        if self._places is None or op.location is UNKNOWN_LOC or op.location == UNKNOWN_LOC:
            return -1
        if (number := self._places.get(op.location)) is None:
            raise UncodableError(f"{op.name} comes from elsewhere")
        return number


_key = itemgetter(0)


class _Decoder:
    def __init__(self, attributes: Sequence[Attribute], locations: Sequence[LocationAttr]) -> None:
        self._attributes = attributes
        self._locations = [*locations, UNKNOWN_LOC]
        self._values: list[SSAValue] = []

    def op(self, row: Row) -> Operation:
        name, place, *parts = row
        operands, results, properties, attributes, regions = cast(_Parts, parts)
        known, values = self._attributes, self._values
        op = _class(name).create(
            operands=[values[number] for number in operands],
            result_types=[known[number] for number in results],
            properties={key: known[number] for key, number in properties},
            attributes={key: known[number] for key, number in attributes},
            location=self._locations[cast(int, place)],
            regions=[self._region(blocks) for blocks in regions],
        )
        values.extend(op.results)
        return op

    def _region(self, rows: Row) -> Region:
        region = Region()
        for types, ops in rows:
            numbers = cast("Sequence[int]", types)
            block = Block(arg_types=[self._attributes[number] for number in numbers])
            self._values.extend(block.args)
            region.add_block(block)
            for row in ops:
                block.add_op(self.op(row))
        return region


@cache
def _name(cls: type[Operation]) -> str:
    if not cls.__module__.startswith(_OURS):
        raise UncodableError(f"{cls.name} is an op from outside")
    return f"{cls.__module__}:{cls.__qualname__}"


@cache
def _class(name: str) -> type[Operation]:
    module, _, qualified = name.partition(":")
    found: Any = import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    return cast("type[Operation]", found)


class _Pickler(pickle.Pickler):
    """Writes what an attribute is made of, and nothing that was computed of it."""

    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, 5)
        self.fast = True  # the bytes do not depend on which parts are one object

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Blob):
            if obj.size > INLINE_BYTES:
                raise UncodableError("there are weights among the ops")
            return _blob, (bytes(obj.data),)
        if not isinstance(obj, Attribute):
            return NotImplemented
        if not type(obj).__module__.startswith(_OURS):
            raise UncodableError(f"{obj} is an attribute from outside")
        is_data = isinstance(obj, Data)
        content = cast("Data[Any]", obj).data if is_data else cast(Any, obj).parameters
        return _made, (type(obj), content)


def _made(cls: Any, content: Any) -> Attribute:
    return cls.new(content)


def _blob(data: bytes) -> Blob:
    return Blob(memoryview(data), len(data), None, 0)


@lru_cache(maxsize=1 << 12)
def _bytes(attribute: Attribute) -> bytes:
    file = BytesIO()
    _Pickler(file).dump(attribute)
    return file.getvalue()


@lru_cache(maxsize=1 << 9)
def _attribute(data: bytes) -> Attribute:
    return pickle.loads(data)
