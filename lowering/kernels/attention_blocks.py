"""
Attention for blocks of queries: what belongs to one block stays in the first cache.

Queries are the lanes from the scores to their weights, so that the sums and maxima over keys need
nothing across lanes; then the columns of the values are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.types import dims_of, f32
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.lowering.kernels import scalars
from lowerdeck.lowering.kernels.convolution import PART, sum_in_parts
from lowerdeck.lowering.kernels.lower import KernelLowering, unravel
from lowerdeck.lowering.schedule.parameters import MIN_LANES, Schedule

Step = Callable[[Expr, Sequence[SSAValue]], Sequence[SSAValue]]

KEY, LANE, QUERY, COLUMN = "s", "t", "q", "e"
"""The labels of the loops over keys and queries for the scores, where queries are lanes, and over
queries and columns for the results."""


def lower_blocked_attention(k: KernelLowering, op: AttentionOp, schedule: Schedule) -> None:
    """All whole blocks of queries, then what remains in a smaller one."""
    queries = dims_of(op.query)[-3].value
    assert queries is not None
    lanes = dict(schedule.lanes)[LANE]
    width = dict(schedule.tiles)[LANE] * lanes
    whole, rest = divmod(queries, width)
    if whole:
        _Blocks(k, op, 0, whole, width, width).lower()
    if rest:
        _Blocks(k, op, whole * width, 1, _narrow(rest, lanes), rest).lower()


def _narrow(queries: int, lanes: int) -> int:
    """Queries with those that fill up vectors."""
    while lanes > MIN_LANES and queries <= lanes // 2:
        lanes //= 2
    return -(-queries // lanes) * lanes


@dataclass
class _Blocks:
    """`count` blocks of queries from `first` on: of `width` lanes, of which `size` are queries."""

    k: KernelLowering
    op: AttentionOp
    first: int
    count: int
    width: int
    size: int

    def lower(self) -> None:
        """One loop over the blocks of all heads, so that threads share them evenly."""
        *batch, _, heads, depth = dims_of(self.op.query)
        sizes = [*batch, heads, Expr.const(self.count)]
        b = self.k.builder
        with b.labeled_nest([("block", product(sizes))], parallel=True) as (block,):
            *self._outer, self._head, number = unravel(block, sizes)
            self._start = self.first + number * self.width
            keys = dims_of(self.op.key)[-3]
            self._queries = b.scratch(f32, [depth, self.width])
            self._weights = b.scratch(f32, [keys, self.width])
            self._factors = b.scratch(f32, [self.width])
            self._gather_queries(depth)
            if self._mask_is_gathered():
                self._gather_mask(keys)
            self._score(keys, depth)
            self._weigh(keys)
            self._add_up(keys)

    def _gather_queries(self, depth: Expr) -> None:
        """Scaled, one component after the other; zeros in lanes without a query."""
        b = self.k.builder
        scale = b.floating(self.op.scale.value.data, f32)
        with b.loop(self.size) as query, b.loop(depth) as i:
            at = [*self._outer, self._start + query, self._head, i]
            value = scalars.mul(b, self.k.element(self.op.query, at), scale)
            b.store(value, self._queries, [i, query])
        if self.width > self.size:
            zero = b.floating(0.0, f32)
            with b.loop(depth) as i, b.loop(self.width, self.size) as lane:
                b.store(zero, self._queries, [i, lane])

    def _mask_is_gathered(self) -> bool:
        """True if the mask differs between queries, whose elements do not lie side by side."""
        mask = self.op.mask
        if mask is None:
            return False
        dims = dims_of(mask)
        return len(dims) > 1 and dims[-2] != 1 and self.k.layout_of(mask).inner(len(dims) - 2) == 1

    def _gather_mask(self, keys: Expr) -> None:
        """To where the scores come."""
        b = self.k.builder
        with b.loop(self.size) as query, b.loop(keys) as key:
            b.store(self._mask(query, key), self._weights, [key, query])
        if self.width > self.size:
            zero = b.floating(0.0, f32)
            with b.loop(keys) as key, b.loop(self.width, self.size) as lane:
                b.store(zero, self._weights, [key, lane])

    def _mask(self, query: Expr, key: Expr) -> SSAValue:
        assert self.op.mask is not None
        at = [*self._outer, self._head, self._start + query, key]
        return self.k.operand(self.op.mask, at, self.op.score_dims)

    def _score(self, keys: Expr, depth: Expr) -> None:
        """The scaled and masked products of keys with queries."""
        b = self.k.builder
        with b.labeled_nest([(KEY, keys), (LANE, self.width)]) as (key, lane):
            zero = b.floating(0.0, f32)

            def add_product(i: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
                factor = self.k.element(self.op.key, [*self._outer, key, self._head, i])
                return [b.fma(factor, b.load(self._queries, [i, lane]), values[0])]

            score = b.carry(depth, [zero], add_product)[0]
            if self._mask_is_gathered():
                score = scalars.add(b, score, b.load(self._weights, [key, lane]))
            elif self.op.mask is not None:
                score = scalars.add(b, score, self._mask(lane, key))
            b.store(score, self._weights, [key, lane])

    def _weigh(self, keys: Expr) -> None:
        """exp(score - maximum) in place of scores, and one by their sum for each query."""
        b, weights = self.k.builder, self._weights
        with b.labeled_nest([(LANE, self.width)]) as (lane,):
            top = b.carry(
                keys,
                [scalars.lowest(b, f32)],
                lambda key, v: [scalars.maximum(b, v[0], b.load(weights, [key, lane]), f32)],
            )[0]

            def add_weight(key: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
                weight = b.add(math.ExpOp(scalars.sub(b, b.load(weights, [key, lane]), top)))
                b.store(weight, weights, [key, lane])
                return [scalars.add(b, values[0], weight)]

            total = self._sum(keys, add_weight)
            one = b.floating(1.0, f32)
            b.store(b.add(arith.DivfOp(one, total)), self._factors, [lane])

    def _add_up(self, keys: Expr) -> None:
        """The weighted sums of values."""
        b = self.k.builder
        columns = dims_of(self.op.result)[-1]
        with b.labeled_nest([(QUERY, self.size), (COLUMN, columns)]) as (query, column):

            def add_value(key: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
                value = self.k.element(self.op.value, [*self._outer, key, self._head, column])
                return [b.fma(b.load(self._weights, [key, query]), value, values[0])]

            total = scalars.mul(b, self._sum(keys, add_value), b.load(self._factors, [query]))
            at = [*self._outer, self._start + query, self._head, column]
            self.k.finish(self.op, at, total)

    def _sum(self, keys: Expr, add: Step) -> SSAValue:
        """What a step makes of zero over all keys."""
        b = self.k.builder
        count = keys.value
        assert count is not None
        return sum_in_parts(
            b,
            count,
            PART,
            b.floating(0.0, f32),
            lambda first, number, start: b.carry(
                number, [start], lambda i, values: add(first + i, values)
            )[0],
        )
