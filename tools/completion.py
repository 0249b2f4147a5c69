"""What the shell is told of the values of options: targets, passes, strategies, phases."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, which asks by an environment variable; without argcomplete, nothing."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    try:
        argcomplete = import_module("argcomplete")
    except ImportError:
        return
    add_completers(parser)
    argcomplete.autocomplete(parser)


def add_completers(parser: argparse.ArgumentParser) -> None:
    """Let options of a parser, and of its commands, say which values they have."""
    for action in parser._actions:
        if action.nargs == argparse.PARSER:
            choices: Any = action.choices
            for command in choices.values():
                add_completers(command)
        names = _VALUES.get(action.dest)
        if names is not None and action.nargs != 0 and action.choices is None:
            # What argcomplete looks for.
            vars(action)["completer"] = _Completer(names, is_list=action.dest not in _SINGLE)


class _Completer:
    """The values that begin with what was typed, of a list the last one."""

    def __init__(self, names: Callable[[], Iterable[str]], *, is_list: bool) -> None:
        self._names = names
        self._is_list = is_list

    def __call__(self, prefix: str, **_: Any) -> list[str]:
        before = prefix[: prefix.rfind(",") + 1] if self._is_list else ""
        start = prefix[len(before) :]
        return [before + name for name in sorted(self._names()) if name.startswith(start)]


def _targets() -> Iterable[str]:
    from lowerdeck.lowering.targets import target_names

    return target_names()


def _passes() -> Iterable[str]:
    from lowerdeck.lowering.pipeline import ALL_PASSES

    _load_plugins()
    return ALL_PASSES


def _strategies() -> Iterable[str]:
    from lowerdeck.lowering.strategies.registry import STRATEGIES

    _load_plugins()
    return [strategy.name for strategy in STRATEGIES]


def _phases() -> Iterator[str]:
    from lowerdeck.dialects.frameworks import exports
    from lowerdeck.passes.machinery.contracts import PHASES

    yield from PHASES
    yield from exports()


def _load_plugins() -> None:
    """Those of installed packages; what is broken in them is told when a command runs."""
    from lowerdeck.plugins import PluginError, load_installed

    try:
        load_installed()
    except PluginError:
        return


_OF_PASSES = (
    *("disable", "extra_passes", "passes", "print_ir_after", "print_ir_before", "why_not"),
    *("before", "after"),
)

_VALUES: Mapping[str, Callable[[], Iterable[str]]] = {
    "compile_for": _targets,
    **dict.fromkeys(_OF_PASSES, _passes),
    **dict.fromkeys(("strategy", "disable_strategy"), _strategies),
    "phase": _phases,
    "compile_to": lambda: [*_phases(), "c"],
}
"""The values of arguments, by what they are called in the namespace."""

_SINGLE = frozenset({"compile_for", "phase", "compile_to", "before", "after"})
"""Those that take one value; others take several, with commas between them."""
