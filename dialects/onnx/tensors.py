"""Constant tensors: between TensorProto and `#onnx.tensor`, whose bytes are not copied if large."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core.types import StringType, Tensor, element_of, numpy_dtype, tensor
from lowerdeck.dialects.onnx.types import element_from_proto

Strings: TypeAlias = ArrayAttr[StringAttr]

PACKED_BITS = {
    "INT4": 4,
    "UINT4": 4,
    "INT2": 2,
    "UINT2": 2,
    "FLOAT4E2M1": 4,
    "FLOAT6E2M3": 6,
    "FLOAT6E3M2": 6,
}
"""Element types of which TensorProto keeps several to a byte; blobs keep one."""

_UNPACKED_WHEN_TYPED = (onnx.TensorProto.FLOAT6E2M3, onnx.TensorProto.FLOAT6E3M2)
_COMPLEX = (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128)


@irdl_attr_definition
class TensorAttr(ParametrizedAttribute):
    """A constant tensor: `#onnx.tensor<tensor<2xf32>, #core.blob<"0x...">>`."""

    name = "onnx.tensor"

    type: TensorType[Attribute]
    value: BlobAttr | ArrayAttr[StringAttr]
    """The elements' bytes in C order (one element a byte or more), or strings."""

    @staticmethod
    def of(array: NDArray[Any]) -> TensorAttr:
        """The attribute for a numpy array; an array of objects holds strings."""
        type_ = tensor(element_of(array.dtype), array.shape)
        if array.dtype == object:
            texts = [text if isinstance(text, str) else str(text) for text in array.reshape(-1)]
            return TensorAttr(type_, ArrayAttr([StringAttr(text) for text in texts]))
        return TensorAttr(type_, BlobAttr(Blob.of(array)))

    def array(self) -> NDArray[Any]:
        """The elements, read-only unless they are strings."""
        return constant_array(self.type, self.value)

    def verify(self) -> None:
        verify_constant(self.type, self.value)


@irdl_attr_definition
class SparseTensorAttr(ParametrizedAttribute):
    """A constant tensor given by its non-zero elements and their indices."""

    name = "onnx.sparse_tensor"

    shape: DenseArrayBase[IntegerType]
    values: TensorAttr
    indices: TensorAttr

    def array(self) -> NDArray[Any]:
        """The dense tensor; ValueError if an index is out of range."""
        return _densify(
            self.values.array(),
            self.indices.array(),
            tuple(int(dim) for dim in self.shape.get_values()),
        )


def constant_array(type_: Tensor, value: Attribute) -> NDArray[Any]:
    """The numpy form of a constant: bytes (`#core.blob`) or a list of strings."""
    shape = type_.get_shape()
    if isinstance(value, BlobAttr):
        return value.data.array(numpy_dtype(type_.element_type), shape)
    texts = [text.data for text in cast(Strings, value)]
    return np.array(texts, dtype=object).reshape(shape)


def verify_constant(type_: Tensor, value: Attribute) -> None:
    """
    VerifyException unless the constant has a number of elements that fits its type.

    A blob that was elided from the text may have any size.
    """
    if not type_.has_static_shape():
        raise VerifyException(f"a constant needs a static shape, got {type_}")
    count = math.prod(type_.get_shape())
    if isinstance(value, ArrayAttr):
        if not isinstance(type_.element_type, StringType) or len(cast(Strings, value)) != count:
            raise VerifyException(f"{len(cast(Strings, value))} strings do not fit {type_}")
        return
    if not isinstance(value, BlobAttr):
        raise VerifyException(f"expected bytes or strings, got {value}")
    try:
        size = count * numpy_dtype(type_.element_type).itemsize
    except KeyError:
        raise VerifyException(f"{type_} has no constants") from None
    if value.data.size not in (0, size) or isinstance(type_.element_type, StringType):
        raise VerifyException(f"{value.data.size} bytes do not fit {type_}, expected {size}")


def tensor_type(proto: onnx.TensorProto) -> Tensor:
    """The type of a TensorProto; ValueError if it is not valid."""
    dims = list(proto.dims)
    if any(dim < 0 for dim in dims) or math.prod(dims) >= 1 << 62:
        raise ValueError(f"the shape {dims} is not valid")
    return tensor(element_from_proto(proto.data_type), dims)


def raw_size(proto: onnx.TensorProto) -> int:
    """The number of bytes that the raw data of `proto` must have."""
    count = math.prod(proto.dims)
    bits = PACKED_BITS.get(onnx.TensorProto.DataType.Name(proto.data_type))
    if bits is not None:
        return (count * bits + 7) // 8
    return count * helper.tensor_dtype_to_np_dtype(proto.data_type).itemsize


def is_packed(proto: onnx.TensorProto) -> bool:
    """True if the raw data of `proto` keeps several elements to a byte."""
    return onnx.TensorProto.DataType.Name(proto.data_type) in PACKED_BITS


def tensor_from_proto(proto: onnx.TensorProto) -> TensorAttr:
    """The constant that `proto` holds in itself; ValueError if it is not valid."""
    type_ = tensor_type(proto)
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        raise ValueError("its data is in another file; load the model from its path")
    if proto.data_type == onnx.TensorProto.STRING:
        return _strings(proto, type_)
    if proto.HasField("raw_data"):
        return raw_tensor(proto, type_, proto.raw_data)
    _check_typed_data(proto)
    array = numpy_helper.to_array(proto)
    return TensorAttr(type_, BlobAttr(Blob.of(array)))


def raw_tensor(proto: onnx.TensorProto, type_: Tensor, data: bytes | memoryview) -> TensorAttr:
    """The constant whose raw data is `data`; ValueError if the size is wrong."""
    if len(data) != (expected := raw_size(proto)):
        raise ValueError(f"its raw data has {len(data)} bytes, expected {expected} for {type_}")
    if is_packed(proto):
        whole = onnx.TensorProto(dims=proto.dims, data_type=proto.data_type, raw_data=bytes(data))
        return TensorAttr(type_, BlobAttr(Blob.of(numpy_helper.to_array(whole))))
    return TensorAttr(type_, BlobAttr(Blob.of(np.frombuffer(data, np.uint8))))


def sparse_from_proto(proto: onnx.SparseTensorProto) -> SparseTensorAttr:
    """The constant of a SparseTensorProto; ValueError if it is not valid."""
    shape = list(proto.dims)
    if any(dim < 0 for dim in shape):
        raise ValueError(f"the shape {shape} is not valid")
    values, indices = tensor_from_proto(proto.values), tensor_from_proto(proto.indices)
    count = math.prod(values.type.get_shape())
    if indices.type.get_shape() not in ((count,), (count, len(shape))):
        raise ValueError(f"the indices of its {count} values have type {indices.type}")
    return SparseTensorAttr(DenseArrayBase.from_list(i64, shape), values, indices)


def tensor_to_proto(attr: TensorAttr, name: str = "") -> onnx.TensorProto:
    """The TensorProto of a constant, its bytes copied into it."""
    return array_to_proto(attr.array(), name)


def array_to_proto(array: NDArray[Any], name: str = "") -> onnx.TensorProto:
    """`numpy_helper.from_array`, also for scalars of type str."""
    return numpy_helper.from_array(np.asarray(array), name)


def sparse_to_proto(attr: SparseTensorAttr) -> onnx.SparseTensorProto:
    """The SparseTensorProto of a constant."""
    return onnx.SparseTensorProto(
        values=tensor_to_proto(attr.values),
        indices=tensor_to_proto(attr.indices),
        dims=[int(dim) for dim in attr.shape.get_values()],
    )


def _strings(proto: onnx.TensorProto, type_: Tensor) -> TensorAttr:
    count = math.prod(proto.dims)
    if len(proto.string_data) != count:
        raise ValueError(f"it has {len(proto.string_data)} strings, expected {count} for {type_}")
    texts = [StringAttr(text.decode("utf-8")) for text in proto.string_data]
    return TensorAttr(type_, ArrayAttr(texts))


def _check_typed_data(proto: onnx.TensorProto) -> None:
    """
    ValueError unless the typed field of `proto` has as many entries as its shape asks for, and all
    of them are numbers of its type, where the field has wider ones.
    """
    field = helper.tensor_dtype_to_field(proto.data_type)
    expected = math.prod(proto.dims) * (2 if proto.data_type in _COMPLEX else 1)
    if is_packed(proto) and proto.data_type not in _UNPACKED_WHEN_TYPED:
        expected = raw_size(proto)
    found = len(cast(Sequence[Any], getattr(proto, field)))
    if found != expected:
        raise ValueError(f"its {field} has {found} entries, expected {expected}")
    dtype = helper.tensor_dtype_to_np_dtype(proto.data_type)
    if dtype.kind in "iu" and not is_packed(proto):
        info, entries = np.iinfo(dtype), np.asarray(getattr(proto, field))
        if (wrong := entries[(entries < info.min) | (entries > info.max)]).size:
            raise ValueError(f"its {field} has {wrong[0]}, expected {info.min} to {info.max}")


DENSE_LIMIT = 1 << 31
"""Sparse constants of more bytes than this are refused: a few bytes could ask for any memory."""


def _densify(values: NDArray[Any], indices: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if (size := math.prod(shape) * values.dtype.itemsize) > DENSE_LIMIT:
        raise ValueError(f"the dense form of its shape {list(shape)} takes {size} bytes")
    dense = np.zeros(math.prod(shape), values.dtype)
    if indices.ndim == 2:
        strides = np.array([math.prod(shape[k + 1 :]) for k in range(len(shape))], np.int64)
        inside = bool(np.all((indices >= 0) & (indices < np.array(shape))))
        indices = indices @ strides
    else:
        inside = bool(np.all((indices >= 0) & (indices < dense.size)))
    if not inside:
        raise ValueError(f"an index is out of range for the shape {list(shape)}")
    dense[indices] = values.reshape(-1)
    return dense.reshape(shape)
