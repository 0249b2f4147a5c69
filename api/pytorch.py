"""
PyTorch's own objects: modules and exported programs are compiled as the `.pt2` files that
`torch.export` makes of them. PyTorch is imported where one of its objects is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any


def _classes(value: object) -> set[str]:
    """The classes that an object is of, after the package that defines them."""
    return {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(value).__mro__}


def is_program(value: object) -> bool:
    """True for what `torch.export.export` returns."""
    return "torch.ExportedProgram" in _classes(value)


def is_module(value: object) -> bool:
    """True for a `torch.nn.Module`."""
    return "torch.Module" in _classes(value)


def write_program(value: Any, args: Sequence[Any] | None, path: str) -> None:
    """
    Write a module or program as a `.pt2` file.

    A module is exported for `args`, whose sizes are those of the model; TypeError without them, if
    the module is in training, or if it is TorchScript, whose own files are compiled.
    """
    if "torch.ScriptModule" in _classes(value):
        raise TypeError(
            f"{type(value).__name__} is TorchScript: torch.jit.save(module, 'model.pt') writes a "
            "file that is compiled, with input_shapes or input_type for what it does not say"
        )
    if is_module(value):
        if args is None:
            raise TypeError(
                f"{type(value).__name__} is a module: give arguments, compile(module, (x,)), or "
                "what torch.export.export returns, which may have dynamic_shapes"
            )
        if value.training:
            raise TypeError(f"{type(value).__name__} is in training: call its eval() first")
        with import_module("torch").no_grad():
            value = import_module("torch.export").export(value, tuple(args))
    import_module("torch.export").save(value, path)
