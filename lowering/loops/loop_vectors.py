"""Vectors in place of one loop whose iterations are independent, but for reductions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.buffer.enums import LoopMode
from lowerdeck.dialects.buffer.kernel import ApplyOp, ForOp, LoadOp, StoreOp, YieldOp
from lowerdeck.dialects.buffer.tiles import DotTilesOp
from lowerdeck.dialects.buffer.vector import TransposeOp, lane_bits
from lowerdeck.dialects.core.types import f64
from lowerdeck.dialects.dims import Expr, ExprLike, minimum
from lowerdeck.dialects.intervals import interval
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.demote import Demoter
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.lane_values import append
from lowerdeck.lowering.loops.reductions import Reduction
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents
from lowerdeck.lowering.loops.vectorize_lanes import vectorize
from lowerdeck.lowering.targets.base import FEWEST_LANES, Limits

LONGEST_CHAIN = 1 << 14
"""The maximum number of terms that one f32 lane may add up; longer sums stay in f64."""


@record
class Piece:
    """`count` vectors of `lanes` iterations, from iteration `start` on; scalars for one lane."""

    start: Expr
    count: Expr
    lanes: int
    most: int | None = None
    """Vectors that there are at most; None if that follows from the indices, or is unknown."""


def pieces_of(size: Expr, lanes: int, fewest: int) -> Iterator[Piece]:
    """The iterations of a loop in vectors, then in shorter ones, then one by one."""
    start = Expr.const(0)
    while lanes >= fewest:
        count = (size - start) // lanes
        if count != 0:
            yield Piece(start, count, lanes)
        start = size // lanes * lanes
        # If the size is unknown there is only one kind of short vectors.
        lanes = lanes // 2 if size.value is not None or lanes == fewest else fewest
    if size - start != 0:
        yield Piece(start, size - start, 1)


class LoopVectorizer:
    """Replaces one loop, whose carried values are reductions, by vectors."""

    def __init__(
        self,
        loop: ForOp,
        lanes: int,
        limits: Limits,
        reductions: Sequence[Reduction],
        most: int,
        *,
        far: bool,
        exact: bool,
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._most = most
        self._far = far
        self._exact = exact
        self._reductions = reductions
        self._combining = {op for reduction in reductions for op in reduction.ops}
        self._indices = Indices()
        limit_by_parents(loop, self._indices)
        self._lower, upper, _ = self._indices.read(loop.range.data, loop.indices)
        self._index = str(self._indices.symbol(loop.body.block.args[0]))
        count = len(all_ops(loop.body.block))
        chains = (chains for most, chains in limits.chains_by_ops if count <= most)
        self._chains = next(chains, 1)
        is_small = count <= limits.copied_body_ops
        fewest = FEWEST_LANES if is_small else lanes
        self._has_sums = is_small and any(
            isinstance(op, ForOp) and op.inits for op in all_ops(loop.body.block)
        )
        self._size = size = self._indices.extent(self._lower, upper)
        self._pieces = list(pieces_of(size, lanes, fewest))
        self._end: Expr | None = None
        """Where the last vector ends if it begins before what the others have left over."""
        if self._has_sums and not reductions and self._may_repeat(size, lanes):
            self._end = size
            self._pieces = [Piece(Expr.const(0), size.ceildiv(lanes), lanes)]
        self._rest = Expr.const(0)
        """The iterations after whole vectors if the last vector begins before them."""
        self._widths: Sequence[int] = ()
        """The lanes of vectors, one kind for all of an unknown number of iterations."""
        if size.value is None and (reductions or self._is_row()) and self._may_run_twice():
            self._widths = list(dict.fromkeys((lanes, fewest)))
        elif reductions and (_only_loads(loop) or self._may_repeat(size, lanes)):
            self._rest = size % lanes
            self._pieces = [Piece(Expr.const(0), size // lanes, lanes)]

    def _may_repeat(self, size: Expr, lanes: int) -> bool:
        """
        True if some iterations of a known number may run twice, for a last vector next to the
        others.
        """
        if size.value is None or size.value < lanes or size.value % lanes == 0:
            return False
        return self._may_run_twice()

    def _may_run_twice(self) -> bool:
        """
        True if the iterations read nothing that they write, and threads do not share them: of rows,
        they share the others.
        """
        accesses = [op for op in all_ops(self._loop) if isinstance(op, LoadOp | StoreOp)]
        written = {op.ref for op in accesses if isinstance(op, StoreOp)}
        reads_own = any(op.ref in written for op in accesses if isinstance(op, LoadOp))
        is_shared = bool(self._loop.parallel.value.data) and not self._is_row()
        return _only_loads(self._loop) or not (reads_own or is_shared)

    def _is_row(self) -> bool:
        """
        True in a loop over rows that are copied, or of sums: nothing is computed in place of them.
        """
        moves, ops = LoadOp | StoreOp | ApplyOp | YieldOp, all_ops(self._loop.body)
        is_plain = self._has_sums or all(isinstance(op, moves) for op in ops)
        return is_plain and isinstance(self._loop.parent_op(), ForOp)

    def rewrite(self) -> bool:
        """False, without any change, for too few iterations or an op without vector form."""
        if self._pieces[0].lanes == 1 or self._longest_chain() > LONGEST_CHAIN:
            return False
        loop, block = self._loop, Block()
        totals: list[SSAValue] = list(loop.inits)
        if self._widths:
            totals = self._by_size(self._widths, totals, block)
        else:
            for piece in self._pieces:
                totals = self._piece(piece, totals, block)
        results = YieldOp(totals)
        block.add_op(results)
        new = list(block.ops)
        parent = loop.parent
        assert parent is not None
        before = loop.prev_op
        for op in new:
            op.detach()
            parent.insert_op_before(op, loop)
        vectors = [
            inner
            for op in new
            for inner in all_ops(op)
            if isinstance(inner, ForOp) and is_lanes(inner)
        ]
        is_vector = all(vectorize(inner, self._most, far=self._far) for inner in vectors)
        if is_vector:
            for old, total in zip(loop.results, results.values, strict=True):
                old.replace_all_uses_with(total)
            _erase(results)
            _erase(loop)
            return True
        while (last := loop.prev_op) is not before:
            assert last is not None
            _erase(last)
        return False

    def _longest_chain(self) -> int:
        """The most terms that one lane adds up in f32 where the source sums in f64."""
        if self._exact:
            return 0
        inner = (
            op for op in all_ops(self._loop.body) if isinstance(op, ForOp) and _sums_in_f64(op)
        )
        return max(map(_trips, inner), default=0)

    def _by_size(
        self, widths: Sequence[int], totals: list[SSAValue], block: Block
    ) -> list[SSAValue]:
        """Vectors of the first width that there are enough iterations for; scalars if of none."""
        if not widths:
            return self._scalars(Piece(Expr.const(0), self._size, 1), totals, block)
        width, then, otherwise = widths[0], Block(), Block()
        is_widest = width == self._widths[0]
        most = None if is_widest else self._widths[0] // width - 1
        self._rest = self._size % width
        piece = Piece(Expr.const(0), self._size // width, width, most)
        if self._reductions:
            results = self._partial_results(piece, totals, then)
        else:
            results = self._vectors_to_end(piece, then)
        then.add_op(scf.YieldOp(*results))
        otherwise.add_op(scf.YieldOp(*self._by_size(widths[1:], totals, otherwise)))
        size = self._number(self._size, i64, block)
        least = append(block, arith.ConstantOp(IntegerAttr(width, i64)))
        test, types = arith.CmpiOp(size, least, "sge"), [total.type for total in totals]
        choice = scf.IfOp(append(block, test), types, Region(then), Region(otherwise))
        choice.location = self._loop.location
        block.add_op(choice)
        return list(choice.results)

    def _vectors_to_end(self, piece: Piece, block: Block) -> list[SSAValue]:
        """Vectors of a row, then one that ends with it."""
        self._piece(piece, [], block)
        last = Piece(self._size - piece.lanes, Expr.const(1), piece.lanes)
        self._vector(last, Expr.const(0), block)
        return []

    def _number(self, value: Expr, type_: IntegerType, block: Block) -> SSAValue:
        (expr,), operands = self._indices.write([value])
        return append(block, arith.IndexCastOp(append(block, ApplyOp(expr, operands)), type_))

    def _piece(self, piece: Piece, totals: list[SSAValue], block: Block) -> list[SSAValue]:
        if piece.lanes == 1:
            return self._scalars(piece, totals, block)
        if self._reductions:
            return self._partial_results(piece, totals, block)
        at_once = self._limits.sum_vectors
        whole = piece.count // at_once if self._has_sums else Expr.const(0)
        self._vectors(piece, Expr.const(0), whole, at_once, block)
        done = whole * at_once
        rest = piece.count - done
        # Threads share the vectors of the outermost loop.
        is_shared = bool(self._loop.parallel.value.data)
        if self._has_sums and not is_shared and rest.value is not None and rest.value > 1:
            self._vectors(piece, done, Expr.const(1), rest.value, block)
        else:
            self._vectors(piece, done, rest, 1, block)
        return []

    def _vectors(
        self, piece: Piece, start: Expr, count: Expr, side_by_side: int, block: Block
    ) -> None:
        """`count` times so many vectors of independent iterations, from vector `start` on."""
        parallel = bool(self._loop.parallel.value.data)
        if count == 0:
            return
        if count == 1 and not parallel:
            self._tile(piece, start, side_by_side, block)
            return
        body = Block(arg_types=[IndexType()])
        number = self._indices.symbol(body.args[0])
        self._indices.limit(number, 0, count)
        self._tile(piece, start + number * side_by_side, side_by_side, body)
        body.add_op(YieldOp())
        self._for(count, body, [], block, parallel=parallel)

    def _tile(self, piece: Piece, start: Expr, side_by_side: int, block: Block) -> None:
        """Vectors that are merged into one body: their sums need not wait for each other."""
        if side_by_side == 1:
            self._vector(piece, start, block)
            return
        body = Block(arg_types=[IndexType()])
        number = self._indices.symbol(body.args[0])
        self._indices.limit(number, 0, side_by_side)
        self._vector(piece, start + number, body)
        body.add_op(YieldOp())
        self._for(side_by_side, body, [], block, mode="unroll")

    def _for(
        self,
        upper: ExprLike,
        body: Block,
        inits: Sequence[SSAValue],
        block: Block,
        *,
        lower: ExprLike = 0,
        parallel: bool = False,
        mode: str | None = None,
    ) -> ForOp:
        (first, last, step), operands = self._indices.write([lower, upper, 1])
        region = Region(body)
        new = ForOp((first, last, step), operands, inits, region, parallel=parallel, mode=mode)
        new.location = self._loop.location
        block.add_op(new)
        return new

    def _scalars(self, piece: Piece, totals: list[SSAValue], block: Block) -> list[SSAValue]:
        """The iterations as scalars."""
        loop = self._loop
        body = Block(arg_types=[IndexType(), *(total.type for total in totals)])
        number = self._indices.symbol(body.args[0])
        cloner = Cloner(self._indices, moved={self._index: number})
        cloner.values.update(zip(loop.body.block.args[1:], body.args[1:], strict=True))
        for op in loop.body.block.ops:
            cloner.clone(op, body)
        lower = self._lower + piece.start
        parallel = bool(loop.parallel.value.data)
        upper = lower + piece.count
        new = self._for(upper, body, totals, block, lower=lower, parallel=parallel)
        return list(new.results)

    def _lane_body(self, piece: Piece, totals: Sequence[SSAValue]) -> tuple[Block, Expr]:
        body = Block(arg_types=[IndexType(), *(total.type for total in totals)])
        lane = self._indices.symbol(body.args[0])
        self._indices.limit(lane, 0, piece.lanes)
        return body, lane

    def _vector(self, piece: Piece, number: Expr, block: Block) -> None:
        """One vector of independent iterations."""
        body, lane = self._lane_body(piece, [])
        self._terms(self._place(piece, number, lane), body)
        body.add_op(YieldOp())
        self._for(piece.lanes, body, [], block, mode="lanes")

    def _place(self, piece: Piece, number: Expr, lane: Expr) -> Expr:
        start = number * piece.lanes
        if self._end is not None:
            start = minimum(start, self._end - piece.lanes)
        return self._lower + piece.start + start + lane

    def _iteration(self, place: Expr, carried: Sequence[SSAValue], block: Block) -> list[SSAValue]:
        """The body of the loop at an index; returns the carried values."""
        return self._combined(self._terms(place, block), carried, block)

    def _terms(self, place: Expr, block: Block) -> list[SSAValue]:
        """The body of the loop at an index but for what combines terms; returns these."""
        copier = Cloner if self._exact else Demoter
        cloner = copier(self._indices, moved={self._index: place})
        for op in self._loop.body.block.ops:
            if op not in self._combining and not isinstance(op, YieldOp):
                cloner.clone(op, block)
        return [cloner.operand(reduction.term, block) for reduction in self._reductions]

    def _combined(
        self,
        terms: Sequence[SSAValue],
        carried: Sequence[SSAValue],
        block: Block,
        is_new: SSAValue | None = None,
    ) -> list[SSAValue]:
        """The carried values with terms, where these are new."""
        totals: list[SSAValue] = []
        for reduction, term, total in zip(self._reductions, terms, carried, strict=True):
            # What is combined twice does not change an extremum.
            if is_new is not None and reduction.kind in ("add", "mul"):
                identity = append(block, reduction.identity)
                term = append(block, arith.SelectOp(is_new, term, identity))
            totals.append(reduction.combine(block, total, term))
        return totals

    def _partial_results(
        self, piece: Piece, totals: list[SSAValue], block: Block
    ) -> list[SSAValue]:
        """Partial results of as many terms as one lane may add up, combined in a loop."""
        most, count = LONGEST_CHAIN * self._chains, piece.count
        known = self._most_of(piece)
        is_short = known is not None and known <= most
        if self._exact or is_short or not _sums_in_f64(self._loop):
            return self._partial_result(piece, totals, block)
        body = Block(arg_types=[IndexType(), *(total.type for total in totals)])
        number = self._indices.symbol(body.args[0])
        # What follows a vector that begins before it is with the last of an unknown number.
        rest, self._rest = self._rest, Expr.const(0)
        is_last_apart = count.value is None and rest != 0
        rounds = count // most if is_last_apart else count.ceildiv(most)
        self._indices.limit(number, 0, rounds)
        done = number * most
        of_round = Expr.const(most) if is_last_apart else minimum(count - done, most)
        part = Piece(piece.start + done * piece.lanes, of_round, piece.lanes)
        body.add_op(YieldOp(self._partial_result(part, body.args[1:], body)))
        results: list[SSAValue] = list(self._for(rounds, body, totals, block).results)
        if rest == 0:
            return results
        self._rest = rest
        done = rounds * most if is_last_apart else count
        last = Piece(piece.start + done * piece.lanes, count - done, piece.lanes)
        return self._partial_result(last, results, block)

    def _most_of(self, piece: Piece) -> int | None:
        bounds = interval(piece.count, self._indices.ranges)
        return piece.most if bounds is None else bounds[1]

    def _partial_result(
        self, piece: Piece, totals: Sequence[SSAValue], block: Block
    ) -> list[SSAValue]:
        """Each lane combines its own terms, in several chains; then they are combined."""
        body, lane = self._lane_body(piece, totals)
        count = piece.count
        most = self._most_of(piece)
        chains = self._chains if most is None or most >= 2 * self._chains else 1
        # What may be overwritten by the others is read before them, and stored after them.
        last, stores = None, list[StoreOp]()
        if self._rest != 0 and not _only_loads(self._loop):
            last = self._last_terms(piece, lane, body)
            stores = [op for op in body.ops if isinstance(op, StoreOp)]
            for op in stores:
                op.detach()
        sums = [append(body, reduction.identity) for reduction in self._reductions]
        whole = count // chains
        if chains > 1 and count.value is None:
            sums = self._in_chains_if_any(piece, lane, whole, [sums] * chains, body)
        elif chains > 1:
            sums = self._in_chains(piece, lane, whole, [sums] * chains, body)
        else:
            whole = Expr.const(0)
        done = whole * chains
        sums = self._one_by_one(piece, lane, done, count - done, sums, body)
        if self._rest != 0:
            terms, is_new = last or self._last_terms(piece, lane, body)
            body.add_ops(stores)
            sums = self._combined(terms, sums, body, is_new)
        combined = [
            reduction.combine(body, total, sum_)
            for reduction, total, sum_ in zip(self._reductions, body.args[1:], sums, strict=True)
        ]
        body.add_op(YieldOp(combined))
        return list(self._for(piece.lanes, body, totals, block, mode="lanes").results)

    def _last_terms(
        self, piece: Piece, lane: Expr, block: Block
    ) -> tuple[list[SSAValue], SSAValue | None]:
        """
        The iterations that do not fill a vector, at the end of one that begins before them, and
        which of its lanes are new: what it repeats is no term, except of an extremum, which that
        does not change.
        """
        place = self._lower + self._size - piece.lanes + lane
        if not any(reduction.kind in ("add", "mul") for reduction in self._reductions):
            return self._terms(place, block), None
        widest = max(lane_bits(reduction.term.type) for reduction in self._reductions)
        type_ = IntegerType(max(widest, 32))
        number, old = self._number(lane, type_, block), piece.lanes - self._rest
        if old.value is None:
            first = self._number(old, type_, block)
        else:
            first = append(block, arith.ConstantOp(IntegerAttr(old.value, type_)))
        is_new = append(block, arith.CmpiOp(number, first, "sge"))
        return self._terms(place, block), is_new

    def _in_chains_if_any(
        self,
        piece: Piece,
        lane: Expr,
        count: Expr,
        inits: Sequence[Sequence[SSAValue]],
        block: Block,
    ) -> list[SSAValue]:
        """Independent chains where there are iterations: to combine them takes as long as some."""
        then, otherwise = Block(), Block([scf.YieldOp(*inits[0])])
        then.add_op(scf.YieldOp(*self._in_chains(piece, lane, count, inits, then)))
        one = append(block, arith.ConstantOp(IntegerAttr(1, i64)))
        test = append(block, arith.CmpiOp(self._number(count, i64, block), one, "sge"))
        types = [value.type for value in inits[0]]
        choice = scf.IfOp(test, types, Region(then), Region(otherwise))
        choice.location = self._loop.location
        block.add_op(choice)
        return list(choice.results)

    def _in_chains(
        self,
        piece: Piece,
        lane: Expr,
        count: Expr,
        inits: Sequence[Sequence[SSAValue]],
        block: Block,
    ) -> list[SSAValue]:
        """Independent chains, combined at the end."""
        chains, width = len(inits), len(self._reductions)
        flat = [value for values in inits for value in values]
        body = Block(arg_types=[IndexType(), *(value.type for value in flat)])
        number = self._indices.symbol(body.args[0])
        self._indices.limit(number, 0, count)
        following: list[SSAValue] = []
        for chain in range(chains):
            carried = body.args[1 + chain * width : 1 + (chain + 1) * width]
            place = self._place(piece, number * chains + chain, lane)
            following += self._iteration(place, carried, body)
        body.add_op(YieldOp(following))
        results: list[SSAValue] = list(self._for(count, body, flat, block).results)
        groups = [results[chain * width : (chain + 1) * width] for chain in range(chains)]
        while len(groups) > 1:
            half = len(groups) // 2
            groups = [
                [
                    reduction.combine(block, a, b)
                    for reduction, a, b in zip(self._reductions, left, right, strict=True)
                ]
                for left, right in zip(groups[:half], groups[half:], strict=True)
            ]
        return groups[0]

    def _one_by_one(
        self,
        piece: Piece,
        lane: Expr,
        start: Expr,
        count: Expr,
        sums: list[SSAValue],
        block: Block,
    ) -> list[SSAValue]:
        """The vectors from `start` on, in one chain."""
        if count == 0:
            return sums
        if count == 1:
            return self._iteration(self._place(piece, start, lane), sums, block)
        body = Block(arg_types=[IndexType(), *(value.type for value in sums)])
        number = self._indices.symbol(body.args[0])
        self._indices.limit(number, start, start + count)
        place = self._place(piece, number, lane)
        body.add_op(YieldOp(self._iteration(place, body.args[1:], body)))
        return list(self._for(start + count, body, sums, block, lower=start).results)


def is_lanes(loop: ForOp) -> bool:
    """True for a loop over lanes."""
    return loop.mode is not None and loop.mode.data == LoopMode.LANES


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def _sums_in_f64(loop: ForOp) -> bool:
    return any(init.type == f64 for init in loop.inits)


def _trips(loop: ForOp) -> int:
    """The trip count of a loop, including nested sums; 0 if it is unknown."""
    lower, upper, _ = loop.range.data
    own = (upper - lower).value or 0
    inner = [_trips(op) for op in loop.body.block.ops if isinstance(op, ForOp) and _sums_in_f64(op)]
    return own * max(inner, default=1)


def _only_loads(loop: ForOp) -> bool:
    return not any(isinstance(op, StoreOp | TransposeOp | DotTilesOp) for op in all_ops(loop))
