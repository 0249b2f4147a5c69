"""What opt-tool does between passes."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.frameworks import exports
from lowerdeck.lowering.pipeline import Observer, passes_of_phase
from lowerdeck.passes.machinery.contracts import PHASES
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.tools.arguments import listed
from lowerdeck.tools.common import verify

if TYPE_CHECKING:
    from lowerdeck.tools.check_each import PassChecker


class Tool(Protocol):
    """The tool that runs the passes."""

    args: argparse.Namespace
    checker: PassChecker | None
    timings: list[tuple[str, float]]

    def get_input_name(self) -> str:
        """The file that messages are about."""
        ...

    def print_ir(self, when: str, module: ModuleOp) -> None:
        """Print the module as it is before or after a pass."""
        ...

    def show(self, when: str, text: str, suffix: str) -> None:
        """Print a text about a pass."""
        ...

    def text_of(self, module: ModuleOp) -> str:
        """The module as text."""
        ...


class BetweenPasses(Observer):
    """After each pass: measure, verify, print, check."""

    verifies = True

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._started = 0.0
        self._last: ModulePass | None = None
        self._current = ""
        self._text = ""
        """The IR before the pass, if its change is to be printed."""

    def verify(self, module: ModuleOp) -> None:
        """ToolError if the module does not verify."""
        if not self._tool.args.disable_verify:
            name = None if self._last is None else self._last.name
            verify(module, self._tool.get_input_name(), name)

    def not_applicable(self, error: Exception) -> str:
        """What is said if the current pass finds IR that is none of its input."""
        name = self._current
        text = f"{self._tool.get_input_name()}: pass '{name}': {error}"
        for phase in (*PHASES, *exports()):
            if name in passes_of_phase(phase, CompileOptions()):
                before = f"--compile-to={phase} runs what comes before it"
                return f"{text}; it leads to '{phase}': {before}"
        return text

    def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        args = self._tool.args
        self._current = pass_.name
        if self._last is not None and args.print_between_passes:
            print(f"// -----// IR after {self._last.name} //----- //")
            print(self._tool.text_of(module))
        if args.print_ir_before_all or pass_.name in listed(args.print_ir_before):
            self._tool.print_ir(f"before {pass_.name}", module)
        if args.print_ir_after_change or (args.print_ir_diff and self._is_of_interest(pass_)):
            self._text = self._tool.text_of(module)
        if self._tool.checker is not None:
            self._tool.checker.before_pass(pass_, phase, module)
        self._started = perf_counter()

    def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        self._tool.timings.append((pass_.name, perf_counter() - self._started))
        self._last = pass_
        self.verify(module)
        args = self._tool.args
        if args.print_ir_diff and self._is_of_interest(pass_):
            self._print_diff(pass_, module)
        elif (
            args.print_ir_after_all
            or pass_.name in listed(args.print_ir_after)
            or (args.print_ir_after_change and self._tool.text_of(module) != self._text)
        ):
            self._tool.print_ir(f"after {pass_.name}", module)
        if self._tool.checker is not None:
            self._tool.checker.after_pass(pass_, phase, module)

    def _is_of_interest(self, pass_: ModulePass) -> bool:
        asked = listed(self._tool.args.print_ir_after)
        return not asked or pass_.name in asked

    def _print_diff(self, pass_: ModulePass, module: ModuleOp) -> None:
        from difflib import unified_diff

        before, after = self._text.splitlines(), self._tool.text_of(module).splitlines()
        names = f"before {pass_.name}", f"after {pass_.name}"
        if lines := list(unified_diff(before, after, *names, lineterm="")):
            self._tool.show(names[1], "\n".join(lines), "diff")
