"""
How the time of the passes of `core` grows with the number of ops.

    python -m bench.scaling_passes [--ops 10000 100000] [--only KIND,...] [--json F]

Modules of each kind go through `pre` and `opt`: a chain of maps with constants; many convolutions
and products that read one value; and random programs of `core_programs` side by side, with all
their control flow. Times are own CPU times per op, which other work on the machine changes little.
The table has those of all passes together, and of each pass whose time per op grows to more than
twice as much. Work that is linear in the ops has the ratio 1. The exit status is 1 if an op of the
largest module of a kind takes more than 1.5 times as long as one of the smallest.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from bench.machine import description
from bench.measuring import text_table
from fuzz.core_programs import Program, random_program
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp
from lowerdeck.dialects.core.types import f32, f64, rank_of, tensor
from lowerdeck.dialects.interpret import InterpretError, find_function, run_module
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.passes.machinery.pipeline import opt, pre

_ROUND = 8
"""Different programs in a module."""

_MOST_JOINED = 32
"""Operands of a concatenation of results."""

LIMIT = 1.5
"""How much more time than in the smallest module an op may take in the largest one."""


def _module(block: Block, results: Sequence[SSAValue]) -> ModuleOp:
    block.add_op(ReturnOp(*results))
    kind = FunctionType.from_lists(list(block.arg_types), [value.type for value in results])
    return ModuleOp([FuncOp("main", kind, Region(block))])


def chain(count: int) -> ModuleOp:
    """Maps one after the other, with constants, no two of which can become one."""
    block = Block(arg_types=[tensor(f32, [4, 6])])
    value: SSAValue = block.args[0]
    for k in range(count):
        if k % 2:
            op = (e.TanhOp, e.SinOp)[k // 2 % 2](value)
        else:
            block.add_op(constant := ConstantOp.of(np.full((6,), 0.5 + k, np.float32)))
            op = (e.AddOp, e.MulOp)[k // 2 % 2](value, constant.result)
        block.add_op(op)
        value = op.results[0]
    return _module(block, [value])


def wide(count: int) -> ModuleOp:
    """Convolutions and products that read one value and cannot become one, and their results."""
    block = Block(arg_types=[tensor(f32, [1, 2, 8]), tensor(f32, [3, 4])])
    weight = ConstantOp.of(np.ones((1, 2, 1), np.float32))
    block.add_op(weight)
    results: list[SSAValue] = []
    for k in range(count // 2):
        size = [k % 97, k // 97]
        conv = ConvOp(
            block.args[0], weight.result, strides=[1], dilations=[1], pads_begin=size[:1],
            pads_end=size[1:],
        )  # fmt: skip
        matrix = ConstantOp.of(np.full((4, 1), k, np.float32))
        product = MatmulOp(block.args[1], matrix.result)
        block.add_ops([conv, matrix, product])
        results += [conv.result, product.result]
    joined = [ConcatOp(results[0::2], 2), ConcatOp(results[1::2], 1)]
    block.add_ops(joined)
    return _module(block, [op.result for op in joined])


def programs(count: int) -> ModuleOp:
    """
    Random programs, each with inputs of its own, in rounds of the same ones.

    Their results meet in concatenations of a few each, as in models: an op of xDSL that changes
    one operand copies the list of all.
    """
    block, results = Block(), list[SSAValue]()
    first = found = 0
    while found < count:
        for random in map(Random, range(_ROUND)):
            first += 100
            program = random_program(random, first=first)
            if _runs(program):
                found += _append(find_function(program.module, "main"), block, results)
    parts = [_number(block, value) for value in results]
    while len(parts) > 1:
        groups = [parts[k : k + _MOST_JOINED] for k in range(0, len(parts), _MOST_JOINED)]
        joined = [ConcatOp(group, 0) for group in groups]
        block.add_ops(joined)
        parts = [op.result for op in joined]
    return _module(block, parts)


def _number(block: Block, value: SSAValue) -> SSAValue:
    """One number that is made of all elements of a value."""
    greatest = ReduceOp("max", value, list(range(rank_of(value))))
    real = e.CastOp(greatest.result, f64)
    alone = ReshapeOp(real.result, [1])
    block.add_ops([greatest, real, alone])
    return alone.result


def _runs(program: Program) -> bool:
    """False for a program that passes may refuse."""
    try:
        with np.errstate(all="ignore"):
            run_module(program.module, program.feeds[0])
    except InterpretError:
        return False
    return True


def _append(function: FuncOp, block: Block, results: list[SSAValue]) -> int:
    """Move the ops of a function to the end of a block; how many they are."""
    inner = function.body.block
    for argument in tuple(inner.args):
        argument.replace_all_uses_with(block.insert_arg(argument.type, len(block.args)))
    *ops, last = inner.ops
    results += last.operands
    for op in ops:
        op.detach()
        block.add_op(op)
    return sum(1 for op in ops for _ in op.walk())


KINDS: Mapping[str, Callable[[int], ModuleOp]] = {
    "chain": chain,
    "wide": wide,
    "programs": programs,
}


@dataclass
class Measurement:
    """One module through `pre` and `opt`."""

    kind: str
    ops: int
    """All of them, constants too, when it begins."""
    seconds: Mapping[str, float]
    """CPU time by pass; of a pass that runs several times, all together."""

    @property
    def total(self) -> float:
        """CPU time of all passes, by op."""
        return sum(self.seconds.values()) / self.ops


def measure(kind: str, module: ModuleOp) -> Measurement:
    """Run the passes on a module of a kind."""
    ops = sum(1 for _ in module.walk())
    context = LowerdeckContext(options=CompileOptions())
    seconds: dict[str, float] = {}
    gc.collect()
    gc.disable()  # it takes the longer, the more there is, whatever a pass does
    try:
        for name in [*pre(), *opt()]:
            pass_ = ALL_PASSES[name]()()
            start = time.process_time()
            pass_.apply(context, module)
            seconds[name] = seconds.get(name, 0.0) + time.process_time() - start
    finally:
        gc.enable()
    return Measurement(kind, ops, seconds)


def render(measurements: Sequence[Measurement]) -> str:
    """All passes by kind and size; and passes that grow."""
    rows: list[list[str]] = []
    for one in measurements:
        first = next(other for other in measurements if other.kind == one.kind)
        ratio = "" if one is first else f"{one.total / first.total:.2f}"
        rows.append([one.kind, "all", str(one.ops), f"{one.total * 1e6:.1f}", ratio])
        for name, seconds in one.seconds.items() if one is not first else ():
            own, before = seconds / one.ops, first.seconds[name] / first.ops
            if own > 2 * before and own > one.total / 100:
                ratio = f"{own / before:.2f}" if before else ""
                rows.append([one.kind, name, str(one.ops), f"{own * 1e6:.1f}", ratio])
    return text_table(("module", "pass", "ops", "us/op", "ratio"), rows)


def growths(measurements: Sequence[Measurement]) -> dict[str, float]:
    """By kind, how many times as long an op of the last module takes as one of the first."""
    found: dict[str, float] = {}
    for kind in dict.fromkeys(one.kind for one in measurements):
        own = [one for one in measurements if one.kind == kind]
        found[kind] = own[-1].total / own[0].total
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--ops", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--only", metavar="KIND,...", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--json", metavar="F")
    options = parser.parse_args(arguments)
    kinds = options.only.split(",") if options.only else list(KINDS)
    if unknown := sorted({*kinds} - {*KINDS}):
        raise SystemExit(f"no modules {', '.join(unknown)}; there are {', '.join(KINDS)}")
    found: list[Measurement] = []
    for kind in kinds:
        measure(kind, KINDS[kind](100))  # what happens once
        for count in options.ops:
            found.append(measure(kind, KINDS[kind](count)))
            print(f"{kind}: {count} ops done", file=sys.stderr, flush=True)
    print(render(found))
    if options.json is not None:
        report: dict[str, Any] = {"machine": description(), "growth": growths(found)}
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    return int(max(growths(found).values()) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
