"""Layers and formulas of random programs of `core`: what has weights, and what passes recognize."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Attribute, SSAValue

from fuzz.core_programs import Builder, Unfit, recipe, sizes_of
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.enums import PoolKind
from lowerdeck.dialects.core.linear import (
    BatchNormOp,
    ConvOp,
    ConvTransposeOp,
    LayerNormOp,
    MatmulOp,
    SparseProductOp,
    WindowsOp,
)
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SliceOp, SplitOp, TransposeOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
    rank_of,
    ui8,
)
from lowerdeck.dialects.dims import ExprLike

# Windows, products and normalizations


def _windows(b: Builder, rank: int) -> dict[str, Any]:
    names = {"strides": (1, 2), "dilations": (1, 2), "pads_begin": (0, 2), "pads_end": (0, 2)}
    return {
        name: [b.random.choice((low, low, b.random.randint(low, high))) for _ in range(rank)]
        for name, (low, high) in names.items()
    }


@recipe(PoolOp)
def _pool(b: Builder) -> None:
    x = b.floats(rank=[3, 4])
    rank = rank_of(x) - 2
    kind = b.random.choice(list(PoolKind))
    kernel = [b.random.randint(1, 3) for _ in range(rank)]
    counts = kind is PoolKind.AVERAGE and b.chance(5)
    b.add(PoolOp(kind, x, kernel=kernel, count_pads=counts, **_windows(b, rank)))


def _channels(x: SSAValue) -> int:
    if not (channels := dims_of(x)[1].value):
        raise Unfit
    return channels


@recipe(ConvOp, weight=14)
def _conv(b: Builder) -> None:
    x = b.floats(rank=[3, 4])
    rank, groups = rank_of(x) - 2, b.divisor(_channels(x))
    outputs = groups * b.random.randint(1, 3)
    kernel = [b.random.randint(1, 3) for _ in range(rank)]
    w = b.constant(element_type(x), [outputs, _channels(x) // groups, *kernel])
    bias = b.constant(element_type(x), [outputs]) if b.chance(5) else None
    b.add(ConvOp(x, w, bias, groups=groups, **_windows(b, rank)))


@recipe("quantized convolution", weight=2)
def _quantized_conv(b: Builder) -> None:
    x = b.pick(ui8, i8, rank=[3])
    w = b.constant(i8, [outputs := b.random.randint(1, 3), _channels(x), b.random.randint(1, 2)])
    zeros = [b.of(b.random.randint(0, 3), element_type(x)), b.constant(i8, [outputs, 1, 1])]
    zeros = zeros if b.chance(5) else []
    windows = _windows(b, 1)
    b.add(ConvOp(x, w, None, zeros, accumulator=i32, **windows))


@recipe(ConvTransposeOp, weight=5)
def _conv_transpose(b: Builder) -> None:
    x = b.floats(rank=[3, 4])
    rank, groups = rank_of(x) - 2, b.divisor(_channels(x))
    outputs = b.random.randint(1, 2)
    kernel = [b.random.randint(1, 3) for _ in range(rank)]
    w = b.constant(element_type(x), [_channels(x), outputs, *kernel])
    bias = b.constant(element_type(x), [groups * outputs]) if b.chance(5) else None
    extra = [b.random.randint(0, 1) for _ in range(rank)]
    b.add(ConvTransposeOp(x, w, bias, groups=groups, output_padding=extra, **_windows(b, rank)))


@recipe(WindowsOp)
def _columns_of_windows(b: Builder) -> None:
    x = b.pick(rank=[3, 4])
    sizes = [dim.value or 0 for dim in dims_of(x)[1:]]
    if not all(sizes):
        raise Unfit
    taps = [b.random.randint(1, size) for size in sizes[1:]]
    strides = [b.random.randint(1, 3) for _ in taps]
    b.add(WindowsOp(x, taps, strides, [1] * len(taps), apart=b.chance(2)))


@recipe(MatmulOp, weight=14)
def _matmul(b: Builder) -> None:
    x = b.pick(f32, f64, i32, rank=[2, 3, 4])
    *batch, rows, columns = dims_of(x)
    match b.random.choice(("right", "right", "left", "own", "any")):
        case "right" if columns.value is not None:
            b.add(MatmulOp(x, b.constant(element_type(x), [columns.value, b.dim()])))
        case "left" if rows.value is not None:
            b.add(MatmulOp(b.constant(element_type(x), [b.dim(), rows.value]), x))
        case "own":
            axes = [*range(len(batch)), len(batch) + 1, len(batch)]
            b.add(MatmulOp(x, b.add(TransposeOp(x, axes)).result))
        case _:
            b.add(MatmulOp(x, b.pick(element_type(x), rank=[2, 3])))


@recipe(SparseProductOp)
def _sparse_product(b: Builder) -> None:
    x = b.pick(f32, rank=[2, 3, 4])
    axis = b.random.randrange(rank_of(x))
    if not (depth := dims_of(x)[axis].value):
        raise Unfit
    panels, width, parts = (b.random.randint(1, most) for most in (3, 6, 2))
    kept = [
        sorted(b.random.sample(range(depth), b.random.randint(1, depth))) for _ in range(panels)
    ]
    starts, first = list[list[int]](), 0
    for rows in kept:
        cuts = sorted(b.random.randint(0, len(rows)) for _ in range(parts - 1))
        starts.append([first + cut for cut in (0, *cuts, len(rows))])
        first += len(rows)
    places = [row for rows in kept for row in rows]
    blocks = b.constant(f32, [len(places), width])
    bias = b.constant(f32, [panels * width]) if b.chance(5) else None
    b.add(SparseProductOp(x, blocks, b.of(places, i32), b.of(starts, i32), bias, axis=axis))


def _vector(b: Builder, element: Attribute, size: int, positive: bool = False) -> SSAValue:
    array = b.numbers(element, [size])
    return b.of(np.abs(array) + np.float32(0.25) if positive else array, element)


@recipe(BatchNormOp, weight=10)
def _batch_norm(b: Builder) -> None:
    x = b.floats(least=1)
    axis = b.axis(x)
    if (size := dims_of(x)[axis].value) is None:
        raise Unfit
    element = element_type(x)
    scale, bias, mean = (_vector(b, element, size) for _ in range(3))
    b.add(BatchNormOp(x, scale, bias, mean, _vector(b, element, size, True), 1e-3, axis))


@recipe(LayerNormOp)
def _layer_norm(b: Builder) -> None:
    x = b.floats(least=1)
    bias = b.partner(x) if b.chance(5) else None
    flags = {"uncentered": b.chance(3), "late_epsilon": b.chance(3)}
    b.add(LayerNormOp(x, b.partner(x), bias, 1e-3, b.axis(x), **flags))


@recipe(AttentionOp)
def _attention(b: Builder) -> None:
    query = b.pick(f32, f64, rank=[3, 4])
    if not b.chance(5):
        b.add(AttentionOp(query, query, query, scale=0.5))
        return
    *batch, _, heads, depth = sizes_of(query)
    keys, size, element = b.random.randint(1, 3), b.random.randint(1, 3), element_type(query)
    key = b.constant(element, [*batch, keys, heads, depth])
    mask = b.constant(element, [keys]) if b.chance(5) else None
    factor = b.constant(element, [keys]) if b.chance(3) else None
    keep = b.constant(i1, [keys]) if b.chance(3) else None
    value = b.constant(element, [*batch, keys, heads, size])
    fill = None if keep is None else -1e4
    zero_nan = b.chance(3)
    parts = (query, key, value, mask)
    zero_hidden = keep is not None and b.chance(5)
    new = AttentionOp(
        *parts, factor=factor, keep=keep, fill=fill, zero_nan=zero_nan, zero_hidden=zero_hidden
    )
    b.add(new)


# Formulas that passes recognize


Operand: TypeAlias = "SSAValue | float"


class Calculator:
    """Arithmetic with operands in any order; numbers are constants of one element type."""

    def __init__(self, builder: Builder, element: Attribute) -> None:
        self.builder, self.element = builder, element

    def value(self, operand: Operand) -> SSAValue:
        """An operand as a value."""
        if isinstance(operand, SSAValue):
            return operand
        return self.builder.of(operand, self.element)

    def both(self, cls: type[e.BinaryOp], x: Operand, y: Operand) -> SSAValue:
        """x and y in any order."""
        pair = self.value(x), self.value(y)
        return self.builder.add(cls(*(pair[::-1] if self.builder.chance(3) else pair))).result

    def plus(self, x: Operand, y: Operand) -> SSAValue:
        """x + y."""
        return self.both(e.AddOp, x, y)

    def times(self, *factors: Operand) -> SSAValue:
        """The product of two or more factors in any order."""
        rest = list(factors)
        self.builder.random.shuffle(rest)
        product = rest[0]
        for factor in rest[1:]:
            product = self.both(e.MulOp, product, factor)
        return self.value(product)

    def over(self, x: Operand, y: Operand) -> SSAValue:
        """x / y."""
        return self.builder.add(e.DivOp(self.value(x), self.value(y))).result

    def of(self, cls: type[e.UnaryOp], x: SSAValue) -> SSAValue:
        """A function of x."""
        return self.builder.add(cls(x)).result


def _calculator(b: Builder, *ranks: int) -> tuple[SSAValue, Calculator]:
    x = b.pick(f32, f32, f64, rank=ranks)
    return x, Calculator(b, element_type(x))


@recipe("activation", weight=8)
def _activation(b: Builder) -> None:
    x, c = _calculator(b)
    match b.random.choice(("gelu", "tanh", "sigmoid", "gate", "swish", "mish")):
        case "gelu":
            inner = c.over(x, 2**0.5) if b.chance(5) else c.times(x, 0.5**0.5)
            c.times(x, 0.5, c.plus(c.of(e.ErfOp, inner), 1.0))
        case "tanh":
            cubed = c.times(x, x, x)
            line = c.times(c.plus(x, c.times(cubed, 0.044715)), 0.7978845)
            c.times(x, 0.5, c.plus(c.of(e.TanhOp, line), 1.0))
        case "sigmoid":
            one = c.plus(c.of(e.ExpOp, c.of(e.NegOp, x)), 1.0)
            c.over(x if b.chance(5) else 1.0, one)
        case "gate":
            clipped = c.both(e.MinOp, c.both(e.MaxOp, c.plus(x, 3.0), 0.0), 6.0)
            c.over(c.times(x, clipped), 6.0)
        case "mish" if b.chance(5):
            c.times(x, c.of(e.TanhOp, c.of(e.LogOp, c.plus(c.of(e.ExpOp, x), 1.0))))
        case "mish":
            power = c.of(e.ExpOp, x)
            top = c.plus(c.times(power, power), c.times(power, 2.0))
            c.over(c.times(x, top) if b.chance(5) else top, c.plus(top, 2.0))
        case _:
            c.times(x, c.of(e.SigmoidOp, x))


@recipe("normalization", weight=5)
def _normalization(b: Builder) -> None:
    x, c = _calculator(b, 1, 2, 3)
    sizes, axis = dims_of(x), b.axis(x)
    axes = list(range(axis, len(sizes)))
    if None in (numbers := [sizes[k].value for k in axes]):
        raise Unfit
    count = float(np.prod(np.array(numbers, float)))

    def mean(value: SSAValue) -> SSAValue:
        total = b.add(ReduceOp("sum", value, axes, keep_dims=True)).result
        return c.over(total, count) if b.chance(5) else c.times(total, 1 / max(count, 1))

    centered = x if b.chance(3) else b.add(e.SubOp(x, mean(x))).result
    spread = c.of(e.SqrtOp, c.plus(mean(c.times(centered, centered)), 1e-3))
    c.plus(c.times(c.over(centered, spread), b.partner(x)), b.partner(x))


@recipe("turned pairs", weight=3)
def _turned_pairs(b: Builder) -> None:
    """A rotary embedding of pairs that lie side by side."""
    x, c = _calculator(b, 1, 2, 3)
    *before, size = sizes_of(x)
    pairs = size // 2
    if size % 2 or not pairs:
        raise Unfit
    starts, sizes, steps = [0] * len(before), [*before, pairs], [*[1] * len(before), 2]
    first, second = (b.add(SliceOp(x, [*starts, k], sizes, steps)).result for k in (0, 1))
    cosine, sine = (b.constant(c.element, [pairs]) for _ in range(2))
    minus = b.add(e.SubOp(c.times(first, cosine), c.times(second, sine))).result
    turned = minus, c.plus(c.times(first, sine), c.times(second, cosine))
    columns = [b.add(ReshapeOp(part, [*sizes, 1])).result for part in turned]
    b.add(ConcatOp(columns, len(sizes)))


@recipe("pairs stacked", weight=2)
def _pairs_stacked(b: Builder) -> None:
    """A rotary embedding that stacks the turned elements again, in pairs or in halves."""
    x, c = _calculator(b, 1, 2, 3)
    *before, size = sizes_of(x)
    pairs = size // 2
    if size % 2 or not pairs:
        raise Unfit
    is_last = int(b.chance(5))
    inner, single = ([pairs, 2], [pairs, 1]) if is_last else ([2, pairs], [1, pairs])
    axis = len(before) + is_last
    split = b.add(SplitOp(b.add(ReshapeOp(x, [*before, *inner])).result, axis, [1, 1]))
    first, second = (b.add(ReshapeOp(part, [*before, pairs])).result for part in split.parts)
    turned = [b.add(e.NegOp(second)).result, first]
    columns = [b.add(ReshapeOp(part, [*before, *single])).result for part in turned]
    stacked = b.add(ReshapeOp(b.add(ConcatOp(columns, axis)).result, [*before, size])).result
    cosine, sine = (b.constant(c.element, [size]) for _ in range(2))
    c.plus(c.times(x if b.chance(8) else stacked, cosine), c.times(stacked, sine))


@recipe("attention by products", weight=4)
def _attention_by_products(b: Builder) -> None:
    x, c = _calculator(b, 3, 4)
    *batch, rows, depth = sizes_of(x)
    heads = len(batch)
    keys = b.constant(c.element, [*batch, keys_count := b.random.randint(1, 3), depth])
    values = b.constant(c.element, [*batch, keys_count, b.random.randint(1, 3)])
    turned = b.add(TransposeOp(keys, [*range(heads), heads + 1, heads])).result
    scores = b.add(MatmulOp(x, turned)).result
    if b.chance(7):
        scores = c.times(scores, 0.5)
    if b.chance(4):
        scores = c.times(scores, b.constant(c.element, [rows, keys_count]))
    if b.chance(5):
        scores = c.plus(scores, b.constant(c.element, [rows, keys_count]))
    if b.chance(4):
        keep, fill = b.constant(i1, [rows, keys_count]), b.constant(c.element, [])
        scores = b.add(
            e.SelectOp(keep, *((scores, fill) if b.chance(5) else (fill, scores)))
        ).result
    weights = b.add(SoftmaxOp(scores, heads + 1)).result
    if b.chance(3):
        is_nan = b.add(e.CompareOp("ne", weights, weights)).result
        weights = b.add(e.SelectOp(is_nan, b.of(0, c.element), weights)).result
    b.add(MatmulOp(weights, values))


@recipe("attention of projections", weight=3)
def _attention_of_projections(b: Builder) -> None:
    x = b.pick(f32, f64, rank=[3])
    batch, rows, columns = sizes_of(x)
    heads, width, element = b.random.randint(1, 2), b.random.randint(1, 2), element_type(x)

    def projection() -> SSAValue:
        y = b.add(MatmulOp(x, b.constant(element, [columns, heads * width]))).result
        if b.chance(7):
            y = b.add(e.AddOp(y, b.constant(element, [heads * width]))).result
        return b.add(ReshapeOp(y, [batch, rows, heads, width])).result

    b.add(AttentionOp(projection(), projection(), projection(), scale=0.5))


@recipe("scales", weight=12)
def _scales(b: Builder) -> None:
    """Products and sums by constants, one after the other, as of batch normalizations."""
    x = b.floats() if b.chance(7) else b.pick(i32, i64)
    for _ in range(b.random.randint(1, 4)):
        dims = dims_of(x)
        sizes = [d.value if d.value is not None and b.chance(4) else 1 for d in dims]
        number = b.constant(element_type(x), sizes if b.chance(7) else [])
        cls = b.random.choice((e.AddOp, e.MulOp, e.MulOp, e.SubOp, e.DivOp, e.MaxOp))
        x = b.add(cls(number, x) if b.chance(2) else cls(x, number)).result


@recipe("convolutions of parts", weight=4)
def _parts(b: Builder) -> None:
    x = b.floats(rank=[3, 4])
    channels, rank = _channels(x), rank_of(x) - 2
    count = b.divisor(channels)
    windows, relu = _windows(b, rank), b.chance(3)
    outputs, kernel = b.random.randint(1, 2), [b.random.randint(1, 2) for _ in range(rank)]
    found: list[SSAValue] = []
    for part in b.add(SplitOp(x, 1, [channels // count] * count)).parts:
        w = b.constant(element_type(x), [outputs, channels // count, *kernel])
        made = b.add(ConvOp(part, w, **windows)).result
        found.append(b.add(e.AbsOp(made)).result if relu else made)
    b.add(ConcatOp(found[::-1] if b.chance(2) else found, 1))


@recipe("shuffled channels", weight=4)
def _shuffled(b: Builder) -> None:
    x = b.floats(rank=[3, 4])
    batch, _, *sizes = dims_of(x)
    channels = _channels(x)
    groups = b.divisor(channels)
    dims: list[ExprLike] = [batch, groups, channels // groups, *sizes]
    halves = b.add(ReshapeOp(x, dims)).result
    turned = b.add(TransposeOp(halves, [0, 2, 1, *range(3, len(dims))])).result
    y = b.add(ReshapeOp(turned, [batch, channels, *sizes])).result
    if b.chance(6):
        w = b.constant(element_type(y), [2, channels, *(1 for _ in sizes)])
        b.add(ConvOp(y, w, **_windows(b, len(sizes))))


@recipe("products of one value", weight=4)
def _siblings(b: Builder) -> None:
    x = b.pick(f32, f64, rank=[2, 3])
    if not (columns := dims_of(x)[-1].value):
        raise Unfit
    for _ in range(b.random.randint(2, 3)):
        y = b.add(MatmulOp(x, b.constant(element_type(x), [columns, b.dim()]))).result
        if b.chance(5):
            b.add(e.AddOp(y, b.partner(y)))


@recipe("strided pixels", weight=4)
def _strided(b: Builder) -> None:
    """A convolution whose result only strided 1 x 1 convolutions read, past maps."""
    x = b.pick(f32, rank=[4])
    w = b.constant(f32, [2, _channels(x), 3, 3] if b.chance(5) else [2, _channels(x), 1, 1])
    same: dict[str, Any] = {"strides": [1, 1], "dilations": [1, 1]}
    same |= {"pads_begin": [1, 1], "pads_end": [1, 1]}
    y = b.add(ConvOp(x, w, **same)).result
    if b.chance(5):
        y = b.add(e.AddOp(y, b.partner(y))).result
    for _ in range(b.random.randint(1, 2)):
        pixel = b.constant(f32, [b.random.randint(1, 2), _channels(y), 1, 1])
        apart: dict[str, Any] = {"strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0]}
        b.add(ConvOp(y, pixel, **{**same, **apart}))


@recipe("quantized product", weight=2)
def _quantized_product(b: Builder) -> None:
    x = b.pick(ui8, i8, rank=[2])
    if not (columns := dims_of(x)[-1].value):
        raise Unfit
    c = Calculator(b, f32)
    w = b.constant(i8, [columns, b.dim()])

    def real(value: SSAValue, zero: int) -> SSAValue:
        wide = b.add(e.CastOp(value, f32)).result
        zeros = b.add(e.CastOp(b.of(zero, element_type(value)), f32)).result
        return c.times(b.add(e.SubOp(wide, zeros)).result, 0.25)

    b.add(MatmulOp(real(x, 2), real(w, b.random.randint(0, 1))))
