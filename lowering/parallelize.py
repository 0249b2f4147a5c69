"""`parallelize`: every thread runs the driver, and each takes its share of the parallel loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import driver, kernel
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.bufferize import DRIVER
from lowerdeck.lowering.kernels.lower import is_parallel

THREAD, THREADS = "thread.id", "thread.count"
"""The symbols for a thread's number, from 0, and for how many there are; no dimension's name has a
dot."""

PARALLEL = "parallel"
"""The attribute of a function or a driver that threads share."""


def split_loop(function: kernel.FuncOp) -> None:
    """Give the function's loop the range that belongs to one thread."""
    (loop,) = (op for op in function.body.block.ops if isinstance(op, kernel.ForOp))
    count = len(function.symbols)
    thread, threads = Expr.symbol(f"s{count}"), Expr.symbol(f"s{count + 1}")
    lower, upper, step = loop.range.data
    size = upper - lower
    bounds = [lower + size * thread // threads, lower + size * (thread + 1) // threads]
    loop.properties["range"] = DimsAttr.of([*bounds, step])
    names = [*function.symbols, StringAttr(THREAD), StringAttr(THREADS)]
    function.properties["symbols"] = ArrayAttr(names)
    function.attributes[PARALLEL] = UnitAttr()


class DriverSplitter:
    """Puts barriers around what threads share, and leaves to the first what is not split."""

    def __init__(self, parallel: set[str]) -> None:
        self._parallel = parallel

    def split(self, block: Block) -> None:
        """Every op of a block, and of the blocks in it."""
        for op in list(block.ops):
            for region in op.regions:
                self.split(region.block)
                # All have read what chose this region before anyone overwrites it.
                first = region.block.first_op
                assert first is not None
                region.block.insert_op_before(driver.BarrierOp(), first)
            if isinstance(op, driver.CallOp) and op.callee.root_reference.data in self._parallel:
                shares = (*op.symbols.data, Expr.symbol(THREAD), Expr.symbol(THREADS))
                op.properties["symbols"] = DimsAttr(shares)
                self._wait_after(op)
            elif isinstance(op, driver.CallOp | driver.CopyOp):
                self._wait_after(self._only_once(op))
            elif isinstance(op, driver.BindOp | driver.LoopOp | driver.IfOp):
                self._wait_after(op)

    @staticmethod
    def _wait_after(op: Operation) -> None:
        parent = op.parent
        assert parent is not None
        parent.insert_op_after(driver.BarrierOp(), op)

    @staticmethod
    def _only_once(op: Operation) -> Operation:
        parent = op.parent
        assert parent is not None
        once = driver.OnceOp(Region(Block([kernel.YieldOp()])))
        once.location = op.location
        parent.insert_op_before(once, op)
        op.detach()
        last = once.body.block.last_op
        assert last is not None
        once.body.block.insert_op_before(op, last)
        return once


@dataclass(frozen=True)
class ParallelizePass(ModulePass):
    """
    Make the driver one that every thread runs.

    A kernel that is one parallel loop gets a thread's number and their count as symbols, and each
    thread runs an equal part of its iterations. Other kernels and copies are left to the first
    thread. A barrier follows everything that writes, and every read of a scalar that decides
    control flow.
    """

    name = "parallelize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.body.block.ops if isinstance(f, kernel.FuncOp)]
        kernels = [f for f in functions if f.sym_name.data != DRIVER and is_parallel(f)]
        for function in kernels:
            split_loop(function)
        for run in functions:
            if run.sym_name.data == DRIVER:
                DriverSplitter({f.sym_name.data for f in kernels}).split(run.body.block)
                run.attributes[PARALLEL] = UnitAttr()
