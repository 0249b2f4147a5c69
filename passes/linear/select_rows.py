"""`select-rows`: the product of one-hot rows with a constant matrix is a choice of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import CastOp, CompareOp, MaxOp, MinOp, SelectOp
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import GatherOp, ReshapeOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    is_float,
    is_integer,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.values import Array, constant_values, number


@record
class _Rows:
    """For each row of a matrix the column that holds 1, all others 0; none if there is no such."""

    index: SSAValue
    """[..., 1]"""
    ops: tuple[Operation, ...]


def _hot(value: SSAValue) -> _Rows | None:
    """A value as rows of zeros, with a one where an index equals the number of the column."""
    made = producer(value, CastOp) or producer(value, SelectOp)
    if made is None:
        return None
    if isinstance(made, SelectOp) and (number(made.on_true), number(made.on_false)) != (1, 0):
        return None
    equal = producer(made.operands[0], CompareOp)
    if equal is None or equal.predicate.data != Predicate.EQ:
        return None
    if dims_of(equal.result) != dims_of(value):
        return None
    for index, columns in (equal.operands, equal.operands[::-1]):
        if _is_numbered(columns) and _is_index(index, value):
            return _Rows(index, (made, equal))
    return None


def _is_numbered(columns: SSAValue) -> bool:
    """True for 0, 1, ... along the last dimension, the only one."""
    if not is_integer(element_type(columns)):
        return False
    found = constant_values(columns)
    if found is None or not found[0].shape or found[0].shape[-1] != found[0].size:
        return False
    return bool((found[0].reshape(-1) == np.arange(found[0].size)).all())


def _is_index(index: SSAValue, value: SSAValue) -> bool:
    """True for one index a row."""
    dims = dims_of(index)
    return len(dims) == rank_of(value) and dims[-1] == 1 and dims[:-1] == dims_of(value)[:-1]


def _selects_exactly(weight: SSAValue) -> bool:
    """
    True for a constant matrix whose products with 0 are 0, and of whose sums with zeros the sign of
    a zero cannot tell.
    """
    owner = weight.owner
    if not isinstance(owner, ConstantOp) or rank_of(weight) != 2:
        return False
    try:
        array: Array = owner.array
    except ElidedBlobError:
        return False
    return bool(np.isfinite(array).all() and not (np.signbit(array) & (array == 0)).any())


class SelectRows(Pattern[_Rows]):
    """(i == [0, 1, ...]) @ w -> 0 <= i < n ? gather(w, i) : 0"""

    name = "select-rows"
    roots = (MatmulOp,)
    ranked = True

    def match(self, op: MatmulOp) -> Match[_Rows] | None:
        if not op.is_uniform or op.zero_points or not is_float(element_type(op.result)):
            return None
        rows = _hot(op.lhs)
        if rows is None or not _selects_exactly(op.rhs):
            return None
        return Match((op, *rows.ops), "rows with a single one", rows)

    def rewrite(self, match: Match[_Rows], rewriter: Rewriter) -> None:
        op, add = match.root, rewriter.add
        assert isinstance(op, MatmulOp)
        index = match.data.index
        count = dims_of(op.rhs)[0].value
        assert count is not None

        def constant(value: int) -> SSAValue:
            return add(ConstantOp.of(np.array(value, numpy_dtype(element_type(index))))).result

        inside = add(MaxOp(add(MinOp(index, constant(count - 1))).result, constant(0))).result
        flat = add(ReshapeOp(inside, dims_of(index)[:-1])).result
        rows = add(GatherOp(op.rhs, flat, 0, inside=True)).result
        is_inside = add(CompareOp(Predicate.EQ, inside, index)).result
        zero = add(ConstantOp.of(np.array(0, numpy_dtype(element_type(op.result))))).result
        rewriter.replace(op, add(SelectOp(is_inside, rows, zero)).results)


class SelectRowsPass(PatternPass):
    """
    With an integer i for each row:

    - cast(i == [0, 1, ..., n - 1]) @ w -> 0 <= i < n ? gather(w, i) : 0
    - (i == [0, 1, ..., n - 1] ? 1 : 0) @ w -> the same
      [w a constant matrix of n rows, finite and without -0: then the sum has one term, exactly]

    What is an embedding becomes one, which needs no multiplications.
    """

    name = "select-rows"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [SelectRows()]
