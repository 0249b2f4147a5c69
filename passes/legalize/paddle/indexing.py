"""Operators that read or write elements at places that tensors name."""

from __future__ import annotations

from lowerdeck.dialects.core.tensor import (
    GatherNdOp,
    GatherOp,
    ScatterNdOp,
)
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.selection import nonzero, one_hot
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

_ONE = Expr.const(1)


def _places(builder: PaddleLegalizer) -> TensorValue:
    """The index as a vector; negative ones count from the end."""
    index = builder.value("index").cast(i64)
    return index.reshape([builder.total(index.value)])


@legalizes("gather", "index_select", "index_select_strided")
def legalize_gather(builder: PaddleLegalizer) -> Results:
    """Rows along an axis; an index without dimensions takes the axis away."""
    x, index = builder.input("x"), builder.input("index")
    axis = builder.along(x)
    places = builder.cast(index, i64) if not rank_of(index) else _places(builder).value
    return [builder.add(GatherOp(x, places, axis))]


@legalizes("gather_nd")
def legalize_gather_nd(builder: PaddleLegalizer) -> Results:
    """Elements, or parts, at places in several dimensions."""
    x, index = builder.input("x"), builder.input("index")
    depth = dims_of(index)[-1].value
    if depth == 0:
        dims = [*dims_of(index)[:-1], *dims_of(x)]
        return [builder.broadcast(x, dims)]
    return [builder.add(GatherNdOp(x, builder.cast(index, i64)))]


@legalizes("embedding", "lookup_table")
def legalize_embedding(builder: PaddleLegalizer) -> Results:
    """Rows of a table; those of the padding are zero."""
    is_old = builder.name == "lookup_table"
    weight = builder.input("w" if is_old else "weight")
    ids = builder.value("ids" if is_old else "x").cast(i64)
    if is_old:
        ids = ids.reshape(ids.dims[:-1])
    rows = builder.add(GatherOp(weight, ids.value, 0))
    padding = builder.integer("padding_idx")
    if padding < 0:
        return [rows]
    is_padding = ids.eq(padding).reshape([*ids.dims, 1])
    return [builder.select(is_padding.value, builder.scalar(0, rows), rows)]


@legalizes("one_hot", "one_hot_v1")
def legalize_one_hot(builder: PaddleLegalizer) -> Results:
    """A new last dimension in which only the place of the index is one."""
    x = builder.value("x")
    is_old = builder.name == "one_hot_v1"
    if is_old and x.dims and x.dims[-1] == 1:
        x = x.reshape(x.dims[:-1])
    depth = builder.one("depth" if is_old else "num_classes")
    return [builder.cast(one_hot(x, depth, len(x.dims)).value, builder.element())]


@legalizes("multiplex")
def legalize_multiplex(builder: PaddleLegalizer) -> Results:
    """Row k of the input that index k names."""
    values = [TensorValue.of(builder, value) for value in builder.inputs("inputs")]
    index = builder.value("index").cast(i64)
    count = values[0].dims[0]
    index = index.reshape([count])
    rows = TensorValue.iota(builder, count)
    return [builder.add(GatherNdOp(stack(values, 0).value, stack([index, rows], 1).value))]


# What data decides


@legalizes("nonzero")
def legalize_nonzero(builder: PaddleLegalizer) -> Results:
    """The places of what is not zero, a row for each."""
    x = builder.input("condition")
    found = nonzero(builder, builder.reshape(x, [1]) if not rank_of(x) else x)
    if not rank_of(x):
        return [builder.reshape(found, [dims_of(found)[1], 0])]
    return [builder.transpose(found, [1, 0])]


# Writing


@legalizes("scatter")
def legalize_scatter(builder: PaddleLegalizer) -> Results:
    """Rows replaced, or, without `overwrite`, sums of new rows in place of old ones."""
    x = builder.input("x")
    index = _places(builder)
    updates = builder.cast(builder.input("updates"), x)
    updates = builder.reshape(updates, [*index.dims, *dims_of(x)[1:]])
    column = index.reshape([index.dims[0], 1])
    if builder.flag("overwrite"):
        return [builder.add(ScatterNdOp(x, column.value, updates))]
    zeros = builder.broadcast(builder.scalar(0, x), dims_of(updates))
    cleared = builder.add(ScatterNdOp(x, column.value, zeros))
    return [builder.add(ScatterNdOp(cleared, column.value, updates, "add"))]


@legalizes("scatter_nd_add")
def legalize_scatter_nd(builder: PaddleLegalizer) -> Results:
    """Parts at places in several dimensions added."""
    index = builder.cast(builder.input("index"), i64)
    return [builder.add(ScatterNdOp(builder.input("x"), index, builder.input("updates"), "add"))]


_REDUCES = {"add": "sum", "mul": "prod", "multiply": "prod", "amin": "amin", "amax": "amax"}


@legalizes("put_along_axis")
def legalize_put(builder: PaddleLegalizer) -> Results:
    """Elements at places along an axis replaced or combined."""
    x, index = builder.input("arr"), builder.cast(builder.input("indices"), i64)
    values = builder.cast(builder.input("values"), x)
    axis, kind = builder.along(x), builder.text("reduce", "assign")
    if all(dim == 1 for dim in dims_of(values)):
        values = builder.broadcast(builder.reshape(values, [1] * rank_of(x)), dims_of(index))
    given = {"self": x, "dim": axis, "index": index, "src": values}
    if kind == "assign":
        return builder.torch("scatter.src", **given)
    include = builder.flag("include_self")
    name = _REDUCES.get(kind, kind)
    return builder.torch("scatter_reduce.two", **given, reduce=name, include_self=include)


# Graphs


@legalizes("segment_pool", "send_u_recv")
def legalize_segments(builder: PaddleLegalizer) -> Results:
    """Rows of segments, or of the ends of edges, combined; nothing is zero."""
    x = builder.input("x")
    if builder.name == "segment_pool":
        target = builder.value("segment_ids").cast(i64)
        kind, rows = builder.text("pooltype"), x
        count = builder.require_expr((target.reduce("max", [0]) + 1).value, "the segments")
        builder.symbols.assume_nonnegative([count])
    else:
        target = builder.value("dst_index").cast(i64)
        kind = builder.text("reduce_op")
        source = builder.value("src_index").cast(i64)
        rows = builder.add(GatherOp(x, source.value, 0))
        sizes = builder.whole("out_size")
        count = sizes[0] if sizes and sizes[0] != 0 else dims_of(x)[0]
    dims = [count, *dims_of(x)[1:]]
    column = target.reshape([target.dims[0], 1])
    zeros = builder.broadcast(builder.scalar(0, x), dims)
    ones = builder.broadcast(builder.scalar(1, x), dims_of(rows))
    number = TensorValue(builder, builder.add(ScatterNdOp(zeros, column.value, ones, "add")))
    if kind in ("SUM", "MEAN"):
        total = TensorValue(builder, builder.add(ScatterNdOp(zeros, column.value, rows, "add")))
        found = total / number.maximum(1) if kind == "MEAN" else total
    else:
        low = float("-inf") if kind == "MAX" else float("inf")
        start = builder.broadcast(builder.scalar(low, x), dims)
        best = builder.add(ScatterNdOp(start, column.value, rows, kind.lower()))
        found = number.gt(0).where(TensorValue(builder, best), 0)
    return builder.results(out=found.value)
