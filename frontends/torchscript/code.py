"""
The code of an archive: Python's syntax, parsed and never executed.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from lowerdeck.dialects.records import record
from lowerdeck.frontends.pt2.archive import ArchiveError, Entries

_MOST = 1 << 24
"""Bytes of a file of code, and lines of all of them."""

_DEEPEST = 200
"""Expressions and statements inside of one another."""


@record
class Definition:
    """A function or method, and where it is."""

    file: str
    node: ast.FunctionDef

    @property
    def parameters(self) -> list[tuple[str, ast.expr | None, ast.expr | None]]:
        """Names, types and defaults."""
        args = [*self.node.args.posonlyargs, *self.node.args.args]
        missing = len(args) - len(self.node.args.defaults)
        defaults = [None] * missing + list(self.node.args.defaults)
        pairs = list(zip(args, defaults, strict=True))
        pairs += zip(self.node.args.kwonlyargs, self.node.args.kw_defaults, strict=True)
        return [(arg.arg, arg.annotation, default) for arg, default in pairs]


@dataclass
class Class:
    """A class: its methods, the names of its fields, and what they are in every object."""

    name: str
    base: str = ""
    methods: dict[str, Definition] = field(default_factory=dict[str, Definition])
    fields: list[str] = field(default_factory=list[str])
    finals: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])


class Code:
    """All classes and functions, by their qualified names."""

    def __init__(self, entries: Entries) -> None:
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Definition] = {}
        total = 0
        for name in entries.under("code/"):
            if not name.endswith(".py"):
                continue
            text = entries.read(name, _MOST)
            total += len(text)
            if total > _MOST:
                raise ArchiveError(f"more than {_MOST} bytes of code")
            module = name.removeprefix("code/").removesuffix(".py").replace("/", ".")
            self._add(name, module, _parsed(name, text))

    def _add(self, file: str, module: str, tree: ast.Module) -> None:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[f"{module}.{node.name}"] = Definition(file, node)
            elif isinstance(node, ast.ClassDef):
                self.classes[f"{module}.{node.name}"] = _class(file, f"{module}.{node.name}", node)

    def method(self, type_: str, name: str) -> Definition | None:
        """A method of a class."""
        found = self.classes.get(type_)
        return None if found is None else found.methods.get(name)


def _class(file: str, name: str, node: ast.ClassDef) -> Class:
    base = node.bases[0].id if node.bases and isinstance(node.bases[0], ast.Name) else ""
    found = Class(name, base)
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            found.methods[item.name] = Definition(file, item)
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found.fields.append(item.target.id)
            if item.value is not None:
                found.finals[item.target.id] = item.value
        elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            found.finals[item.targets[0].id] = item.value
    return found


def _parsed(name: str, text: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.decode())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ArchiveError(f"'{name}' is no code: {str(error)[:200]}") from None
    _require_shallow(name, tree)
    return tree


def _require_shallow(name: str, tree: ast.Module) -> None:
    """Refuse what is nested too deeply to be walked through."""
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise ArchiveError(f"'{name}' has code too deep inside of itself")


def dotted(node: ast.expr) -> str | None:
    """The name that a chain of attributes is, or None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def operators_in(definition: Definition) -> Mapping[str, int]:
    """The operators that a function calls by name, and the line of the first call of each."""
    found: dict[str, int] = {}
    for node in ast.walk(definition.node):
        if isinstance(node, ast.Call) and (name := dotted(node.func)) is not None:
            if name.startswith(("torch.", "ops.")):
                found.setdefault(name, node.lineno)
    return found
