"""Writes symbols of MXNet and NDArray files by hand, in the forms that versions have had."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA

_NUMBERS = {
    name: number
    for number, name in enumerate(
        "float32 float64 float16 uint8 int32 int8 int64 bool int16 uint16 uint32 uint64".split()
    )
}


def variable(name: str, **attributes: str) -> dict[str, Any]:
    """A node without operator."""
    return {"op": "null", "name": name, "attrs": attributes, "inputs": []}


def node(op: str, name: str, *inputs: int, key: str = "attrs", **attributes: str) -> dict[str, Any]:
    """A node whose inputs are the first results of others."""
    entries = [[number, 0, 0] for number in inputs]
    return {"op": op, "name": name, key: attributes, "inputs": entries}


def write_symbol(
    folder: Path, nodes: Sequence[Mapping[str, Any]], /, *, version: int | None = 10901, **more: Any
) -> Path:
    """A symbol whose last node is the result."""
    data: dict[str, Any] = {
        "nodes": nodes,
        "arg_nodes": [k for k, each in enumerate(nodes) if each["op"] == "null"],
        "heads": [[len(nodes) - 1, 0, 0]],
    }
    if version is not None:
        data["attrs"] = {"mxnet_version": ["int", version]}
    path = folder / "net-symbol.json"
    path.write_text(json.dumps({**data, **more}))
    return path


def dense(array: Array, form: int) -> bytes:
    """An array as a version wrote it; 0 is the form without a number."""
    kind = struct.pack("<iii", 1, 0, _NUMBERS[str(array.dtype)])
    shape = array.shape
    if form == 0:
        head = struct.pack(f"<I{len(shape)}I", len(shape), *shape)
    else:
        head = struct.pack("<I", form) + (struct.pack("<i", 0) if form != V1 else b"")
        head += struct.pack(f"<i{len(shape)}q", len(shape), *shape)
    return head + kind + array.tobytes()


def sparse(kind: int, shape: Sequence[int], data: Array, *indices: Array) -> bytes:
    """A sparse array: rows (1) or CSR (2)."""
    parts = [struct.pack("<Ii", V2, kind)]
    parts += [struct.pack(f"<i{len(dims)}q", len(dims), *dims) for dims in (data.shape, shape)]
    parts.append(struct.pack("<iii", 1, 0, _NUMBERS[str(data.dtype)]))
    for each in indices:
        parts.append(struct.pack("<i", _NUMBERS[str(each.dtype)]))
        parts.append(struct.pack(f"<i{each.ndim}q", each.ndim, *each.shape))
    return b"".join([*parts, data.tobytes(), *(each.tobytes() for each in indices)])


def write_weights(path: Path, arrays: Mapping[str, bytes]) -> Path:
    """A file with arrays by name."""
    names = [name.encode() for name in arrays]
    parts = [struct.pack("<QQQ", 0x112, 0, len(arrays)), *arrays.values()]
    parts.append(struct.pack("<Q", len(names)))
    parts += [struct.pack("<Q", len(name)) + name for name in names]
    path.write_bytes(b"".join(parts))
    return path
