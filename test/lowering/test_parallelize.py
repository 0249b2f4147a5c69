"""Threads that share work never touch what another one writes without a barrier in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import find_entry
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import BindSymbolsOp, scalar
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import CountNonzeroOp, NonzeroOp
from lowerdeck.dialects.core.types import i64, tensor
from lowerdeck.lowering.entry.aliases import Roots, find_roots
from lowerdeck.lowering.entry.parallelize import ParallelizePass, is_done_once, may_lag
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    module_of,
    symbol,
    typed,
)


@dataclass(frozen=True)
class Touch:
    """Memory that an op reads or writes, and whether only the first thread does."""

    op: Operation
    root: SSAValue
    writes: bool
    by_first: bool

    def races(self, other: Touch) -> bool:
        """True if two threads may touch the same bytes at once, and one of them writes."""
        if not (self.writes or other.writes) or (self.by_first and other.by_first):
            return False
        if self.op is other.op and not self.by_first:
            # A kernel that threads share is split so that they do not meet.
            return False
        mine, others = _bytes_of(self.root), _bytes_of(other.root)
        if mine is None or others is None:
            return self.root is other.root
        return mine.start < others.stop and others.start < mine.stop


def _bytes_of(root: SSAValue) -> range | None:
    """Where in the workspace a buffer lies, if it does."""
    owner = root.owner
    if not isinstance(owner, entry_ops.AllocOp) or owner.offset is None:
        return None
    start = owner.offset.data[0].value
    size = ref_type(root).bytes.value
    assert start is not None
    assert size is not None
    return range(start, start + size)


def paths(block: Block) -> Iterator[list[Operation]]:
    """The orders in which ops may run: each branch, and loops up to two times."""
    found: list[list[Operation]] = [[]]
    for op in block.ops:
        match op:
            case entry_ops.IfOp():
                regions = [list(paths(region.block)) for region in op.regions]
                ways = [[op, *way] for region in regions for way in region]
            case entry_ops.LoopOp():
                body = list(paths(op.body.block))
                once = [[op, *way, op] for way in body]
                ways = [[op], *once, *([*a, *b[1:]] for a in once for b in once)]
            case entry_ops.OnceOp() | entry_ops.ShareOp():
                ways = list(paths(op.body.block))
            case _:
                ways = [[op]]
        found = [[*path, *way] for path in found for way in ways]
    yield from found


def touches(op: Operation, roots: Roots, functions: dict[str, kernel.FuncOp]) -> list[Touch]:
    """What an op touches."""
    by_first = is_done_once(op)

    def of(values: Sequence[SSAValue], writes: bool) -> list[Touch]:
        return [Touch(op, root, writes, by_first) for value in values for root in roots[value]]

    match op:
        case entry_ops.CallOp():
            split = len(op.arguments) - functions[op.callee.root_reference.data].outputs.data
            return of(op.arguments[:split], False) + of(op.arguments[split:], True)
        case entry_ops.CopyOp():
            return of([op.source], False) + of([op.target], True)
        case entry_ops.BindOp():
            return of([op.source], False)
        case entry_ops.IfOp():
            return of([op.condition], False)
        case entry_ops.LoopOp():
            return of([v for v in (op.trip_count, op.condition) if v is not None], False)
        case _:
            return []


def waits(op: Operation) -> bool:
    """True for ops at which all threads meet."""
    shares = isinstance(op, entry_ops.AllocOp) and bool(op.dynamic.value.data)
    return shares or isinstance(op, entry_ops.BarrierOp | entry_ops.CheckStatusOp)


def races(module: ModuleOp) -> list[str]:
    """What threads may do to each other on any path through an entry function that they share."""
    functions = kernel.functions_of(module)
    entry = find_entry(module)
    assert entry is not None
    assert entry.parallel is not None
    roots, found = find_roots(entry), dict[str, None]()
    for path in paths(entry.body.block):
        open_: list[Touch] = []
        for op in path:
            if waits(op):
                open_ = []
            new = touches(op, roots, functions)
            found.update({f"{t.op}\n{old.op}": None for t in new for old in open_ if t.races(old)})
            open_ += new
    return list(found)


def lowered(module: ModuleOp, *, planned: bool) -> ModuleOp:
    """With an entry function that threads share."""
    context = LowerdeckContext()
    for name in ("form-kernels", "fuse-epilogue", "bufferize", "lower-kernels"):
        ALL_PASSES[name]()().apply(context, module)
    ParallelizePass(worth=64).apply(context, module)
    if planned:
        ALL_PASSES["plan-memory"]()().apply(context, module)
    module.verify()
    return module


def control_flow(x: SSAValue, flag: SSAValue, trips: SSAValue) -> Sequence[SSAValue | Operation]:
    """Kernels that are split and one that is not, a size from data, an if in a loop."""
    shared = e.NegOp(x).result
    count = CountNonzeroOp(shared)
    BindSymbolsOp(count.result, ["count"])
    found = NonzeroOp(shared, symbol("count"))
    block = Block(arg_types=[tensor(i64, []), shared.type])
    with ImplicitBuilder(block):
        regions = [Region(Block()), Region(Block())]
        for region, op in zip(regions, (e.AbsOp, e.NegOp), strict=True):
            with ImplicitBuilder(region.block):
                YieldOp([op(block.args[1]).result])
        chosen = IfOp(flag, regions[0], regions[1]).results[0]
        total = ReduceOp("sum", chosen, [0]).result
        YieldOp([e.CompareOp("lt", total, scalar(9, i64).result).result, chosen])
    return [LoopOp(trips, flag, [shared], Region(block)).results[0], found]


def test_control_flow() -> None:
    types = [typed(np.int64, 512), typed(np.bool_), typed(np.int64)]
    module = lowered(module_of(types, control_flow), planned=False)
    assert not races(module)
    entry = find_entry(module)
    assert entry is not None
    around = {type(op.parent_op()) for op in entry.walk() if isinstance(op, entry_ops.CallOp)}
    assert around == {entry_ops.OnceOp, entry_ops.ShareOp}


@pytest.mark.parametrize("seed", range(30))
def test_branching_networks(seed: int) -> None:
    """Kernels of which some are split, whose buffers take the places of others."""
    rng = Random(seed)

    def body(*inputs: SSAValue) -> list[SSAValue]:
        values = {8: [inputs[0]], 2: [inputs[1]]}
        for _ in range(20):
            same = values[rng.choice([2, 8])]
            source = rng.choice(same[-4:])
            if rng.random() < 0.3:
                source = e.AddOp(source, rng.choice(same[-4:])).result
            same.append(SoftmaxOp(source, rng.randrange(2)).result)
        return [values[8][-1], values[2][-1]]

    module = module_of([typed(np.float32, 8, 8), typed(np.float32, 2, 2)], body)
    assert not races(lowered(module, planned=True))


def test_first_thread_waits_for_nobody_but_others() -> None:
    """Barriers are where there is something to wait for."""

    def body(x: SSAValue, y: SSAValue) -> list[SSAValue]:
        for _ in range(3):
            x, y = SoftmaxOp(x, 0).result, SoftmaxOp(y, 0).result
        return [x, y]

    module = lowered(
        module_of([typed(np.float32, 8, 8), typed(np.float32, 2, 2)], body), planned=False
    )
    entry = find_entry(module)
    assert entry is not None
    assert entry.parallel is not None
    assert len([op for op in entry.walk() if isinstance(op, entry_ops.BarrierOp)]) == 2


@pytest.mark.parametrize("computed", [False, True])
def test_late_threads(computed: bool) -> None:
    """A thread may be late where what it reads to find its way does not change."""

    def body(x: SSAValue, trips: SSAValue) -> list[SSAValue]:
        if computed:
            trips = e.AddOp(trips, trips).result
        block = Block(arg_types=[tensor(i64, []), x.type])
        with ImplicitBuilder(block):
            YieldOp([SoftmaxOp(block.args[1], 0).result])
        return [LoopOp(trips, None, [x], Region(block)).results[0]]

    types = [typed(np.float32, 20, 20), typed(np.int64)]
    entry = find_entry(lowered(module_of(types, body), planned=False))
    assert entry is not None
    assert entry.parallel is not None
    assert may_lag(entry) is not computed
