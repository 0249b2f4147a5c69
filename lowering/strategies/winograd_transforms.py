"""
Winograd's transforms of a tile, with few operations on scalars or lanes: of f32, or of integers by
matrices of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import is_integer
from lowerdeck.dialects.core.winograd import Matrix
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.builder import KernelBuilder


def linear_map(
    b: KernelBuilder,
    matrix: Matrix,
    values: Sequence[SSAValue],
    starts: Sequence[SSAValue | None] | None = None,
) -> list[SSAValue]:
    """
    A constant matrix times values, plus an initial value for each sum, with few operations.

    Two columns that differ only in signs are replaced by a sum and a difference; two rows that
    differ only in the signs of some columns are the sum and the difference of two parts.
    """
    rows = [dict((k, c) for k, c in enumerate(row) if c) for row in matrix]
    starts = starts or [None] * len(rows)
    terms = list(values)
    for i in range(len(values)):
        for j in range(i):
            _join_columns(b, rows, terms, j, i)
    results: dict[int, SSAValue] = {}
    for i in range(len(rows)):
        for j in range(i):
            if i in results or j in results or starts[i] is not starts[j]:
                continue
            if (split := _even_and_odd(rows[j], rows[i])) is None:
                continue
            even, odd, factor = split
            same, other = _combine(b, even, terms, starts[i]), _combine(b, odd, terms)
            results[j] = _add_scaled(b, same, other, factor)
            results[i] = _add_scaled(b, same, other, -factor)
    return [
        results[k] if k in results else _combine(b, row, terms, starts[k])
        for k, row in enumerate(rows)
    ]


Row = dict[int, Fraction]
"""The nonzero coefficients of a linear combination."""


def _join_columns(b: KernelBuilder, rows: list[Row], terms: list[SSAValue], i: int, j: int) -> None:
    """Replace terms i and j by their sum and difference, if no row uses them otherwise."""
    pairs = [(row.get(i), row.get(j)) for row in rows]
    used = [(x, y) for x, y in pairs if x is not None or y is not None]
    if len(used) < 2 or any(x is None or y is None or abs(x) != abs(y) for x, y in used):
        return
    first, second = terms[i], terms[j]
    terms[i], terms[j] = scalars.add(b, first, second), scalars.sub(b, first, second)
    for row in rows:
        if i in row:
            coefficient, other = row.pop(i), row.pop(j)
            row[i if coefficient == other else j] = coefficient


def _even_and_odd(first: Row, second: Row) -> tuple[Row, Row, Fraction] | None:
    """E, O and f with rows E + f O and E - f O; None if they have no two such parts."""
    if first.keys() != second.keys():
        return None
    even = {k: c for k, c in first.items() if second[k] == c}
    odd = {k: c for k, c in first.items() if second[k] == -c}
    if not odd or len(even) + len(odd) < max(len(first), 3):
        return None
    factor = odd[max(odd)]
    return even, {k: c / factor for k, c in odd.items()}, factor


def _combine(
    b: KernelBuilder, row: Row, terms: Sequence[SSAValue], start: SSAValue | None = None
) -> SSAValue:
    """A linear combination; it begins with a term that needs no multiplication, if there is one."""
    order = sorted(row, key=lambda k: (row[k] != 1, -k))
    total = start
    for k in order:
        if total is None:
            total = terms[k] if row[k] == 1 else _scaled(b, terms[k], row[k])
        else:
            total = _add_scaled(b, total, terms[k], row[k])
    return scalars.constant(b, 0, terms[0].type) if total is None else total


def _scaled(b: KernelBuilder, value: SSAValue, factor: Fraction) -> SSAValue:
    return scalars.mul(b, value, scalars.constant(b, float(factor), value.type))


def _add_scaled(b: KernelBuilder, total: SSAValue, value: SSAValue, factor: Fraction) -> SSAValue:
    if factor == 1:
        return scalars.add(b, total, value)
    if factor == -1:
        return scalars.sub(b, total, value)
    if is_integer(value.type) and factor < 0:
        return scalars.sub(b, total, _scaled(b, value, -factor))
    return scalars.multiply_add(b, value, scalars.constant(b, float(factor), value.type), total)


def transform(
    b: KernelBuilder,
    matrix: Matrix,
    tile: Sequence[Sequence[SSAValue]],
    constant: SSAValue | None = None,
) -> list[list[SSAValue]]:
    """
    matrix tile matrix^T, plus a constant for each element.

    A sum that begins with a multiplication adds the constant at no cost. If a column belongs to one
    row alone, the constant is added to the column: one addition for all rows instead of one each.
    """
    own = _own_columns(matrix)
    columns = [
        linear_map(b, matrix, column, [constant if k in own.values() else None] * len(matrix))
        for k, column in enumerate(zip(*tile, strict=True))
    ]
    starts = [None if row in own else constant for row in range(len(matrix))]
    return [linear_map(b, matrix, row, starts) for row in zip(*columns, strict=True)]


def _own_columns(matrix: Matrix) -> dict[int, int]:
    """Rows with a column that no other row uses, with the coefficient one."""
    columns = enumerate(zip(*matrix, strict=True))
    return {
        column.index(1): k for k, column in columns if 1 in column and sum(map(bool, column)) == 1
    }
