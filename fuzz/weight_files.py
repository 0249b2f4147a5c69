"""
Files of weights alone as their programs write them, from arrays by name; and how PyTorch pickles.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.frontends.wire import bytes_field, number_field

Arrays = Mapping[str, NDArray[Any]]

_STORAGES = {"f": "FloatStorage", "d": "DoubleStorage", "l": "LongStorage", "?": "BoolStorage"}
_DTYPES = {"f": "F32", "d": "F64", "l": "I64", "?": "BOOL"}
"""What safetensors calls types."""


# Pickles


def text(value: str) -> bytes:
    """A text, pickled."""
    data = value.encode()
    return b"X" + len(data).to_bytes(4, "little") + data


def number(value: int) -> bytes:
    """An integer, pickled."""
    return b"J" + value.to_bytes(4, "little", signed=True)


def sizes(values: tuple[int, ...]) -> bytes:
    """A tuple of integers, pickled."""
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(key: int, array: NDArray[Any]) -> bytes:
    """A tensor whose storage has a key, pickled."""
    strides = tuple(step // array.itemsize for step in array.strides)
    storage = f"ctorch\n{_STORAGES[array.dtype.char]}\n".encode()
    stored = b"(" + text("storage") + storage + text(str(key)) + text("cpu") + number(array.size)
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + stored
        + b"tQ"
        + number(0)
        + sizes(array.shape)
        + sizes(strides)
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )


def state_dict(arrays: Arrays) -> bytes:
    """A dictionary of tensors, pickled."""
    items = b"".join(text(name) + tensor(k, one) for k, (name, one) in enumerate(arrays.items()))
    return b"\x80\x02}(" + items + b"u."


# Files


def _zip(arrays: Arrays) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("m/data.pkl", state_dict(arrays))
        for k, array in enumerate(arrays.values()):
            file.writestr(f"m/data/{k}", array.tobytes())
    return out.getvalue()


def _legacy(arrays: Arrays) -> bytes:
    """What PyTorch wrote before 1.6."""
    heads = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    parts = [pickle.dumps(head, 2) for head in heads]
    parts += [state_dict(arrays), pickle.dumps([str(k) for k in range(len(arrays))], 2)]
    for array in arrays.values():
        parts.append(struct.pack("<q", array.size) + array.tobytes())
    return b"".join(parts)


def _safetensors(arrays: Arrays) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in arrays.items():
        offsets = [len(data), len(data) + array.nbytes]
        dtype = _DTYPES[array.dtype.char]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": offsets}
        data += array.tobytes()
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + data


def _npz(arrays: Arrays) -> bytes:
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **arrays)
    return out.getvalue()


def _pdparams(arrays: Arrays) -> bytes:
    """By structured names, with the names of parameters beside them."""
    named: dict[str, Any] = {f"layer.{name}": array for name, array in arrays.items()}
    named["StructuredToParameterName@@"] = {f"layer.{name}": name for name in arrays}
    return pickle.dumps(named, 2)


def _checkpoint(arrays: Arrays) -> bytes:
    """What MindSpore writes."""
    parts: list[bytes] = []
    for name, array in arrays.items():
        dims = b"".join(number_field(1, size) for size in array.shape)
        kind = array.dtype.name.capitalize().encode()
        held = dims + bytes_field(2, kind) + bytes_field(3, array.tobytes())
        value = bytes_field(1, name.encode()) + bytes_field(2, held)
        parts.append(bytes_field(1, value))
    return b"".join(parts)


WRITERS: dict[str, Callable[[Arrays], bytes]] = {
    ".pth": _zip,
    "_old.pth": _legacy,
    ".safetensors": _safetensors,
    ".npz": _npz,
    ".pdparams": _pdparams,
    ".ckpt": _checkpoint,
}
"""By the ends of the names of files."""
