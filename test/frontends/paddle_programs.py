"""Small programs of PaddlePaddle, written as its own formats are: ProgramDesc, PIR and weights."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.frontends.wire import bytes_field, number_field

NUMBERS = {"bool": 0, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6}
_TYPES = {"bool": "t_bool", "int32": "t_i32", "int64": "t_i64", "float32": "t_f32"}
_ARRAY = 13

Slots = Mapping[str, str | Sequence[str]]


def write_weights(path: Path, weights: Mapping[str, NDArray[Any]]) -> None:
    """The tensors in the order of their names."""
    path.write_bytes(b"".join(_stream(weights[name]) for name in sorted(weights)))


def _stream(array: NDArray[Any]) -> bytes:
    described = number_field(1, NUMBERS[array.dtype.name])
    described += b"".join(number_field(2, size) for size in array.shape)
    head = struct.pack("<IQIi", 0, 0, 0, len(described))
    return head + described + array.tobytes()


# ProgramDesc


def variable(name: str, dtype: str, dims: Sequence[int], persistable: bool = False) -> bytes:
    """A tensor."""
    inner = number_field(1, NUMBERS[dtype])
    inner += b"".join(number_field(2, size & (1 << 64) - 1) for size in dims)
    type_ = number_field(1, 7) + bytes_field(3, bytes_field(1, inner))
    found = bytes_field(1, name.encode()) + bytes_field(2, type_)
    return found + number_field(3, int(persistable))


def array_variable(name: str, dtype: str) -> bytes:
    """An array of tensors."""
    inner = bytes_field(1, number_field(1, NUMBERS[dtype]))
    type_ = number_field(1, _ARRAY) + bytes_field(4, inner)
    return bytes_field(1, name.encode()) + bytes_field(2, type_)


def call(op_type: str, inputs: Slots, outputs: Slots, **attributes: Any) -> bytes:
    """An operator."""
    found = b"".join(bytes_field(1, _slot(*slot)) for slot in inputs.items())
    found += b"".join(bytes_field(2, _slot(*slot)) for slot in outputs.items())
    found += bytes_field(3, op_type.encode())
    for name, value in attributes.items():
        found += bytes_field(4, bytes_field(1, name.encode()) + _attribute(name, value))
    return found


def _slot(slot: str, names: str | Sequence[str]) -> bytes:
    listed = [names] if isinstance(names, str) else names
    return bytes_field(1, slot.encode()) + b"".join(bytes_field(2, n.encode()) for n in listed)


def _attribute(name: str, value: Any) -> bytes:
    def number(field: int, item: int) -> bytes:
        return number_field(field, item & (1 << 64) - 1)

    match value:
        case bool():
            return number_field(2, 6) + number(10, value)
        case int() if name == "sub_block":
            return number_field(2, 8) + number(12, value)
        case int():
            return number_field(2, 0) + number(3, value)
        case float():
            return number_field(2, 1) + b"\x25" + struct.pack("<f", value)
        case str():
            return number_field(2, 2) + bytes_field(5, value.encode())
        case [float(), *_]:
            parts = (b"\x3d" + struct.pack("<f", item) for item in value)
            return number_field(2, 4) + b"".join(parts)
        case _:
            return number_field(2, 3) + b"".join(number(6, item) for item in value)


def feed(name: str, place: int) -> bytes:
    """An input."""
    return call("feed", {"X": "feed"}, {"Out": name}, col=place)


def fetch(name: str, place: int) -> bytes:
    """An output."""
    return call("fetch", {"X": name}, {"Out": "fetch"}, col=place)


Block = tuple[Sequence[bytes], Sequence[bytes]]
"""Variables and operators."""


def write_program(
    path: Path,
    *blocks: Block,
    weights: Mapping[str, NDArray[Any]] | None = None,
    version: int = 2006002,
) -> Path:
    """A program beside its weights."""
    data = b""
    for number, (variables, calls) in enumerate(blocks):
        body = number_field(1, number) + number_field(2, max(number - 1, 0))
        body += b"".join(bytes_field(3, one) for one in variables)
        body += b"".join(bytes_field(4, one) for one in calls)
        data += bytes_field(1, body)
    path.write_bytes(data + bytes_field(4, number_field(1, version)))
    if weights is not None:
        write_weights(path.with_suffix(".pdiparams"), weights)
    return path


# PIR


def type_of(dtype: str, dims: Sequence[int]) -> dict[str, Any]:
    """A tensor type."""
    return {"#": "0.t_dtensor", "D": [{"#": f"0.{_TYPES[dtype]}"}, list(dims), "NCHW", [], 0]}


def array_type(dtype: str) -> dict[str, Any]:
    """The type of an array of tensors."""
    return {"#": "1.t_dense_tensor_array", "D": [{"#": f"0.{_TYPES[dtype]}"}, [], "NCHW"]}


def node(
    op_type: str,
    operands: Sequence[int],
    results: Mapping[int, Any],
    *regions: Any,
    **attributes: Any,
) -> dict[str, Any]:
    """An operator of PIR; results are types by number."""
    found: dict[str, Any] = {
        "#": op_type,
        "A": [{"N": name, "AT": _plain(value)} for name, value in attributes.items()],
        "I": [{"%": number} for number in operands],
        "O": [{"%": number, "TT": type_} for number, type_ in results.items()],
    }
    return found | ({"regions": list(regions)} if regions else {})


def _plain(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"#": "0.a_bool", "D": value}
        case int():
            return {"#": "0.a_i32", "D": value}
        case float():
            return {"#": "0.a_f32", "D": value}
        case str() if value in _TYPES:
            return {"#": "1.a_dtype", "D": value}
        case str():
            return {"#": "0.a_str", "D": value}
        case _:
            return {"#": "0.a_array", "D": [_plain(item) for item in value]}


def parameter(name: str, number: int, type_: Any) -> dict[str, Any]:
    """A weight."""
    return {"#": "p", "A": [0, 1, 1, name], "OA": [1, 0, 1], "O": {"%": number, "TT": type_}}


def region(nodes: Sequence[Any], arguments: Mapping[int, Any] | None = None) -> dict[str, Any]:
    """A region of one block."""
    given = [{"#": number, "TT": type_} for number, type_ in (arguments or {}).items()]
    return {"#": "r", "blocks": [{"#": "b", "args": given, "ops": list(nodes)}]}


def write_pir(
    path: Path, nodes: Sequence[Any], weights: Mapping[str, NDArray[Any]] | None = None
) -> Path:
    """A program of PIR beside its weights."""
    base = {"magic": "pir", "trainable": True, "version": 4}
    data = {"base_code": base, "program": {"regions": [region(nodes)]}}
    path.write_text(json.dumps(data, separators=(",", ":")))
    if weights is not None:
        write_weights(path.with_suffix(".pdiparams"), weights)
    return path


def floats(*values: Any) -> NDArray[np.float32]:
    """An array."""
    return np.array(values, np.float32)
