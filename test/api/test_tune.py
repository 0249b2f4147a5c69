"""Tuning: which rank a kernel gets, that it is kept, and that the numbers stay what they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.utils.exceptions import PassFailedException

from lowerdeck.compiler import CompileOptions, compile_with, import_and_lower
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.tune import best_ranks, kernel_of, read_schedules, tune, write_schedules

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
