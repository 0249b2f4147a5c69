"""Elements at places that other tensors tell."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import (
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    ScatterElementsOp,
    ScatterNdOp,
)
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i64, is_float, rank_of, ui8
from lowerdeck.dialects.dims import Expr, exprs
from lowerdeck.passes.legalize.common.functions import close_to
from lowerdeck.passes.legalize.common.selection import nonzero, nonzero_places, one_hot
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat


def _placed(builder: MxnetLegalizer, index: SSAValue, size: Expr, mode: str) -> TensorValue:
    """Indices as i64 inside of a dimension: cut off, or counted around."""
    count = TensorValue.dim(builder, size)
    if mode == "wrap":
        return builder.index(index) % count
    if is_float(element_type(index)):
        # What no i64 holds lies beyond as well.
        wide = TensorValue.of(builder, index)
        last = (count - 1).cast(wide.element)
        return wide.maximum(0.0).minimum(last).cast(i64)
    return builder.index(index).maximum(0).minimum(count - 1)


@legalizes("Embedding", "_contrib_SparseEmbedding")
def legalize_embedding(builder: MxnetLegalizer) -> Results:
    """Rows of the weights; indices outside mean the first or last one."""
    weight = builder.input("weight")
    index = _placed(builder, builder.input("data"), dims_of(weight)[0], "clip")
    return builder.add(GatherOp(weight, index.value, 0, inside=True))


@legalizes("take")
def legalize_take(builder: MxnetLegalizer) -> Results:
    """Elements along an axis; indices outside are cut off, or counted around."""
    x = builder.input("a")
    axis = builder.along(x)
    mode = builder.choice("mode", "clip", "wrap", "raise")
    if mode == "raise":
        index = builder.index(builder.input("indices")).value
        return builder.add(GatherOp(x, index, axis))
    place = _placed(builder, builder.input("indices"), dims_of(x)[axis], mode)
    return builder.add(GatherOp(x, place.value, axis, inside=True))


@legalizes("batch_take")
def legalize_batch_take(builder: MxnetLegalizer) -> Results:
    """One element of each row."""
    x = builder.input("a")
    rows, size = dims_of(x)
    index = _placed(builder, builder.input("indices"), size, "clip").reshape([rows, 1])
    return builder.reshape(builder.add(GatherElementsOp(x, index.value, 1)), [rows])


@legalizes("pick")
def legalize_pick(builder: MxnetLegalizer) -> Results:
    """One element of each row along an axis, whose dimension goes or stays as one."""
    x, index = builder.input("data"), builder.input("index")
    if builder.get("axis") is None:
        builder.refuse("no axis", "one")
    axis = builder.along(x)
    dims = list(dims_of(x))
    kept = [*dims[:axis], Expr.const(1), *dims[axis + 1 :]]
    place = _placed(builder, index, dims[axis], builder.choice("mode", "clip", "wrap"))
    found = builder.add(GatherElementsOp(x, place.reshape(kept).value, axis))
    return found if builder.flag("keepdims") else builder.squeeze(found, [axis])


def _rows(builder: MxnetLegalizer, indices: SSAValue) -> SSAValue:
    """Indices [k, places...] as i64 [places..., k]."""
    rank = rank_of(indices)
    index = builder.index(indices).value
    return builder.transpose(index, [*range(1, rank), 0])


@legalizes("scatter_nd", "_scatter_set_nd")
def legalize_scatter_nd(builder: MxnetLegalizer) -> Results:
    """Parts at places of a tensor, which is one of zeros or another one."""
    index = _rows(builder, builder.input("indices"))
    if builder.name == "scatter_nd":
        values = builder.input("data")
        x = builder.broadcast(builder.scalar(0, values), exprs(builder.sizes("shape")))
    else:
        x, values = builder.input("lhs"), builder.input("rhs")
    depth = dims_of(index)[-1].value or 0
    values = builder.broadcast(values, [*dims_of(index)[:-1], *dims_of(x)[depth:]])
    return builder.add(ScatterNdOp(x, index, values))


def _with_rows(builder: MxnetLegalizer) -> SSAValue:
    """Rows replaced by others."""
    index = builder.index(builder.input("index_vector"))
    rows = index.reshape([index.dims[0], 1]).value
    return builder.add(ScatterNdOp(builder.input("old_tensor"), rows, builder.input("new_tensor")))


@legalizes("one_hot")
def legalize_one_hot(builder: MxnetLegalizer) -> Results:
    """A new last dimension with one number at the index, another elsewhere."""
    source = builder.input("indices")
    index = builder.index(source)
    element = builder.dtype("dtype", f32)
    on, off = (builder.known(builder.number(f"{name}_value"), element) for name in ("on", "off"))
    depth = Expr.const(builder.integer("depth"))
    return one_hot(index, depth, len(index.dims)).where(on, off).value


def _masked(builder: MxnetLegalizer) -> SSAValue:
    """The parts along an axis where a vector is not zero."""
    x, places = builder.input("data"), nonzero_places(builder, builder.input("index"))
    return builder.add(GatherOp(x, places, builder.along(x), inside=True))


legalizes.rows(
    {
        "_contrib_boolean_mask": _masked,
        "_contrib_index_copy": _with_rows,
        "_npx_nonzero": lambda b: b.transpose(nonzero(b, b.op.operands[0]), [1, 0]),
        "gather_nd": lambda b: b.add(GatherNdOp(b.input(), _rows(b, b.input("indices")))),
    }
)


@legalizes("_ravel_multi_index", "_unravel_index")
def legalize_ravel(builder: MxnetLegalizer) -> Results:
    """Coordinates as the number of an element, and back."""
    sizes = builder.sizes("shape")
    if not sizes:
        builder.refuse("no shape", "one")
    x = builder.input("data")
    index = builder.index(x)
    if builder.name == "_ravel_multi_index":
        total = index.pick(0, 0)
        for axis, size in enumerate(sizes[1:], 1):
            total = total * size + index.pick(0, axis)
        return builder.cast(total.value, x)
    parts: list[TensorValue] = []
    for size in reversed(sizes):
        parts.insert(0, (index % size).reshape([1, *index.dims]))
        index = index // size
    return builder.cast(concat(parts, 0).value, x)


@legalizes("_sparse_retain")
def legalize_retain(builder: MxnetLegalizer) -> Results:
    """Rows that are kept; others are zero."""
    x = builder.value("data")
    index = builder.index(builder.input("indices"))
    flags = builder.broadcast(builder.scalar(0, i64), [x.dims[0]])
    ones = builder.broadcast(builder.scalar(1, i64), index.dims)
    kept = TensorValue(builder, builder.add(ScatterElementsOp(flags, index.value, ones, 0)))
    return kept.ne(0).column(len(x.dims), 0).where(x, 0).value


@legalizes("_contrib_allclose")
def legalize_allclose(builder: MxnetLegalizer) -> Results:
    """Whether all elements are close."""
    x, y = builder.value("a"), builder.value("b")
    bounds = builder.number("rtol"), builder.number("atol")
    close = close_to(x, y, *bounds, equal_nan=builder.flag("equal_nan"))
    return close.reduce("min", list(range(len(close.dims)))).cast(ui8)
