"""Objects of PyTorch; its `export` is one that writes a file made before, unless it is there."""

from __future__ import annotations

import shutil
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowerdeck

COUNTER = Path(__file__).parents[1] / "frontends" / "pt2_models" / "counter.pt2"


class _Module:
    training = False


class _ExportedProgram:
    pass


_Module.__module__, _Module.__name__ = "torch.nn.modules.module", "Module"
_ExportedProgram.__module__ = "torch.export.exported_program"
_ExportedProgram.__name__ = "ExportedProgram"


class _NoGrad:
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A torch whose `export` remembers what it is given, and whose `save` writes the counter."""
    given: list[Any] = []

    def export(module: object, args: tuple[Any, ...]) -> _ExportedProgram:
        given.append((module, args))
        return _ExportedProgram()

    def save(program: _ExportedProgram, path: str) -> None:
        assert isinstance(program, _ExportedProgram)
        shutil.copy(COUNTER, path)

    torch, module = types.ModuleType("torch"), types.ModuleType("torch.export")
    vars(torch)["no_grad"] = _NoGrad
    vars(module).update(export=export, save=save)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.export", module)
    return given


X = np.array([[1, -2]], np.float32)


def test_a_program_and_a_module_with_arguments_are_compiled(exported: list[Any]) -> None:
    module = _Module()
    for model in (
        lowerdeck.compile(_ExportedProgram(), target="c99"),
        lowerdeck.compile(module, ("x",), target="c99"),
    ):
        assert model(X)[0].tolist() == [[2, 1]]
    assert exported == [(module, ("x",))]


@pytest.mark.usefixtures("exported")
def test_a_module_needs_arguments_and_is_not_in_training() -> None:
    module = _Module()
    with pytest.raises(TypeError, match="give arguments"):
        lowerdeck.compile(module)
    module.training = True
    with pytest.raises(TypeError, match=r"eval\(\)"):
        lowerdeck.compile(module, ("x",))


def test_arguments_are_for_modules_only() -> None:
    with pytest.raises(TypeError, match="modules of PyTorch"):
        lowerdeck.compile(COUNTER, (X,))


def test_torchscript_is_told_from_modules() -> None:
    module = type("Module", (), {"__module__": "torch.nn"})
    script = type("ScriptModule", (module,), {"__module__": "torch.jit"})
    with pytest.raises(TypeError, match=r"torch\.jit\.save"):
        lowerdeck.compile(script(), (X,))


def test_the_backend_of_torch_compile() -> None:
    torch = pytest.importorskip("torch")
    from lowerdeck.torch_backend import backend

    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()).eval()
    with torch.no_grad():
        compiled = torch.compile(model, backend=backend)
        for rows in (2, 5):
            x = torch.randn(rows, 4)
            assert torch.allclose(compiled(x), model(x), atol=1e-6)
        model[0].weight.mul_(2)
        assert torch.allclose(compiled(x), model(x), atol=1e-6)


def test_the_backend_takes_and_gives_bfloat16() -> None:
    torch = pytest.importorskip("torch")
    from lowerdeck.torch_backend import backend

    model = torch.nn.Linear(4, 3).bfloat16().eval()
    with torch.no_grad():
        x = torch.randn(2, 4).bfloat16()
        found = torch.compile(model, backend=backend)(x)
    assert found.dtype == torch.bfloat16
    assert torch.allclose(found.float(), model(x).float(), atol=1e-2)


def test_pytorch_runs_what_writes_to_its_inputs_or_buffers() -> None:
    torch = pytest.importorskip("torch")
    from lowerdeck.torch_backend import backend

    def through_a_view(x: Any) -> Any:
        x.view(-1)[1:].mul_(2)
        return x + 1

    x = torch.ones(2, 2)
    with pytest.warns(UserWarning, match="writes to its inputs or buffers"):
        found = torch.compile(through_a_view, backend=backend)(x)
    assert x.tolist() == [[1, 2], [2, 2]]
    assert found.tolist() == [[2, 3], [3, 3]]
    norm = torch.nn.BatchNorm1d(2, affine=False).train()
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    with pytest.warns(UserWarning, match="writes to its inputs or buffers"):
        torch.compile(norm, backend=backend)(x)
    assert torch.allclose(norm.running_mean, torch.tensor([0.2, 0.4]))
