"""The page of the Python API, from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any, cast

_INTRODUCTION = """\
Everything here is a name of the package `lowerdeck`; `backend`, `batching`, `plugins`, `ray` and
`tune` are modules of it. Arguments that are wrong are `ValueError` or `TypeError`, files that
cannot be read are `OSError`, and wrong IR text is `ParseError` of xDSL; all other exceptions are
those at the [end of this page](#exceptions)."""

_SECTIONS: Mapping[str, tuple[str, Sequence[str]]] = {
    "": (
        "",
        [
            "compiler.compile",
            "compiler.load",
            "exporting.export",
            "quantizing.quantize",
            "rounding.quantize_weights",
            "compiler.Model",
        ],
    ),
    "What calls take and return": (
        "",
        [
            "metadata.TensorInfo",
            "binding.PreparedCall",
            "profile.Profile",
            "profile.KernelTimes",
            "profile.KernelEvent",
            "profile.Part",
        ],
    ),
    "Tuning": (
        "`lowerdeck compile --tune SECONDS` finds faster schedules, `lowerdeck tune` those of many "
        "models, and `compile(..., schedules=...)` takes them.",
        [
            "tune.read_schedules",
            "tune.write_schedules",
            "tune.schedules_from",
            "schedules.Database",
        ],
    ),
    "Many rows": (
        "[Many rows](scale.md) has the files that these read and write.",
        [
            "batching.batch",
            "batching.Settings",
            "batching.Task",
            "batching.Done",
            "ray.map_batches",
            "ray.Cluster",
            "ray.deployment",
        ],
    ),
    "Plugins": (
        "[Plugins](plugins.md) shows a whole one.",
        [
            "plugins.load_plugin",
            "plugins.Plugin",
            "plugins.CustomOperator",
            "plugins.CFunction",
            "plugins.register",
            "plugins.temporarily",
        ],
    ),
    "ONNX backend": ("", ["backend"]),
    "Exceptions": (
        "",
        [
            "dialects.errors.LowerdeckError",
            "dialects.errors.ModelError",
            "frontends.errors.FrontendError",
            "dialects.errors.LimitError",
            "dialects.errors.CompileError",
            "exporters.errors.ExportError",
            "calibration.CalibrationError",
            "budgets.BudgetError",
            "batching.BatchError",
            "ray.RayError",
            "engines.LostTask",
            "schedules.DatabaseError",
            "passes.machinery.options.OptionError",
            "plugins.PluginError",
            "dialects.errors.PluginFault",
            "build.BuildError",
            "binding.RunError",
            "dialects.errors.InternalError",
        ],
    ),
}
"""Headings, what stands below them, and the names that are described there."""

SHOWN = [name for _, names in _SECTIONS.values() for name in names]
"""All that the page describes, as places below `lowerdeck`."""


def api_page(note: str) -> str:
    """docs/api.md; `note` says where it is from."""
    parts = ["# Python API", note.strip(), _INTRODUCTION]
    for heading, (text, names) in _SECTIONS.items():
        parts += [f"## {heading}"] if heading else []
        parts += [text] if text else []
        for name in names:
            parts += _entry(name)
    return "\n\n".join(parts) + "\n"


def _entry(place: str) -> Iterator[str]:
    """The heading, signature and docstring of a name, and those of the members of a class."""
    module, _, name = place.rpartition(".")
    if not module:
        yield f"### `{place}`"
        yield inspect.cleandoc(import_module(f"lowerdeck.{place}").__doc__ or "")
        return
    found = getattr(import_module(f"lowerdeck.{module}"), name)
    yield f"### `{name}`"
    if not inspect.isclass(found):
        yield _code(f"{name}{_signature(found)}")
        yield inspect.cleandoc(found.__doc__ or "")
        return
    yield inspect.cleandoc(found.__doc__ or "")
    if is_dataclass(found) or hasattr(found, "_fields"):
        yield from _fields(found)
    for member, value in vars(found).items():
        if member.startswith("_") and member != "__call__":
            continue
        text = inspect.cleandoc(value.__doc__ or "") if _is_method(value) else ""
        if text:
            yield f"#### `{name}.{member}`"
            if not isinstance(value, property):
                function: Any = getattr(value, "__func__", value)  # of a class method
                yield _code(f"{member}{_signature(function)}")
            yield text


def _is_method(value: object) -> bool:
    return isinstance(value, property | classmethod) or inspect.isfunction(value)


def _fields(cls: type) -> Iterator[str]:
    """The fields of a dataclass, with the texts below them in the source."""
    source = inspect.getsource(cls)
    rows: list[str] = []
    pattern = r'^    (\w+): ([^\n=]+?)(?: = [^\n]*)?\n(?:    """(.*?)"""\n)?'
    for name, type_, text in re.findall(pattern, source, re.MULTILINE | re.DOTALL):
        if not name.startswith("_"):
            words = " ".join(text.split())
            rows.append(f"- `{name}: {type_}`" + (f": {words}" if words else ""))
    if rows:
        yield "\n".join(rows)


def _signature(function: Any) -> str:
    """A line, or one for each parameter if it is too long."""
    signature = inspect.signature(function)
    parameters = [
        p.replace(default=_Default(p.default)) if p.default is not p.empty else p
        for p in signature.parameters.values()
        if p.name not in ("self", "cls")
    ]
    result = str(signature.replace(parameters=[])).removeprefix("()")
    listed = [str(parameter) for parameter in parameters]
    kinds = [parameter.kind for parameter in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        listed.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    text = f"({', '.join(listed)}){result}"
    if len(text) > 80:
        text = "(\n" + "".join(f"    {part},\n" for part in listed) + f"){result}"
    # Annotations are texts already; only defaults have quotes.
    return text.replace("'", "").replace("`", '"')


class _Default:
    """A default as the source has it: `repr` of some is an address."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        value = self._value
        if isinstance(value, Enum):
            return str(value)
        if isinstance(value, Mapping):
            return str(dict(cast("Mapping[str, object]", value)))
        return f"`{value}`" if isinstance(value, str) else repr(value)


def _code(text: str) -> str:
    return f"```python\n{text}\n```"
