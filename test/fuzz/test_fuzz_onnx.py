"""The fuzzer of ONNX graphs: a few graphs of a fixed seed, and that it sees what is wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from fuzz import fuzz_onnx
from fuzz.fuzzing import QUICK, Mismatch, Outcome, Tally, deal
from fuzz.onnx_differences import doubt
from fuzz.onnx_graphs import Program, dims_of, input_types, random_program
from fuzz.onnx_shrinking import shrink
from lowerdeck.engines import Processes


def _program() -> Program:
    """y = relu(-x), z = y + 1."""
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Relu", ["n"], ["y"]),
        helper.make_node("Add", ["y", "one"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "yz"],
        [helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return Program(model, {"x": np.array([-1, 0, 2], np.float32)})


def test_graphs_of_a_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz_onnx.main(["--graphs", "30", "--seed", "200", "--out", str(tmp_path)]) == 0
    assert "ok" in capsys.readouterr().out


def test_a_seed_gives_one_graph() -> None:
    first, second = random_program(7), random_program(7)
    assert first.model.SerializeToString() == second.model.SerializeToString()
    assert first.feed.keys() == second.feed.keys()


def test_initializers_that_are_inputs_are_left_out() -> None:
    program = _program()
    program.model.graph.input.append(helper.make_tensor_value_info("one", TensorProto.FLOAT, []))
    (found,) = fuzz_onnx.check({0: program}, QUICK)
    assert (found.status, found.message) == ("ok", "")


def test_a_wrong_value_is_found() -> None:
    witnesses = fuzz_onnx.Witnesses(_program())
    right = {"y": np.array([1, 0, 0], np.float32), "z": np.array([2, 1, 1], np.float32)}
    assert witnesses.check("C", right) == []
    with pytest.raises(Mismatch, match="Relu gives another value"):
        witnesses.check("C", {**right, "y": np.array([1, 0, 0.001], np.float32)})
    with pytest.raises(Mismatch):
        witnesses.check("C", {**right, "y": np.array([1, 0], np.float32)})


def _top(x: list[float]) -> Program:
    """y = the two largest elements of x."""
    graph = helper.make_graph(
        [helper.make_node("TopK", ["x", "k"], ["y", "i"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [helper.make_tensor("k", TensorProto.INT64, [1], [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return Program(model, {"x": np.array(x, np.float32)})


def test_of_what_nobody_says_the_interpreter_decides() -> None:
    witnesses = fuzz_onnx.Witnesses(_top([1, np.nan, 0]))
    assert witnesses.names == []
    found = {"y": np.array([5, 4], np.float32)}
    assert witnesses.check("C", found) == []
    witnesses.compare(found, found)
    with pytest.raises(Mismatch, match="TopK gives another value than the interpreter"):
        witnesses.compare(found, {"y": np.array([5, 3], np.float32)})
    assert fuzz_onnx.Witnesses(_top([1, 2, 0])).names == ["y"]


def test_other_sizes_keep_the_symbols() -> None:
    programs = [random_program(seed) for seed in range(300, 330)]
    others = [program for program in programs if program.other is not None]
    assert others
    for program in others:
        sizes: dict[str, set[int]] = {}
        for name, value in input_types(program.model).items():
            shape = cast(Any, program.other)[name].shape
            for dim, size in zip(dims_of(value), shape, strict=True):
                sizes.setdefault(str(dim), set()).add(size)
        assert all(len(found) == 1 for found in sizes.values())
        assert all(k in found for k in range(99) if (found := sizes.get(str(k))))


def of_two_sizes(nodes: Sequence[onnx.NodeProto]) -> tuple[onnx.ModelProto, list[dict[str, Any]]]:
    """A model that scatters y1 [m, 2] by i [n, 2], with m equal to n, then one more."""
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("i", TensorProto.INT64, ["n", 2]),
            helper.make_tensor_value_info("y1", TensorProto.FLOAT, ["m", 2]),
        ],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [3, 4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    x, i = np.zeros((3, 4), np.float32), np.array([[0, 1], [1, 0]])
    return model, [{"x": x, "i": i, "y1": np.ones((n, 2), np.float32)} for n in (2, 3)]


def test_sizes_that_do_not_fit_are_refused_by_both() -> None:
    """By the specification y1 has the shape of i, which onnx.reference does not ask for."""
    nodes = [helper.make_node("ScatterElements", ["x", "i", "y1"], ["z"])]
    model, feeds = of_two_sizes(nodes)
    (found,) = fuzz_onnx.check({0: Program(model, feeds[0], feeds[1])}, QUICK)
    assert (found.status, found.message) == ("differs", "other sizes that do not fit together")
    (found,) = fuzz_onnx.check({0: Program(model, feeds[1])}, QUICK)
    assert found.status == "crashed"


@pytest.mark.parametrize(("killed", "status"), [("Witnesses", "invalid"), ("check", "lost")])
def test_who_ends_a_process(killed: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    monkeypatch.setattr(fuzz_onnx, killed, end)
    tally = Tally()
    deal(Processes(1), fuzz_onnx.check_batch, [[200, 201]], tally, fuzz_onnx.died)
    assert tally.counts == {status: 2}


def test_shrinking_leaves_one_node() -> None:
    def check(program: Program, seed: int) -> Outcome:
        ops = {node.op_type for node in program.model.graph.node}
        return Outcome(seed, "crashed" if "Relu" in ops else "ok")

    program, outcome = shrink(_program(), Outcome(0, "crashed"), check)
    assert [node.op_type for node in program.model.graph.node] == ["Relu"]
    assert [value.name for value in program.model.graph.input] == ["n"]
    assert (outcome.status, list(program.feed)) == ("crashed", ["n"])
    cast(Any, onnx.checker).check_model(program.model)


def test_a_witness_is_doubted_by_its_attributes() -> None:
    x = {"x": np.zeros((2, 3, 4), np.float32)}
    node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    assert "reference, Softmax" in doubt("reference", node, 11, x)
    assert not doubt("onnxruntime", node, 11, x)
    assert not doubt("reference", node, 13, x)


def test_a_witness_is_doubted_by_its_inputs() -> None:
    """In a body nobody knows them."""
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    node = helper.make_node("QLinearConv", names, ["y"])
    known = {name: np.zeros((), np.int8) for name in names}
    assert not doubt("reference", node, 10, known)
    assert "halves" in doubt("reference", node, 10, {**known, "yz": np.full((), 5, np.int8)})
    assert "halves" in doubt("reference", node, 10, {})
    erf = helper.make_node("Erf", ["x"], ["y"])
    assert not doubt("reference", erf, 13, {"x": np.zeros(2, np.float32)})
    assert "doubles" in doubt("reference", erf, 13, {})


def test_sizes_that_nothing_reads_need_not_fit() -> None:
    """C leaves out what the interpreter computes, and finds that it cannot."""
    scalar: list[int] = []
    body = helper.make_graph(
        [
            helper.make_node("Relu", ["scattered"], ["unused"]),
            helper.make_node("Identity", ["c"], ["d"]),
            helper.make_node("Neg", ["s"], ["t"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("k", TensorProto.INT64, scalar),
            helper.make_tensor_value_info("c", TensorProto.BOOL, scalar),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [3, 4]),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, scalar),
            helper.make_tensor_value_info("t", TensorProto.FLOAT, [3, 4]),
        ],
    )
    nodes = [
        helper.make_node("ScatterElements", ["x", "i", "y1"], ["scattered"]),
        helper.make_node("Constant", [], ["trip"], value_int=3),
        helper.make_node("Constant", [], ["true"], value=helper.make_tensor("", 9, [], [True])),
        helper.make_node("Loop", ["trip", "true", "x"], ["z"], body=body),
    ]
    model, feeds = of_two_sizes(nodes)
    (found,) = fuzz_onnx.check({0: Program(model, feeds[0], feeds[1])}, QUICK)
    assert (found.status, found.message) == ("differs", "sizes that nothing reads")
