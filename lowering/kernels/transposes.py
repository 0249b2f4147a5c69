"""Maps whose inputs lie side by side along another dimension than their result."""

from __future__ import annotations

from lowerdeck.dialects.core.types import dims_of, f32
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.kernels.lower import KernelLowering, map_nest, parameter

LANES, ALONG = "transposed", "along"
"""What a schedule has under `tile` for such a map: the lanes of the largest vectors, and the
dimension of the tensor along which inputs lie side by side."""

FEWEST = 4
"""Rows and columns of the smallest square that is transposed."""


@map_nest(LANES)
def lower_across(k: KernelLowering, lanes: int) -> None:
    """
    Squares of elements, computed in vectors as the inputs lie, are transposed and stored in vectors
    as the result lies: large ones first, then smaller ones. The rest is done one by one.
    """
    b, dims, along = k.builder, dims_of(k.roots[0]), parameter(k.kernel, ALONG)
    assert along is not None
    across = k.output_layout().data.pieces[-1].axis
    whole = dims[along] // lanes
    for start, count, step in ((Expr.const(0), whole, lanes), (whole * lanes, None, 1)):
        size = dims[along] - start if count is None else count
        if size == 0:
            continue
        sizes = {axis: dim for axis, dim in enumerate(dims) if axis != across} | {along: size}
        labels = [(f"d{axis}", size) for axis, size in sizes.items()]
        with b.labeled_nest(labels, parallel=True) as outer:
            at = dict(zip(sizes, outer, strict=True))
            _strip(k, {**at, along: start + at[along] * step}, along, across, step)


def _strip(k: KernelLowering, at: dict[int, Expr], along: int, across: int, lanes: int) -> None:
    """As many elements along one dimension, and all of the other one."""
    b, done, size = k.builder, Expr.const(0), dims_of(k.roots[0])[across]
    side = lanes
    while side >= FEWEST:
        count = (size - done) // side
        if count != 0:
            with b.nest([count]) as (number,), b.nest([lanes // side]) as (part,):
                begin = {along: at[along] + part * side, across: done + number * side}
                _square(k, {**at, **begin}, along, across, side)
        done, side = done + count * side, side // 2
    if done != size:
        with b.loop(size, done) as column, b.nest([lanes]) as (lane,):
            _store(k, {**at, along: at[along] + lane, across: column})


def _square(k: KernelLowering, at: dict[int, Expr], along: int, across: int, side: int) -> None:
    """From the index on, as many elements along both dimensions."""
    b = k.builder
    square = b.scratch(f32, [side, side])
    with b.loop(side, mode="unroll") as row, b.loop(side, mode="lanes") as lane:
        place = {**at, along: at[along] + lane, across: at[across] + row}
        b.store(k.element(k.roots[0], _index(place)), square, [row, lane])
    b.transpose(square)
    with b.loop(side, mode="unroll") as row, b.loop(side, mode="lanes") as lane:
        place = {**at, along: at[along] + row, across: at[across] + lane}
        b.store(b.load(square, [row, lane]), k.outputs[0], _index(place))


def _store(k: KernelLowering, at: dict[int, Expr]) -> None:
    k.builder.store(k.element(k.roots[0], _index(at)), k.outputs[0], _index(at))


def _index(at: dict[int, Expr]) -> list[Expr]:
    return [at[axis] for axis in sorted(at)]
