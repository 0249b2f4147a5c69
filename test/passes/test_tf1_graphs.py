"""Random cyclic graphs, raised and compiled, compute what TensorFlow's executor computes."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest
from xdsl.context import Context

from fuzz.fuzz_tf1 import as_text, check, expected, imported, shrink
from fuzz.tf1_graphs import ALWAYS, Frame, Generator, Program, Size, Value, random_program
from lowerdeck.frontends.tf1 import graph_pb2
from lowerdeck.passes.control_flow import RaiseTf1ControlFlowPass


def _raised(program: Program) -> str:
    module = imported(program)
    RaiseTf1ControlFlowPass().apply(Context(), module)
    return str(module)


def test_graphs_in_three_ways_and_in_onnxruntime() -> None:
    programs = {seed: random_program(seed) for seed in range(6)}
    outcomes = check(programs, onnx=2)
    assert len(outcomes) == len(programs)
    assert [outcome for outcome in outcomes if outcome.status != "ok"] == []


@pytest.mark.parametrize("seed", range(100, 110))
def test_the_order_of_nodes_means_nothing(seed: int) -> None:
    program = random_program(seed, Size(nodes=80))
    graph = graph_pb2.GraphDef.FromString(program.graph.SerializeToString())
    nodes = list(graph.node)
    Random(seed).shuffle(nodes)
    del graph.node[:]
    graph.node.extend(nodes)
    shuffled = Program(graph, program.fetches, program.feeds)
    assert _raised(shuffled) == _raised(program)


def test_the_same_seed_gives_the_same_graph() -> None:
    first, second = random_program(7), random_program(7)
    assert first.graph == second.graph
    assert first.fetches == second.fetches


def test_what_enters_a_loop_is_alive_as_it_is_outside() -> None:
    """Be the loop run or not: an Exit of what is made of it would be, too."""
    generator = Generator(Random(0), Size())
    predicate = Value("p", "b", ALWAYS, generator.atom())
    loop = Frame(Frame(None, ALWAYS), predicate.truth, "w", depth=1)
    x, p = (generator.bring(loop, v) for v in (Value("x", "f", ALWAYS), predicate))
    no, yes = generator.switch(loop, x, p)
    assert [v.when for v in (x, p)] == [ALWAYS, ALWAYS]
    assert [v.when for v in (no, yes)] == [ALWAYS & ~predicate.truth, predicate.truth]
    assert generator.op(loop, "Neg", [x], "f").when == ALWAYS


def test_what_is_wrong_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a raise that takes branches the wrong way round, graphs are wrong, small and written."""
    from lowerdeck.passes.control_flow import emit

    make: Any = emit.IfOp

    def swapped(condition: Any, yes: Any, no: Any, **options: Any) -> Any:
        return make(condition, no, yes, **options)

    program = random_program(3, Size(steps=3, nodes=24))
    monkeypatch.setattr(emit, "IfOp", swapped)
    (outcome,) = check({3: program})
    assert outcome.status == "wrong"
    small = shrink(program, outcome)
    assert len(small.fetches) == 1
    assert len(small.graph.node) < len(program.graph.node)
    assert check({3: small})[0].status == "wrong"
    text = as_text(small, outcome)
    assert text.startswith("# wrong\n")
    monkeypatch.undo()
    assert check({3: small})[0].status == "ok"
    assert cast(Any, expected(small))
