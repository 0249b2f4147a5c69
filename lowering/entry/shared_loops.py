"""Which loops of a kernel threads share: so that each finds what it reads in its own cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.buffer.vector import PrefetchOp, lanes_of
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.intervals import Interval
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.aliases import Roots
from lowerdeck.lowering.loops.estimate import estimated_steps, estimated_trips
from lowerdeck.lowering.loops.indices import Indices
from lowerdeck.lowering.targets.base import Target, are_even

Loops = Sequence[kernel.ForOp]

_KNOWN = (kernel.LoadOp, kernel.StoreOp, PrefetchOp)
"""Ops that are known to access memory where their indices say."""

Spans = Mapping[SSAValue, int]
"""For each buffer, how many elements lie between the first and the last part of what is shared."""

NEAR = 0.25
"""Spans that differ by a smaller share are of the same rows: one of them is with padding."""


@record
class Sharing:
    """Loops that threads may share, side by side, and where they divide buffers."""

    loops: Loops
    spans: Spans
    """Of buffers that each thread accesses a part of, without those of which it accesses all."""


def sharings(loop: kernel.ForOp) -> Iterator[Sharing]:
    """A parallel loop, or what its iterations consist of, and so on; the outermost first."""
    loops: Loops = [loop]
    while True:
        yield Sharing(loops, _spans(max(loops, key=estimated_trips)))
        inner = [op for each in loops for op in each.body.block.ops if isinstance(op, kernel.ForOp)]
        if not inner or not all(map(_consists_of_loops, loops)) or not all(map(_is_apart, inner)):
            return
        loops = inner


def _consists_of_loops(loop: kernel.ForOp) -> bool:
    """True if whatever an iteration stores, it stores in loops over the same range in each."""
    own = loop.body.block.args[0]
    return not loop.inits and all(
        own not in op.indices and not op.inits and op.mode is None
        if isinstance(op, kernel.ForOp)
        else isinstance(op, kernel.ApplyOp | kernel.LoadOp | kernel.YieldOp | arith.ConstantOp)
        for op in loop.body.block.ops
    )


@record
class _Access:
    """An offset, by what it goes on with a loop, with those in it, and what is outside."""

    step: int
    inner: Mapping[str, int]
    outer: Expr
    length: int

    @staticmethod
    def of(op: kernel.LoadOp | kernel.StoreOp, name: str, indices: Indices) -> _Access | None:
        """None if it is no sum of multiples of indices."""
        offset = ref_type(op.ref).offset(indices.read(op.map.data, op.indices))
        step, inner, outer = 0, dict[str, int](), Expr.const(0)
        for monomial, n in offset.terms:
            term = Expr(((monomial, n),))
            known = term.symbols & indices.ranges.keys()
            if not known:
                outer = outer + term
            elif len(monomial) != 1 or monomial[0].kind != "symbol":
                return None
            elif name in known:
                step = n
            else:
                inner[monomial[0].name] = n
        is_load = isinstance(op, kernel.LoadOp)
        lanes = lanes_of((op.result if is_load else op.value).type) or 1
        more = kernel.WORD_BYTES - 1 if is_load and op.word is not None else 0
        return _Access(step, inner, outer, (lanes - 1) * op.distance + 1 + more)


def _is_apart(loop: kernel.ForOp) -> bool:
    """True if no iteration accesses what another one stores, for the same of all loops around."""
    bounds = constants(loop.range.data)
    if bounds is None or loop.label is None:
        return False
    indices = Indices()
    name = str(indices.loop(loop))
    for op in all_ops(loop.body):
        if isinstance(op, kernel.ForOp):
            if str(indices.loop(op)) not in indices.ranges:
                return False
        elif not isinstance(op, _KNOWN) and any(isinstance(v.type, RefType) for v in op.operands):
            return False
    stored = {op.ref for op in all_ops(loop.body) if isinstance(op, kernel.StoreOp)}
    computed = {result for op in all_ops(loop.body) for result in op.results}
    found: dict[SSAValue, list[_Access | None]] = {}
    for op in all_ops(loop.body):
        if isinstance(op, kernel.LoadOp | kernel.StoreOp) and op.ref in stored:
            is_known = computed.isdisjoint(op.indices)
            access = _Access.of(op, name, indices) if is_known else None
            found.setdefault(op.ref, []).append(access)
    trips = -(-(bounds[1] - bounds[0]) // bounds[2])
    return all(_are_apart(each, trips, bounds[2], indices.ranges) for each in found.values())


def _are_apart(
    accesses: Sequence[_Access | None], trips: int, by: int, ranges: Mapping[str, Interval]
) -> bool:
    """
    True if offsets are digits: those of an iteration lie within its step, but for what goes on by
    multiples of more than all iterations take, as from channel to channel.
    """
    known = [each for each in accesses if each is not None]
    if len(known) < len(accesses) or len({each.step for each in known}) != 1:
        return False
    step, modulus = abs(known[0].step) * by, 0
    places: list[tuple[int, int]] = []
    for each in known:
        rest = (each.outer - known[0].outer).value
        if rest is None:
            return False
        low, high = rest, rest + each.length - 1
        for name, n in each.inner.items():
            if abs(n) >= step * trips:
                modulus = gcd(modulus, n)
                continue
            ends = [n * end for end in ranges[name]]
            low, high = low + min(ends), high + max(ends)
        places.append((low, high))
    first = start = min(places)[0]
    width = 0
    for low, high in sorted(places):
        if low >= start + step:
            start, modulus = low, gcd(modulus, low - first)
        width = max(width, high - start + 1)
    return width <= step and (not modulus or modulus >= step * (trips - 1) + width)


def _spans(loop: kernel.ForOp) -> Spans:
    indices = Indices()
    name = str(indices.loop(loop))
    bounds = constants(loop.range.data)
    spans: dict[SSAValue, int] = {}
    if bounds is None:
        return spans
    for op in all_ops(loop.body):
        if isinstance(op, kernel.ForOp):
            indices.loop(op)
        elif isinstance(op, kernel.LoadOp | kernel.StoreOp):
            access = _Access.of(op, name, indices)
            if access is not None and access.step:
                span = abs(access.step) * (bounds[1] - bounds[0])
                spans[op.ref] = max(spans.get(op.ref, 0), span)
    return spans


@dataclass
class Caches:
    """What threads have written last, by the memory that it lies in, and how they had shared it."""

    roots: Roots
    target: Target
    threads: int
    written: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The span of each memory that threads have shared; 0 if one of them wrote it all."""

    def best(
        self, call: entry_ops.CallOp, function: kernel.FuncOp, loops: Loops
    ) -> Mapping[kernel.ForOp, Sharing]:
        """
        Of the ways to share each loop of a kernel the one that takes the fewest cycles. First that
        of the loop that takes longest: what others add to the same memory, such as its border,
        belongs to the same thread.
        """
        arguments: Sequence[SSAValue] = function.body.block.args
        values: dict[SSAValue, SSAValue] = dict(zip(arguments, call.arguments, strict=False))
        are_known = all(ref_type(value).bytes.value is not None for value in arguments)
        best: dict[kernel.ForOp, Sharing] = {}
        spans: dict[SSAValue, int] = {}
        for loop in sorted(loops, key=lambda each: -estimated_steps(each, self.target)):
            ways = sharings(loop)
            best[loop] = (
                min(ways, key=lambda each: self._cycles(each, loop, values, spans))
                if are_known
                else next(ways)
            )
            spans = {**best[loop].spans, **spans}
        return best

    def note(self, call: entry_ops.CallOp, function: kernel.FuncOp, spans: Spans) -> None:
        """Remember what a call has written; with no spans, by the first thread."""
        first = len(call.arguments) - function.outputs.data
        arguments = function.body.block.args[first : len(call.arguments)]
        for argument, value in zip(arguments, call.arguments[first:], strict=True):
            for root in self.roots[value]:
                self.written[root] = spans.get(argument, 0)

    def _cycles(
        self,
        sharing: Sharing,
        loop: kernel.ForOp,
        values: Mapping[SSAValue, SSAValue],
        spans: Spans,
    ) -> float:
        """
        Of the thread that has most to do, and to fetch what it reads from other caches, and what it
        stores from those of threads that store next to it.
        """
        machine = self.target.machine
        cycles = estimated_steps(loop, self.target) * self._largest_share(sharing, loop)
        stored = {op.ref for op in all_ops(loop) if isinstance(op, kernel.StoreOp)}
        read = {op.ref for op in all_ops(loop) if isinstance(op, kernel.LoadOp)} - stored
        for ref in read & values.keys():
            lines = (ref_type(ref).bytes.value or 0) / machine.line_bytes
            part = 1 / self.threads if ref in sharing.spans else 1.0
            root, *others = self.roots[values[ref]]
            if isinstance(root.owner, entry_ops.WeightOp):
                cycles += lines * part * machine.line_bytes / machine.shared_bytes_per_cycle
            elif not others and not self._is_near(root, sharing.spans.get(ref)):
                cycles += lines * part * (1 - 1 / self.threads) * machine.jump_line_cycles
        for ref in stored & spans.keys():
            if not _are_near(sharing.spans.get(ref, 0), spans[ref]):
                lines = _stores(loop, ref) / self.threads
                cycles += lines * (1 - 1 / self.threads) * machine.jump_line_cycles
        return cycles

    def _largest_share(self, sharing: Sharing, loop: kernel.ForOp) -> float:
        """The largest part of the work that a thread has; of what is collapsed all have as much."""
        loops, threads = sharing.loops, self.threads
        is_collapsed = loops[0] is loop and nest_to_collapse(loop, threads) is not None
        if is_collapsed or all(are_even(estimated_trips(each), threads) for each in loops):
            return 1 / threads
        steps = [estimated_steps(each, self.target) for each in loops]
        whole = sum(steps)
        if not whole:
            return 1.0
        shares = [0.0] * threads
        for each, most, shrinks in zip(loops, steps, shrinking(loops, self.target), strict=True):
            trips = estimated_trips(each)
            for number in range(threads):
                more = threads - 1 if shrinks else 0
                end = (trips * (number + 1) + more) // threads
                count = end - (trips * number + more) // threads
                shares[number] += most / whole * count / max(trips, 1)
        return max(shares)

    def _is_near(self, root: SSAValue, span: int | None) -> bool:
        """True if each thread reads what it has written."""
        known = self.written.get(root, 0)
        return bool(known) and span is not None and _are_near(known, span)


def _are_near(one: int, other: int) -> bool:
    """True if threads that share so many elements have the same rows."""
    return abs(one - other) < NEAR * other


def _stores(loop: kernel.ForOp, ref: SSAValue) -> float:
    """How many times a loop stores to a buffer, which is at most a line at a time."""
    inside = sum(
        _stores(op, ref) if isinstance(op, kernel.ForOp) else float(op.ref is ref)
        for op in loop.body.block.ops
        if isinstance(op, kernel.ForOp | kernel.StoreOp)
    )
    return estimated_trips(loop) * inside


def shrinking(loops: Loops, target: Target) -> list[bool]:
    """
    For each of several loops whether the length of its parts shrinks with their number, if its
    iterations cannot be divided evenly: whichever balances the first and the second half better.
    """
    ahead, found = 0.0, list[bool]()
    for loop in loops:
        trips = estimated_trips(loop)
        one_more = estimated_steps(loop, target) / trips if trips % 2 else 0.0
        found.append(ahead < 0)
        ahead += one_more if found[-1] else -one_more
    return found


def nest_to_collapse(loop: kernel.ForOp, threads: int) -> kernel.ForOp | None:
    """
    The labeled loop that is the whole body of a parallel loop of unknown trip count, possibly one,
    or of few iterations that cannot be divided evenly: the iterations of both are independent.
    """
    inner = loop.body.block.first_op
    if not isinstance(inner, kernel.ForOp) or not _may_be_uneven(loop, inner, threads):
        return None
    is_nest = inner.next_op is loop.body.block.last_op and inner.label is not None
    if not is_nest or inner.inits or loop.body.block.args[0] in inner.indices:
        return None
    indices = Indices()
    ranges = [indices.read(each.range.data, each.indices) for each in (loop, inner)]
    if any(lower != 0 or step != 1 for lower, _, step in ranges) or ranges[1][1] == 0:
        return None
    return inner


def _may_be_uneven(loop: kernel.ForOp, inner: kernel.ForOp, threads: int) -> bool:
    if (bounds := constants(loop.range.data)) is None:
        return True
    lower, upper, step = bounds
    trips = -(-(upper - lower) // step)
    # A division for each vector would take longer than what it saves.
    has_loops = any(isinstance(op, kernel.ForOp) for op in inner.body.block.ops)
    return has_loops and not are_even(trips, threads)
