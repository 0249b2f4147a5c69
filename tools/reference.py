"""The results that others are compared with: those of the interpreter on a module that was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.buffer.entry import find_entry
from lowerdeck.dialects.interpret import InterpretError, StepLimitError, run_module
from lowerdeck.dialects.interpret.buffer_kernels import STEPS_OF_AN_OP
from lowerdeck.tools.arguments import inputs_among
from lowerdeck.tools.compare import Results, says_something
from lowerdeck.tools.sample_inputs import (
    CHOICES,
    functions_without_main,
    inputs_of,
    sample_inputs,
)

MAX_STEPS = 10_000_000
"""Iterations of kernels that one run of the interpreter may take: about ten seconds."""

Inputs: TypeAlias = "Mapping[str, NDArray[Any]]"


class NoReferenceError(Exception):
    """There are no results to compare with; the message says why."""


def interpret(module: ModuleOp, inputs: Inputs, max_steps: int = MAX_STEPS) -> Results:
    """
    The results of a module of any level, or of all functions of one that has no main one;
    StepLimitError if that takes too long.
    """
    is_lowered = find_entry(module) is not None
    steps = max_steps if is_lowered else max_steps // STEPS_OF_AN_OP
    results: Results = {}
    for name in functions_without_main(module):
        start = f"{name}:"
        own = {n.removeprefix(start): a for n, a in inputs.items() if n.startswith(start)}
        found = run_module(module, own, name, max_steps=steps)
        results.update((f"{start}{output}", value) for output, value in found.items())
    return results or run_module(module, inputs, max_steps=steps)


def reference_run(
    module: ModuleOp,
    given: Inputs | None,
    run: Callable[[ModuleOp, Inputs], Results] = interpret,
) -> tuple[Inputs, Results]:
    """
    The inputs that were given, or else random ones that the module takes, and its results.

    NoReferenceError if it takes none, or gives no number to compare.
    """
    why = ""
    if given is not None:
        given = inputs_among(given, _names_of(module))
    for choice in CHOICES if given is None else CHOICES[:1]:
        try:
            inputs = sample_inputs(inputs_of(module), choice=choice) if given is None else given
            results = run(module, inputs)
        except (InterpretError, ElidedBlobError, VerifyException) as error:
            # The first choice is the most natural one, and so is what it meets.
            why = why or str(error)
            if isinstance(error, StepLimitError):
                break
            continue
        if any(map(says_something, results.values())):
            return inputs, results
        why = why or "all outputs are empty"
    raise NoReferenceError(why)


def _names_of(module: ModuleOp) -> list[str]:
    try:
        return list(inputs_of(module))
    except InterpretError:  # which the run tells
        return []
