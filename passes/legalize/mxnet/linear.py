"""Convolutions and products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, rank_of
from lowerdeck.dialects.dims import Expr, exprs, product
from lowerdeck.passes.legalize.common.decomposition import swapped
from lowerdeck.passes.legalize.common.linear import (
    convolution,
    einsum,
    matmul,
    pads_for_target,
    transposed_convolution,
)
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.applied import deformable
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied as tf1


def _with_bias(builder: MxnetLegalizer, x: SSAValue, axis: int) -> SSAValue:
    """The sum with the bias, if there is one."""
    if builder.flag("no_bias"):
        return x
    bias = builder.value("bias").cast(element_type(x))
    return (TensorValue(builder, x) + bias.column(rank_of(x), axis)).value


def window_of(builder: MxnetLegalizer, rank: int) -> Window:
    """The places of a kernel, with as much padding at the end as at the beginning."""
    strides, dilations = builder.positive("stride", rank), builder.positive("dilate", rank)
    pads = list(exprs(builder.spatial("pad", rank, 0)))
    kernel = exprs(builder.sizes("kernel"))
    return Window(tuple(kernel), strides, dilations, pads, pads, [Expr.const(0)] * rank)


@legalizes("Convolution", "Convolution_v1")
def legalize_convolution(builder: MxnetLegalizer) -> Results:
    """[N, C, spatial...] by [O, C / groups, kernel...], or with channels last in both."""
    x, weight = builder.first(builder.input("data")), builder.first(builder.input("weight"))
    rank = len(builder.sizes("kernel"))
    if rank_of(x) != rank + 2 or rank_of(weight) != rank + 2:
        builder.refuse(f"{x.type} by {weight.type}", f"{rank + 2} dimensions")
    if [dim.value for dim in dims_of(weight)[2:]] != builder.sizes("kernel"):
        builder.refuse(f"weights {weight.type}", f"a kernel of {builder.sizes('kernel')}")
    bias = None if builder.flag("no_bias") else builder.cast(builder.input("bias"), x)
    window = window_of(builder, rank)
    groups = builder.integer("num_group")
    return builder.back(convolution(builder, x, builder.cast(weight, x), bias, window, groups))


@legalizes("Deconvolution")
def legalize_deconvolution(builder: MxnetLegalizer) -> Results:
    """The gradient of a convolution by [C, O / groups, kernel...]."""
    x, weight = builder.first(builder.input("data")), builder.first(builder.input("weight"))
    kernel = builder.sizes("kernel")
    rank = len(kernel)
    if rank_of(x) != rank + 2 or [dim.value for dim in dims_of(weight)[2:]] != kernel:
        builder.refuse(f"{x.type} by {weight.type}", f"a kernel of {kernel}")
    strides, dilations = builder.positive("stride", rank), builder.positive("dilate", rank)
    pads, more = builder.spatial("pad", rank, 0), builder.spatial("adj", rank, 0)
    if any(target := builder.spatial("target_shape", rank, 0)):
        pads, more = pads_for_target(builder, x, kernel, strides, dilations, target)
    given = {"strides": strides, "dilations": dilations, "pads_begin": pads, "pads_end": pads}
    given |= {"output_padding": more, "groups": builder.integer("num_group")}
    found = transposed_convolution(builder, x, builder.cast(weight, x), None, **given)
    return builder.back(_with_bias(builder, found, 1))


@legalizes("_contrib_DeformableConvolution", "_contrib_ModulatedDeformableConvolution")
def legalize_deformable(builder: MxnetLegalizer) -> Results:
    """A convolution whose taps lie elsewhere; the older one knows no places between images."""
    numbers = [builder.positive("stride", 2), builder.spatial("pad", 2, 0)]
    is_modulated = builder.has("mask")
    found = deformable(
        builder,
        builder.input("data"),
        builder.input("weight"),
        builder.value("offset"),
        builder.value("mask") if is_modulated else None,
        [*numbers, builder.positive("dilate", 2)],
        groups=builder.integer("num_group"),
        parts=builder.integer("num_deformable_group"),
        clamps=not is_modulated,
    )
    return _with_bias(builder, found.value, 1)


@legalizes("FullyConnected")
def legalize_fully_connected(builder: MxnetLegalizer) -> Results:
    """Rows, or what the last dimension has, by [O, I] transposed."""
    x, weight = builder.input("data"), builder.input("weight")
    weight = builder.transpose(builder.cast(weight, x), [1, 0])
    dims = dims_of(x)
    builder.axis(0, len(dims))
    if builder.flag("flatten"):
        rows, lead = builder.flatten(x, 1), [dims[0]]
    else:
        rows, lead = builder.reshape(x, [product(dims[:-1]), dims[-1]]), list(dims[:-1])
    found = builder.reshape(builder.add(MatmulOp(rows, weight)), [*lead, dims_of(weight)[1]])
    return _with_bias(builder, found, rank_of(found) - 1)


# Products of matrices


def _turned(builder: MxnetLegalizer, x: SSAValue, flag: str) -> SSAValue:
    """A matrix, or a stack of them, transposed if an argument says so."""
    return swapped(builder, x) if builder.flag(flag) else x


def _dot(builder: MxnetLegalizer) -> SSAValue:
    """The last axis of the first tensor with the first axis of the second one."""
    own = 0 if builder.flag("transpose_a") else -1
    other = -1 if builder.flag("transpose_b") else 0
    found = _contracted(builder, builder.input("lhs"), builder.input("rhs"), [own], [other])
    return builder.least_vector(found)


def _contracted(
    builder: MxnetLegalizer, x: SSAValue, y: SSAValue, own: Sequence[int], others: Sequence[int]
) -> SSAValue:
    """The sum of products over pairs of axes."""
    firsts, seconds = builder.axes(own, rank_of(x)), builder.axes(others, rank_of(y))
    return builder.torch(
        "tensordot.default", element_type(x), self=x, other=y, dims_self=firsts, dims_other=seconds
    )


def _numpy_dot(builder: MxnetLegalizer) -> Results:
    """As numpy's `dot`: the last axis with the last but one."""
    x, y = builder.promoted(builder.input("a"), builder.input("b"))
    if not x.dims or not y.dims:
        return x * y
    return _contracted(builder, x.value, y.value, [-1], [max(len(y.dims) - 2, 0)])


def _matmul(builder: MxnetLegalizer) -> SSAValue:
    """As numpy's `matmul`."""
    x, y = builder.promoted(builder.input("a"), builder.input("b"))
    return matmul(builder, x.value, y.value)


@legalizes("_linalg_gemm", "_linalg_gemm2")
def legalize_gemm(builder: MxnetLegalizer) -> Results:
    """alpha A B + beta C, along any axis for the rows."""
    names = ("A", "B", "C") if builder.name == "_linalg_gemm" else ("A", "B")
    values = [builder.input(name) for name in names]
    rank = rank_of(values[0])
    axis = builder.along(values[0])
    order = [k for k in range(rank - 1) if k != axis] + [axis, rank - 1]
    values = [builder.transpose(value, order) for value in values]
    x, y = _turned(builder, values[0], "transpose_a"), _turned(builder, values[1], "transpose_b")
    found = TensorValue(builder, matmul(builder, x, y)) * builder.number("alpha")
    if len(values) == 3:
        found = found + TensorValue.of(builder, values[2]) * builder.number("beta")
    back = [order.index(k) for k in range(rank)]
    return builder.transpose(found.value, back)


@legalizes("_linalg_syrk", "_linalg_trmm")
def legalize_products(builder: MxnetLegalizer) -> Results:
    """A with its transpose, or a triangle with a matrix."""
    a = builder.input("A")
    if builder.name == "_linalg_syrk":
        pair = (a, swapped(builder, a))
        pair = pair[::-1] if builder.flag("transpose") else pair
    else:
        name = "tril" if builder.flag("lower") else "triu"
        triangle = _turned(builder, builder.torch(f"{name}.default", self=a), "transpose")
        b = builder.input("B")
        pair = (b, triangle) if builder.flag("rightside") else (triangle, b)
    return TensorValue(builder, matmul(builder, pair[0], pair[1])) * builder.number("alpha")


@legalizes("_linalg_extractdiag", "_linalg_makediag", "_linalg_sumlogdiag")
def legalize_diagonals(builder: MxnetLegalizer) -> Results:
    """The diagonal of matrices, matrices of a diagonal, or the sum of logarithms of one."""
    a = builder.input("A")
    if builder.name == "_linalg_makediag":
        return builder.torch("diag_embed.default", self=a, offset=builder.integer("offset"))
    offset = builder.integer("offset") if builder.has("offset") else 0
    found = builder.torch("diagonal.default", self=a, offset=offset, dim1=-2, dim2=-1)
    if builder.name == "_linalg_extractdiag":
        return found
    total = TensorValue(builder, found).log().reduce("sum", [rank_of(found) - 1])
    return builder.least_vector(total.value)


def _khatri_rao(x: TensorValue, y: TensorValue) -> TensorValue:
    """Kronecker's products of columns."""
    rows, columns = x.dims
    wide = x.reshape([rows, 1, columns]) * y.reshape([1, *y.dims])
    return wide.reshape([rows * y.dims[0], columns])


def _einsum(builder: MxnetLegalizer) -> SSAValue:
    """Sums of products by labels."""
    values = builder.promoted(*builder.inputs("data"))
    equation = builder.text("subscripts").replace(" ", "")
    return einsum(builder, equation, [value.value for value in values])


legalizes.rows(
    {
        "_linalg_det": lambda b: b.least_vector(tf1(b, "MatrixDeterminant", b.input("A"))[0]),
        "_linalg_inverse": lambda b: tf1(b, "MatrixInverse", b.input("A"), adjoint=False),
        "_linalg_potrf": lambda b: tf1(b, "Cholesky", b.input("A")),
        "_np_dot": _numpy_dot,
        "_npi_einsum": _einsum,
        "_npi_matmul": _matmul,
        "batch_dot": lambda b: matmul(
            b,
            _turned(b, b.input("lhs"), "transpose_a"),
            _turned(b, b.input("rhs"), "transpose_b"),
        ),
        "dot": _dot,
        "khatri_rao": lambda b: reduce(
            _khatri_rao, (TensorValue.of(b, v) for v in b.inputs("args"))
        ),
    }
)


@legalizes("_npi_tensordot", "_npi_tensordot_int_axes")
def legalize_tensordot(builder: MxnetLegalizer) -> Results:
    """Sums over pairs of axes."""
    x, y = builder.promoted(builder.input("a"), builder.input("b"))
    if builder.name == "_npi_tensordot":
        own, others = (builder.sizes(f"{name}_axes_summed") for name in "ab")
    else:
        count = builder.integer("axes")
        if not 0 <= count <= min(len(x.dims), len(y.dims)):
            builder.refuse(f"{count} axes", "as many as there are")
        own, others = list(range(len(x.dims) - count, len(x.dims))), list(range(count))
    return _contracted(builder, x.value, y.value, own, others)


# Attention


def _heads(builder: MxnetLegalizer, x: SSAValue, parts: int) -> list[SSAValue]:
    """[length, batch, heads * parts * size] as `parts` of [batch * heads, length, size]."""
    length, batch, width = dims_of(x)
    heads = builder.integer("heads")
    size = width // (heads * parts)
    wide = builder.reshape(x, [length, batch * heads, parts, size])
    return [
        builder.transpose(builder.squeeze(builder.slice_axis(wide, 2, k, 1), [2]), [1, 0, 2])
        for k in range(parts)
    ]


@legalizes("_contrib_interleaved_matmul_selfatt_qk", "_contrib_interleaved_matmul_encdec_qk")
def legalize_scores(builder: MxnetLegalizer) -> Results:
    """Products of queries and keys, by the root of their size."""
    if builder.has("queries_keys_values"):
        queries, keys, _ = _heads(builder, builder.input("queries_keys_values"), 3)
    else:
        (queries,) = _heads(builder, builder.input("queries"), 1)
        keys, _ = _heads(builder, builder.input("keys_values"), 2)
    size = dims_of(queries)[-1]
    if size.value is None:
        builder.refuse("queries of an open size", "a known one")
    scaled = TensorValue.of(builder, queries) * (1.0 / size.value**0.5)
    return matmul(builder, scaled.value, builder.transpose(keys, [0, 2, 1]))


@legalizes("_contrib_interleaved_matmul_selfatt_valatt")
@legalizes("_contrib_interleaved_matmul_encdec_valatt")
def legalize_weighted_values(builder: MxnetLegalizer) -> Results:
    """Values by their weights, as [length, batch, heads * size]."""
    if builder.has("queries_keys_values"):
        values = _heads(builder, builder.input("queries_keys_values"), 3)[2]
    else:
        values = _heads(builder, builder.input("keys_values"), 2)[1]
    found = builder.transpose(matmul(builder, builder.input("attention"), values), [1, 0, 2])
    length, groups, size = dims_of(found)
    heads = builder.integer("heads")
    return builder.reshape(found, [length, groups // heads, size * heads])
