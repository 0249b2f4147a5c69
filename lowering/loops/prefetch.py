"""`prefetch`: prefetch the weights that a kernel reads next while it computes with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.kernel import WORD_BYTES, ForOp, FuncOp, LoadOp
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.buffer.vector import PrefetchOp, lanes_of
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.indices import Indices
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents, loops_around
from lowerdeck.lowering.targets.base import Target


@record
class _Reduction:
    """An innermost reduction that reads vectors or words of the buffer, and its access pattern."""

    loop: ForOp
    loads: Sequence[LoadOp]
    indices: Indices
    place: Sequence[Expr]
    """The index of the first load."""
    panel: ForOp | None
    """The innermost independent loop that selects the weights; None if all runs read the same."""
    sweeps: Sequence[ForOp]
    """The loops within that one that repeat the reduction with the same weights, from the inner to
    the outer one."""

    @property
    def repetitions(self) -> int:
        """The number of times that it reads the same weights."""
        return prod(_trips(loop) for loop in self.sweeps)


def prefetch(function: FuncOp, ref: SSAValue, line_bytes: int) -> None:
    """Prefetch in the innermost reductions that read vectors or words of a buffer."""
    panels: dict[ForOp | None, list[_Reduction]] = {}
    for loop in all_ops(function):
        if isinstance(loop, ForOp) and (found := _reduction(loop, ref)) is not None:
            panels.setdefault(found.panel, []).append(found)
    for reductions in panels.values():
        _prefetch_next(reductions, line_bytes)


def _reduction(loop: ForOp, ref: SSAValue) -> _Reduction | None:
    if not loop.inits:
        return None
    loads = [
        op
        for op in loop.body.block.ops
        if isinstance(op, LoadOp) and op.ref is ref and _elements(op) > 1
    ]
    if not loads:
        return None
    indices = Indices()
    limit_by_parents(loads[0], indices)
    place = indices.read(loads[0].map.data, loads[0].indices)
    symbols = ref_type(ref).offset(place).symbols
    sweeps: list[ForOp] = []
    for parent in loops_around(loop):
        if parent.inits:
            continue
        if str(indices.symbol(parent.body.block.args[0])) not in symbols:
            if (bounds := constants(parent.range.data)) is not None and bounds[::2] == (0, 1):
                sweeps.append(parent)
        elif parent.label is not None:
            return _Reduction(loop, loads, indices, place, parent, sweeps)
    return _Reduction(loop, loads, indices, place, None, sweeps)


def _elements(load: LoadOp) -> int:
    """The elements side by side of a vector, or of a word."""
    return WORD_BYTES if load.word is not None else lanes_of(load.result.type)


def _trips(loop: ForOp) -> int:
    _, upper, _ = loop.range.data
    return upper.value or 1


def _prefetch_next(reductions: Sequence[_Reduction], line_bytes: int) -> None:
    """
    Prefetch the data one panel after the current one. Runs that read the same panel prefetch a
    share of the next one each, more slowly than they read: memory should be busy all the time,
    because it is the bottleneck.
    """
    plans = [plan for each in reductions if (plan := _plan(each)) is not None]
    if not plans:
        return
    runs = sum(plan.reduction.repetitions for plan in plans)
    shares = _shares(runs, plans)
    done = 0
    for plan in plans:
        plan.apply(shares, done, line_bytes)
        done += plan.reduction.repetitions
        if shares == 1:
            return


@record
class _Plan:
    """The reads of one reduction: its steps through the panel, in elements, and the step size."""

    reduction: _Reduction
    begin: Expr
    steps: Mapping[str, int]
    panel: Expr
    span: int

    def apply(self, shares: int, done: int, line_bytes: int) -> None:
        """Prefetch one share of the next panel; `done` runs of the current panel come before."""
        reduction = self.reduction
        load, indices = reduction.loads[0], reduction.indices
        line = line_bytes // ref_type(load.ref).item_size
        offset = self.begin + self.panel
        if shares > 1:
            number = _repetition(reduction) + done
            offset += number % shares * ((self.panel.value or 0) // shares)
        for symbol, step in self.steps.items():
            offset += Expr.symbol(symbol) * (step // shares)
        first = reduction.loop.body.block.first_op
        assert first is not None
        for count in range(-(-self.span // (line * shares))):
            (place,), operands = indices.write([offset + count * line])
            new = PrefetchOp(load.ref, place, operands)
            new.location = load.location
            reduction.loop.body.block.insert_op_before(new, first)


def _plan(reduction: _Reduction) -> _Plan | None:
    """None if a step does not move through the panel."""
    loads, indices = reduction.loads, reduction.indices
    type_ = ref_type(loads[0].ref)
    offsets = [type_.offset(indices.read(load.map.data, load.indices)) for load in reduction.loads]
    spans = [
        (distance, distance + _elements(load))
        for load, offset in zip(loads, offsets, strict=True)
        if (distance := (offset - offsets[0]).value) is not None
    ]
    if len(spans) < len(loads) or min(spans)[0] < 0:
        return None
    begin, steps = _progress(reduction, offsets[0])
    return _Plan(reduction, begin, steps, _panel(reduction, type_), max(spans)[1])


def _panel(reduction: _Reduction, type_: RefType) -> Expr:
    """
    The number of elements in one panel: the dimensions inside of those that depend on independent
    loops, which are those with labels.
    """
    indices = reduction.indices
    others = {
        str(indices.symbol(parent.body.block.args[0]))
        for parent in loops_around(reduction.loop)
        if parent.label is not None
    }
    for index, stride in reversed(list(zip(reduction.place, type_.strides.data, strict=True))):
        if index.symbols & others:
            return stride
    return type_.elements


def _progress(reduction: _Reduction, offset: Expr) -> tuple[Expr, dict[str, int]]:
    """
    The offset where the reduction begins to read, and the step of each of its loops; no steps if
    they are not all equal.
    """
    indices, loops = reduction.indices, [reduction.loop]
    for parent in loops_around(reduction.loop):
        if not parent.inits:
            break
        loops.append(parent)
    steps: dict[str, int] = {}
    begin = offset
    for loop in loops:
        symbol = str(indices.symbol(loop.body.block.args[0]))
        step = (begin - begin.substitute({symbol: 0})).substitute({symbol: 1}).value
        begin = begin.substitute({symbol: 0})
        if step is None or offset - begin != sum(
            (Expr.symbol(name) * size for name, size in steps.items()), Expr.symbol(symbol) * step
        ):
            return offset, {}
        steps[symbol] = step
    return begin, steps


def _shares(runs: int, plans: Sequence[_Plan]) -> int:
    """
    The number of runs that share the prefetch of the next panel: a power of two that divides all
    steps. If they move through it differently, the first reduction prefetches all of it in each
    run.
    """
    first = plans[0]
    steps = list(first.steps.values())
    if not steps or first.panel.value is None:
        return 1
    if any(plan.panel != first.panel or list(plan.steps.values()) != steps for plan in plans):
        return 1
    shares = 1
    while 2 * shares <= runs and not gcd(first.panel.value, *steps) % (2 * shares):
        shares *= 2
    return shares


def _repetition(reduction: _Reduction) -> Expr:
    """The number of a run among those that read the same weights."""
    number, size = Expr.const(0), 1
    for loop in reduction.sweeps:
        number += reduction.indices.symbol(loop.body.block.args[0]) * size
        size *= _trips(loop)
    return number


class PrefetchPass(FunctionPass):
    """
    If the `schedule` of a kernel names a buffer in `prefetch`, each step of a reduction that reads
    vectors of it prefetches the data one panel further on. A panel is the data that all reductions
    read for one iteration of the loops with labels. Runs that read the same panel share the
    prefetches. The panel after the last one holds the weights of the next kernel.
    """

    name = "prefetch"
    optional = True

    def run(self, function: FuncOp, target: Target) -> None:
        if function.schedule is None or (ahead := function.schedule.data.prefetch) is None:
            return
        prefetch(function, function.body.block.args[ahead], target.machine.line_bytes)
