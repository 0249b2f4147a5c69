"""The compiler's own pipeline, phase by phase, for `--compile-to`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.tools.common import ToolError

if TYPE_CHECKING:
    from lowerdeck.lowering.emit_c.module import CArtifact


def stages_to(phase: str) -> Iterator[tuple[str, list[str]]]:
    """Each phase up to `phase` (`c` ends where `scheduled` does) and the names of its passes."""
    from lowerdeck.lowering.pipeline import PHASES, passes_of_phase

    known = (*PHASES, "c")
    if phase not in known:
        raise ToolError(f"opt-tool: --compile-to: '{phase}' is none of {', '.join(known)}")
    for current in PHASES[: known.index(phase) + 1]:
        yield current, passes_of_phase(current)


def c_artifact(module: ModuleOp, file: str, target: str) -> CArtifact:
    """The C of a scheduled module of a file."""
    from lowerdeck.compiler import model_name
    from lowerdeck.lowering.emit_c.module import emit_c

    return emit_c(module, model_name(file), target)
