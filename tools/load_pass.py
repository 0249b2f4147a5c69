"""Passes from outside: of a Python file, or of a module that Python can import."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from xdsl.passes import ModulePass

from lowerdeck.tools.common import ToolError


def loaded_passes(tool: str, spec: str) -> list[type[ModulePass]]:
    """
    The passes that `my_pass.py:MyPass` or `my.module:MyPass` names; without a class, all that are
    defined there.

    ToolError if there are none, or if what is named is no pass.
    """
    where, colon, name = spec.rpartition(":") if ":" in spec else (spec, "", "")
    try:
        module = _module_of_file(where) if where.endswith(".py") else import_module(where)
        found = [getattr(module, name)] if colon else list(_defined_in(module))
    except Exception as error:
        # Whatever the code of the user raises.
        is_plain = isinstance(error, ImportError | AttributeError | OSError)
        text = str(error) if is_plain else f"{type(error).__name__}: {error}"
        raise ToolError(f"{tool}: --load-pass {spec}: {text}") from error
    if not found:
        raise ToolError(f"{tool}: --load-pass {spec}: {where} defines no pass")
    if not all(map(_is_pass, found)):
        raise ToolError(f"{tool}: --load-pass {spec}: not a class derived from ModulePass")
    return found


def _module_of_file(path: str) -> ModuleType:
    spec = spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _defined_in(module: ModuleType) -> Iterator[type[ModulePass]]:
    for value in vars(module).values():
        if _is_pass(value) and value.__module__ == module.__name__:
            yield value


def _is_pass(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, ModulePass) and hasattr(value, "name")
