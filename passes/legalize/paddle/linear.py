"""Convolutions and products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, element_type, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.decomposition import singular_values, swapped
from lowerdeck.passes.legalize.common.linear import (
    convolution,
    einsum,
    matmul,
    transposed_convolution,
)
from lowerdeck.passes.legalize.common.windows import Window, same, with_a_place
from lowerdeck.passes.legalize.onnx.applied import deformable
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied as tf1

# Convolutions


def window_of(
    builder: PaddleLegalizer, kernel: Sequence[Expr], dims: Sequence[Expr], dilations: list[int]
) -> Window:
    """The window over the spatial dimensions `dims`, with the padding that is asked for."""
    rank = len(kernel)
    strides = builder.ints_of("strides") if builder.get("strides") else [1] * rank
    amounts = [Expr.const(k) for k in builder.ints_of("paddings")]
    if len(amounts) not in (rank, 2 * rank):
        builder.refuse(f"{len(amounts)} paddings for {rank} dimensions", "as many of each")
    none = [Expr.const(0)] * rank
    begin, end = (amounts[::2], amounts[1::2]) if len(amounts) == 2 * rank else (amounts, amounts)
    algorithm = builder.text("padding_algorithm") if builder.has("padding_algorithm") else ""
    if algorithm == "SAME":
        window = Window(tuple(kernel), strides, [1] * rank, none, none, none)
        return same(window, dims, upper=True)
    begin, end = ([], []) if algorithm == "VALID" else (begin, end)
    return Window(tuple(kernel), strides, dilations, begin or none, end or none, none)


@legalizes("conv2d", "conv3d", "depthwise_conv2d", "fused_conv2d_add_act")
def legalize_convolution(builder: PaddleLegalizer) -> Results:
    """Images with their channels first or last; `SAME` goes without dilations."""
    x, weight = builder.first(builder.input("input")), builder.input("filter")
    dilations = builder.ints_of("dilations")
    dims = dims_of(x)[2:]
    window = with_a_place(window_of(builder, dims_of(weight)[2:], dims, dilations), dims)
    bias = builder.optional("bias") if builder.has("bias") else None
    found = convolution(builder, x, weight, bias, window, builder.integer("groups"))
    if builder.name == "fused_conv2d_add_act":
        return builder.results(output=builder.back(_fused(builder, found)))
    return builder.back(found)


def _fused(builder: PaddleLegalizer, x: SSAValue) -> SSAValue:
    """What a fused convolution does after it."""
    y = TensorValue(builder, x)
    if builder.optional("residual_data") is not None:
        y = y + TensorValue.of(builder, builder.first(builder.input("residual_data")))
    return activated(builder, y, builder.text("activation")).value


def activated(builder: PaddleLegalizer, x: TensorValue, name: str) -> TensorValue:
    """An activation by name."""
    match name:
        case "" | "identity":
            return x
        case "relu":
            return x.gt(0).where(x, 0)
        case _:
            builder.refuse(f"the fused activation '{name}'", "relu or none")


@legalizes("conv2d_transpose", "conv3d_transpose", "depthwise_conv2d_transpose")
def legalize_transposed(builder: PaddleLegalizer) -> Results:
    """Weights are [in, out / groups, ...]; a size that is given adds to the end."""
    x, weight = builder.first(builder.input("x")), builder.input("filter")
    rank = rank_of(weight) - 2
    dilations, strides = (builder.ints_of(name, rank) for name in ("dilations", "strides"))
    window = window_of(builder, dims_of(weight)[2:], dims_of(x)[2:], dilations)
    extra = builder.ints_of("output_padding") if builder.get("output_padding") else [0] * rank
    if builder.get("output_size") and builder.exprs_of("output_size"):
        (sizes,) = builder.exprs_along(dims_of(x)[2:], "output_size")
        extra.clear()
        for k, size in enumerate(sizes):
            own = (dims_of(x)[2 + k] - 1) * strides[k] - window.begin[k] - window.end[k]
            more = (size - own - (dims_of(weight)[2 + k] - 1) * window.dilations[k] - 1).value
            if more is None:
                builder.refuse(f"an output size {size}", "a number")
            extra.append(more)
    pads: dict[str, Any] = {"pads_begin": window.begin, "pads_end": window.end}
    given = {"strides": strides, "dilations": window.dilations, "output_padding": extra}
    groups = builder.integer("groups")
    return builder.back(
        transposed_convolution(builder, x, weight, None, **pads, **given, groups=groups)
    )


@legalizes("deformable_conv")
def legalize_deformable(builder: PaddleLegalizer) -> Results:
    """A convolution whose taps lie elsewhere."""
    return deformable(
        builder,
        builder.input("x"),
        builder.input("filter"),
        builder.value("offset"),
        None if builder.optional("mask") is None else builder.value("mask"),
        [builder.ints_of(name, 2) for name in ("strides", "paddings", "dilations")],
        groups=builder.integer("groups"),
        parts=builder.integer("deformable_groups"),
    ).value


# Products


@legalizes("matmul", "fused_matmul", "bmm", "mv")
def legalize_matmul(builder: PaddleLegalizer) -> Results:
    """Products of matrices, batches of them, and vectors."""
    x, y = builder.input("x"), builder.input("vec" if builder.name == "mv" else "y")
    if builder.has("transpose_x"):
        x, y = (
            swapped(builder, value) if builder.flag(name) else value
            for name, value in (("transpose_x", x), ("transpose_y", y))
        )
    found = TensorValue(builder, matmul(builder, x, y))
    alpha = builder.number("alpha") if builder.has("alpha") else 1.0
    if builder.name == "fused_matmul":
        alpha *= builder.number("matmul_alpha")
        found = activated(builder, found * alpha, builder.text("fuse_activation"))
        return found.value
    return (found if alpha == 1 else found * alpha).value


@legalizes("matmul_with_flatten", "fc")
def legalize_flat_matmul(builder: PaddleLegalizer) -> Results:
    """The product of two tensors as matrices; the result has the dimensions that are left."""
    if builder.name == "fc":
        x, y = builder.input("input"), builder.input("w")
        first, second = builder.integer("in_num_col_dims"), 1
    else:
        x, y = builder.input("x"), builder.input("y")
        first, second = (builder.integer(f"{name}_num_col_dims") for name in "xy")
    dims = [*dims_of(x)[:first], *dims_of(y)[second:]]
    product_ = matmul(builder, builder.flatten(x, first), builder.flatten(y, second))
    found = TensorValue(builder, builder.reshape(product_, dims))
    if builder.name == "fc":
        if builder.flag("padding_weights"):
            builder.refuse("padded weights", "weights as they are")
        if (bias := builder.optional("bias")) is not None:
            found = found + TensorValue.of(builder, bias).reshape([product(dims_of(bias))])
        found = activated(builder, found, builder.text("activation_type"))
    return found.value


def _dot(builder: PaddleLegalizer) -> TensorValue:
    a, b = builder.pair("x", "y")
    return (a * b).reduce("sum", [len(a.dims) - 1])


def _cross(builder: PaddleLegalizer) -> TensorValue:
    """The cross product of vectors of three; 9 is the first axis of three."""
    a, b = builder.pair("x", "y")
    axis = builder.integer("axis")
    if axis == 9:
        axis = next((k for k, dim in enumerate(a.dims) if dim == 3), 0)
    (found,) = builder.torch("linalg_cross.default", self=a.value, other=b.value, dim=axis)
    return TensorValue(builder, found)


def _channels(builder: PaddleLegalizer) -> TensorValue:
    """The mean of products of channels."""
    x, y = builder.input("x"), builder.input("y")
    area = TensorValue.dim(builder, product(dims_of(x)[2:])).cast(element_type(x))
    return TensorValue(builder, einsum(builder, "nahw,nbhw->nab", [x, y])) / area


_PRODUCTS: Mapping[str, Callable[[PaddleLegalizer], TensorValue]] = {
    "cross": _cross,
    "dot": _dot,
    "einsum": lambda b: TensorValue(b, einsum(b, b.text("equation"), b.inputs("x"))),
    "fsp": _channels,
}


@legalizes(*_PRODUCTS)
def legalize_products(builder: PaddleLegalizer) -> Results:
    """Products of vectors, of blocks, of several matrices, and sums of them by labels."""
    first = builder.operator.declared.results[0]
    return builder.results(**{first: _PRODUCTS[builder.name](builder).value})


@legalizes("solve")
def legalize_solve(builder: PaddleLegalizer) -> Results:
    """Solutions of linear equations, as in TensorFlow, for a matrix or a vector."""
    x, y = builder.input("x"), builder.input("y")
    is_vector = rank_of(y) == 1
    y = builder.unsqueeze(y, [1]) if is_vector else y
    (found,) = tf1(builder, "MatrixSolve", x, y, adjoint=False)
    return builder.squeeze(found, [rank_of(found) - 1]) if is_vector else found


def _cholesky(builder: PaddleLegalizer) -> SSAValue:
    found = tf1(builder, "Cholesky", builder.input("x"))[0]
    return swapped(builder, found) if builder.flag("upper") else found


legalizes.rows(
    {
        "cholesky": _cholesky,
        "det": lambda b: tf1(b, "MatrixDeterminant", b.input("x")),
        "inverse": lambda b: tf1(b, "MatrixInverse", b.input("x"), adjoint=False),
    }
)


@legalizes("svd", "svdvals")
def legalize_singular_values(builder: PaddleLegalizer) -> Results:
    """Singular values in descending order."""
    if builder.name == "svd" and (builder.has_result("u") or builder.has_result("vh")):
        builder.refuse("singular vectors", "singular values")
    return builder.results(s=builder.narrow(singular_values(builder, builder.wide())))
