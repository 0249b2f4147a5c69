"""Tuning: which rank a kernel gets, that it is kept, and that the numbers stay what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from lowerdeck.compiler import CompileOptions, compile_with, import_and_lower
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.tune import best_ranks, tune

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


def test_ranks_are_by_the_first_of_equal_kernels(model: str) -> None:
    options = CompileOptions(target="x86-64-v3")
    first, second, third = schedules(model, options)
    assert first == third
    changed = CompileOptions(target="x86-64-v3", ranks={"matmul_0": 2})
    assert schedules(model, changed)[1] == second
    assert schedules(model, changed)[0] == schedules(model, changed)[2] != first
    everywhere = schedules(model, CompileOptions(target="x86-64-v3", rank=2))
    assert everywhere[0] == schedules(model, changed)[0]
    assert everywhere[1] != second
    assert not CompileOptions().is_tuned
    assert changed.key != options.key


def test_tuned_models_give_the_same(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOWERDECK_CACHE", str(tmp_path / "cache"))
    x = np.random.default_rng(1).standard_normal((ROWS, DEPTH)).astype(np.float32)
    told: list[str] = []
    options = tune(model, CompileOptions(), {"x": x}, 0.0, told.append)
    assert any("round" in text for text in told)
    for rank in (0, 1, 2, 3):
        found = compile_with(model, CompileOptions(rank=rank), cache=False)(x)[0]
        expected = compile_with(model, options)(x)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    told.clear()
    assert tune(model, CompileOptions(), {"x": x}, 0.0, told.append).ranks == options.ranks
    assert [text for text in told if "variant" in text] == []
