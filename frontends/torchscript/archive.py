"""The archive that torch.jit.save writes: code, and objects whose tensors are mapped."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import ComplexType
from xdsl.ir import Attribute

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import (
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    ui8,
    ui16,
    ui32,
    ui64,
)
from lowerdeck.frontends.pickles import Made, Name, PickleError, Stored, read_pickle
from lowerdeck.frontends.pt2.archive import ArchiveError, Entries, Strided, UnreadError
from lowerdeck.frontends.torchscript.code import Code

_MOST = 1 << 28
"""Bytes of a pickle."""

_DEEPEST = 100
"""Objects inside of one another."""

ELEMENTS: dict[int, Attribute] = {
    0: ui8,
    1: i8,
    2: i16,
    3: i32,
    4: i64,
    5: f16,
    6: f32,
    7: f64,
    9: ComplexType(f32),
    10: ComplexType(f64),
    11: i1,
    15: bf16,
    27: ui16,
    28: ui32,
    29: ui64,
}
"""Element types by PyTorch's own numbers of them."""

_STORAGES = {
    "ByteStorage": ui8,
    "CharStorage": i8,
    "ShortStorage": i16,
    "IntStorage": i32,
    "LongStorage": i64,
    "HalfStorage": f16,
    "FloatStorage": f32,
    "DoubleStorage": f64,
    "BoolStorage": i1,
    "QInt8Storage": i8,
    "QUInt8Storage": ui8,
    "BFloat16Storage": bf16,
    "ComplexFloatStorage": ComplexType(f32),
    "ComplexDoubleStorage": ComplexType(f64),
}


QUANTIZED = "torch._utils._rebuild_qtensor"
"""What makes a quantized tensor; behind its strides are a scheme and its numbers."""

_TENSORS = ("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor", QUANTIZED)


def storage_element(name: object) -> Attribute:
    """The element type of a class of storages."""
    found = _STORAGES.get(name.name) if isinstance(name, Name) else None
    if found is None:
        raise UnreadError(f"found elements of {name}, which are not read")
    return found


def strided_tensor(made: Made) -> tuple[Stored, Strided, bool]:
    """The storage of a pickled tensor, its place in it, and whether it is a parameter."""
    if made.name not in _TENSORS:
        raise UnreadError(f"found a tensor made by {made.name or 'something'}, which is not read")
    stored, offset, sizes, strides, *rest = made.args
    key: Any = stored.key if isinstance(stored, Stored) else None
    if not isinstance(stored, Stored) or not isinstance(key, tuple):
        raise ArchiveError("a tensor without a storage")
    numbers = [offset, *sizes, *strides]
    if any(type(number) is not int or number < 0 for number in numbers):
        raise ArchiveError("a tensor whose sizes are no numbers")
    if len(sizes) != len(strides):
        raise ArchiveError("a tensor with other strides than sizes")
    element = storage_element(cast("tuple[Any, ...]", key)[1])
    return stored, Strided(element, offset, sizes, strides), bool(rest and rest[0] is True)


class ScriptArchive(Entries):
    """An opened archive: its code, its model and the constants of its code."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        if not self.has("constants.pkl") or not self.under("code/"):
            raise ArchiveError("an archive without code (code/), which one of TorchScript has")
        self.require_order()
        self.code = Code(self)

    def pickled(self, name: str) -> Any:
        """The data of a pickle, as it is recorded."""
        try:
            return read_pickle(io.BytesIO(self.read(name, _MOST)))
        except PickleError as error:
            raise ArchiveError(f"'{name}': {error}") from None

    def constant(self, folder: str, made: Made, name: str) -> ConstantOp:
        """The constant that a pickled tensor is."""
        stored, form, _ = strided_tensor(made)
        start, size = self.range(f"{folder}/{storage_key(stored)}")
        return form.constant(self.path, start, size, name)


def storage_key(stored: Stored) -> str:
    """The name of the entry that holds a storage."""
    key: Any = stored.key
    if len(key) < 5 or key[0] != "storage" or not isinstance(key[2], str):
        raise ArchiveError("a storage without a name")
    return cast(str, key[2])


class Reader:
    """
    What recorded data stands for; `special` is called for all that is no list, number or text, with
    its place. What is shared stays shared.
    """

    def __init__(self, special: Callable[[Made, str], Any]) -> None:
        self._special = special
        self._known: dict[int, Any] = {}
        self._depth = 0

    def read(self, value: Any, path: str = "") -> Any:
        """The value that recorded data is."""
        if isinstance(value, Name | Stored):
            raise ArchiveError(f"{value} in the place of data")
        if not isinstance(value, Made | list | tuple | dict):
            return value
        key = id(cast(object, value))
        if key not in self._known:
            self._depth += 1
            if self._depth > _DEEPEST:
                raise ArchiveError("objects too deep inside of one another")
            self._known[key] = self._read(value, path)
            self._depth -= 1
        return self._known[key]

    def _read(self, value: Any, path: str) -> Any:
        if isinstance(value, Made):
            if value.name.startswith("torch.jit._pickle.") and value.args:
                return self.read(value.args[0], path)
            if value.name == "collections.OrderedDict":
                return {key: self.read(item, f"{path}.{key}") for key, item in value.pairs}
            return self._special(value, path)
        if isinstance(value, dict):
            pairs = cast("dict[Any, Any]", value).items()
            return {key: self.read(item, f"{path}.{key}".strip(".")) for key, item in pairs}
        items = [self.read(item, f"{path}.{k}") for k, item in enumerate(value)]
        return tuple(items) if isinstance(value, tuple) else items
