"""`fuse-softmax`: a softmax spelled by its steps becomes one op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.elementwise import DivOp, ExpOp, FloatUnaryOp, LogOp, SubOp
from lowerdeck.dialects.core.enums import ReduceKind
from lowerdeck.dialects.core.reduce import ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.equation import Equation, Rule
from lowerdeck.passes.machinery.values import is_precise


@record
class Shifted:
    """x - max(x) along an axis."""

    input: SSAValue
    axis: int
    consumed: tuple[Operation, ...]


def _reduced(value: SSAValue, kind: ReduceKind) -> ReduceOp | None:
    """The reduction that a value is, along one axis, which is kept as a one."""
    op = producer(value, ReduceOp)
    if op is None or op.kind.data != kind or not op.keep_dims.value.data:
        return None
    return op if len(ints(op.axes)) == 1 else None


def _shifted(value: SSAValue) -> Shifted | None:
    sub = producer(value, SubOp)
    most = _reduced(sub.rhs, ReduceKind.MAX) if sub is not None else None
    if sub is None or most is None or most.input is not sub.lhs:
        return None
    return Shifted(sub.lhs, ints(most.axes)[0], (sub, most))


def _sum_of_exponentials(value: SSAValue) -> tuple[Shifted, FloatUnaryOp, ReduceOp] | None:
    """The parts of a value that is sum(exp(x - max(x))), all along one axis."""
    total = _reduced(value, ReduceKind.SUM)
    exp: FloatUnaryOp | None = producer(total.input, ExpOp) if total is not None else None
    shifted = _shifted(exp.input) if exp is not None else None
    if total is None or exp is None or shifted is None or ints(total.axes) != [shifted.axis]:
        return None
    return shifted, exp, total


class SoftmaxByExp(Pattern[Shifted]):
    """exp(d) / sum(exp(d)) -> softmax(x) [d = x - max(x)]"""

    name = "softmax-by-exp"
    roots = (DivOp,)
    ranked = True

    def match(self, op: DivOp) -> Match[Shifted] | None:
        found = _sum_of_exponentials(op.rhs) if is_precise(op.result) else None
        if found is None or op.lhs is not found[1].result:
            return None
        shifted, exp, total = found
        return Match((op, total, exp, *shifted.consumed), "its definition", shifted)

    def rewrite(self, match: Match[Shifted], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, SoftmaxOp(match.data.input, match.data.axis))


class LogSoftmaxByExp(Pattern[Shifted]):
    """d - log(sum(exp(d))) -> log_softmax(x) [d = x - max(x)]"""

    name = "log-softmax-by-exp"
    roots = (SubOp,)
    ranked = True

    def match(self, op: SubOp) -> Match[Shifted] | None:
        log: FloatUnaryOp | None = producer(op.rhs, LogOp) if is_precise(op.result) else None
        found = _sum_of_exponentials(log.input) if log is not None else None
        if log is None or found is None or op.lhs is not found[1].input:
            return None
        shifted, exp, total = found
        return Match((op, log, total, exp, *shifted.consumed), "its definition", shifted)

    def rewrite(self, match: Match[Shifted], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, SoftmaxOp(match.data.input, match.data.axis, log=True))


class DropMaximum(Equation):
    """softmax(x - max(x)) -> softmax(x), which subtracts the maximum itself"""

    name = "drop-maximum"
    roots = (SoftmaxOp,)

    def rule(self, op: SoftmaxOp) -> Rule | None:
        shifted = _shifted(op.input) if is_precise(op.result) else None
        if shifted is None or shifted.axis != op.axis.data:
            return None
        x, axis, is_log = shifted.input, shifted.axis, op.is_log
        text = "the maximum is subtracted anyway"
        return text, lambda: SoftmaxOp(x, axis, log=is_log), shifted.consumed


class FuseSoftmaxPass(PatternPass):
    """
    Softmax as it is written where no operator is at hand, as one op.

    With d = x - max(x), where maximum and sum are taken along one axis, which is kept as a one:

    - exp(d) / sum(exp(d)) -> softmax(x)
    - d - log(sum(exp(d))) -> log_softmax(x)
    - softmax(d) -> softmax(x); log_softmax(d) -> log_softmax(x)

    [f32 or f64]. The op takes the same steps, so NaN and infinities come out the same; only its sum
    may be in another order. exp(x) / sum(exp(x)), which overflows, stays as it is: the op does not.
    """

    name = "fuse-softmax"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [SoftmaxByExp(), LogSoftmaxByExp(), DropMaximum()]
