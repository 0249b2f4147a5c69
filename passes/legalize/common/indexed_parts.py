"""Gathers and scatters of parts of one size that begin at index vectors, as those of rows."""

from __future__ import annotations

from collections.abc import Sequence

from lowerdeck.dialects.core.tensor import GatherOp, PadOp, ScatterNdOp
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.movement import fitting
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _indexed(dims: Sequence[Expr], sizes: Sequence[Expr], mapped: Sequence[int]) -> list[int]:
    """The dimensions that an index moves in, or of which only a part is taken."""
    return [
        k
        for k, (dim, size) in enumerate(zip(dims, sizes, strict=True))
        if k in mapped or dim != size
    ]


def _places(
    starts: Sequence[TensorValue],
    dims: Sequence[Expr],
    sizes: Sequence[Expr],
    batch: Sequence[Expr],
) -> tuple[TensorValue, TensorValue | None]:
    """Numbers of the elements of parts, [batch..., sizes...], and which of them are inside."""
    builder = starts[0].builder
    rank = len(batch) + len(dims)
    shape = [*batch, *sizes]
    total = TensorValue.dim(builder, 0)
    inside: TensorValue | None = None
    for axis, (start, dim, size) in enumerate(zip(starts, dims, sizes, strict=True)):
        column = start.reshape([*start.dims, *[1] * len(dims)])
        place = column + TensorValue.iota(builder, size).column(rank, len(batch) + axis)
        limit = TensorValue.dim(builder, dim)
        is_inside = place.ge(0) & place.lt(limit)
        inside = is_inside if inside is None else inside & is_inside
        total = total * limit + place
    return total.broadcast(shape), None if inside is None else inside.broadcast(shape)


def gathered_parts(
    builder: Legalizer,
    x: TensorValue,
    vectors: TensorValue,
    sizes: Sequence[Expr],
    mapped: Sequence[int],
    collapsed: Sequence[int],
    offsets: Sequence[int],
) -> TensorValue:
    """
    Parts of `sizes`, which begin at i64 `vectors` [batch..., count], moved to where all of them
    fits. Number k of a vector is a place along dimension `mapped[k]`; dimensions of the parts that
    are not `collapsed` become the dimensions `offsets` of the result (StableHLO's gather).
    """
    batch = vectors.dims[:-1]
    fits = all(sizes[k] == 1 for k in collapsed) and len(offsets) + len(collapsed) == len(x.dims)
    if vectors.dims[-1].value != len(mapped) or not fits:
        builder.refuse(f"{vectors.dims[-1]} indices of {mapped}", "one of each dimension")
    moved = _indexed(x.dims, sizes, mapped) or [0]
    kept = [k for k in range(len(x.dims)) if k not in moved]
    zero = TensorValue.dim(builder, 0).broadcast(batch)
    given = [vectors.pick(len(batch), mapped.index(k)) if k in mapped else zero for k in moved]
    dims, counts = [x.dims[k] for k in moved], [sizes[k] for k in moved]
    places, _ = _places(fitting(builder, given, dims, counts), dims, counts, batch)
    rows = x.transpose([*moved, *kept]).reshape([product(dims), *(x.dims[k] for k in kept)])
    found = TensorValue(builder, builder.add(GatherOp(rows.value, places.value, 0, inside=True)))
    # [batch..., moved..., kept...]: the dimensions of parts go in order, then to their places.
    count = len(batch)
    order = [*range(count), *(count + [*moved, *kept].index(k) for k in range(len(x.dims)))]
    whole = [sizes[k] for k in range(len(x.dims)) if k not in collapsed]
    found = found.transpose(order).reshape([*batch, *whole])
    sources = iter(range(count))
    parts = iter(range(count, count + len(whole)))
    final = [next(parts) if k in offsets else next(sources) for k in range(count + len(whole))]
    return found.transpose(final)


def scattered_parts(
    builder: Legalizer,
    x: TensorValue,
    vectors: TensorValue,
    updates: TensorValue,
    mapped: Sequence[int],
    inserted: Sequence[int],
    windows: Sequence[int],
    kind: str,
) -> TensorValue:
    """
    `x` where updates meet what is there as a scatter of a `kind` says, in their order; those
    outside are left out. `windows` are the dimensions of `updates` that are those of parts, which
    begin at i64 `vectors` [batch..., count]; `inserted` ones are one there (StableHLO's scatter).
    """
    rank, batch = len(x.dims), vectors.dims[:-1]
    is_whole = len(updates.dims) == len(windows) + len(batch)
    is_whole = is_whole and len(windows) + len(inserted) == rank
    if not is_whole or vectors.dims[-1].value != len(mapped):
        builder.refuse(f"windows {windows} and {inserted}", f"one of each of {rank} dimensions")
    own = iter(windows)
    sizes = [Expr.const(1) if k in inserted else updates.dims[next(own)] for k in range(rank)]
    others = [k for k in range(len(updates.dims)) if k not in windows]
    updates = updates.transpose([*others, *windows]).reshape([*batch, *sizes])
    moved = _indexed(x.dims, sizes, mapped) or [0]
    kept = [k for k in range(rank) if k not in moved]
    zero = TensorValue.dim(builder, 0).broadcast(batch)
    starts = [vectors.pick(len(batch), mapped.index(k)) if k in mapped else zero for k in moved]
    dims = [x.dims[k] for k in moved]
    places, inside = _places(starts, dims, [sizes[k] for k in moved], batch)
    assert inside is not None
    # What is outside goes to a row behind the last one.
    count = TensorValue.dim(builder, product(dims))
    places = inside.where(places, count)
    rest = [x.dims[k] for k in kept]
    rows = x.transpose([*moved, *kept]).reshape([product(dims), *rest])
    none = [0] * len(kept)
    wide = builder.add(PadOp(rows.value, [0, *none], [1, *none], builder.scalar(0, rows.value)))
    order = [*range(len(batch)), *(len(batch) + k for k in (*moved, *kept))]
    moving = updates.transpose(order)
    # Of several updates of a place the one stays that is last in the order of all of them.
    free = dict(zip(windows, (k for k in range(rank) if k not in inserted), strict=True))
    first = [
        others.index(k) if k in others else len(batch) + moved.index(free[k])
        for k in range(len(others) + len(windows))
        if k in others or free[k] in moved
    ]
    first += [k for k in range(len(batch) + len(moved)) if k not in first]
    if first != sorted(first):
        places = places.transpose(first)
        moving = moving.transpose([*first, *range(len(first), len(moving.dims))])
    index = places.reshape([*places.dims, 1])
    op = ScatterNdOp(wide, index.value, moving.value, kind)
    result = TensorValue(builder, builder.slice_axis(builder.add(op), 0, 0, product(dims)))
    result = result.reshape([*dims, *rest])
    back = [*moved, *kept]
    result = result.transpose(sorted(range(rank), key=lambda k: back[k]))
    return result
