"""Operators that read or write elements at places that tensors name."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherNdOp, GatherOp, ScatterNdOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.order import rows_by_segment
from lowerdeck.passes.legalize.common.selection import nonzero, one_hot
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack


def _places(builder: PaddleLegalizer) -> TensorValue:
    """The index as a vector; negative ones count from the end."""
    index = builder.value("index").cast(i64)
    return index.reshape([product(index.dims)])


@legalizes("gather", "index_select", "index_select_strided")
def legalize_gather(builder: PaddleLegalizer) -> Results:
    """Rows along an axis; an index without dimensions takes the axis away."""
    x, index = builder.input("x"), builder.input("index")
    axis = builder.along(x)
    places = builder.cast(index, i64) if not rank_of(index) else _places(builder).value
    return builder.add(GatherOp(x, places, axis))


def _gather_nd(builder: PaddleLegalizer) -> SSAValue:
    """Elements, or parts, at places in several dimensions."""
    x, index = builder.input("x"), builder.input("index")
    if dims_of(index)[-1] == 0:
        return builder.broadcast(x, [*dims_of(index)[:-1], *dims_of(x)])
    return builder.add(GatherNdOp(x, builder.cast(index, i64)))


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
        return rows
    is_padding = ids.eq(padding).reshape([*ids.dims, 1])
    return builder.select(is_padding.value, builder.scalar(0, rows), rows)


@legalizes("one_hot", "one_hot_v1")
def legalize_one_hot(builder: PaddleLegalizer) -> Results:
    """A new last dimension in which only the place of the index is one."""
    x = builder.value("x")
    is_old = builder.name == "one_hot_v1"
    if is_old and x.dims and x.dims[-1] == 1:
        x = x.reshape(x.dims[:-1])
    depth = builder.expr("depth" if is_old else "num_classes")
    return builder.cast(one_hot(x, depth, len(x.dims)).value, builder.element())


# What data decides


def _nonzero(builder: PaddleLegalizer) -> SSAValue:
    """The places of what is not zero, a row for each."""
    x = builder.input("condition")
    found = nonzero(builder, x if rank_of(x) else builder.reshape(x, [1]))
    if not rank_of(x):
        return builder.reshape(found, [dims_of(found)[1], 0])
    return builder.transpose(found, [1, 0])


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
        return builder.add(ScatterNdOp(x, column.value, updates))
    zeros = builder.broadcast(builder.scalar(0, x), dims_of(updates))
    cleared = builder.add(ScatterNdOp(x, column.value, zeros))
    return builder.add(ScatterNdOp(cleared, column.value, updates, "add"))


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
        sizes = builder.exprs_of("out_size")
        count = sizes[0] if sizes and sizes[0] != 0 else dims_of(x)[0]
    return builder.results(out=rows_by_segment(builder, rows, target, count, kind))


def _multiplexed(builder: PaddleLegalizer) -> SSAValue:
    """Row k of the input that index k names."""
    values = [TensorValue.of(builder, value) for value in builder.inputs("inputs")]
    index = builder.value("index").cast(i64).reshape(values[0].dims[:1])
    rows = TensorValue.iota(builder, values[0].dims[0])
    return builder.add(GatherNdOp(stack(values, 0).value, stack([index, rows], 1).value))


legalizes.rows(
    {
        "gather_nd": _gather_nd,
        "multiplex": _multiplexed,
        "nonzero": _nonzero,
        "scatter_nd_add": lambda b: b.add(
            ScatterNdOp(b.input("x"), b.cast(b.input("index"), i64), b.input("updates"), "add")
        ),
    }
)
