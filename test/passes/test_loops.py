"""Loops compute the same after the passes over them, and recurrent networks are those of ONNX."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

import lowerdeck
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import GatherOp, ReshapeOp, ScatterNdOp
from lowerdeck.dialects.core.types import f32, i1, i8, i32, i64, numpy_dtype, tensor
from lowerdeck.dialects.interpret import InterpretError, StepLimitError, run_module
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.frontends.tf1.import_ import import_graph
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext, recorder_of
from lowerdeck.passes.machinery.pipeline import PASSES
from models.recurrent import Network, dynamic_rnn, operator, outputs

LOOPS = ("count-iterations", "loop-to-scan", "hoist-invariants", "hoist-products", "dce")


def optimized(network: Network) -> ModuleOp:
    """The network in phase `optimized`."""
    module = import_graph(cast(Any, dynamic_rnn(network)), outputs=outputs(network))
    context = LowerdeckContext()
    register_dialects(context)
    run_to_phase(context, module, "optimized")
    return module


def named(network: Network, seed: int) -> dict[str, NDArray[Any]]:
    """Inputs by the names of their tensors."""
    return {f"{name}:0": value for name, value in network.drawn(seed).items()}


def ops(module: Operation, cls: type[Operation]) -> list[Operation]:
    """The ops of a class, with those in regions."""
    return [op for op in module.walk() if isinstance(op, cls)]


NETWORKS = [
    Network(cell, is_time_major=major, has_lengths=lengths, is_reversed=backward)
    for cell in ("lstm", "gru", "rnn")
    for major, lengths, backward in (
        (False, False, False),
        (True, False, True),
        (False, True, False),
        (True, True, True),
    )
]
NAMES = [
    "-".join([n.cell, *("major" * n.is_time_major, "lengths" * n.has_lengths)]) for n in NETWORKS
]


@pytest.mark.parametrize("network", NETWORKS, ids=NAMES)
def test_a_recurrent_network_of_tensorflow(network: Network) -> None:
    """The loop is counted, and the input's products are outside, whatever the cell is."""
    module = optimized(network)
    (loop,) = ops(module, LoopOp)
    assert isinstance(loop, LoopOp)
    assert loop.condition is None
    assert len(loop.inits) == network.states + network.has_lengths
    assert ops(loop, GatherOp) == []
    # With lengths the loop ends with the longest sequence, so zeros have to be there before.
    assert len(ops(loop, ScatterNdOp)) == network.has_lengths
    products = len(network.weights) // 2
    assert len(ops(loop, MatmulOp)) == products
    assert len(ops(module, MatmulOp)) == 2 * products
    for seed in range(4):
        found = cast("dict[str, Any]", run_module(module, named(network, seed)))
        for name, want in zip(outputs(network), network.expected(network.drawn(seed)), strict=True):
            np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_recurrent_network_is_the_operator_of_onnx(cell: str) -> None:
    """The same ops outside and inside of the loop, and the same numbers in C."""
    network = Network(cell, steps=6, batch=3, hidden=8, is_time_major=True)
    inputs = network.drawn(5)
    one = lowerdeck.compile(dynamic_rnn(network), outputs=outputs(network), cache=False)
    other = lowerdeck.compile(operator(network), cache=False)
    found, want = one({"x:0": inputs["x"]}), other(inputs)
    for name, value in zip(outputs(network), network.expected(inputs), strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)
        again = want[{"y:0": "y4", "h:0": "h3", "c:0": "c3"}[name]]
        np.testing.assert_allclose(found[name], again.reshape(value.shape), rtol=1e-5, atol=1e-6)


def test_lengths_in_c() -> None:
    network = replace(NETWORKS[2], steps=7, batch=4)
    model = lowerdeck.compile(dynamic_rnn(network), outputs=outputs(network), cache=False)
    for seed in range(4):
        found = model(named(network, seed))
        for name, want in zip(outputs(network), network.expected(network.drawn(seed)), strict=True):
            np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=1e-6)


# Loops at random

TYPES: list[Attribute] = [i8, i32, i64]


class Counting:
    """
    A loop that counts, drawn at random: type, start, step, comparison and its sides, bound, which
    number is compared, the first condition, and a trip count. What the counters were is the result.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.outer = Block(arg_types=[tensor(i8, []), tensor(i32, []), tensor(i64, [])])
        self.inner = Block(arg_types=[tensor(i64, [])])

    def add(self, block: Block, op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    def module(self) -> ModuleOp:
        draw, outer, inner = self.random, self.outer, self.inner
        inits: list[SSAValue] = [self.add(outer, scalar(0, f32))]
        total = inner.insert_arg(tensor(f32, []), 1)
        tests: list[SSAValue] = []
        firsts: list[SSAValue] = []
        afters: list[SSAValue] = []
        for _ in range(draw.choice([1, 1, 2])):
            element = draw.choice(TYPES)
            init, after, test, first = self._counter(element)
            inits.append(init)
            afters.append(after)
            tests.append(test)
            firsts.append(first)
            as_float = self.add(inner, e.CastOp(inner.args[-1], f32))
            # Not symmetric in the iterations, so that their number and order count.
            half = self.add(inner, scalar(0.5, f32))
            total = self.add(inner, e.AddOp(self.add(inner, e.MulOp(total, half)), as_float))
        going = self._all(inner, tests)
        start = draw.choice(
            [self._all(outer, firsts), self.add(outer, scalar(True, i1)), firsts[0]]
        )
        limit = draw.choice([None, 4, 40, 40])
        trips = None if limit is None else self.add(outer, scalar(limit, i64))
        inner.add_op(YieldOp([going, total, *afters]))
        loop = LoopOp(trips, start, inits, Region(inner))
        outer.add_ops([loop, ReturnOp(*loop.results)])
        types = ([arg.type for arg in outer.args], [result.type for result in loop.results])
        return ModuleOp([FuncOp("main", types, Region(outer))])

    def _all(self, block: Block, values: list[SSAValue]) -> SSAValue:
        result = values[0]
        for value in values[1:]:
            result = self.add(block, e.AndOp(result, value))
        return result

    def _counter(self, element: Attribute) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
        draw, outer, inner = self.random, self.outer, self.inner
        step = draw.choice([1, 1, 1, 2, 3, -1, -2])
        start = draw.choice([0, 0, 1, 5, -3, 120, -120])
        init = self.add(outer, scalar(start, element))
        argument = inner.insert_arg(init.type, len(inner.args))
        if draw.random() < 0.3:
            amount = self.add(inner, scalar(-step, element))
            after = self.add(inner, e.SubOp(argument, amount))
        else:
            amount = self.add(inner, scalar(step, element))
            after = self.add(inner, e.AddOp(*draw.sample([argument, amount], 2)))
        number = start + step * draw.choice([2, 3, 7])
        bound = draw.choice(
            [
                self.add(outer, scalar(int(np.clip(number, -128, 127)), element)),
                outer.args[TYPES.index(element)],
            ]
        )
        usual = (Predicate.LT, Predicate.LE) if step > 0 else (Predicate.GT, Predicate.GE)
        predicate = draw.choice([*usual * 4, *usual[:1] * 6, Predicate.NE, Predicate.GE])
        tested = draw.choice([after, after, after, argument])
        test = self.add(inner, self._compare(predicate, tested, bound))
        other = int(np.clip(start + draw.choice([0, 0, 0, 1, -1, 7 * step]), -128, 127))
        init_or_other = init if other == start else self.add(outer, scalar(other, element))
        first = self.add(outer, self._compare(predicate, init_or_other, bound))
        return init, after, test, first

    def _compare(self, predicate: Predicate, value: SSAValue, bound: SSAValue) -> Operation:
        mirrored = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "ne": "ne"}
        if self.random.random() < 0.3:
            return e.CompareOp(mirrored[predicate], bound, value)
        return e.CompareOp(predicate, value, bound)


def _run(module: ModuleOp, inputs: dict[str, Any]) -> list[Any] | None:
    """The results; None if the loop does not end soon."""
    try:
        found = run_module(module, inputs, max_steps=4000)
    except StepLimitError:
        return None
    return list(cast(Any, found).values())


def test_counting_loops_at_random() -> None:
    context = LowerdeckContext()
    counted, left, compared = 0, 0, 0
    for seed in range(150):
        module = Counting(seed).module()
        module.verify()
        rng = np.random.default_rng(seed)
        before = module.clone()
        for name in LOOPS:
            PASSES[name]()().apply(context, module)
        module.verify()
        (loop,) = ops(module, LoopOp) or [None]
        is_counted = loop is None or cast(LoopOp, loop).condition is None
        counted, left = counted + is_counted, left + (not is_counted)
        for _ in range(4):
            numbers = [rng.integers(-6, 9), rng.choice([-128, 127, 0, 1])]
            inputs = {
                f"{k}": np.array(rng.choice(numbers), numpy_dtype(element))
                for k, element in enumerate(TYPES)
            }
            if (want := _run(before, inputs)) is None:
                continue
            compared += 1
            found = _run(module, inputs)
            assert found is not None
            for one, other in zip(found, want, strict=True):
                np.testing.assert_array_equal(one, other)
    assert counted > 40
    assert left > 40
    assert compared > 400
    assert recorder_of(context).rewrites > counted


def test_an_index_outside_in_a_loop_that_does_not_run() -> None:
    """The gather would be an error; nothing reads the index where the loop has no iteration."""
    outer = Block(arg_types=[tensor(f32, [3]), tensor(i64, [1]), tensor(i64, [])])
    x, index, trips = outer.args
    inner = Block(arg_types=[tensor(i64, []), tensor(f32, [1])])
    part = GatherOp(x, index, 0)
    twice = e.ExpOp(part.result)
    total = e.AddOp(inner.args[1], twice.result)
    inner.add_ops([part, twice, total, YieldOp([total.result])])
    zero = ConstantOp.of(np.zeros(1, np.float32))
    loop = LoopOp(trips, None, [zero.result], Region(inner))
    result = ReshapeOp(loop.results[0], [1])
    outer.add_ops([zero, loop, result, ReturnOp(result.result)])
    types = ([arg.type for arg in outer.args], [result.result.type])
    module = ModuleOp([FuncOp("main", types, Region(outer))])
    for name in LOOPS:
        PASSES[name]()().apply(LowerdeckContext(), module)
    inputs = {"0": np.ones(3, np.float32), "1": np.array([7])}
    assert _run(module, {**inputs, "2": np.array(0)}) == [0]
    with pytest.raises(InterpretError):
        run_module(module, {**inputs, "2": np.array(1)})
