"""`make check`: the tests nearest to a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fuzz import changed
from fuzz.changed import LIT, reached

CASES: Mapping[str, Sequence[str]] = {
    # A pass, by its name: in the RUN line of a textual test, and in strings.
    "passes/fuse/fuse_norm.py": [
        f"{LIT}::test_lit[passes/fuse/fuse-norm.mlir]",
        "test/passes/test_fuse_norm.py",
    ],
    # A test of the same name, others of the folder, though all that compiles a model gets there.
    "lowering/strategies/dot_products.py": [
        "test/lowering/strategies/test_dot_products.py",
        f"{LIT}::test_lit[lowering/strategies/choose-products.mlir]",
    ],
    "dialects/core/elementwise.py": [f"{LIT}::test_lit[dialects/core_elementwise_invalid.mlir]"],
    "passes/legalize/onnx/signal.py": ["test/passes/legalize/onnx/test_numbers.py"],
    # What passes import.
    "passes/linear/affine.py": [f"{LIT}::test_lit[passes/linear/fuse-linear.mlir]"],
    # Operations, by the texts that have them.
    "dialects/core/tensor/rearrange.py": [f"{LIT}::test_lit[dialects/core_tensor.mlir]"],
    # What is found by the framework of a file: by the name of its folder.
    "passes/legalize/mxnet/generators.py": ["test/frontends/test_mxnet_forms.py"],
    # What is read, not imported.
    "lowering/runtime/lowerdeck_pool.c": ["test/lowering/test_pool.py"],
    # Tests, and what they share.
    "test/lowering/test_rows.py": ["test/lowering/test_rows.py"],
    "test/frontends/contrib_models.py": ["test/frontends/test_onnx_contrib.py"],
    # A mutant of the file names its test.
    "passes/legalize/common/windows.py": [
        "test/passes/legalize/onnx/test_against_onnxruntime.py::test_conv_auto_pad"
    ],
}


@pytest.fixture(scope="module")
def graph() -> changed.Graph:
    return changed.Graph()


@pytest.mark.parametrize("file", CASES)
def test_near(file: str, graph: changed.Graph) -> None:
    found = reached([file], graph)
    nearest = sorted(found, key=lambda test: found[test])[:25]
    assert set(CASES[file]) <= set(nearest)


def test_a_frontend_does_not_reach_other_formats_first(graph: changed.Graph) -> None:
    found = reached(["frontends/caffe/parse.py"], graph)
    near = [test for test in found if found[test] < changed.BY_NAME]
    assert near
    assert not [test for test in near if "tflite" in test or "keras" in test]


def test_what_git_does_not_know_yet_has_changed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    run = changed._git  # pyright: ignore[reportPrivateUsage]
    run("init", "-q", "-b", "main")
    (tmp_path / "a.py").write_text("1\n")
    run("add", ".")
    run("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a")
    assert changed.changed_since("main") == []
    (tmp_path / "a.py").write_text("2\n")
    (tmp_path / "b.py").write_text("")
    assert changed.changed_since("main") == ["a.py", "b.py"]


def test_no_test_starts_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    item: Any = SimpleNamespace()
    monkeypatch.setenv("LOWERDECK_CHECK_DEADLINE", "0")
    with pytest.raises(pytest.skip.Exception, match="make test"):
        changed.pytest_runtest_setup(item)
    monkeypatch.setenv("LOWERDECK_CHECK_DEADLINE", "inf")
    changed.pytest_runtest_setup(item)


def test_the_nearest_run_first(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = '{"test/a.py": 4, "test/b.py": 2, "test/a.py::f": -1}'
    monkeypatch.setenv("LOWERDECK_CHECK_PLAN", plan)
    names = ["test/a.py::e", "test/b.py::g[1]", "test/b.py::g[2]", "test/a.py::f[x]"]
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    changed.pytest_collection_modifyitems(items)
    found = [item.nodeid for item in items]
    assert found == ["test/a.py::f[x]", "test/b.py::g[1]", "test/b.py::g[2]", "test/a.py::e"]


def test_the_plugin_of_pytest_has_its_hooks_only(pytestconfig: pytest.Config) -> None:
    """pytest takes all names that begin with `pytest_` for hooks, and refuses unknown ones."""
    names = [name for name in vars(changed) if name.startswith("pytest_")]
    assert len(names) == 2
    assert [name for name in names if not hasattr(pytestconfig.hook, name)] == []
