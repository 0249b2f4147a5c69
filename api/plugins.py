"""
What comes from outside: passes, targets, strategies, frameworks and operators, by plugins.

A plugin is a Python module with a `PLUGIN`, or a file with passes. Installed packages name theirs
as entry points of the group `lowerdeck.plugins`; `load_plugin`, and `--load` of the tools, take
files and modules. What is registered stays for the process.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pkgutil import walk_packages
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from xdsl.passes import ModulePass

from lowerdeck.dialects.core.operators import OPERATORS, CFunction, CustomOperator
from lowerdeck.dialects.errors import PLUGIN_FILES, LowerdeckError

if TYPE_CHECKING:
    from lowerdeck.dialects.frameworks import Framework
    from lowerdeck.lowering.strategies.base import Strategy
    from lowerdeck.lowering.targets.base import Target

__all__ = [
    "GROUP",
    "NO_PLUGINS",
    "CFunction",
    "CustomOperator",
    "Plugin",
    "PluginError",
    "identity",
    "load_installed",
    "load_plugin",
    "passes_of",
    "register",
    "temporarily",
]

GROUP = "lowerdeck.plugins"
"""The group of entry points; the value of each is a module, or a Plugin in one."""

NO_PLUGINS = "LOWERDECK_NO_PLUGINS"
"""The environment variable that, if it is set, leaves installed plugins alone."""


class PluginError(LowerdeckError):
    """A plugin that cannot be loaded; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """What a plugin adds. Names are those of its members, and must be new."""

    passes: Sequence[type[ModulePass]] = ()
    """For `--pass-pipeline` and `--extra-passes`, which run them."""
    targets: Sequence[Target] = ()
    """For `--target`; `native` stays one of the compiler's own."""
    strategies: Sequence[Strategy] = ()
    """Asked after the compiler's own: of equal estimates the first one is taken."""
    frameworks: Sequence[Framework] = ()
    """Tried after the compiler's own."""
    operators: Sequence[CustomOperator] = ()


_OWNERS: dict[tuple[str, str], tuple[str, object]] = {}
"""The plugin that each kind and name is of, and what the name stands for."""

_FILES: dict[str, ModuleType] = {}
"""Files that were run, by absolute path."""
_SOURCES: set[str] = set()
"""The files that plugins were read from."""
_MADE: dict[tuple[type[ModulePass], ...], Plugin] = {}
"""The plugins of modules that have passes, but no PLUGIN."""


def load_installed() -> None:
    """Register the plugins of installed packages; PluginError names one that is broken."""
    if not os.environ.get(NO_PLUGINS):
        _load_installed()


@cache
def _load_installed() -> None:
    """What is broken is tried, and told, again."""
    if not _may_be_installed():
        return
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        of = "" if point.dist is None else f", of {point.dist.name} {point.dist.version}"
        what = f"plugin '{point.name}' ({point.value}{of})"
        _register_found(_loaded(what, point.module, point.attr))


def _may_be_installed() -> bool:
    """
    False if no package names the group. To ask for its entry points takes longer than a small model
    does, and there hardly ever are any.
    """
    finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    if any(hasattr(finder, "find_distributions") for finder in finders):
        return True
    return any(_names_group(folder) for folder in package_folders())


def _names_group(folder: str) -> bool:
    """True for the metadata of a package that has entry points of the group, or is in one file."""
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            return GROUP.encode() in file.read()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def package_folders() -> Iterator[str]:
    """The metadata of all packages: folders, and files in which there are some."""
    for folder in sys.path:
        if os.path.isfile(folder):
            yield folder
            continue
        try:
            names = sorted(os.listdir(folder or "."))
        except OSError:  # it is not there
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info", ".egg")):
                yield os.path.join(folder, name)


def load_plugin(spec: str | os.PathLike[str]) -> list[type[ModulePass]]:
    """
    Register the plugin of a Python file or of an importable module; returns its passes.

    `FILE.py:NAME` and `module:NAME` name one Plugin, or one pass, in it. A file is run once.
    PluginError if it is broken, or if a name is taken.
    """
    return list(_register_found(_loaded_by_user(os.fspath(spec))).passes)


def passes_of(spec: str) -> list[type[ModulePass]]:
    """The passes that a file or a module has, as for `load_plugin`, without registering them."""
    return list(_plugin_of(_loaded_by_user(spec)).passes)


def register(plugin: Plugin, name: str = "the plugin") -> None:
    """Register a plugin; PluginError lists what is wrong, and then nothing is registered."""
    members = [(kind, list(_new_members(plugin, kind))) for kind in _kinds()]
    problems = [problem for kind, each in members for problem in _problems(kind, each)]
    if problems:
        raise PluginError("\n".join(f"{name}: {problem}" for problem in problems))
    for kind, each in members:
        for member in each:
            kind.add(member)
            _OWNERS[kind.word, member.name] = name, member


def identity() -> str:
    """What compiled models depend on: size and time of the files of all plugins; empty if none."""
    if not _OWNERS:
        return ""
    digest = hashlib.sha256("\n".join(sorted(map(str, _OWNERS))).encode())
    for path in sorted(_SOURCES):
        status = os.stat(path)
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@contextmanager
def temporarily() -> Generator[None]:
    """What plugins register inside is forgotten at the end: for tests of plugins."""
    from lowerdeck.dialects.frameworks import EXPORT, FRAMEWORKS, LEGALIZATION
    from lowerdeck.lowering.pipeline import LOADED
    from lowerdeck.lowering.strategies.registry import STRATEGIES
    from lowerdeck.lowering.targets import TARGETS

    tables: list[Any] = [OPERATORS, LOADED, FRAMEWORKS, LEGALIZATION, EXPORT]
    tables += [_OWNERS, _FILES, _MADE, _SOURCES, PLUGIN_FILES]
    before = [table.copy() for table in tables]
    targets, strategies = TARGETS.copy(), STRATEGIES.copy()
    try:
        yield
    finally:
        for table, copy in zip(tables, before, strict=True):
            table.clear()
            table.update(copy)
        TARGETS[:], STRATEGIES[:] = targets, strategies
        _load_installed.cache_clear()


# Finding


@dataclass(frozen=True)
class _Found:
    """What a plugin was asked for by, and the module that it is in."""

    what: str
    value: Any
    module: ModuleType


def _loaded(what: str, where: str, name: str = "") -> _Found:
    """
    A module, or what a name in it stands for; whatever the code of a plugin raises is one error.
    """
    try:
        module = _module_of_file(where) if where.endswith(".py") else import_module(where)
        value = attrgetter(name)(module) if name else module
    except Exception as error:
        is_plain = isinstance(error, ImportError | AttributeError | OSError | LowerdeckError)
        text = str(error) if is_plain else f"{type(error).__name__}: {error}"
        raise PluginError(f"{what}: {text}{_moved(error)}") from error
    return _Found(what, value, module)


def _moved(error: Exception) -> str:
    """Where a module of lowerdeck is that a plugin looks for in a package above it."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    parent, _, last = (name or "").rpartition(".")
    if not parent.startswith("lowerdeck") or parent not in sys.modules:
        return ""
    inside = walk_packages(sys.modules[parent].__path__, f"{parent}.")
    found = [f"'{each.name}'" for each in inside if each.name.endswith(f".{last}")]
    return f"; there is {' and '.join(found)}" if found else ""


def _loaded_by_user(spec: str) -> _Found:
    where, _, name = spec.rpartition(":") if ":" in spec else (spec, "", "")
    return _loaded(f"plugin '{spec}'", where, name)


class _Source(SourceFileLoader):
    """
    Reads the source and no bytecode, which counts as that of the source if both are of one second
    and size: a file that is being worked on is run as it is.
    """

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _module_of_file(path: str) -> ModuleType:
    path = os.path.abspath(path)
    if path in _FILES:
        return _FILES[path]
    stem = os.path.splitext(os.path.basename(path))[0]
    name = f"_lowerdeck_plugin_{len(_FILES)}_{stem}"
    spec = spec_from_file_location(name, path)
    if spec is not None and isinstance(spec.loader, SourceFileLoader):
        spec = spec_from_file_location(name, path, loader=_Source(name, path))
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return _FILES.setdefault(path, module)


def _register_found(found: _Found) -> Plugin:
    plugin = _plugin_of(found)
    register(plugin, found.what)
    _SOURCES.update(_sources_of(found.module))
    modules = [sys.modules[each.__module__] for each in plugin.passes]
    files = {file for module in (found.module, *modules) for file in _sources_of(module)}
    PLUGIN_FILES.update(dict.fromkeys(files, found.what))
    return plugin


def _plugin_of(found: _Found) -> Plugin:
    """A Plugin as it is; that of a module; one of the passes defined in it; or of one pass."""
    value = found.value
    if isinstance(value, ModuleType):
        value = getattr(value, "PLUGIN", value)
    if isinstance(value, Plugin):
        return value
    if isinstance(value, ModuleType):
        passes = [one for one in vars(value).values() if _is_pass(one, value.__name__)]
        problem = "defines neither PLUGIN nor a pass"
    else:
        passes = [value] if _is_pass(value) else []
        problem = "is neither a Plugin nor a class derived from ModulePass"
    if not passes:
        raise PluginError(f"{found.what}: {problem}")
    return _MADE.setdefault(tuple(passes), Plugin(passes=passes))


def _is_pass(value: Any, module: str | None = None) -> bool:
    """True for a class of passes, if a module is given for one that is defined there."""
    is_class = isinstance(value, type) and issubclass(value, ModulePass) and hasattr(value, "name")
    return is_class and module in (None, value.__module__)


def _sources_of(module: ModuleType) -> Iterator[str]:
    """The files of the package that a module is in, or its own."""
    package = sys.modules.get(module.__name__.partition(".")[0], module)
    if not (folders := getattr(package, "__path__", ())):
        yield from filter(None, [module.__file__])
    for folder in folders:
        for base, inner, files in os.walk(folder):
            inner[:] = [name for name in inner if name != "__pycache__"]
            yield from (os.path.join(base, file) for file in files)


# What there is already


@dataclass(frozen=True)
class _Kind:
    """One kind of members of a plugin."""

    word: str
    field: str
    """Of Plugin."""
    taken: Container[str]
    """The names that are there."""
    add: Callable[[Any], None]
    problems: Callable[[Sequence[Any]], Iterator[str]] = lambda members: iter(())
    """What else is wrong with new members."""


def _new_members(plugin: Plugin, kind: _Kind) -> Iterator[Any]:
    """Without those that are registered: what is named in two ways is there once."""
    for member in getattr(plugin, kind.field):
        _, known = _OWNERS.get((kind.word, member.name), ("", None))
        if known is not member:
            yield member


def _problems(kind: _Kind, members: Sequence[Any]) -> Iterator[str]:
    seen = set[str]()
    for member in members:
        if member.name in seen:
            yield f"there are two of the {kind.word} '{member.name}'"
        elif member.name in kind.taken:
            owner, _ = _OWNERS.get((kind.word, member.name), ("lowerdeck", None))
            yield f"the {kind.word} '{member.name}' is one of {owner} already"
        seen.add(member.name)
    yield from kind.problems(members)


def _kinds() -> Iterator[_Kind]:
    from xdsl.dialects import get_all_dialects
    from xdsl.transforms import get_all_passes

    from lowerdeck.dialects import frameworks, registry
    from lowerdeck.lowering import targets
    from lowerdeck.lowering.pipeline import ALL_PASSES, LOADED
    from lowerdeck.lowering.strategies.registry import STRATEGIES

    def add_pass(member: type[ModulePass]) -> None:
        LOADED[member.name] = lambda: member

    def add_operator(member: CustomOperator) -> None:
        OPERATORS[member.name] = member

    yield _Kind("pass", "passes", {*ALL_PASSES, *get_all_passes()}, add_pass)
    yield _Kind("target", "targets", targets.target_names(), targets.TARGETS.append)
    names = [strategy.name for strategy in STRATEGIES]
    yield _Kind("strategy", "strategies", names, STRATEGIES.append)
    dialects = {*registry.dialects(), *get_all_dialects()}
    yield _Kind("framework", "frameworks", dialects, frameworks.register, _taken_by_frameworks)
    yield _Kind("operator", "operators", OPERATORS, add_operator, _taken_by_operators)


def _taken_by_frameworks(members: Sequence[Framework]) -> Iterator[str]:
    """The names in frameworks that others have."""
    from lowerdeck.frontends.frontend import IR_TEXT, formats, frontend_of
    from lowerdeck.lowering.pipeline import ALL_PASSES

    known = {IR_TEXT.name, *formats()}
    for framework in members:
        what = f"framework '{framework.name}'"
        for format_ in frontend_of(framework).formats:
            if format_.name in known:
                yield f"{what}: the format '{format_.name}' is known already"
        names = [*framework.legalization]
        names += [] if framework.export is None else [*framework.export.passes]
        yield from (f"{what}: the pass '{n}' is known already" for n in names if n in ALL_PASSES)


def _taken_by_operators(members: Sequence[CustomOperator]) -> Iterator[str]:
    """Operators of onnx and of the importer, which are no plugin's, and functions of others."""
    from onnx import defs

    from lowerdeck.frontends.onnx.contrib import is_defined

    known = list(OPERATORS.values())
    for operator in members:
        name, domain = operator.op_type, operator.domain
        if defs.has(name, domain) or is_defined(domain, name):
            yield f"the operator '{operator.name}' is one of lowerdeck already"
        own = operator.c_function
        for other in known:
            theirs = other.c_function
            if own is None or theirs is None or own.source == theirs.source:
                continue
            if own.name == theirs.name:
                yield f"the C function '{own.name}' is one of the operator '{other.name}' already"
        known.append(operator)
