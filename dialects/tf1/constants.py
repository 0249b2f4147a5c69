"""The values of constants in the tf1 dialect: bytes of a file or of the text, or strings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.types import (
    StringType,
    Tensor,
    element_type,
    numpy_dtype,
    static_shape,
)


def string_values(texts: Iterable[str | bytes]) -> ArrayAttr[StringAttr]:
    """
    The attribute for strings. TensorFlow's are bytes of any kind: each becomes one character, so
    that nothing is lost.
    """
    decoded = (text.decode("latin-1") if isinstance(text, bytes) else text for text in texts)
    return ArrayAttr([StringAttr(text) for text in decoded])


def constant_array(op: Operation) -> NDArray[Any]:
    """The elements of a `tf1.Const`, read-only and not copied unless they are strings."""
    type_ = cast(Tensor, op.results[0].type)
    shape = static_shape(type_)
    assert shape is not None
    value = op.properties["value"]
    if isinstance(value, BlobAttr):
        return value.data.array(numpy_dtype(element_type(type_)), shape)
    texts = [text.data for text in cast(ArrayAttr[StringAttr], value)]
    return np.array(texts, dtype=object).reshape(shape)


def verify_constant(type_: Attribute, value: Attribute) -> None:
    """
    VerifyException unless the value has as many elements as its type.

    A blob that was elided from the text may have any size.
    """
    shape = static_shape(type_)
    if shape is None:
        raise VerifyException(f"a constant needs a static shape, got {type_}")
    element = element_type(type_)
    if isinstance(value, ArrayAttr):
        count = len(cast(ArrayAttr[Attribute], value))
        if element != StringType() or count != math.prod(shape):
            raise VerifyException(f"{count} strings do not fit {type_}")
        return
    if not isinstance(value, BlobAttr) or element == StringType():
        raise VerifyException(f"{value} is no value for {type_}")
    size = math.prod(shape) * numpy_dtype(element).itemsize
    if value.data.size not in (0, size):
        raise VerifyException(f"{value.data.size} bytes do not fit {type_}, expected {size}")
