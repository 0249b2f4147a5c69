"""Operators that read or write elements at places that tensors name."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import (
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    ScatterElementsOp,
)
from lowerdeck.dialects.core.types import (
    broadcast,
    dims_of,
    element_type,
    i1,
    i64,
    rank_of,
    ui8,
)
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.index_tensors import IndexTensors, wrapped
from lowerdeck.passes.legalize.common.movement import concat, scattered_rows
from lowerdeck.passes.legalize.common.order import number_below, rows_by_segment
from lowerdeck.passes.legalize.common.pooling import unpooled
from lowerdeck.passes.legalize.common.promotion import promoted_elements
from lowerdeck.passes.legalize.common.scatters import scattered
from lowerdeck.passes.legalize.common.selection import nonzero, written_where
from lowerdeck.passes.legalize.common.suppression import best_apart
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, broadcast_values


def nonzero_columns(builder: Pt2Legalizer, x: SSAValue) -> list[SSAValue]:
    """Where elements are not zero: a vector for each dimension."""
    found = nonzero(builder, x)
    return [builder.squeeze(builder.slice_axis(found, 0, k, 1), [0]) for k in range(rank_of(x))]


@legalizes("nonzero", "argwhere", "nonzero_static")
def legalize_nonzero(builder: Pt2Legalizer) -> Results:
    """The places of what is not zero, a row for each; of so many, where a size is given."""
    rows = builder.transpose(nonzero(builder, builder.input()), [1, 0])
    if builder.name != "nonzero_static":
        return rows
    fill, size = builder.scalar(builder.integer("fill_value"), rows), builder.expr("size")
    rest = builder.broadcast(fill, [size, dims_of(rows)[1]])
    return builder.slice_axis(concat(builder, [rows, rest], 0), 0, 0, size)


@legalizes("nonzero_numpy")
def legalize_nonzero_numpy(builder: Pt2Legalizer) -> Results:
    """The same, a vector for each dimension; a scalar is a vector, too."""
    x = builder.input()
    return nonzero_columns(builder, builder.reshape(x, dims_of(x) or [1]))


@legalizes("masked_select")
def legalize_masked_select(builder: Pt2Legalizer) -> Results:
    """The elements where a mask holds."""
    x, mask = builder.input(), builder.input("mask")
    dims = broadcast([dims_of(x), dims_of(mask)])
    x, mask = builder.broadcast(x, dims), builder.broadcast(mask, dims)
    places = builder.transpose(nonzero(builder, mask), [1, 0])
    return builder.add(GatherNdOp(x, places))


@legalizes("index_select", "embedding")
def legalize_index_select(builder: Pt2Legalizer) -> Results:
    """Rows along a dimension."""
    if builder.name == "embedding":
        return builder.add(GatherOp(builder.input("weight"), builder.input("indices"), 0))
    x, index = builder.input(), builder.input("index")
    if not rank_of(x):
        return x
    index = builder.reshape(index, [product(dims_of(index))])
    return builder.add(GatherOp(x, index, builder.dim()))


@legalizes("gather", "take_along_dim")
def legalize_gather(builder: Pt2Legalizer) -> Results:
    """Elements at places along a dimension."""
    x = builder.input()
    index = builder.input("index" if builder.name == "gather" else "indices")
    if builder.name == "take_along_dim":
        if builder.get("dim") is None:
            flat = builder.reshape(x, [product(dims_of(x))])
            index = builder.reshape(index, [product(dims_of(index))])
            return builder.add(GatherOp(flat, wrapped(builder, index, dims_of(flat)[0]).value, 0))
        axis = builder.dim()
        lead = [list(dims_of(v)) for v in (x, index)]
        lead[0][axis] = lead[1][axis] = Expr.const(1)
        dims = list(broadcast(lead))
        wide = [list(dims), list(dims)]
        wide[0][axis], wide[1][axis] = dims_of(x)[axis], dims_of(index)[axis]
        x, index = builder.broadcast(x, wide[0]), builder.broadcast(index, wide[1])
        index = wrapped(builder, index, dims_of(x)[axis]).value
        return builder.add(GatherElementsOp(x, index, axis))
    if not rank_of(x):
        return builder.broadcast(x, dims_of(index))
    return builder.add(GatherElementsOp(x, index, builder.dim()))


@legalizes("take")
def legalize_take(builder: Pt2Legalizer) -> Results:
    """Elements by their number."""
    x = builder.input()
    flat = builder.reshape(x, [product(dims_of(x))])
    index = wrapped(builder, builder.input("index"), dims_of(flat)[0])
    return builder.add(GatherOp(flat, index.value, 0))


# Several index tensors


def _indices(builder: Pt2Legalizer, x: SSAValue) -> IndexTensors:
    """A list of index tensors, in which masks stand for the places where they hold."""
    given: list[SSAValue | None] = []
    for value in builder.get("indices"):
        if value is not None and element_type(value) == ui8:
            builder.refuse("bytes as a mask", "truth values")
        if value is not None and element_type(value) == i1:
            if not rank_of(value):
                builder.refuse("a truth value as index", "a mask with dimensions")
            given += nonzero_columns(builder, value)
        else:
            given.append(value)
    return IndexTensors(builder, dims_of(x), given)


@legalizes("index", "_unsafe_index")
def legalize_index(builder: Pt2Legalizer) -> Results:
    """Index tensors broadcast; if they are no neighbors their dimensions go first."""
    x = builder.input()
    return _indices(builder, x).elements(x)


@legalizes("index_put", "_unsafe_index_put")
def legalize_index_put(builder: Pt2Legalizer) -> Results:
    """Other elements at places; the last one written at a place stays."""
    x = builder.input()
    add = "max" if element_type(x) == i1 else "add"
    reduction = add if builder.flag("accumulate") else "none"
    values = builder.cast(builder.input("values"), x)
    return _indices(builder, x).written(x, values, reduction)


# Along a dimension


@legalizes("scatter", "scatter_add", "scatter_reduce")
def legalize_scatter(builder: Pt2Legalizer) -> Results:
    """Elements at places along a dimension replaced or combined."""
    shape = dims_of(builder.input())
    x, index = (
        builder.reshape(one, dims_of(one) or [1])
        for one in (builder.input(), builder.input("index"))
    )
    dims = dims_of(index)
    if builder.has("src"):
        given = builder.input("src")
        source = builder.slice(builder.reshape(given, dims_of(given) or [1]), [0] * len(dims), dims)
    else:
        source = builder.broadcast(builder.operand("value", element_type(x)).value, dims)
    kind = builder.text("reduce") if builder.has("reduce") else ""
    kind = "sum" if builder.name == "scatter_add" else kind
    include = not builder.has("include_self") or builder.flag("include_self")
    found = scattered(builder, x, index, source, builder.dim(), kind, include=include)
    return builder.reshape(found, shape)


@legalizes("index_copy", "index_add", "index_fill")
def legalize_rows(builder: Pt2Legalizer) -> Results:
    """Whole rows along a dimension replaced or added."""
    x, index, axis = builder.input(), builder.input("index"), builder.dim()
    rows = x if rank_of(x) else builder.unsqueeze(x, [0])
    index = builder.reshape(index, [product(dims_of(index))])
    places = wrapped(builder, index, dims_of(rows)[axis])
    dims = list(dims_of(rows))
    dims[axis] = dims_of(index)[0]
    name = "value" if builder.name == "index_fill" else "source"
    source = builder.broadcast(builder.operand(name, element_type(x)).value, dims)
    if builder.name == "index_add":
        scaled = TensorValue(builder, source)
        scaled = scaled if builder.get("alpha") == 1 else scaled * builder.number("alpha")
        wide = places.column(len(dims), axis).broadcast(dims)
        found = scattered(builder, rows, wide.value, scaled.value, axis, "sum", include=True)
    else:
        found = scattered_rows(builder, rows, source, axis, places)
    return found if rows is x else builder.reshape(found, [])


@legalizes("put")
def legalize_put(builder: Pt2Legalizer) -> Results:
    """Elements by their number."""
    x, index = builder.input(), builder.input("index")
    flat = builder.reshape(x, [product(dims_of(x))])
    places = wrapped(builder, builder.reshape(index, [product(dims_of(index))]), dims_of(flat)[0])
    source = builder.reshape(builder.cast(builder.input("source"), x), places.dims)
    add = "max" if element_type(x) == i1 else "add"
    reduction = add if builder.flag("accumulate") else "none"
    result = builder.add(ScatterElementsOp(flat, places.value, source, 0, reduction))
    return builder.reshape(result, dims_of(x))


@legalizes("searchsorted", "bucketize")
def legalize_search(builder: Pt2Legalizer) -> Results:
    """How many of the sorted elements are below, or not above."""
    is_bucket = builder.name == "bucketize"
    borders, x = builder.value("boundaries" if is_bucket else "sorted_sequence"), builder.value()
    if not is_bucket and builder.get("sorter") is not None:
        builder.refuse("a sorter", "a sorted sequence")
    element = promoted_elements(borders.element, x.element)
    right = builder.flag("right")
    if not is_bucket and builder.get("side") is not None:
        right = builder.text("side") == "right"
    return number_below(borders.cast(element), x.cast(element), right).cast(builder.element())


@legalizes("isin")
def legalize_isin(builder: Pt2Legalizer) -> Results:
    """Whether each element is one of others."""
    x, others = builder.value("elements"), builder.value("test_elements")
    element = promoted_elements(x.element, others.element)
    x, flat = x.cast(element), others.cast(element).reshape([product(others.dims)])
    found = x.reshape([*x.dims, 1]).eq(flat).reduce("max", [len(x.dims)])
    return ~found if builder.flag("invert") else found


@legalizes("repeat_interleave.Tensor", "repeat_interleave.self_Tensor")
def legalize_repeat(builder: Pt2Legalizer) -> Results:
    """Each number, or each row, as often as a vector says."""
    repeats = TensorValue.of(builder, builder.input("repeats")).cast(i64)
    x, axis = None, 0
    if builder.has("self"):
        x = builder.input()
        if builder.get("dim") is None:
            x = builder.reshape(x, [product(dims_of(x))])
        else:
            axis = builder.dim()
        if not repeats.dims or repeats.dims[0] == 1:  # the same for each
            repeats = repeats.reshape([1]).broadcast([dims_of(x)[axis]])
    ends = TensorValue(builder, builder.add(CumulativeOp("sum", repeats.value, 0)))
    count = size_of(builder, repeats.reduce("sum", [0]).value, "the number of repeats")
    place = TensorValue.iota(builder, count).reshape([count, 1])
    index = ends.le(place).cast(i64).reduce("sum", [1])
    if x is None:
        return index.cast(builder.element())
    return builder.add(GatherOp(x, index.value, axis))


@legalizes("max_unpool2d", "max_unpool3d")
def legalize_unpool(builder: Pt2Legalizer) -> Results:
    """Elements at their places in a plane of zeros."""
    size = builder.exprs_of("output_size")
    x, back = builder.batched(builder.input(), len(size) + 2)
    index, _ = builder.batched(builder.input("indices"), len(size) + 2)
    return back(unpooled(builder, x, index, size))


@legalizes("masked_scatter")
def legalize_masked_scatter(builder: Pt2Legalizer) -> Results:
    """The elements of the source, in order, where a mask holds."""
    x, mask = broadcast_values(builder.value(), builder.value("mask"))
    return written_where(builder, x, mask, builder.value("source"))


@legalizes("index_reduce")
def legalize_index_reduce(builder: Pt2Legalizer) -> Results:
    """Whole rows combined."""
    x, axis, source = builder.input(), builder.dim(), builder.input("source")
    wide = builder.value("index").cast(i64).column(rank_of(x), axis).broadcast(dims_of(source))
    kind, include = builder.text("reduce"), builder.flag("include_self")
    return scattered(builder, x, wide.value, source, axis, kind, include=include)


@legalizes("torchvision.nms")
def legalize_suppression(builder: Pt2Legalizer) -> Results:
    """The boxes that no better one overlaps too much, by descending score."""
    limit = float(builder.number("iou_threshold"))
    return best_apart(builder, builder.value("dets"), builder.value("scores"), limit)


@legalizes("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag")
def legalize_embedding_bag(builder: Pt2Legalizer) -> Results:
    """Sums, means or maxima of rows between offsets; an empty bag is zero."""
    weight, offsets = builder.input("weight"), builder.value("offsets")
    indices = builder.value("indices")
    if (found := (rank_of(weight), len(indices.dims), len(offsets.dims))) != (2, 1, 1):
        builder.refuse(f"weights, indices and offsets of ranks {found}", "2, 1 and 1")
    kind = ("SUM", "MEAN", "MAX")[int(builder.choice("mode", "0", "1", "2"))]
    bags = offsets.dims[0] - int(builder.flag("include_last_offset"))
    starts = offsets.cast(i64)
    place = TensorValue.iota(builder, indices.dims[0]).column(2, 0)
    begun = TensorValue(builder, builder.slice_axis(starts.value, 0, 0, bags)).le(place)
    bag = begun.cast(i64).reduce("sum", [1]) - 1
    rows = TensorValue(builder, builder.add(GatherOp(weight, indices.value, 0)))
    if (factors := builder.optional("per_sample_weights")) is not None:
        rows = rows * TensorValue.of(builder, factors).column(2, 0)
    inside = _counted(builder, indices, place, starts, bags)
    if inside is not None:  # what does not count is a bag behind the others
        bag = inside.reshape(bag.dims).where(bag, TensorValue.dim(builder, bags))
    sums = rows_by_segment(builder, rows.value, bag, bags + int(inside is not None), kind)
    return [builder.slice_axis(sums, 0, 0, bags), None, None, None]


def _counted(
    builder: Pt2Legalizer,
    indices: TensorValue,
    place: TensorValue,
    starts: TensorValue,
    bags: Expr,
) -> TensorValue | None:
    """Which indices count, a column, or None for all: not padding, and none after the last bag."""
    padding = builder.get("padding_idx") if builder.has("padding_idx") else None
    found: TensorValue | None = None
    # In the overload of that name, negative numbers count from the end; elsewhere -1 is none.
    if padding is not None and (padding != -1 or builder.overload == "padding_idx"):
        row = Expr.const(padding) + (dims_of(builder.input("weight"))[0] if padding < 0 else 0)
        found = indices.cast(i64).ne(TensorValue.dim(builder, row)).reshape(place.dims)
    if builder.flag("include_last_offset"):
        before = place.lt(starts.pick(0, bags))
        found = before if found is None else found & before
    return found
