"""The operators that a fused one applies to its result: `fused_ops`."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.types import bf16, dims_of, element_type, f16, f32, rank_of
from lowerdeck.passes.legalize.common.activation import leaky_relu
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.activation import FUNCTIONS, approximate_gelu, gelu
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer

_ACTIVATIONS = {**FUNCTIONS, "GeluApproximate": approximate_gelu, "GeluExact": gelu}


def fused(builder: Tf1Legalizer, value: SSAValue, axis: int) -> SSAValue:
    """`value`, whose channels are dimension `axis`, after each of the node's `fused_ops`."""
    operands = iter(builder.operands("args"))
    builder.attrs.ignore("num_args", "leakyrelu_alpha", "epsilon")
    for name in builder.attrs.strings("fused_ops"):
        value = _applied(builder, name, value, operands, axis)
    if (rest := len(list(operands))) > 0:
        builder.refuse(f"{rest} operands too many for the fused operators", "as many as they need")
    return value


def _applied(
    builder: Tf1Legalizer, name: str, value: SSAValue, operands: Iterator[SSAValue], axis: int
) -> SSAValue:
    match name:
        case "BiasAdd":
            bias = _next(builder, operands)
            tail = rank_of(value) - axis - 1
            return builder.add(AddOp(value, builder.reshape(bias, [*dims_of(bias), *[1] * tail])))
        case "Add":
            return builder.add(AddOp(value, _next(builder, operands)))
        case "FusedBatchNorm":
            scale, offset, mean, variance = (_next(builder, operands) for _ in range(4))
            wide, epsilon = builder.cast(value, scale), builder.attrs.float("epsilon")
            norm = BatchNormOp(wide, scale, offset, mean, variance, epsilon, axis)
            return builder.cast(builder.add(norm), value)
        case _:
            return activation(builder, name, value)


def _next(builder: Tf1Legalizer, operands: Iterator[SSAValue]) -> SSAValue:
    value = next(operands, None)
    if value is None:
        builder.refuse("too few operands for the fused operators", "as many as they need")
    return value


def activation(builder: Tf1Legalizer, name: str, value: SSAValue) -> SSAValue:
    """A fused activation function; half precision is computed in f32."""
    x = TensorValue(builder, value)
    x = x.cast(f32) if x.element in (f16, bf16) else x
    if name == "LeakyRelu":
        y = leaky_relu(x, builder.attrs.float("leakyrelu_alpha"))
    elif name in _ACTIVATIONS:
        y = _ACTIVATIONS[name](x)
    else:
        builder.refuse(f"the fused operator {name}", f"one of {', '.join(sorted(_ACTIVATIONS))}")
    return y.cast(element_type(value)).value
