"""Campaigns: what is wrong is found, shrunk and told once, wherever graphs are checked."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from fuzz import fuzz_onnx, onnx_shrinking
from fuzz.fuzzing import Batch, Outcome, Tally, deal
from fuzz.onnx_graphs import Program
from lowerdeck.engines import Engine, InProcess, LostTask, Processes


def program_of(seed: int) -> Program:
    """Of two operators one is Max in two of three graphs."""
    ops = [("Neg", "Max"), ("Max", "Neg"), ("Neg", "Relu")][seed % 3]
    nodes = [
        helper.make_node(op, [below, "k"] if op == "Max" else [below], [above])
        for op, below, above in zip(ops, "xa", "ac", strict=True)
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [3])],
        [helper.make_tensor("k", TensorProto.FLOAT, [], [1.0])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return Program(model, {"x": np.array([-1, 0, 1], np.float32)})


def planted(batch: Batch) -> list[Outcome]:
    """What is said of graphs by a compiler that takes each Max for a Min."""
    own = fuzz_onnx.import_model

    def wrong(model: onnx.ModelProto) -> Any:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        for node in copy.graph.node:
            node.op_type = "Min" if node.op_type == "Max" else node.op_type
        return own(copy)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fuzz_onnx, "import_model", wrong)
        patch.setattr(fuzz_onnx, "random_program", program_of)
        patch.setattr(onnx_shrinking, "_MAX_TRIALS", 4)
        return fuzz_onnx.check_batch(batch)


def found_by(
    engine: Engine, batches: Sequence[Sequence[int]], out: Path, shown: pytest.CaptureFixture[str]
) -> tuple[str, str, list[str]]:
    """What is told of a planted fault, in the end, and the files that are written."""
    tally = Tally(("ok", "differs", "invalid"), out)
    deal(engine, planted, batches, tally, fuzz_onnx.died)
    told = shown.readouterr().out
    assert tally.conclude() == 1
    return told, shown.readouterr().out, sorted(path.name for path in out.iterdir())


BATCHES = [[0, 1], [2, 3]]


def test_a_planted_fault_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told, summary, files = found_by(Processes(2), BATCHES, tmp_path, capsys)
    wrong = [line for line in told.splitlines() if ": wrong" in line]
    assert [line.partition(": ")[2] for line in wrong] == [
        "wrong (Max): core: Max gives another value"
    ]
    assert "     3 wrong: core: Max gives another value (first 0)" in summary
    assert summary.endswith("3 wrong, 1 ok\n")
    assert {name.partition(".")[2] for name in files} == {"onnx", "npz", "graph.txt", "txt"}


def test_a_planted_fault_on_ray(
    cluster: Engine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pickling: Any = pytest.importorskip("ray.cloudpickle")
    pickling.register_pickle_by_value(sys.modules[__name__])  # a test has no name to import
    told, summary, _ = found_by(cluster, BATCHES, tmp_path / "a", capsys)
    assert told.count(": wrong (Max): core: Max gives another value") == 1
    assert summary == found_by(Processes(1), BATCHES, tmp_path / "b", capsys)[1]


# Engines


def fate(number: int) -> int:
    """What tests of engines do."""
    if number == 3:
        raise ValueError("three")
    if number == 4:
        os._exit(1)
    if number == 5:
        time.sleep(60)
    return number * number


def fates(engine: Engine, numbers: Sequence[int]) -> dict[int, Any]:
    return {
        number: future.result() if (error := future.exception()) is None else type(error)
        for number, future in engine.deal(fate, numbers, seconds=2.0)
    }


EXPECTED = {0: 0, 1: 1, 2: 4, 3: ValueError, 4: LostTask, 5: LostTask, 6: 36}


def test_processes_end_one_task_alone() -> None:
    start = time.monotonic()
    assert fates(Processes(2), range(7)) == EXPECTED
    assert fates(InProcess(), range(4)) == {k: EXPECTED[k] for k in range(4)}
    assert time.monotonic() - start < 40


def test_lost_tasks_on_ray(cluster: Engine) -> None:
    pickling: Any = pytest.importorskip("ray.cloudpickle")
    pickling.register_pickle_by_value(sys.modules[__name__])
    assert fates(cluster, range(7)) == EXPECTED


def test_tasks_are_drawn_as_there_is_room() -> None:
    done: list[int] = []

    def tasks() -> Any:
        for number in range(3):
            assert len(done) >= number
            yield number

    for number, _ in Processes(1).deal(fate, tasks()):
        done.append(number)
    assert done == [0, 1, 2]
