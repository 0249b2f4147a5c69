"""What threads share is written by one of them, or split, and waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.buffer import driver, kernel
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import BindSymbolsOp, scalar
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import CountNonzeroOp, NonzeroOp
from lowerdeck.dialects.core.types import i64, tensor
from lowerdeck.dialects.interpret.buffer import find_driver
from lowerdeck.lowering.parallelize import THREAD
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.passes.options import LowerdeckContext

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    module_of,
    symbol,
    typed,
)

WAITED_FOR = (driver.CallOp, driver.OnceOp, driver.BindOp, driver.LoopOp, driver.IfOp)
"""Ops that write what other threads read, or read what others overwrite."""


def program(x: SSAValue, flag: SSAValue, trips: SSAValue) -> Sequence[SSAValue | Operation]:
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


@pytest.fixture
def run() -> kernel.FuncOp:
    """The driver of a program, made parallel."""
    types = [typed(np.int64, 8), typed(np.bool_), typed(np.int64)]
    module = module_of(types, program)
    for name in ("form-kernels", "bufferize", "parallelize"):
        ALL_PASSES[name]()().apply(LowerdeckContext(), module)
    module.verify()
    found = find_driver(module)
    assert found is not None
    return found


def test_all_wait_behind_what_one_may_write(run: kernel.FuncOp) -> None:
    counts: Counter[type[Operation]] = Counter()
    for op in run.walk():
        if isinstance(op, WAITED_FOR) and not isinstance(op.parent_op(), driver.OnceOp):
            assert isinstance(op.next_op, driver.BarrierOp), op.name
            counts[type(op)] += 1
    assert counts.keys() == set(WAITED_FOR)


def test_all_have_chosen_before_a_region_runs(run: kernel.FuncOp) -> None:
    for op in run.walk():
        if isinstance(op, driver.LoopOp | driver.IfOp):
            assert all(isinstance(r.block.first_op, driver.BarrierOp) for r in op.regions), op.name


def test_what_is_not_split_runs_once(run: kernel.FuncOp) -> None:
    alone = 0
    for op in run.walk():
        is_alone = isinstance(op.parent_op(), driver.OnceOp)
        alone += is_alone
        if isinstance(op, driver.CopyOp):
            assert is_alone
        if isinstance(op, driver.CallOp):
            assert is_alone != any(THREAD in share.symbols for share in op.symbols.data)
    assert alone
