"""The operator com.acme.Saturate: y = x / (1 + |x| / limit)."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.core.operators import Parameters
from lowerdeck.dialects.core.types import Tensor, element_type, f32
from lowerdeck.plugins import CFunction, CustomOperator


def infer(types: Sequence[Tensor], parameters: Parameters) -> Sequence[Tensor]:
    """The type of the input; only f32 is known."""
    if element_type(types[0]) != f32:
        raise ValueError(f"expected f32, got {element_type(types[0])}")
    return types


def compute(arrays: Sequence[NDArray[Any]], parameters: Parameters) -> Sequence[NDArray[Any]]:
    """The meaning, in the precision of the C."""
    x, scale = arrays[0], np.float32(1 / float(parameters["limit"]))
    return [x / (1 + np.abs(x) * scale)]


SATURATE = CustomOperator(
    domain="com.acme",
    op_type="Saturate",
    attributes={"limit": 1.0},
    infer=infer,
    compute=compute,
    c_function=CFunction(
        name="acme_saturate",
        source=files("lowerdeck_saturate").joinpath("saturate.c").read_text(encoding="utf-8"),
        parameters=["limit"],
    ),
)
