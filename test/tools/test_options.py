"""Options of commands are those that have an effect there; the shell completes their values."""

from __future__ import annotations

import argparse
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from lowerdeck.lowering.targets import target_names
from lowerdeck.tools.command import commands_of
from lowerdeck.tools.completion import add_completers, complete
from lowerdeck.tools.lowerdeck import argument_parser, main
from lowerdeck.tools.opt_tool import OptTool


def flags(command: str) -> set[str]:
    """The options that the help of a command lists."""
    parser = commands_of(argument_parser())[command]
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return {flag for action in shown for flag in action.option_strings}


def test_help_lists_what_has_an_effect() -> None:
    assert flags("compile") >= {"--target", "--embed-weights", "--byte-order", "--fast-math"}
    assert flags("export") >= {"--fast-math", "--output", "--disable"}
    assert flags("ops") >= {"--output", "--load", "--signature"}
    assert flags("export").isdisjoint({"--target", "--threads", "--embed-weights", "--profile"})
    assert flags("ops").isdisjoint({"--target", "--disable", "--fast-math", "--strategy"})
    assert flags("run").isdisjoint({"--profile", "--name", "--byte-order"})


@pytest.mark.parametrize(
    ("arguments", "owners"),
    [
        (["ops", "m.onnx", "--embed-weights"], "compile, check and reduce"),
        (["ops", "--embed-weights", "m.onnx"], "compile, check and reduce"),
        (["export", "m.onnx", "--target=c99", "-o", "n.onnx"], "view, explain, check and reduce"),
        (["run", "m.onnx", "--name", "n"], "it is for compile"),
        (["explain", "m.onnx", "--profile"], "compile, bench, report and view"),
    ],
)
def test_others_are_refused_with_the_commands_that_take_them(
    arguments: list[str], owners: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"lowerdeck {arguments[0]}: --")
    assert "has no effect here" in error
    assert error.endswith(f"{owners}\n")


def completed(parser: argparse.ArgumentParser, flag: str, prefix: str) -> list[str]:
    """What completes the value of an option."""
    add_completers(parser)
    (action,) = [one for one in parser._actions if flag in one.option_strings]
    return vars(action)["completer"](prefix=prefix, parsed_args=argparse.Namespace())


def test_values_are_completed() -> None:
    commands = commands_of(argument_parser())
    parser = commands["compile"]
    assert completed(parser, "--target", "") == sorted(target_names())
    assert completed(parser, "--target", "x86-64-v") == ["x86-64-v3", "x86-64-v4", "x86-64-vnni"]
    assert "winograd" in completed(parser, "--disable-strategy", "w")
    assert completed(parser, "--disable", "dce,fuse-lin") == ["dce,fuse-linear"]
    assert completed(commands["view"], "--phase", "sch") == ["scheduled"]
    assert completed(commands["view"], "--before", "fuse-lin") == ["fuse-linear"]
    tool = argparse.ArgumentParser()
    OptTool([]).register_all_arguments(tool)
    assert completed(tool, "--pass-pipeline", "cse,fuse-lin") == ["cse,fuse-linear"]
    assert completed(tool, "--for-target", "c9") == ["c99"]
    assert completed(tool, "--compile-to", "c") == ["c", "caffe"]


def test_the_shell_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    parser = argument_parser()
    monkeypatch.setitem(sys.modules, "argcomplete", SimpleNamespace(autocomplete=asked.append))
    complete(parser)
    assert not asked
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    complete(parser)
    assert asked == [parser]
