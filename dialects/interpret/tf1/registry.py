"""The table of kernels: what each operator of TensorFlow computes, in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.utils.exceptions import InterpretationError

from lowerdeck.dialects.core.types import numpy_dtype
from lowerdeck.dialects.tf1.attributes import ELEMENTS
from lowerdeck.dialects.tf1.ops import Tf1Op

Array: TypeAlias = NDArray[Any]
Kernel: TypeAlias = Callable[[Tf1Op, Sequence[Any]], Any]
"""The outputs for the inputs of an op: one value, or a tuple of several."""

KERNELS: dict[str, Kernel] = {}
"""By operator."""

_WIDER: dict[np.dtype[Any], type[Any]] = {
    np.dtype(np.float32): np.float64,
    np.dtype(np.float16): np.float32,
    np.dtype(ml_dtypes.bfloat16): np.float32,
}


def kernel(*names: str) -> Callable[[Kernel], Kernel]:
    """Register a kernel for operators."""

    def register(function: Kernel) -> Kernel:
        for name in names:
            assert name not in KERNELS, name
            KERNELS[name] = function
        return function

    return register


def fail(message: str) -> NoReturn:
    """The error of an op whose inputs TensorFlow refuses."""
    raise InterpretationError(message)


def require(condition: object, message: str) -> None:
    """`fail` unless the condition holds."""
    if not condition:
        fail(message)


def dtype_of(op: Tf1Op, attribute: str) -> np.dtype[Any]:
    """The numpy form of the element type in an attribute."""
    return numpy_dtype(ELEMENTS[op.attr(attribute).removesuffix("_ref")])


def widened(array: Array) -> Array:
    """Narrow floats in the type in which sums of them are made."""
    return array.astype(_WIDER[array.dtype]) if array.dtype in _WIDER else array


def where(condition: Any, x: Any, y: Any) -> Array:
    """`x` where the condition holds, else `y`."""
    choose: Any = np.where
    return choose(condition, x, y)


def ints(value: Array) -> list[int]:
    """The elements of an integer tensor of any rank."""
    return [int(item) for item in value.reshape(-1)]


def scalar(value: Array) -> int:
    """The one element of an integer tensor."""
    require(value.size == 1, f"found the shape {list(value.shape)}, expected one number")
    return int(value.reshape(-1)[0])


def positive_axis(axis: int, rank: int) -> int:
    """The axis counted from the front."""
    require(-rank <= axis < rank, f"axis {axis} is not one of {rank} dimensions")
    return axis % rank
