"""
Weights: an NDArray file, `.params`, whose arrays are mapped where they lie.

The forms are those that `NDArray::Save` of MXNet has had (`src/ndarray/ndarray.cc`): without a
magic number, and versions 1 to 3. Sparse arrays are expanded.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import struct
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import MAX_RANK, element_of, numpy_dtype, tensor
from lowerdeck.frontends.mxnet.symbol import SymbolError

MAGIC = struct.pack("<QQ", 0x112, 0)
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_MOST_ARRAYS = 1 << 20
_MOST_EXPANDED = 1 << 28
"""Elements of a sparse array when it is expanded."""

_DTYPES = (
    np.float32,
    np.float64,
    np.float16,
    np.uint8,
    np.int32,
    np.int8,
    np.int64,
    np.bool_,
    np.int16,
    np.uint16,
    np.uint32,
    np.uint64,
    ml_dtypes.bfloat16,
)
"""By the number that stands for them."""

_ROW_SPARSE, _CSR = 1, 2
_INDICES = {_ROW_SPARSE: 1, _CSR: 2}
"""How many arrays of indices a kind of sparse array has."""


def element_numbered(number: int) -> Attribute:
    """The element type of a number; SymbolError for any other."""
    if not 0 <= number < len(_DTYPES):
        raise SymbolError(f"elements of type {number}")
    return element_of(np.dtype(_DTYPES[number]))


def is_weights(path: str) -> bool:
    """True if a file begins as those with NDArrays do; OSError if it cannot be read."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def weights_beside(path: str) -> list[str]:
    """The files `NAME-0000.params` of any epoch beside `NAME-symbol.json`."""
    folder, name = os.path.split(path)
    stem = os.path.splitext(name)[0].removesuffix("-symbol")
    pattern = re.compile(re.escape(stem) + r"(-\d+)?\.params\Z")
    try:
        return sorted(
            os.path.join(folder, each) for each in os.listdir(folder or ".") if pattern.match(each)
        )
    except OSError:
        return []


def read_weights(path: str) -> Mapping[str, ConstantOp]:
    """
    The arrays by name, without the `arg:` and `aux:` before it; SymbolError if the file is broken,
    OSError if it cannot be read.
    """
    if not os.path.getsize(path):
        raise SymbolError(f"{path} is empty")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        try:
            if bytes(view[: len(MAGIC)]) != MAGIC:
                raise SymbolError(f"{path} is no file of NDArrays, which begin with 0x112")
            return _Reader(path, view).arrays()
        finally:
            view.release()


class _Reader:
    """Reads a file from the front."""

    def __init__(self, path: str, view: memoryview) -> None:
        self._path = path
        self._view = view
        self._position = len(MAGIC)

    def arrays(self) -> dict[str, ConstantOp]:
        count = self._count()
        arrays = [self._array() for _ in range(count)]
        names = [self._text() for _ in range(self._count())]
        if len(names) != count:
            raise SymbolError(f"{self._path} has {len(names)} names for {count} arrays")
        bare = [re.sub(r"^(arg|aux):", "", name) for name in names]
        return {name: op for name, op in zip(bare, arrays, strict=True) if op is not None}

    # Parts

    def _numbers(self, form: str) -> tuple[int, ...]:
        size = struct.calcsize(form)
        if size > len(self._view) - self._position:
            raise SymbolError(f"{self._path} ends within an array")
        found = struct.unpack_from(form, self._view, self._position)
        self._position += size
        return found

    def _number(self, form: str) -> int:
        return self._numbers(form)[0]

    def _count(self) -> int:
        count = self._number("<Q")
        if count > min(_MOST_ARRAYS, len(self._view)):
            raise SymbolError(f"{self._path} states {count} arrays")
        return count

    def _text(self) -> str:
        size = self._number("<Q")
        if size > len(self._view) - self._position:
            raise SymbolError(f"{self._path} ends within a name")
        data = bytes(self._view[self._position : self._position + size])
        self._position += size
        return data.decode("utf-8", "replace")

    def _shape(self, rank: int, form: str = "q") -> list[int]:
        if rank > MAX_RANK:
            raise SymbolError(f"{self._path}: an array of {rank} dimensions")
        dims = list(self._numbers(f"<{rank}{form}"))
        if any(not 0 <= dim < 1 << 48 for dim in dims):
            raise SymbolError(f"{self._path}: an array of sizes {dims}")
        return dims

    def _array(self) -> ConstantOp | None:
        """An array, or None for one that has no elements and no shape."""
        begin = self._number("<I")
        if begin in (_V2, _V3):
            kind = self._number("<i")
            if kind in _INDICES:
                return self._sparse(kind)
            if kind != 0:
                raise SymbolError(f"{self._path}: an array of storage type {kind}")
            rank = self._number("<i")
            if rank < 0 or (rank == 0 and begin == _V2):
                return None
            return self._dense(self._shape(rank))
        rank = self._number("<i") if begin == _V1 else begin
        dims = self._shape(max(rank, 0), "q" if begin == _V1 else "I")
        return self._dense(dims) if dims else None

    def _element(self) -> Attribute:
        self._numbers("<ii")  # the device
        return element_numbered(self._number("<i"))

    def _dense(self, dims: list[int]) -> ConstantOp:
        element = self._element()
        size = self._size(dims, element)
        blob = Blob.map(self._path, self._position, size)
        self._position += size
        return ConstantOp(BlobAttr(blob), tensor(element, dims))

    def _size(self, dims: list[int], element: Attribute) -> int:
        """The bytes of elements that come next."""
        size = math.prod(dims) * numpy_dtype(element).itemsize
        if size > len(self._view) - self._position:
            raise SymbolError(f"{self._path} ends within an array of {size} bytes")
        return size

    def _elements(self, dims: list[int], element: Attribute) -> NDArray[Any]:
        size = self._size(dims, element)
        data = bytes(self._view[self._position : self._position + size])
        self._position += size
        return np.frombuffer(data, numpy_dtype(element)).reshape(dims)

    def _sparse(self, kind: int) -> ConstantOp:
        """A sparse array, expanded: rows that are there, or elements of rows (CSR)."""
        stored = self._shape(max(self._number("<i"), 0))
        dims = self._shape(max(self._number("<i"), 0))
        element = self._element()
        kinds = [
            (element_numbered(self._number("<i")), self._shape(max(self._number("<i"), 0)))
            for _ in range(_INDICES[kind])
        ]
        data = self._elements(stored, element)
        indices = [self._elements(shape, each).astype(np.int64) for each, shape in kinds]
        if math.prod(dims) > _MOST_EXPANDED:
            raise SymbolError(f"{self._path}: a sparse array of sizes {dims}")
        whole: NDArray[Any] = np.zeros(dims, numpy_dtype(element))
        try:
            if kind == _ROW_SPARSE:
                whole[indices[0]] = data
            else:
                starts, columns = indices
                rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
                whole[rows, columns] = data
        except (IndexError, ValueError) as error:
            raise SymbolError(f"{self._path}: a sparse array is broken: {error}") from None
        return ConstantOp.of(whole)
