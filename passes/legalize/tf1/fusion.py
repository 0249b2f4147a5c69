"""The operators that a fused one applies to its result: `fused_ops`."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.types import bf16, dims_of, element_type, f16, f32, rank_of
from lowerdeck.passes.legalize.activation import leaky_relu
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.tf1.activation import FUNCTIONS, approximate_gelu, gelu
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer

_ACTIVATIONS = {**FUNCTIONS, "GeluApproximate": approximate_gelu, "GeluExact": gelu}


def fused(lower: Tf1Legalizer, value: SSAValue, axis: int) -> SSAValue:
    """`value`, whose channels are dimension `axis`, after each of the node's `fused_ops`."""
    operands = iter(lower.operands("args"))
    lower.attrs.ignore("num_args", "leakyrelu_alpha", "epsilon")
    for name in lower.attrs.strings("fused_ops"):
        value = _applied(lower, name, value, operands, axis)
    if (rest := len(list(operands))) > 0:
        lower.refuse(f"{rest} operands too many for the fused operators", "as many as they need")
    return value


def _applied(
    lower: Tf1Legalizer, name: str, value: SSAValue, operands: Iterator[SSAValue], axis: int
) -> SSAValue:
    match name:
        case "BiasAdd":
            bias = _next(lower, operands)
            tail = rank_of(value) - axis - 1
            return lower.add(AddOp(value, lower.reshape(bias, [*dims_of(bias), *[1] * tail])))
        case "Add":
            return lower.add(AddOp(value, _next(lower, operands)))
        case "FusedBatchNorm":
            scale, offset, mean, variance = (_next(lower, operands) for _ in range(4))
            wide, epsilon = lower.cast(value, scale), lower.attrs.float("epsilon")
            norm = BatchNormOp(wide, scale, offset, mean, variance, epsilon, axis)
            return lower.cast(lower.add(norm), value)
        case _:
            return activation(lower, name, value)


def _next(lower: Tf1Legalizer, operands: Iterator[SSAValue]) -> SSAValue:
    value = next(operands, None)
    if value is None:
        lower.refuse("too few operands for the fused operators", "as many as they need")
    return value


def activation(lower: Tf1Legalizer, name: str, value: SSAValue) -> SSAValue:
    """A fused activation function; half precision is computed in f32."""
    x = Quantity(lower, value)
    x = x.cast(f32) if x.element in (f16, bf16) else x
    if name == "LeakyRelu":
        y = leaky_relu(x, lower.attrs.float("leakyrelu_alpha"))
    elif name in _ACTIVATIONS:
        y = _ACTIVATIONS[name](x)
    else:
        lower.refuse(f"the fused operator {name}", f"one of {', '.join(sorted(_ACTIVATIONS))}")
    return y.cast(element_type(value)).value
