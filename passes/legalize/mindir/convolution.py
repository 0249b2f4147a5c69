"""Convolutions, matrix products and pools."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, exprs, maximum
from lowerdeck.passes.legalize.common.linear import (
    convolution,
    einsum,
    matmul,
    transposed_convolution,
)
from lowerdeck.passes.legalize.common.pooling import pool
from lowerdeck.passes.legalize.common.windows import Window, round_up, same
from lowerdeck.passes.legalize.mindir.legalizer import MindirLegalizer
from lowerdeck.passes.legalize.mindir.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _window(
    builder: MindirLegalizer,
    kernel: Sequence[Expr],
    strides: list[int],
    dilations: list[int],
    space: Sequence[Expr],
    pads: str,
) -> Window:
    """The window with the padding of `pad_mode`; `pads` holds that of `pad`."""
    rank = len(space)
    zero = [Expr.const(0)] * rank
    window = Window(tuple(kernel), strides, dilations, zero, zero, zero)
    mode = builder.pad_mode()
    if mode == "same":
        return same(window, space, upper=True)
    if mode == "valid":
        return window
    if not builder.has(pads):
        builder.refuse(f"pad_mode '{mode}'", "'same' or 'valid'")
    found = builder.ints_of(pads)
    found = found * (2 * rank) if len(found) == 1 else found
    if len(found) != 2 * rank:
        builder.refuse(f"'{pads}' of {len(found)} numbers", f"1 or {2 * rank}")
    begin, end = exprs(found[::2]), exprs(found[1::2])
    return Window(tuple(kernel), strides, dilations, list(begin), list(end), zero)


@legalizes("Conv2D", "Conv3D")
def legalize_convolution(builder: MindirLegalizer) -> Results:
    """[N, C, spatial...] by [O, C / groups, kernel...]."""
    x, weight = builder.input("x"), builder.input("w")
    if builder.is_last:
        builder.refuse("channels that come last", "NCHW", "export it for the CPU")
    if builder.integer("mode", 1) != 1:
        builder.refuse(f"mode {builder.get('mode')}", "1, a convolution")
    rank = rank_of(x) - 2
    strides, dilations = builder.pair("stride", rank), builder.pair("dilation", rank)
    window = _window(builder, dims_of(weight)[2:], strides, dilations, dims_of(x)[2:], "pad")
    return convolution(builder, x, weight, None, window, builder.integer("group"))


@legalizes("Conv2DTranspose", "Conv2DBackpropInput", "Conv3DTranspose")
def legalize_transposed_convolution(builder: MindirLegalizer) -> Results:
    """What a convolution of an image of the size `input_size` is transposed."""
    names = list(builder.op.schema.arguments)
    x, weight = builder.input(names[0]), builder.input(names[1])
    if builder.is_last:
        builder.refuse("channels that come last", "NCHW", "export it for the CPU")
    rank = rank_of(x) - 2
    strides, dilations = builder.pair("stride", rank), builder.pair("dilation", rank)
    kernel = dims_of(weight)[2:]
    if builder.has("input_size"):
        size = builder.exprs_of("input_size")[2:]
    else:
        size = _transposed_size(builder, x, kernel, strides, dilations)
    if (len(kernel), len(size)) != (rank, rank):
        builder.refuse(
            f"a window and a result of {len(kernel)} and {len(size)} dimensions", f"{rank} each"
        )
    window = _window(builder, kernel, strides, dilations, size, "pad")
    begin, end = window.begin, window.end
    if builder.pad_mode() == "same":
        totals = [
            maximum((d - 1) * stride + extent - n, 0)
            for d, stride, extent, n in zip(
                dims_of(x)[2:], strides, window.extents, size, strict=True
            )
        ]
        begin = [total // 2 for total in totals]
        end = [total - total // 2 for total in totals]
    rest = [
        n - ((d - 1) * stride + extent - b - e)
        for n, d, stride, extent, b, e in zip(
            size, dims_of(x)[2:], strides, window.extents, begin, end, strict=True
        )
    ]
    amounts = [_known(builder, each) for each in (begin, end, rest)]
    result = transposed_convolution(
        builder,
        x,
        weight,
        None,
        strides=strides,
        dilations=dilations,
        pads_begin=amounts[0],
        pads_end=amounts[1],
        output_padding=amounts[2],
        groups=builder.integer("group"),
    )
    return [result]


def _transposed_size(
    builder: MindirLegalizer,
    x: SSAValue,
    kernel: Sequence[Expr],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> list[Expr]:
    """The size of the image if the op does not say it: the smallest one, and `output_padding`."""
    rank = len(kernel)
    pads = builder.ints_of("pad") if builder.pad_mode() == "pad" else [0]
    pads = pads * (2 * rank) if len(pads) == 1 else pads
    more = builder.pair("output_padding", rank)
    if builder.pad_mode() == "same":
        return [d * s for d, s in zip(dims_of(x)[2:], strides, strict=True)]
    return [
        (d - 1) * s + (k - 1) * e + 1 - pads[2 * n] - pads[2 * n + 1] + m
        for n, (d, s, k, e, m) in enumerate(
            zip(dims_of(x)[2:], strides, kernel, dilations, more, strict=True)
        )
    ]


def _known(builder: MindirLegalizer, amounts: Sequence[Expr]) -> list[int]:
    numbers = [amount.value for amount in amounts]
    if None in numbers:
        builder.refuse(f"padding of {list(map(str, amounts))}", "numbers", "fix the sizes")
    return [number for number in numbers if number is not None]


# Products


@legalizes("MatMul", "BatchMatMul")
def legalize_product(builder: MindirLegalizer) -> Results:
    """A product of matrices, each transposed if it says so."""
    names = list(builder.op.schema.arguments)
    factors = [builder.input(name) for name in names[:2]]
    for k, name in enumerate(("transpose_a", "transpose_b")):
        if builder.flag(name):
            rank = rank_of(factors[k])
            order = [*range(rank - 2), rank - 1, rank - 2]
            factors[k] = builder.transpose(factors[k], order)
    return [builder.stated_cast(matmul(builder, factors[0], factors[1]))]


@legalizes("BiasAdd")
def legalize_bias(builder: MindirLegalizer) -> Results:
    """A number for each channel."""
    x, bias = builder.value("input_x"), builder.value("bias")
    axis = len(x.dims) - 1 if builder.is_last else 1
    return [(x + bias.column(len(x.dims), axis)).value]


@legalizes("Einsum", "EinsumExt")
def legalize_einsum(builder: MindirLegalizer) -> Results:
    """Sums of products by labels."""
    values = builder.inputs("inputs" if builder.has("inputs") else "operands")
    return [einsum(builder, builder.text("equation").replace(" ", ""), values)]


# Pools


@legalizes("MaxPool", "AvgPool")
def legalize_pool(builder: MindirLegalizer) -> Results:
    """The largest element or the mean of each window; padding does not count."""
    is_last = builder.is_last
    x = builder.first(builder.input("x"))
    kernel = exprs(builder.pair("kernel_size", is_last=is_last))
    strides = builder.pair("strides", is_last=is_last)
    window = _window(builder, kernel, strides, [1, 1], dims_of(x)[2:], "pad")
    kind = "max" if builder.name == "MaxPool" else "average"
    return [builder.back(pool(builder, kind, x, window))]


@legalizes("MaxPool3D", "AvgPool3D")
def legalize_pool_of_volume(builder: MindirLegalizer) -> Results:
    """The largest element or the mean of each window."""
    x = builder.input()
    is_max = builder.name == "MaxPool3D"
    kernel, strides = exprs(builder.pair("kernel_size", 3)), builder.pair("strides", 3)
    pads = "pad_list" if is_max else "pad"
    window = _window(builder, kernel, strides, [1, 1, 1], dims_of(x)[2:], pads)
    if builder.flag("ceil_mode"):
        window = round_up(window, dims_of(x)[2:])
    if is_max:
        return [pool(builder, "max", x, window)]
    if divisor := builder.integer("divisor_override", 0):
        total = TensorValue(builder, pool(builder, "sum", x, window))
        return [(total / float(divisor)).value]
    counts = builder.flag("count_include_pad")
    return [pool(builder, "average", x, window, count_pads=counts)]


@legalizes("MaxPool3DWithArgmax", "MaxPoolWithArgmaxV2", "MaxPoolWithIndices", "MaxPoolWithMask")
def legalize_pool_with_places(builder: MindirLegalizer) -> Results:
    """The largest elements, and their places in the image."""
    rank = 3 if "3D" in builder.name else 2
    kernel = "ksize" if builder.has("ksize") else "kernel_size"
    found = builder.torch(
        f"max_pool{rank}d_with_indices.default",
        [builder.element(), i64],
        self=builder.input(),
        kernel_size=builder.pair(kernel, rank),
        stride=builder.pair("strides", rank),
        padding=builder.pair("pads", rank),
        dilation=builder.pair("dilation", rank),
        ceil_mode=builder.flag("ceil_mode"),
    )
    return [found[0], None if found[1] is None else builder.stated_cast(found[1], 1)]


@legalizes("AdaptiveAvgPool2D", "AdaptiveMaxPool2D")
def legalize_adaptive_pool(builder: MindirLegalizer) -> Results:
    """Windows of nearly equal size; a size that is not given stays."""
    x = builder.input()
    given = builder.get("output_size")
    sizes = [given, given] if isinstance(given, int) else list(given or [None, None])
    space = dims_of(x)[-2:]
    known = [
        dim.value if size in (None, -1) else size for size, dim in zip(sizes, space, strict=True)
    ]
    if None in known:
        builder.refuse("an open size that stays", "sizes")
    kind = "max" if "Max" in builder.name else "avg"
    return builder.torch(f"adaptive_{kind}_pool2d.default", self=x, output_size=known)
