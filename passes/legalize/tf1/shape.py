"""Shapes as values, and operators that change only the shape."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import (
    broadcast,
    dims_of,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.passes.legalize.common.movement import bitcast
from lowerdeck.passes.legalize.sizes import (
    Axes,
    extended_dims,
    resolved_shape,
    sizes_of,
    without_ones,
)
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


def integers(
    builder: Tf1Legalizer,
    values: Sequence[ExprLike],
    shape: Sequence[int] | None = None,
    result: int = 0,
) -> SSAValue:
    """Expressions as a tensor, a vector by default, of the element type of a result."""
    return builder.cast(builder.dims(values, shape), builder.result_element(result))


@legalizes("Shape", "ShapeN")
def legalize_shape(builder: Tf1Legalizer) -> Results:
    """One vector an operand."""
    return [integers(builder, dims_of(value)) for value in builder.op.inputs]


@legalizes("Size")
def legalize_size(builder: Tf1Legalizer) -> Results:
    return [integers(builder, [product(dims_of(builder.operand("input")))], [])]


@legalizes("Rank")
def legalize_rank(builder: Tf1Legalizer) -> Results:
    return [integers(builder, [rank_of(builder.operand("input"))], [])]


@legalizes("Reshape")
def legalize_reshape(builder: Tf1Legalizer) -> Results:
    """-1 is what is left; 0 is a dimension of no elements."""
    x = builder.operand("tensor")
    dims = resolved_shape(builder, x, builder.operand("shape"), allow_zero=True)
    return [builder.reshape(x, dims)]


@legalizes("ExpandDims")
def legalize_expand_dims(builder: Tf1Legalizer) -> Results:
    """The axis counts in the result."""
    x = builder.operand("input")
    axes = Axes.of(builder, builder.operand("dim"), rank_of(x) + 1)
    if axes.known is None:
        return [builder.reshape(x, extended_dims(builder, x, axes))]
    return [builder.unsqueeze(x, axes.known)]


@legalizes("Squeeze")
def legalize_squeeze(builder: Tf1Legalizer) -> Results:
    """Without axes, all dimensions of one go."""
    x = builder.operand("input")
    given = builder.attrs.ints("squeeze_dims")
    if not given:
        return [without_ones(builder, x)]
    axes = builder.axes(given, rank_of(x))
    for axis in axes:
        if (size := dims_of(x)[axis].value) not in (None, 1):
            builder.refuse(f"dimension {axis} of {size}", "1")
    return [builder.squeeze(x, axes)]


@legalizes("EnsureShape")
def legalize_ensure_shape(builder: Tf1Legalizer) -> Results:
    """The operand, whose shape must not be known to be another."""
    x, shape = builder.operand("input"), builder.attrs.shape("shape")
    if shape is None:
        return [x]
    dims = dims_of(x)
    fits = len(dims) == len(shape) and all(
        size < 0 or dim.value in (None, size) for size, dim in zip(shape, dims, strict=True)
    )
    if not fits:
        builder.refuse(f"a shape of [{', '.join(map(str, dims))}]", f"{list(shape)}")
    return [x]


@legalizes("BroadcastArgs")
def legalize_broadcast_args(builder: Tf1Legalizer) -> Results:
    """The shape that tensors of two shapes broadcast to."""
    shapes = [sizes_of(builder, builder.operand(name), "a shape") for name in ("s0", "s1")]
    return [integers(builder, broadcast(shapes))]


@legalizes("ConcatOffset")
def legalize_concat_offset(builder: Tf1Legalizer) -> Results:
    """Where each part of a concatenation begins: zeros, but for the axis."""
    shapes = [sizes_of(builder, value, "a shape") for value in builder.operands("shape")]
    rank = len(shapes[0])
    if any(len(shape) != rank for shape in shapes):
        builder.refuse(
            f"shapes of {sorted({len(shape) for shape in shapes})} dimensions", "one rank"
        )
    axis = builder.axis(builder.require_int(builder.operand("concat_dim"), "the axis"), rank)
    start, offsets = Expr.const(0), list[SSAValue]()
    for shape in shapes:
        offsets.append(integers(builder, [start if k == axis else 0 for k in range(rank)]))
        start = start + shape[axis]
    return offsets


@legalizes("Bitcast")
def legalize_bitcast(builder: Tf1Legalizer) -> Results:
    """The same bits as elements of another type, along one dimension more or less."""
    return [bitcast(builder, builder.operand("input"), builder.attrs.element("type"))]
