"""What there is: passes and targets, as lists for a terminal."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from inspect import cleandoc
from typing import Any

from xdsl.passes import ModulePass

from lowerdeck.lowering.targets.base import Target
from lowerdeck.tools.arguments import load_plugins

_SENTENCE = re.compile(r"(.+?[.:])(?:\s|$)")


def passes() -> str:
    """
    Every pass by the first phase in which it runs: what it does, by the first sentence of its
    docstring, its options with their defaults, and whether it can be left out.
    """
    from lowerdeck.dialects.frameworks import exports
    from lowerdeck.lowering.pipeline import ALL_PASSES, passes_of_phase
    from lowerdeck.passes.machinery.contracts import PHASES
    from lowerdeck.passes.machinery.options import CompileOptions

    everything = CompileOptions(threads=2, profile=True)
    classes = {name: factory() for name, factory in ALL_PASSES.items()}
    lines: list[str] = []
    shown: set[str] = set()
    for phase in (*PHASES, *exports()):
        names = dict.fromkeys(passes_of_phase(phase, everything))
        own = [name for name in names if name not in shown]
        shown.update(own)
        if own:
            lines.append(f"to {phase}:")
        for name in own:
            lines += _entry(classes[name])
            members = [cls for cls in _members(classes[name]) if cls.name not in shown]
            shown.update(cls.name for cls in members)
            for member in members:
                lines += [f"  {line}" for line in _entry(member)]
    if others := [cls for name, cls in classes.items() if name not in shown]:
        lines.append("of no phase:")
        lines += [line for cls in others for line in _entry(cls)]
    return "\n".join(lines)


def _entry(cls: type[ModulePass]) -> Iterator[str]:
    options = ", ".join(f"{field.name}={field.default}" for field in _options(cls))
    needed = "" if getattr(cls, "optional", False) else " (required)"
    name = f"{cls.name}{{{options}}}" if options else cls.name
    yield f"  {name}{needed}"
    yield f"      {first_sentence(cls.__doc__ or '')}"


def _options(cls: type[ModulePass]) -> list[Any]:
    return [field for field in fields(cls) if field.init] if is_dataclass(cls) else []


def _members(cls: type[ModulePass]) -> Iterator[type[ModulePass]]:
    members: tuple[type[ModulePass], ...] = getattr(cls, "members", ())
    for member in members:
        yield member
        yield from _members(member)


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join(cleandoc(doc).split("\n\n")[0].split())
    found = _SENTENCE.match(paragraph)
    return found.group(1).rstrip(":") if found else paragraph


def targets() -> str:
    """Every target: the processors that it is for, and whether this machine runs its code."""
    from lowerdeck.lowering.targets import TARGETS, machine_origin, obstacle, target_named

    native = target_named("native")
    lines = [f"{'native':<13} {_lanes(native)}; this machine; {machine_origin('native')}"]
    for target in TARGETS:
        where = obstacle(target.name) or "runs on this machine"
        origin = machine_origin(target.name)
        lines.append(f"{target.name:<13} {_lanes(target)}; {where}; {origin}")
    return "\n".join(lines)


def _lanes(target: Target) -> str:
    lanes = target.lanes_by_element.get("f32", 1)
    return f"{lanes:2} lanes of f32" if lanes > 1 else "no vectors     "


class ListAction(argparse.Action):
    """Prints what there is of something, and leaves."""

    def __init__(self, option_strings: Sequence[str], dest: str, *, listed: str, help: str) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)
        self._listed = listed

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: Any
    ) -> None:
        load_plugins("opt-tool", namespace.load)
        print(passes() if self._listed == "passes" else targets())
        parser.exit()
