"""
Linear systems, inverses, determinants and triangular factors, column by column in a loop.

TensorFlow fails at a matrix that has no inverse; here its inverse holds what is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SignOp, SqrtOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import GatherNdOp, PadOp
from lowerdeck.dialects.core.types import broadcast, dims_of, f32, f64
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.generators import diagonals
from lowerdeck.passes.legalize.common.recurrent import State, run_steps
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@record
class _Matrices:
    """Matrices [batch..., rows, columns] with the batch as one dimension."""

    value: TensorValue
    batch: tuple[Expr, ...]

    @staticmethod
    def of(builder: Tf1Legalizer, x: SSAValue) -> _Matrices:
        dims = dims_of(x)
        if len(dims) < 2:
            builder.refuse(f"an operand of {len(dims)} dimensions", "matrices")
        element = TensorValue(builder, x).element
        if element not in (f32, f64):
            builder.refuse(f"matrices of {element}", "f32 or f64")
        flat = builder.reshape(x, [product(dims[:-2]), *dims[-2:]])
        return _Matrices(TensorValue(builder, flat), dims[:-2])

    def restored(self, value: TensorValue) -> SSAValue:
        """What was computed of each matrix, with all dimensions of the batch."""
        return value.reshape([*self.batch, *value.dims[1:]]).value


def _square(builder: Tf1Legalizer, name: str) -> _Matrices:
    x = number(builder, name)
    found = _Matrices.of(builder, x)
    rows, columns = found.value.dims[1:]
    if rows != columns:
        if None not in (rows.value, columns.value):
            builder.refuse(f"matrices of {rows} x {columns}", "square ones")
        square = found.value.reshape([found.value.dims[0], rows, rows])
        return _Matrices(square, found.batch)
    return found


def _fitted(value: TensorValue, like: SSAValue) -> TensorValue:
    """A next state with the dimensions of the first one, which name the same sizes."""
    return value.reshape(dims_of(like))


def _at(x: TensorValue, axis: int, index: Expr) -> TensorValue:
    """The part at one position, which stays as a dimension of one."""
    return TensorValue(x.builder, x.builder.slice_axis(x.value, axis, index, 1))


# Elimination


@record
class _Pivot:
    """The rows with the largest remaining element of a column moved to its row."""

    rows: TensorValue
    row: TensorValue
    """The moved row, [batch, 1, columns]."""
    pivot: TensorValue
    """[batch, 1, 1]"""
    is_moved: TensorValue
    """Whether rows were exchanged, i1 [batch]."""


def _pivoted(builder: Tf1Legalizer, rows: TensorValue, index: Expr) -> _Pivot:
    batch, count, _ = rows.dims
    own = TensorValue.dim(builder, index)
    number_ = TensorValue.iota(builder, count).reshape([1, count])
    column = _at(rows, 2, index).reshape([batch, count]).abs()
    remaining = number_.ge(own).where(column, -1.0)
    best = TensorValue(builder, builder.add(ArgReduceOp("max", remaining.value, 1))).reshape(
        [batch, 1]
    )
    source = number_.eq(own).where(best, number_.eq(best).where(own, number_))
    source = source.broadcast([batch, count]).reshape([batch, count, 1])
    moved = TensorValue(builder, builder.add(GatherNdOp(rows.value, source.value, 1)))
    row = _at(moved, 1, index)
    return _Pivot(moved, row, _at(row, 2, index), best.reshape([batch]).ne(own))


def _eliminated(
    builder: Tf1Legalizer, found: _Pivot, index: Expr, divisor: TensorValue
) -> TensorValue:
    """All other rows without their part in the column."""
    count = found.rows.dims[1]
    row = found.row / divisor
    is_own = (
        TensorValue.iota(builder, count).reshape([1, count, 1]).eq(TensorValue.dim(builder, index))
    )
    return is_own.where(row, found.rows - _at(found.rows, 2, index) * row)


def _solved(builder: Tf1Legalizer, matrices: TensorValue, right: TensorValue) -> TensorValue:
    """The solutions of systems by Gauss and Jordan, with the largest pivot of each column."""
    size, columns = matrices.dims[1], right.dims[2]
    start = concat([matrices, right], 2).value

    def step(inner: Tf1Legalizer, index: Expr, before: State) -> tuple[State, State]:
        found = _pivoted(inner, before[0], index)
        return (_fitted(_eliminated(inner, found, index, found.pivot), start),), ()

    (result,), _ = run_steps(builder, size, [start], step)
    return TensorValue(builder, builder.slice_axis(result, 2, size, columns))


@legalizes("MatrixSolve", "BatchMatrixSolve")
def legalize_solve(builder: Tf1Legalizer) -> Results:
    """x of matrix x = rhs, or of its transpose."""
    matrices = _square(builder, "matrix")
    right = _Matrices.of(builder, number(builder, "rhs")).value
    left = matrices.value
    left = left.transpose([0, 2, 1]) if builder.attrs.flag("adjoint") else left
    right = right.reshape([*left.dims[:2], right.dims[2]])
    return [matrices.restored(_solved(builder, left, right))]


@legalizes("MatrixInverse", "BatchMatrixInverse")
def legalize_inverse(builder: Tf1Legalizer) -> Results:
    """The inverse of each matrix, or of its transpose."""
    matrices = _square(builder, "input")
    left = matrices.value
    left = left.transpose([0, 2, 1]) if builder.attrs.flag("adjoint") else left
    size = left.dims[1]
    rows, columns = (TensorValue.iota(builder, size).column(3, axis) for axis in (1, 2))
    unit = rows.eq(columns).cast(left.element).broadcast(left.dims)
    return [matrices.restored(_solved(builder, left, unit))]


@legalizes("MatrixDeterminant", "BatchMatrixDeterminant")
def legalize_determinant(builder: Tf1Legalizer) -> Results:
    """The product of the pivots, negative if an odd number of rows were exchanged."""
    matrices = _square(builder, "input")
    (result,) = _pivots(builder, matrices.value, [1.0], lambda pivot, total: [total[0] * pivot])
    return [matrices.restored(result)]


@legalizes("LogMatrixDeterminant")
def legalize_log_determinant(builder: Tf1Legalizer) -> Results:
    """The sign of the determinant, and the logarithm of its size."""
    matrices = _square(builder, "input")

    def gathered(pivot: TensorValue, total: Sequence[TensorValue]) -> list[TensorValue]:
        return [total[0] * apply(SignOp, pivot), total[1] + pivot.abs().log()]

    return [matrices.restored(x) for x in _pivots(builder, matrices.value, [1.0, 0.0], gathered)]


Gathered = Callable[[TensorValue, Sequence[TensorValue]], list[TensorValue]]


def _pivots(
    builder: Tf1Legalizer, matrices: TensorValue, starts: Sequence[float], gathered: Gathered
) -> list[TensorValue]:
    """
    What `gathered` makes, pivot by pivot, of numbers [batch] that begin at `starts`.

    A pivot has the sign that the exchange of its row gives it.
    """
    batch, size, _ = matrices.dims
    first = [
        TensorValue.number(builder, start, matrices.element).broadcast([batch]) for start in starts
    ]
    states = [matrices.value, *(value.value for value in first)]

    def step(inner: Tf1Legalizer, index: Expr, before: State) -> tuple[State, State]:
        found = _pivoted(inner, before[0], index)
        pivot = found.pivot.reshape([batch])
        signed = found.is_moved.where(-pivot, pivot)
        divisor = found.pivot.ne(0).where(found.pivot, 1.0)
        after = [_eliminated(inner, found, index, divisor), *gathered(signed, before[1:])]
        return tuple(map(_fitted, after, states)), ()

    results, _ = run_steps(builder, size, states, step)
    return [TensorValue(builder, result) for result in results[1:]]


# Triangles


@legalizes("Cholesky", "BatchCholesky")
def legalize_cholesky(builder: Tf1Legalizer) -> Results:
    """The lower triangles whose products with their transposes are the matrices."""
    matrices = _square(builder, "input")
    given = matrices.value
    batch, size, _ = given.dims
    start = builder.broadcast(builder.scalar(0, given.element), given.dims)

    def step(inner: Tf1Legalizer, index: Expr, before: State) -> tuple[State, State]:
        own = TensorValue.dim(inner, index)
        row = _at(before[0], 1, index)
        known = (before[0] * row).reduce("sum", [2]).reshape([batch, size, 1])
        rest = _at(TensorValue(inner, given.value), 2, index) - known
        column = rest / apply(SqrtOp, _at(rest, 1, index))
        rows, columns = (TensorValue.iota(inner, size).column(3, axis) for axis in (1, 2))
        is_new = columns.eq(own) & rows.ge(own)
        return (_fitted(is_new.where(column, before[0]), start),), ()

    (result,), _ = run_steps(builder, size, [start], step)
    return [matrices.restored(TensorValue(builder, result))]


@legalizes("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def legalize_triangular_solve(builder: Tf1Legalizer) -> Results:
    """x of matrix x = rhs, or of its transpose, where the other triangle counts as zero."""
    matrix, right = number(builder, "matrix"), number(builder, "rhs")
    batch = broadcast([dims_of(matrix)[:-2], dims_of(right)[:-2]])
    matrix, right = (
        builder.broadcast(value, [*batch, *dims_of(value)[-2:]]) for value in (matrix, right)
    )
    is_lower = builder.attrs.flag("lower")
    flat = _Matrices.of(builder, matrix).value
    place = diagonals(builder, flat.value)
    flat = (place.le(0) if is_lower else place.ge(0)).where(flat, 0)
    if builder.attrs.flag("adjoint"):
        flat, is_lower = flat.transpose([0, 2, 1]), not is_lower
    systems = _Matrices.of(builder, right)
    return [systems.restored(_substituted(builder, flat, systems.value, is_lower))]


def _substituted(
    builder: Tf1Legalizer, matrices: TensorValue, right: TensorValue, is_lower: bool
) -> TensorValue:
    """Row by row, from the first if the matrices are lower triangles, else from the last."""
    batch, size, columns = right.dims
    start = builder.broadcast(builder.scalar(0, right.element), right.dims)
    left, given = matrices.reshape([batch, size, size]).value, right.value

    def step(inner: Tf1Legalizer, index: Expr, before: State) -> tuple[State, State]:
        own = index if is_lower else size - 1 - index
        row = _at(TensorValue(inner, left), 1, own)
        known = TensorValue(inner, inner.add(MatmulOp(row.value, before[0].value)))
        rest = _at(TensorValue(inner, given), 1, own) - known.reshape([batch, 1, columns])
        is_own = TensorValue.iota(inner, size).column(3, 1).eq(TensorValue.dim(inner, own))
        return (_fitted(is_own.where(rest / _at(row, 2, own), before[0]), start),), ()

    (result,), _ = run_steps(builder, size, [start], step)
    return TensorValue(builder, result)


# Bands


@legalizes("TridiagonalMatMul")
def legalize_tridiagonal_product(builder: Tf1Legalizer) -> Results:
    """The product with a matrix of three diagonals, each of which is stored as [..., 1, M]."""
    right = TensorValue(builder, number(builder, "rhs"))
    rank = len(right.dims)
    size = right.dims[rank - 2]
    above, center, below = (
        TensorValue(
            builder,
            builder.transpose(number(builder, name), [*range(rank - 2), rank - 1, rank - 2]),
        )
        for name in ("superdiag", "maindiag", "subdiag")
    )
    one = [Expr.const(0)] * rank
    one[rank - 2] = Expr.const(1)
    around = builder.add(PadOp(right.value, one, one, builder.scalar(0, right.element)))
    before, after = (
        TensorValue(builder, builder.slice_axis(around, rank - 2, start, size)) for start in (0, 2)
    )
    # What lies beyond the ends of the outer diagonals is not read.
    place = TensorValue.iota(builder, size).reshape([size, 1])
    last = TensorValue.dim(builder, size - 1)
    below = place.gt(0).where(below, 0)
    above = place.lt(last).where(above, 0)
    return [(below * before + center * right + above * after).value]
