"""
Attention for blocks of queries: the data of one block stays in the L1 cache.

Queries are the lanes from the scores to their weights, so that the sums and maxima over keys need
no cross-lane operations; then the columns of the values are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log2, prod

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.vector import DotHalvesOp, PairHalvesOp
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.index_maps import unravel
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i1, i32
from lowerdeck.dialects.dims import Expr, ExprLike, minimum, product
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.attention import kept, weight_of
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.sums import PART, sum_in_parts
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    assumed_size,
    is_constant,
    item_bytes,
    the,
)
from lowerdeck.lowering.strategies.matrix_tiles import vectors_of
from lowerdeck.lowering.strategies.tiled_matmul import product_tiles
from lowerdeck.lowering.targets.base import FEWEST_LANES, Target

CHUNK, TERMS, HALVES = "chunk", "terms", "halves"
"""
Parameters of a schedule: if only the scores of some keys are kept, their number; if queries are
alone, or may be, the lanes of the sums for each of them; if factors are rounded to bf16, how many
products are added up at a time.
"""

ALONE_EIGHTHS = 3
"""Up to so many eighths of the queries of a block take less time alone than in a block."""

KEY, LANE, QUERY, COLUMN = "s", "t", "q", "e"
"""The labels of the loops over keys and queries for the scores, where queries are lanes, and over
queries and columns for the results."""

KEY_ALONE, COLUMN_ALONE = "k", "c"
"""Those over keys and columns where queries are alone."""

Step = Callable[[Expr, Sequence[SSAValue]], Sequence[SSAValue]]

Element = Callable[[Expr], SSAValue]


class BlockedAttention(Strategy):
    """
    Blocks of as many queries as two vectors hold, or one vector if the number of queries is
    unknown. The scores of all keys are kept if they are known to be few; else those of some keys at
    a time. Tiles of keys by queries for the scores, and of queries by columns for the results, as
    in other products. Constant masks are packed in blocks of queries. Few queries are each alone:
    the components of a key are the lanes of its product with the query, and keys are those of
    maxima and sums over them.
    """

    name = "blocked_attention"
    anchors = (AttentionOp,)
    parameters = (CHUNK, TERMS, HALVES)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, target = the(AttentionOp, kernel), setting.target
        if target.lanes == 1 or element_type(op.result) != f32:
            return
        count = len(kernel.inputs) + len(kernel.results)
        if not all(kernel.layout_at(position).is_row_major for position in range(count)):
            return
        *_, queries, _, depth = (dim.value for dim in dims_of(op.query))
        keys, columns = _length(op.key).value, dims_of(op.result)[-1].value
        if 0 in (queries, keys) or not depth or not columns:
            return
        limits = target.limits
        most = 1 if queries is None else min(limits.query_vectors, -(-queries // target.lanes))
        widths = [vectors * target.lanes for vectors in range(most, 0, -1)]
        fitting = [
            width
            for width in widths
            if keys is not None
            and (keys + depth + 1) * width * item_bytes(op.result) <= limits.stack_bytes
        ]
        width = (fitting or widths)[0]
        chunk = None if fitting else limits.attention_keys
        if chunk is not None:
            block_bytes = (chunk + depth + columns + 2) * width * item_bytes(op.result)
            if block_bytes > limits.stack_bytes:
                return
        keys, queries = keys if chunk is None else chunk, width if queries is None else queries
        assert keys is not None
        vectors = width // target.lanes
        is_halved = op.in_halves is not None and can_be_halved(op, target)
        if is_halved:
            depth, keys = -(-depth // 2), -(-keys // 2)
        *batch, _, heads, _ = assumed_shape(op.query)
        blocks = prod(batch) * heads * -(-queries // width)
        if chunk is not None:
            blocks *= -(-assumed_size(_length(op.key)) // chunk)
        scores = product_tiles(target, 2 * keys if is_halved else keys, width, depth, [vectors])
        results = product_tiles(target, min(width, queries), columns, keys)
        lanes = [(LANE, target.lanes), (COLUMN, target.lanes)]
        own = [] if chunk is None else [(CHUNK, chunk)]
        if is_halved:
            own.append((HALVES, 2))
        alone: list[tuple[str, int]] = []
        if _length(op.query).value is None and depth >= target.lanes:
            alone = [_columns_alone(target, columns, keys)[1]]
            lanes.append((COLUMN_ALONE, target.lanes))
            own.append((TERMS, target.lanes))
        # The best of both; then the next ones, as long as both exist.
        for one, other in zip(*(sorted(ways, key=_cycles) for ways in (scores, results))):
            (rows, _), (height, across) = one[1], other[1]
            tiles = ((KEY, rows), (LANE, vectors), (QUERY, height), (COLUMN, across), *alone)
            schedule = Schedule(self.name, tiles, (), tuple(lanes), parameters=tuple(own))
            yield Candidate(blocks * (one[0] + other[0]), schedule)
        if queries < target.lanes and depth >= target.lanes and not is_halved:
            yield self._one_at_a_time(op, setting, chunk)

    def _one_at_a_time(self, op: AttentionOp, setting: Setting, chunk: int | None) -> Candidate:
        """Each query alone."""
        target, machine = setting.target, setting.target.machine
        *batch, queries, heads, depth = assumed_shape(op.query)
        keys, columns = assumed_size(_length(op.key)), assumed_shape(op.result)[-1]
        products, tile = _columns_alone(target, columns, keys)
        vectors = -(-depth // target.lanes)
        # The lanes of a product are added up in steps, each of which waits for the one before.
        each = vectors / machine.loads_per_cycle + machine.latency_cycles * log2(target.lanes)
        cycles = prod(batch) * heads * queries * (keys * each + products)
        own = (*(() if chunk is None else ((CHUNK, chunk),)), (TERMS, target.lanes))
        lanes = ((COLUMN_ALONE, target.lanes),)
        return Candidate(cycles, Schedule(self.name, (tile,), (), lanes, parameters=own))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        """[..., t / width][s][t % width] for constant masks that differ between queries."""
        op, width = the(AttentionOp, kernel), schedule.tile(LANE) * schedule.vector(LANE)
        found: dict[SSAValue, LayoutAttr] = {}
        for mask in op.masks:
            rank = len(dims_of(mask))
            if not is_constant(kernel, mask) or rank < 2 or dims_of(mask)[-2] == 1:
                continue
            batch = [Piece(axis) for axis in range(rank - 2)]
            blocks = [Piece(rank - 2, width), Piece(rank - 1), Piece(rank - 2, 1, width)]
            found[mask] = LayoutAttr.of([*batch, *blocks])
        return found

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        _lower_blocks(k, the(AttentionOp, k.kernel), schedule)


def can_be_halved(op: AttentionOp, target: Target) -> bool:
    """
    True if products can be those of pairs of bf16: there are as many queries as a vector has lanes,
    and numbers of components, which are even, and of keys are known.
    """
    if not target.isa.halves or element_type(op.result) != f32:
        return False
    queries, depth = _length(op.query).value, dims_of(op.query)[-1].value
    if not queries or not depth or not _length(op.key).value:
        return False
    return queries >= target.lanes and depth % 2 == 0


def _cycles(way: tuple[float, tuple[int, int]]) -> float:
    return way[0]


def _length(value: SSAValue) -> Expr:
    """How many queries or keys there are, of [..., length, heads, depth]."""
    *_, length, _, _ = dims_of(value)
    return length


def _columns_alone(target: Target, columns: int, keys: int) -> tuple[float, tuple[str, int]]:
    """Estimated cycles for the results of a query that is alone, and the tile of columns."""
    cycles, (_, across) = min(product_tiles(target, 1, columns, keys), key=_cycles)
    return cycles, (COLUMN_ALONE, across)


def _lower_blocks(k: KernelLowering, op: AttentionOp, schedule: Schedule) -> None:
    """
    All whole blocks of queries, then the remainder in a smaller one. If the number of queries is
    unknown, few that remain are alone, and more are in a block of the same width.
    """
    queries = _length(op.query)
    chunk, terms = schedule.get(CHUNK), schedule.get(TERMS) or 1
    shared = schedule.vector(LANE) if schedule.get(HALVES) is not None else 0
    if LANE not in dict(schedule.lanes):
        _Blocks(k, op, Expr.const(0), queries, 1, Expr.const(1), chunk, terms).lower()
        return
    lanes = schedule.vector(LANE)
    width = schedule.tile(LANE) * lanes
    whole, rest = queries // width, queries % width
    if whole != 0:
        _Blocks(k, op, Expr.const(0), whole, width, Expr.const(width), chunk, lanes=shared).lower()
    if rest.value is not None:
        if rest != 0:
            last = _narrow(rest.value, lanes)
            _Blocks(k, op, whole * width, Expr.const(1), last, rest, chunk, lanes=shared).lower()
        return
    most = max(width * ALONE_EIGHTHS // 8, 1) if terms > 1 else 0
    # 1 if more remain than are each alone.
    block = minimum(rest // (most + 1), 1)
    if terms > 1:
        alone = rest - rest * block
        _Blocks(k, op, whole * width, alone, 1, Expr.const(1), chunk, terms).lower()
    _Blocks(k, op, whole * width, block, width, rest, chunk).lower()


def _narrow(queries: int, lanes: int) -> int:
    """Queries rounded up to whole vectors."""
    while lanes > FEWEST_LANES and queries <= lanes // 2:
        lanes //= 2
    return -(-queries // lanes) * lanes


@dataclass
class _Blocks:
    """
    `count` blocks of queries from `first` on: of `width` lanes, of which `size` are queries. With
    `chunk`, the scores of only so many keys are kept, and the sums so far are those for the maximum
    so far (Milakov and Gimelshein, Online normalizer calculation for softmax). With more than one
    term, each query is alone.
    """

    k: KernelLowering
    op: AttentionOp
    first: Expr
    count: Expr
    width: int
    size: Expr
    chunk: int | None
    terms: int = 1
    lanes: int = 0
    """
    If not zero, products are those of pairs of bf16, which are made in so many lanes: of components
    that are half of their number apart, and of neighboring keys.
    """

    def lower(self) -> None:
        """One loop over the blocks of all heads, so that threads share them evenly."""
        *batch, _, heads, _ = dims_of(self.op.query)
        sizes = [*batch, heads, self.count]
        b = self.k.builder
        if None in [size.value for size in sizes[1:]]:
            # Collapsing would divide by sizes that are unknown.
            with b.nest([heads, *batch, self.count], parallel=True) as at:
                self._lower_block(at[1:-1], at[0], at[-1])
            return
        with b.labeled_nest([("block", product(sizes))], parallel=True) as (block,):
            *outer, head, number = unravel(block, sizes)
            self._lower_block(outer, head, number)

    def _lower_block(self, outer: Sequence[Expr], head: Expr, number: Expr) -> None:
        b, depth, keys = self.k.builder, dims_of(self.op.query)[-1], _length(self.op.key)
        self._outer, self._head = outer, head
        self._start = self.first + number * self.width
        kind, rows = (i32, depth // 2) if self.lanes else (f32, depth)
        self._queries = b.scratch(kind, [rows, self.width])
        scores = [keys if self.chunk is None else self.chunk, self.width]
        used = minimum(keys, scores[0])
        self._weights = b.scratch(f32, scores, used)
        if self._is_gathered(self.op.factor):
            self._scales = b.scratch(f32, scores, used)
        if self._is_gathered(self.op.keep):
            self._kept = b.scratch(i1, scores, used)
        self._factors = b.scratch(f32, [self.width])
        if self.lanes:
            most, columns = Expr.of(scores[0]), dims_of(self.op.result)[-1]
            self._keys = b.scratch(i32, [most, rows])
            self._values = b.scratch(i32, [most.ceildiv(2), columns])
            self._pairs_of_weights = b.scratch(i32, [most.ceildiv(2), self.width])
            self._gather_pairs(rows)
        else:
            self._gather_queries(depth)
        if self.chunk is not None:
            self._lower_in_chunks(keys, self.chunk)
            return
        self._score(Expr.const(0), keys)
        self._weigh(keys)
        self._add_up(keys)

    def _lower_in_chunks(self, keys: Expr, chunk: int) -> None:
        b, columns = self.k.builder, dims_of(self.op.result)[-1]
        self._tops = b.scratch(f32, [self.width])
        self._results = b.scratch(f32, [self.width, columns])
        zero, lowest = b.floating(0.0, f32), scalars.lowest(b, f32)
        with b.loop(self.width) as lane:
            b.store(lowest, self._tops, [lane])
            b.store(zero, self._factors, [lane])
            with b.loop(columns) as column:
                b.store(zero, self._results, [lane, column])
        self._shrinks = b.scratch(f32, [self.width])
        with b.loop(keys // chunk) as number:
            self._score(number * chunk, Expr.const(chunk))
            self._add_chunk(number * chunk, Expr.const(chunk))
        if (rest := keys % chunk) != 0:
            self._score(keys // chunk * chunk, rest)
            self._add_chunk(keys // chunk * chunk, rest)
        self._finish(keys)

    def _add_chunk(self, first: Expr, keys: Expr) -> None:
        """
        exp(score - maximum so far) in place of scores; their sums, and those of weighted values.
        Where the maximum becomes larger, what has been added up shrinks.
        """
        b = self.k.builder
        columns = dims_of(self.op.result)[-1]
        with b.labeled_nest([(LANE, self.width)]) as (lane,):
            before = b.load(self._tops, [lane])
            top = self._top(keys, lane, before)
            b.store(top, self._tops, [lane])
            # What is hidden so far has the weight 0, and not NaN: there may be other keys.
            lowest = scalars.compare(b, "eq", top, scalars.lowest(b, f32), f32)
            limit = b.add(arith.SelectOp(lowest, b.floating(0.0, f32), top))
            shrink = weight_of(self.k, self.op, before, limit)
            b.store(shrink, self._shrinks, [lane])
            total = self._sum_of_weights(first, keys, lane, limit)
            b.store(b.fma(b.load(self._factors, [lane]), shrink, total), self._factors, [lane])
        if self.lanes:
            self._pair_weights(keys)
        with b.labeled_nest(self._results_of(columns)) as (query, column):
            total = self._sum_of_values(first, keys, query, column)
            known, shrink = b.load(self._results, [query, column]), b.load(self._shrinks, [query])
            b.store(b.fma(known, shrink, total), self._results, [query, column])

    def _finish(self, keys: Expr) -> None:
        """Divide by the sums of the weights."""
        b = self.k.builder
        columns = dims_of(self.op.result)[-1]
        with b.labeled_nest([(LANE, self.width)]) as (lane,):
            total = b.load(self._factors, [lane])
            if self.op.zero_nan is None:
                # All of one or more keys may be hidden.
                top, some = b.load(self._tops, [lane]), b.compare_index("sgt", keys, 0)
                nothing = b.add(
                    arith.SelectOp(some, scalars.sub(b, top, top), b.floating(0.0, f32))
                )
                total = scalars.add(b, total, nothing)
            b.store(self._factor(total), self._factors, [lane])
        with b.labeled_nest(self._results_of(columns)) as (query, column):
            total = b.load(self._results, [query, column])
            total = scalars.mul(b, total, b.load(self._factors, [query]))
            at = [*self._outer, self._start + query, self._head, column]
            self.k.finish(self.op, at, total)

    def _results_of(self, columns: Expr) -> list[tuple[str, Expr]]:
        """The loops over results, with their labels."""
        return [(QUERY, self.size), (COLUMN if self.terms == 1 else COLUMN_ALONE, columns)]

    def _factor(self, total: SSAValue) -> SSAValue:
        """What weights with a sum are multiplied by."""
        b = self.k.builder
        if self.chunk is not None or self.op.zero_nan is not None:
            # The largest score alone has the weight 1: the sum is less only without keys, or if
            # all weights are zero instead of NaN.
            total = scalars.maximum(b, total, b.floating(1 / 2, f32), f32)
        return b.add(arith.DivfOp(b.floating(1.0, f32), total))

    def _gather_queries(self, depth: Expr) -> None:
        """Scaled, one component after the other; zeros in lanes without a query."""
        b = self.k.builder
        scale = b.floating(self.op.scale.value.data, f32)
        with b.loop(self.size) as query, b.loop(depth) as i:
            at = [*self._outer, self._start + query, self._head, i]
            value = scalars.mul(b, self.k.element(self.op.query, at), scale)
            b.store(value, self._queries, [i, query])
        if self.size != self.width:
            zero = b.floating(0.0, f32)
            with b.loop(depth) as i, b.loop(self.width, self.size) as lane:
                b.store(zero, self._queries, [i, lane])

    def _gather_pairs(self, pairs: Expr) -> None:
        """Queries as those of `_gather_queries`, in pairs of components."""
        b = self.k.builder
        scale = b.floating(self.op.scale.value.data, f32)
        rows = b.scratch(i32, [self.width, pairs])

        def component(query: Expr, i: Expr) -> SSAValue:
            at = [*self._outer, self._start + query, self._head, i]
            return scalars.mul(b, self.k.element(self.op.query, at), scale)

        with b.loop(self.size) as query:
            low = partial(component, query)
            self._pair(rows, query, pairs, low, lambda i: low(i + pairs))
        with b.loop(self.size) as query, b.loop(pairs) as i:
            b.store(b.load(rows, [query, i]), self._queries, [i, query])
        if self.size != self.width:
            zero = b.integer(0, i32)
            with b.loop(pairs) as i, b.loop(self.width, self.size) as lane:
                b.store(zero, self._queries, [i, lane])

    def _pair(self, to: SSAValue, row: Expr, count: Expr, low: Element, high: Element) -> None:
        """A row of pairs."""
        b = self.k.builder
        for first, times, width in vectors_of(count, self.lanes):
            mode = "lanes" if width > 1 else None
            with b.loop(times) as number, b.loop(width, mode=mode) as lane:
                i = first + number * width + lane
                b.store(b.add(PairHalvesOp(low(i), high(i))), to, [row, i])

    def _pair_keys(self, first: Expr, keys: Expr) -> None:
        """
        Keys, from the first one on, in pairs of components; values in pairs of keys, the last one
        of an odd number beside zeros.
        """
        b, pairs = self.k.builder, dims_of(self.op.query)[-1] // 2
        columns = dims_of(self.op.result)[-1]

        def component(key: Expr, i: Expr) -> SSAValue:
            return self.k.element(self.op.key, [*self._outer, first + key, self._head, i])

        def value(key: Expr, i: Expr) -> SSAValue:
            return self.k.element(self.op.value, [*self._outer, first + key, self._head, i])

        with b.loop(keys) as key:
            low = partial(component, key)
            self._pair(self._keys, key, pairs, low, lambda i: low(i + pairs))
        with b.loop(keys // 2) as pair:
            low, high = partial(value, pair * 2), partial(value, pair * 2 + 1)
            self._pair(self._values, pair, columns, low, high)
        if keys % 2 != 0:
            zero = b.floating(0.0, f32)
            last = partial(value, keys - 1)
            self._pair(self._values, keys // 2, columns, last, lambda _: zero)

    def _pair_weights(self, keys: Expr) -> None:
        """The weights of neighboring keys, as their values are."""
        b = self.k.builder
        with b.labeled_nest([(LANE, self.width)]) as (lane,):
            with b.loop(keys // 2) as pair:
                values = [b.load(self._weights, [pair * 2 + i, lane]) for i in range(2)]
                b.store(b.add(PairHalvesOp(*values)), self._pairs_of_weights, [pair, lane])
            if keys % 2 != 0:
                last = b.load(self._weights, [keys - 1, lane])
                word = b.add(PairHalvesOp(last, b.floating(0.0, f32)))
                b.store(word, self._pairs_of_weights, [keys // 2, lane])

    def _is_gathered(self, mask: SSAValue | None) -> bool:
        """True if a mask differs between queries and its elements are not adjacent."""
        if mask is None:
            return False
        dims = dims_of(mask)
        return len(dims) > 1 and dims[-2] != 1 and self.k.layout_of(mask).inner(len(dims) - 2) == 1

    def _gather(self, mask: SSAValue, to: SSAValue, first: Expr, keys: Expr) -> None:
        """The elements for a block of queries; zeros in lanes without a query."""
        b, element = self.k.builder, element_type(mask)
        if mask in self.k.inputs:
            with b.loop(self.size) as query, b.loop(keys) as key:
                b.store(self._of(mask, query, first + key), to, [key, query])
        else:
            # Computed, it is not read in an order of its own, and queries may be lanes.
            label = LANE if self.size == self.width else None
            with b.loop(keys) as key, b.loop(self.size, label=label) as query:
                b.store(self._of(mask, query, first + key), to, [key, query])
        if self.size != self.width:
            zero = scalars.constant(b, 0, element)
            with b.loop(keys) as key, b.loop(self.width, self.size) as lane:
                b.store(zero, to, [key, lane])

    def _of(self, mask: SSAValue, query: Expr, key: Expr) -> SSAValue:
        at = [*self._outer, self._head, self._start + query, key]
        return self.k.operand(mask, at, self.op.score_dims)

    def _is_kept(self, first: Expr, key: Expr, lane: Expr) -> SSAValue:
        """Whether a score is kept, of a key from the first one on."""
        keep = self.op.keep
        assert keep is not None
        if self._is_gathered(keep):
            return self.k.builder.load(self._kept, [key, lane])
        return self._of(keep, lane, first + key)

    def _score(self, first: Expr, keys: Expr) -> None:
        """The scaled and masked products of keys, from the first one on, with queries."""
        b, depth = self.k.builder, dims_of(self.op.query)[-1]
        factor, mask, keep = self.op.factor, self.op.mask, self.op.keep
        if factor is not None and self._is_gathered(factor):
            self._gather(factor, self._scales, first, keys)
        if mask is not None and self._is_gathered(mask):
            self._gather(mask, self._weights, first, keys)
        if keep is not None and self._is_gathered(keep):
            self._gather(keep, self._kept, first, keys)
        if self.lanes:
            self._pair_keys(first, keys)
            depth = depth // 2
        label = KEY if self.terms == 1 else KEY_ALONE
        with b.labeled_nest([(label, keys), (LANE, self.width)]) as (key, lane):
            at = [*self._outer, first + key, self._head]

            def add_product(
                i: Expr, total: SSAValue, at: Sequence[Expr] = at, key: Expr = key
            ) -> SSAValue:
                if self.lanes:
                    words = b.load(self._keys, [key, i]), b.load(self._queries, [i, lane])
                    return b.add(DotHalvesOp(*words, total))
                factor = self.k.element(self.op.key, [*at, i])
                return b.fma(factor, b.load(self._queries, [i, lane]), total)

            zero = b.floating(0.0, f32)
            score = self._over(depth, (zero, zero), add_product, partial(scalars.add, b))
            if self._is_gathered(factor):
                score = scalars.mul(b, score, b.load(self._scales, [key, lane]))
            elif factor is not None:
                score = scalars.mul(b, score, self._of(factor, lane, first + key))
            if self._is_gathered(mask):
                score = scalars.add(b, score, b.load(self._weights, [key, lane]))
            elif mask is not None:
                score = scalars.add(b, score, self._of(mask, lane, first + key))
            if keep is not None:
                score = kept(self.k, self.op, self._is_kept(first, key, lane), score)
            b.store(score, self._weights, [key, lane])

    def _top(self, keys: Expr, lane: Expr, start: SSAValue) -> SSAValue:
        """The maximum of scores and a value."""
        b = self.k.builder

        def larger(one: SSAValue, other: SSAValue) -> SSAValue:
            return scalars.maximum(b, one, other, f32)

        def raise_(key: Expr, top: SSAValue) -> SSAValue:
            return larger(top, b.load(self._weights, [key, lane]))

        return self._over(keys, (start, scalars.lowest(b, f32)), raise_, larger)

    def _sum_of_weights(self, first: Expr, keys: Expr, lane: Expr, top: SSAValue) -> SSAValue:
        """The sum of exp(score - maximum), which replaces the score, but hidden ones by zero."""
        b, weights = self.k.builder, self._weights

        def add_weight(key: Expr, total: SSAValue) -> SSAValue:
            weight = weight_of(self.k, self.op, b.load(weights, [key, lane]), top)
            part = weight
            if self.op.zero_hidden is not None:
                keep = self._is_kept(first, key, lane)
                part = b.add(arith.SelectOp(keep, weight, b.floating(0.0, f32)))
            b.store(part, weights, [key, lane])
            return scalars.add(b, total, weight)

        if self.terms > 1:
            zero = b.floating(0.0, f32)
            return self._over(keys, (zero, zero), add_weight, partial(scalars.add, b))
        return self._sum(keys, lambda key, values: [add_weight(key, values[0])])

    def _sum_of_values(self, first: Expr, keys: Expr, query: Expr, column: Expr) -> SSAValue:
        """The sum of values with the available weights: of the keys from the first one on."""
        b = self.k.builder

        def add_pair(pair: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            weights = b.load(self._pairs_of_weights, [pair, query])
            words = b.load(self._values, [pair, column])
            return [b.add(DotHalvesOp(weights, words, values[0]))]

        if self.lanes:
            return self._sum(keys.ceildiv(2), add_pair)

        def add_value(key: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            at = [*self._outer, first + key, self._head, column]
            value = self.k.element(self.op.value, at)
            return [b.fma(b.load(self._weights, [key, query]), value, values[0])]

        return self._sum(keys, add_value)

    def _weigh(self, keys: Expr) -> None:
        """exp(score - maximum) in place of scores, and one by their sum for each query."""
        b = self.k.builder
        with b.labeled_nest([(LANE, self.width)]) as (lane,):
            top = self._top(keys, lane, scalars.lowest(b, f32))
            total = self._sum_of_weights(Expr.const(0), keys, lane, top)
            b.store(self._factor(total), self._factors, [lane])

    def _add_up(self, keys: Expr) -> None:
        """The weighted sums of values."""
        b = self.k.builder
        columns = dims_of(self.op.result)[-1]
        if self.lanes:
            self._pair_weights(keys)
        with b.labeled_nest(self._results_of(columns)) as (query, column):
            total = self._sum_of_values(Expr.const(0), keys, query, column)
            total = scalars.mul(b, total, b.load(self._factors, [query]))
            at = [*self._outer, self._start + query, self._head, column]
            self.k.finish(self.op, at, total)

    def _over(
        self,
        count: Expr,
        starts: tuple[SSAValue, SSAValue],
        step: Callable[[Expr, SSAValue], SSAValue],
        combine: Callable[[SSAValue, SSAValue], SSAValue],
    ) -> SSAValue:
        """
        A reduction from the first start; where queries are alone in lanes, each of which has the
        second one, and what fills none of these by itself.
        """
        b, lanes, (start, neutral) = self.k.builder, self.terms, starts

        def run(count: Expr, start: SSAValue, at: Callable[[Expr], Expr]) -> SSAValue:
            return b.carry(count, [start], lambda i, values: [step(at(i), values[0])])[0]

        if lanes == 1:
            return run(count, start, lambda i: i)
        whole = count // lanes

        def in_lane(lane: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [combine(values[0], run(whole, neutral, lambda i: i * lanes + lane))]

        total = b.carry(lanes, [start], in_lane, mode="lanes")[0]
        if (rest := count - whole * lanes) == 0:
            return total
        return run(rest, total, lambda i: whole * lanes + i)

    def _sum(self, keys: Expr, add: Step) -> SSAValue:
        """A reduction over all keys, starting from zero, with the given step."""
        b = self.k.builder

        def add_part(first: Expr, number: ExprLike, start: SSAValue) -> SSAValue:
            return b.carry(number, [start], lambda i, values: add(first + i, values))[0]

        zero = b.floating(0.0, f32)
        if keys.value is None:
            # Of a chunk, which is no longer than a part.
            return add_part(Expr.const(0), keys, zero)
        return sum_in_parts(b, keys.value, PART, zero, add_part)
