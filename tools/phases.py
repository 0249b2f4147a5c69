"""The compiler's own pipeline, phase by phase, for `--compile-to`."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.tools.common import ToolError


def stages_to(phase: str) -> Iterator[tuple[str, list[str]]]:
    """Each phase up to `phase` (`c` ends where `scheduled` does) and the names of its passes."""
    from lowerdeck.lowering.pipeline import PHASES, passes_of_phase

    known = (*PHASES, "c")
    if phase not in known:
        raise ToolError(f"opt-tool: --compile-to: '{phase}' is none of {', '.join(known)}")
    for current in PHASES[: known.index(phase) + 1]:
        yield current, passes_of_phase(current)


def c_text(module: ModuleOp, file: str) -> str:
    """The C source of a scheduled module."""
    from lowerdeck.compiler import model_name
    from lowerdeck.lowering.emit_c.module import emit_c

    name = model_name(file)
    return emit_c(module, name, "native").files[f"{name}.c"]
