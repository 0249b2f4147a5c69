"""Logarithms of sums, as legalization and exporters spell them."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.passes.machinery.driver import producer
from lowerdeck.passes.machinery.values import number

Found: TypeAlias = "tuple[SSAValue, list[Operation]]"
"""What a function is of, and its ops."""


def log1p_of(value: SSAValue) -> SSAValue | None:
    """y if a value is log(1 + y) in the form that loses no digits."""
    select = producer(value, e.SelectOp)
    compare = None if select is None else producer(select.condition, e.CompareOp)
    if select is None or compare is None or number(compare.rhs) != 1:
        return None
    total = producer(compare.lhs, e.AddOp)
    if total is None or number(total.rhs) != 1 or compare.predicate.data != "eq":
        return None
    y = total.lhs
    rest = producer(select.on_false, e.SelectOp)
    if select.on_true is not y or rest is None or not _is_exact(rest.on_true, y, total.result):
        return None
    return y if _is_log(rest.on_false, total.result) else None


def _is_exact(value: SSAValue, y: SSAValue, total: SSAValue) -> bool:
    """True for log(total) * (y / (total - 1))."""
    product = producer(value, e.MulOp)
    quotient = None if product is None else producer(product.rhs, e.DivOp)
    if product is None or quotient is None or not _is_log(product.lhs, total):
        return False
    lost = producer(quotient.rhs, e.SubOp)
    return quotient.lhs is y and lost is not None and lost.lhs is total and number(lost.rhs) == 1


def _is_log(value: SSAValue, of: SSAValue) -> bool:
    log = producer(value, e.LogOp)
    return log is not None and log.input is of


def softplus_of(value: SSAValue) -> Found | None:
    """x if a value is log(1 + exp(x)), or that only below a limit of 20 or more, and else x."""
    op = value.owner
    if isinstance(op, e.AddOp) and (found := _stable_softplus(op)) is not None:
        return found
    if (power := _log1p(value)) is not None:
        exp = producer(power[0], e.ExpOp)
        return None if exp is None else (exp.input, [*power[1], exp])
    if not isinstance(op, e.SelectOp) or (inner := softplus_of(op.on_false)) is None:
        return None
    x, limit = inner[0], producer(op.condition, e.CompareOp)
    if limit is None or limit.predicate.data != "gt" or not (limit.lhs is x is op.on_true):
        return None
    threshold = number(limit.rhs)
    return None if threshold is None or threshold < 20 else (x, [op, limit, *inner[1]])


def _log1p(value: SSAValue) -> Found | None:
    if (y := log1p_of(value)) is not None:
        assert isinstance(value.owner, Operation)
        return y, [value.owner]
    log = producer(value, e.LogOp)
    total = None if log is None else producer(log.input, e.AddOp)
    if log is None or total is None:
        return None
    for y, one in (total.operands, total.operands[::-1]):
        if number(one) == 1 and y.type == value.type:
            return y, [log, total]
    return None


def _stable_softplus(op: e.AddOp) -> Found | None:
    """x if an op is max(x, 0) + log(1 + exp(-|x|))."""
    for first, second in (op.operands, op.operands[::-1]):
        positive, rest = producer(first, e.MaxOp), _log1p(second)
        if positive is None or rest is None or number(positive.rhs) != 0:
            continue
        exp = producer(rest[0], e.ExpOp)
        negation = None if exp is None else producer(exp.input, e.NegOp)
        size = None if negation is None else producer(negation.input, e.AbsOp)
        if exp is None or negation is None or size is None or size.input is not positive.lhs:
            continue
        if size.input.type == op.result.type:
            return size.input, [op, positive, *rest[1], exp, negation, size]
    return None
