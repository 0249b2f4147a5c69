"""Queries of patterns about values: constants, and their numbers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.types import element_type, f32, f64, numpy_dtype

Array: TypeAlias = NDArray[Any]

UNIFORM_LIMIT = 1 << 20
"""The largest constant, in bytes, that is examined for being uniform."""


def small_constant(value: SSAValue) -> Array | None:
    """The elements of a constant that is not elided and has at most `UNIFORM_LIMIT` bytes."""
    if not isinstance(value.owner, ConstantOp) or value.owner.value.data.size > UNIFORM_LIMIT:
        return None
    try:
        return constant_array(value)
    except ElidedBlobError:
        return None


def uniform_value(value: SSAValue) -> Any:
    """The value (a numpy scalar) that all elements of a constant share, bit by bit; or None."""
    if not isinstance(value.owner, ConstantOp):
        return None
    blob = value.owner.value.data
    if not 0 < blob.size <= UNIFORM_LIMIT or blob.is_elided:
        return None
    size = numpy_dtype(element_type(value)).itemsize
    if blob.size > size and (blob.element is None or len(blob.element) != size):
        # Most weights differ where they begin.
        if blob.data[:size] != blob.data[size : 2 * size]:
            return None
        data = np.frombuffer(blob.data, np.uint8).reshape(-1, size)
        if not (data == data[0]).all():
            return None
    return value.owner.array.reshape(-1)[0]


def number(value: SSAValue) -> float | None:
    """The value of a uniform, finite constant."""
    found = uniform_value(value)
    return float(found) if found is not None and np.isfinite(found) else None


def is_precise(value: SSAValue) -> bool:
    """False for half precision and integers, where every rounding of a formula is visible."""
    return element_type(value) in (f32, f64)


def constant_values(*values: SSAValue) -> list[Array] | None:
    """The values in float64 if all of them are constants that are not elided, else None."""
    try:
        arrays = [constant_array(value) for value in values]
    except ElidedBlobError:
        return None
    known = [array.astype(np.float64) for array in arrays if array is not None]
    return known if len(known) == len(values) else None


def is_finite(*arrays: Array) -> bool:
    """True if no array has a NaN or an infinity."""
    return all(bool(np.isfinite(array.astype(np.float64)).all()) for array in arrays)


def rounded(array: Array, like: SSAValue) -> ConstantOp:
    """The constant with float64 values rounded once to the element type of `like`."""
    with np.errstate(all="ignore"):
        return ConstantOp.of(array.astype(numpy_dtype(element_type(like))))


def broadcast_constant(array: Array, like: SSAValue) -> ConstantOp:
    """The rounded constant with the fewest dimensions that broadcasts to `like` as `array` does."""
    shape = list(array.shape)
    while shape and shape[0] == 1:
        del shape[0]
    return rounded(array.reshape(shape), like)


def scale_and_shift(op: BatchNormOp) -> tuple[Array, Array] | None:
    """`y = scale * x + shift` per channel, in float64; None without constant, finite parameters."""
    parameters = constant_values(op.scale, op.bias, op.mean, op.variance)
    if parameters is None:
        return None
    gamma, beta, mean, variance = parameters
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + op.epsilon.value.data)
        shift = beta - mean * scale
    return (scale, shift) if is_finite(scale, shift) else None
