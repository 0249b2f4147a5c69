"""
Sparse tensors: rows of coordinates, a value for each, and a shape, which are tensors themselves.

Where a dense tensor is the result, values of one place add up, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp
from lowerdeck.dialects.core.tensor import GatherNdOp, GatherOp, ScatterNdOp
from lowerdeck.dialects.core.types import dims_of, i64
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.order import ordered
from lowerdeck.passes.legalize.common.selection import nonzero, nonzero_places
from lowerdeck.passes.legalize.sizes import size_of, sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.scatter import combined


def _columns(builder: Tf1Legalizer, name: str | int) -> list[TensorValue]:
    """The coordinates of all values, a vector of i64 for each dimension of the sparse tensor."""
    indices = TensorValue.of(builder, builder.operand(name)).cast(i64)
    rank = indices.dims[1].value
    if not rank:
        found = "coordinates of an unknown number" if rank is None else "no coordinates"
        builder.refuse(found, "one for each dimension, of which there is one at least")
    return [indices.pick(1, k) for k in range(rank)]


def _shape(builder: Tf1Legalizer, name: str, rank: int) -> list[Expr]:
    sizes = sizes_of(builder, builder.operand(name), "the shape")
    if len(sizes) != rank:
        builder.refuse(f"{rank} coordinates for {len(sizes)} dimensions", "one for each")
    return sizes


# Products and sums with dense tensors


@legalizes("SparseTensorDenseMatMul")
def legalize_sparse_matmul(builder: Tf1Legalizer) -> Results:
    """
    Row r of the result sums the rows of `b` that row r of the matrix names, times its values.
    """
    columns = _columns(builder, "a_indices")
    sizes = _shape(builder, "a_shape", len(columns))
    if len(sizes) != 2:
        builder.refuse(f"a sparse tensor of {len(sizes)} dimensions", "a matrix")
    if builder.attrs.flag("adjoint_a"):
        columns, sizes = columns[::-1], sizes[::-1]
    b = number(builder, "b")
    b = builder.transpose(b, [1, 0]) if builder.attrs.flag("adjoint_b") else b
    rows = TensorValue(builder, builder.add(GatherOp(b, columns[1].value, 0)))
    values = TensorValue.of(builder, builder.operand("a_values"))
    terms = rows * values.reshape([values.dims[0], 1])
    return [combined(builder, "add", terms.value, columns[0].value, sizes[0])]


@legalizes("SparseTensorDenseAdd")
def legalize_sparse_add(builder: Tf1Legalizer) -> Results:
    """`b` with the values added at their places."""
    places = stack(_columns(builder, "a_indices"), 1)
    values = builder.operand("a_values")
    return [builder.add(ScatterNdOp(builder.operand("b"), places.value, values, "add"))]


@legalizes("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")
def legalize_sparse_elementwise(builder: Tf1Legalizer) -> Results:
    """The values with what the dense tensor, broadcast to the shape, has in their places."""
    columns = _columns(builder, "sp_indices")
    sizes = _shape(builder, "sp_shape", len(columns))
    dense = builder.broadcast(builder.operand("dense"), sizes)
    places = stack(columns, 1)
    found = TensorValue(builder, builder.add(GatherNdOp(dense, places.value)))
    values = TensorValue.of(builder, builder.operand("sp_values"))
    match builder.op_type.removeprefix("SparseDenseCwise"):
        case "Add":
            return [(values + found).value]
        case "Mul":
            return [(values * found).value]
        case _:
            return [(values / found).value]


@legalizes("SparseReduceSum", "SparseReduceMax")
def legalize_sparse_reduce(builder: Tf1Legalizer) -> Results:
    """Dense sums or largest values over dimensions; 0 where there are no values."""
    columns = _columns(builder, "input_indices")
    sizes = _shape(builder, "input_shape", len(columns))
    axes = builder.require_ints(builder.operand("reduction_axes"), "the axes")
    gone = builder.axes(axes, len(sizes))
    kept = [axis for axis in range(len(sizes)) if axis not in gone]
    values = builder.operand("input_values")
    place = _linear([columns[axis] for axis in kept], [sizes[axis] for axis in kept], columns[0])
    count = product([sizes[axis] for axis in kept])
    if builder.op_type == "SparseReduceSum":
        found = combined(builder, "add", values, place.value, count)
    else:
        found = _largest(builder, values, place, count)
    keeps = builder.attrs.flag("keep_dims")
    dims = [size if axis not in gone else Expr.const(1) for axis, size in enumerate(sizes)]
    return [builder.reshape(found, dims if keeps else [sizes[axis] for axis in kept])]


def _largest(builder: Tf1Legalizer, values: SSAValue, place: TensorValue, count: Expr) -> SSAValue:
    found = TensorValue(builder, combined(builder, "max", values, place.value, count))
    ones = builder.broadcast(builder.scalar(1, i64), dims_of(values))
    number_of = TensorValue(builder, combined(builder, "add", ones, place.value, count))
    return number_of.eq(0).where(found * 0, found).value


def _linear(
    columns: Sequence[TensorValue], sizes: Sequence[Expr], like: TensorValue
) -> TensorValue:
    """The places in row-major order; 0 for each if there are no dimensions."""
    total = like * 0
    for column, size in zip(columns, sizes, strict=True):
        total = total * TensorValue.dim(like.builder, size) + column
    return total


# What changes coordinates


@legalizes("SparseReorder")
def legalize_sparse_reorder(builder: Tf1Legalizer) -> Results:
    """The values in row-major order of their places; those of one place keep theirs."""
    columns = _columns(builder, "input_indices")
    sizes = _shape(builder, "input_shape", len(columns))
    place = _linear(columns, sizes, columns[0])
    _, order = ordered(builder, place.value, 0, False)
    operands = builder.operand("input_indices"), builder.operand("input_values")
    return [builder.add(GatherOp(operand, order, 0)) for operand in operands]


@legalizes("SparseReshape")
def legalize_sparse_reshape(builder: Tf1Legalizer) -> Results:
    """The coordinates in another shape of as many elements, of which one size may be -1."""
    columns = _columns(builder, "input_indices")
    sizes = _shape(builder, "input_shape", len(columns))
    given = TensorValue.of(builder, builder.operand("new_shape")).cast(i64)
    rank = given.dims[0].value
    if rank is None:
        builder.refuse("a shape of an unknown number of dimensions", "a known one")
    is_open = given.eq(-1)
    rest = is_open.where(given * 0 + 1, given)
    others = rest.pick(0, 0) if rank else TensorValue.number(builder, 1, i64)
    for axis in range(1, rank):
        others = others * rest.pick(0, axis)
    total = TensorValue.dim(builder, product(sizes))
    shape = is_open.where((total // others.maximum(1)).broadcast(given.dims), given)
    place = _linear(columns, sizes, columns[0])
    found: list[TensorValue] = []
    for axis in reversed(range(rank)):
        size = shape.pick(0, axis).maximum(1)
        found.insert(0, place % size)
        place = place // size
    return [stack(found, 1).value, shape.value]


@legalizes("SparseFillEmptyRows")
def legalize_fill_empty_rows(builder: Tf1Legalizer) -> Results:
    """
    The values in the order of their rows, with the default in the first place of empty rows; which
    rows were empty, and where each value went.
    """
    columns = _columns(builder, "indices")
    sizes = _shape(builder, "dense_shape", len(columns))
    values = builder.operand("values")
    row, order = (TensorValue(builder, v) for v in ordered(builder, columns[0].value, 0, False))
    ones = builder.broadcast(builder.scalar(1, i64), dims_of(values))
    count = TensorValue(builder, combined(builder, "add", ones, columns[0].value, sizes[0]))
    is_empty = count.eq(0)
    before = _sum_before(builder, is_empty.cast(i64))
    rank_of_value = TensorValue.iota(builder, dims_of(values)[0])
    shifted = TensorValue(builder, builder.add(GatherOp(before.value, row.value, 0)))
    place = rank_of_value + shifted
    first = _sum_before(builder, count.maximum(1))
    empty = nonzero_places(builder, is_empty.value)
    added = size_of(builder, is_empty.cast(i64).reduce("sum", [0]).value, "the empty rows")
    total = dims_of(values)[0] + added

    def written(start: SSAValue, places: TensorValue, updates: SSAValue) -> SSAValue:
        return builder.add(ScatterNdOp(start, places.reshape([places.dims[0], 1]).value, updates))

    zeros = TensorValue.number(builder, 0, i64)
    indices = builder.broadcast(zeros.value, [total, len(columns)])
    sorted_indices = builder.add(GatherOp(builder.operand("indices"), order.value, 0))
    indices = written(indices, place, sorted_indices)
    empty_rows = TensorValue(builder, empty)
    filled = stack([empty_rows, *[empty_rows * 0] * (len(columns) - 1)], 1)
    gap = TensorValue(builder, builder.add(GatherOp(first.value, empty, 0)))
    indices = written(indices, gap, filled.value)
    all_values = builder.broadcast(builder.operand("default_value"), [total])
    sorted_values = builder.add(GatherOp(values, order.value, 0))
    all_values = written(all_values, place, sorted_values)
    went = written(builder.broadcast(zeros.value, dims_of(values)), order, place.value)
    return [indices, all_values, is_empty.value, went]


def _sum_before(builder: Tf1Legalizer, x: TensorValue) -> TensorValue:
    return TensorValue(builder, builder.add(CumulativeOp("sum", x.value, 0, True, False)))


# Paths through rows of classes


@legalizes("CTCGreedyDecoder")
def legalize_ctc_greedy(builder: Tf1Legalizer) -> Results:
    """
    The best class of each step of a sequence, without blanks and, on request, repetitions, as a
    sparse matrix; and minus the sum of the scores.
    """
    x = TensorValue.of(builder, builder.operand("inputs"))
    steps, rows, classes = x.dims
    blank = builder.attrs.int("blank_index")
    silent = TensorValue.dim(builder, classes + blank if blank < 0 else Expr.const(blank))
    best = TensorValue(builder, builder.add(ArgReduceOp("max", x.value, 2))).transpose([1, 0])
    time = TensorValue.iota(builder, steps)
    length = TensorValue.of(builder, builder.operand("sequence_length")).cast(i64)
    is_inside = time.reshape([1, steps]).lt(length.reshape([rows, 1]))
    is_kept = is_inside & best.ne(silent)
    if builder.attrs.flag("merge_repeated"):
        earlier = (time - 1).maximum(0)
        before = TensorValue(builder, builder.add(GatherOp(best.value, earlier.value, 1)))
        is_kept = is_kept & (best.ne(before) | time.eq(0).reshape([1, steps]))
    kept = is_kept.cast(i64)
    places = builder.transpose(nonzero(builder, is_kept.value), [1, 0])
    column = TensorValue(builder, builder.add(CumulativeOp("sum", kept.value, 1, True, False)))
    found = [TensorValue(builder, builder.add(GatherNdOp(v.value, places))) for v in (column, best)]
    row = TensorValue(builder, places).pick(1, 0)
    longest = kept.reduce("sum", [1]).reduce("max", [0]).maximum(0)
    shape = stack([TensorValue.dim(builder, rows), longest], 0)
    score = x.reduce("max", [2]).transpose([1, 0])
    total = is_inside.where(score, score * 0).reduce("sum", [1], keep_dims=True)
    return [stack([row, found[0]], 1).value, found[1].value, shape.value, (-total).value]
