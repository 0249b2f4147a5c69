"""An operator for tests: it can be run, but not compiled."""

from collections.abc import Sequence

import numpy as np

from lowerdeck.dialects.core.operators import Parameters
from lowerdeck.dialects.core.types import Tensor, element_type, f32
from lowerdeck.plugins import CustomOperator, Plugin


def infer(types: Sequence[Tensor], parameters: Parameters) -> Sequence[Tensor]:
    """The type of the first input, which is of f32."""
    if element_type(types[0]) != f32:
        raise ValueError("expected f32")
    return types[:1]


PLUGIN = Plugin(
    operators=[
        CustomOperator(
            domain="com.acme",
            op_type="SoftClip",
            optional_inputs=["bias"],
            attributes={"alpha": float},
            infer=infer,
            compute=lambda arrays, parameters: [np.tanh(arrays[0] * parameters["alpha"])],
        )
    ]
)
