"""The fuzzer of TensorFlow Lite models: a few graphs, and that it sees what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fuzz.fuzz_tflite import check, difference
from fuzz.fuzzing import QUICK
from fuzz.tflite_graphs import random_program
from fuzz.tflite_nodes import RECIPES
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
    path.write_bytes(random_program(7, RECIPES, wide=True).data)
    graph = Model(str(path)).subgraph(0)
    assert set(one.maker.values()) == {node.op_type for node in graph.nodes}
    assert len(graph.outputs) == sum(len(node.outputs) for node in graph.nodes)


def test_differences() -> None:
    two = np.array([[1, 2], [3, 4]], np.int8)
    assert not difference(two, two.copy())
    other = two + np.array([[0, 1], [0, 0]], np.int8)
    assert difference(other, two) == "1 of 4 integers: 3 at (0, 1), expected 2"
    assert difference(two.astype(np.int16), two).startswith("int16 (2, 2), expected int8")
    third = np.array([1, np.nan, np.inf], np.float32)
    assert not difference(third * np.float32(1 + 1e-6), third)
    assert difference(third, np.array([1, 0, np.inf], np.float32))
