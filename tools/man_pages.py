"""
Manual pages for `man`, made by argparse-manpage from the parsers of arguments as docs/cli.md is.

It writes the arguments of a parser, and so says for each command what all commands share, in the
width of this terminal. So here the commands keep their own arguments, those that they share follow
once, and lines are as long as they are.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from lowerdeck.tools.command import EXAMPLE, commands_of, shared_arguments
from lowerdeck.tools.common import EXIT_CODES

_MACROS = ("TH", "SH", "SS", "TP", "PP", "B ", "BR", "RS", "RE")
"""What pages have of roff: any other line that begins with a dot is text."""


_MOST_CHOICES = 6
"""That are shown as the value of an option."""


class _Unwrapped(argparse.HelpFormatter):
    """Lines of any length: `man` fills them, and none begins in the middle of a sentence."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=1 << 20)


def lowerdeck_page() -> str:
    """lowerdeck.1: the commands, and once what commands on models share."""
    from lowerdeck.tools.lowerdeck import argument_parser

    parser = argument_parser()
    commands = commands_of(parser)
    owners: dict[str, list[str]] = {}
    shared: dict[str, argparse.Action] = {}
    for name, command in commands.items():
        for action in (*_common(command), *shared_arguments(command)):
            key = (action.option_strings or [action.dest])[0]
            shared.setdefault(key, _copy(action))
            owners.setdefault(key, []).append(name)
            action.help = argparse.SUPPRESS
        _shorten(command)
    on_models = max(owners.values(), key=len)
    for key, action in shared.items():
        without = [name for name in on_models if name not in owners[key]]
        if without:
            few = len(without) < len(owners[key])
            text = f"not {', '.join(without)}" if few else ", ".join(owners[key])
            action.help = f"{action.help} ({text})"
    for group in parser._action_groups:
        if any(action.nargs == argparse.PARSER for action in group._group_actions):
            group.title = "commands"
    parser.epilog = None
    parser.usage = "lowerdeck COMMAND [options] [MODEL]"
    return _page(parser, parser.description or "", "opt-tool", list(shared.values()))


def opt_tool_page() -> str:
    """opt-tool.1: its own arguments and those that it has from xdsl-opt."""
    from lowerdeck.tools.opt_tool import OptTool

    parser = argparse.ArgumentParser(prog="opt-tool")
    OptTool([]).register_all_arguments(parser)
    parser.usage = (parser.usage or "").replace("%(prog)s", parser.prog)
    parser.description = OptTool.description
    return _page(parser, OptTool.description, "lowerdeck")


def _common(command: argparse.ArgumentParser) -> list[argparse.Action]:
    """What commands on models have in common besides what says how to compile."""
    names = ("model", "verbose", "log_level")
    actions = [action for action in command._actions if action.dest in names]
    return actions if len(actions) == len(names) else []


def _copy(action: argparse.Action) -> argparse.Action:
    """An argument whose help can change."""
    copied = argparse.Action(
        action.option_strings, action.dest, action.nargs, default=action.default
    )
    copied.choices, copied.metavar, copied.help = action.choices, action.metavar, action.help
    return copied


def _shorten(command: argparse.ArgumentParser) -> None:
    """Let a command say what it takes, and its example instead of what it is for once more."""
    values = [action for action in command._actions if not action.option_strings]
    names = " ".join(str(action.metavar or action.dest) for action in values)
    command.usage = f"{command.prog} [options] {names}".rstrip()
    epilog = command.epilog or ""
    example = f"Example: {epilog.removeprefix(EXAMPLE)}"
    command.description = example if epilog.startswith(EXAMPLE) else epilog
    command.epilog = None


def _name_long_choices(parser: argparse.ArgumentParser) -> None:
    """Many choices would fill the line of their option: they stand in what is said of it."""
    for action in parser._actions:
        if action.nargs != argparse.PARSER and len([*(action.choices or ())]) > _MOST_CHOICES:
            action.metavar = "NAME"
            action.help = f"{action.help} One of {', '.join(map(str, action.choices or ()))}."


def _page(
    parser: argparse.ArgumentParser,
    description: str,
    other: str,
    shared: Sequence[argparse.Action] = (),
) -> str:
    """A page with the exit codes, and the name of the other page."""
    from lowerdeck import __version__

    # It has no types.
    manpage: Any = import_module("argparse_manpage.manpage").Manpage

    parsers = [parser, *(commands_of(parser).values() if shared else ())]
    for each in parsers:
        each.formatter_class = _Unwrapped
        _name_long_choices(each)
    # Not the day on which it is made: pages are compared with what is in the repository.
    about = {"date": " ", "project_name": "lowerdeck", "version": __version__}
    page = manpage(parser, about, format="single-commands-section")
    page.manual = "lowerdeck"
    page.description = description[:1].lower() + description[1:].rstrip(".")
    page.synopsis = (parser.usage or "").split()
    if shared:
        lines = (line for action in shared for line in page.mf._format_action(action))
        page.add_section("options of commands on models", "=", "\n".join(lines))
    title, _, codes = EXIT_CODES.partition(": ")
    terms = (re.sub(r"^(.*?)(\d+) ", r".TP\n\2\n\1", code, count=1) for code in codes.split("; "))
    page.add_section(title, "=", "\n".join(terms))
    page.add_section("see also", "=", f".BR {other} (1)")
    return _as_roff(str(page).splitlines())


def _as_roff(lines: Iterable[str]) -> str:
    """The page as man reads it: text that begins with a dot or a quote is no macro."""
    fixed = [
        rf"\&{line}" if line[:1] == "'" or (line[:1] == "." and not _is_macro(line)) else line
        for line in lines
    ]
    return "\n".join(
        ['.\\" Made by `make docs` from the parsers of arguments in tools.', *fixed, ""]
    )


def _is_macro(line: str) -> bool:
    return re.match(rf"\.({'|'.join(_MACROS)})", line) is not None
