"""Element types as the files number and name them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from xdsl.ir import Attribute

from lowerdeck.dialects.core.types import element_of


class ProgramError(ValueError):
    """A program or its weights are broken, or of another kind."""


_DTYPES = {
    "bool": np.bool_,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
    "complex64": np.complex64,
    "complex128": np.complex128,
}

_NUMBERS = {
    0: "bool",
    1: "int16",
    2: "int32",
    3: "int64",
    4: "float16",
    5: "float32",
    6: "float64",
    20: "uint8",
    21: "int8",
    22: "bfloat16",
    23: "complex64",
    24: "complex128",
}

_TYPES = {
    "t_bool": "bool",
    "t_i8": "int8",
    "t_ui8": "uint8",
    "t_i16": "int16",
    "t_i32": "int32",
    "t_i64": "int64",
    "t_index": "int64",
    "t_f16": "float16",
    "t_bf16": "bfloat16",
    "t_f32": "float32",
    "t_f64": "float64",
    "t_c64": "complex64",
    "t_c128": "complex128",
}


def element_named(name: str) -> Attribute:
    """The element type of a name such as `float32`; ProgramError for any other."""
    if name not in _DTYPES:
        raise ProgramError(f"elements of type '{name}'")
    return element_of(np.dtype(_DTYPES[name]))


def element_numbered(number: int) -> Attribute:
    """The element type of a number in a ProgramDesc."""
    if number not in _NUMBERS:
        raise ProgramError(f"elements of type {number}")
    return element_named(_NUMBERS[number])


def element_typed(name: str) -> Attribute:
    """The element type of a type in PIR, such as `t_f32`."""
    if name not in _TYPES:
        raise ProgramError(f"elements of type '{name}'")
    return element_named(_TYPES[name])
