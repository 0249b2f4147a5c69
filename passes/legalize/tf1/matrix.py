"""Bands and diagonals of matrices."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, maximum, minimum, product
from lowerdeck.passes.legalize.generators import diagonals
from lowerdeck.passes.legalize.quantity import Quantity, stack
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("MatrixBandPart", "BatchMatrixBandPart")
def legalize_matrix_band_part(lower: Tf1Legalizer) -> Results:
    """Zero below and above a number of diagonals; a negative number keeps all."""
    x = lower.operand("input")
    below, above = (
        Quantity.of(lower, lower.reshape(lower.operand(name), [])).cast(i64)
        for name in ("num_lower", "num_upper")
    )
    place = diagonals(lower, x)
    kept = (below.lt(0) | (-place).le(below)) & (above.lt(0) | place.le(above))
    return [lower.select(kept.value, x, lower.scalar(0, x))]


@dataclass(frozen=True)
class _Band:
    """The diagonals `low` to `high` (column - row) of a matrix, stored as rows of `length`."""

    lower: Tf1Legalizer
    rows: Expr
    columns: Expr
    low: int
    high: int
    length: Expr
    align: str

    def offset(self, diagonal: Quantity) -> Quantity:
        """How many elements of padding are before those of a diagonal."""
        above, below = self.align.split("_")
        if above == below == "LEFT":
            return diagonal * 0
        zero = Quantity.number(self.lower, 0, i64)
        padding = Quantity.dim(self.lower, self.length) - self.size(diagonal)
        if above == "LEFT":
            return diagonal.ge(0).where(zero, padding)
        if below == "LEFT":
            return diagonal.le(0).where(zero, padding)
        return padding

    def size(self, diagonal: Quantity) -> Quantity:
        """The number of elements of a diagonal."""
        rows = Quantity.dim(self.lower, self.rows) + diagonal.minimum(0)
        return rows.minimum(Quantity.dim(self.lower, self.columns) - diagonal.maximum(0))

    def place(self) -> tuple[Quantity, Quantity]:
        """For each element of the matrix, if it is in the band, and where it is stored."""
        rows, columns = (Quantity.iota(self.lower, dim) for dim in (self.rows, self.columns))
        column = columns.column(2, 1)
        diagonal = column - rows.column(2, 0)
        inside = diagonal.ge(self.low) & diagonal.le(self.high)
        position = column - diagonal.maximum(0) + self.offset(diagonal)
        length = Quantity.dim(self.lower, self.length)
        place = (self.high - diagonal) * length + position
        return inside, inside.where(place, Quantity.number(self.lower, 0, i64))

    def source(self) -> tuple[Quantity, Quantity]:
        """For each stored element, if it is one of the matrix, and its place in C order."""
        position = Quantity.iota(self.lower, self.length).column(2, 1)
        count = self.high - self.low + 1
        diagonal = self.high - Quantity.iota(self.lower, count).column(2, 0)
        position = position - self.offset(diagonal)
        inside = position.ge(0) & position.lt(self.size(diagonal))
        row, column = position - diagonal.minimum(0), position + diagonal.maximum(0)
        place = row * Quantity.dim(self.lower, self.columns) + column
        return inside, inside.where(place, Quantity.number(self.lower, 0, i64))


def _limits(lower: Tf1Legalizer) -> tuple[int, int]:
    """The lowest and the highest diagonal; the main one where the operator has no choice."""
    if not any(argument.name == "k" for argument in lower.op.signature.inputs):
        return 0, 0
    numbers = lower.require_ints(lower.operand("k"), "diagonals")
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        lower.refuse(f"diagonals {numbers}", "one, or the lowest and the highest")
    return numbers[0], numbers[-1]


def _align(lower: Tf1Legalizer) -> str:
    if not lower.attrs.has("align"):
        return "LEFT_LEFT"
    among = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")
    return lower.attrs.string("align", among=among)


def _spread(lower: Tf1Legalizer, band: _Band, diagonal: SSAValue, other: SSAValue) -> SSAValue:
    """The matrices with the stored diagonals in the band, and elements of `other` elsewhere."""
    batch = dims_of(diagonal)[: -1 if band.low == band.high else -2]
    stored = lower.reshape(diagonal, [*batch, band.length * (band.high - band.low + 1)])
    inside, place = band.place()
    found = lower.add(GatherOp(stored, place.value, len(batch)))
    return lower.select(inside.value, found, other)


@legalizes("MatrixDiag", "BatchMatrixDiag")
def legalize_matrix_diag(lower: Tf1Legalizer) -> Results:
    diagonal = lower.operand("diagonal")
    size = dims_of(diagonal)[-1]
    band = _Band(lower, size, size, 0, 0, size, "LEFT_LEFT")
    return [_spread(lower, band, diagonal, lower.scalar(0, diagonal))]


@legalizes("MatrixDiagV2", "MatrixDiagV3")
def legalize_matrix_diag_band(lower: Tf1Legalizer) -> Results:
    """Sizes that are not given are the least that hold the diagonals, of a square if both."""
    diagonal = lower.operand("diagonal")
    low, high = _limits(lower)
    length = dims_of(diagonal)[-1]
    rows, columns = (
        lower.require_expr(lower.operand(name), "a size") for name in ("num_rows", "num_cols")
    )
    least_rows, least_columns = length - min(high, 0), length + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = maximum(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    band = _Band(lower, rows, columns, low, high, length, _align(lower))
    padding = lower.reshape(lower.operand("padding_value"), [])
    return [_spread(lower, band, diagonal, padding)]


@legalizes("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def legalize_matrix_set_diag(lower: Tf1Legalizer) -> Results:
    x, diagonal = lower.operand("input"), lower.operand("diagonal")
    low, high = _limits(lower)
    rows, columns = dims_of(x)[-2:]
    length = dims_of(diagonal)[-1]
    band = _Band(lower, rows, columns, low, high, length, _align(lower))
    return [_spread(lower, band, diagonal, x)]


@legalizes("MatrixDiagPart", "BatchMatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def legalize_matrix_diag_part(lower: Tf1Legalizer) -> Results:
    """The diagonals from the highest to the lowest, shorter ones padded."""
    x = lower.operand("input")
    low, high = _limits(lower)
    has_padding = any(argument.name == "padding_value" for argument in lower.op.signature.inputs)
    value = lower.operand("padding_value") if has_padding else lower.scalar(0, x)
    return [_diag_part(lower, x, low, high, lower.reshape(value, []))]


def _diag_part(
    lower: Tf1Legalizer, x: SSAValue, low: int, high: int, padding: SSAValue
) -> SSAValue:
    rows, columns = dims_of(x)[-2:]
    batch = dims_of(x)[:-2]
    length = minimum(rows + min(high, 0), columns - max(low, 0))
    band = _Band(lower, rows, columns, low, high, length, _align(lower))
    inside, place = band.source()
    flat = lower.reshape(x, [*batch, rows * columns])
    found = lower.add(GatherOp(flat, place.value, len(batch)))
    if not inside.is_all(True):
        found = lower.select(inside.value, found, padding)
    return lower.squeeze(found, [len(batch)]) if low == high else found


@legalizes("Cross")
def legalize_cross(lower: Tf1Legalizer) -> Results:
    """a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0 along the last dimension, which is three."""
    a, b = (Quantity(lower, lower.operand(name)) for name in ("a", "b"))
    axis = len(a.dims) - 1
    left, right = ([value.pick(axis, k) for k in range(3)] for value in (a, b))
    parts = [left[k] * right[m] - left[m] * right[k] for k, m in ((1, 2), (2, 0), (0, 1))]
    return [stack(parts, axis).value]


@legalizes("Diag")
def legalize_diag(lower: Tf1Legalizer) -> Results:
    """A tensor on the diagonal of one of twice its rank."""
    x = lower.operand("diagonal")
    size = product(dims_of(x))
    band = _Band(lower, size, size, 0, 0, size, "LEFT_LEFT")
    spread = _spread(lower, band, lower.reshape(x, [size]), lower.scalar(0, x))
    return [lower.reshape(spread, [*dims_of(x), *dims_of(x)])]


@legalizes("DiagPart")
def legalize_diag_part(lower: Tf1Legalizer) -> Results:
    """The diagonal of a tensor whose dimensions come twice."""
    x = lower.operand("input")
    dims = dims_of(x)[: rank_of(x) // 2]
    size = product(dims)
    flat = lower.reshape(x, [size, size])
    return [lower.reshape(_diag_part(lower, flat, 0, 0, lower.scalar(0, x)), dims)]
