"""Matrix products: MatMul, Gemm and Einsum."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp, MulOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import element_type, is_float
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.linear import einsum, matmul
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes


@legalizes("MatMul")
def legalize_matmul(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """A matrix product with broadcast batch dimensions."""
    return [matmul(lower, lower.operand("A"), lower.operand("B"))]


@legalizes("Gemm")
def legalize_gemm(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    alpha * A * B + beta * C, A and B transposed on request.

    As in BLAS, C is not read if beta is 0: its infinities are not made NaN.
    """
    lower.attrs.ignore("broadcast")  # numpy's rules include both of its cases
    a, b, c = lower.operand("A"), lower.operand("B"), lower.input("C")
    alpha, beta = lower.attrs.float("alpha"), lower.attrs.float("beta")
    a = lower.transpose(a, [1, 0]) if lower.attrs.flag("transA") else a
    b = lower.transpose(b, [1, 0]) if lower.attrs.flag("transB") else b
    result = _scaled(lower, lower.add(MatmulOp(a, b)), alpha, "alpha")
    if c is None or beta == 0:
        return [result]
    return [lower.add(AddOp(result, _scaled(lower, c, beta, "beta")))]


def _scaled(lower: OnnxLegalizer, value: SSAValue, factor: float, name: str) -> SSAValue:
    if factor == 1:
        return value
    if not is_float(element_type(value)) and factor != int(factor):
        lower.refuse(f"{name} {factor} for integers", "a whole number")
    return lower.add(MulOp(value, lower.scalar(factor, value)))


@legalizes("Einsum")
def legalize_einsum(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Sums of products by labels."""
    return [einsum(lower, lower.attrs.string("equation"), lower.inputs)]
