"""Patches of images and volumes: what windows see, as channels."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.pooling import padded
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.windows import Layout, require_image, spatial_dims, window_of


@legalizes("ExtractImagePatches")
def legalize_image_patches(builder: Tf1Legalizer) -> Results:
    """[N, height, width, C] as [N, rows, columns, kernel height * kernel width * C]."""
    rates = Layout(builder, False).spatial(builder.attrs.ints("rates"))
    return [_patches(builder, require_image(builder, number(builder, "images"), 4), rates)]


@legalizes("ExtractVolumePatches")
def legalize_volume_patches(builder: Tf1Legalizer) -> Results:
    """[N, depth, height, width, C] by windows of three dimensions."""
    return [_patches(builder, require_image(builder, number(builder, "input"), 5), [1, 1, 1])]


def _patches(builder: Tf1Legalizer, x: SSAValue, rates: list[int]) -> SSAValue:
    """Each spatial dimension becomes two: which window, and where in it."""
    layout = Layout(builder, False)
    kernel = [Expr.const(size) for size in layout.spatial(builder.attrs.ints("ksizes"))]
    strides = layout.spatial(builder.attrs.ints("strides"))
    count = len(kernel)
    first = layout.to_first(x)
    window = window_of(builder, layout, spatial_dims(first), kernel, strides, rates)
    around = layout.from_first(padded(builder, first, window, builder.scalar(0, x)))
    places = [
        (dim - extent) // stride + 1
        for dim, extent, stride in zip(dims_of(around)[1:-1], window.extents, strides, strict=True)
    ]
    for k in range(count):
        starts = TensorValue.iota(builder, places[k]).column(2, 0) * strides[k]
        index = starts + TensorValue.iota(builder, kernel[k]).column(2, 1) * rates[k]
        around = builder.add(GatherOp(around, index.value, 1 + 2 * k))
    rank = rank_of(around)
    order = [0, *range(1, rank - 1, 2), *range(2, rank - 1, 2), rank - 1]
    dims = dims_of(around)
    depth = product([*kernel, dims[-1]])
    return builder.reshape(builder.transpose(around, order), [dims[0], *places, depth])
