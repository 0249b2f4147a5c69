"""From `core` to C: kernels, buffers, memory, text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.lowering.emit_c.module import CArtifact
    from lowerdeck.lowering.pipeline import Observer


def compile_to_c(
    context: Context,
    module: ModuleOp,
    name: str,
    *,
    target: str = "native",
    threads: int = 1,
    embed_weights: bool = False,
    profile: bool = False,
    observer: Observer | None = None,
) -> CArtifact:
    """
    The C of an imported module, which is lowered in place; identifiers begin with `name`.

    With `threads` above one the C can run on a pool of threads, of any number. With `profile` it
    takes the time of each call if its caller has room for that.

    PassFailedException (or a subclass) lists what cannot be compiled; InternalError for a fault.
    """
    from lowerdeck.dialects.errors import working_on
    from lowerdeck.lowering.emit_c.module import emit_c
    from lowerdeck.lowering.pipeline import run_to_phase

    run_to_phase(context, module, "scheduled", observer, threads=threads, profile=profile)
    with working_on(lambda: f"{name}.c"):
        return emit_c(module, name, target, embed_weights=embed_weights)
