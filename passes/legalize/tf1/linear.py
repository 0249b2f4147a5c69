"""Matrix products, and what is added to channels."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.passes.legalize.common.linear import einsum
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.fusion import fused
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("MatMul")
def legalize_matmul(builder: Tf1Legalizer) -> Results:
    """The product of two matrices, either of them transposed on request."""
    builder.attrs.ignore("grad_a", "grad_b")
    return [_product(builder)]


@legalizes("SparseMatMul")
def legalize_matmul_of_zeros(builder: Tf1Legalizer) -> Results:
    """The same of f32 and bf16 as f32; that many elements are zero is advice."""
    builder.attrs.ignore("a_is_sparse", "b_is_sparse")
    return [_product(builder)]


@legalizes("_FusedMatMul")
def legalize_fused_matmul(builder: Tf1Legalizer) -> Results:
    """A product of matrices, and the operators that `fused_ops` lists."""
    return [fused(builder, _product(builder), axis=1)]


def _product(builder: Tf1Legalizer) -> SSAValue:
    element = builder.result_element()
    a, b = (builder.cast(number(builder, name), element) for name in ("a", "b"))
    a = builder.transpose(a, [1, 0]) if builder.attrs.flag("transpose_a") else a
    b = builder.transpose(b, [1, 0]) if builder.attrs.flag("transpose_b") else b
    return builder.add(MatmulOp(a, b))


@legalizes("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def legalize_batch_matmul(builder: Tf1Legalizer) -> Results:
    """Products of matrices in the last two dimensions; the others broadcast."""
    if builder.attrs.has("grad_x"):
        builder.attrs.ignore("grad_x", "grad_y")
    x = _turned(builder, number(builder, "x"), builder.attrs.flag("adj_x"))
    y = _turned(builder, number(builder, "y"), builder.attrs.flag("adj_y"))
    element = builder.result_element()
    return [builder.add(MatmulOp(builder.cast(x, element), builder.cast(y, element)))]


def _turned(builder: Tf1Legalizer, x: SSAValue, is_adjoint: bool) -> SSAValue:
    rank = rank_of(x)
    return builder.transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if is_adjoint else x


@legalizes("Einsum")
def legalize_einsum(builder: Tf1Legalizer) -> Results:
    """Sums of products by labels."""
    operands = [number(builder, index) for index in range(len(builder.op.inputs))]
    return [einsum(builder, builder.attrs.string("equation"), operands)]


@legalizes("BiasAdd", "BiasAddV1")
def legalize_bias(builder: Tf1Legalizer) -> Results:
    """A vector added along the dimension of channels, by default the last one."""
    x, bias = number(builder, "value"), number(builder, "bias")
    is_first = builder.op_type == "BiasAdd" and _is_channels_first(builder)
    tail = rank_of(x) - 2 if is_first else 0
    return [builder.add(AddOp(x, builder.reshape(bias, [*dims_of(bias), *[1] * tail])))]


def _is_channels_first(builder: Tf1Legalizer) -> bool:
    return builder.attrs.string("data_format", among=("NHWC", "NCHW")) == "NCHW"
