"""Pools over windows of images, volumes and channels."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.types import bf16, dims_of, element_type, f16, f32, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.pooling import max_places, pool
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.windows import Layout, require_image, spatial_dims, window_of

_RANKS = {"AvgPool3D": 5, "MaxPool3D": 5}


@legalizes("MaxPool", "MaxPoolV2", "MaxPool3D")
def legalize_max_pool(builder: Tf1Legalizer) -> Results:
    """The largest element of each window."""
    return [_pool(builder, "max", number(builder, 0))]


@legalizes("AvgPool", "AvgPool3D")
def legalize_average_pool(builder: Tf1Legalizer) -> Results:
    """The mean of each window, of which padding is no part; of half precision in f32."""
    x = number(builder, 0)
    wide = builder.cast(x, f32) if element_type(x) in (f16, bf16) else x
    return [builder.cast(_pool(builder, "average", wide), x)]


def _pool(builder: Tf1Legalizer, kind: str, x: SSAValue) -> SSAValue:
    require_image(builder, x, _RANKS.get(builder.op_type, 4))
    layout = Layout.of(builder)
    kernel, strides = map(layout.of_each, kernel_of(builder))
    axis = layout.axis(rank_of(x))
    if kernel[axis] != 1:
        return _channel_pool(builder, kind, x, axis, kernel, strides)
    value = layout.to_first(x)
    window = pool_window(builder, layout, value, kernel, strides)
    return layout.from_first(pool(builder, kind, value, window))


def kernel_of(builder: Tf1Legalizer) -> tuple[list[int], list[int]]:
    """The sizes and strides of the window, one number a dimension."""
    if builder.op_type.endswith("V2"):
        ksize = builder.require_ints(builder.operand("ksize"), "ksize")
        return ksize, builder.require_ints(builder.operand("strides"), "strides")
    return builder.attrs.ints("ksize"), builder.attrs.ints("strides")


def pool_window(
    builder: Tf1Legalizer, layout: Layout, x: SSAValue, kernel: list[int], strides: list[int]
) -> Window:
    """The window over [N, C, spatial...] of one size and stride a dimension."""
    sizes = [Expr.const(size) for size in layout.spatial(kernel)]
    steps = layout.spatial(strides)
    return window_of(builder, layout, spatial_dims(x), sizes, steps, [1] * len(sizes))


def _channel_pool(
    builder: Tf1Legalizer, kind: str, x: SSAValue, axis: int, kernel: list[int], strides: list[int]
) -> SSAValue:
    """A pool over groups of channels that do not overlap."""
    size = kernel[axis]
    others = [*kernel[:axis], *kernel[axis + 1 :], *strides[:axis], *strides[axis + 1 :]]
    dims = dims_of(x)
    is_even = dims[axis].value is not None and dims[axis] % size == 0
    if set(others) != {1} or strides[axis] != size or not is_even:
        builder.refuse(
            f"a window {kernel} with strides {strides} over {dims[axis]} channels",
            "one over channels or over the image, and channels in whole groups",
        )
    builder.attrs.ignore("padding")
    groups = builder.reshape(x, [*dims[:axis], dims[axis] // size, size, *dims[axis + 1 :]])
    if kind == "max":
        return builder.reduce("max", groups, [axis + 1])
    return mean(builder, groups, [axis + 1])


@legalizes("MaxPoolWithArgmax")
def legalize_max_pool_with_places(builder: Tf1Legalizer) -> Results:
    """The largest elements, and their places in the flattened image or batch of images."""
    layout = Layout(builder, False)
    given = require_image(builder, number(builder, "input"), 4)
    x = layout.to_first(given)
    window = pool_window(builder, layout, x, *kernel_of(builder))
    result = pool(builder, "max", x, window)
    in_batch = builder.attrs.flag("include_batch_in_index")
    builder.attrs.ignore("Targmax")
    if not builder.wants(1):
        return [layout.from_first(result)]
    dims = dims_of(given) if in_batch else (Expr.const(1), *dims_of(given)[1:])
    places = builder.reshape(builder.add(IotaOp([product(dims)])), dims)
    places = layout.to_first(builder.broadcast(places, dims_of(given)))
    found = max_places(builder, x, places, window, dims_of(result))
    return [
        layout.from_first(result),
        builder.cast(layout.from_first(found), builder.result_element(1)),
    ]
