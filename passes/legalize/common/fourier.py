"""Fourier transforms, as matrix products with tables of cosines and sines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, element_type, f64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.movement import pad, windows_along
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack


def transformed(
    builder: Legalizer, x: SSAValue, axis: int, size: Expr | None, inverse: bool, onesided: bool
) -> SSAValue:
    """
    The transform along an axis, of `size` elements (cut or filled with zeros).

    Computed in f64: sums that cancel would lose what an f32 result can hold.
    """
    rank, element = rank_of(x), element_type(x)
    if not 0 <= axis < rank - 1 or dims_of(x)[-1].value not in (1, 2):
        builder.refuse(f"axis {axis} of an input of type {x.type}", "[..., 1] or [..., 2]")
    real_result = inverse and onesided
    if size is None:
        size = (dims_of(x)[axis] - 1) * 2 if real_result else dims_of(x)[axis]
    half = size // 2 + 1
    used = half if real_result else size
    end = [Expr.const(0)] * rank
    end[axis] = used - dims_of(x)[axis]
    x = pad(builder, x, [Expr.const(0)] * rank, end)
    order = [*(k for k in range(rank - 1) if k != axis), axis, rank - 1]
    x = builder.transpose(x, order)
    outer, parts = dims_of(x)[:-2], dims_of(x)[-1].value or 0
    count = half if onesided and not inverse else size
    results = 1 if real_result else 2
    if parts == 1 and not inverse and (size.value or 0) > 1:
        y = _of_real(builder, builder.reshape(x, [product(outer), size]), count)
    else:
        table = _table(builder, used, count, size, parts, results, inverse)
        if real_result:
            table = table * _mirrored(builder, used, size).reshape([used, 1, 1, 1])
        matrix = table.reshape([used * parts, count * results])
        rows = builder.reshape(builder.cast(x, f64), [product(outer), used * parts])
        y = builder.add(MatmulOp(rows, matrix.value))
    y = builder.reshape(y, [*outer, count, results])
    back = [*range(rank - 2)]
    back.insert(axis, rank - 2)
    return builder.cast(builder.transpose(y, [*back, rank - 1]), element)


def spectrum(
    builder: Legalizer,
    x: SSAValue,
    axes: Sequence[int],
    sizes: Sequence[Expr | None],
    kind: str,
    inverse: bool,
    norm: str = "backward",
) -> SSAValue:
    """
    The transform along axes: `kind` is c2c, r2c (half of the last axis), or c2r.

    `x` has its parts, one for real numbers, along a last dimension; so has the result.
    """
    pairs = list(zip(axes, sizes, strict=True))
    total = Expr.const(1)
    for axis, size in pairs if kind == "c2r" else pairs[::-1]:
        last = axis == axes[-1]
        if kind == "c2r" and last and size is None:
            size = (dims_of(x)[axis] - 1) * 2
        total = total * (dims_of(x)[axis] if size is None else size)
        x = transformed(builder, x, axis, size, inverse, kind != "c2c" and last)
    return _scaled(builder, x, total, inverse, norm)


def _scaled(builder: Legalizer, x: SSAValue, total: Expr, inverse: bool, norm: str) -> SSAValue:
    """By the norm: `transformed` has divided the inverse by the count already."""
    if norm == "backward":
        return x
    count = TensorValue.dim(builder, total).cast(element_type(x))
    factor = apply(SqrtOp, count) if norm == "ortho" else count
    value = TensorValue(builder, x)
    return (value * factor if inverse else value / factor).value


def _of_real(builder: Legalizer, x: SSAValue, count: Expr) -> SSAValue:
    """
    The transforms of real rows [n, size] in f64 [n, count, 2], with half of the products.

    The element m from the end meets the cosine that element m does, and the opposite of its sine.
    """
    size = dims_of(x)[1]
    half = size // 2 + 1
    places = TensorValue.iota(builder, half)
    index = (TensorValue.dim(builder, size) - places) % TensorValue.dim(builder, size)
    near = TensorValue.of(builder, builder.slice(x, [0, 0], [dims_of(x)[0], half])).cast(f64)
    far = TensorValue(builder, builder.add(GatherOp(x, index.value, 1))).cast(f64)
    cosine, sine = _waves(builder, half, count, size)
    once = (_mirrored(builder, half, size) * 0.5).column(2, 0)
    sums = [
        TensorValue(builder, builder.add(MatmulOp(terms.value, (waves * once).value)))
        for terms, waves in ((near + far, cosine), (near - far, -sine))
    ]
    return stack(sums, 2).value


def _waves(
    builder: Legalizer, used: Expr, count: Expr, size: Expr
) -> tuple[TensorValue, TensorValue]:
    """The cosines and sines that input n is multiplied by for output k, f64 [used, count]."""
    total = TensorValue.dim(builder, size)
    inputs, outputs = TensorValue.iota(builder, used), TensorValue.iota(builder, count)
    steps = inputs.column(2, 0) * outputs.column(2, 1) % total
    angle = steps.cast(f64) * (2 * math.pi) / total.cast(f64)
    # Pi is no double, but half a turn is exact: what is real there stays so.
    half = (steps * 2 % total).eq(0)
    quarter = (steps * 4 % total).eq(0) & ~half
    return quarter.where(_zero(builder), angle.cos()), half.where(_zero(builder), angle.sin())


def _zero(builder: Legalizer) -> TensorValue:
    return TensorValue.number(builder, 0, f64)


def _table(
    builder: Legalizer,
    used: Expr,
    count: Expr,
    size: Expr,
    parts: int,
    results: int,
    inverse: bool,
) -> TensorValue:
    """What part of input n adds to part of output k, f64 [used, parts, count, results]."""
    cosine, sine = _waves(builder, used, count, size)
    if inverse:
        total = TensorValue.dim(builder, size).cast(f64)
        cosine, sine = cosine / total, -sine / total
    # exp(-i angle) times (re, im), the real part and the imaginary part.
    rows = [[cosine, -sine], [sine, cosine]]
    columns = [stack(row[:results], 2) for row in rows[:parts]]
    return stack(columns, 1)


def _mirrored(builder: Legalizer, used: Expr, size: Expr) -> TensorValue:
    """How often the elements of half a spectrum occur in the whole one."""
    place = TensorValue.iota(builder, used)
    alone = place.eq(0) | (place * 2).eq(TensorValue.dim(builder, size))
    return alone.where(TensorValue.number(builder, 1, f64), 2.0)


WINDOWS: Mapping[str, Callable[[NDArray[Any], float, float], NDArray[Any]]] = {
    "hann": lambda x, a, b: 0.5 - 0.5 * np.cos(x),
    "hamming": lambda x, a, b: a - b * np.cos(x),
    "blackman": lambda x, a, b: 0.42 - 0.5 * np.cos(x) + 0.08 * np.cos(2 * x),
    "bartlett": lambda x, a, b: 1 - np.abs(x / np.pi - 1),
    "kaiser": lambda x, a, b: np.i0(a * np.sqrt(1 - (x / np.pi - 1) ** 2)) / np.i0(a),
}
"""Bells over a turn, with up to two parameters."""


def bell(
    name: str, count: int, a: float = 0.54, b: float = 0.46, *, periodic: bool = True
) -> NDArray[np.float64]:
    """So many numbers of a window; a periodic one is the beginning of one longer by one."""
    steps = count if periodic else count - 1
    if count <= 1:
        return np.ones(count)
    return np.asarray(WINDOWS[name](np.arange(count) * (2 * np.pi / steps), a, b))


def spectra_of_frames(
    builder: Legalizer,
    x: SSAValue,
    window: SSAValue | None,
    size: Expr,
    step: Expr,
    onesided: bool,
) -> SSAValue:
    """Transforms [N, frames, frequencies, 2] of overlapping parts of signals [N, length, parts]."""
    framed = TensorValue(builder, windows_along(builder, x, 1, size, step))
    if window is not None:
        framed = framed * TensorValue.of(builder, window).reshape([size, 1])
    return transformed(builder, framed.value, 2, None, False, onesided)
