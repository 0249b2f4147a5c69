"""From `core` to C: kernels, buffers, memory, text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.lowering.emit_c.module import CArtifact
    from lowerdeck.lowering.pipeline import Observer


def compile_to_c(
    context: Context, module: ModuleOp, name: str, observer: Observer | None = None
) -> CArtifact:
    """
    The C of an imported module, which is lowered in place by the options of the context.

    Identifiers begin with `name`.

    CompileError (or a subclass) lists what cannot be compiled; InternalError for a fault.
    """
    from lowerdeck.lowering.pipeline import Observer, run_to_phase

    run_to_phase(context, module, "scheduled", observer or Observer())
    return emit(context, module, name)


def emit(context: Context, module: ModuleOp, name: str) -> CArtifact:
    """The C of a scheduled module, for the target in the options of the context."""
    from lowerdeck.dialects.buffer.entry import find_entry
    from lowerdeck.dialects.errors import working_on
    from lowerdeck.lowering.emit_c.module import emit_c
    from lowerdeck.lowering.entry.fixed_sizes import fixed_sizes, required_sizes
    from lowerdeck.passes.machinery.context import options_of

    options = options_of(context)
    if (entry := find_entry(module)) is not None:
        for text in (*fixed_sizes(entry), *required_sizes(entry)):
            options.warn(text)
    with working_on(lambda: f"{name}.c"):
        return emit_c(
            module,
            name,
            options.target,
            embed_weights=options.embed_weights,
            static_workspace=options.static_workspace,
            byte_order=options.byte_order,
        )
