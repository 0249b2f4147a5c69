"""`hoist-products`: products of what a loop reads slice by slice, for all iterations at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.control_flow import LoopOp
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SliceOp
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype, rank_of
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.records import record
from lowerdeck.passes.loops.loops import is_outside, trip_limits
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.machinery.values import is_precise

_MOST_BYTES = 1 << 28
"""The greatest size of the products of all iterations."""

_LEAST_SHARE = 16
"""Less than one column in so many is not worth another operand of the sum."""


@record
class Step:
    """A matrix that is slice `index` of a tensor along its first dimension."""

    source: SSAValue
    """[steps, ...], defined outside of the loop."""
    index: Expr
    dims: tuple[Expr, ...]
    """[rows, columns]"""
    ops: tuple[Operation, ...]

    @property
    def steps(self) -> Expr:
        return dims_of(self.source)[0]

    @staticmethod
    def of(value: SSAValue, loop: LoopOp) -> Step | None:
        """The slice that a value is, if it is one that depends on the iteration."""
        ops: list[Operation] = []
        dims, inner = dims_of(value), value
        while isinstance(inner.owner, ReshapeOp):
            ops.append(inner.owner)
            inner = inner.owner.input
        part = inner.owner
        if len(dims) != 2 or not isinstance(part, SliceOp) or not is_outside(part.input, loop):
            return None
        if loop.iteration is None or not part.starts.data:
            return None
        whole = zip(part.starts.data[1:], part.sizes.data[1:], dims_of(part.input)[1:], strict=True)
        if part.sizes.data[0] != 1 or any(start != 0 or size != dim for start, size, dim in whole):
            return None
        if any(step != 1 for step in part.steps.data[1:]):
            return None
        index = part.starts.data[0]
        if loop.iteration.data not in index.symbols:
            return None
        return Step(part.input, index, dims, (*ops, part))


@record
class Parts:
    """A product, divided into what comes from slices and the rest."""

    loop: LoopOp
    product: MatmulOp
    sum: AddOp | None
    """The product plus a bias, if this is all that it is used for."""
    bias: SSAValue | None
    steps: Sequence[tuple[Step, Expr]]
    """The slices, and the row of the weights where each one's begin."""
    others: Sequence[tuple[SSAValue, Expr]]


class HoistProducts(Pattern[Parts]):
    """loop { [x[k], h] @ w + b } -> y = x @ w1 + b; loop { y[k] + h @ w2 }"""

    name = "hoist-products"
    roots = (MatmulOp,)
    ranked = True

    def match(self, op: MatmulOp) -> Match[Parts] | None:
        loop = op.parent_op()
        if not isinstance(loop, LoopOp) or loop.condition is not None:
            return None
        if rank_of(op.lhs) != 2 or rank_of(op.rhs) != 2 or not is_outside(op.rhs, loop):
            return None
        if op.zeros or op.accumulator is not None or op.packing is not None:
            return None
        if not is_precise(op.result):
            return None
        parts = _divided(op, loop)
        if parts is None or not all(_pays(step, op, loop) for step, _ in parts.steps):
            return None
        consumed = [inner for step, _ in parts.steps for inner in step.ops]
        added = [] if parts.sum is None else [parts.sum]
        reason = f"{parts.steps[0][0].steps} steps at once"
        return Match((op, *added, *consumed), reason, parts)

    def rewrite(self, match: Match[Parts], rewriter: Rewriter) -> None:
        parts = match.data
        whole: SSAValue | None = None
        for step, row in parts.steps:
            part = _all_steps(step, row, parts, rewriter)
            whole = part if whole is None else _before(parts, AddOp(whole, part), rewriter)
        assert whole is not None
        if parts.bias is not None:
            whole = _before(parts, AddOp(whole, parts.bias), rewriter)
        rows, columns = dims_of(parts.product.result)
        steps, index = parts.steps[0][0].steps, parts.steps[0][0].index
        stacked = _before(parts, ReshapeOp(whole, [steps, rows, columns]), rewriter)
        own = rewriter.add(SliceOp(stacked, [index, 0, 0], [1, rows, columns]))
        result = rewriter.add(ReshapeOp(own.result, [rows, columns])).result
        if parts.others:
            result = rewriter.add(AddOp(result, _rest(parts, rewriter))).result
        rewriter.replace(parts.sum or parts.product, result)


def _divided(op: MatmulOp, loop: LoopOp) -> Parts | None:
    joined = op.lhs.owner
    values, row = [op.lhs], Expr.const(0)
    if isinstance(joined, ConcatOp) and joined.axis.data == 1 and joined.parent is op.parent:
        values = list(joined.inputs)
    steps: list[tuple[Step, Expr]] = []
    others: list[tuple[SSAValue, Expr]] = []
    for value in values:
        step = Step.of(value, loop)
        first = steps[0][0] if steps else step
        if step is not None and first is not None and _alike(step, first):
            steps.append((step, row))
        else:
            others.append((value, row))
        row = row + dims_of(value)[1]
    if not steps:
        return None
    added, bias = _bias(op, loop)
    return Parts(loop, op, added, bias, steps, others)


def _alike(one: Step, other: Step) -> bool:
    return (one.index, one.steps, one.dims[0]) == (other.index, other.steps, other.dims[0])


def _bias(op: MatmulOp, loop: LoopOp) -> tuple[AddOp | None, SSAValue | None]:
    """The op that adds a bias to a product, and the bias: one number a column."""
    use = op.result.first_use
    if not op.result.has_one_use() or use is None or not isinstance(use.operation, AddOp):
        return None, None
    added = use.operation
    bias = added.rhs if added.lhs is op.result else added.lhs
    fits = rank_of(bias) <= 1 and added.result.type == op.result.type
    if not fits or not is_outside(bias, loop) or added.parent is not op.parent:
        return None, None
    return added, bias


def _pays(step: Step, op: MatmulOp, loop: LoopOp) -> bool:
    """True if the loop comes to most of the slices, and the slices are a good part of the rows."""
    wide = constants((step.dims[1], dims_of(op.lhs)[1]))
    if wide is not None and wide[0] * _LEAST_SHARE < wide[1]:
        return False
    sizes = constants((step.steps, *dims_of(op.result)))
    if sizes is not None:
        count = math.prod(sizes) * numpy_dtype(element_type(op.result)).itemsize
        if count > _MOST_BYTES or sizes[0] < 2:
            return False
    limits = trip_limits(loop)
    most = [limit.value for limit in limits if limit.value is not None]
    if step.steps.value is None or not most:
        return step.steps in limits
    return step.steps.value <= 2 * min(most)


def _before(parts: Parts, op: Any, rewriter: Rewriter) -> SSAValue:
    """The result of an op that is inserted before the loop."""
    return rewriter.insert_before(parts.loop, op).results[0]


def _all_steps(step: Step, row: Expr, parts: Parts, rewriter: Rewriter) -> SSAValue:
    """The products of all slices, one below the other."""
    rows, columns = step.dims
    matrix = step.source
    if dims_of(matrix) != (dims := (step.steps * rows, columns)):
        matrix = _before(parts, ReshapeOp(matrix, dims), rewriter)
    weights = parts.product.rhs
    if parts.others or len(parts.steps) > 1:
        sizes = [columns, dims_of(weights)[1]]
        weights = _before(parts, SliceOp(weights, [row, 0], sizes), rewriter)
    return _before(parts, MatmulOp(matrix, weights), rewriter)


def _rest(parts: Parts, rewriter: Rewriter) -> SSAValue:
    """The product of what is not known before."""
    weights: list[SSAValue] = []
    for value, row in parts.others:
        sizes = [dims_of(value)[1], dims_of(parts.product.rhs)[1]]
        own = SliceOp(parts.product.rhs, [row, 0], sizes)
        weights.append(_before(parts, own, rewriter))
    values = [_fitted(value, parts, rewriter) for value, _ in parts.others]
    if len(values) == 1:
        return rewriter.add(MatmulOp(values[0], weights[0])).result
    joined = rewriter.add(ConcatOp(values, 1)).result
    matrix = _before(parts, ConcatOp(weights, 0), rewriter)
    return rewriter.add(MatmulOp(joined, matrix)).result


def _fitted(value: SSAValue, parts: Parts, rewriter: Rewriter) -> SSAValue:
    """A part with as many rows as the product has, of which the concatenation has made sure."""
    rows, columns = dims_of(parts.product.result)[0], dims_of(value)[1]
    if dims_of(value)[0] == rows:
        return value
    return rewriter.add(ReshapeOp(value, [rows, columns])).result


class HoistProductsPass(PatternPass):
    """
    Matrix products with a slice of the input of a loop, as one product of all slices before it.

    - loop(trip n) { x[k] @ w + b } -> y = x @ w + b; loop(trip n) { y[k] }
    - loop(trip n) { concat(x[k], h) @ w + b } -> y = x @ w1 + b; loop(trip n) { y[k] + h @ w2 }
      [w1, w2: the rows of w that meet x and h]
      [k depends on the iteration; x[k] is a whole slice along the first dimension; w and b do not
      change in the loop; n has no limit below half of the slices; f32 or f64; at least one column
      of concat(x[k], h) in 16 is of x; y has at most 256 MB]

    The weights are read once for all steps, not once a step. This is how the layers of other
    frameworks that are whole recurrent networks are legalized; here it applies to cells in loops,
    whatever their formulas are: LSTM, GRU and others. The sum of a product is made in another
    order. A loop that may not run at all has computed products that nobody reads; these cannot
    fail.
    """

    name = "hoist-products"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [HoistProducts()]
