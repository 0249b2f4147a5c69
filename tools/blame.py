"""
What makes the results of a model wrong: the pass, the pattern and the single rewrite.

The results of the module that was read are right by definition. After how many passes they are
others is searched by bisection, with the interpreter; then after how many rewrites of that pass.
Where the interpreter takes too long, the C is what is compared: by the number of rewrites of the
whole way, then by the passes that record none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from lowerdeck import lowering
from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.errors import InternalError, PluginFault
from lowerdeck.dialects.interpret import StepLimitError
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.lowering.pipeline import EXTRA_AFTER, extra_passes, run_passes, steps_of_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.contracts import PHASES, check_contract
from lowerdeck.passes.machinery.driver import is_enabled, rounds
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.tools.compare import Results, difference
from lowerdeck.tools.reference import MAX_STEPS, Inputs, interpret
from lowerdeck.tools.rewrite_site import Change, Snapshot, Witness
from lowerdeck.tools.run_c import run_c

_FAULTS = (InternalError, PluginFault, VerifyException)
"""What a pass that is wrong ends with, if it ends the run."""


@dataclass(frozen=True)
class Finding:
    """Where results become wrong, as far as that was found."""

    problem: str
    """How they differ, or what fails."""
    where: str
    """After which pass, and what told."""
    pass_name: str | None = None
    pattern: str | None = None
    rewrite: str = ""
    """The first wrong rewrite, as in `--rewrite-log`."""
    change: Change | None = None
    is_of_c: bool = False
    """True if only the C tells that something is wrong."""

    @property
    def key(self) -> tuple[str | None, str | None]:
        """What stays the same while a model shrinks: the pass and the pattern."""
        return self.pass_name, self.pattern

    @property
    def lines(self) -> list[str]:
        """What is said of it, without the IR."""
        lines = [self.problem, self.where]
        return [*lines, f"first wrong rewrite: {self.rewrite}"] if self.rewrite else lines


@dataclass(frozen=True)
class Step:
    """One pass of the way."""

    phase: str
    pass_: ModulePass
    is_last: bool
    """True if the phase ends with it."""


@dataclass(frozen=True)
class Effect:
    """What a pass of the user's own has done."""

    pass_name: str
    rewrites: int
    has_changed: bool
    """True also where it has changed the module without rewrites that it tells of."""


def steps_of(options: CompileOptions) -> list[Step]:
    """The passes from an imported module to scheduled loops, without those that are disabled."""
    steps: list[Step] = []
    for phase in PHASES:
        enabled = [pass_ for pass_ in steps_of_phase(phase, options) if is_enabled(pass_, options)]
        steps += [Step(phase, pass_, pass_ is enabled[-1]) for pass_ in enabled]
    return steps


class UncheckedError(Exception):
    """A module of which the results cannot be had; the message says why."""


@dataclass
class Blamer:
    """One imported module, its right results, and the ways to lower it."""

    module: ModuleOp
    options: CompileOptions
    inputs: Inputs
    expected: Results
    max_steps: int = MAX_STEPS
    done: int = 0
    """How many passes have made the module."""
    notes: list[str] = field(default_factory=list[str])
    """What could not be checked, and why."""

    def __post_init__(self) -> None:
        self.steps = steps_of(self.options)[self.done :]

    # Running

    def after_rounding(self) -> Blamer:
        """
        The same for the passes after the last one that rounds numbers on purpose, whose results are
        right ones then; UncheckedError, also where passes before it have changed them.
        """
        numbers = [k for k, step in enumerate(self.steps) if rounds(step.pass_, self.options)]
        if not numbers:
            return self
        module, context, last = self.module.clone(), self.context(), numbers[-1]
        self.lower(module, 0, numbers[0], context)
        if (problem := self.compare(module)) is not None:
            name = self.steps[numbers[0]].pass_.name
            raise UncheckedError(f"the module that '{name}' rounds differs: {problem}")
        self.lower(module, numbers[0], last + 1, context)
        try:
            expected = interpret(module, self.inputs, self.max_steps)
        except (StepLimitError, ElidedBlobError) as error:
            raise UncheckedError(str(error)) from error
        return replace(self, module=module, expected=expected, done=last + 1)

    def lower(self, module: ModuleOp, start: int, end: int, context: LowerdeckContext) -> None:
        """Run the passes with these numbers on a module."""
        for step in self.steps[start:end]:
            run_passes(context, module, [step.pass_], phase=step.phase)
            if step.is_last:
                check_contract(module, step.phase)

    def context(self, **changes: Any) -> LowerdeckContext:
        """A new context, with some other options."""
        context = LowerdeckContext(options=replace(self.options, **changes))
        register_dialects(context)
        return context

    def compare(self, module: ModuleOp) -> str | None:
        """How the results of a module differ, if they do; UncheckedError."""
        try:
            found = interpret(module, self.inputs, self.max_steps)
        except (StepLimitError, ElidedBlobError) as error:
            raise UncheckedError(str(error)) from error
        except Exception as error:  # a module that is wrong may be wrong in any way
            return f"the module cannot be run any more: {error}"
        return difference(found, self.expected)

    def compare_c(self, context: LowerdeckContext | None = None) -> str | None:
        """How the results of the C differ, if they do, or why it cannot be made."""
        context = context or self.context()
        module = self.module.clone()
        try:
            self.lower(module, 0, len(self.steps), context)
            artifact = lowering.emit(context, module, "model")
        except _FAULTS as error:
            return str(error)
        found = run_c(artifact, self.inputs, self.options.threads)
        if isinstance(found, str):
            return f"the C cannot be run: {found}"
        return difference(found, self.expected)

    def effects(self) -> list[Effect]:
        """What each pass of the user's own does to the module."""
        own = {type(pass_) for pass_ in extra_passes(self.options)}
        context, module = self.context(), self.module.clone()
        found: list[Effect] = []
        for position, step in enumerate(self.steps if own else ()):
            is_own = step.phase == EXTRA_AFTER and type(step.pass_) in own
            before, rewrites = module.clone() if is_own else module, context.recorder.rewrites
            self.lower(module, position, position + 1, context)
            if is_own:
                made = context.recorder.rewrites - rewrites
                is_same = not made and module.is_structurally_equivalent(before)
                found.append(Effect(step.pass_.name, made, not is_same))
            if step.phase == EXTRA_AFTER and step.is_last:
                break
        return found

    # Searching

    def find(self, problem: str) -> Finding:
        """What is wrong in the C, which differs as `problem` says."""
        found = self._find_by_interpreter()
        return found or self._find_by_c(problem)

    def find_in_core(self) -> Finding | None:
        """What is wrong, if the interpreter sees it before memory is assigned; needs no C."""
        return self._find_between(0, self.module, self._count_to("kernels"))

    def _count_to(self, phase: str) -> int:
        """The number of passes up to the end of a phase."""
        return sum(PHASES.index(step.phase) <= PHASES.index(phase) for step in self.steps)

    def _find_by_interpreter(self) -> Finding | None:
        found = self.find_in_core()
        if found is not None or self.notes:
            return found
        state, end = self.module.clone(), self._count_to("kernels")
        self.lower(state, 0, end, self.context())
        return self._find_between(end, state, len(self.steps))

    def _find_between(self, good: int, state: ModuleOp, bad: int) -> Finding | None:
        """The first wrong pass, if the results are right after `good` passes."""
        problem, _ = self._after(state, good, bad)
        if problem is None:
            return None
        while bad - good > 1:
            middle = (good + bad) // 2
            found, later = self._after(state, good, middle)
            if found is None and later is None:
                self.notes.append(f"not compared between passes {good + 1} and {bad}")
                break
            if found is not None:
                bad, problem = middle, found
            elif later is not None:
                good, state = middle, later
        return self._blame_pass(good, bad, state, problem)

    def _after(self, state: ModuleOp, start: int, end: int) -> tuple[str | None, ModuleOp | None]:
        """
        How the results differ after more passes, and the module then; neither if that cannot be
        compared, which is noted.
        """
        module = state.clone()
        try:
            self.lower(module, start, end, self.context())
            return self.compare(module), module
        except _FAULTS as error:
            return str(error), None
        except UncheckedError as error:
            self.notes.append(f"the pass '{self.steps[end - 1].pass_.name}': {error}")
            return None, None

    def _blame_pass(self, good: int, bad: int, state: ModuleOp, problem: str) -> Finding:
        first, last = self.steps[good].pass_, self.steps[bad - 1].pass_
        if bad - good > 1:
            where = f"between the passes '{first.name}' and '{last.name}', says the interpreter"
            return Finding(problem, where)
        where = f"after the pass '{last.name}' ({bad} of {len(self.steps)}), says the interpreter"

        def run(context: LowerdeckContext, module: ModuleOp) -> None:
            run_passes(context, module, [last])

        def is_wrong(limit: int) -> bool:
            module = state.clone()
            try:
                run(self.context(rewrite_limit=limit), module)
                return self.compare(module) is not None
            except (*_FAULTS, PassFailedException, UncheckedError):
                return True

        context = self.context()
        try:
            run(context, state.clone())
        except _FAULTS:
            pass  # the rewrites before it still count
        number = first_wrong(is_wrong, 0, context.recorder.rewrites)
        if number is None:
            module = state.clone()
            snapshot = Snapshot(module)
            change = None
            try:
                run(self.context(), module)
                change = snapshot.change()
            except _FAULTS:
                pass
            return Finding(problem, where, last.name, None, "", change)
        return self._with_witness(
            Finding(problem, where, last.name), number, lambda c: run(c, state.clone())
        )

    def _with_witness(
        self, finding: Finding, number: int, run: Callable[[LowerdeckContext], object]
    ) -> Finding:
        """A finding with the rewrite of a number, as it is made."""
        context = self.context(rewrite_limit=number)
        witness = Witness(self.options.skip_nodes, number)
        context.recorder = witness
        try:
            run(context)
        except _FAULTS:
            pass
        change = None if witness.snapshot is None else witness.snapshot.change()
        name, pattern = witness.names or (finding.pass_name, None)
        return replace(
            finding, pass_name=name, pattern=pattern, rewrite=witness.last, change=change
        )

    def _find_by_c(self, problem: str) -> Finding:
        """Bisect what the C is made with."""
        legal = self._count_to("legal")
        context, module = self.context(), self.module.clone()
        self.lower(module, 0, legal, context)
        fewest = context.recorder.rewrites
        self.lower(module, legal, len(self.steps), context)

        def is_wrong(limit: int) -> bool:
            return self._is_wrong_in_c(self.context(rewrite_limit=limit))

        where = "in the C; the interpreter was not asked, or agrees with the module it is made from"
        number = first_wrong(is_wrong, fewest, context.recorder.rewrites)
        if number is not None:

            def run(context: LowerdeckContext) -> None:
                self._lower_to_limit(self.module.clone(), context)

            return self._with_witness(Finding(problem, where, is_of_c=True), number, run)
        return self._find_silent_pass(problem, where, fewest)

    def _lower_to_limit(self, module: ModuleOp, context: LowerdeckContext) -> None:
        """Lower up to the pass that makes the last rewrite within the limit."""
        for position in range(len(self.steps)):
            self.lower(module, position, position + 1, context)
            if context.recorder.exhausted:
                return

    def _is_wrong_in_c(self, context: LowerdeckContext) -> bool:
        """True if the C differs; also where it cannot be made with fewer rewrites or passes."""
        try:
            return self.compare_c(context) is not None
        except PassFailedException:
            return True

    def _find_silent_pass(self, problem: str, where: str, limit: int) -> Finding:
        """The first of the passes that record no rewrites with which the C is wrong."""
        names = [
            step.pass_.name
            for step in self.steps
            if getattr(step.pass_, "optional", False)
            and step.pass_.name not in self.options.disable
        ]
        names = list(dict.fromkeys(names))

        def is_wrong(count: int) -> bool:
            disable = frozenset([*self.options.disable, *names[count:]])
            steps = self.steps
            self.steps = steps_of(replace(self.options, disable=disable))[self.done :]
            try:
                context = self.context(rewrite_limit=limit, disable=disable)
                return self._is_wrong_in_c(context)
            finally:
                self.steps = steps

        number = first_wrong(is_wrong, 0, len(names))
        if number is None:
            text = f"{where}; no optional pass makes the difference"
            return Finding(problem, text, is_of_c=True)
        name = names[number - 1]
        return Finding(problem, f"{where}; with the pass '{name}'", name, is_of_c=True)


def first_wrong(is_wrong: Callable[[int], bool], good: int, bad: int) -> int | None:
    """
    The number in good + 1 .. bad from which on it is wrong; None if it already is at `good`, or is
    not at `bad`.
    """
    if bad <= good or not is_wrong(bad) or is_wrong(good):
        return None
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if is_wrong(middle) else (middle, bad)
    return bad
