"""From TensorProto to the type and the value of a constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core.types import Tensor, numpy_dtype, tensor
from lowerdeck.dialects.tf1.attributes import ELEMENTS
from lowerdeck.dialects.tf1.constants import string_values
from lowerdeck.frontends.tf1.graph_pb2 import DataType, TensorProto, TensorShapeProto

Value: TypeAlias = BlobAttr | ArrayAttr[StringAttr]

FILL_LIMIT = 1 << 28
"""Bytes that a constant may take of which the file holds but a few elements."""

_SIZE_LIMIT = 1 << 62

_FIELDS: dict[str, tuple[str, str]] = {
    "float": ("float_val", "<f4"),
    "double": ("double_val", "<f8"),
    "half": ("half_val", "<u2"),
    "bfloat16": ("half_val", "<u2"),
    "int8": ("int_val", "<i1"),
    "int16": ("int_val", "<i2"),
    "int32": ("int_val", "<i4"),
    "int64": ("int64_val", "<i8"),
    "uint8": ("int_val", "<u1"),
    "uint16": ("int_val", "<u2"),
    "uint32": ("uint32_val", "<u4"),
    "uint64": ("uint64_val", "<u8"),
    "qint8": ("int_val", "<i1"),
    "quint8": ("int_val", "<u1"),
    "qint16": ("int_val", "<i2"),
    "quint16": ("int_val", "<u2"),
    "qint32": ("int_val", "<i4"),
    "bool": ("bool_val", "?"),
    "complex64": ("scomplex_val", "<f4"),
    "complex128": ("dcomplex_val", "<f8"),
}
"""The field that holds an element type's values, and the form in which they become bytes."""


def dtype_name(number: int) -> str:
    """`float` for DT_FLOAT; ValueError if the number is no element type that is known."""
    try:
        name = DataType.Name(cast(DataType, number))
    except ValueError:
        raise ValueError(f"{number} is not the number of an element type") from None
    base = name.removeprefix("DT_").lower()
    if base.removesuffix("_ref") not in (*ELEMENTS, "resource", "variant"):
        raise ValueError(f"{name} is not an element type that is supported")
    return base


def shape_dims(shape: TensorShapeProto) -> list[int] | None:
    """The sizes of a partial shape, -1 where unknown; None without a rank."""
    if shape.unknown_rank:
        return None
    dims = [dim.size for dim in shape.dim]
    if any(dim < -1 for dim in dims):
        raise ValueError(f"the shape {dims} is not valid")
    return dims


def tensor_value(proto: TensorProto, file: str | None) -> tuple[Tensor, Value]:
    """
    The constant that `proto` holds, of which large parts may be a range of bytes in `file`.

    ValueError if it is not valid.
    """
    dtype = dtype_name(proto.dtype)
    if dtype not in ELEMENTS:
        raise ValueError(f"a constant cannot have the element type {dtype}")
    dims = shape_dims(proto.tensor_shape)
    if dims is None or -1 in dims or math.prod(dims) >= _SIZE_LIMIT:
        raise ValueError(f"the shape {dims} is not one of a constant")
    type_ = tensor(ELEMENTS[dtype], dims)
    if dtype == "string":
        return type_, _strings(proto, math.prod(dims))
    size = math.prod(dims) * numpy_dtype(ELEMENTS[dtype]).itemsize
    if proto.HasField("content_range"):
        return type_, _mapped(proto.content_range, file, size)
    if proto.tensor_content:
        data = np.frombuffer(proto.tensor_content, np.uint8)
        _check_content(len(data), size)
        return type_, BlobAttr(Blob.of(data))
    return type_, BlobAttr(Blob.of(_listed(proto, dtype, math.prod(dims), size)))


def _mapped(range_: TensorProto.Range, file: str | None, size: int) -> BlobAttr:
    if file is None:
        raise ValueError("its content is said to be in a file; load the graph from its path")
    _check_content(range_.size, size)
    try:
        return BlobAttr(Blob.map(file, range_.offset, range_.size))
    except (OSError, ValueError) as error:
        raise ValueError(f"its content cannot be read: {error}") from None


def _check_content(found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f"its content has {found} bytes, expected {expected}")


def _listed(proto: TensorProto, dtype: str, count: int, size: int) -> NDArray[Any]:
    """
    The elements of a repeated field. The last one stands for all that are missing, zero for none.
    """
    field, form = _FIELDS[dtype]
    listed = cast(Sequence[Any], getattr(proto, field))
    # Small types are kept in wide fields: what does not fit is cut off, as in a cast of C.
    wide = np.array(listed, np.uint64 if dtype == "uint64" else None if listed else np.int64)
    values = wide.astype(np.dtype(form))
    if dtype.startswith("complex"):
        if len(values) % 2:
            raise ValueError(f"its {field} has an odd number of parts: {len(values)}")
        values = values.view(numpy_dtype(ELEMENTS[dtype]))
    if len(values) > count:
        raise ValueError(f"its {field} has {len(values)} elements, expected {count}")
    if len(values) == count:
        return values
    if size > FILL_LIMIT:
        raise ValueError(f"{len(values)} elements are to fill {size} bytes")
    rest = np.zeros(count - len(values), values.dtype)
    if len(values):
        rest[:] = values[-1]
    return np.concatenate([values, rest])


def _strings(proto: TensorProto, count: int) -> ArrayAttr[StringAttr]:
    if count > FILL_LIMIT // 64:
        raise ValueError(f"its shape asks for {count} strings")
    texts = list(proto.string_val)
    if proto.tensor_content and not texts:
        texts = _decode_strings(proto.tensor_content, count)
    if len(texts) > count:
        raise ValueError(f"its string_val has {len(texts)} elements, expected {count}")
    last = texts[-1] if texts else b""
    return string_values([*texts, *[last] * (count - len(texts))])


def _decode_strings(content: bytes, count: int) -> list[bytes]:
    """The strings in a tensor's content: first the lengths of all, as varints, then the bytes."""
    position, lengths = 0, list[int]()
    while len(lengths) < count:
        length = shift = 0
        while True:
            if position >= len(content) or shift > 63:
                raise ValueError(f"its content ends within {count} strings")
            byte = content[position]
            position += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        lengths.append(length)
    _check_content(len(content) - position, sum(lengths))
    texts: list[bytes] = []
    for length in lengths:
        texts.append(content[position : position + length])
        position += length
    return texts
