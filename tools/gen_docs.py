"""
The reference pages of docs/, made from the definitions: `python -m lowerdeck.tools.gen_docs`.

The docstring of an op is its specification: text, numbered constraints, an example. An op has the
constraints of its base classes, too. The docstring of a pass is its specification as well, and the
arguments of the tools are those of their parsers.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Dialect, Operation
from xdsl.irdl import IRDLOperation, OptionalDef, VariadicDef
from xdsl.passes import ModulePass

from lowerdeck.tools.api_page import api_page
from lowerdeck.tools.man_pages import lowerdeck_page, opt_tool_page

DOCS = Path(__file__).resolve().parents[1] / "docs"

_CONSTRAINT = re.compile(r"- \(([CT]\d+)\) (.*(?:\n  .*)*)")
_EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.DOTALL)
_SECTIONS = re.compile(r"^(?:Constraints|Example):\n", re.MULTILINE)
_NOTE = "Made by `make docs` from {source}; do not edit.\n"


@dataclass(frozen=True)
class Specification:
    """What the docstring of an op says."""

    text: str
    constraints: Mapping[str, str]
    """By label: `C1`."""
    examples: Sequence[str]
    """IR text, in which values are used that nothing defines."""


def specification(op: type[Operation]) -> Specification:
    """The specification of an op, with the constraints of its base classes."""
    docs = [cleandoc(cls.__doc__ or "") for cls in op.__mro__ if issubclass(cls, Operation)]
    constraints: dict[str, str] = {}
    for doc in reversed(docs):
        constraints.update((label, " ".join(text.split())) for label, text in _constraints(doc))
    text = _SECTIONS.split(docs[0])[0].strip()
    return Specification(text, constraints, _EXAMPLE.findall(docs[0]))


def _constraints(doc: str) -> list[tuple[str, str]]:
    _, found, section = doc.partition("Constraints:\n")
    return _CONSTRAINT.findall(section) if found else []


# Ops


def ops_page() -> str:
    """docs/ops.md: every op of `core` and `buffer`."""
    from lowerdeck.dialects import buffer, core
    from lowerdeck.dialects.core.base import FORMAT, CoreOp

    common = specification(CoreOp).constraints
    parts = [
        "# Operations",
        _NOTE.format(source="the docstrings in `dialects/core` and `dialects/buffer`"),
        "The docstring of an op is its specification. Its constraints are numbered; an error of "
        "the verifier ends with the number of the constraint that does not hold. Examples use "
        "values that they do not define.",
        "Unless its entry says otherwise, an op of `core` is written as "
        "`core.name %a, %b {properties} : (types of operands) -> types of results` "
        f"(`` {FORMAT} ``), its results are inferred, and it has these constraints:",
        _listed(common),
        *_dialect("core", cleandoc(core.__doc__ or ""), core.Core, common),
        *_dialect("buffer", cleandoc(buffer.__doc__ or ""), buffer.Buffer, common),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _dialect(name: str, text: str, dialect: Dialect, common: Mapping[str, str]) -> Iterator[str]:
    yield f"## The `{name}` dialect"
    yield text
    module = ""
    for op in dialect.operations:
        if op.__module__ != module:
            module = op.__module__
            path = module.removeprefix("lowerdeck.").replace(".", "/")
            yield f"### `{path}.py`"
            yield cleandoc(sys.modules[module].__doc__ or "")
        yield from _op(op, common)


def _op(op: type[Operation], common: Mapping[str, str]) -> Iterator[str]:
    from lowerdeck.dialects.core.base import FORMAT

    found = specification(op)
    yield f"#### `{op.name}`"
    yield found.text
    if issubclass(op, IRDLOperation):
        yield _signature(op)
    own = {label: text for label, text in found.constraints.items() if label not in common}
    if own:
        yield "Constraints:"
        yield _listed(own)
    yield from (f"```mlir\n{example}```" for example in found.examples)
    written = getattr(op, "assembly_format", None)
    if written is not None and written != FORMAT:
        yield f"Syntax: `` {written} ``"


def _listed(constraints: Mapping[str, str]) -> str:
    return "\n".join(f"- ({label}) {text}" for label, text in constraints.items())


def _signature(op: type[IRDLOperation]) -> str:
    """Operands, properties, regions, results and traits, a line each."""
    definition = op.get_irdl_definition()
    rows = {
        "operands": [_value(name, value) for name, value in definition.operands],
        "properties": [
            _value(name, value)
            for name, value in definition.properties.items()
            if not name.endswith("SegmentSizes")
        ],
        "regions": [_value(name, value) for name, value in definition.regions],
        "results": [_value(name.rstrip("_"), value) for name, value in definition.results],
        "traits": [type(trait).__name__ for trait in definition.traits.traits],
    }
    return "\n".join(f"- {kind}: {', '.join(row)}" for kind, row in rows.items() if row)


def _value(name: str, value: Any) -> str:
    words = [f"`{name}`"]
    if isinstance(value, OptionalDef):
        words.insert(0, "optional")
    elif isinstance(value, VariadicDef):
        words.append("...")
    if kind := _kind(getattr(value, "constr", None)):
        words.append(f"({kind})")
    return " ".join(words)


def _kind(constraint: Any) -> str:
    """The attribute or type that a constraint asks for, where it is one."""
    for inner in ("constraint", "constr", "elem_range_constraint"):
        if hasattr(constraint, inner):
            kind = _kind(getattr(constraint, inner))
            return f"list of {kind}" if inner == "elem_range_constraint" else kind
    if (fixed := getattr(constraint, "attr", None)) is not None:
        if isinstance(fixed, type) and issubclass(fixed, EnumAttribute):
            return ", ".join(fixed.enum_type)
        return getattr(fixed, "name", "") if isinstance(fixed, type) else str(fixed)
    base: type | None = getattr(constraint, "base_attr", None)
    return "Boolean" if base is IntegerAttr else getattr(base, "name", "")


# Passes


def passes_page() -> str:
    """docs/passes.md: every pass, with the phase that it belongs to."""
    from lowerdeck.dialects.frameworks import exports
    from lowerdeck.lowering.pipeline import ALL_PASSES, passes_of_phase
    from lowerdeck.passes.machinery import contracts
    from lowerdeck.passes.machinery.contracts import PHASES
    from lowerdeck.passes.machinery.options import CompileOptions

    classes = {name: factory() for name, factory in ALL_PASSES.items()}
    everything = CompileOptions(threads=2, profile=True)
    phases = {phase: passes_of_phase(phase, everything) for phase in (*PHASES, *exports())}
    steps = "\n".join(
        f"- `{phase}`: {', '.join(map(_link, names))}" for phase, names in phases.items() if names
    )
    parts = [
        "# Passes",
        _NOTE.format(source="the docstrings in `passes` and `lowering`, and the pipelines there"),
        "A line of a pass says `what it finds -> what takes its place [conditions]`. An optional "
        "pass can be left out by `--disable`. `--compile-to` of `opt-tool` takes the name of a "
        "phase.",
        "## Phases",
        cleandoc(contracts.__doc__ or ""),
        "The passes that lead to each phase, in order:",
        steps,
        *(f"## {title}\n\n{text}" for title, text in _by_phase(phases, classes)),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _by_phase(
    phases: Mapping[str, Iterable[str]], classes: Mapping[str, type[ModulePass]]
) -> Iterator[tuple[str, str]]:
    """
    The entries of the passes that run in a phase, and in none before, with those they run; then
    those of the passes that no phase needs.
    """
    shown: set[str] = set()
    for phase, names in phases.items():
        own = [member for name in names for member in _with_members(classes[name])]
        texts = [_pass(cls, phases) for cls in dict.fromkeys(own) if cls.name not in shown]
        shown.update(cls.name for cls in own)
        if texts:
            yield f"To `{phase}`", "\n\n".join(texts)
    others = [_pass(cls, phases) for name, cls in classes.items() if name not in shown]
    if others:
        note = "They run where a pipeline of `opt-tool` names them."
        yield "Of no phase", "\n\n".join([note, *others])


def _with_members(cls: type[ModulePass]) -> list[type[ModulePass]]:
    members: Sequence[type[ModulePass]] = getattr(cls, "members", ())
    return [cls, *(inner for member in members for inner in _with_members(member))]


def _link(name: str) -> str:
    return f"[`{name}`](#{name})"


def _pass(cls: type[ModulePass], phases: Mapping[str, Iterable[str]]) -> str:
    runs = [f"`{phase}`" for phase, names in phases.items() if cls.name in names]
    facts = [
        f"`{cls.__module__.removeprefix('lowerdeck.')}`",
        "optional" if getattr(cls, "optional", False) else "required",
        f"runs on the way to {' and '.join(runs)}" if runs else "",
        *(f"option `{option.name}` (default: {option.default})" for option in _options(cls)),
    ]
    text = cleandoc(cls.__doc__ or "")
    return f"### {cls.name}\n\n{'; '.join(filter(None, facts))}\n\n{text}"


def _options(cls: type[ModulePass]) -> Sequence[Any]:
    return [field for field in fields(cls) if field.init] if is_dataclass(cls) else []


# Commands


def cli_page() -> str:
    """docs/cli.md: the arguments of `lowerdeck` and `opt-tool`."""
    from lowerdeck.tools.command import EXAMPLE, commands_of, shared_arguments
    from lowerdeck.tools.common import EXIT_CODES
    from lowerdeck.tools.lowerdeck import argument_parser
    from lowerdeck.tools.opt_tool import OptTool

    parser = argument_parser()
    commands = {name: _rows(command) for name, command in commands_of(parser).items()}
    on_models = {name: rows for name, rows in commands.items() if any("`MODEL`" in r for r in rows)}
    shared = list(map(_argument, shared_arguments(commands_of(parser)["compile"])))
    common = [row for row in commands["compile"] if all(row in c for c in on_models.values())]
    some = [row for row in shared if row not in common]
    parts = [
        "# Command line",
        _NOTE.format(source="the parsers of arguments in `tools`"),
        "## lowerdeck",
        parser.description or "",
        EXIT_CODES[:1].upper() + EXIT_CODES[1:] + ".",
        "`pip install 'lowerdeck[completion]'`, then `eval \"$(register-python-argcomplete "
        'lowerdeck opt-tool)"` in the start file of bash or zsh, completes commands, options, and '
        "targets, passes, strategies and phases; in fish it is `register-python-argcomplete "
        "--shell fish lowerdeck opt-tool | source`.",
        "`man lowerdeck` and `man opt-tool` say the same: pip installs them into `share/man` "
        "of the environment, where `man` looks while it is active.",
        "Each command on a model takes these arguments, and its own:",
        _table(common),
        "Some of them take these, too; one that has no effect in a command is refused there:",
        _table_of_some(some, on_models),
    ]
    for name, command in commands_of(parser).items():
        text = command.description or ""
        known = {*common, *some}
        own = [row for row in commands[name] if row not in known and "`-h, --help`" not in row]
        parts += [f"### lowerdeck {name}", f"{text[:1].upper()}{text[1:]}.", _table(own)]
        if command.epilog and command.epilog.startswith(EXAMPLE):
            parts.append(f"Example: `{command.epilog.removeprefix(EXAMPLE)}`")
        elif command.epilog:
            parts.append(f"{command.epilog[:1].upper()}{command.epilog[1:]}.")
    parts += [
        "## opt-tool",
        OptTool.description,
        "It has the arguments of `xdsl-opt`, which `opt-tool --help` lists, too, and these:",
        _table(_own_rows_of_opt_tool()),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _own_rows_of_opt_tool() -> list[str]:
    from xdsl.xdsl_opt_main import xDSLOptMain

    from lowerdeck.tools.opt_tool import OptTool

    tool, ours, theirs = OptTool([]), argparse.ArgumentParser(), argparse.ArgumentParser()
    tool.register_all_arguments(ours)
    xDSLOptMain.register_all_arguments(tool, theirs)
    known = _rows(theirs)
    return [row for row in _rows(ours) if row not in known]


def _rows(parser: argparse.ArgumentParser) -> list[str]:
    """A row an argument, in the order of the parser."""
    return [_argument(action) for action in parser._actions if action.help != argparse.SUPPRESS]


def _table(rows: Sequence[str]) -> str:
    return "\n".join(["| Argument | |", "|---|---|", *rows]) if rows else ""


def _table_of_some(rows: Sequence[str], commands: Mapping[str, Sequence[str]]) -> str:
    """A row has the commands that take the argument, too."""
    lines = ["| Argument | | Commands |", "|---|---|---|"]
    for row in rows:
        owners = [name for name, taken in commands.items() if row in taken]
        without = [name for name in commands if name not in owners]
        text = ", ".join(owners)
        if len(without) < len(owners):
            text = f"all but {', '.join(without)}"
        lines.append(f"{row} {text} |")
    return "\n".join(lines)


def _argument(action: argparse.Action) -> str:
    value = ""
    if action.nargs != 0 and action.option_strings:
        choices = None if action.choices is None else f"{{{','.join(map(str, action.choices))}}}"
        metavar = action.metavar if isinstance(action.metavar, str) else None
        value = f" {metavar or choices or action.dest.upper()}"
    choice = "|".join(map(str, action.choices or ())) or action.dest
    names = action.option_strings or [str(action.metavar or choice)]
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("|", "\\|")
    return f"| `{', '.join(names)}{value}` | {' '.join(text.split())} |"


PAGES: Mapping[str, Callable[[], str]] = {
    "ops.md": ops_page,
    "passes.md": passes_page,
    "cli.md": cli_page,
    "api.md": lambda: api_page(_NOTE.format(source="the docstrings in `api`")),
    "man/lowerdeck.1": lowerdeck_page,
    "man/opt-tool.1": opt_tool_page,
}
"""What is written to docs/."""


def main() -> None:
    """Write all pages; of the manual those that can be made here."""
    for name, page in PAGES.items():
        try:
            text = page()
        except ModuleNotFoundError as error:
            if error.name != "argparse_manpage":
                raise
            print(f"docs/{name} stays as it is: argparse-manpage is not installed", file=sys.stderr)
            continue
        (DOCS / name).write_text(text)


if __name__ == "__main__":
    main()
