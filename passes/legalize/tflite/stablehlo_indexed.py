"""Gathers and scatters of StableHLO, as those of rows that one number addresses."""

from __future__ import annotations

from collections.abc import Sequence

from lowerdeck.dialects.core.tensor import GatherOp, PadOp, ScatterNdOp
from lowerdeck.dialects.core.types import i1, i64, ui8
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes
from lowerdeck.passes.legalize.tflite.stablehlo import require_plain

_REDUCTIONS = {
    "": "none",
    "ADD": "add",
    "MULTIPLY": "mul",
    "MUL": "mul",
    "MAXIMUM": "max",
    "MINIMUM": "min",
}


def _vectors_last(builder: TfliteLegalizer) -> TensorValue:
    """The dimension of the index vectors as the last one; a number is a vector of one."""
    indices, axis = builder.value(1), int(builder.option("index_vector_dim"))
    rank = len(indices.dims)
    if not 0 <= axis <= rank:
        builder.refuse(f"'index_vector_dim' is {axis}", f"one up to {rank}")
    if axis == rank:
        return indices.reshape([*indices.dims, 1])
    return indices.transpose([*(k for k in range(rank) if k != axis), axis])


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


@legalizes("STABLEHLO_GATHER")
def legalize_gather(builder: TfliteLegalizer) -> Results:
    """Parts of one size, which begin at index vectors, moved to where all of them fits."""
    builder.require_equal_scales(0)
    builder.ignore("indices_are_sorted")
    x = builder.value(0)
    builder.require_rank(x.value, range(1, 1 << 16), "operand")
    sizes = [Expr.const(k) for k in builder.counted("slice_sizes", len(x.dims), least=0)]
    mapped, collapsed = (
        builder.axes_option(name, len(x.dims))
        for name in ("start_index_map", "collapsed_slice_dims")
    )
    vectors = _vectors_last(builder).cast(i64)
    batch = vectors.dims[:-1]
    offsets = builder.axes_option("offset_dims", len(batch) + len(x.dims) - len(collapsed))
    fits = all(sizes[k] == 1 for k in collapsed) and len(offsets) + len(collapsed) == len(x.dims)
    if vectors.dims[-1].value != len(mapped) or not fits:
        builder.refuse(f"{vectors.dims[-1]} indices of {mapped}", "one of each dimension")
    moved = _indexed(x.dims, sizes, mapped) or [0]
    kept = [k for k in range(len(x.dims)) if k not in moved]
    zero = TensorValue.dim(builder, 0).broadcast(batch)
    starts: list[TensorValue] = []
    for axis in moved:
        start = zero
        if axis in mapped:
            start = vectors.pick(len(batch), mapped.index(axis))
            most = TensorValue.dim(builder, x.dims[axis] - sizes[axis])
            start = start.minimum(most).maximum(0)
        starts.append(start)
    dims = [x.dims[k] for k in moved]
    places, _ = _places(starts, dims, [sizes[k] for k in moved], batch)
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
    return [found.transpose(final).value]


@legalizes("STABLEHLO_SCATTER")
def legalize_scatter(builder: TfliteLegalizer) -> Results:
    """Updates meet what is there, in their order; those outside are left out."""
    builder.require_equal_scales(0, 2)
    builder.ignore("indices_are_sorted", "unique_indices")
    if len(builder.inputs) != 3:
        builder.refuse(f"{len(builder.inputs)} inputs", "one tensor, indices and updates")
    body = str(builder.option("body") or "")
    if body not in _REDUCTIONS:
        builder.refuse(f"a body '{body}'", "the update, a sum, a product or an extremum")
    if body:
        require_plain(builder)
    x, updates = builder.value(0), builder.value(2)
    element = x.element
    if element == i1:
        x, updates = x.cast(ui8), updates.cast(ui8)
    windows = builder.axes_option("update_window_dims", len(updates.dims))
    inserted, mapped = (
        builder.axes_option(name, len(x.dims))
        for name in ("inserted_window_dims", "scatter_dims_to_operand_dims")
    )
    vectors = _vectors_last(builder).cast(i64)
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
    op = ScatterNdOp(wide, index.value, moving.value, _REDUCTIONS[body])
    result = TensorValue(builder, builder.slice_axis(builder.add(op), 0, 0, product(dims)))
    result = result.reshape([*dims, *rest])
    back = [*moved, *kept]
    result = result.transpose(sorted(range(rank), key=lambda k: back[k]))
    return [(result.ne(0) if element == i1 else result).value]
