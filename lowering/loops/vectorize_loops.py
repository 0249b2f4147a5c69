"""`vectorize-loops`: vectors for the loops of kernels without a schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer.enums import LoopMode
from lowerdeck.dialects.buffer.kernel import (
    EXACT,
    ApplyOp,
    ForOp,
    FuncOp,
    LoadOp,
    StoreOp,
    YieldOp,
    value_type,
)
from lowerdeck.dialects.buffer.tiles import DotTilesOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.buffer.vector import TransposeOp, lane_bits
from lowerdeck.dialects.core.types import bf16, f16, f32, f64, i1
from lowerdeck.dialects.dims import Expr, ExprLike, minimum
from lowerdeck.dialects.intervals import interval, simplified
from lowerdeck.lowering.loops.demote import Demoter
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.lane_forms import DIVISIONS
from lowerdeck.lowering.loops.reductions import Reduction, find_reductions
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents
from lowerdeck.lowering.loops.vectorize_lanes import vectorize
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import FEWEST_LANES, Limits
from lowerdeck.passes.context import options_of

LONGEST_CHAIN = 1 << 14
"""The maximum number of terms that one f32 lane may add up; longer sums stay in f64."""

_MEMORY_TYPES = (f32, f64, f16, bf16, i1, *(IntegerType(width) for width in (8, 16, 32, 64)))

SHORT_ROW = 16
"""Loops of fewer iterations are no rows for vectors: several of them are computed side by side."""


@dataclass(frozen=True)
class Piece:
    """`count` vectors of `lanes` iterations, from iteration `start` on; scalars for one lane."""

    start: Expr
    count: Expr
    lanes: int


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


class Accesses:
    """The accesses of a loop if `lanes` of its iterations are combined to one."""

    def __init__(self, loop: ForOp, lanes: int, indices: Indices) -> None:
        self._indices = indices
        self._lane = Expr.symbol("%lane")
        first = Expr.symbol("%first")
        indices.limit(self._lane, 0, lanes)
        indices.limit(first, 0, 1 << 31)
        lower = indices.read(loop.range.data, loop.indices)[0]
        old = str(indices.symbol(loop.body.block.args[0]))
        self._moved = {old: lower + first * lanes + self._lane}
        self._inside = {
            str(indices.symbol(value))
            for op in loop.walk()
            for value in (*op.results, *_arguments_in(op))
            if isinstance(value.type, IndexType)
        }
        self._accesses = [op for op in loop.walk() if isinstance(op, LoadOp | StoreOp)]

    def are_independent(self, *, far: bool) -> bool:
        """
        True if accesses that vary between lanes are contiguous (with `far` along any dimension, a
        constant number of elements apart), and no lane touches elements that another one writes:
        then the index along the lanes is the same in all accesses to a buffer, except for the lane.
        """
        places: dict[SSAValue, set[tuple[int, Expr] | None]] = {}
        written: set[SSAValue] = set()
        for op in self._accesses:
            exprs = self._exprs(op)
            buffer = ref_type(op.ref)
            varies = [axis for axis, e in enumerate(exprs) if str(self._lane) in e.symbols]
            place = None
            if varies:
                axis = varies[0]
                base = exprs[axis] - self._lane
                is_known = (buffer.strides.data[axis].value or 0) > 0
                fits = is_known if far else axis == buffer.innermost
                if len(varies) > 1 or str(self._lane) in base.symbols or not fits:
                    return False
                if value_type(buffer.element) not in _MEMORY_TYPES:
                    return False
                place = axis, base
            if isinstance(op, StoreOp):
                written.add(op.ref)
            places.setdefault(op.ref, set()).add(place)
        return any(place is not None for found in places.values() for place in found) and all(
            self._is_one_place(places[ref]) for ref in written
        )

    def _is_one_place(self, places: set[tuple[int, Expr] | None]) -> bool:
        (place, *others) = places
        return place is not None and not others and not place[1].symbols & self._inside

    def _exprs(self, op: LoadOp | StoreOp) -> list[Expr]:
        exprs = self._indices.read(op.map.data, op.indices)
        return [simplified(e.substitute(self._moved), self._indices.ranges) for e in exprs]


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
        count = sum(1 for _ in loop.body.block.walk())
        chains = (chains for most, chains in limits.chains_by_ops if count <= most)
        self._chains = next(chains, 1)
        is_small = count <= limits.copied_body_ops
        fewest = FEWEST_LANES if is_small else lanes
        self._has_sums = is_small and any(
            isinstance(op, ForOp) and op.inits for op in loop.body.block.walk()
        )
        size = self._indices.extent(self._lower, upper)
        self._pieces = list(pieces_of(size, lanes, fewest))
        self._end: Expr | None = None
        """Where the last vector ends if it begins before what the others have left over."""
        if self._has_sums and not reductions and self._may_repeat(size, lanes):
            self._end = size
            self._pieces = [Piece(Expr.const(0), size.ceildiv(lanes), lanes)]
        self._rest = 0
        """The iterations after whole vectors if the last vector begins before them."""
        may_repeat = _only_loads(loop) or self._may_repeat(size, lanes)
        if reductions and size.value is not None and may_repeat:
            self._rest = size.value % lanes
            self._pieces = [Piece(Expr.const(0), Expr.const(size.value // lanes), lanes)]

    def _may_repeat(self, size: Expr, lanes: int) -> bool:
        """
        True if some iterations may run twice, for a last vector next to the others: threads do not
        share them, and they read nothing that they write.
        """
        if size.value is None or size.value < lanes or size.value % lanes == 0:
            return False
        accesses = [op for op in self._loop.walk() if isinstance(op, LoadOp | StoreOp)]
        written = {op.ref for op in accesses if isinstance(op, StoreOp)}
        reads_own = any(op.ref in written for op in accesses if isinstance(op, LoadOp))
        return not reads_own and not self._loop.parallel.value.data

    def rewrite(self) -> bool:
        """False, without any change, for too few iterations or an op without vector form."""
        if self._pieces[0].lanes == 1 or self._longest_chain() > LONGEST_CHAIN:
            return False
        loop, block = self._loop, Block()
        totals: list[SSAValue] = list(loop.inits)
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
            for inner in op.walk()
            if isinstance(inner, ForOp) and _is_lanes(inner)
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
        inner = (op for op in self._loop.body.walk() if isinstance(op, ForOp) and _sums_in_f64(op))
        return max(map(_trips, inner), default=0)

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
                identity = _append(block, reduction.identity)
                term = _append(block, arith.SelectOp(is_new, term, identity))
            totals.append(reduction.combine(block, total, term))
        return totals

    def _partial_results(
        self, piece: Piece, totals: list[SSAValue], block: Block
    ) -> list[SSAValue]:
        """Partial results of as many terms as one lane may add up, combined in a loop."""
        most, count = LONGEST_CHAIN * self._chains, piece.count
        is_short = count.value is not None and count.value <= most
        if self._exact or is_short or not _sums_in_f64(self._loop):
            return self._partial_result(piece, totals, block)
        body = Block(arg_types=[IndexType(), *(total.type for total in totals)])
        number = self._indices.symbol(body.args[0])
        rounds = (count + (most - 1)) // most
        self._indices.limit(number, 0, rounds)
        done = number * most
        part = Piece(piece.start + done * piece.lanes, minimum(count - done, most), piece.lanes)
        rest, self._rest = self._rest, 0
        body.add_op(YieldOp(self._partial_result(part, body.args[1:], body)))
        results: list[SSAValue] = list(self._for(rounds, body, totals, block).results)
        if rest:
            self._rest = rest
            last = Piece(piece.start + count * piece.lanes, Expr.const(0), piece.lanes)
            return self._partial_result(last, results, block)
        return results

    def _partial_result(
        self, piece: Piece, totals: Sequence[SSAValue], block: Block
    ) -> list[SSAValue]:
        """Each lane combines its own terms, in several chains; then they are combined."""
        body, lane = self._lane_body(piece, totals)
        count = piece.count
        bounds = interval(count, self._indices.ranges)
        most = None if bounds is None else bounds[1]
        chains = self._chains if most is None or most >= 2 * self._chains else 1
        # What may be overwritten by the others is read before them, and stored after them.
        last, stores = None, list[StoreOp]()
        if self._rest and not _only_loads(self._loop):
            last = self._last_terms(piece, lane, body)
            stores = [op for op in body.ops if isinstance(op, StoreOp)]
            for op in stores:
                op.detach()
        sums = [_append(body, reduction.identity) for reduction in self._reductions]
        whole = count // chains
        if chains > 1:
            identities = [sums] * chains
            sums = self._in_chains(piece, lane, whole, identities, body)
        else:
            whole = Expr.const(0)
        done = whole * chains
        sums = self._one_by_one(piece, lane, done, count - done, sums, body)
        if self._rest:
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
        end = piece.start + piece.count * piece.lanes + self._rest
        place = self._lower + end - piece.lanes + lane
        if not any(reduction.kind in ("add", "mul") for reduction in self._reductions):
            return self._terms(place, block), None
        (expr,), operands = self._indices.write([lane])
        widest = max(lane_bits(reduction.term.type) for reduction in self._reductions)
        type_ = IntegerType(max(widest, 32))
        number = _append(block, arith.IndexCastOp(_append(block, ApplyOp(expr, operands)), type_))
        first = _append(block, arith.ConstantOp(IntegerAttr(piece.lanes - self._rest, type_)))
        is_new = _append(block, arith.CmpiOp(number, first, "sge"))
        return self._terms(place, block), is_new

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


def _is_lanes(loop: ForOp) -> bool:
    return loop.mode is not None and loop.mode.data == LoopMode.LANES


def _append(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]


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


def vectorize_loop(loop: ForOp, lanes: int, limits: Limits, *, far: bool = False) -> bool:
    """
    Replace a loop by vectors of at most `lanes` lanes, which with `far` may lie far apart in
    memory; False, without any change, if not.
    """
    if loop.mode is not None or loop.range.data[2] != 1:
        return False
    if any(isinstance(op, ForOp) and _is_lanes(op) for op in loop.walk()):
        return False  # vectors already
    most, exact = lanes, _is_of_f64(loop)
    if (
        any(
            isinstance(op, scf.IfOp) and EXACT not in op.attributes and _gives_f64(op)
            for op in loop.walk()
        )
        and not exact
    ):
        return False
    reductions = find_reductions(loop, exact=exact)
    if reductions is None or (far and reductions):
        return False
    lower, upper, _ = loop.range.data
    if exact or _is_of_i64(loop) or any(map(_needs_f64, loop.walk())):
        lanes //= 2
    if (size := (upper - lower).value) is not None:
        while lanes > max(size, 1):
            lanes //= 2
    if lanes < FEWEST_LANES:
        return False
    indices = Indices()
    limit_by_parents(loop, indices)
    if not Accesses(loop, lanes, indices).are_independent(far=far):
        return False
    vectorizer = LoopVectorizer(loop, lanes, limits, reductions, most, far=far, exact=exact)
    return vectorizer.rewrite()


def _is_of_f64(loop: ForOp) -> bool:
    """True if a loop computes in f64 because of its elements, or multiplies many numbers there."""
    return any(
        (isinstance(op, LoadOp) and op.result.type == f64)
        or (isinstance(op, StoreOp) and op.value.type == f64)
        or (isinstance(op, ForOp) and _multiplies_in_f64(op))
        for op in loop.walk()
    )


def _multiplies_in_f64(loop: ForOp) -> bool:
    last = loop.body.block.last_op
    assert last is not None
    return any(
        value.type == f64 and isinstance(value.owner, arith.MulfOp) for value in last.operands
    )


def _is_of_i64(loop: ForOp) -> bool:
    return any(
        isinstance(op, LoadOp | StoreOp) and ref_type(op.ref).item_size == 8 for op in loop.walk()
    )


def _needs_f64(op: Operation) -> bool:
    return EXACT in op.attributes or isinstance(op, DIVISIONS)


def _only_loads(loop: ForOp) -> bool:
    return not any(isinstance(op, StoreOp | TransposeOp | DotTilesOp) for op in loop.walk())


def _has_short_rows(loop: ForOp) -> bool:
    """True if every loop in the body is too short for vectors."""
    inner = _loops_in(loop)
    return bool(inner) and all(0 < _all_trips(op) < SHORT_ROW for op in inner)


def _loops_in(loop: ForOp) -> list[ForOp]:
    return [op for op in loop.body.block.ops if isinstance(op, ForOp)]


def _all_trips(loop: ForOp) -> int:
    """The trip count of a loop with those of the loops in it; 0 if one is unknown."""
    lower, upper, _ = loop.range.data
    return ((upper - lower).value or 0) * max(map(_all_trips, _loops_in(loop)), default=1)


def _is_sequence(loop: ForOp) -> bool:
    """True if iterations are independent, and a loop in the body carries values."""
    is_parallel = bool(loop.parallel.value.data)
    return is_parallel and any(isinstance(op, ForOp) and op.inits for op in loop.body.walk())


def _arguments_in(op: Operation) -> Iterator[SSAValue]:
    """The arguments of the blocks of an op; a branch without an op has no block."""
    return (arg for region in op.regions for block in region.blocks for arg in block.args)


def _gives_f64(op: scf.IfOp) -> bool:
    return any(result.type == f64 for result in op.results)


def vectorize_loops(block: Block, lanes: int, limits: Limits) -> bool:
    """
    Vectorize the outermost loops of a block that can be vectorized: along contiguous elements, but
    short rows side by side, and so sequences that have no other vectors. False if there are none.
    """
    found = False
    for op in list(block.ops):
        if isinstance(op, ForOp):
            found = (
                vectorize_loop(op, lanes, limits)
                or (_has_short_rows(op) and vectorize_loop(op, lanes, limits, far=True))
                or vectorize_loops(op.body.block, lanes, limits)
                or (_is_sequence(op) and vectorize_loop(op, lanes, limits, far=True))
                or found
            )
        else:
            for region in op.regions:
                for inner in region.blocks:
                    found = vectorize_loops(inner, lanes, limits) or found
    return found


@dataclass(frozen=True)
class VectorizeLoopsPass(ModulePass):
    """
    Vectors for the loops of kernels without a `schedule`: the outermost ones whose iterations have
    contiguous accesses and are independent of each other, except for reductions.

    A reduction (a sum, a product or an extremum) has partial results in the lanes, in several
    chains, which are combined after the loop. f64 sums of f32 terms are computed in f32, and if
    the lanes are results, values computed from them in f64 are computed in f32. The remainder of a
    loop is computed in shorter vectors, then one by one; that of a reduction that only reads, in a
    vector that ends with it, whose first lanes do not count.

    Rows that are too short for vectors, and sequences such as running sums, are computed side by
    side: then the lanes of a vector lie a row apart.

    `lanes` is that of the target by default.
    """

    name = "vectorize-loops"
    optional = True
    lanes: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_named(options_of(ctx).target)
        lanes = self.lanes or target.lanes
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and function.schedule is None and lanes > 1:
                vectorize_loops(function.body.block, lanes, target.limits)
