"""
Linear systems, inverses, determinants and triangular factors, column by column in a loop.

TensorFlow fails at a matrix that has no inverse; here its inverse holds what is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SignOp, SqrtOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import GatherNdOp, PadOp
from lowerdeck.dialects.core.types import broadcast, dims_of, f32, f64
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.generators import diagonals
from lowerdeck.passes.legalize.quantity import Quantity, concat
from lowerdeck.passes.legalize.recurrent import State, run_steps
from lowerdeck.passes.legalize.special import apply
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@dataclass(frozen=True)
class _Matrices:
    """Matrices [batch..., rows, columns] with the batch as one dimension."""

    value: Quantity
    batch: tuple[Expr, ...]

    @staticmethod
    def of(lower: Tf1Legalizer, x: SSAValue) -> _Matrices:
        dims = dims_of(x)
        if len(dims) < 2:
            lower.refuse(f"an operand of {len(dims)} dimensions", "matrices")
        element = Quantity(lower, x).element
        if element not in (f32, f64):
            lower.refuse(f"matrices of {element}", "f32 or f64")
        flat = lower.reshape(x, [product(dims[:-2]), *dims[-2:]])
        return _Matrices(Quantity(lower, flat), dims[:-2])

    def restored(self, value: Quantity) -> SSAValue:
        """What was computed of each matrix, with all dimensions of the batch."""
        return value.reshape([*self.batch, *value.dims[1:]]).value


def _square(lower: Tf1Legalizer, name: str) -> _Matrices:
    x = number(lower, name)
    found = _Matrices.of(lower, x)
    rows, columns = found.value.dims[1:]
    if rows != columns:
        if None not in (rows.value, columns.value):
            lower.refuse(f"matrices of {rows} x {columns}", "square ones")
        square = found.value.reshape([found.value.dims[0], rows, rows])
        return _Matrices(square, found.batch)
    return found


def _fitted(value: Quantity, like: SSAValue) -> Quantity:
    """A next state with the dimensions of the first one, which name the same sizes."""
    return value.reshape(dims_of(like))


def _at(x: Quantity, axis: int, index: Expr) -> Quantity:
    """The part at one position, which stays as a dimension of one."""
    return Quantity(x.lower, x.lower.slice_axis(x.value, axis, index, 1))


# Elimination


@dataclass(frozen=True)
class _Pivot:
    """The rows with the largest remaining element of a column moved to its row."""

    rows: Quantity
    row: Quantity
    """The moved row, [batch, 1, columns]."""
    pivot: Quantity
    """[batch, 1, 1]"""
    is_moved: Quantity
    """Whether rows were exchanged, i1 [batch]."""


def _pivoted(lower: Tf1Legalizer, rows: Quantity, index: Expr) -> _Pivot:
    batch, count, _ = rows.dims
    own = Quantity.dim(lower, index)
    number_ = Quantity.iota(lower, count).reshape([1, count])
    column = _at(rows, 2, index).reshape([batch, count]).abs()
    remaining = number_.ge(own).where(column, -1.0)
    best = Quantity(lower, lower.add(ArgReduceOp("max", remaining.value, 1))).reshape([batch, 1])
    source = number_.eq(own).where(best, number_.eq(best).where(own, number_))
    source = source.broadcast([batch, count]).reshape([batch, count, 1])
    moved = Quantity(lower, lower.add(GatherNdOp(rows.value, source.value, 1)))
    row = _at(moved, 1, index)
    return _Pivot(moved, row, _at(row, 2, index), best.reshape([batch]).ne(own))


def _eliminated(lower: Tf1Legalizer, found: _Pivot, index: Expr, divisor: Quantity) -> Quantity:
    """All other rows without their part in the column."""
    count = found.rows.dims[1]
    row = found.row / divisor
    is_own = Quantity.iota(lower, count).reshape([1, count, 1]).eq(Quantity.dim(lower, index))
    return is_own.where(row, found.rows - _at(found.rows, 2, index) * row)


def _solved(lower: Tf1Legalizer, matrices: Quantity, right: Quantity) -> Quantity:
    """The solutions of systems by Gauss and Jordan, with the largest pivot of each column."""
    size, columns = matrices.dims[1], right.dims[2]
    start = concat([matrices, right], 2).value

    def step(inner: Tf1Legalizer, index: Expr, before: State) -> tuple[State, State]:
        found = _pivoted(inner, before[0], index)
        return (_fitted(_eliminated(inner, found, index, found.pivot), start),), ()

    (result,), _ = run_steps(lower, size, [start], step)
    return Quantity(lower, lower.slice_axis(result, 2, size, columns))


@legalizes("MatrixSolve", "BatchMatrixSolve")
def legalize_solve(lower: Tf1Legalizer) -> Results:
    """x of matrix x = rhs, or of its transpose."""
    matrices = _square(lower, "matrix")
    right = _Matrices.of(lower, number(lower, "rhs")).value
    left = matrices.value
    left = left.transpose([0, 2, 1]) if lower.attrs.flag("adjoint") else left
    right = right.reshape([*left.dims[:2], right.dims[2]])
    return [matrices.restored(_solved(lower, left, right))]


@legalizes("MatrixInverse", "BatchMatrixInverse")
def legalize_inverse(lower: Tf1Legalizer) -> Results:
    """The inverse of each matrix, or of its transpose."""
    matrices = _square(lower, "input")
    left = matrices.value
    left = left.transpose([0, 2, 1]) if lower.attrs.flag("adjoint") else left
    size = left.dims[1]
    rows, columns = (Quantity.iota(lower, size).column(3, axis) for axis in (1, 2))
    unit = rows.eq(columns).cast(left.element).broadcast(left.dims)
    return [matrices.restored(_solved(lower, left, unit))]


@legalizes("MatrixDeterminant", "BatchMatrixDeterminant")
def legalize_determinant(lower: Tf1Legalizer) -> Results:
    """The product of the pivots, negative if an odd number of rows were exchanged."""
    matrices = _square(lower, "input")
    (result,) = _pivots(lower, matrices.value, [1.0], lambda pivot, total: [total[0] * pivot])
    return [matrices.restored(result)]


@legalizes("LogMatrixDeterminant")
def legalize_log_determinant(lower: Tf1Legalizer) -> Results:
    """The sign of the determinant, and the logarithm of its size."""
    matrices = _square(lower, "input")

    def gathered(pivot: Quantity, total: Sequence[Quantity]) -> list[Quantity]:
        return [total[0] * apply(SignOp, pivot), total[1] + pivot.abs().log()]

    return [matrices.restored(x) for x in _pivots(lower, matrices.value, [1.0, 0.0], gathered)]


Gathered = Callable[[Quantity, Sequence[Quantity]], list[Quantity]]


def _pivots(
    lower: Tf1Legalizer, matrices: Quantity, starts: Sequence[float], gathered: Gathered
) -> list[Quantity]:
    """
    What `gathered` makes, pivot by pivot, of numbers [batch] that begin at `starts`.

    A pivot has the sign that the exchange of its row gives it.
    """
    batch, size, _ = matrices.dims
    first = [Quantity.number(lower, start, matrices.element).broadcast([batch]) for start in starts]
    states = [matrices.value, *(value.value for value in first)]

    def step(inner: Tf1Legalizer, index: Expr, before: State) -> tuple[State, State]:
        found = _pivoted(inner, before[0], index)
        pivot = found.pivot.reshape([batch])
        signed = found.is_moved.where(-pivot, pivot)
        divisor = found.pivot.ne(0).where(found.pivot, 1.0)
        after = [_eliminated(inner, found, index, divisor), *gathered(signed, before[1:])]
        return tuple(map(_fitted, after, states)), ()

    results, _ = run_steps(lower, size, states, step)
    return [Quantity(lower, result) for result in results[1:]]


# Triangles


@legalizes("Cholesky", "BatchCholesky")
def legalize_cholesky(lower: Tf1Legalizer) -> Results:
    """The lower triangles whose products with their transposes are the matrices."""
    matrices = _square(lower, "input")
    given = matrices.value
    batch, size, _ = given.dims
    start = lower.broadcast(lower.scalar(0, given.element), given.dims)

    def step(inner: Tf1Legalizer, index: Expr, before: State) -> tuple[State, State]:
        own = Quantity.dim(inner, index)
        row = _at(before[0], 1, index)
        known = (before[0] * row).reduce("sum", [2]).reshape([batch, size, 1])
        rest = _at(Quantity(inner, given.value), 2, index) - known
        column = rest / apply(SqrtOp, _at(rest, 1, index))
        rows, columns = (Quantity.iota(inner, size).column(3, axis) for axis in (1, 2))
        is_new = columns.eq(own) & rows.ge(own)
        return (_fitted(is_new.where(column, before[0]), start),), ()

    (result,), _ = run_steps(lower, size, [start], step)
    return [matrices.restored(Quantity(lower, result))]


@legalizes("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def legalize_triangular_solve(lower: Tf1Legalizer) -> Results:
    """x of matrix x = rhs, or of its transpose, where the other triangle counts as zero."""
    matrix, right = number(lower, "matrix"), number(lower, "rhs")
    batch = broadcast([dims_of(matrix)[:-2], dims_of(right)[:-2]])
    matrix, right = (
        lower.broadcast(value, [*batch, *dims_of(value)[-2:]]) for value in (matrix, right)
    )
    is_lower = lower.attrs.flag("lower")
    flat = _Matrices.of(lower, matrix).value
    place = diagonals(lower, flat.value)
    flat = (place.le(0) if is_lower else place.ge(0)).where(flat, 0)
    if lower.attrs.flag("adjoint"):
        flat, is_lower = flat.transpose([0, 2, 1]), not is_lower
    systems = _Matrices.of(lower, right)
    return [systems.restored(_substituted(lower, flat, systems.value, is_lower))]


def _substituted(
    lower: Tf1Legalizer, matrices: Quantity, right: Quantity, is_lower: bool
) -> Quantity:
    """Row by row, from the first if the matrices are lower triangles, else from the last."""
    batch, size, columns = right.dims
    start = lower.broadcast(lower.scalar(0, right.element), right.dims)
    left, given = matrices.reshape([batch, size, size]).value, right.value

    def step(inner: Tf1Legalizer, index: Expr, before: State) -> tuple[State, State]:
        own = index if is_lower else size - 1 - index
        row = _at(Quantity(inner, left), 1, own)
        known = Quantity(inner, inner.add(MatmulOp(row.value, before[0].value)))
        rest = _at(Quantity(inner, given), 1, own) - known.reshape([batch, 1, columns])
        is_own = Quantity.iota(inner, size).column(3, 1).eq(Quantity.dim(inner, own))
        return (_fitted(is_own.where(rest / _at(row, 2, own), before[0]), start),), ()

    (result,), _ = run_steps(lower, size, [start], step)
    return Quantity(lower, result)


# Bands


@legalizes("TridiagonalMatMul")
def legalize_tridiagonal_product(lower: Tf1Legalizer) -> Results:
    """The product with a matrix of three diagonals, each of which is stored as [..., 1, M]."""
    right = Quantity(lower, number(lower, "rhs"))
    rank = len(right.dims)
    size = right.dims[rank - 2]
    above, center, below = (
        Quantity(
            lower, lower.transpose(number(lower, name), [*range(rank - 2), rank - 1, rank - 2])
        )
        for name in ("superdiag", "maindiag", "subdiag")
    )
    one = [Expr.const(0)] * rank
    one[rank - 2] = Expr.const(1)
    around = lower.add(PadOp(right.value, one, one, lower.scalar(0, right.element)))
    before, after = (
        Quantity(lower, lower.slice_axis(around, rank - 2, start, size)) for start in (0, 2)
    )
    # What lies beyond the ends of the outer diagonals is not read.
    place = Quantity.iota(lower, size).reshape([size, 1])
    last = Quantity.dim(lower, size - 1)
    below = place.gt(0).where(below, 0)
    above = place.lt(last).where(above, 0)
    return [(below * before + center * right + above * after).value]
