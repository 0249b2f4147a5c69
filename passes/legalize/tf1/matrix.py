"""Bands and diagonals of matrices."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, maximum, minimum, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.generators import diagonals
from lowerdeck.passes.legalize.common.linear import cross
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("MatrixBandPart", "BatchMatrixBandPart")
def legalize_matrix_band_part(builder: Tf1Legalizer) -> Results:
    """Zero below and above a number of diagonals; a negative number keeps all."""
    x = builder.operand("input")
    below, above = (
        TensorValue.of(builder, builder.reshape(builder.operand(name), [])).cast(i64)
        for name in ("num_lower", "num_upper")
    )
    place = diagonals(builder, x)
    kept = (below.lt(0) | (-place).le(below)) & (above.lt(0) | place.le(above))
    return [builder.select(kept.value, x, builder.scalar(0, x))]


@record
class _Band:
    """The diagonals `low` to `high` (column - row) of a matrix, stored as rows of `length`."""

    builder: Tf1Legalizer
    rows: Expr
    columns: Expr
    low: int
    high: int
    length: Expr
    align: str

    def offset(self, diagonal: TensorValue) -> TensorValue:
        """How many elements of padding are before those of a diagonal."""
        above, below = self.align.split("_")
        if above == below == "LEFT":
            return diagonal * 0
        zero = TensorValue.number(self.builder, 0, i64)
        padding = TensorValue.dim(self.builder, self.length) - self.size(diagonal)
        if above == "LEFT":
            return diagonal.ge(0).where(zero, padding)
        if below == "LEFT":
            return diagonal.le(0).where(zero, padding)
        return padding

    def size(self, diagonal: TensorValue) -> TensorValue:
        """The number of elements of a diagonal."""
        rows = TensorValue.dim(self.builder, self.rows) + diagonal.minimum(0)
        return rows.minimum(TensorValue.dim(self.builder, self.columns) - diagonal.maximum(0))

    def place(self) -> tuple[TensorValue, TensorValue]:
        """For each element of the matrix, if it is in the band, and where it is stored."""
        rows, columns = (TensorValue.iota(self.builder, dim) for dim in (self.rows, self.columns))
        column = columns.column(2, 1)
        diagonal = column - rows.column(2, 0)
        inside = diagonal.ge(self.low) & diagonal.le(self.high)
        position = column - diagonal.maximum(0) + self.offset(diagonal)
        length = TensorValue.dim(self.builder, self.length)
        place = (self.high - diagonal) * length + position
        return inside, inside.where(place, TensorValue.number(self.builder, 0, i64))

    def source(self) -> tuple[TensorValue, TensorValue]:
        """For each stored element, if it is one of the matrix, and its place in C order."""
        position = TensorValue.iota(self.builder, self.length).column(2, 1)
        count = self.high - self.low + 1
        diagonal = self.high - TensorValue.iota(self.builder, count).column(2, 0)
        position = position - self.offset(diagonal)
        inside = position.ge(0) & position.lt(self.size(diagonal))
        row, column = position - diagonal.minimum(0), position + diagonal.maximum(0)
        place = row * TensorValue.dim(self.builder, self.columns) + column
        return inside, inside.where(place, TensorValue.number(self.builder, 0, i64))


def _limits(builder: Tf1Legalizer) -> tuple[int, int]:
    """The lowest and the highest diagonal; the main one where the operator has no choice."""
    if not any(argument.name == "k" for argument in builder.op.signature.inputs):
        return 0, 0
    numbers = builder.require_ints(builder.operand("k"), "diagonals")
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        builder.refuse(f"diagonals {numbers}", "one, or the lowest and the highest")
    return numbers[0], numbers[-1]


def _align(builder: Tf1Legalizer) -> str:
    if not builder.attrs.has("align"):
        return "LEFT_LEFT"
    among = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")
    return builder.attrs.string("align", among=among)


def _spread(builder: Tf1Legalizer, band: _Band, diagonal: SSAValue, other: SSAValue) -> SSAValue:
    """The matrices with the stored diagonals in the band, and elements of `other` elsewhere."""
    batch = dims_of(diagonal)[: -1 if band.low == band.high else -2]
    stored = builder.reshape(diagonal, [*batch, band.length * (band.high - band.low + 1)])
    inside, place = band.place()
    found = builder.add(GatherOp(stored, place.value, len(batch)))
    return builder.select(inside.value, found, other)


@legalizes("MatrixDiag", "BatchMatrixDiag")
def legalize_matrix_diag(builder: Tf1Legalizer) -> Results:
    diagonal = builder.operand("diagonal")
    size = dims_of(diagonal)[-1]
    band = _Band(builder, size, size, 0, 0, size, "LEFT_LEFT")
    return [_spread(builder, band, diagonal, builder.scalar(0, diagonal))]


@legalizes("MatrixDiagV2", "MatrixDiagV3")
def legalize_matrix_diag_band(builder: Tf1Legalizer) -> Results:
    """Sizes that are not given are the least that hold the diagonals, of a square if both."""
    diagonal = builder.operand("diagonal")
    low, high = _limits(builder)
    length = dims_of(diagonal)[-1]
    rows, columns = (
        builder.require_expr(builder.operand(name), "a size") for name in ("num_rows", "num_cols")
    )
    least_rows, least_columns = length - min(high, 0), length + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = maximum(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    band = _Band(builder, rows, columns, low, high, length, _align(builder))
    padding = builder.reshape(builder.operand("padding_value"), [])
    return [_spread(builder, band, diagonal, padding)]


@legalizes("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def legalize_matrix_set_diag(builder: Tf1Legalizer) -> Results:
    x, diagonal = builder.operand("input"), builder.operand("diagonal")
    low, high = _limits(builder)
    rows, columns = dims_of(x)[-2:]
    length = dims_of(diagonal)[-1]
    band = _Band(builder, rows, columns, low, high, length, _align(builder))
    return [_spread(builder, band, diagonal, x)]


@legalizes("MatrixDiagPart", "BatchMatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def legalize_matrix_diag_part(builder: Tf1Legalizer) -> Results:
    """The diagonals from the highest to the lowest, shorter ones padded."""
    x = builder.operand("input")
    low, high = _limits(builder)
    has_padding = any(argument.name == "padding_value" for argument in builder.op.signature.inputs)
    value = builder.operand("padding_value") if has_padding else builder.scalar(0, x)
    return [_diag_part(builder, x, low, high, builder.reshape(value, []))]


def _diag_part(
    builder: Tf1Legalizer, x: SSAValue, low: int, high: int, padding: SSAValue
) -> SSAValue:
    rows, columns = dims_of(x)[-2:]
    batch = dims_of(x)[:-2]
    length = minimum(rows + min(high, 0), columns - max(low, 0))
    band = _Band(builder, rows, columns, low, high, length, _align(builder))
    inside, place = band.source()
    flat = builder.reshape(x, [*batch, rows * columns])
    found = builder.add(GatherOp(flat, place.value, len(batch)))
    if not inside.is_all(True):
        found = builder.select(inside.value, found, padding)
    return builder.squeeze(found, [len(batch)]) if low == high else found


@legalizes("Cross")
def legalize_cross(builder: Tf1Legalizer) -> Results:
    """Along the last dimension."""
    a, b = (TensorValue(builder, builder.operand(name)) for name in ("a", "b"))
    return [cross(a, b, len(a.dims) - 1).value]


@legalizes("Diag")
def legalize_diag(builder: Tf1Legalizer) -> Results:
    """A tensor on the diagonal of one of twice its rank."""
    x = builder.operand("diagonal")
    size = product(dims_of(x))
    band = _Band(builder, size, size, 0, 0, size, "LEFT_LEFT")
    spread = _spread(builder, band, builder.reshape(x, [size]), builder.scalar(0, x))
    return [builder.reshape(spread, [*dims_of(x), *dims_of(x)])]


@legalizes("DiagPart")
def legalize_diag_part(builder: Tf1Legalizer) -> Results:
    """The diagonal of a tensor whose dimensions come twice."""
    x = builder.operand("input")
    dims = dims_of(x)[: rank_of(x) // 2]
    size = product(dims)
    flat = builder.reshape(x, [size, size])
    return [builder.reshape(_diag_part(builder, flat, 0, 0, builder.scalar(0, x)), dims)]
