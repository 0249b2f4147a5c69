"""Tuning: which rank a kernel gets, that it is kept, and that the numbers stay what they are."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.utils.exceptions import PassFailedException

from lowerdeck import tune as tune_module
from lowerdeck.compiler import CompileOptions, compile_with, import_and_lower
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.lowering.targets import machine_key
from lowerdeck.schedules import Database, Time
from lowerdeck.tools.lowerdeck import main
from lowerdeck.tune import (
    Kernel,
    best_ranks,
    kernel_of,
    kernels_of,
    read_schedules,
    schedules_from,
    spread_of,
    tune,
    write_schedules,
)

ROWS, DEPTH, COLUMNS = 24, 40, 64


@pytest.fixture
def model(tmp_path: Path) -> str:
    """Two products of one shape and one of another."""
    rng = np.random.default_rng(0)
    shapes = {"a": (DEPTH, COLUMNS), "b": (COLUMNS, DEPTH), "c": (DEPTH, COLUMNS)}
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    chain = ["x", "p", "q", "y"]
    nodes = [
        helper.make_node("MatMul", [chain[k], name], [chain[k + 1]])
        for k, name in enumerate(shapes)
    ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [ROWS, columns])
        for name, columns in (("x", DEPTH), ("y", COLUMNS))
    ]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    path = tmp_path / "products.onnx"
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    cast(Any, onnx).save(proto, str(path))
    return str(path)


def test_a_kernel_leaves_the_rule_only_for_a_gain() -> None:
    by_rule = {"slow": 1.0, "best": 1.0, "level": 1.0, "alone": 1.0}
    others = {
        1: {"slow": 0.9, "best": 1.1, "level": 0.99},
        2: {"slow": 0.8, "best": 1.2, "level": 0.985, "stranger": 0.1},
    }
    assert best_ranks({0: by_rule, **others}) == {"slow": 2}


def schedules(path: str, options: CompileOptions) -> list[str]:
    module, _ = import_and_lower(path, "kernels", options)
    return [str(op.schedule) for op in module.walk() if isinstance(op, KernelOp)]


def scheduled(path: str, options: CompileOptions, rank: int = 0) -> dict[str, str]:
    """The schedules of kernels by name, as text."""
    module, _ = import_and_lower(path, "kernels", replace(options, rank=rank))
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    return {k.sym_name.data: str(k.schedule.data) for k in kernels if k.schedule is not None}


def test_ranks_are_by_the_first_of_equal_kernels(model: str) -> None:
    options = CompileOptions(target="x86-64-v3")
    first, second, third = schedules(model, options)
    assert first == third
    everywhere = schedules(model, CompileOptions(target="x86-64-v3", rank=2))
    assert everywhere[1] != second
    asked = f"24x40xf32 40x64xf32 -> 24x64xf32: {scheduled(model, options, rank=2)['matmul_0']}"
    changed = replace(options, schedules={"matmul_0": asked})
    assert schedules(model, changed)[1] == second
    assert schedules(model, changed)[0] == schedules(model, changed)[2] == everywhere[0] != first
    assert not CompileOptions().is_tuned
    assert changed.key != options.key


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "matmul_9",
            "24x40xf32 40x64xf32 -> 24x64xf32: {}",
            r"\['matmul_9'\], which are no kernels",
        ),
        ("matmul_0", "24x41xf32 41x64xf32 -> 24x64xf32: {}", "cannot run as asked"),
        ("matmul_0", "24x40xf32 40x64xf32 -> 24x64xf32: {} 7", "cannot run as asked"),
    ],
)
def test_stale_schedules_are_refused(model: str, name: str, text: str, problem: str) -> None:
    options = CompileOptions(target="x86-64-v3")
    asked = text.format(scheduled(model, options)["matmul_0"])
    with pytest.raises(PassFailedException, match=f"{problem}.*: tune again"):
        schedules(model, replace(options, schedules={name: asked}))


def test_files_of_schedules(tmp_path: Path) -> None:
    path = str(tmp_path / "s.json")
    write_schedules(path, {"conv_0": "4 -> 4: row_maps"})
    assert read_schedules(path) == {"conv_0": "4 -> 4: row_maps"}
    for text in ("{", "[]", '{"lowerdeck_schedules": 0, "schedules": {}}'):
        Path(path).write_text(text)
        with pytest.raises(ValueError, match="s"):
            read_schedules(path)
    Path(path).write_text('{"lowerdeck_schedules": 1, "schedules": {"conv_0": 2}}')
    with pytest.raises(ValueError, match="damaged"):
        read_schedules(path)


def test_functions_that_overwrite_an_operand_belong_to_their_kernel() -> None:
    kernels = ["add_0", "add_0_over_1"]
    assert kernel_of("add_0", kernels) == "add_0"
    assert kernel_of("add_0_over_1_over_2", kernels) == "add_0_over_1"
    assert kernel_of("add_0_over_0", kernels) == "add_0"
    assert kernel_of("add_0_over_0_rest_2", kernels) == "add_0"
    assert kernel_of("add_0_over_1_rest_3", kernels) == "add_0_over_1"
    assert kernel_of("copy", kernels) is None


def test_tuned_models_give_the_same(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOWERDECK_CACHE", str(tmp_path / "cache"))
    x = np.random.default_rng(1).standard_normal((ROWS, DEPTH)).astype(np.float32)
    told: list[str] = []
    options = tune(model, CompileOptions(), {"x": x}, 0.0, told.append)
    assert any("round" in text for text in told)
    assert schedules(model, options)  # what it found is what kernels offer
    for rank in (0, 1, 2, 3):
        found = compile_with(model, CompileOptions(rank=rank), cache=False)(x)[0]
        expected = compile_with(model, options)(x)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    told.clear()
    assert tune(model, CompileOptions(), {"x": x}, 0.0, told.append).schedules == options.schedules
    assert [text for text in told if "variant" in text] == []


# Campaigns


def run_tune(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["tune", *arguments])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


@pytest.fixture
def two_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_module, "MAX_VARIANTS", 2)
    monkeypatch.setattr(tune_module, "_MIN_SAMPLES", 2)


def test_kernels_are_measured_once(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], two_variants: None
) -> None:
    other = str(tmp_path / "other.onnx")
    shutil.copyfile(model, other)
    path = str(tmp_path / "all.db")
    arguments = [model, other, "--database", path, "--seconds", "0", "--targets", "x86-64"]
    status, _, err = run_tune(arguments, capsys)
    assert status == 0
    assert err == "products.onnx for x86-64: 2 kernels measured\n"  # a and c are equal
    times = Database(path).times()
    kernels = kernels_of(model, CompileOptions(target="x86-64"))
    assert {time.kernel for time in times} == {kernel.key for kernel in kernels}
    assert sorted(time.rank for time in times) == [0, 0, 1, 1]
    assert all(time.seconds > 0 and time.spread >= 0 for time in times)
    # What is there is not measured again; of what is not, only that.
    status, out, err = run_tune(arguments, capsys)
    assert (status, err) == (0, "")
    assert out.startswith("0 kernels measured")
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("DELETE FROM times WHERE kernel = ?", (kernels[0].key,))
    assert run_tune(arguments, capsys)[2] == "products.onnx for x86-64: 1 kernels measured\n"


def test_databases_say_what_is_compiled(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = CompileOptions(target="x86-64")
    first, second = kernels_of(model, options)
    paths = [str(tmp_path / name) for name in ("a.db", "b.db")]
    here = machine_key("native")

    def times(kernel: Kernel, *seconds: float, processor: str = here) -> list[Time]:
        where = kernel.key, "x86-64", processor, "cc", "1"
        return [
            Time(*where, kernel.candidates[rank], rank, one, 0.01)
            for rank, one in enumerate(seconds)
        ]

    a, b = (Database(path, create=True) for path in paths)
    a.add(times(first, 1.0, 0.7, 0.9))
    b.add(times(second, 1.0, 0.99) + times(first, 1.0, 1.2, 0.1, processor="another"))
    b.add([replace(times(first, 1.0, 0.8)[1], spread=0.5)])  # the other is known better
    status, out, _ = run_tune(["--database", paths[0], "--merge", paths[1]], capsys)
    assert (status, out) == (0, f"{paths[1]}: 6 times\n")
    assert len(a.times()) == 8
    assert {1.0, 0.7, 0.9, 0.99, 1.2, 0.1} == {time.seconds for time in a.times()}
    # This processor has measured it itself, and what saves less than the noise is not taken.
    assert schedules_from(a, model, options) == {first.name: first.candidates[1]}
    # What may be chance is not taken either.
    wide = Database(str(tmp_path / "wide.db"), create=True)
    wide.add([replace(time, spread=0.2) for time in times(first, 1.0, 0.7, 0.6)])
    offered = {first.key: first.candidates}
    assert wide.best(offered, "x86-64", here) == {first.key: first.candidates[2]}
    wide.add([replace(time, spread=0.19) for time in times(first, 1.0, 0.7, 0.7)])
    assert wide.best(offered, "x86-64", here) == {}
    # Elsewhere the others say it.
    offered = {first.key: first.candidates, "unknown": ["x"]}
    assert a.best(offered, "x86-64", "new") == {first.key: first.candidates[2]}
    assert a.best({first.key: first.candidates[:1]}, "x86-64", here) == {}
    assert a.best(offered, "x86-64-v3", here) == {}
    folder = str(tmp_path / "out")
    arguments = ["compile", model, "-o", folder, "--target", "x86-64", "--library", "none"]
    assert main([*arguments, "--schedules", paths[0]]) == 0
    by_rule = tmp_path / "rule"
    assert main([*arguments[:2], "-o", str(by_rule), *arguments[4:]]) == 0
    assert (by_rule / "products.c").read_text() != (tmp_path / "out" / "products.c").read_text()


def test_keys_are_the_same_everywhere(model: str) -> None:
    code = (
        "from lowerdeck.tune import *; from lowerdeck.compiler import CompileOptions; import sys;"
        "print([k.key for k in kernels_of(sys.argv[1], CompileOptions(target='x86-64'))])"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, model],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    keys = [kernel.key for kernel in kernels_of(model, CompileOptions(target="x86-64"))]
    assert other.stdout == f"{keys}\n"
    assert len({*keys, *(k.key for k in kernels_of(model, CompileOptions(target="c99")))}) >= 2


def test_campaigns_say_what_is_wrong(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "all.db")
    (tmp_path / "bad.db").write_text("no database")
    (tmp_path / "cut.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    with closing(sqlite3.connect(tmp_path / "old.db")) as opened:
        opened.execute("CREATE TABLE times (kernel TEXT)")
    for arguments, text in (
        (["--database", path], "give models"),
        ([model, "--database", str(tmp_path / "bad.db")], "is no database"),
        ([model, "--database", str(tmp_path / "cut.db")], "cut.db: "),
        (["--database", path, "--merge", str(tmp_path / "old.db")], "of this version"),
        ([model, "--database", path, "--targets", "x86-64", "aarch64"], "does not run on"),
        ([model, "--database", path, "--targets", "z80"], "z80"),
        ([model, "--database", path, "--address", "x:1"], "is for --engine ray"),
        ([str(tmp_path / "gone.onnx"), "--database", path, "--seconds", "0"], "gone.onnx"),
    ):
        status, _, err = run_tune(arguments, capsys)
        assert (status, text in err) == (1, True), (arguments, err)
        assert "Traceback" not in err
    assert main(
        ["compile", model, "-o", str(tmp_path / "o"), "--schedules", str(tmp_path / "bad.db")]
    )


def test_campaign_on_ray(
    cluster: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del cluster
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    weights = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", ports[:1], ports[1:], [weights])
    model, path = str(tmp_path / "small.onnx"), str(tmp_path / "all.db")
    opsets = [helper.make_opsetid("", 21)]
    cast(Any, onnx).save(helper.make_model(graph, opset_imports=opsets, ir_version=10), model)
    kernels = kernels_of(model, CompileOptions(target="x86-64"))
    assert kernels
    assert max(len(kernel.candidates) for kernel in kernels) <= 4  # each is compiled
    arguments = [model, "--database", path, "--seconds", "0", "--targets", "x86-64"]
    assert run_tune([*arguments, "--engine", "ray"], capsys)[0] == 0
    assert {t.kernel for t in Database(path).times()} == {kernel.key for kernel in kernels}
    assert run_tune(arguments, capsys)[1].startswith("0 kernels measured")


def test_spread_is_that_of_order_statistics() -> None:
    assert spread_of([1.0, 1.0, 1.0]) == 0
    assert spread_of([2.0, 1.0, 3.0]) == 0.5
    assert spread_of([1.0] * 50 + [9.0] * 3) == 0
