"""Normalizations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.normalization import deviation, local_response, moments
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU")
def legalize_batch_norm(builder: MxnetLegalizer) -> Results:
    """By the statistics of training. With `fix_gamma` the scale is one."""
    x = builder.input("data")
    names = list(builder.op.schema.arguments)[1:5]
    element = f64 if element_type(x) == f64 else f32
    scale, bias, mean, variance = (builder.cast(builder.input(name), element) for name in names)
    axis = builder.along(x) if builder.has("axis") else builder.axis(1, rank_of(x))
    if builder.flag("fix_gamma"):
        scale = builder.broadcast(builder.scalar(1, element), dims_of(scale))
    op = BatchNormOp(
        builder.cast(x, element), scale, bias, mean, variance, builder.number("eps"), axis
    )
    found = TensorValue(builder, builder.add(op))
    if builder.name == "_contrib_BatchNormWithReLU":
        found = found.maximum(0)
    return [builder.cast(found.value, x), mean]


def _normalized(builder: MxnetLegalizer, x: SSAValue, axes: Sequence[int]) -> list[TensorValue]:
    """x without its mean and by its deviation along axes, the mean and the deviation."""
    wide = builder.wide(x).value
    center, rest, variance = moments(builder, wide, axes)
    spread = deviation(builder, variance, builder.number("eps"))
    found = [TensorValue(builder, value) for value in (rest, center, spread)]
    return [found[0] / found[2], *found[1:]]


def _scaled(builder: MxnetLegalizer, x: TensorValue, dims: Sequence[object]) -> TensorValue:
    """By the parameters, in a shape that broadcasts."""
    gamma, beta = (builder.value(name).cast(x.element) for name in ("gamma", "beta"))
    shape = [1 if dim is None else gamma.dims[0] for dim in dims]
    return x * gamma.reshape(shape) + beta.reshape(shape)


@legalizes("LayerNorm")
def legalize_layer_norm(builder: MxnetLegalizer) -> Results:
    """Along one axis; the mean and the deviation are results, too."""
    x = builder.input("data")
    axis = builder.along(x)
    value, center, spread = _normalized(builder, x, [axis])
    places = [True if k == axis else None for k in range(rank_of(x))]
    found = _scaled(builder, value, places)
    rest = [
        builder.narrow(each.reshape([d for k, d in enumerate(each.dims) if k != axis]))
        for each in (center, spread)
    ]
    return [builder.narrow(found), *rest]


@legalizes("InstanceNorm")
def legalize_instance_norm(builder: MxnetLegalizer) -> Results:
    """Over the places of each channel of each image."""
    x = builder.input("data")
    rank = rank_of(x)
    value = _normalized(builder, x, list(range(2, rank)))[0]
    return builder.narrow(_scaled(builder, value, [None, True, *[None] * (rank - 2)]))


@legalizes("GroupNorm")
def legalize_group_norm(builder: MxnetLegalizer) -> Results:
    """Over groups of channels; one scale for each channel, or for each group."""
    x = builder.input("data")
    dims = dims_of(x)
    groups = builder.integer("num_groups")
    wide = builder.reshape(x, [dims[0], groups, dims[1] // groups, *dims[2:]])
    rank = rank_of(wide)
    value, center, spread = _normalized(builder, wide, list(range(2, rank)))
    if dims_of(builder.input("gamma"))[0] == groups != dims[1]:
        found = _scaled(builder, value, [None, True, *[None] * (rank - 2)])
    else:
        found = _scaled(builder, value.reshape(dims), [None, True, *[None] * (len(dims) - 2)])
    rest = [builder.narrow(each.reshape([dims[0], groups])) for each in (center, spread)]
    return [builder.narrow(found.reshape(dims)), *rest]


@legalizes("L2Normalization")
def legalize_l2(builder: MxnetLegalizer) -> Results:
    """By the root of the sum of squares of an image, of a place, or of a channel."""
    x = builder.wide(builder.input())
    rank = len(x.dims)
    axes = {
        "instance": list(range(1, rank)),
        "channel": [1],
        "spatial": list(range(2, rank)),
    }[builder.choice("mode", "instance", "channel", "spatial")]
    total = (x * x).reduce("sum", axes, keep_dims=True) if axes else x * x
    root = deviation(builder, total.value, builder.number("eps"))
    return builder.narrow(x / TensorValue(builder, root))


@legalizes("LRN")
def legalize_lrn(builder: MxnetLegalizer) -> Results:
    """By the squares of neighboring channels."""
    x, size = builder.input(), builder.integer("nsize")
    if size < 1 or size % 2 == 0:
        builder.refuse(f"'nsize' is {size}", "an odd number")
    alpha, bias, beta = (builder.number(name) for name in ("alpha", "knorm", "beta"))
    return local_response(builder, x, 1, (size // 2, size // 2), alpha / size, bias, beta)


@legalizes("_contrib_count_sketch")
def legalize_count_sketch(builder: MxnetLegalizer) -> Results:
    """Elements of rows with signs, summed where a hash puts them."""
    x = builder.value("data")
    rows = x.dims[0]
    columns = product(x.dims[1:])
    index = builder.index(builder.input("h")).reshape([1, columns]).broadcast([rows, columns])
    signed = x.reshape([rows, columns]) * builder.value("s").reshape([1, columns])
    zeros = builder.broadcast(builder.scalar(0, x.element), [rows, builder.integer("out_dim")])
    found = builder.torch(
        "scatter_add.default", self=zeros, dim=1, index=index.value, src=signed.value
    )
    return found
