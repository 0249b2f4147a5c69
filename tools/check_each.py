"""
`--check-each`: the interpreter before and after each pass.

Where the results differ, the pass runs again with fewer and fewer rewrites until the first one that
changes them is known; the error names its pattern, site and source nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.interpret import InterpretError, Value, find_function, run_module
from lowerdeck.passes.options import LowerdeckContext, options_of
from lowerdeck.tools.common import ToolError
from lowerdeck.tools.sample_inputs import sample_inputs

_MAX_STEPS = 1_000_000
"""Ops that one run of the interpreter may take."""

_TOLERANCES: Mapping[np.dtype[Any], float] = {
    np.dtype(np.float64): 1e-9,
    np.dtype(np.float32): 1e-4,
    np.dtype(np.float16): 2e-2,
    np.dtype(ml_dtypes.bfloat16): 1e-1,
}
"""Allowed difference relative to the larger of one and the value's largest neighbor."""

Results = dict[str, Value]


def difference(found: Results, expected: Results) -> str | None:
    """What differs between two runs, or None: integers equal, floats close, NaN where NaN is."""
    for name, reference in expected.items():
        if name not in found:
            return f"there is no output '{name}' any more"
        if (text := _difference_of(found[name], reference)) is not None:
            return f"output '{name}' {text}"
    return None


def _difference_of(found: Value, expected: Value) -> str | None:
    if isinstance(found, list) and isinstance(expected, list):
        if len(found) != len(expected):
            return f"has {len(found)} elements instead of {len(expected)}"
        parts = (_difference_of(a, b) for a, b in zip(found, expected, strict=True))
        return next((part for part in parts if part is not None), None)
    if not isinstance(found, np.ndarray) or not isinstance(expected, np.ndarray):
        return None if found is expected else "is absent in one of the two runs"
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return (
            f"is {found.dtype}{list(found.shape)} instead of {expected.dtype}{list(expected.shape)}"
        )
    return _number_difference(found, expected)


def _number_difference(found: NDArray[Any], expected: NDArray[Any]) -> str | None:
    tolerance = _TOLERANCES.get(expected.dtype)
    if tolerance is None:
        wrong = np.asarray(found != expected)
    else:
        wide, reference = found.astype(np.float64), expected.astype(np.float64)
        finite = np.abs(reference[np.isfinite(reference)])
        scale = max(1.0, float(finite.max(initial=0.0)))
        wrong = ~np.isclose(wide, reference, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    if not wrong.any():
        return None
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    return (
        f"differs in {np.count_nonzero(wrong)} of {wrong.size} elements; "
        f"at {list(place)} it is {found[place]} instead of {expected[place]}"
    )


class PassChecker:
    """Compares the results of a module before and after each pass of one pipeline."""

    def __init__(
        self, context: Context, file: str, inputs: Mapping[str, NDArray[Any]] | None
    ) -> None:
        self._context = context
        self._file = file
        self._given = inputs
        self._inputs: Mapping[str, NDArray[Any]] = {}
        self._expected: Results | None = None
        self._before: ModuleOp | None = None
        self._rewrites = 0

    def check(
        self, previous: ModulePass | None, module: ModuleOp, following: ModulePass | None
    ) -> None:
        """ToolError if the pass that just ran, `previous`, has changed the results."""
        if previous is None:
            self._start(module)
        elif self._before is not None and self._expected is not None:
            found = self._run(module, f"after {previous.name}")
            if found is not None and (text := difference(found, self._expected)) is not None:
                raise ToolError(self._blame(previous, text))
        self._before = None if following is None else module.clone()
        self._rewrites = options_of(self._context).rewrites

    def _start(self, module: ModuleOp) -> None:
        self._expected = None
        try:
            function = find_function(module, "main")
            self._inputs = sample_inputs(function) if self._given is None else self._given
        except (InterpretError, VerifyException) as error:
            self._not_checked(f"no inputs can be made: {error}")
            return
        self._expected = self._run(module, "before the first pass")

    def _run(self, module: ModuleOp, when: str) -> Results | None:
        try:
            return run_module(module, self._inputs, max_steps=_MAX_STEPS)
        except (InterpretError, ElidedBlobError, VerifyException) as error:
            self._not_checked(f"{when}: {error}")
            return None

    def _not_checked(self, why: str) -> None:
        print(f"{self._file}: not checked: {why}", file=sys.stderr)

    def _blame(self, suspect: ModulePass, text: str) -> str:
        """The error for a pass that changes the results; names the first wrong rewrite."""
        message = f"{self._file}: the pass '{suspect.name}' changes the results: {text}"
        good, bad = 0, options_of(self._context).rewrites - self._rewrites
        if bad == 0:
            return message
        last = ""
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
        options = replace(
            options_of(self._context), rewrite_limit=limit, rewrites=0, last="", log=None
        )
        context = self._context.clone()
        if isinstance(context, LowerdeckContext):
            context.options = options
        suspect.apply(context, module)
        found = self._run(module, f"after {limit} rewrites of {suspect.name}")
        return found is not None and difference(found, self._expected) is not None, options.last
