"""Matrix products: MatMul, Gemm and Einsum."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp, MulOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import element_type, f32, f64, is_float
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.linear import einsum, matmul
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes


@legalizes("MatMul")
def legalize_matmul(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """A matrix product with broadcast batch dimensions."""
    return [matmul(builder, builder.operand("A"), builder.operand("B"))]


@legalizes("Gemm")
def legalize_gemm(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    alpha * A * B + beta * C, A and B transposed on request.

    As in BLAS, C is not read if beta is 0: its infinities are not made NaN.
    """
    builder.attrs.ignore("broadcast")  # numpy's rules include both of its cases
    a, b, c = builder.operand("A"), builder.operand("B"), builder.input("C")
    alpha, beta = builder.attrs.float("alpha"), builder.attrs.float("beta")
    a = builder.transpose(a, [1, 0]) if builder.attrs.flag("transA") else a
    b = builder.transpose(b, [1, 0]) if builder.attrs.flag("transB") else b
    result = _scaled(builder, builder.add(MatmulOp(a, b)), alpha, "alpha")
    if c is None or beta == 0:
        return [result]
    return [builder.add(AddOp(result, _scaled(builder, c, beta, "beta")))]


def _scaled(builder: OnnxLegalizer, value: SSAValue, factor: float, name: str) -> SSAValue:
    if factor == 1:
        return value
    if not is_float(element_type(value)) and factor != int(factor):
        builder.refuse(f"{name} {factor} for integers", "a whole number")
    return builder.add(MulOp(value, builder.scalar(factor, value)))


@legalizes("Einsum")
def legalize_einsum(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Sums of products by labels."""
    return [einsum(builder, builder.attrs.string("equation"), builder.inputs)]


@legalizes("Det")
def legalize_determinant(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The determinants of square matrices; those of half precision are computed in f32."""
    # Here, for it brings all of TensorFlow's operators, of which most models need none.
    from lowerdeck.passes.legalize.tf1.applied import applied

    x = builder.operand("X")
    wide = builder.cast(x, f64 if element_type(x) == f64 else f32)
    return [builder.cast(found, x) for found in applied(builder, "MatrixDeterminant", wide)]
