"""
lowerdeck: compile trained models to C that depends on nothing.

The names below are resolved on first use, so that `import lowerdeck.dialects` loads
neither numpy nor the compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowerdeck import backend
    from lowerdeck.compiler import Model, compile, load
    from lowerdeck.exporting import export

__all__ = ["Model", "backend", "compile", "export", "load"]

_COMPILER_NAMES = frozenset({"Model", "compile", "load"})


def __getattr__(name: str) -> Any:
    if name in _COMPILER_NAMES:
        return getattr(import_module("lowerdeck.compiler"), name)
    if name == "export":
        return import_module("lowerdeck.exporting").export
    if name == "backend":
        return import_module("lowerdeck.backend")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
