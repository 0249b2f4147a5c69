"""A ProgramDesc as records: blocks of variables, which are mutable, and of operators."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from lowerdeck.dialects.records import record
from lowerdeck.frontends.paddle.elements import ProgramError
from lowerdeck.frontends.paddle.weights import packed
from lowerdeck.frontends.wire import ScanError, decoded

Fields: TypeAlias = "dict[int, list[int | memoryview]]"

_MOST_BYTES = 1 << 28
_TENSOR, _ARRAY = 7, 13


@record
class Variable:
    """A tensor by name, of the block that declares it."""

    name: str
    kind: int
    element: int
    """The number of its element type, -1 if it is no tensor."""
    dims: tuple[int, ...]
    is_persistable: bool

    @property
    def is_tensor(self) -> bool:
        """True for what is one tensor."""
        return self.kind == _TENSOR

    @property
    def is_array(self) -> bool:
        """True for an array of tensors."""
        return self.kind == _ARRAY


@record
class Call:
    """An operator: the names of variables by slot, and attributes."""

    op_type: str
    inputs: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, Any]

    @property
    def name(self) -> str:
        """How messages call it: by the first variable that it writes."""
        for names in (*self.outputs.values(), *self.inputs.values()):
            if names:
                return names[0]
        return self.op_type

    def input(self, slot: str) -> str:
        """The only name in a slot."""
        return _only(self.inputs, slot, self.op_type)

    def output(self, slot: str) -> str:
        """The only name in a slot of results."""
        return _only(self.outputs, slot, self.op_type)


def _only(slots: Mapping[str, tuple[str, ...]], slot: str, op_type: str) -> str:
    names = slots.get(slot, ())
    if len(names) != 1:
        raise ProgramError(f"{len(names)} variables as '{slot}' of {op_type}")
    return names[0]


@record
class Section:
    """A block of a program."""

    variables: Mapping[str, Variable]
    calls: tuple[Call, ...]


@record
class Program:
    """A whole program: its first section is the main one."""

    sections: tuple[Section, ...]
    version: int


def read_program(path: str) -> Program:
    """The program in a file; ProgramError or OSError."""
    with open(path, "rb") as file:
        if file.seek(0, 2) > _MOST_BYTES:
            raise ProgramError("the program is too large")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            data = memoryview(bytes(mapped))
    try:
        fields = decoded(data)
        sections = tuple(_section(decoded(block)) for block in _messages(fields, 1))
        versions = [_signed(_number(decoded(v), 1, 0)) for v in _messages(fields, 4)]
    except ScanError as error:
        raise ProgramError(str(error)) from None
    if not sections:
        raise ProgramError("it has no blocks")
    return Program(sections, versions[-1] if versions else 0)


def _section(fields: Fields) -> Section:
    variables = [_variable(decoded(data)) for data in _messages(fields, 3)]
    calls = tuple(_call(decoded(data)) for data in _messages(fields, 4))
    return Section({variable.name: variable for variable in variables}, calls)


def _variable(fields: Fields) -> Variable:
    kinds = list(_messages(fields, 2))
    kind = decoded(kinds[-1]) if kinds else {}
    element, dims = -1, ()
    for number in (3, 4):
        for data in _messages(kind, number):
            for described in _messages(decoded(data), 1):
                inner = decoded(described)
                element = _number(inner, 1, -1)
                dims = tuple(_ints(inner, 2))
    return Variable(
        _text(fields, 1), _number(kind, 1, -1), element, dims, bool(_number(fields, 3, 0))
    )


def _call(fields: Fields) -> Call:
    return Call(
        _text(fields, 3),
        _slots(fields, 1),
        _slots(fields, 2),
        dict(_attribute(decoded(data)) for data in _messages(fields, 4)),
    )


def _slots(fields: Fields, number: int) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for data in _messages(fields, number):
        inner = decoded(data)
        found[_text(inner, 1)] = tuple(_string(name) for name in _messages(inner, 2))
    return found


def _attribute(fields: Fields) -> tuple[str, Any]:
    """The name and the value of an attribute; a block is its number."""
    return _text(fields, 1), _value(fields, _number(fields, 2, -1))


def _value(fields: Fields, kind: int) -> Any:
    match kind:
        case 0:
            return _signed(_number(fields, 3, 0))
        case 1:
            return next(_floats(fields, 4, "f"), 0.0)
        case 2:
            return _text(fields, 5)
        case 3:
            return _ints(fields, 6)
        case 4:
            return list(_floats(fields, 7, "f"))
        case 5:
            return [_string(data) for data in _messages(fields, 8)]
        case 6:
            return bool(_number(fields, 10, 0))
        case 7:
            return [bool(number) for number in _ints(fields, 11)]
        case 8:
            return _number(fields, 12, 0)
        case 9:
            return _signed(_number(fields, 13, 0))
        case 10:
            return _ints(fields, 14)
        case 11:
            return _ints(fields, 15)
        case 12:
            return list(_floats(fields, 16, "d"))
        case 13:
            return _text(fields, 17)
        case 14:
            return [_string(data) for data in _messages(fields, 18)]
        case 15:
            return next(_floats(fields, 19, "d"), 0.0)
        case 16:
            return next((_scalar(decoded(data)) for data in _messages(fields, 20)), 0.0)
        case 17:
            return [_scalar(decoded(data)) for data in _messages(fields, 21)]
        case _:
            raise ProgramError(f"an attribute of kind {kind}")


def _scalar(fields: Fields) -> Any:
    match _number(fields, 1, 0):
        case 1:
            return bool(_number(fields, 2, 0))
        case 2:
            return _signed(_number(fields, 3, 0))
        case 3:
            return next(_floats(fields, 4, "d"), 0.0)
        case kind:
            raise ProgramError(f"a scalar of kind {kind}")


# Fields


def _messages(fields: Fields, number: int) -> Iterator[memoryview]:
    for entry in fields.get(number, ()):
        if isinstance(entry, int):
            raise ProgramError(f"a number in field {number}")
        yield entry


def _number(fields: Fields, number: int, default: int) -> int:
    entry = fields.get(number, [default])[-1]
    if not isinstance(entry, int):
        raise ProgramError(f"no number in field {number}")
    return entry


def _ints(fields: Fields, number: int) -> list[int]:
    found: list[int] = []
    for entry in fields.get(number, ()):
        found += [entry] if isinstance(entry, int) else list(packed(entry))
    return [_signed(value) for value in found]


def _floats(fields: Fields, number: int, form: str) -> Iterator[float]:
    size = struct.calcsize(form)
    for entry in _messages(fields, number):
        if len(entry) % size:
            raise ProgramError(f"{len(entry)} bytes of numbers in field {number}")
        yield from (value for (value,) in struct.iter_unpack(f"<{form}", entry))


def _signed(value: int) -> int:
    """A number of 64 bits in two's complement."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _text(fields: Fields, number: int) -> str:
    return next((_string(data) for data in reversed(list(_messages(fields, number)))), "")


def _string(data: memoryview) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise ProgramError("a text that is no UTF-8") from None
