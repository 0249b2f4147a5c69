"""All dialects by name, each imported when a context first meets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.ub import UB
from xdsl.ir import Dialect


def _member(module: str, name: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(f"lowerdeck.dialects.{module}"), name)


def _made(module: str, name: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(f"lowerdeck.dialects.{module}"), name)()


DIALECTS: Mapping[str, Callable[[], Dialect]] = {
    "core": _member("core", "Core"),
    "buffer": _member("buffer", "Buffer"),
    "caffe": _made("caffe", "caffe_dialect"),
    "onnx": _made("onnx", "onnx_dialect"),
    "tf1": _made("tf1", "tf1_dialect"),
}
"""The dialects of this project."""


def register_dialects(context: Context) -> None:
    """Let a context know them; those of upstream that every module uses are loaded at once."""
    context.load_dialect(Builtin)
    context.load_dialect(Func)
    context.register_dialect(UB.name, lambda: UB)
    for name in ("arith", "math", "scf", "vector"):  # what kernels are made of
        context.register_dialect(name, get_all_dialects()[name])
    for name, factory in DIALECTS.items():
        context.register_dialect(name, factory)
