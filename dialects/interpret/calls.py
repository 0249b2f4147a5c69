"""Calls in a row of a module that remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core.states import states_of
from lowerdeck.dialects.interpret import Value, find_function, run_module


class Calls:
    """
    A function that is run for inputs by name, each time from the states that the last call left.

    The results of a call have the states, too.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._states = states_of(find_function(module, "main"))
        self._held: dict[str, Any] = {}
        self.reset()

    @property
    def states(self) -> dict[str, Any]:
        """What is remembered, by the names of the inputs that hold it."""
        return dict(self._held)

    def reset(self) -> None:
        """Let states be what they are before the first call."""
        self._held = {state.before: state.initial for state in self._states}

    def __call__(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, Value]:
        found = run_module(self._module, {**self._held, **inputs})
        self._held = {state.before: found[state.after] for state in self._states}
        return found
