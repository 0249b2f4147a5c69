"""The fuzzer of quantized graphs: a few graphs, that it sees what is wrong, and their exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.parser import parse_model

import lowerdeck
from fuzz import fuzz_quantized
from fuzz.fuzz_quantized import CWay, check, optimized_results, prepared
from fuzz.quantized_graphs import random_program
from fuzz.quantized_steps import NEAR, steps_apart, with_all_bytes

SEEDS = (3, 8, 13)


def test_graphs_of_fixed_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {seed: random_program(seed) for seed in SEEDS}
    way = CWay("c99").at(0)
    assert [item.status for item in check(programs, [way])] == ["ok"] * len(SEEDS)

    def other(program: Any) -> fuzz_quantized.Ready:
        found = prepared(program)
        want = {name: np.asarray(value) ^ 1 for name, value in found.want.items()}
        return fuzz_quantized.Ready(found.module, want)

    monkeypatch.setattr(fuzz_quantized, "prepared", other)
    assert [item.status for item in check({3: programs[3]}, [way])] == ["wrong"]


@pytest.mark.parametrize("turn", [0, 1])
def test_another_machine_is_emulated(turn: int) -> None:
    way = CWay("aarch64").at(turn)
    if (reason := way.obstacle) is not None:
        pytest.skip(reason)
    assert [item.status for item in check({8: random_program(8)}, [way])] == ["ok"]


def test_tiles_are_emulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With two threads they are asked for; what they give is what is compared."""
    way = CWay("x86-64-amx").at(2)
    if (reason := way.obstacle) is not None or not way.has_emulated_tiles:
        pytest.skip(reason or "the processor has tiles")
    programs = {seed: random_program(seed) for seed in (1, 8)}
    assert [item.status for item in check(programs, [way])] == ["ok", "ok"]
    text = fuzz_quantized.TILES.read_text()
    assert text.count("sum += ") == 1
    (wrong := tmp_path / "tiles.h").write_text(text.replace("sum += ", "sum -= "))
    monkeypatch.setattr(fuzz_quantized, "TILES", wrong)
    assert [item.status for item in check(programs, [way])] == ["wrong", "wrong"]


def test_in_four_batches_compilers_meet_numbers_of_threads() -> None:
    ways = [CWay.of("c99").at(turn) for turn in range(16)]
    assert len({(way.compiler, way.threads) for way in ways[:4]}) == 4
    assert {way.level for way in ways} == {"-O0", "-O1"}
    fixed = CWay.of("c99:clang:2").at(0)
    assert (fixed.compiler, fixed.threads) == ("clang", 2)


def test_each_step_is_that_of_float64() -> None:
    """One byte that is another one is seen where it is computed, and no tie is a fault."""
    program = random_program(8)
    every = dict(optimized_results(with_all_bytes(program.model), program.feed))
    known = {**program.feed, **every}
    assert max(steps_apart(program.model, known).values()) <= 0.5 + NEAR
    (node, *_) = [each for each in program.model.graph.node if each.op_type == "QuantizeLinear"]
    name = node.output[0]
    value = np.array(every[name])
    value.flat[0] ^= 1
    apart = steps_apart(program.model, {**known, name: value})
    assert apart[name] > 0.5 + NEAR


def test_ties_may_be_either_way() -> None:
    """0.5 is a tie, 0.51 is none."""
    for number, is_tie in ((0.5, True), (0.51, False)):
        text = f"""<ir_version: 8, opset_import: ["" : 17]> g (uint8[1] x) => (uint8[1] y)
          <float s = {{{number}}}, uint8 z = {{0}}, float one = {{1.0}}> {{
            f = DequantizeLinear (x, s, z)  r = Relu (f)  y = QuantizeLinear (r, one, z) }}"""
        model = parse_model(text)
        for found in (0, 1):
            known = {"x": np.array([1], np.uint8), "y": np.array([found], np.uint8)}
            is_right = steps_apart(model, known)["y"] <= 0.5 + NEAR
            assert is_right == (is_tie or found == 1)


def test_nothing_is_well_that_was_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fuzz_quantized.main(["--graphs", "1", "--ways", "c99:no-such-compiler"])
    said = capsys.readouterr().err
    assert "not compared: c99, no-such-compiler: no-such-compiler not found" in said
    assert "no C of these targets and compilers runs here" in said


def test_graphs_are_what_their_seeds_say() -> None:
    one, other = (random_program(5) for _ in range(2))
    assert one.model == other.model
    assert all((one.feed[name] == other.feed[name]).all() for name in one.feed)


@pytest.mark.parametrize("seed", SEEDS)
def test_exports_give_the_same_bytes(tmp_path: Path, seed: int) -> None:
    """When they are read again; onnxruntime may go by one step where it computes in floats."""
    ort = pytest.importorskip("onnxruntime")
    program = random_program(seed)
    source, path = (str(tmp_path / name) for name in ("source.onnx", "export.onnx"))
    Path(source).write_bytes(program.model.SerializeToString())
    lowerdeck.export(source, path)
    want, again = prepared(program).want, optimized_results(path, program.feed)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(list(want), dict(program.feed))
    for value, (name, expected) in zip(found, want.items(), strict=True):
        np.testing.assert_array_equal(again[name], expected)
        apart = np.abs(value.astype(np.int64) - expected)
        assert apart.max(initial=0) <= 1
