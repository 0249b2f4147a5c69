"""
lowerdeck: compile trained models to C that depends on nothing.

Every exception of its own is a LowerdeckError: ModelError for a model that is wrong (FrontendError
lists all that cannot be imported, LimitError is for too little memory), CompileError for what
passes cannot compile (ExportError: for what a format cannot say), OptionError, CalibrationError for
samples that do not fit, BatchError for rows that do not or that fail, BudgetError for what no
choice of layers meets, PluginError for a plugin that cannot be loaded, PluginFault for one that
fails at work, BuildError for the C compiler's part, RunError for a run of a model, and
InternalError for a fault of lowerdeck. Beside them there are OSError, and ParseError of xDSL for IR
text.

The names below are resolved on first use, so that `import lowerdeck.dialects` loads
neither numpy nor the compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lowerdeck.dialects.recursion import working_on_modules

if TYPE_CHECKING:
    from lowerdeck import backend
    from lowerdeck.batching import BatchError
    from lowerdeck.binding import RunError
    from lowerdeck.budgets import BudgetError
    from lowerdeck.build import BuildError
    from lowerdeck.calibration import CalibrationError
    from lowerdeck.compiler import Model, compile, load
    from lowerdeck.dialects.errors import (
        CompileError,
        InternalError,
        LimitError,
        LowerdeckError,
        ModelError,
        PluginFault,
    )
    from lowerdeck.exporters.errors import ExportError
    from lowerdeck.exporting import export
    from lowerdeck.frontends.errors import FrontendError
    from lowerdeck.passes.machinery.options import OptionError
    from lowerdeck.plugins import PluginError, load_plugin
    from lowerdeck.quantizing import quantize
    from lowerdeck.rounding import quantize_weights

    __version__: str

__all__ = [
    "BatchError",
    "BudgetError",
    "BuildError",
    "CalibrationError",
    "CompileError",
    "ExportError",
    "FrontendError",
    "InternalError",
    "LimitError",
    "LowerdeckError",
    "Model",
    "ModelError",
    "OptionError",
    "PluginError",
    "PluginFault",
    "RunError",
    "__version__",
    "backend",
    "compile",
    "export",
    "load",
    "load_plugin",
    "quantize",
    "quantize_weights",
]

_MODULES = {
    "BatchError": "batching",
    "BudgetError": "budgets",
    "BuildError": "build",
    "CalibrationError": "calibration",
    "CompileError": "dialects.errors",
    "ExportError": "exporters.errors",
    "FrontendError": "frontends.errors",
    "InternalError": "dialects.errors",
    "LimitError": "dialects.errors",
    "LowerdeckError": "dialects.errors",
    "Model": "compiler",
    "ModelError": "dialects.errors",
    "OptionError": "passes.machinery.options",
    "PluginError": "plugins",
    "PluginFault": "dialects.errors",
    "RunError": "binding",
    "compile": "compiler",
    "export": "exporting",
    "load": "compiler",
    "load_plugin": "plugins",
    "quantize": "quantizing",
    "quantize_weights": "rounding",
}
"""The module, below this one, that holds what a name stands for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        with working_on_modules():  # what is defined stays, so none of it is garbage
            return getattr(import_module(f"lowerdeck.{_MODULES[name]}"), name)
    if name == "backend":
        return import_module("lowerdeck.backend")
    if name == "__version__":
        return import_module("importlib.metadata").version("lowerdeck")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
