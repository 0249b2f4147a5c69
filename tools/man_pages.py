"""Manual pages for `man`, made from the parsers of arguments as docs/cli.md is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from lowerdeck.tools.command import EXAMPLE, HOW_TO_COMPILE, commands_of
from lowerdeck.tools.common import EXIT_CODES


def lowerdeck_page() -> str:
    """lowerdeck.1: the commands, and once what all commands on models take."""
    from lowerdeck.tools.lowerdeck import argument_parser

    parser = argument_parser()
    commands = commands_of(parser)
    shared = _shared(commands["compile"])
    parts = [
        *_head(parser.prog, parser.description or "", "lowerdeck COMMAND [options] [MODEL]"),
        *_arguments([one for one in parser._actions if one.nargs != argparse.PARSER]),
        ".SH COMMANDS",
    ]
    for name, command in commands.items():
        parts += [f".SS {_bold(f'lowerdeck {name}')}", _text(command.description or "")]
        parts += _arguments(_own(command))
        epilog = command.epilog or ""
        if epilog.startswith(EXAMPLE):
            parts += [".PP", "Example:", ".PP", f".B {_text(epilog.removeprefix(EXAMPLE))}"]
        elif epilog:
            parts += [".PP", _text(epilog)]
    parts += [".SH OPTIONS OF ALL COMMANDS ON MODELS"]
    parts += _arguments(shared)
    return _page([*parts, *_foot("opt-tool")])


def opt_tool_page() -> str:
    """opt-tool.1: its own arguments and those that it has from xdsl-opt."""
    from lowerdeck.tools.opt_tool import OptTool

    parser = argparse.ArgumentParser()
    OptTool([]).register_all_arguments(parser)
    synopsis = (parser.usage or "").replace("%(prog)s", parser.prog)
    parts = [
        *_head(parser.prog, OptTool.description, synopsis),
        ".SH OPTIONS",
        *_arguments(parser._actions),
    ]
    return _page([*parts, *_foot("lowerdeck")])


def _shared(command: argparse.ArgumentParser) -> list[argparse.Action]:
    """What says how to compile, in all commands on models alike."""
    groups = [group for group in command._action_groups if group.title == HOW_TO_COMPILE]
    return [action for group in groups for action in group._group_actions]


def _own(command: argparse.ArgumentParser) -> list[argparse.Action]:
    shared = _shared(command)
    return [action for action in command._actions if action not in shared and action.dest != "help"]


def _head(name: str, description: str, synopsis: str) -> Iterator[str]:
    from lowerdeck import __version__

    yield f'.TH {name.upper()} 1 "" "lowerdeck {__version__}"'
    yield from (
        ".SH NAME",
        rf"{_text(name)} \- {_text(description[:1].lower() + description[1:].rstrip('.'))}",
    )
    yield from (".SH SYNOPSIS", f".B {_text(synopsis)}")
    yield from (".SH DESCRIPTION", _text(description))


def _foot(other: str) -> Iterator[str]:
    title, _, codes = EXIT_CODES.partition(": ")
    yield f".SH {title.upper()}"
    for code in codes.split("; "):
        number, _, meaning = code.partition(" ")
        yield from (".TP", _bold(number), _text(meaning))
    yield from (".SH SEE ALSO", f".BR {_text(other)} (1)")


def _arguments(actions: Sequence[argparse.Action]) -> Iterator[str]:
    for action in actions:
        if action.help == argparse.SUPPRESS:
            continue
        names = ", ".join(map(_bold, action.option_strings or [_value(action)]))
        takes = action.option_strings and action.nargs != 0
        yield from (".TP", f"{names} {_italic(_value(action))}" if takes else names)
        yield _text((action.help or "").replace("%(default)s", str(action.default)))


def _value(action: argparse.Action) -> str:
    """What stands for the value of an argument."""
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    return action.dest.upper() if action.option_strings else action.dest


def _page(parts: Sequence[str]) -> str:
    return "\n".join(
        ['.\\" Made by `make docs` from the parsers of arguments in tools.', *parts, ""]
    )


def _bold(text: str) -> str:
    return rf"\fB{_text(text)}\fR"


def _italic(text: str) -> str:
    return rf"\fI{_text(text)}\fR"


def _text(text: str) -> str:
    r"""In roff a line must not begin with `.` or `'`, and `-` of an option is `\-`."""
    line = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{line}" if line[:1] in (".", "'") else line
