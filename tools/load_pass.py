"""`--load-pass`: passes of the user's own."""

from __future__ import annotations

from importlib import import_module

from xdsl.passes import ModulePass

from lowerdeck.tools.common import ToolError


def loaded_pass(tool: str, spec: str) -> type[ModulePass]:
    """The class that `MODULE:CLASS` names; ToolError if it is no pass."""
    module, _, name = spec.partition(":")
    try:
        loaded = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ToolError(f"{tool}: --load-pass {spec}: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, ModulePass)):
        raise ToolError(f"{tool}: --load-pass {spec}: not a class derived from ModulePass")
    return loaded
