"""Factors of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import f64
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.linear import matmul
from lowerdeck.passes.legalize.common.promotion import wide_type
from lowerdeck.passes.legalize.common.recurrent import State, run_steps
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

_SWEEPS = 8
_MOST_SIDE = 12


def swapped(builder: CoreBuilder, x: SSAValue) -> SSAValue:
    """Matrices, or stacks of them, transposed; a vector as it is."""
    rank = len(TensorValue.of(builder, x).dims)
    return x if rank < 2 else builder.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def singular_values(builder: Legalizer, x: TensorValue) -> TensorValue:
    """
    The singular values of matrices in descending order, f64: roots of the eigenvalues of the
    smaller product with the transpose, by Jacobi's rotations (Golub, Van Loan, Matrix
    Computations).
    """
    rows, columns = (dim.value for dim in x.dims[-2:])
    if rows is None or columns is None or min(rows, columns) > _MOST_SIDE:
        builder.refuse(f"matrices of {x.dims[-2]} by {x.dims[-1]}", f"up to {_MOST_SIDE} by any")
    x = x.cast(f64)
    other = swapped(builder, x.value)
    pair = (x.value, other) if rows <= columns else (other, x.value)
    size, rank = min(rows, columns), len(x.dims)

    def sweep(inner: CoreBuilder, number: Expr, state: State) -> tuple[State, State]:
        del inner, number
        entries = {
            (p, q): state[0].pick(rank - 2, p).pick(rank - 2, q)
            for p in range(size)
            for q in range(p, size)
        }
        for p in range(size):
            for q in range(p + 1, size):
                _rotate(entries, p, q, size)
        lines = [
            stack([entries[min(p, q), max(p, q)] for q in range(size)], rank - 2)
            for p in range(size)
        ]
        return (stack(lines, rank - 2),), ()

    (found,), _ = run_steps(builder, Expr.const(_SWEEPS), [matmul(builder, *pair)], sweep)
    last = TensorValue(builder, found)
    line = [last.pick(rank - 2, k).pick(rank - 2, k) for k in range(size)]
    values = apply(SqrtOp, stack(line, rank - 2).maximum(0)).value
    return TensorValue(builder, builder.insert(TopKOp(values, size, rank - 2))[0])


def matrix_norm(
    builder: Legalizer, x: TensorValue, axes: Sequence[int], order: float | str | None, keep: bool
) -> SSAValue:
    """
    Norms of matrices: the largest or smallest sum (1, -1, inf, -inf) or singular value (2, -2), or
    the sum of these (nuc); 0 for matrices without elements.
    """
    rank, element = len(x.dims), x.element
    if any(x.dims[axis] == 0 for axis in axes):
        return x.reduce("sum", axes, keep).value
    if order in (2, -2, "nuc") and sorted(axes) == [rank - 2, rank - 1]:
        kind = {"nuc": "sum", 2: "max"}.get(order, "min")
        found = singular_values(builder, x).cast(element).reduce(kind, [rank - 2])
        return found.reshape([*found.dims, 1, 1]).value if keep else found.value
    if order not in (1, -1, math.inf, -math.inf) or len(axes) != 2:
        builder.refuse(f"the norm {order} of a matrix", "fro, 1, -1, 2, -2, inf or -inf")
    summed, other = axes if abs(order) == 1 else axes[::-1]
    total = x.abs().cast(wide_type(element)).reduce("sum", [summed], True)
    total = total.reduce("max" if order > 0 else "min", [other], True).cast(element)
    return total.value if keep else builder.squeeze(total.value, axes)


def _rotate(entries: dict[tuple[int, int], TensorValue], p: int, q: int, size: int) -> None:
    """Make one element of a symmetric matrix zero."""

    def at(i: int, j: int) -> tuple[int, int]:
        return min(i, j), max(i, j)

    app, aqq, apq = entries[p, p], entries[q, q], entries[p, q]
    is_zero = apq.eq(0)
    half = (aqq - app) / (is_zero.where(apq * 0 + 1, apq) * 2)
    tangent = 1 / (half.abs() + apply(SqrtOp, half * half + 1))
    tangent = is_zero.where(apq * 0, half.lt(0).where(-tangent, tangent))
    cosine = 1 / apply(SqrtOp, tangent * tangent + 1)
    sine = tangent * cosine
    entries[p, p], entries[q, q] = app - tangent * apq, aqq + tangent * apq
    entries[p, q] = apq * 0
    for k in range(size):
        if k not in (p, q):
            one, two = entries[at(k, p)], entries[at(k, q)]
            entries[at(k, p)] = one * cosine - two * sine
            entries[at(k, q)] = one * sine + two * cosine
