"""
Files of weights alone: tensors by name, as constants that stay in the file where they can.

Read are what PyTorch (`.pth`, both forms), safetensors, numpy (`.npz`), PaddlePaddle (`.pdparams`)
and MindSpore (`.ckpt`) write. Nothing is executed: pickles are read as records (`pickles.py`).
"""

from __future__ import annotations

import io
import json
import math
import mmap
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import element_of, numpy_dtype, tensor
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.numpy_files import read_numpy
from lowerdeck.frontends.pickles import Made, Name, PickleError, Stored, read_pickle
from lowerdeck.frontends.pt2.archive import ArchiveError, Entries
from lowerdeck.frontends.torchscript.archive import (
    Reader,
    storage_element,
    storage_key,
    strided_tensor,
)
from lowerdeck.frontends.wire import ScanError, decoded

Weights = dict[str, ConstantOp]

_LEGACY = 0x1950A86A20F9469CFC6C
"""What a file of `torch.save` before PyTorch 1.6 begins with, as a pickled number."""

_MOST_HEADER = 1 << 27
"""Bytes of a header, or of a pickle."""

_DTYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "U16": np.uint16,
    "I16": np.int16,
    "U32": np.uint32,
    "I32": np.int32,
    "U64": np.uint64,
    "I64": np.int64,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F32": np.float32,
    "F64": np.float64,
}
"""Element types as safetensors names them."""

_OF_MINDSPORE = {
    "Bool": "BOOL",
    "UInt8": "U8",
    "Int8": "I8",
    "UInt16": "U16",
    "Int16": "I16",
    "UInt32": "U32",
    "Int32": "I32",
    "UInt64": "U64",
    "Int64": "I64",
    "Float16": "F16",
    "BFloat16": "BF16",
    "Float32": "F32",
    "Float64": "F64",
}

_WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "params", "params_ema")
"""Keys under which training programs keep a state_dict among other things."""

_BROKEN = (
    ArchiveError,
    PickleError,
    ScanError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    EOFError,
    RecursionError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def read_weights(path: str) -> Weights:
    """The tensors of a file by name; FrontendError if it is none of the kinds that are read."""
    try:
        with open(path, "rb") as file:
            head = file.read(16)
        return _reader(head)(path)
    except FrontendError:
        raise
    except _BROKEN as error:
        reason = getattr(error, "strerror", None) or error
        raise FrontendError.of_file(path, f"no weights can be read: {str(reason)[:300]}") from None


def _reader(head: bytes) -> Callable[[str], Weights]:
    if head.startswith(b"PK"):
        return _read_zip
    if head.startswith(b"\x80"):
        return _read_pickles
    size = int.from_bytes(head[:8], "little")
    if head[8:9] == b"{" and size < _MOST_HEADER:
        return _read_safetensors
    if head.startswith(b"\n"):
        return _read_checkpoint
    raise ArchiveError(
        "its form is not known, expected .pth, .safetensors, .npz, .pdparams or .ckpt of MindSpore"
    )


# Zip archives: numpy's, and PyTorch's since 1.6


def _read_zip(path: str) -> Weights:
    entries = Entries(path)
    if all(name.endswith(".npy") for name in entries.entries):
        found = cast("dict[str, NDArray[Any]]", read_numpy(path))
        return {name: ConstantOp.of(array) for name, array in found.items()}
    if entries.has("constants.pkl") or not entries.has("data.pkl"):
        raise ArchiveError("it is a model itself, expected weights alone (a state_dict)")
    entries.require_order()
    found = read_pickle(io.BytesIO(entries.read("data.pkl", _MOST_HEADER)))

    def constant(stored: Stored, form: Any, name: str) -> ConstantOp:
        start, size = entries.range(f"data/{storage_key(stored)}")
        return form.constant(path, start, size, name)

    return _of_torch(found, constant)


def _of_torch(found: Any, constant: Callable[[Stored, Any, str], ConstantOp]) -> Weights:
    """The tensors of a pickled state_dict."""

    def special(made: Made, place: str) -> Any:
        if made.name == "torch._utils._rebuild_parameter":
            return special(made.args[0], place)
        if made.name.startswith("torch._utils._rebuild_tensor"):
            stored, form, _ = strided_tensor(made)
            return constant(stored, form, place)
        return made

    values: Any = Reader(special).read(found)
    for wrapper in _WRAPPERS:
        if isinstance(values, dict) and isinstance(cast("Any", values).get(wrapper), dict):
            values = cast("Any", values)[wrapper]
            break
    if isinstance(values, Made):
        raise ArchiveError(
            f"it is a pickled object of {values.name or 'a class'}, expected a state_dict: "
            "torch.save(model.state_dict(), 'weights.pth')"
        )
    if not isinstance(values, dict) or "param_groups" in values:
        raise ArchiveError("it is no state_dict, such as the state of an optimizer")
    weights = {
        str(key): value
        for key, value in cast("dict[Any, Any]", values).items()
        if isinstance(value, ConstantOp)
    }
    if not weights:
        raise ArchiveError("it holds no tensors by name, expected a state_dict")
    if all(name.startswith("module.") for name in weights):  # of DataParallel
        return {name.removeprefix("module."): value for name, value in weights.items()}
    return weights


# Pickles: PyTorch's before 1.6, and PaddlePaddle's


def _read_pickles(path: str) -> Weights:
    with open(path, "rb") as file:
        found = read_pickle(file)
        if found != _LEGACY:
            return _of_paddle(found)
        read_pickle(file)  # the version of the protocol
        read_pickle(file)  # the sizes of types of the machine
        found = read_pickle(file)
        keys = read_pickle(file)
        sizes = _storage_sizes(found)
        places: dict[str, tuple[int, int]] = {}
        for key in keys:
            dtype = numpy_dtype(sizes[key])
            count = int.from_bytes(file.read(8), "little")
            places[key] = file.tell(), count * dtype.itemsize
            file.seek(places[key][0] + places[key][1])

    def constant(stored: Stored, form: Any, name: str) -> ConstantOp:
        start, size = places[storage_key(stored)]
        return form.constant(path, start, size, name)

    return _of_torch(found, constant)


def _storage_sizes(found: Any) -> dict[str, Attribute]:
    """The element type of each storage that pickled data names."""
    elements: dict[str, Attribute] = {}
    seen: set[int] = set()
    waiting: list[Any] = [found]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Stored):
            elements[storage_key(one)] = storage_element(one.key[1])
        elif isinstance(one, Made):
            waiting += [*one.args, one.state, *one.items, *(pair[1] for pair in one.pairs)]
        elif isinstance(one, dict):
            waiting += cast("dict[Any, Any]", one).values()
        elif isinstance(one, list | tuple):
            waiting += cast("list[Any]", one)
    return elements


def _of_paddle(found: Any) -> Weights:
    """Arrays by the names that parameters have in a program."""
    if not isinstance(found, dict):
        raise ArchiveError("a pickle that is no dictionary of tensors")
    values = cast("dict[Any, Any]", found)
    names: Any = values.get("StructuredToParameterName@@", {})
    weights: Weights = {}
    for key, value in values.items():
        if isinstance(value, Made) and value.name.endswith(".tuple") and value.args:
            name, value = value.args[0]
            names = {**names, key: name}
        array = _array_of(value)
        if array is not None:
            weights[str(names.get(key, key))] = ConstantOp.of(array)
    if not weights:
        raise ArchiveError("a pickle without arrays by name")
    return weights


_KIND = re.compile("[biufc][1248]|c16|O8")
"""What numpy's pickles call types: a kind and its bytes. It reads more than that."""


def _array_of(value: Any) -> NDArray[Any] | None:
    """The numpy array that a pickled object is."""
    if not isinstance(value, Made) or not value.name.endswith("multiarray._reconstruct"):
        return None
    _, shape, dtype, is_fortran, data = value.state
    if isinstance(data, Made) and data.name == "_codecs.encode":
        data = str(data.args[0]).encode("latin1")
    if not isinstance(dtype, Made) or not isinstance(dtype.what, Name):
        raise ArchiveError("an array without a type")
    kind = str(dtype.args[0])
    if not _KIND.fullmatch(kind):
        raise ArchiveError(f"an array of {kind[:40]}")
    found = np.dtype(kind)
    if found.hasobject or not isinstance(data, bytes | bytearray):
        raise ArchiveError(f"an array of {found}")
    order = "F" if is_fortran else "C"
    array = np.frombuffer(bytes(data), found.newbyteorder("<")).reshape(tuple(shape), order=order)
    return np.ascontiguousarray(array).reshape(tuple(shape))


# safetensors


def _read_safetensors(path: str) -> Weights:
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = json.loads(file.read(size))
    weights: Weights = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        kind = element_of(np.dtype(_DTYPES[entry["dtype"]]))
        shape = [int(length) for length in entry["shape"]]
        begin, end = entry["data_offsets"]
        if (
            end - begin != math.prod(shape) * numpy_dtype(kind).itemsize
            or min(shape, default=0) < 0
        ):
            raise ArchiveError(f"'{name}' of shape {shape} in {end - begin} bytes")
        blob = Blob.map(path, 8 + size + begin, end - begin)
        weights[name] = ConstantOp(BlobAttr(blob), tensor(kind, shape))
    return weights


# MindSpore's checkpoints


def _read_checkpoint(path: str) -> Weights:
    """Message Checkpoint: values (1), each a name (1) and a tensor (2); large ones in pieces."""
    with open(path, "rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    pieces: dict[str, tuple[list[int], np.dtype[Any], list[memoryview]]] = {}
    for value in decoded(data)[1]:
        parts = decoded(cast(memoryview, value))
        name = bytes(cast(memoryview, parts[1][0])).decode()
        held = decoded(cast(memoryview, parts[2][0]))
        dims = [int(cast(int, dim)) for dim in held.get(1, [])]
        kind = bytes(cast(memoryview, held[2][0])).decode()
        dtype = np.dtype(_DTYPES[_OF_MINDSPORE[kind]])
        known = pieces.setdefault(name, (dims, dtype, []))
        known[2].append(cast(memoryview, held[3][0]))
    weights: Weights = {}
    for name, (dims, dtype, parts) in pieces.items():
        array = np.frombuffer(b"".join(parts), dtype)
        shape = [] if dims == [0] and array.size == 1 else dims
        weights[name] = ConstantOp.of(array.reshape(shape))
    return weights
