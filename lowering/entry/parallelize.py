"""`parallelize`: every thread runs the entry function, and the threads share the parallel loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import EntryOp, find_entry
from lowerdeck.dialects.buffer.operands import parameter
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.aliases import Roots, find_roots, outside_sections
from lowerdeck.lowering.entry.divide_functions import (
    divide,
    enclose_statements,
    groups_of,
    may_be_in_parts,
)
from lowerdeck.lowering.entry.lowered import lowered_functions
from lowerdeck.lowering.entry.serial_runs import gather_runs
from lowerdeck.lowering.entry.shared_loops import Caches, Spans, nest_to_collapse, shrinking
from lowerdeck.lowering.loops.estimate import estimated_trips, steps_of_block
from lowerdeck.lowering.loops.indices import Indices
from lowerdeck.lowering.loops.intervals import are_independent
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.machinery.context import options_of

_AT_ONCE = (entry_ops.WeightOp, entry_ops.AllocOp, entry_ops.ViewOp, entry_ops.RequireOp)
"""Ops of the entry function that do not access memory."""


def parallel_loops(function: kernel.FuncOp) -> list[kernel.ForOp]:
    """The loops of a function that threads may split; none if it contains any other op."""
    loops: list[kernel.ForOp] = []
    loads: list[Operation] = []
    for op in function.body.block.ops:
        if isinstance(op, kernel.ForOp) and op.parallel.value.data:
            loops.append(op)
        elif isinstance(op, kernel.LoadOp):
            loads.append(op)
        elif not may_be_in_parts(op):
            return []
    # There is no barrier within a function.
    return loops if are_independent([*loads, *loops]) else []


def collapsed(loop: kernel.ForOp, threads: int) -> kernel.ForOp:
    """A parallel loop with the one in it, if their iterations are better shared together."""
    inner = nest_to_collapse(loop, threads)
    if inner is None:
        return loop
    indices = Indices()
    ranges = [indices.read(each.range.data, each.indices) for each in (loop, inner)]
    (_, outer_size, _), (_, inner_size, _) = ranges
    body = Block(arg_types=[IndexType()])
    number = indices.symbol(body.args[0])
    for nested, place in ((loop, number // inner_size), (inner, number % inner_size)):
        if not any(nested.body.block.args[0].uses):
            continue
        (expr,), operands = indices.write([place])
        apply = kernel.ApplyOp(expr, operands)
        body.add_op(apply)
        nested.body.block.args[0].replace_all_uses_with(apply.result)
    for op in list(inner.body.block.ops):
        op.detach()
        body.add_op(op)
    (upper,), operands = indices.write([outer_size * inner_size])
    new = kernel.ForOp((0, upper, 1), operands, [], Region(body), parallel=True)
    new.location = loop.location
    block = loop.parent
    assert block is not None
    block.insert_op_before(new, loop)
    loop.detach()
    loop.erase()
    return new


def split_function(function: kernel.FuncOp, loops: Sequence[kernel.ForOp], target: Target) -> None:
    """Give each loop of a function the range of one part."""
    count = len(function.symbols)
    part, parts = parameter(count), parameter(count + 1)
    for loop, shrinks in zip(loops, shrinking(loops, target), strict=True):
        _split(loop, part, parts, shrinks=shrinks)
    names = [*function.symbols, StringAttr(kernel.PART), StringAttr(kernel.PARTS)]
    function.properties["symbols"] = ArrayAttr(names)
    function.parallel = UnitAttr()


def _split(loop: kernel.ForOp, number: Expr, parts: Expr, *, shrinks: bool) -> None:
    """The range of the part of this number: whole iterations, in order, one more in some parts."""
    lower, upper, step = loop.range.data
    trips = (upper - lower).ceildiv(step)
    up = parts - 1 if shrinks else Expr.const(0)
    begin = lower + (trips * number + up) // parts * step
    end = lower + (trips * (number + 1) + up) // parts * step
    if (upper - lower) % step != 0:
        end = minimum(end, upper)
    loop.properties["range"] = DimsAttr.of([begin, end, step])


@dataclass
class Pending:
    """Accesses since the last barrier, by the first thread or by all of them."""

    read_by_first: set[SSAValue] = field(default_factory=set[SSAValue])
    written_by_first: set[SSAValue] = field(default_factory=set[SSAValue])
    read_by_all: set[SSAValue] = field(default_factory=set[SSAValue])
    written_by_all: set[SSAValue] = field(default_factory=set[SSAValue])

    @property
    def is_empty(self) -> bool:
        """True if there were no accesses."""
        return not (
            self.read_by_first or self.written_by_first or self.read_by_all or self.written_by_all
        )

    def copy(self) -> Pending:
        """An independent copy."""
        return Pending(
            set(self.read_by_first),
            set(self.written_by_first),
            set(self.read_by_all),
            set(self.written_by_all),
        )

    def clear(self) -> None:
        """All threads meet."""
        for values in (
            self.read_by_first,
            self.written_by_first,
            self.read_by_all,
            self.written_by_all,
        ):
            values.clear()

    def conflicts(self, access: BufferAccess) -> bool:
        """True if another thread may read what the access writes, or write what it touches."""
        touched = access.reads | access.writes
        if touched & self.written_by_all or access.writes & self.read_by_all:
            return True
        if access.by_first:
            return False
        return bool(touched & self.written_by_first or access.writes & self.read_by_first)

    def add(self, access: BufferAccess) -> None:
        """Record an access."""
        if access.by_first:
            self.read_by_first |= access.reads
            self.written_by_first |= access.writes
        else:
            self.read_by_all |= access.reads
            self.written_by_all |= access.writes


@record
class BufferAccess:
    """The buffers that an op reads and writes, as roots, and the threads that do."""

    reads: frozenset[SSAValue]
    writes: frozenset[SSAValue]
    by_first: bool


class WorkSharer:
    """
    Leaves ops that are not split to the first thread, and inserts a barrier wherever a thread could
    access data that another one has not finished.
    """

    def __init__(self, functions: Mapping[str, kernel.FuncOp], roots: Roots) -> None:
        self._functions = functions
        self._roots = roots

    def split(self, block: Block, pending: Pending) -> None:
        """
        Process every op of a block and its nested blocks.

        `pending` holds the accesses before the block, and then those still pending at its end.
        """
        for op in list(block.ops):
            match op:
                case entry_ops.CallOp():
                    self._split_call(op, pending)
                case entry_ops.CopyOp():
                    self._meet(_within(entry_ops.OnceOp, op), self._access_of_first(op), pending)
                case entry_ops.OnceOp():
                    self._meet(op, self._access_of_first(op), pending)
                case entry_ops.BindOp():
                    self._meet(op, self._read_by_all([op.source]), pending)
                case entry_ops.AllocOp() if op.dynamic.value.data:
                    # The first thread shares the pointer; all others wait for it.
                    pending.clear()
                case entry_ops.CheckStatusOp():
                    pending.clear()
                case entry_ops.IfOp():
                    self._split_if(op, pending)
                case entry_ops.LoopOp():
                    self._split_loop(op, pending)
                case _:
                    assert not op.regions

    def _split_call(self, op: entry_ops.CallOp, pending: Pending) -> None:
        reads, writes = self._touched(op)
        part = (Expr.symbol(kernel.PART), Expr.symbol(kernel.PARTS))
        op.properties["symbols"] = DimsAttr((*op.symbols.data, *part))
        access = BufferAccess(self._rooted(reads), self._rooted(writes), by_first=False)
        self._meet(_within(entry_ops.ShareOp, op), access, pending)

    def _access_of_first(self, op: Operation) -> BufferAccess:
        """The accesses of an op and all nested ops, executed by the first thread."""
        reads: list[SSAValue] = []
        writes: list[SSAValue] = []
        for inner in all_ops(op):
            read, written = self._touched(inner)
            reads += read
            writes += written
        return BufferAccess(self._rooted(reads), self._rooted(writes), by_first=True)

    def _touched(self, op: Operation) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        """The buffers that an op itself reads and writes."""
        match op:
            case entry_ops.CallOp():
                function = self._functions[op.callee.root_reference.data]
                first_output = len(op.arguments) - function.outputs.data
                return op.arguments[:first_output], op.arguments[first_output:]
            case entry_ops.CopyOp():
                return [op.source], [op.target]
            case entry_ops.BindOp():
                return [op.source], []
            case entry_ops.IfOp():
                return [op.condition], []
            case entry_ops.LoopOp():
                return [value for value in (op.trip_count, op.condition) if value is not None], []
            case _:
                return [], []

    def _split_if(self, op: entry_ops.IfOp, pending: Pending) -> None:
        self._meet(op, self._read_by_all([op.condition]), pending)
        for region in op.regions:
            self._split_region(region, pending.copy())
        pending.clear()

    def _split_loop(self, op: entry_ops.LoopOp, pending: Pending) -> None:
        self._meet(op, self._read_by_all(self._touched(op)[0]), pending)
        # In later iterations only the condition has been read since the barrier at the end of the
        # body; in the first one, also what came before. Without iterations, that is still pending.
        self._split_region(op.body, pending.copy())

    def _split_region(self, region: Region, pending: Pending) -> None:
        """A region that ends with a barrier: buffers are released there, and loops start again."""
        self.split(region.block, pending)
        last = region.block.last_op
        assert last is not None
        if not pending.is_empty:
            region.block.insert_op_before(entry_ops.BarrierOp(), last)

    def _meet(self, op: Operation, access: BufferAccess, pending: Pending) -> None:
        """Put a barrier before the op if its access needs one."""
        if pending.conflicts(access):
            # Right after the awaited op, so that allocations in between come after the barrier.
            while isinstance(op.prev_op, _AT_ONCE):
                op = op.prev_op
            parent = op.parent
            assert parent is not None
            parent.insert_op_before(entry_ops.BarrierOp(), op)
            pending.clear()
        pending.add(access)

    def _read_by_all(self, values: Iterable[SSAValue]) -> BufferAccess:
        return BufferAccess(self._rooted(values), frozenset(), by_first=False)

    def _rooted(self, values: Iterable[SSAValue]) -> frozenset[SSAValue]:
        return frozenset(root for value in values for root in self._roots[value])


def _within(kind: type[entry_ops.OnceOp | entry_ops.ShareOp], op: Operation) -> Operation:
    """Wrap the op in a region, at its position."""
    parent = op.parent
    assert parent is not None
    last = kernel.YieldOp()
    outer = kind(Region(Block([last])))
    outer.location = op.location
    parent.insert_op_before(outer, op)
    op.detach()
    outer.body.block.insert_op_before(op, last)
    return outer


@dataclass(frozen=True)
class ParallelizePass(ModulePass):
    """
    Let every thread run the entry function.

    A kernel that consists of parallel loops, none of which touches the stores of another, takes
    the number of a part and the number of parts as symbols, and computes one part of each loop;
    threads share the parts of a call. One whose loops do, as vectors at an end that overlap those
    before, is divided into several, called one after the other; what is done between loops, such as
    the last of all squares, is a loop of one iteration for that. Kernels that are too small, or
    contain other ops, are left to the first thread, and so are copies. Where the iterations of a
    loop consist of loops that may be shared as well, those are if threads then read what they have
    written themselves, such as the same rows of an image, and that saves more time than parts that
    are less even take; what other loops add to the same memory, as its border, is shared alike.
    There is a barrier before an op that reads or writes data that other threads may not have
    finished, or overwrites data that they may still read, and at the end of every region. All
    threads meet after the end of the entry function.

    Consecutive ops of the first thread form one region, with the branches and loops of the entry
    function in which nothing is shared. An entry function that shares nothing at all stays
    unchanged, for one thread, and so does one with little work.

    Which thread takes a part does not affect the result: each element is computed by the part that
    its index belongs to.
    """

    name = "parallelize"

    worth: int | None = None
    """The fewest steps for which a kernel is split; the target's by default."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None:
            return
        functions = lowered_functions(op, self.name)
        entry.takes_pool = UnitAttr()
        repeated = _called_in_loops(entry)
        options = options_of(ctx)
        target = target_named(options.target)
        costs = target.costs
        fewest = costs.shared_steps if self.worth is None else self.worth
        steps = {name: steps_of_block(f.body.block, target) for name, f in functions.items()}
        calls = (op for op in all_ops(entry) if isinstance(op, entry_ops.CallOp))
        total = sum(steps[call.callee.root_reference.data] for call in calls)
        fewest_of_run = fewest * costs.shared_steps_of_run
        if not may_lag(entry):
            fewest_of_run *= costs.shared_steps_in_loops
        if not repeated and total < fewest_of_run:
            return
        loops: dict[str, Sequence[kernel.ForOp]] = {}
        for name, function in list(functions.items()):
            worth = fewest * (costs.shared_steps_in_loops if name in repeated else 1)
            if steps[name] < worth:
                continue
            for part in _divided(function, functions, entry):
                found = parallel_loops(part)
                if sum(map(estimated_trips, found)) < 2:
                    continue
                if steps_of_block(part.body.block, target) >= worth:
                    loops[part.sym_name.data] = found
        self._share(entry, functions, loops, Caches(find_roots(entry), target, options.threads))

        def is_shared(call: entry_ops.CallOp) -> bool:
            return functions[call.callee.root_reference.data].parallel is not None

        if not any(isinstance(op, entry_ops.CallOp) and is_shared(op) for op in all_ops(entry)):
            return
        gather_runs(entry.body.block, is_shared)
        WorkSharer(functions, find_roots(entry)).split(entry.body.block, Pending())
        entry.parallel = UnitAttr()

    def _share(
        self,
        entry: EntryOp,
        functions: Mapping[str, kernel.FuncOp],
        loops: Mapping[str, Sequence[kernel.ForOp]],
        caches: Caches,
    ) -> None:
        """Split functions, as is best where they are called first."""
        spans: dict[str, Spans] = {}
        for call in [op for op in all_ops(entry) if isinstance(op, entry_ops.CallOp)]:
            name = call.callee.root_reference.data
            function = functions[name]
            if name in loops and function.parallel is None:
                best = caches.best(call, function, loops[name])
                chosen = [best[loop] for loop in loops[name]]
                spans[name] = {k: v for each in reversed(chosen) for k, v in each.spans.items()}
                shared = [
                    collapsed(loop, caches.threads) if loop in loops[name] else loop
                    for each in chosen
                    for loop in each.loops
                ]
                split_function(function, shared, caches.target)
            caches.note(call, function, spans.get(name, {}))


def _divided(
    function: kernel.FuncOp, functions: dict[str, kernel.FuncOp], entry: EntryOp
) -> list[kernel.FuncOp]:
    """
    A function, or, if its loops have to run in order, one for each group, called in order; itself
    alone if it has no loop to share.
    """
    tops = [op for op in function.body.block.ops if isinstance(op, kernel.ForOp)]
    if not any(op.parallel.value.data and estimated_trips(op) > 1 for op in tops):
        return [function]
    enclose_statements(function)
    if len(groups := groups_of(function)) < 2:
        return [function]
    parts = divide(function, groups, functions)
    name = function.sym_name.data
    for call in [op for op in all_ops(entry) if isinstance(op, entry_ops.CallOp)]:
        if call.callee.root_reference.data != name:
            continue
        block = call.parent
        assert block is not None
        after: Operation = call
        for part in parts[1:]:
            other = call.clone()
            other.location = call.location
            other.properties["callee"] = SymbolRefAttr(part.sym_name.data)
            other.multiply_adds = None  # they are counted where the first part is called
            other.moved = None if other.moved is None else DimsAttr.of([0])
            block.insert_op_after(other, after)
            after = other
    return parts


def may_lag(entry: EntryOp) -> bool:
    """
    True if a thread may reach an op of the entry function late, when others are past barriers after
    it.

    Such a thread finds no part left, and the data that its control flow reads must be unchanged:
    weights and inputs. No result of control flow and no memory from an allocator is passed on.
    """
    inputs = entry.input_args
    for op in all_ops(entry):
        match op:
            case entry_ops.AllocOp() if op.dynamic.value.data:
                return False
            case entry_ops.IfOp():
                read = [op.condition]
            case entry_ops.LoopOp():
                read = [value for value in (op.trip_count, op.condition) if value is not None]
            case entry_ops.BindOp():
                read = [op.source]
            case _:
                read = []
        if is_done_once(op):
            continue
        read = [outside_sections(value) for value in read]
        if not all(
            value in inputs or isinstance(value.owner, entry_ops.WeightOp) for value in read
        ):
            return False
    return True


def is_done_once(op: Operation) -> bool:
    """True if only the first thread executes the op."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, entry_ops.OnceOp):
        parent = parent.parent_op()
    return parent is not None


def _called_in_loops(entry: EntryOp) -> set[str]:
    """The kernels called in loops of the entry function."""
    return {
        call.callee.root_reference.data
        for loop in all_ops(entry)
        if isinstance(loop, entry_ops.LoopOp)
        for call in all_ops(loop.body)
        if isinstance(call, entry_ops.CallOp)
    }
