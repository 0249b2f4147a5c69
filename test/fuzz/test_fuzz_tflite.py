"""The fuzzer of TensorFlow Lite models: a few graphs, and that it sees what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import pytest

import lowerdeck
from fuzz import fuzz_tflite
from fuzz.fuzz_tflite import check, difference, interpreted, legal
from fuzz.fuzzing import QUICK
from fuzz.tflite_graphs import Graph, Program, Scale, random_program
from fuzz.tflite_nodes import RECIPES
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends.tflite.model import Model


def test_graphs_of_a_fixed_seed() -> None:
    programs = {seed: random_program(seed, RECIPES) for seed in range(700, 706)}
    compiled = check(programs, QUICK, None, as_c=True)
    assert {item.status for item in compiled} <= {"ok", "refused"}
    interpreted = check(programs, QUICK, None, as_c=False)
    assert {(item.seed, item.status) for item in interpreted} == {
        (item.seed, item.status) for item in compiled
    }


def test_graphs_are_what_their_seeds_say(tmp_path: Path) -> None:
    one, other = (random_program(7, RECIPES) for _ in range(2))
    assert one.data == other.data
    path = tmp_path / "model.tflite"
    path.write_bytes(one.wide().data)
    graph = Model(str(path)).subgraph(0)
    assert set(one.maker.values()) == {node.op_type for node in graph.nodes}
    assert len(graph.outputs) == sum(len(node.outputs) for node in graph.nodes)


@pytest.mark.parametrize("seed", [7, 701, 705])
@pytest.mark.parametrize("is_wrong", [False, True])
def test_operators_alone(monkeypatch: pytest.MonkeyPatch, seed: int, is_wrong: bool) -> None:
    """A graph is right if each operator is, on its own, and wrong if one is not."""

    def run(programs: Mapping[int, Program], folder: Path, _python: str) -> None:
        for number, program in programs.items():
            calls = interpreted(Calls(legal(folder / f"{number}.tflite")[0]), program.feeds)
            arrays = {f"{k}/{name}": v for k, call in enumerate(calls) for name, v in call.items()}
            if is_wrong and number == len(programs) - 1:
                name, array = next(iter(arrays.items()))
                arrays[name] = (array + 1).astype(array.dtype)
            np.savez(folder / f"{number}.out.npz", **cast(Any, arrays))

    monkeypatch.setattr(fuzz_tflite, "in_litert", run)
    assert fuzz_tflite.agrees_by_operators(random_program(seed, RECIPES), "python") != is_wrong


def test_differences() -> None:
    two = np.array([[1, 2], [3, 4]], np.int8)
    assert not difference(two, two.copy())
    other = two + np.array([[0, 1], [0, 0]], np.int8)
    assert difference(other, two) == "1 of 4 integers: 3 at (0, 1), expected 2"
    assert difference(two.astype(np.int16), two).startswith("int16 (2, 2), expected int8")
    third = np.array([1, np.nan, np.inf], np.float32)
    assert not difference(third * np.float32(1 + 1e-6), third)
    assert difference(third, np.array([1, 0, np.inf], np.float32))


@pytest.mark.parametrize(
    ("size", "scale"), [(500, 0.003), (1000, 0.003), (1000, 0.1), (5000, 0.003)]
)
def test_rows_whose_sums_have_no_room(tmp_path: Path, size: int, scale: float) -> None:
    """
    The sum of the exponentials of more than 512 classes that are alike is divided by in more bits
    than an integer has, where the reference kernel stops: shares are below half a step.
    """
    graph = Graph(Random(0), np.random.default_rng(0))
    x = graph.input([1, size], "INT8", Scale((scale,), (11,)))
    shares = ([1, size], "INT8", Scale((1 / 256,), (-128,)))
    graph.op("SOFTMAX", [x], shares, options=("SoftmaxOptions", {"beta": 1.0}))
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.program().data)
    given = np.random.default_rng(1).integers(-40, 60, (1, size)).astype(np.int8)
    model = lowerdeck.compile(path, cache=False, target="c99")
    (found,) = model({model.inputs[0].name: given}).values()
    power = np.exp(scale * given.astype(np.float64))
    assert np.abs(found - (np.rint(256 * power / power.sum()) - 128)).max() <= 1
