"""Matrix products, and what is added to channels."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.passes.legalize.linear import einsum
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.fusion import fused
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("MatMul")
def legalize_matmul(lower: Tf1Legalizer) -> Results:
    """The product of two matrices, either of them transposed on request."""
    lower.attrs.ignore("grad_a", "grad_b")
    return [_product(lower)]


@legalizes("_FusedMatMul")
def legalize_fused_matmul(lower: Tf1Legalizer) -> Results:
    """A product of matrices, and the operators that `fused_ops` lists."""
    return [fused(lower, _product(lower), axis=1)]


def _product(lower: Tf1Legalizer) -> SSAValue:
    a, b = number(lower, "a"), number(lower, "b")
    a = lower.transpose(a, [1, 0]) if lower.attrs.flag("transpose_a") else a
    b = lower.transpose(b, [1, 0]) if lower.attrs.flag("transpose_b") else b
    return lower.add(MatmulOp(a, b))


@legalizes("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def legalize_batch_matmul(lower: Tf1Legalizer) -> Results:
    """Products of matrices in the last two dimensions; the others broadcast."""
    if lower.attrs.has("grad_x"):
        lower.attrs.ignore("grad_x", "grad_y")
    x = _turned(lower, number(lower, "x"), lower.attrs.flag("adj_x"))
    y = _turned(lower, number(lower, "y"), lower.attrs.flag("adj_y"))
    element = lower.result_element()
    return [lower.add(MatmulOp(lower.cast(x, element), lower.cast(y, element)))]


def _turned(lower: Tf1Legalizer, x: SSAValue, is_adjoint: bool) -> SSAValue:
    rank = rank_of(x)
    return lower.transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if is_adjoint else x


@legalizes("Einsum")
def legalize_einsum(lower: Tf1Legalizer) -> Results:
    """Sums of products by labels."""
    operands = [number(lower, index) for index in range(len(lower.op.inputs))]
    return [einsum(lower, lower.attrs.string("equation"), operands)]


@legalizes("BiasAdd", "BiasAddV1")
def legalize_bias(lower: Tf1Legalizer) -> Results:
    """A vector added along the dimension of channels, by default the last one."""
    x, bias = number(lower, "value"), number(lower, "bias")
    is_first = lower.op_type == "BiasAdd" and _is_channels_first(lower)
    tail = rank_of(x) - 2 if is_first else 0
    return [lower.add(AddOp(x, lower.reshape(bias, [*dims_of(bias), *[1] * tail])))]


def _is_channels_first(lower: Tf1Legalizer) -> bool:
    return lower.attrs.string("data_format", among=("NHWC", "NCHW")) == "NCHW"
