"""Images that are made larger or smaller by means of elements, weighted by their distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.tensor_value import TensorValue

Kernel = Callable[[TensorValue], TensorValue]
"""The weight of an element at a distance of the sample, which is not negative."""


def _lanczos(radius: float) -> Kernel:
    def kernel(x: TensorValue) -> TensorValue:
        angle = x.maximum(1e-3) * math.pi
        value = (angle.sin() * (angle * (1 / radius)).sin()) * radius / (angle * angle)
        return x.gt(radius).where(x * 0, x.le(1e-3).where(x * 0 + 1, value))

    return kernel


def _gaussian(x: TensorValue) -> TensorValue:
    sigma = 1.5 / 3
    return x.lt(1.5).where((-(x * x) / (2 * sigma * sigma)).exp(), x * 0)


def _box(x: TensorValue) -> TensorValue:
    return x.lt(0.5).where(x * 0 + 1, x.eq(0.5).where(x * 0 + 0.5, x * 0))


def _triangle(x: TensorValue) -> TensorValue:
    return (1 - x).maximum(0.0)


def _cubic(inner: tuple[float, ...], outer: tuple[float, ...]) -> Kernel:
    """Polynomials, highest power first, up to 1 and from there to 2."""

    def polynomial(x: TensorValue, coefficients: tuple[float, ...]) -> TensorValue:
        total = x * 0 + coefficients[0]
        for coefficient in coefficients[1:]:
            total = total * x + coefficient
        return total

    def kernel(x: TensorValue) -> TensorValue:
        far = x.lt(2.0).where(polynomial(x, outer), x * 0)
        return x.lt(1.0).where(polynomial(x, inner), far)

    return kernel


KERNELS: Mapping[str, Kernel] = {
    "lanczos1": _lanczos(1),
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
    "gaussian": _gaussian,
    "box": _box,
    "triangle": _triangle,
    "keyscubic": _cubic((1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2)),
    "mitchellcubic": _cubic((7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9)),
}
"""By TensorFlow's names."""

_SMALLEST_SUM = 1000 * 2.0**-126
"""A sum of weights below which TensorFlow does not divide by it."""


def stretched_weights(
    middle: TensorValue, old: Expr, stretch: TensorValue, kernel: Kernel
) -> TensorValue:
    """
    The weights of the old elements in each new one, [new, old] in f32. A new element has its middle
    where `middle` says, in places of old ones that begin at 0; the kernel is stretched.
    """
    source = TensorValue.iota(middle.builder, old).cast(f32) + 0.5
    weights = kernel((source.column(2, 1) - middle.column(2, 0)).abs() / stretch)
    total = weights.reduce("sum", [1], keep_dims=True)
    return weights / total.abs().ge(_SMALLEST_SUM).where(total, 1.0)


def weighted(builder: CoreBuilder, x: SSAValue, axis: int, weights: TensorValue) -> SSAValue:
    """Sums of the elements along an axis, with weights [new, old] of their type."""
    dims = dims_of(x)
    before, behind = dims[:axis], dims[axis + 1 :]
    rows = builder.reshape(x, [product(before), dims[axis], product(behind)])
    found = builder.add(MatmulOp(builder.unsqueeze(weights.value, [0]), rows))
    return builder.reshape(found, [*before, weights.dims[0], *behind])


def stretched_image(
    builder: CoreBuilder,
    x: SSAValue,
    sizes: Sequence[Expr],
    scales: Sequence[float | None],
    kernel: Kernel,
    *,
    by_corners: bool,
) -> SSAValue:
    """
    Of other sizes along dimensions from the third on, by weights of all elements, with steps that
    are not those between sizes. Where corners lie on
    each other, only the steps are those from corner to corner: the first place is that of halves.
    """
    element = element_type(x)
    x = builder.cast(x, wide_element(x))
    for axis, (size, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        old, new = (TensorValue.dim(builder, d).cast(f32) for d in (dims_of(x)[axis], size))
        step = old / new if scale is None else TensorValue.number(builder, 1 / scale, f32)
        if by_corners:  # without a step, all places are the first one
            step = new.eq(1.0).where(old * 0, (old - 1.0) / (new - 1.0))
        middle = (TensorValue.iota(builder, size).cast(f32) + 0.5) * step
        stretch = step.maximum(1.0)
        weights = stretched_weights(middle, dims_of(x)[axis], stretch, kernel)
        x = weighted(builder, x, axis, weights.cast(element_type(x)))
    return builder.cast(x, element)
