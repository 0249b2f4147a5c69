"""All dialects by name, each imported when a context first meets it."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.ub import UB
from xdsl.ir import Dialect

from lowerdeck.dialects.frameworks import FRAMEWORKS, lazy


def dialects() -> dict[str, Callable[[], Dialect]]:
    """The dialects of this project: the compiler's own, and those of frameworks."""
    own = {"core": lazy("dialects.core", "Core"), "buffer": lazy("dialects.buffer", "Buffer")}
    return {**own, **{name: framework.dialect for name, framework in FRAMEWORKS.items()}}


def register_dialects(context: Context) -> None:
    """Let a context know them; those of upstream that every module uses are loaded at once."""
    context.load_dialect(Builtin)
    context.load_dialect(Func)
    context.register_dialect(UB.name, lambda: UB)
    for name in ("arith", "math", "scf", "vector"):  # what kernels are made of
        context.register_dialect(name, get_all_dialects()[name])
    for name, factory in dialects().items():
        context.register_dialect(name, factory)
