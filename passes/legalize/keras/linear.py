"""Products with kernels, and rows of tables."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, element_type, i32, is_float, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.linear import einsum
from lowerdeck.passes.legalize.keras.activation import finished
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.quantized import (
    quantized_einsum,
    quantized_product,
    quantized_rows,
)
from lowerdeck.passes.legalize.keras.registry import Results, legalizes


def biased(builder: KerasLegalizer, value: SSAValue, name: str = "bias") -> SSAValue:
    """The value and a bias for its last dimensions, if there is one."""
    bias = builder.weight(name)
    return value if bias is None else builder.add(AddOp(value, bias))


@legalizes("Dense")
def legalize_dense(builder: KerasLegalizer) -> Results:
    """The product of the last dimension and the kernel."""
    builder.ignore("use_bias")
    units = builder.integer("units")
    if builder.policy.mode:
        return finished(builder, biased(builder, quantized_product(builder, units)))
    x, kernel = builder.input(), builder.require_weight("kernel")
    builder.require_shape("kernel", *(dim.value for dim in dims_of(x)[-1:]), units)
    builder.require_shape("bias", units)
    dims = dims_of(x)
    x = builder.cast(x, kernel)
    rows = builder.reshape(x, [product(dims[:-1]), dims[-1]]) if len(dims) > 2 else x
    value = builder.add(MatmulOp(rows, kernel))
    value = builder.reshape(value, [*dims[:-1], units]) if len(dims) > 2 else value
    return finished(builder, biased(builder, value))


@legalizes("EinsumDense")
def legalize_einsum_dense(builder: KerasLegalizer) -> Results:
    """A sum of products by labels, and a bias whose axes are labels of the result."""
    builder.ignore("output_shape")
    equation = str(builder.config("equation"))
    builder.ignore("bias_axes")
    if builder.policy.mode:
        value = quantized_einsum(builder, equation)
        return finished(builder, biased(builder, value))
    value = einsum(builder, equation, [builder.input(), builder.require_weight("kernel")])
    return finished(builder, biased(builder, value))


@legalizes("Embedding")
def legalize_embedding(builder: KerasLegalizer) -> Results:
    """Rows of a table; numbers that are no integers are rounded toward zero."""
    builder.ignore("mask_zero", "output_dim")
    indices = builder.input()
    if is_float(element_type(indices)):
        indices = builder.cast(indices, i32)
    if builder.policy.mode:
        return [quantized_rows(builder, indices)]
    table = builder.require_weight("embeddings")
    builder.require_shape("embeddings", None, builder.integer("output_dim"))
    assert rank_of(table) == 2
    return [builder.add(GatherOp(table, indices, 0))]
