"""A model file: tensors, constants and operators as the import wants them."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ComplexType
from xdsl.ir import Attribute

from lowerdeck.dialects.blob import Blob, BlobAttr
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
    numpy_dtype,
    tensor,
    ui8,
    ui16,
    ui32,
    ui64,
)
from lowerdeck.dialects.records import record
from lowerdeck.dialects.tflite.ops import CUSTOM
from lowerdeck.dialects.tflite.quantization import Quantization
from lowerdeck.dialects.tflite.schema import builtins, schema
from lowerdeck.frontends.tflite.flatbuffer import FlatbufferError, Table, numbers
from lowerdeck.frontends.tflite.flexbuffer import read_map
from lowerdeck.frontends.tflite.sparse import expand

IDENTIFIER = b"TFL3"

ELEMENTS: dict[str, Attribute] = {
    "FLOAT32": f32,
    "FLOAT16": f16,
    "BFLOAT16": bf16,
    "FLOAT64": f64,
    "INT4": i8,
    "INT8": i8,
    "INT16": i16,
    "INT32": i32,
    "INT64": i64,
    "UINT8": ui8,
    "UINT16": ui16,
    "UINT32": ui32,
    "UINT64": ui64,
    "BOOL": i1,
    "COMPLEX64": ComplexType(f32),
    "COMPLEX128": ComplexType(f64),
}
"""The element types; integers of four bits are expanded."""

RESOURCE = "RESOURCE"

_MOST_ELEMENTS = 1 << 48
"""Of a tensor, leaving out sizes of 0: what numpy can say in bytes, whatever the type."""


@record
class TensorInfo:
    """What a subgraph says of one of its tensors."""

    name: str
    type: str
    """The name in the schema."""
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    """The shape with -1 for what is open."""
    buffer: int
    quantization: Quantization | None
    is_variable: bool
    table: Table

    @property
    def element(self) -> Attribute | None:
        """The element type; None for what no tensor of ours holds."""
        return ELEMENTS.get(self.type)


_WITH_MAPS = frozenset(
    {
        "Landmarks2TransformMatrix",
        "TFLite_Detection_PostProcess",
        "TransformLandmarks",
        "TransformTensorBilinear",
    }
)
"""The custom operators whose options are a map."""

VELA = "ethos-u"
"""The custom operator that Vela, the compiler for Arm's Ethos-U, makes of the others."""

_WITH_INTEGERS = {"Convolution2DTransposeBias": ("padding", "stride_w", "stride_h")}
"""The custom operators whose options begin with integers of 32 bits, and what these are."""


@record
class Node:
    """An operator of a subgraph."""

    index: int
    builtin: str
    """Its name in the schema; a code that is not known as a number."""
    custom_code: str
    inputs: tuple[int, ...]
    """Tensors; -1 for one that is left out."""
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    table: Table

    @property
    def op_type(self) -> str:
        """The builtin, or the code of a custom operator."""
        return self.custom_code if self.builtin == CUSTOM else self.builtin

    def options(self) -> dict[str, Any]:
        """The options that the file sets."""
        if self.builtin == CUSTOM:
            return {"custom_code": self.custom_code, **self._custom_options()}
        for field in ("builtin_options", "builtin_options_2"):
            if (options := self.table[field]) is not None:
                return self._without_nan(_plain(options))
        return {}

    def _without_nan(self, options: dict[str, Any]) -> dict[str, Any]:
        """The same options; FlatbufferError if one of them is no number."""
        for name, value in options.items():
            if isinstance(value, float) and math.isnan(value):
                raise FlatbufferError(f"operator {self.index} has {name} {value}")
        return options

    def _custom_options(self) -> dict[str, Any]:
        """Those of an operator that is known; others have bytes in a form of their own."""
        data = self.table["custom_options"]
        if data is None or not data.size:
            return {}
        if (names := _WITH_INTEGERS.get(self.custom_code)) is not None:
            whole = data.tobytes()[: 4 * min(len(names), data.size // 4)]
            values = np.frombuffer(whole, "<i4").tolist()
            return dict(zip(names, values, strict=False))
        return read_map(data.tobytes()) if self.custom_code in _WITH_MAPS else {}


def _plain(options: Table) -> dict[str, Any]:
    """The fields of a table of options that are there."""
    found: dict[str, Any] = {}
    for name, field in schema().tables[options.kind].items():
        if field.kind in schema().unions or not options.has(name):
            continue
        value = options[name]
        if isinstance(value, np.ndarray):
            value = cast("NDArray[Any]", value).tolist()
        if isinstance(value, bool | int | float | str | list):
            found[name] = value
    return found


class Subgraph:
    """A graph of the file, whose indices are checked."""

    def __init__(self, model: Model, index: int, table: Table) -> None:
        self.model, self.index, self.table = model, index, table
        self._count = len(table["tensors"] or ())
        self.inputs = self._indices("inputs")
        self.outputs = self._indices("outputs")

    @cached_property
    def tensors(self) -> list[TensorInfo]:
        """The tensors in the order of the file."""
        return [_tensor(table) for table in self.table["tensors"] or ()]

    @cached_property
    def nodes(self) -> list[Node]:
        """The operators in the order in which they run."""
        return [self._node(k, table) for k, table in enumerate(self.table["operators"] or ())]

    @cached_property
    def written(self) -> frozenset[int]:
        """The tensors that are no constants, whatever their buffers hold."""
        return frozenset(self.inputs).union(*(node.outputs for node in self.nodes))

    def _indices(self, field: str) -> tuple[int, ...]:
        return self._checked(numbers(self.table[field]), field, optional=False)

    def _checked(self, found: list[int], what: str, *, optional: bool = True) -> tuple[int, ...]:
        for index in found:
            if index >= self._count or index < (-1 if optional else 0):
                raise FlatbufferError(f"{what} name tensor {index} of {self._count}")
        return tuple(found)

    def _node(self, index: int, table: Table) -> Node:
        builtin, code = self.model.operator(table["opcode_index"])
        inputs, outputs, inner = (
            self._checked(numbers(table[field]), f"the {field} of operator {index}")
            for field in ("inputs", "outputs", "intermediates")
        )
        return Node(index, builtin, code, inputs, outputs, inner, table)


_ZEROS = {
    "INT4": range(-8, 8),
    "INT8": range(-128, 128),
    "UINT8": range(256),
    "INT16": range(-(2**15), 2**15),
}
"""The zero points that tensors of integers can have."""

_MOST_DIMENSIONS = 64
"""Those of numpy's arrays; kernels take eight."""


def _tensor(table: Table) -> TensorInfo:
    shape = tuple(numbers(table["shape"]))
    if len(shape) > _MOST_DIMENSIONS:
        raise FlatbufferError(f"tensor '{table['name'] or ''}' of {len(shape)} dimensions")
    signature = tuple(numbers(table["shape_signature"]))
    quantization = _quantization(table["quantization"])
    type_ = str(table["type"])
    for zero in () if quantization is None else quantization.zeros:
        if type_ in _ZEROS and zero not in _ZEROS[type_]:
            raise FlatbufferError(
                f"tensor '{table['name'] or ''}' of {type_} with zero point {zero}"
            )
    return TensorInfo(
        table["name"] or "",
        type_,
        shape,
        signature if len(signature) == len(shape) else shape,
        table["buffer"],
        quantization,
        table["is_variable"],
        table,
    )


def _quantization(table: Table | None) -> Quantization | None:
    scales = None if table is None else table["scale"]
    if table is None or scales is None or not scales.size:
        return None
    if not np.isfinite(scales).all():
        raise FlatbufferError("a scale that is no number")
    zeros = numbers(table["zero_point"])
    zeros = zeros * len(scales) if len(zeros) == 1 else zeros or [0] * len(scales)
    if len(zeros) != len(scales):
        raise FlatbufferError(f"{len(scales)} scales with {len(zeros)} zero points")
    return Quantization(tuple(map(float, scales)), tuple(zeros), table["quantized_dimension"])


class Model:
    """A file, mapped into memory; FlatbufferError where it is broken."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 8:
                raise FlatbufferError(f"a file of {size} bytes")
            self.data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        self.table = Table.root(self.data, "Model")
        self.buffers: list[Table] = self.table["buffers"] or []
        self._codes: list[Table] = self.table["operator_codes"] or []
        graphs: list[Table] = self.table["subgraphs"] or []
        if not graphs:
            raise FlatbufferError("a model without subgraphs")
        self.subgraphs = [Subgraph(self, k, table) for k, table in enumerate(graphs)]

    def operator(self, index: int) -> tuple[str, str]:
        """The builtin and the custom code of an operator code."""
        if index >= len(self._codes):
            raise FlatbufferError(f"operator code {index} of {len(self._codes)}")
        table = self._codes[index]
        number = table["builtin_code"]
        if not isinstance(number, int):
            known = {name: code for code, name in builtins().items()}
            number = known[number]
        number = max(number, table["deprecated_builtin_code"])
        return builtins().get(number, f"builtin {number}"), table["custom_code"] or ""

    def subgraph(self, index: int) -> Subgraph:
        """A subgraph that an operator names."""
        if not 0 <= index < len(self.subgraphs):
            raise FlatbufferError(f"subgraph {index} of {len(self.subgraphs)}")
        return self.subgraphs[index]

    def signatures(self) -> Iterator[Table]:
        """The signatures that have a name."""
        yield from (table for table in self.table["signature_defs"] or () if table["signature_key"])

    # Constants

    def has_data(self, info: TensorInfo) -> bool:
        """True if the file holds the elements of a tensor."""
        return self._range(info) is not None

    def _range(self, info: TensorInfo) -> tuple[int, int] | None:
        """Where the bytes of a tensor are."""
        if not 0 <= info.buffer < len(self.buffers):
            raise FlatbufferError(f"buffer {info.buffer} of {len(self.buffers)}")
        table = self.buffers[info.buffer]
        if table["offset"] > 1:
            start, size = table["offset"], table["size"]
            if start + size > len(self.data):
                raise FlatbufferError(f"bytes {start} to {start + size} of {len(self.data)}")
            return start, size
        span = table.span("data")
        return None if span is None or span[1] == 0 else span

    def constant(self, info: TensorInfo) -> ConstantOp | None:
        """
        The constant that a tensor is, a range of the file unless it has to be expanded; None for
        one without data.
        """
        element = info.element
        empty = 0 in info.shape
        if element is None or (not empty and not self.has_data(info)):
            return None
        start, size = self._range(info) or (0, 0)
        is_vast = empty and math.prod(filter(None, info.shape)) > _MOST_ELEMENTS
        if is_vast or min(info.shape, default=0) < 0:
            raise FlatbufferError(f"tensor '{info.name}' has a shape of {list(info.shape)}")
        if empty:
            return ConstantOp.of(np.empty(info.shape, numpy_dtype(element)))
        if (sparsity := info.table["sparsity"]) is not None:
            dtype = numpy_dtype(element)
            stored = self._stored(info, dtype, start, size)
            return ConstantOp.of(expand(stored, info.shape, sparsity))
        if info.type == "INT4":
            count = math.prod(info.shape)
            return ConstantOp.of(_nibbles(self._bytes(start, size), count).reshape(info.shape))
        expected = math.prod(info.shape) * numpy_dtype(element).itemsize
        if size != expected:
            raise FlatbufferError(
                f"tensor '{info.name}' of {expected} bytes has a buffer of {size}"
            )
        return ConstantOp(BlobAttr(Blob.map(self.path, start, size)), tensor(element, info.shape))

    def _bytes(self, start: int, size: int) -> NDArray[Any]:
        return np.frombuffer(self.data, np.uint8, size, start)

    def _stored(
        self, info: TensorInfo, dtype: np.dtype[Any], start: int, size: int
    ) -> NDArray[Any]:
        """The elements of a sparse tensor that are stored."""
        if info.type == "INT4":
            return _nibbles(self._bytes(start, size), 2 * size)
        if size % dtype.itemsize:
            raise FlatbufferError(f"{size} bytes of elements of {dtype.itemsize}")
        return np.frombuffer(self.data, dtype, size // dtype.itemsize, start)


def _nibbles(data: NDArray[Any], count: int) -> NDArray[np.int8]:
    """Signed integers of four bits, the low ones of a byte first."""
    if data.size < (count + 1) // 2:
        raise FlatbufferError(f"{data.size} bytes hold {count} integers of four bits")
    signed = data.view(np.int8)
    low, high = (signed << 4).astype(np.int8) >> 4, signed >> 4
    return np.stack([low, high], -1).reshape(-1)[:count]
