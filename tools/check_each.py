"""
`--check-each`: the interpreter before and after each pass, and at the end the C.

Where the results differ, the pass runs again with fewer and fewer rewrites until the first one that
changes them is known; the error names its pattern, site and source nodes.

All results are compared with those of the module that was read, so a comparison also speaks for
passes before it that could not be checked. What none speaks for is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.interpret import InterpretError, StepLimitError
from lowerdeck.lowering.pipeline import Observer
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.tools.common import ToolError
from lowerdeck.tools.compare import Results, difference
from lowerdeck.tools.reference import MAX_STEPS, NoReferenceError, interpret, reference_run
from lowerdeck.tools.run_c import run_c

if TYPE_CHECKING:
    from lowerdeck.lowering.emit_c.module import CArtifact

_ADVICE = (
    "give --inputs, --input-shape or --check-steps, or --allow-unchecked to go on without the check"
)


class PassChecker(Observer):
    """Compares the results of one module before and after each pass, and those of its C."""

    def __init__(
        self,
        context: LowerdeckContext,
        file: str,
        inputs: Mapping[str, NDArray[Any]] | None,
        *,
        max_steps: int = MAX_STEPS,
        allow_unchecked: bool = False,
    ) -> None:
        self._context = context
        self._file = file
        self._given = inputs
        self._max_steps = max_steps
        self._allow_unchecked = allow_unchecked
        self._inputs: Mapping[str, NDArray[Any]] = {}
        self._expected: Results | None = None
        self._why_not = ""
        """Why there are no results to compare with."""
        self._without_results: dict[str, list[str]] = {}
        """What ran before there were any, by the reason."""
        self._unchecked: list[str] = []
        """What ran since the last comparison, each with the reason."""
        self._compared = 0
        self._idle: list[str] = []
        """The passes of a pipeline that changed nothing: of them the check says nothing."""
        self._before: ModuleOp | None = None
        self._rewrites = 0

    def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        if self._expected is None:
            self._start(module)
        self._before = module.clone()
        self._rewrites = self._context.recorder.rewrites

    def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        """ToolError if the pass has changed the results."""
        self._check_after(pass_, module)
        is_idle = self._context.recorder.rewrites == self._rewrites
        if not phase and is_idle and self._before is not None:
            if module.is_structurally_equivalent(self._before):
                self._idle.append(pass_.name)

    def check_c(self, artifact: CArtifact) -> None:
        """ToolError if the C computes something else than the module that was read."""
        from lowerdeck.lowering.targets import obstacle

        if self._expected is None:
            self._without_results.setdefault(self._why_not, []).append("the C")
            return
        if (reason := obstacle(self._context.options.target)) is not None:
            self._unchecked.append(f"the C: {reason}")
            return
        found = run_c(artifact, self._inputs, self._context.options.threads)
        if isinstance(found, str):
            raise ToolError(self._about_c(f"cannot be run: {found}"))
        if (text := difference(found, self._expected)) is not None:
            raise ToolError(self._about_c(f"has other results: {text}"))
        self._agreed()

    def finish(self) -> None:
        """ToolError if there is work that no comparison has seen, or nothing was compared."""
        problems = [
            f"{first}: {reason}{f'; {len(others)} more for the same reason' if others else ''}"
            for reason, (first, *others) in self._without_results.items()
        ]
        problems += self._unchecked
        for name in dict.fromkeys(self._idle):
            print(f"{self._file}: note: the pass '{name}' changed nothing", file=sys.stderr)
        if not problems and not self._compared:
            problems = ["there is no pass to check"]
        if not problems:
            return
        text = "\n".join(f"{self._file}: not checked: {problem}" for problem in problems)
        if not self._allow_unchecked:
            raise ToolError(f"{text}\n{self._file}: {_ADVICE}")
        print(text, file=sys.stderr)

    def _start(self, module: ModuleOp) -> None:
        """Find inputs that the module takes, and what it makes of them."""
        self._why_not = ""
        try:
            self._inputs, self._expected = reference_run(module, self._given, self._run)
        except NoReferenceError as error:
            self._why_not = str(error)

    def _check_after(self, previous: ModulePass, module: ModuleOp) -> None:
        if self._expected is None:
            what = f"the pass '{previous.name}'"
            self._without_results.setdefault(self._why_not, []).append(what)
            return
        inputs, expected = self._inputs, self._expected
        if getattr(previous, "has_floats_only", False):
            inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
            expected = {
                name: value.astype(np.float32) if isinstance(value, np.ndarray) else value
                for name, value in expected.items()
            }
        try:
            found = self._run(module, inputs)
        except (StepLimitError, ElidedBlobError) as error:
            self._unchecked.append(f"the pass '{previous.name}': {error}")
            return
        except (InterpretError, VerifyException) as error:
            # What could be run before the pass has to be so behind it.
            text = f"after the pass '{previous.name}' the module cannot be run any more: {error}"
            raise ToolError(self._with_suspects(text)) from error
        if getattr(previous, "rounds_numbers", False):
            # What it rounds is meant to differ; what comes after it is not.
            self._expected = found
            return
        if (text := difference(found, expected)) is not None:
            raise ToolError(self._blame(previous, text))
        self._agreed()

    def _run(self, module: ModuleOp, inputs: Mapping[str, NDArray[Any]]) -> Results:
        return interpret(module, inputs, self._max_steps)

    def _agreed(self) -> None:
        """All that ran since there are results has not changed them."""
        self._unchecked.clear()
        self._compared += 1

    def _about_c(self, text: str) -> str:
        where = "a pass before it that was not checked"
        which = f"or {where}" if self._unchecked else "not the module that it was made from"
        return self._with_suspects(f"the C, {which}, {text}")

    def _with_suspects(self, text: str) -> str:
        """A message, with what ran before and was not checked: the mistake may be there, too."""
        lines = [text, *(f"not checked before that: {problem}" for problem in self._unchecked)]
        return "\n".join(f"{self._file}: {line}" for line in lines)

    def _blame(self, suspect: ModulePass, text: str) -> str:
        """The error for a pass that changes the results; names the first wrong rewrite."""
        message = self._with_suspects(f"the pass '{suspect.name}' changes the results: {text}")
        good, bad = 0, self._context.recorder.rewrites - self._rewrites
        if bad == 0 or self._unchecked:
            return message
        while bad - good > 1:
            middle = (good + bad) // 2
            wrong, _ = self._is_wrong(suspect, middle)
            good, bad = (good, middle) if wrong else (middle, bad)
        wrong, last = self._is_wrong(suspect, bad)
        return f"{message}\nfirst wrong rewrite: {last}" if wrong else message

    def _is_wrong(self, suspect: ModulePass, limit: int) -> tuple[bool, str]:
        """Do the first `limit` rewrites change the results? With the last of them as text."""
        assert self._before is not None
        assert self._expected is not None
        module = self._before.clone()
        context = self._context.clone()
        context.start(replace(context.options, rewrite_limit=limit))
        suspect.apply(context, module)
        last = context.recorder.last
        try:
            found = self._run(module, self._inputs)
        except InterpretError:
            return True, last
        return difference(found, self._expected) is not None, last
